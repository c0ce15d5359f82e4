"""A private choice among candidates by their numbers of mistakes, and the best of a random number of private tries.

Every law is sampled exactly, from fair bits and rational numbers. Proof: proofs/selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, Budget, pure_within
from confide.privacy.conversions import concentrated_epsilon
from confide.privacy.discrete import bernoulli_exp
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
        if not isinstance(budget, ZCDP):
            return cls("permute-and-flip" if law == "auto" else law, budget.epsilon)
        # proofs/selection.md, theorem 4: a bounded range of epsilon is epsilon^2 / 8-concentrated. Pure privacy alone is
        # epsilon tanh(epsilon / 2)-concentrated.
        exponential, flip = math.sqrt(8.0 * budget.rho) * _DOWNWARDS, pure_within(budget.rho)
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
