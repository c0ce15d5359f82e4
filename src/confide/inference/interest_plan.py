"""The plan of a release for coefficients of interest, and a forecast of their intervals, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from confide.array_types import Array, Weights
from confide.blocks import as_json
from confide.erm.source import RowSource
from confide.errors import ParameterError, wording
from confide.inference.debiased import (
    LARGE,
    LEAST_OPEN,
    OF_OTHERS,
    Combination,
    Facts,
    InterestEvidence,
    RisksEvidence,
    deviations_of_clip,
    directions_of,
    in_frame,
    near_minimiser,
    part_of_step,
    points_of_risks,
)
from confide.inference.forecast import sentence_beside
from confide.inference.sampling_design import SamplingDesign
from confide.privacy.budgets import Budget
from confide.privacy.curvature import Curvature, deviations_of_curvature
from confide.privacy.direction_sums import DirectionSums
from confide.privacy.mechanism import Plan
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.spreads import Spreads
from confide.privacy.standardised_sums import LARGEST_STEP, RiskSums, largest_difference

LARGEST_HIDDEN = 0.07
"""Largest noise in the curvature, as a matrix, over what typical rows add to it in each direction, at which there is a plan.
At this limit at most 5% of the intervals for columns of real tables rested on a supposition
(benchmarks/notes/intervals_of_one_coefficient.md)."""
_LARGEST_HIDDEN_OF_ARRAYS = 0.12
"""The same for columns of arrays, whose rows have a bound on their norm. Up to .15 no interval for such columns rested on a
supposition, and at .16 15% of those for correlated columns did (benchmarks/notes/intervals_of_one_coefficient.md)."""
_OF_HIDDEN_COLUMNS = 3.0
"""Errors of the weights are this many times those of a typical column: some columns vary so little that the noise hides most
of it (benchmarks/interest_of_tables.py)."""
_OF_CORRELATED_COLUMNS = 2.0
"""Weights before the last step have this many times the noise of those of columns that do not depend on each other."""
_OF_SCORES = 0.75
"""The mean curvature of rows of a logistic loss, over that of rows with the mean probability
(benchmarks/notes/intervals_of_one_coefficient.md)."""
_RATES = (0.5, 0.1)
"""The shares of rows with the rarer outcome for which a plan says how wide intervals will be."""
POWER = 0.8
"""The power at which a plan says which effect is found."""


def facts_of(training: Plan, curvature: SumPlan[Curvature], sums: SumPlan[DirectionSums], design: SamplingDesign) -> Facts:
    """The public facts of a fit and of the sums that are released beside it, the last curvature among them."""
    problem, loss = training.problem, training.problem.loss_bounds
    of_curvature, of_slopes = deviations_of_curvature(curvature)
    units = sums.query.units * sums.deviation
    return Facts(
        n_features=problem.n_features,
        intercept=problem.intercept,
        row_norm=problem.row_bound.l2_norm if math.isfinite(problem.row_bound.l2_norm) else 0.0,
        largest_slope=loss.lipschitz,
        largest_curvature=loss.smoothness,
        n_rows=problem.n_rows_low,
        curvature_deviation=of_curvature,
        slope_deviation=of_slopes,
        sums_deviations=(float(units[0]), float(units[1]), float(units[2])),
        is_laplace=sums.law == "laplace",
        design=design,
    )


@dataclass(frozen=True, slots=True)
class InterestPlan:
    """What is released besides the weights for coefficients of interest, and what to expect. Public; made before any row.

    Attributes
    ----------
    budget : Budget
        Budget of the whole release, which a ledger is charged.
    shares : tuple of float
        Shares of the spreads, of both curvatures, of the sums along directions and, if they are released, of those for
        differences of risks. If all releases share one account, they are shares of the squared ratio of a row's largest
        effect to the noise, which is what adds up there.
    spreads : SumPlan
    curvatures : (SumPlan, SumPlan)
    sums : SumPlan
    combinations : tuple of Combination
    facts : Facts
    usual_norm : float
        L2 norm of a typical row without its constant.
    curvature_share : float
        The mean curvature of rows, over the largest, that forecasts suppose. Half is that of a logistic loss where about one
        row in five has the rarer outcome.
    risks : SumPlan or None
        How the sums for differences of risks are released; None without them.
    """

    budget: Budget
    shares: tuple[float, ...]
    spreads: SumPlan[Spreads]
    curvatures: tuple[SumPlan[Curvature], SumPlan[Curvature]]
    sums: SumPlan[DirectionSums]
    combinations: tuple[Combination, ...]
    facts: Facts
    usual_norm: float
    risks: SumPlan[RiskSums] | None = None
    curvature_share: float = 0.5

    @property
    def releases(self) -> tuple[SumPlan[Any], ...]:
        """All that is released besides the weights, in order."""
        return (self.spreads, *self.curvatures, self.sums, *(() if self.risks is None else (self.risks,)))

    def released(self, _: Plan, minimiser: Weights, source: RowSource, entropy: Entropy) -> tuple[None, InterestEvidence]:
        """Release the frame of the rows, and curvature and slopes in it: at released weights (1, D), and where they lead to.

        The sums along the directions that follow come next. Sums for differences of risks come last, at points that follow
        from all of this.
        """
        facts, combinations = self.facts, self.combinations
        frame = self.spreads.release(source, entropy)
        start = in_frame(frame, minimiser[0])
        first, second = self.curvatures
        released_sums: tuple[Array, Array] = first.release(source, entropy, frame, minimiser)
        start = near_minimiser(facts, start, *released_sums, deviations_of_curvature(first)).weights
        matrix = frame.matrix
        curvature, slopes = second.release(source, entropy, frame, start[None] @ matrix)
        near = near_minimiser(facts, start, curvature, slopes)
        along = directions_of(facts, combinations, frame, near, curvature) @ matrix
        sums = self.sums.release(source, entropy, near.weights[None] @ matrix, along)
        evidence = InterestEvidence(facts, combinations, minimiser[0], frame, start, curvature, slopes, sums)
        if self.risks is None:
            return None, evidence
        points, steps = points_of_risks(evidence)
        standardised = self.risks.release(source, entropy, points, steps)
        return None, replace(evidence, risks=RisksEvidence.of(self.risks, steps, standardised))

    @property
    def design(self) -> SamplingDesign:
        """What is declared about the sample."""
        return self.facts.design

    def sentence(self, *, is_private: bool) -> str:
        """What is released, for the guarantee."""
        columns = dict.fromkeys(f'"{name}"' for combination in self.combinations for name in combination.columns)
        what = wording("sums for interest", columns=" and ".join(columns)) + (
            "" if self.risks is None else ", and sums of probabilities of the rows with and without each change"
        )
        return sentence_beside(what, self.share, is_private=is_private)

    def multiples(self) -> tuple[str, str]:
        """What it is called, and what of it is a multiple of which power of two, for the guarantee."""
        grids = " and ".join(f"of 2^{release.lattice.exponent}" for release in self.releases if release.lattice is not None)
        known = "known" if self.risks is not None else "public"
        return "sums", f"{known} factors, {grids}, or follow from such numbers alone,"

    @property
    def share(self) -> float:
        """What all that is released beside the weights costs together, as a share."""
        return sum(self.shares)

    @property
    def is_joint(self) -> bool:
        """Whether all releases share one account. Otherwise each has a part of the budget."""
        return self.budget.is_approximate and self.sums.budget.is_concentrated

    @property
    def _curvature(self) -> float:
        """The sum of the curvatures of rows that forecasts suppose."""
        return 2.0 * self.curvature_share * self.facts.usual_curvature

    def at_rate(self, rate: float) -> InterestPlan:
        """The same plan for a logistic loss and rows of which this share has the rarer outcome: other forecasts."""
        return replace(self, curvature_share=_OF_SCORES * 4.0 * rate * (1.0 - rate))

    @property
    def widths_by_rate(self) -> dict[float, float]:
        """How wide intervals will be at shares of the rarer outcome, beside what is said; empty for other losses."""
        loss = self.sums.problem.loss_bounds
        if not (loss.tapered and loss.self_concordant):
            return {}
        return {rate: self.at_rate(rate).error / self.error for rate in _RATES}

    @property
    def first_order(self) -> float:
        """Standard deviation of the error of first order, for one standard deviation of a column."""
        return self._first(deviations_of_clip(self.facts, self._curvature))

    def _first(self, clip: float) -> float:
        """The same where so many deviations are clipped."""
        facts, curvature = self.facts, self._curvature
        return math.hypot(math.sqrt(curvature * facts.usual_steepness), clip * facts.sums_deviations[0]) / curvature

    @property
    def hidden(self) -> float:
        """The size of the noise in the curvature, as a matrix, over what typical rows add to it in every direction."""
        width = self.facts.n_features + (self.facts.intercept > 0.0)
        return self.facts.curvature_deviation * math.sqrt(width) / self._curvature

    @property
    def second_order(self) -> float:
        """Standard deviation of the error of second order, for one standard deviation of a column."""
        facts, curvature = self.facts, self._curvature
        # The error of a typical weight in the frame, before the last step.
        error = math.hypot(math.sqrt(curvature * facts.usual_steepness), facts.slope_deviation) / curvature
        return _OF_HIDDEN_COLUMNS * self.hidden * error

    @property
    def error(self) -> float:
        """Expected standard error of a coefficient, for one standard deviation of its column."""
        return self._combined(self.first_order)

    def _combined(self, first_order: float) -> float:
        """The standard error of what part of the last step leads to, for an error of first order after the whole step."""
        facts, curvature = self.facts, self._curvature
        sampling = math.sqrt(facts.usual_steepness / curvature)
        of_step = math.hypot(math.sqrt(max(first_order**2 - sampling**2, 0.0)), self.second_order)
        of_near = math.hypot(_OF_CORRELATED_COLUMNS * facts.slope_deviation / curvature, self.second_order)
        part = part_of_step(of_step, of_near)
        return math.hypot(sampling, part * of_step, (1.0 - part) * of_near)

    def spread_of(self, combination: Combination) -> float:
        """The standard deviation that is supposed of a column, in the units in which its coefficient is given."""
        if combination.usual_spread:
            return math.sqrt(combination.usual_spread)
        return self.usual_norm / math.sqrt(self.facts.n_features) / combination.size

    def error_of(self, combination: Combination) -> float:
        """Expected standard error of a combination, if its column has the usual spread."""
        spread = self.spread_of(combination)
        if not combination.has_levels:
            return self.error / spread
        # The rows of both levels lie half a unit from the middle, and other columns move rows as far as a usual one.
        return self._combined(self._first(combination.usual_clip / spread + OF_OTHERS)) / spread

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
        return math.hypot(*(self.error_of_risk(one) * self.error / self.error_of(one) for one in self.combinations))

    def margin_of_risk(self, combination: Combination, level: float = 0.95) -> float:
        """Expected half width of the interval of a difference of risks."""
        return float(ndtri(0.5 + 0.5 * level)) * self.error_of_risk(combination)

    def margin(self, combination: Combination, level: float = 0.95) -> float:
        """Expected half width of the interval of a combination."""
        return float(ndtri(0.5 + 0.5 * level)) * self.error_of(combination)

    def smallest_effect(self, combination: Combination, size: float = 0.05, power: float = POWER) -> float:
        """The effect that a test of this size finds with this power: the null hypothesis is that there is none."""
        return float(ndtri(1.0 - 0.5 * size) + ndtri(power)) * self.error_of(combination)

    @property
    def is_trustworthy(self) -> bool:
        """Whether the noise leaves enough of the curvature for the last step to be taken, as a rule."""
        return not self.budget.is_private or self.hidden <= self.largest_hidden

    @property
    def largest_hidden(self) -> float:
        """The largest noise in the curvature at which there is a plan for these columns."""
        are_known = any(combination.usual_spread for combination in self.combinations)
        return LARGEST_HIDDEN if are_known else _LARGEST_HIDDEN_OF_ARRAYS

    def check(self) -> None:
        """Raise ParameterError if intervals cannot be trusted."""
        if not self.is_trustworthy:
            raise self.refusal("")

    def refusal(self, instead: str) -> ParameterError:
        """What to say where it does not, with what would do instead."""
        hidden = np.ceil(1e3 * self.hidden) / 1e3
        return ParameterError(wording("intervals for interest not trustworthy", plan=self, hidden=hidden, instead=instead))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            **as_json(self, "budget shares is_joint"),
            **as_json(self.facts, "curvature_deviation sums_deviations"),
            **({} if self.risks is None else {"risks_deviation": self.risks.deviation}),
            "slope_deviation": self.facts.slope_deviation,
            **as_json(self, "hidden first_order second_order"),
            "widths_by_rate": {f"{rate:g}": width for rate, width in self.widths_by_rate.items()},
            "interest": [
                {
                    "name": combination.name,
                    "unit": combination.unit,
                    "expected_margin": self.margin(combination),
                    "supposed_standard_deviation": self.spread_of(combination),
                    "smallest_effect": self.smallest_effect(combination),
                    "power": POWER,
                }
                | ({} if self.risks is None else {"expected_margin_of_risk_difference": self.margin_of_risk(combination)})
                for combination in self.combinations
            ],
            **self.facts.design.described(),
        }

    def lines(self) -> dict[str, str]:
        """Lines of the plan for people: text by name."""
        document = {
            "interest": f"{self.share:.3g} of the whole budget, {self.budget}"
            + (", in one account with the weights" if self.is_joint else "")
            + f"; errors of second order {self.second_order / self.first_order:.2g} times those of first order",
        }
        document |= {f"interval {place + 1}": sentence for place, sentence in enumerate(self.sentences())}
        if self.widths_by_rate:
            of_half, of_tenth = self.widths_by_rate.values()
            document["widths"] = wording("widths of intervals", of_half=of_half, of_tenth=of_tenth)
            document["unknown"] = wording("infinite intervals", open=LEAST_OPEN, large=LARGE)
        return document | self.facts.design.lines()

    def sentences(self) -> tuple[str, ...]:
        """What to expect of each coefficient, in words."""
        sentences = []
        for one in self.combinations:
            name = f"{one.name} ({one.unit})" if one.unit else one.name
            margin, spread = self.margin(one), self.spread_of(one)
            # What the forecast supposes of the column, and what follows for other columns.
            supposed = wording("supposed deviation", spread=spread, reached=margin * spread)
            if one.has_levels:
                supposed = wording("supposed levels", reached=margin * spread)
            of_risk = "" if self.risks is None else f" Its difference of risks: about +- {self.margin_of_risk(one):.3g}."
            found = f"{self.smallest_effect(one):.3g} with probability {POWER:.0%}.{of_risk}"
            sentences.append(wording("forecast of interest", name=name, margin=margin, supposed=supposed, found=found))
        return tuple(sentences)
