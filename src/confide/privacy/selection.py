"""A private choice among candidates by their numbers of mistakes, and the best of a random number of private tries.

Every law is sampled exactly, from fair bits and rational numbers. Proof: proofs/selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.privacy.budgets import (
    ZCDP,
    Budget,
    Neighbours,
    PureDP,
    budget_of_row,
    concentrated_epsilon,
    pure_within,
)
from confide.privacy.events import Event, PureMechanism
from confide.privacy.lattice import bernoulli_exp
from confide.privacy.mechanism import ANOTHERS
from confide.privacy.noise import Entropy

_DOWNWARDS = 1.0 - 2.0**-38
_STOP_DENOMINATOR = 2**40


@dataclass(frozen=True, slots=True)
class Selection:
    """How one of several candidates is chosen, where one row changes each number of mistakes by at most 1.

    Parameters
    ----------
    law : "exponential" or "permute-and-flip"
    epsilon : what the choice costs a row; for "exponential" its privacy losses also have a range bounded by it
    """

    law: str
    epsilon: float

    @classmethod
    def of_budget(cls, law: str, budget: Budget) -> Self:
        """The choice with the largest epsilon that the budget of a row allows.

        "auto" is the law that promises fewer mistakes.
        """
        if not budget.is_concentrated:
            return cls("permute-and-flip" if law == "auto" else law, budget.amount)
        # proofs/selection.md, theorem 4: a bounded range of epsilon is epsilon^2 / 8-concentrated. Pure privacy alone is
        # epsilon tanh(epsilon / 2)-concentrated.
        exponential, flip = math.sqrt(8.0 * budget.amount) * _DOWNWARDS, pure_within(budget.amount)
        if law == "auto":
            law = "permute-and-flip" if flip >= exponential else "exponential"
        return cls(law, exponential if law == "exponential" else flip)

    def choose(self, mistakes: Sequence[int] | Sequence[Fraction], entropy: Entropy) -> int:
        """The position of the chosen candidate."""
        left, least = list(range(len(mistakes))), min(mistakes)
        rate = Fraction(self.epsilon) / 2
        while True:
            # Under the exponential law a refused candidate may come up again; under permute-and-flip it does not.
            position = entropy.below(len(left))
            candidate = left[position] if self.law == "exponential" else left.pop(position)
            if bernoulli_exp(rate * (mistakes[candidate] - least), entropy):
                return candidate


@dataclass(frozen=True, slots=True)
class Repetition:
    """The number K of private tries whose best outcome is released, with a truncated negative binomial law.

    Papernot and Steinke (2022), definition 1: Pr[K = k] is proportional to (1 - stop)^k times the product over l < k of
    (l + shape) / (l + 1).

    Parameters
    ----------
    shape : their eta, above -1 and at most 1; 1 is the geometric law
    stop : their gamma, between 0 and 1
    """

    shape: Fraction
    stop: Fraction

    def __post_init__(self) -> None:
        if not (-1 < self.shape <= 1 and 0 < self.stop < 1):
            raise ParameterError("the number of tries needs a shape in (-1, 1] and a probability to stop in (0, 1).")

    @classmethod
    def of_mean(cls, shape: Fraction, mean: float) -> Self:
        """The law of this shape whose mean number of tries, above 1, is nearly this one."""
        low, high = 1, _STOP_DENOMINATOR - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if cls(shape, Fraction(middle, _STOP_DENOMINATOR)).mean <= mean else (middle, high)
        return cls(shape, Fraction(high, _STOP_DENOMINATOR))

    @property
    def mean(self) -> float:
        """The expected number of tries."""
        eta, gamma = float(self.shape), float(self.stop)
        if eta == 0.0:
            return (1.0 / gamma - 1.0) / -math.log(gamma)
        return eta * (1.0 / gamma - 1.0) / -math.expm1(eta * math.log(gamma))

    def draw(self, entropy: Entropy) -> int:
        """A draw of K. It depends on no data."""
        # A draw of the geometric law is kept with probability product over 0 < l < K of (l + shape) / (l + 1).
        while True:
            tries = 1
            while entropy.below(self.stop.denominator) >= self.stop.numerator:
                tries += 1
            n, d = self.shape.numerator, self.shape.denominator
            if all(entropy.below((l + 1) * d) < l * d + n for l in range(1, tries)):
                return tries

    def pure_base(self, epsilon: float) -> float:
        """The largest epsilon of one try so that all of them are epsilon-private together."""
        # proofs/selection.md, theorem 5: all tries cost (2 + eta) times what one costs.
        return epsilon / (2.0 + float(self.shape)) * _DOWNWARDS

    def concentrated_base(self, epsilon: float, delta: float) -> float:
        """The largest rho of one try so that all of them are (epsilon, delta)-private together; 0 if there is none."""
        low, high = 0.0, 1.0
        while self._epsilon(high, delta) <= epsilon:
            low, high = high, 2.0 * high
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._epsilon(middle, delta) <= epsilon else (low, middle)
        return low

    def _epsilon(self, rho: float, delta: float) -> float:
        """Epsilon of the best of K rho-concentrated tries, at this delta, rounded upwards."""
        # proofs/selection.md, theorem 5, with the best second order, sqrt(log(1 / gamma) / rho), but at least 1. The term
        # log E[K] / (order - 1) joins log(1 / delta) / (order - 1), as if delta were E[K] times smaller.
        steps = -math.log(self.stop)
        order = max(1.0, math.sqrt(steps / rho)) if rho > 0.0 else math.inf
        extra = (1.0 + float(self.shape)) * (rho * (order - 1.0) + steps / order) if rho > 0.0 else 0.0
        return (concentrated_epsilon(rho, delta / self.mean * _DOWNWARDS) + extra) / _DOWNWARDS


# Quantiles of columns, each chosen from a public list of candidates by an exact private choice. Proof: proofs/quantiles.md.
#
# A candidate is worse the further, in rows, it is from being the quantile. Those distances are made of counts of rows, so
# they are exact and depend on no order of the rows.

_DOWN = 1.0 - 2.0**-40


@dataclass(frozen=True, slots=True)
class QuantilesPlan:
    """Everything decided before any row is read. Public.

    Attributes
    ----------
    candidates : tuple of tuples of float
        For each column the numbers of which one is chosen, in rising order.
    quantiles : tuple of Fraction
        Between 0 and 1, in rising order; the same for all columns.
    selection : Selection
        How each quantile of each column is chosen.
    budget : Budget
        What all choices cost together; charged once, before a row is used.
    neighbours : Neighbours
    event : Event
        What a ledger counts.
    """

    candidates: tuple[tuple[float, ...], ...]
    quantiles: tuple[Fraction, ...]
    selection: Selection
    budget: Budget
    neighbours: Neighbours
    event: Event

    @classmethod
    def of(
        cls,
        candidates: Sequence[Sequence[float]],
        quantiles: Sequence[Fraction],
        budget: Budget,
        neighbours: Neighbours,
        rows_per_person: int = 1,
    ) -> Self:
        """The plan that gives each quantile of each column an equal part of the budget. No data is used."""
        if not budget.is_private:
            raise ParameterError("budget must be finite: quantiles are released with privacy alone.")
        grids, shares = tuple(map(tuple, candidates)), tuple(map(Fraction, quantiles))
        if not grids or not shares or any(len(grid) < 2 or not (np.diff(grid) > 0.0).all() for grid in grids):
            raise ParameterError("quantiles need a column, and two or more candidates in rising order.")
        if list(shares) != sorted(set(shares)) or not 0 < shares[0] <= shares[-1] < 1:
            raise ParameterError("quantiles must lie strictly between 0 and 1, in rising order.")
        # Theorem 2: each choice costs an equal part, and the parts add up to no more than the budget of a row.
        part = _equal_part(budget_of_row(budget, rows_per_person), len(grids) * len(shares))
        selection = Selection.of_budget("auto", part)
        # A delta buys nothing here, so an approximate budget pays for choices that are purely private.
        pure = PureMechanism(budget.amount) if budget.is_approximate and rows_per_person == 1 else None
        event = Event(budget, pure, rows_per_person, neighbours)
        return cls(grids, shares, selection, budget, neighbours, event)

    def release(self, counts: Sequence[NDArray[np.int64]], entropy: Entropy) -> tuple[tuple[float, ...], ...]:
        """The chosen quantiles of each column, in rising order. The event was charged before this call.

        Parameters
        ----------
        counts : for each column the numbers of its cells by `places`, (2 m + 1,) for m candidates; missing cells nowhere
        entropy : where random bits come from
        """
        if type(self) is not QuantilesPlan:
            raise ParameterError(ANOTHERS)
        positions = []
        for grid, of_column in zip(self.candidates, counts, strict=True):
            chosen = [
                grid[self.selection.choose(mistakes(of_column, quantile, self.neighbours), entropy)]
                for quantile in self.quantiles
            ]
            positions.append(tuple(sorted(chosen)))
        return tuple(positions)


def places(candidates: Sequence[float], values: NDArray[Any]) -> NDArray[np.int64]:
    """How many values lie at each place among the candidates c_0 < ... < c_(m-1), as counts (2 m + 1,).

    Place 2 j + 1 is the candidate c_j itself, and place 2 j lies below it, above c_(j-1). NaN is a missing value, which
    counts nowhere.
    """
    grid, present = np.asarray(candidates), values[~np.isnan(values)].astype(np.float64)
    positions = np.searchsorted(grid, present, side="left") + np.searchsorted(grid, present, side="right")
    return np.bincount(positions, minlength=2 * grid.size + 1).astype(np.int64)


def mistakes(counts: NDArray[np.int64], quantile: Fraction, neighbours: Neighbours) -> list[Fraction]:
    """How far each candidate is from being the quantile, in a unit of which one row changes it by at most 1."""
    below, up_to = np.cumsum(counts)[0:-1:2].tolist(), np.cumsum(counts)[1::2].tolist()
    total, wanted, whole = int(counts.sum()), quantile.numerator, quantile.denominator
    # Theorem 1: a replaced row changes the distance by at most 1, and one that is added or removed by max(q, 1 - q).
    unit = 1 if neighbours is Neighbours.REPLACE_ONE else max(quantile, 1 - quantile)
    return [
        Fraction(max(0, whole * less - wanted * total, wanted * total - whole * most), whole) / unit
        for less, most in zip(below, up_to, strict=True)
    ]


def rows_off(plan: QuantilesPlan, level: float) -> float:
    """With this probability no chosen candidate is further from its quantile than the best one by more rows than this."""
    # Theorem 3, with a union over all choices.
    choices = len(plan.candidates) * len(plan.quantiles)
    most = max(map(len, plan.candidates))
    replace = plan.neighbours is Neighbours.REPLACE_ONE
    unit = 1.0 if replace else float(max(max(q, 1 - q) for q in plan.quantiles))
    return 2.0 * unit / plan.selection.epsilon * math.log(choices * most / (1.0 - level))


def _equal_part(budget: Budget, n: int) -> Budget:
    """One of n equal parts of a budget, rounded downwards."""
    try:
        return (ZCDP if budget.is_concentrated else PureDP)(budget.amount / n * _DOWN)
    except ParameterError:
        raise ParameterError(f"this budget is too small to be shared by {n} quantiles.") from None
