"""A number with its interval."""

from __future__ import annotations

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

    def __str__(self) -> str:
        if self.value is None:
            return "hidden by the noise"
        return f"{self.value:.4f}  [{self.low:.4f}, {self.high:.4f}]"
