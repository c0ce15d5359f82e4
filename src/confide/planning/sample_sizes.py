"""How many rows suffice for a bound on the loss, at an alpha that makes them few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confide.errors import InsufficientRegularisation, ParameterError, checked_flag, wording
from confide.parameters import checked_choice
from confide.planning.bounds import (
    ExcessRiskBound,
    UtilityBound,
    excess_risk_bound,
    may_suffice,
    plan_without_centre,
    utility_bound,
)
from confide.planning.made_up_fits import parameters_of
from confide.planning.simulation import check_arguments
from confide.privacy.budgets import Neighbours
from confide.privacy.mechanism import Plan

_MAX_ROWS = 2**40
BOUNDS = ("utility_bound", "excess_risk_bound")
_EXCESS_ALPHAS = (1.02, 1.15, 1.35, 1.7)
"""Values of alpha that are tried, over the excess divided by the squared norm: where rows alone deviate the best is 1, and
noise on the weights asks for more."""
_PRECISION = 1e-3
"""How many rows too many an answer by `excess_risk_bound` may have, as a share."""


@dataclass(frozen=True, slots=True)
class SampleSize:
    """A sufficient number of rows, and the plan for it.

    Attributes
    ----------
    n_rows : int
    plan : Plan
    bound : UtilityBound or ExcessRiskBound
    """

    n_rows: int
    plan: Plan
    bound: UtilityBound | ExcessRiskBound


def sample_size(
    estimator: Any,
    n_features: int | None = None,
    *,
    excess: float,
    reference_norm: float = 1.0,
    failure: float = 0.05,
    population: bool = False,
    by: str = "utility_bound",
) -> SampleSize:
    """The smallest number of rows at which a bound on the excess loss is below a target, at the best alpha for it.

    Parameters
    ----------
    estimator : a classifier or regressor with a loss of the score, for replace-one neighbours
        Its budget, bounds and mechanism are used, its alpha is not.
    n_features : int or None
        Number of columns; None with a schema.
    excess : float, positive
        How far the mean loss may be above that of any weights of norm `reference_norm`.
    reference_norm, failure : float
        As in `utility_bound`.
    population : bool, default False
        Whether the target is for the loss on new rows; otherwise it is for the rows of the fit.
    by : "utility_bound" or "excess_risk_bound"
        The bound. "excess_risk_bound" is for new rows always, whatever `population` is: it asks for far fewer rows, because
        it grows with log(1 / failure). Its answer is up to 0.1% above the least.

    Returns
    -------
    SampleSize
        The answer is for the alpha and the mechanism of its plan, so give them to the estimator, and centre=False. There are
        no bounds for noisy gradients: where "auto" would take them, the answer is for mechanism="objective".

    Raises
    ------
    ParameterError
        If a number lies outside its range, neighbours are add-or-remove-one, or 10^12 rows do not suffice.
    """
    check_arguments(failure=failure, reference_norm=reference_norm, excess=excess)
    checked_flag("population", population)
    checked_choice("by", by, BOUNDS)
    if parameters_of(estimator).get("neighbours") == Neighbours.ADD_OR_REMOVE_ONE:
        raise ParameterError(wording("sample size under replace-one"))
    # The best alpha balances shrinkage and noise: shrinkage is half of their sum, two thirds for noise on the weights.
    is_risk = by == "excess_risk_bound"
    alphas, bound_of = (_EXCESS_ALPHAS, excess_risk_bound) if is_risk else ((1.0, 4.0 / 3.0), utility_bound)

    def answer_with(n_rows: int) -> SampleSize | None:
        """The answer if this number of rows suffices."""
        for factor in alphas:
            try:
                plan = plan_without_centre(estimator, factor * excess / reference_norm**2, n_rows, n_features)
            except InsufficientRegularisation:
                continue
            if is_risk and not may_suffice(plan, excess, reference_norm):
                return None
            bound: Any = bound_of(plan, reference_norm=reference_norm, failure=failure)
            if (bound.excess_risk if is_risk or population else bound.excess_loss) <= excess:
                return SampleSize(n_rows, plan, bound)
        return None

    # By doubling and bisection, to a relative precision.
    precision, high = _PRECISION if is_risk else 0.0, 2
    while (answer := answer_with(high)) is None:
        high *= 2
        if high > _MAX_ROWS:
            raise ParameterError("no number of rows suffices: raise the budget or the excess, or lower reference_norm.")
    low = high // 2
    while low + 1 < high and high - low > precision * high:
        middle = (low + high) // 2
        better = answer_with(middle)
        low, high, answer = (low, middle, better) if better else (middle, high, answer)
    return answer
