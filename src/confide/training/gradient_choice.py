"""Whether "auto" stands for noisy gradients, and the plan with them. Public facts decide it.

Noise in an objective is damped by the curvature of the loss, but the curvature costs a part of the budget, and rows have
to be clipped before they are used. Noisy gradients clip the slope of a row alone. For a loss with a margin both err alike
with much noise. With less noise gradients err less often, because they change fewer rows. The logistic loss without a
margin is half as steep at scores of 0 as it may become. So gradients that are clipped there need half the noise, which
pays where noise is large. With next to no noise an exact minimiser is better than the mean of a fixed number of steps
(benchmarks/gradients.py).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from confide.erm.losses import LogisticLoss
from confide.erm.target_losses import PoissonLoss, SquaredLoss
from confide.errors import ParameterError
from confide.expected_noise import noise_in_rows
from confide.privacy.budgets import ZCDP, PureDP
from confide.privacy.mechanism import Plan
from confide.training.alpha import strength
from confide.training.centring_choice import enough_for_gradients, gradients_were_compared, plan_with_centring
from confide.training.gradient_steps import has_many_numbers
from confide.training.loss_choice import ENOUGH_FOR_THE_HINGE
from confide.training.mechanism_choice import plan_of_weights
from confide.training.settings import ScoreLoss, Settings

_ENOUGH_FOR_CURVES = 250.0
"""From this `strength` on, curves are left to the exact minimiser. `AdditiveClassifier` under (epsilon, delta), errors by
gradients less those by the objective (6 to 12 fits): -.0012 to 0 on Bank, Adult and Covertype at strengths of 2 to 9, and
-.009 to -.001 on Skin at 5 to 185. On Bank with economic indicators and KDD Cup 99 with all columns, which had no part in
the choice, -.0014 to -.0004 at 1 to 3.5 and +.0005 at epsilon 4."""
_ENOUGH_FOR_OTHER_KNOTS = 3.0
"""The same for numbers with one or two knots; for the logistic loss without a margin, whose probabilities clipped slopes
would make too sure; and for tables of so many numbers that fewer sums are made. With one or two knots on KDD Cup 99,
gradients erred more often by 0 to .0006 at 5 to 78."""
_ENOUGH_FOR_THE_LOGISTIC_LOSS = 8.0
"""From this `strength` on, the logistic loss without a margin is left to the exact minimiser. `LogisticRegression`,
(epsilon, 1e-5), test errors by gradients and by the objective (6 fits): Bank at .5, a strength of 7.7, .0983 and .1010;
Bank with economic indicators at .5, 4.6, .0846 and .0869. From 9 on Covertype and Adult err more often by up to .001 (20
fits), Bank less often. Calibration errors are smaller by .004 to .015, and on Adult larger by .001 to .002."""

_NOISY, _NOISY_UNDER_RHO, _NOISY_FOR_COUNTS = 0.05, 0.002, 0.001
"""Noise in an objective, as a share of what all rows can pull together, above which gradients predict numbers better. R^2 of
`HuberRegressor` with noise in the objective and by gradients (6 fits, benchmarks/means_of_counts.py --part gradients),
(epsilon, 1e-6): hours worked at .05, a share of .062, .098 and .120; at .1, .032, .126 and .133, but age .372 and .363; at
.5, .006, .163 and .161. Under a rho of .05: prices of diamonds, a share of .004, .873 and .898; hours, .017, .094 and .165;
of .5, .001, prices .915 and .899. For counts gradients are better with more noise than a thousandth: of the deviance of
visits to a doctor models explain .125 and .134 at .5, a share of .008, and .10 and .143 at a rho of .05; at epsilon 4,
.0007, .144 and .145, but of visits for mental health .115 and .067."""

_NOISY_FOR_CLASSES = 0.001
"""The same for three or more classes (benchmarks/gradients_of_classes.py). Seven classes of Covertype, errors of
`LogisticRegression` and of `LinearSVC` with noise in the objective or on the weights, and by gradients (2 fits), (epsilon,
1e-5): .358 and .302, .397 and .342 at .1; .303 and .287, .345 and .291 at .5; .291 and .287, .289 and .290 at 4, shares of
.0008 and .0013; at a rho of .005 .337 and .292, .362 and .298."""


def gradients_or(
    plan: Plan, settings: Settings, asked: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None
) -> Plan:
    """The plan with noisy gradients where "auto" stands for them, or the plan that was given.

    Parameters
    ----------
    plan : the plan without them, at the loss and the bound on rows that were chosen
    settings : the settings with that bound
    asked : the settings before; gradients clip slopes, and rows are as long as they are
    score_loss : the loss that was chosen
    n_features, n_rows : as in `make_plan`
    """
    of_two = _errs_less_often(plan, settings, asked, score_loss)
    if not of_two and not _regression_is_better(plan, settings) and not _of_classes_is_better(plan, settings):
        return plan
    asked = replace(asked, mechanism="gradient")
    # There may be no plan: sums over very many rows may be too inexact.
    with suppress(ParameterError):
        taken = plan_of_weights(asked, score_loss, n_features, n_rows, asked.budget)
        return plan_with_centring(asked, score_loss, n_features, n_rows, taken)
    return plan


def _errs_less_often(plan: Plan, settings: Settings, asked: Settings, score_loss: ScoreLoss) -> bool:
    """Whether gradients err less often for two classes."""
    # Settings with a smaller bound on rows do not know the usual norm any more.
    least, enough = _limits(plan, asked)
    return _may_take_gradients(plan, settings, score_loss) and least <= strength(plan, settings.usual_norm) < enough


def _regression_is_better(plan: Plan, settings: Settings) -> bool:
    """Whether gradients predict numbers better, because noise in the objective is large."""
    loss, noise = plan.problem.loss, plan.noise
    is_regression = isinstance(loss, PoissonLoss | SquaredLoss) and plan.perturbs_objective
    if not _was_compared(plan, settings) or noise is None or not is_regression:
        return False
    share = noise_in_rows(plan) / plan.problem.n_rows_low
    if isinstance(loss, PoissonLoss):
        return share > _NOISY_FOR_COUNTS
    if isinstance(plan.budget, ZCDP):
        return share > _NOISY_UNDER_RHO
    return share > _NOISY and noise.law == "gaussian"


def _of_classes_is_better(plan: Plan, settings: Settings) -> bool:
    """Whether gradients err less often for three or more classes, because other noise is large."""
    share = noise_in_rows(plan) / plan.problem.n_rows_low
    return plan.problem.loss.n_outputs > 1 and _was_compared(plan, settings) and share > _NOISY_FOR_CLASSES


def _was_compared(plan: Plan, settings: Settings) -> bool:
    """Whether a plan leaves the mechanism open and is of the kind for which regressions and classes were compared."""
    has_features = settings.random_features or settings.appends_features
    is_open = settings.mechanism == "auto" and settings.may_centre and not has_features
    return is_open and plan.budget.is_private and not isinstance(plan.budget, PureDP)


def _limits(plan: Plan, asked: Settings) -> tuple[float, float]:
    """The `strength` from which on gradients err less often, and that from which on an exact minimiser does."""
    is_logistic, least = isinstance(plan.problem.loss, LogisticLoss), enough_for_gradients(plan)
    if asked.usual_norm is not None:
        takes_few_sums = is_logistic or not asked.has_curves or has_many_numbers(plan.problem)
        return least, _ENOUGH_FOR_OTHER_KNOTS if takes_few_sums else _ENOUGH_FOR_CURVES
    if is_logistic:
        return 0.0, _ENOUGH_FOR_THE_LOGISTIC_LOSS
    return least, ENOUGH_FOR_THE_HINGE


def _may_take_gradients(plan: Plan, settings: Settings, score_loss: ScoreLoss) -> bool:
    """Whether the plan and the loss are of the kind for which gradients were compared."""
    return (
        settings.mechanism == "auto"
        # Gradients were compared on centred rows.
        and settings.may_centre
        and gradients_were_compared(plan, settings, score_loss)
        and plan.perturbs_objective
        # Pure budgets have no Gaussian noise. Few weights of straight lines may have less noise of another law.
        and not isinstance(plan.budget, PureDP)
        and plan.noise is not None
        and (plan.noise.law == "gaussian" or settings.has_curves)
        # The logistic loss, with a margin or without.
        and plan.problem.loss.tapered
    )
