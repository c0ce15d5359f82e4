"""A number with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_SIGNAL = 4.0
"""In standard deviations of the noise: below it a number of rows is not known well enough to divide by."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A number with its interval; all three are None where noise hides too much to tell.

    Attributes
    ----------
    value, low, high : float or None
    """

    value: float | None
    low: float | None
    high: float | None

    def divided_by(self, total: float) -> Rate:
        """The rate divided by a total of at least 1; its interval grows where it does not hold the quotient."""
        if self.value is None or self.low is None or self.high is None:
            return self
        value = self.value / total
        return Rate(value, min(self.low, value), max(self.high, value))

    def scaled(self, factor: float, shift: float = 0.0) -> Rate:
        """The rate in another unit; the factor may be negative."""
        if self.value is None or self.low is None or self.high is None:
            return self
        ends = sorted((shift + factor * self.low, shift + factor * self.high))
        return Rate(shift + factor * self.value, ends[0], ends[1])

    def texts(self, places: int = 0, places_of_exact: int = 4) -> tuple[str, str, str]:
        """Value, low and high as text, with so many more digits than `places` that the ends of the interval differ."""
        if self.value is None or self.low is None or self.high is None:
            return HIDDEN, "", ""
        width = self.high - self.low
        shown = max(places, 1 - math.floor(math.log10(width))) if width > 0.0 else places_of_exact
        value, low, high = (f"{each:,.{shown}f}" for each in (self.value, self.low, self.high))
        return value, low, high

    def __str__(self) -> str:
        value, low, high = self.texts(4)
        return value if self.value is None else f"{value}  [{low}, {high}]"


HIDDEN = "hidden by the noise"
UNKNOWN = Rate(None, None, None)
"""A number that the noise hides."""


def within(value: float, low: float, high: float, least: float, most: float) -> Rate:
    """A number with its interval, both cut to what is possible, from `least` to `most`; the interval holds the number.

    Where noise moved all of the interval beyond what is possible, it is one of half its length beside the nearest possible
    number. A number is hidden where its interval holds all that is possible.
    """
    value, half = min(most, max(least, value)), 0.5 * (high - low)
    ends = min(value, max(least, low)), max(value, min(most, high))
    if ends[0] >= ends[1]:
        ends = max(least, value - half), min(most, value + half)
    says_nothing = ends == (least, most) and least < most and math.isfinite(most - least)
    return UNKNOWN if says_nothing else Rate(value, *ends)
