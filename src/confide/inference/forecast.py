"""Forecasts for intervals and noisy sums, from public facts only: whether to trust them, and how wide intervals will be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from confide.array_types import Weights
from confide.blocks import as_json
from confide.erm.source import RowSource
from confide.errors import ParameterError, wording
from confide.inference.intervals import Evidence
from confide.inference.rates import LEAST_SIGNAL
from confide.inference.sampling_design import INDEPENDENT, SamplingDesign
from confide.privacy.budgets import Budget, with_amount
from confide.privacy.mechanism import Plan
from confide.privacy.moments import Moments, width_of
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.privacy.tables import Counts

LARGEST_RATIO = 1.0
"""Largest ratio at which intervals are allowed (`IntervalsPlan.ratio`). There, 95% intervals contained the coefficients of
populations with dependent columns, columns of 0 and 1 or a rare class in 94% to 99% of samples
(benchmarks/interval_limits.py). It was confirmed on others (benchmarks/coverage.py)."""

LARGEST_RESIDUAL_RATIO = 0.5
"""The same limit for losses of a residual. It is lower because often far fewer than half of the rows have curvature, and
most have the largest possible slope (benchmarks/coverage.py)."""
LARGEST_COUNT_RATIO = 0.3
"""The same limit for counts. It is lower because their mean may be far below the guess `_USUAL_COUNT`
(benchmarks/prediction_intervals.py)."""
LARGEST_SUMS_RATIO = 1.5
"""The same limit for intervals from sums of least squares (benchmarks/coverage.py)."""

_USUAL_COUNT = 0.125
"""The mean of counts as a share of their bound: a public guess, on which only the forecast rests."""

POOR_FIT_RATIO = 0.5
"""Ratio above which a plan of `Ridge` warns of a poor fit. Of the cells above it, three quarters lost .03 of R^2 or more; of
those above three times this ratio, .05 or more. Of the cells below it, half lost less than .05. Chosen on made-up designs
and Diamonds, confirmed on other data (benchmarks/noisy_sums.py)."""


def sentence_beside(what: str, share: float, *, is_private: bool) -> str:
    """What is released for intervals besides the weights, and at which share of the budget, for the guarantee."""
    cost = f"; they cost {share:.3g} of the budget, which covers both." if is_private else "."
    return f"Besides the weights, {what} are released with noise, for intervals{cost}"


@dataclass(frozen=True, slots=True)
class IntervalsPlan:
    """The plan of the moments for intervals, and a forecast of the intervals. Public; made before any row is read.

    Attributes
    ----------
    budget : Budget
        Budget of the whole release, which a ledger is charged.
    share : float
        Share of the budget that the moments cost; if weights and moments share one account (`is_joint`), share of the
        squared ratio of a row's largest effect to the noise, which is what adds up there.
    moments : SumPlan[Moments]
    usual_row_norm : float
        L2 norm of a typical row without its intercept, guessed from its bound.
    ridge : float
        The ridge of the sum form, which is known exactly and adds to the curvature of the rows.
    uncertain_share : float
        Expected share of the variance of a weight that passes through the noisy curvature: 1 for noise in the objective.
        Noise on the weights does not pass through it, so that only the share of the sampling error is left.
    margin : float
        Expected half width of a 95% interval for a typical coefficient.
    design : SamplingDesign
        What is declared about the sample.
    """

    budget: Budget
    share: float
    moments: SumPlan[Moments]
    usual_row_norm: float
    ridge: float
    uncertain_share: float
    margin: float
    design: SamplingDesign = INDEPENDENT

    @classmethod
    def of(
        cls, share: float, training: Plan, moments: SumPlan[Moments], usual_row_norm: float, design: SamplingDesign
    ) -> IntervalsPlan:
        """The plan and its forecast. The event of `training` is that of both releases."""
        problem = training.problem
        usual = _usual_curvature(moments, usual_row_norm, design)
        # The slope of a count has about its mean as variance, and so its curvature has; half of the rows are at the limit.
        is_count = problem.loss.constants.is_count
        steepness = usual * (1.0 if is_count else moments.query.unit_of_slope / 2.0 / problem.loss_bounds.smoothness)
        spread = _deviation(moments) * math.sqrt(width_of(problem))
        curvature = usual + training.l2
        # Noise in the objective is damped by the curvature of the rows too, beside the ridge.
        is_damped = training.noise is not None and training.noise.in_objective
        damping = training.l2 / curvature if is_damped else 1.0
        privacy = damping * training.noise_norm / math.sqrt(problem.n_weights)
        # The curvature is that of the mean weight, and the square of a slope that of the largest weight.
        sampling = math.sqrt(steepness * design.variance_factor * design.usual_squares) / curvature
        error = math.hypot(sampling, privacy)
        uncertain = 1.0 if is_damped else (sampling / error) ** 2
        margin = 1.96 * error * math.hypot(1.0, spread / curvature)
        return cls(training.event.budget, share, moments, usual_row_norm, training.l2, uncertain, margin, design)

    def released(self, ready: Plan, minimiser: Weights, source: RowSource, entropy: Entropy) -> tuple[Evidence, None]:
        """Release the moments at released weights (1, D) of a plan that is ready."""
        return Evidence.of(ready, minimiser[0], self.moments, self.moments.release(source, entropy, minimiser)), None

    @property
    def releases(self) -> tuple[SumPlan[Moments], ...]:
        """All that is released besides the weights."""
        return (self.moments,)

    def sentence(self, *, is_private: bool) -> str:
        """What is released, for the guarantee."""
        what = "the second moments of the rows' slopes and curvatures at these weights"
        return sentence_beside(what, self.share, is_private=is_private)

    def multiples(self) -> tuple[str, str]:
        """What it is called, and what of it is a multiple of which power of two, for the guarantee."""
        assert self.moments.lattice is not None  # noqa: S101 - a guarantee is given where there is noise
        return "moments", f"public factors, of 2^{self.moments.lattice.exponent}"

    @property
    def is_joint(self) -> bool:
        """Whether weights and moments share one account. Otherwise each has a part of the budget."""
        return self.budget.is_approximate and self.moments.budget.is_concentrated

    @property
    def curvature_noise(self) -> float:
        """Largest eigenvalue of the noise on the moments of the curvature: 2 s sqrt(D), s its standard deviation.

        For softmax, D counts only the directions that do not change all classes by the same amount.
        """
        return 2.0 * _deviation(self.moments) * math.sqrt(width_of(self.moments.query.problem))

    @property
    def usual_curvature(self) -> float:
        """Eigenvalue of these moments without noise for typical rows: n (c / 2) |x|^2 / d, spread evenly over d columns.

        For o classes, c is the curvature of the loss at scores of 0. For softmax it is 1 / o. For one class against the rest
        it is the largest curvature times 4 (o - 1) / o^2, because the scores of one class among many are far from 0. Rows
        with weights count with the mean weight.
        """
        return _usual_curvature(self.moments, self.usual_row_norm, self.design)

    @property
    def ratio(self) -> float:
        """How uncertain the size of intervals is: what the noise on the curvature changes of the variance of a weight.

        It is the noise on the curvature, divided by what typical rows and the ridge add to it, times the share of the
        variance that passes through the curvature.
        """
        return self.uncertain_share * self.curvature_noise / (self.usual_curvature + self.ridge)

    @property
    def largest_ratio(self) -> float:
        """Largest ratio at which intervals can be trusted."""
        loss = self.moments.query.problem.loss.constants
        return LARGEST_RATIO if loss.monotone else LARGEST_COUNT_RATIO if loss.is_count else LARGEST_RESIDUAL_RATIO

    @property
    def is_valid(self) -> bool:
        """Whether the noise leaves enough of the curvature for intervals to be trusted."""
        return self.ratio <= self.largest_ratio

    def check(self) -> None:
        """Raise ParameterError if intervals cannot be trusted."""
        if not self.is_valid:
            raise ParameterError(wording("intervals not trustworthy", plan=self, ratio=self._shown_ratio))

    @property
    def _shown_ratio(self) -> str:
        own = f"{self.uncertain_share:.0%} of the variance of a weight depends on this curvature"
        return f"{own}, which makes a ratio of {self.ratio:.2g}, where {self.largest_ratio:g} is allowed"

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        query, deviation = self.moments.query, _deviation(self.moments)
        document = as_json(
            self,
            "budget share is_joint moments_budget curvature_deviation slope_deviation curvature_noise usual_curvature ridge "
            "uncertain_share ratio largest_ratio expected_margin",
            moments_budget=self.moments.budget.to_dict(),
            curvature_deviation=deviation,
            slope_deviation=deviation * query.unit_of_slope / query.unit_of_curvature,
            expected_margin=self.margin,
        )
        return document | self.design.described()

    def sentences(self) -> tuple[str, ...]:
        """What to expect of each named coefficient: there is none."""
        return ()

    def lines(self) -> dict[str, str]:
        """Lines of the plan for people: text by name."""
        return {
            "intervals": f"{self.share:.3g} of the whole budget, {self.budget}"
            + (", in one account with the weights" if self.is_joint else ""),
            "moments": wording("noise on the curvature", forecast=self, ratio=self._shown_ratio),
            "expected interval": f"about +- {self.margin:.3g} for a typical coefficient, at 95%",
            **self.design.lines(),
        }


@dataclass(frozen=True, slots=True)
class SumsForecast:
    """Forecast of how much the noise on the sums of least squares will hide. Public; made before any row is read.

    Attributes
    ----------
    curvature_noise : float
        Largest eigenvalue of the noise on X^T X: 2 s sqrt(D), s its standard deviation off the diagonal.
    usual_curvature : float
        Eigenvalue of X^T X for typical rows: n |x|^2 / d, spread evenly over d columns.
    square_deviation : float
        Standard deviation of the noise on the sum of squared targets; 0 if that sum is not released.
    is_pure : bool
        Whether the budget is for pure privacy, for which noise grows fastest with the number of columns.
    design : SamplingDesign
        What is declared about the sample.
    """

    curvature_noise: float
    usual_curvature: float
    square_deviation: float
    is_pure: bool
    design: SamplingDesign = INDEPENDENT

    @classmethod
    def of(cls, plan: StatisticsPlan, usual_row_norm: float, design: SamplingDesign = INDEPENDENT) -> SumsForecast:
        """The forecast of a plan for sums."""
        problem = plan.problem
        noise = 2.0 * plan.product_deviation * math.sqrt(problem.n_weights)
        usual = problem.n_rows_low * usual_row_norm**2 / problem.n_features
        return cls(noise, usual, plan.square_deviation, plan.budget.is_pure, design)

    @property
    def ratio(self) -> float:
        """Noise divided by the curvature that it hides."""
        return self.curvature_noise / self.usual_curvature

    @property
    def is_poor(self) -> bool:
        """Whether the fit is expected to be much worse than one without privacy."""
        return not self.ratio <= POOR_FIT_RATIO

    def check(self) -> None:
        """Raise ParameterError if intervals cannot be trusted."""
        if not self.ratio <= LARGEST_SUMS_RATIO:
            raise ParameterError(wording("intervals of sums not trustworthy", plan=self, most=LARGEST_SUMS_RATIO))

    def sentence(self, *, is_private: bool) -> str:
        """What is released for intervals, for the guarantee."""
        return "Besides the other sums, the sum of the squared targets is released with noise, for intervals."

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        names = "curvature_noise usual_curvature ratio largest_ratio is_poor square_deviation"
        return as_json(self, names, largest_ratio=LARGEST_SUMS_RATIO)

    def sentences(self) -> tuple[str, ...]:
        """What to expect of each named coefficient: there is none."""
        return ()

    def lines(self) -> dict[str, str]:
        """Lines of the plan for people: text by name."""
        lines = {"signal": wording("noise on sums of products", forecast=self)}
        if self.is_poor:
            lost = 0.03 if self.ratio <= 3.0 * POOR_FIT_RATIO else 0.05
            others = (", ApproxDP or ZCDP in place of PureDP" if self.is_pure else "") + wording("other ways than sums")
            lines["poor fit"] = wording("poor fit", ratio=POOR_FIT_RATIO, lost=lost) + others
        return lines

    def interval_lines(self) -> dict[str, str]:
        """Further lines of the plan if the fit has intervals."""
        return {"intervals": wording("intervals of sums", most=LARGEST_SUMS_RATIO, plan=self), **self.design.lines()}


def _deviation(moments: SumPlan[Moments]) -> float:
    """Standard deviation of the noise on an entry of the curvature off the diagonal."""
    return float(moments.deviation * moments.query.unit_of_curvature / math.sqrt(2.0))


def _usual_curvature(moments: SumPlan[Moments], usual_row_norm: float, design: SamplingDesign) -> float:
    problem = moments.query.problem
    loss, n_classes = problem.loss_bounds, max(2, problem.loss.constants.n_outputs)
    bend = loss.trace / loss.rank * (4.0 * (n_classes - 1) / n_classes**2 if loss.separable else 1.0) / 2.0
    if loss.is_count:
        # The curvature of a count is its mean, which is far below the largest count.
        bend = _USUAL_COUNT * float(loss.curvature_at_slope(np.zeros(1))[0])
    # The constants of the loss are those of a row with the largest weight.
    return design.effective_share * problem.n_rows_low * bend * usual_row_norm**2 / problem.n_features


# How precise an evaluation will be: said before it is charged, from public facts alone.

_ALL_THE_SAME = "To charge it all the same, set allow_hidden=True."
_STEPS = 7
_LARGEST_FACTOR = 1e6
"""A budget that would have to be larger than this many times the given one is not named."""


def expected_precision(plan: SumPlan[Counts], n_rows: int | None, level: float) -> str:
    """What to expect of the rates, in sentences; empty where there is no noise.

    Parameters
    ----------
    plan : the plan of the counts: two classes, each by the same number of bins
    n_rows : the number of rows, or None if it is private
    level : of the intervals
    """
    if not plan.budget.is_private:
        return ""
    noise, n_bins = plan.deviation, plan.query.n_cells // 2
    said = [f"Expect noise of about {noise:.3g} rows in each of {plan.query.n_cells} counts."]
    of_class, of_all = (LEAST_SIGNAL * noise * math.sqrt(n_cells) for n_cells in (n_bins, plan.query.n_cells))
    if n_rows is None:
        said.append(wording("accuracy hidden", of_all=rounded(of_all), of_class=rounded(of_class)))
    elif n_rows <= of_all:
        said.append("All rates will be hidden: there are too few rows for this budget.")
    else:
        said.append(f"The accuracy will be known within about +-{margin_of_accuracy(plan, n_rows, level):.2g}.")
        needs = f"each class has about {rounded(of_class)} rows"
        said.append("The AUC will be hidden." if n_rows <= 2.0 * of_class else f"The AUC is hidden unless {needs}.")
    said.append(wording("calibration hidden", of_bin=rounded(LEAST_SIGNAL * noise * math.sqrt(2.0))))
    return " ".join(said)


def margin_of_accuracy(plan: SumPlan[Counts], n_rows: int, level: float) -> float:
    """Half the length of the widest interval of the accuracy, if the number of rows is public."""
    # Half of the cells are right. The total is known, so the noise that it has is taken out; what is left of that of
    # `2 * n_bins` cells is the same at any accuracy. The sample doubts most at an accuracy of one half.
    variance = plan.deviation**2 * plan.query.n_cells / 4.0 / n_rows**2 + 0.25 / n_rows
    return float(ndtri(0.5 + 0.5 * level)) * math.sqrt(variance)


def refuse_hidden(plan: SumPlan[Any], n_cells: int, n_rows: int | None, otherwise: str = _ALL_THE_SAME) -> None:
    """Refuse an evaluation of which the noise would hide every rate, before it is charged.

    Parameters
    ----------
    plan : of the counts
    n_cells : how many counts are added up to the number of all rows
    n_rows : the number of rows, or None if it is private; then nothing is refused
    otherwise : what else can be done

    Raises
    ------
    ParameterError
        The message says what would suffice.
    """
    needed = rows_to_be_known(plan.deviation, n_cells)
    if n_rows is None or n_rows > needed:
        return
    name, amount, ways = plan.budget.symbol, plan.budget.amount, [f"at least {rounded_up(needed)} rows"]
    factor = _factor_that_suffices(plan, n_cells, n_rows)
    if factor is not None:
        ways.append(f"{name} = {rounded_up(factor * amount)}")
    said = wording("every rate hidden", n_rows=n_rows, name=name, amount=amount, ways=" or ".join(ways), otherwise=otherwise)
    raise ParameterError(said)


def _factor_that_suffices(plan: SumPlan[Any], n_cells: int, n_rows: int) -> float | None:
    """The least factor of the budget, up to a percent, with which rates are no longer hidden; None if there is none."""

    def suffices(factor: float) -> bool:
        budget = with_amount(plan.budget, factor * plan.budget.amount)
        return n_rows > rows_to_be_known(SumPlan.of(plan.query, budget).deviation, n_cells)

    low, high = 1.0, 2.0
    try:
        while not suffices(high):
            low, high = high, 2.0 * high
            if high > _LARGEST_FACTOR:
                return None
        for _ in range(_STEPS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if suffices(middle) else (middle, high)
    except ParameterError:
        # There is no such budget.
        return None
    return high


def rows_to_be_known(deviation: float, n_cells: int) -> float:
    """The number of rows below which so many noisy counts do not tell how many rows they hold."""
    return LEAST_SIGNAL * deviation * math.sqrt(n_cells)


def rounded_up(value: float) -> str:
    """A number with two digits, not smaller than it was."""
    if value >= 100.0:
        step = 10.0 ** (math.floor(math.log10(value)) - 1)
        return f"{math.ceil(value / step) * step:,.0f}"
    places = max(0, 1 - math.floor(math.log10(value)))
    return f"{math.ceil(value * 10**places) / 10**places:g}"


def rounded(rows: float) -> str:
    """A number of rows with two digits."""
    return f"{float(f'{rows:.2g}'):,.0f}"
