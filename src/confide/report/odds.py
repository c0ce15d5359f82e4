"""What an attacker can gain from a release: from even odds about one person to what at most, in numbers and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from confide.cautions import EXAMPLE_DELTA
from confide.guarantee import Guarantee
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, Neighbours

_WIDTH, _LEFT, _RIGHT, _LINE, _TOP = 430, 172, 62, 32, 4
_DECIMALS = 1e4
"""Probabilities are rounded up to four digits after the point."""


@dataclass(frozen=True, slots=True)
class Odds:
    """One line of the picture.

    Attributes
    ----------
    name : what the attacker has seen
    probability : the largest probability of a right guess, rounded up
    """

    name: str
    probability: float


def guess_probability(budget: Budget) -> float:
    """The largest probability of a right guess between two neighbouring data sets, at even odds before; rounded up.

    For pure privacy it is also the most that any single outcome can lead to. With a delta it is an average over outcomes:
    (exp(epsilon) + delta) / (exp(epsilon) + 1). A concentrated budget is converted at delta = 1e-6.
    """
    implied = budget.to_approx(EXAMPLE_DELTA) if isinstance(budget, ZCDP) else budget
    if not implied.is_private:
        return 1.0
    delta = implied.delta if isinstance(implied, ApproxDP) else 0.0
    smaller = math.exp(-implied.epsilon)
    return min(1.0, math.ceil((1.0 + delta * smaller) / (1.0 + smaller) * _DECIMALS * (1.0 - 1e-12)) / _DECIMALS)


def odds_after(guarantee: Guarantee) -> float | None:
    """The probability of a right guess after the release; None without a guarantee."""
    return None if guarantee.void is not None else guess_probability(guarantee.budget)


def question_of(guarantee: Guarantee) -> str:
    """What the attacker guesses at, in words."""
    several = guarantee.max_rows_per_person > 1
    rows = f"the rows of one person (at most {guarantee.max_rows_per_person})" if several else "the row of one person"
    if guarantee.neighbours is Neighbours.REPLACE_ONE:
        return f"which of two possible values {rows} had"
    return f"whether {rows} {'were' if several else 'was'} among the data"


def percent(probability: float) -> str:
    """A probability in percent, with at most two digits after the point."""
    return f"{100.0 * probability:.2f}".rstrip("0").rstrip(".") + "%"


def odds_picture(lines: Sequence[Odds]) -> str:
    """Bars from 0% to 100%, each with its number. The first line is what the attacker knew before."""
    height = _TOP + _LINE * len(lines)
    width = _WIDTH - _LEFT - _RIGHT

    def x_of(probability: float) -> float:
        return _LEFT + width * probability

    even = x_of(0.5)
    marks = [
        f'<line class="even" x1="{even:.1f}" y1="0" x2="{even:.1f}" y2="{height}"/>',
        *(
            f'<text x="{x_of(tick):.1f}" y="{height + 15}" text-anchor="middle" class="quiet">{tick:.0%}</text>'
            for tick in (0.0, 0.5, 1.0)
        ),
    ]
    for place, line in enumerate(lines):
        y = _TOP + _LINE * place
        gained = max(0.0, line.probability - 0.5)
        marks += [
            f'<text x="{_LEFT - 10}" y="{y + 16}" text-anchor="end">{escape(line.name)}</text>',
            f'<rect class="track" x="{_LEFT}" y="{y}" width="{width}" height="22"/>',
            f'<rect class="known" x="{_LEFT}" y="{y}" width="{width * min(0.5, line.probability):.1f}" height="22"/>',
            f'<rect class="gained" x="{even:.1f}" y="{y}" width="{width * gained:.1f}" height="22"/>',
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{y + 16}" class="number">{percent(line.probability)}</text>',
        ]
    told = ". ".join(f"{line.name}: at most {percent(line.probability)}" for line in lines)
    title = f"Probability of a right guess. {told}."
    return (
        f'<svg class="odds" role="img" aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {height + 20}">'
        f"<title>{escape(title)}</title>{''.join(marks)}</svg>"
    )
