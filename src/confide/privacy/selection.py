"""A private choice among candidates by their numbers of mistakes, and the best of a random number of private tries.

Every law is sampled exactly, from fair bits and rational numbers. Proof: proofs/selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import ParameterError
from confide.privacy.budgets import (
    Budget,
    Neighbours,
    budget_of_row,
    concentrated_epsilon,
    concentrated_limit,
    pure_within,
)
from confide.privacy.events import Event, PureMechanism
from confide.privacy.lattice import bernoulli_exp
from confide.privacy.mechanism import ANOTHERS
from confide.privacy.noise import Entropy, drawn_by

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

    def choose(self, mistakes: Sequence[int | Fraction], entropy: Entropy) -> int:
        """The position of the chosen candidate, by numbers of mistakes, or sums of errors from 0 to 1."""
        left, least = list(range(len(mistakes))), min(mistakes)
        rate = Fraction(self.epsilon) / 2
        while True:
            # Under the exponential law a refused candidate may come up again; under permute-and-flip it does not.
            position = entropy.below(len(left))
            candidate = left[position] if self.law == "exponential" else left.pop(position)
            if bernoulli_exp(rate * (mistakes[candidate] - least), entropy):
                return candidate

    def choose_together(
        self, mistakes: Sequence[NDArray[np.int64]], weights: Sequence[NDArray[np.int64]], entropy: Entropy
    ) -> list[int]:
        """A position in each of several lists of candidates, all by one exponential choice.

        The probability of the positions is proportional to the product of their weights times exp(-epsilon M / 2), where M
        is the largest of their numbers of mistakes, capped at a public number: proofs/quantiles.md, theorem 2.

        Parameters
        ----------
        mistakes : for each list the numbers of mistakes of its candidates, of which one row changes each by at most 1
        weights : for each list the weights of its candidates, whole numbers of at least 1; public
        """
        # Beyond the cap all positions together have a probability below exp(-60). Where one mistake takes more than that, a
        # smaller epsilon does as well.
        enough = math.ceil(60.0 + sum(math.log(float(sum(of_list))) for of_list in weights))
        rate = min(Fraction(self.epsilon) / 2, Fraction(enough))
        cap = math.ceil(enough / rate)
        capped = [np.minimum(of_list, cap) for of_list in mistakes]
        least = max(int(of_list.min()) for of_list in capped)
        levels = np.unique(np.concatenate(capped))
        levels = levels[levels >= least]
        # The product, over the lists, of the weight of candidates with no more mistakes than each level.
        reached = np.ones(levels.size, dtype=object)
        for of_list, own in zip(capped, weights, strict=True):
            order = np.argsort(of_list, kind="stable")
            sums = np.cumsum(own[order])
            reached *= sums[np.searchsorted(of_list[order], levels, side="right") - 1].astype(object)
        odds = _exponentials(rate, (levels - least).tolist())
        # A vector of positions is taken at every level from its own on, so what falls from level to level adds up.
        falls = np.array(odds, dtype=object) - np.array([*odds[1:], 0], dtype=object)
        level = levels[drawn_by(entropy, (reached * falls).tolist())]
        pairs = zip(capped, weights, strict=True)
        return [drawn_by(entropy, np.where(of_list <= level, own, 0).tolist()) for of_list, own in pairs]


def _exponentials(rate: Fraction, levels: list[int]) -> list[int]:
    """exp(-rate level), times one power of two, as whole numbers with relative errors below 2^-128; levels rise from 0."""
    bits = math.ceil(float(rate) * levels[-1] * 1.4427) + 160
    # 100 digits of each power, and of its exponent after the point, are enough; only the unit needs more.
    few = Context(prec=100 + len(str(bits)), Emin=MIN_EMIN, Emax=MAX_EMAX)
    one = few.divide(Decimal(-rate.numerator), Decimal(rate.denominator))
    powers = [few.exp(few.multiply(one, Decimal(level))) for level in levels]
    with localcontext(Context(prec=math.ceil(0.302 * bits) + 20, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        unit = Decimal(2) ** bits
        return [int(unit * power) for power in powers]


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


_ROWS_OF_A_LIST = 8.0
"""Over epsilon: rows that each list must have beyond its outermost quantile, so that all are chosen together."""

# Quantiles of columns, chosen privately from public lists of candidates. Proof: proofs/quantiles.md.
#
# A candidate is worse the further, in rows, it is from being the quantile. Those distances are made of counts of rows, so
# they are exact and depend on no order of the rows.


@dataclass(frozen=True, slots=True)
class QuantilesPlan:
    """Everything decided before any row is read. Public.

    Attributes
    ----------
    candidates : tuple of tuples of float
        For each column the numbers of which one is chosen, in rising order.
    weights : tuple of tuples of int
        For each column how many times each candidate counts.
    quantiles : tuple of Fraction
        Between 0 and 1, in rising order; the same for all columns.
    selection : Selection
        How all quantiles are chosen together, or each of them by itself.
    together : bool
        Whether one choice finds all of them.
    budget : Budget
        What all choices cost together; charged once, before a row is used.
    neighbours : Neighbours
    event : Event
        What a ledger counts.
    """

    candidates: tuple[tuple[float, ...], ...]
    weights: tuple[tuple[int, ...], ...]
    quantiles: tuple[Fraction, ...]
    selection: Selection
    together: bool
    budget: Budget
    neighbours: Neighbours
    event: Event

    @classmethod
    def of(
        cls,
        candidates: Sequence[Sequence[float]],
        weights: Sequence[Sequence[int]],
        quantiles: Sequence[Fraction],
        budget: Budget,
        neighbours: Neighbours,
        rows_per_person: int = 1,
        n_rows: float = math.inf,
    ) -> Self:
        """The plan with the smaller expected error. No data is used: `n_rows` is infinite unless it is public."""
        if not budget.is_private:
            raise ParameterError("budget must be finite: quantiles are released with privacy alone.")
        grids, counts, shares = tuple(map(tuple, candidates)), tuple(map(tuple, weights)), tuple(map(Fraction, quantiles))
        if not grids or not shares or any(len(grid) < 2 or not (np.diff(grid) > 0.0).all() for grid in grids):
            raise ParameterError("quantiles need a column, and two or more candidates in rising order.")
        if list(map(len, counts)) != list(map(len, grids)) or min(map(min, counts)) < 1:
            raise ParameterError("each candidate of a quantile needs a weight of at least 1.")
        if list(shares) != sorted(set(shares)) or not 0 < shares[0] <= shares[-1] < 1:
            raise ParameterError("quantiles must lie strictly between 0 and 1, in rising order.")
        # Theorem 3: k choices cost k times epsilon, or k epsilon^2 / 8 of concentrated privacy.
        row, k = budget_of_row(budget, rows_per_person), len(grids) * len(shares)
        whole = 0.0 if row.is_concentrated else row.amount * _DOWNWARDS
        limit = row.amount if row.is_concentrated else 0.0 if row.is_pure else concentrated_limit(row.amount, row.slack)[0]
        part = max(whole / k, math.sqrt(8.0 * limit / k) * _DOWNWARDS)
        # Where candidates are many, an error is 2 / part on average, or (k + 1) / whole. Beyond the outermost quantile lie
        # so few rows that one choice of very many lists may lose all of them (benchmarks/quantiles.py).
        outside = min(min(q, 1 - q) for q in shares)
        together = (k + 1) * part <= 2.0 * whole and _ROWS_OF_A_LIST * k <= whole * float(outside) * n_rows
        # A choice at a part of epsilon uses no delta.
        is_pure = budget.is_approximate and rows_per_person == 1 and (together or part == whole / k)
        event = Event(budget, PureMechanism(row.amount) if is_pure else None, rows_per_person, neighbours)
        selection = Selection("exponential", whole if together else part)
        return cls(grids, counts, shares, selection, together, budget, neighbours, event)

    def release(self, counts: Sequence[NDArray[np.int64]], entropy: Entropy) -> tuple[tuple[float, ...], ...]:
        """The chosen quantiles of each column, in rising order. The event was charged before this call.

        Parameters
        ----------
        counts : for each column the numbers of its cells by `places`, (m,) for m candidates; missing cells nowhere
        entropy : where random bits come from
        """
        if type(self) is not QuantilesPlan:
            raise ParameterError(ANOTHERS)
        columns = list(zip(counts, self.weights, strict=True))
        scores = [mistakes(of_column, q, self.neighbours) for of_column, _ in columns for q in self.quantiles]
        weights = [np.array(own) for _, own in columns for _ in self.quantiles]
        size = len(scores) if self.together else 1
        choose, parts = self.selection.choose_together, [slice(at, at + size) for at in range(0, len(scores), size)]
        chosen = [position for part in parts for position in choose(scores[part], weights[part], entropy)]
        of_columns = zip(*[iter(chosen)] * len(self.quantiles), strict=True)
        return tuple(tuple(grid[i] for i in sorted(own)) for grid, own in zip(self.candidates, of_columns, strict=True))


def places(candidates: Sequence[float], values: NDArray[Any]) -> NDArray[np.int64]:
    """How many values lie from each candidate on, below the next one, as counts (m,).

    What lies below the first candidate counts as the first. NaN is a missing value, which counts nowhere.
    """
    grid, present = np.asarray(candidates), values[~np.isnan(values)].astype(np.float64)
    positions = np.maximum(np.searchsorted(grid, present, side="right") - 1, 0)
    return np.bincount(positions, minlength=grid.size).astype(np.int64)


def mistakes(counts: NDArray[np.int64], quantile: Fraction, neighbours: Neighbours) -> NDArray[np.int64]:
    """How far each candidate is from being the quantile, in a unit of which one row changes it by at most 1.

    A candidate stands for all numbers from it on, below the next one. Distances are rounded up to whole units.
    """
    up_to = np.cumsum(counts)
    total, wanted, whole = int(counts.sum()), quantile.numerator, quantile.denominator
    # Theorem 1: a replaced row changes the distance by at most 1, and one that is added or removed by max(q, 1 - q).
    unit = whole if neighbours is Neighbours.REPLACE_ONE else max(wanted, whole - wanted)
    pairs = zip(counts.tolist(), up_to.tolist(), strict=True)
    distances = [max(0, whole * (most - own) - wanted * total, wanted * total - whole * most) for own, most in pairs]
    return np.array([-(-distance // unit) for distance in distances], dtype=np.int64)


def rows_off(plan: QuantilesPlan, level: float) -> float:
    """With this probability no chosen candidate is further from its quantile, by rank, than so many rows."""
    # Theorem 4, with a union over the choices.
    sums = [math.log(float(sum(of_column))) for of_column in plan.weights for _ in plan.quantiles]
    choices, doubt = (1, sum(sums)) if plan.together else (len(sums), max(sums))
    replace = plan.neighbours is Neighbours.REPLACE_ONE
    unit = 1.0 if replace else float(max(max(q, 1 - q) for q in plan.quantiles))
    return unit * 2.0 / plan.selection.epsilon * (doubt + math.log(choices / (1.0 - level)))
