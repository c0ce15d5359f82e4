"""The plan of a release for coefficients of interest, and a forecast of their intervals, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from confide.errors import ParameterError
from confide.inference.interest import Combination, Facts, deviations_of_clip, part_of_step
from confide.inference.noise_of_entries import deviations_of_entries
from confide.inference.sampling_design import INDEPENDENT, SamplingDesign
from confide.privacy.budgets import ZCDP, ApproxDP, Budget
from confide.privacy.curvature import CurvaturePlan
from confide.privacy.direction_sums import DirectionSumsPlan
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.mechanism import Plan
from confide.privacy.standardised_sums import LARGEST_STEP, StandardisedSumsPlan, largest_difference

LARGEST_SCORE_ERROR = 0.5
"""Largest mean squared error of scores by the released weights at which there is a plan. One step of Newton's method takes
back what is linear in this error, and what is left grows with its square (benchmarks/interest.py)."""
LARGEST_SECOND_ORDER = 1.0
"""Largest error of second order, in errors of first order, at which there is a plan (benchmarks/interest.py)."""
POWER = 0.8
"""The power at which a plan says which effect is found."""


@dataclass(frozen=True, slots=True)
class InterestPlan:
    """What is released besides the weights for coefficients of interest, and what to expect. Public; made before any row.

    Attributes
    ----------
    budget : Budget
        Budget of the whole release, which a ledger is charged.
    shares : tuple of float
        Shares of the curvature, of the sums along directions and, if they are released, of those for differences of risks.
        If all releases share one account, they are shares of the squared ratio of a row's largest effect to the noise, which
        is what adds up there.
    curvature : CurvaturePlan
    sums : DirectionSumsPlan
    combinations : tuple of Combination
    facts : Facts
    risks : StandardisedSumsPlan or None
        How the sums for differences of risks are released; None without them.
    """

    budget: Budget
    shares: tuple[float, ...]
    curvature: CurvaturePlan
    sums: DirectionSumsPlan
    combinations: tuple[Combination, ...]
    facts: Facts
    risks: StandardisedSumsPlan | None = None

    @classmethod
    def of(
        cls,
        shares: tuple[float, ...],
        training: Plan,
        curvature: CurvaturePlan,
        sums: DirectionSumsPlan,
        combinations: tuple[Combination, ...],
        usual_norm: float,
        risks: StandardisedSumsPlan | None = None,
        design: SamplingDesign = INDEPENDENT,
    ) -> InterestPlan:
        """The plan and its facts. The event of `training` is that of the whole release."""
        problem, loss = training.problem, training.problem.loss_bounds
        noise: float | tuple[float, ...] = 0.0
        if training.noise is not None:
            law = training.noise
            noise = tuple(deviations_of_entries(law.shape, law.law, law.scale).tolist())
        units = sums.units * sums.deviation
        facts = Facts(
            n_features=problem.n_features,
            intercept=problem.intercept,
            constant=curvature.constant,
            l2=training.l2,
            largest_slope=loss.lipschitz,
            largest_curvature=loss.smoothness,
            n_rows=problem.n_rows_low,
            usual_norm=usual_norm,
            noise_in_objective=noise,
            curvature_deviation=curvature.entry_deviation,
            sums_deviations=(float(units[0]), float(units[1]), float(units[2])),
            is_laplace=isinstance(sums.lattice, LatticeLaplace),
            design=design,
        )
        return cls(training.event.budget, shares, curvature, sums, combinations, facts, risks)

    @property
    def share(self) -> float:
        """What all that is released beside the weights costs together, as a share."""
        return sum(self.shares)

    @property
    def is_joint(self) -> bool:
        """Whether all releases share one account. Otherwise each has a part of the budget."""
        return isinstance(self.budget, ApproxDP) and isinstance(self.sums.budget, ZCDP)

    @property
    def usual_curvature(self) -> float:
        """What typical rows add to the curvature in each direction, spread evenly over the columns: n (c / 2) |x|^2 / d."""
        return self.facts.usual_curvature * self.facts.usual_norm**2 / self.facts.n_features

    @property
    def _error_of_weights(self) -> float:
        """Standard deviation of the error of a typical weight without the ridge."""
        facts, curvature = self.facts, self.usual_curvature
        return math.sqrt(curvature * facts.usual_steepness + self._noise_on_columns**2) / curvature

    @property
    def _noise_on_columns(self) -> float:
        """Root mean square of the noise in the objective over the columns, without the constant of the intercept."""
        return math.sqrt(float(np.mean(self.facts.noise_on_weights[: self.facts.n_features] ** 2)))

    @property
    def score_error(self) -> float:
        """Mean squared error of the scores of typical rows by the released weights, without the ridge."""
        facts = self.facts
        of_columns = (self._error_of_weights * facts.usual_norm) ** 2
        of_constant = float(facts.noise_on_weights[-1]) / facts.usual_curvature
        return of_columns + (of_constant**2 / facts.intercept**2 if facts.intercept > 0.0 else 0.0)

    @property
    def first_order(self) -> float:
        """Standard deviation of the error of first order, for a coefficient of one column."""
        facts, curvature = self.facts, self.usual_curvature
        clip = deviations_of_clip(facts, facts.usual_curvature) * facts.usual_norm / math.sqrt(facts.n_features)
        return math.sqrt(curvature * facts.usual_steepness + (clip * facts.sums_deviations[0]) ** 2) / curvature

    @property
    def second_order(self) -> float:
        """Standard deviation of the error of second order, for a coefficient of one column."""
        facts = self.facts
        on_curvature = facts.curvature_deviation * math.sqrt(facts.n_features)
        return on_curvature * self._error_of_weights / self.usual_curvature

    @property
    def hidden(self) -> float:
        """The size of the noise in the curvature, as a matrix, over the curvature of typical rows in each direction."""
        return self.facts.curvature_deviation * math.sqrt(self.facts.n_features + 1) / self.usual_curvature

    @property
    def error(self) -> float:
        """Expected standard error of the coefficient of one column as it enters the fit."""
        return self._combined(self.first_order, self.second_order, self._error_of_weights, self.usual_curvature)

    def _combined(self, first: float, second: float, of_weight: float, curvature: float) -> float:
        """The standard error of the estimate that leaves least of the noise: `part_of_step`."""
        sampling = math.sqrt(self.facts.usual_steepness / curvature)
        of_step = math.sqrt(max(first**2 - sampling**2, 0.0) + second**2)
        of_near = math.sqrt(max(of_weight**2 - sampling**2, 0.0))
        part = part_of_step(of_step, of_near)
        return math.hypot(sampling, part * of_step, (1.0 - part) * of_near)

    def error_of(self, combination: Combination) -> float:
        """Expected standard error of a combination."""
        if not combination.usual_spread:
            return self.error * combination.size
        facts = self.facts
        curvature = facts.usual_curvature * combination.usual_spread
        of_slopes = math.sqrt(curvature * facts.usual_steepness)
        first = math.hypot(of_slopes, combination.usual_clip * facts.sums_deviations[0]) / curvature
        of_weight = math.hypot(of_slopes, self._noise_on_columns / combination.size) / curvature
        return self._combined(first, self.second_order * combination.size, of_weight, curvature)

    def error_of_risk(self, combination: Combination) -> float:
        """Expected standard error of the difference of risks of a combination, for the effect that its test finds."""
        assert self.risks is not None  # noqa: S101 - the caller asks
        effect, error = self.smallest_effect(combination), self.error_of(combination)
        # A probability follows its log-odds at the rate p (1 - p), which is at most the largest curvature of the loss.
        of_coefficient = self.facts.largest_curvature * error
        step = np.array([min(effect, LARGEST_STEP)])
        return math.hypot(of_coefficient, float(largest_difference(step)[0]) * self.risks.deviation / self.facts.n_rows)

    @property
    def error_of_risks(self) -> float:
        """The same for all combinations together, each in units of what it would be for one column of usual rows."""
        return math.hypot(*(self.error_of_risk(each) * self.error / self.error_of(each) for each in self.combinations))

    def margin_of_risk(self, combination: Combination, level: float = 0.95) -> float:
        """Expected half width of the interval of a difference of risks."""
        return float(ndtri(0.5 + 0.5 * level)) * self.error_of_risk(combination)

    def margin(self, combination: Combination, level: float = 0.95) -> float:
        """Expected half width of the interval of a combination."""
        return float(ndtri(0.5 + 0.5 * level)) * self.error_of(combination)

    def smallest_effect(self, combination: Combination, size: float = 0.05, power: float = POWER) -> float:
        """The effect that a test of this size finds with this power: the null hypothesis is that there is none."""
        return float(ndtri(1.0 - 0.5 * size) + ndtri(power)) * self.error_of(combination)

    def check(self) -> None:
        """Raise ParameterError if intervals cannot be trusted."""
        if not self.budget.is_private:
            return
        ratio = self.second_order / self.first_order
        if self.score_error <= LARGEST_SCORE_ERROR and ratio <= LARGEST_SECOND_ORDER:
            return
        raise ParameterError(
            f"intervals for interest would not be trustworthy: the weights near which they are made would be mostly noise. "
            f"The mean squared error of scores would be {self.score_error:.2g}, where {LARGEST_SCORE_ERROR:g} is allowed, "
            f"and errors of second order {ratio:.2g} times those of first order, where {LARGEST_SECOND_ORDER:g} is allowed. "
            f"Use more rows, a larger budget, fewer columns, or ApproxDP or ZCDP in place of PureDP."
            f"{self.facts.design.advice}"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "budget": self.budget.to_dict(),
            "shares": list(self.shares),
            "is_joint": self.is_joint,
            "curvature_deviation": self.facts.curvature_deviation,
            "sums_deviations": list(self.facts.sums_deviations),
            **({} if self.risks is None else {"risks_deviation": self.risks.deviation}),
            "score_error": self.score_error,
            "first_order": self.first_order,
            "second_order": self.second_order,
            "interest": [
                {
                    "name": each.name,
                    "unit": each.unit,
                    "expected_margin": self.margin(each),
                    "smallest_effect": self.smallest_effect(each),
                    "power": POWER,
                    **({} if self.risks is None else {"expected_margin_of_risk_difference": self.margin_of_risk(each)}),
                }
                for each in self.combinations
            ],
            **self.facts.design.described(),
        }

    def lines(self) -> dict[str, str]:
        """Lines of the plan for people: text by name."""
        found = {
            "interest": f"{self.share:.3g} of the whole budget, {self.budget}"
            + (", in one account with the weights" if self.is_joint else "")
            + f"; errors of second order {self.second_order / self.first_order:.2g} times those of first order",
        }
        found |= {f"interval {place + 1}": each for place, each in enumerate(self.sentences())}
        return found | self.facts.design.lines()

    def sentences(self) -> tuple[str, ...]:
        """What to expect of each coefficient, in words."""
        return tuple(
            f"{each.name}{f' ({each.unit})' if each.unit else ''}: about +- {self.margin(each):.3g} at 95%; a test of size "
            f"5% finds an effect of {self.smallest_effect(each):.3g} with probability {POWER:.0%}."
            + ("" if self.risks is None else f" Its difference of risks: about +- {self.margin_of_risk(each):.3g}.")
            for each in self.combinations
        )
