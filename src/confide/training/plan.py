"""The plan of a fit: everything that is decided before any row is used, from public facts only.

`STEPS` says in order what "auto" stands for: the loss, the mechanism, the centre and the shares of the budget. One loop goes
through it. Each rule stands here beside the benchmark that chose it; alpha has its own page, `alpha.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound, Centred
from confide.errors import ParameterError, sections_of, wording
from confide.expected_noise import noise_in_rows
from confide.features.fourier import CELLS, bound_of_pairs
from confide.intake.penalties import check_penalty
from confide.intake.specification import CheckedRows
from confide.privacy.budgets import Budget, Neighbours, budget_of_row, share_of, with_amount
from confide.privacy.centring import centring_plan
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import gradient_shift, mu_within
from confide.privacy.matching import CountsAndResiduals, matching_plan
from confide.privacy.mechanism import NO_OBJECTIVE, Plan, ProblemFacts
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.scales import MOST_PAIRED, PairsByTarget, SumsByTarget, mu_of_weights, scales_plan
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.alpha import USUAL_RADIUS, strength
from confide.training.auto_loss import loss_at_noise
from confide.training.auto_mechanism import SHARE_OF_ATOMS, atoms_plan, facts_of_rows, mechanism_for, plan_of_weights
from confide.training.budget_shares import (
    breadth,
    plan_with_interest,
    plans_with_intervals,
    refuse_intervals,
)
from confide.training.gradient_steps import has_many_numbers
from confide.training.least_squares import plan_of_sums
from confide.training.settings import ScoreLoss, Settings, around_levels

AnyPlan: TypeAlias = Plan | StatisticsPlan
"""The plan of a loss of the score, or of least squares by noisy sums."""


def of_all_rows(plan: AnyPlan, n_rows: int) -> Any:
    """The plan of a part of the rows as one of all `n_rows` rows: what is said of a release that is made of parts."""
    problem: Any = replace(plan.problem, n_rows_low=n_rows, n_rows_high=n_rows)
    if isinstance(plan, StatisticsPlan):
        return replace(plan, query=replace(plan.query, problem=problem))
    return replace(plan, problem=problem)


@dataclass(frozen=True)
class Draft:
    """A fit as far as it is decided. Its plan follows, and is made when it is asked for.

    Attributes
    ----------
    asked : what the user asked for
    settings : the same with what was decided since
    n_features, n_rows : as in `make_plan`
    parts : what is released before the weights, such as a centre of the rows
    made : the plan of several releases together, to which no step adds anything; None where the plan follows from `settings`
    said : of each step that says why it was decided so, its name and the sentence
    """

    asked: Settings
    settings: Settings
    n_features: int
    n_rows: int | None
    parts: tuple[SumPlan[Any], ...] = ()
    made: AnyPlan | None = None
    said: tuple[tuple[str, str], ...] = ()

    @cached_property
    def plan(self) -> Any:
        """The plan, with what was decided so far."""
        if self.made is not None:
            return self.made
        plan = plan_of_weights(self.settings, self.n_features, self.n_rows)
        if not self.parts:
            return plan
        # The cost of a part with Laplace noise, which is the only one then, and that of the weights add up.
        first = self.parts[0]
        event = _event_of_both(plan, first.budget, first.share) if first.law == "laplace" else plan.event
        return replace(plan, parts=self.parts, event=event)

    @property
    def facts(self) -> tuple[Settings, int, int | None]:
        """What a plan follows from."""
        return self.settings, self.n_features, self.n_rows

    @property
    def has_plan(self) -> bool:
        """Whether there can be such a fit."""
        with suppress(ParameterError):
            return self.plan is not None
        return False

    @property
    def loss(self) -> ScoreLoss:
        """What is minimised."""
        return self.settings.score_loss

    @property
    def mechanism(self) -> str:
        """The mechanism of the weights."""
        return mechanism_for(self.settings, self.loss.loss)

    def having(self, **changes: Any) -> Draft:
        """The draft with other settings."""
        return replace(self, settings=replace(self.settings, **changes))

    def saying(self, name: str, sentence: str) -> Draft:
        """The draft with one sentence more. Its plan is not made again."""
        again = replace(self, said=(*self.said, (name, sentence))) if sentence else self
        again.__dict__.update({name: value for name, value in self.__dict__.items() if name == "plan"})
        return again


@dataclass(frozen=True, slots=True)
class Step:
    """One decision of "auto".

    Attributes
    ----------
    name : what is decided
    applies : whether there is anything to decide for a draft, where the settings leave it open (`_open_steps`); None: always
    candidates : the drafts that are compared with it, in order; none of them if none can pay
    better : whether a candidate is taken in place of the best draft so far; a candidate without a plan is not
    Why the draft was changed, and below why it was not, says plan.txt, each in one sentence.
    """

    name: str
    applies: Callable[[Draft], bool] | None
    candidates: Callable[[Draft], Iterable[Draft]]
    better: Callable[[Draft, Draft], bool]


# Whether least squares is released by noisy sums or by a perturbed objective.
#
# Noisy sums answer for X^T X as well as for X^T y, at the full bound on targets. A perturbed objective answers for clipped
# slopes alone, so its noise is several times smaller, and far smaller under pure privacy with many columns. The price is
# that a residual beyond the threshold pulls no harder. Sums are kept if their noise hides next to nothing, because then
# they are exact least squares in one pass over the rows; if intervals are asked for, which are made of them; and without
# privacy.

_NEXT_TO_NOTHING = 0.005
"""The largest ratio of the noise on sums to what typical rows add to them, at which "auto" keeps noisy sums. On prices of
diamonds sums lost .026 of R^2 at a ratio of .024 (the objective .002 at the same budget), and .006 at a ratio of .006."""


def _with_sums(draft: Draft) -> Iterator[Draft]:
    """Noisy sums. Over very many rows they may be too inexact, and there may still be a plan for the objective."""
    with suppress(*(() if _needs_sums(draft.asked) else (ParameterError,))):
        squared: Any = draft.asked.minimised
        yield replace(draft, made=plan_of_sums(draft.asked, squared, draft.n_features, draft.n_rows))


def _needs_sums(asked: Settings) -> bool:
    """Whether the objective is none of the possible ways: it has no intervals, and sums are exact without noise."""
    is_named = asked.mechanism == "sufficient-statistics" or not asked.budget.is_private
    return is_named or asked.minimised.of_scores is None


# Which loss an automatic one stands for.
#
# The hinge stays if the noise is small, and a loss whose curvature is cheap takes its place if the noise is large.
# Users of a support vector machine want the hinge, so it is kept if the noise is small. Gaussian noise is equally large in
# all directions and grows with the longest row, so under Gaussian noise rows are clipped to their typical norm besides. They
# are not clipped if intervals are asked for, because coefficients with intervals should be those for the rows as they are.

ENOUGH_FOR_THE_HINGE = 50.0
"""The hinge is kept if the `strength` of its plan is at least this. Compared on the data of benchmarks/peers."""


def _with_another_loss(draft: Draft) -> Iterator[Draft]:
    """The smooth loss. Rows keep their length for noisy gradients, which clip slopes, or where the hinge has no plan."""
    keeps_rows = draft.mechanism == "gradient" or not draft.has_plan
    shorter = None if keeps_rows else draft.loss.bound_if_noisy
    other: Any = draft.loss.if_noisy
    yield draft.having(minimised=replace(draft.loss, loss=other, bound_if_noisy=shorter))


def _strength(draft: Draft) -> float:
    """The `strength` of the plan of a draft."""
    return strength(draft.plan, draft.settings.usual_norm, draft.settings.n_slots)


def _is_loud(draft: Draft) -> bool:
    """Whether the noise of a plan is so large that the hinge gives way."""
    return _strength(draft) < ENOUGH_FOR_THE_HINGE


def _may_shorten(draft: Draft) -> bool:
    """Whether rows may be clipped to their typical norm, where an automatic loss was replaced, or there was but one."""
    loss = draft.loss
    return loss.bound_if_noisy is not None and loss.if_noisy == loss.loss and draft.mechanism == "objective"


def _is_gaussian(_: Draft, draft: Draft) -> bool:
    """Whether the noise is Gaussian, and large."""
    noise = draft.plan.noise
    was_replaced = getattr(draft.asked.minimised, "loss", None) != draft.loss.loss
    return noise is not None and noise.law == "gaussian" and (was_replaced or _is_loud(draft))


# Whether a part of the budget finds the middle of the rows.
#
# Rows that were moved by their middle are shorter, so noise that hides one of them is smaller in relation to them. That
# pays where noise is large. Where it is small, it is better to keep the budget for the weights.

_SHARE_OF_CENTRE = 0.02
"""The part of the budget that finds the middle of the rows: benchmarks/centring.py."""
ENOUGH_FOR_GRADIENTS = 1.6
"""At this `strength` of a plan with noise in the objective, noisy gradients take its place where they may. Without them rows
are then not centred, but for random features and regressions (benchmarks/gradients.py)."""
_ENOUGH_UNDER_RHO = 1.1
"""The same under a concentrated budget, whose account asks for up to 15% more noise in an objective than the ideal. Straight
lines at a rho of .001 (20 and 12 fits): Covertype, at a strength of 1.4, errs by .255 with gradients and by .260 without,
and Bank, at 1.2, by .106 and .107. Below 0.9 Adult errs more often with gradients, by .0005 and .0018."""
_LEAST_NOISE = 8e-4
"""Where the noise is less than what this share of the rows can pull together, a centre gains nothing
(benchmarks/centring.py)."""


def _may_centre(plan: Plan) -> bool:
    """Whether weights for moved rows can be released, and given for rows as they are."""
    return not plan.problem.loss.constants.by_length and type(plan.problem.row_bound) in (BallBound, GroupBound)


def _gains_by_centre(draft: Draft) -> bool:
    """Whether noise in the objective or on the weights is so large that a centre may pay."""
    plan = draft.plan
    may_pay = plan.minimises and _may_centre(plan) and _share_of_rows(plan) > _LEAST_NOISE
    # Centred rows are shortened, and with so little noise that costs more than the centre gains.
    return may_pay and not (_compares_gradients(draft) and _strength(draft) >= _enough_for_gradients(plan))


# Whether a part of the budget finds the length scales of random features.

_SHARE_OF_SCALES = 0.02
"""The part of the budget that finds the length scales of columns (benchmarks/automatic_interactions.py)."""


def _with_scales(draft: Draft) -> Iterator[Draft]:
    """The draft with noisy sums of the rows of either class, by which columns get scales of their own."""
    settings, encoder = draft.settings, draft.settings.appending
    if encoder is None or draft.plan.problem.loss.constants.n_outputs > 1:
        return
    facts = facts_of_rows(settings, encoder.n_features, draft.n_rows)
    # Blocks have as many rows as those with features.
    depth = draft.plan.problem.summation_depth
    problem = ProblemFacts(**facts | {"row_bound": encoder.row_bound, "intercept": 0.0, "summation_depth": depth})
    query = SumsByTarget(problem, encoder.signed, draft.loss.loss.constants.target_bound, settings.largest_weight)
    with suppress(ParameterError):
        part = scales_plan(query, draft.plan.budget, _SHARE_OF_SCALES)
        left: dict[str, Any] = {"beside_mu": math.hypot(settings.beside_mu, part.mu)}
        yield replace(draft.having(**left), asked=replace(draft.asked, **left), parts=(*draft.parts, part))


# Whether a part of the budget finds that columns act together, so that random features of all columns pay.

_SHARE_OF_PAIRS = 0.05
"""The part of the budget that finds it (benchmarks/notes/which_interactions.md)."""


def _with_pairs(draft: Draft) -> Iterator[Draft]:
    """The draft with noisy sums over pairs of columns, and with the plan without features that they may choose.

    That plan may spend what this one spends on noise in the objective and the seal, and nothing on curvature.
    """
    settings, budget, encoder, without = draft.settings, draft.settings.budget, draft.settings.appending, draft.asked.without
    n_columns = 0 if encoder is None or without is None else min(MOST_PAIRED, len(encoder.row_bound.sizes))
    if n_columns < 2 or encoder is None or without is None:
        return
    n_pairs = math.comb(n_columns, 2)
    with suppress(ParameterError):
        facts = facts_of_rows(settings, n_pairs * CELLS**2, draft.n_rows)
        facts |= {"row_bound": bound_of_pairs(n_pairs), "intercept": 0.0}
        part = scales_plan(PairsByTarget(ProblemFacts(**facts), (), None, settings.largest_weight), budget, _SHARE_OF_PAIRS)
        made = draft.having(beside_mu=math.hypot(settings.beside_mu, part.mu) * _UP)
        plan = replace(made, parts=(*draft.parts[:1], part, *draft.parts[1:])).plan
        whole, own = mu_within(budget_of_row(budget, settings.rows_per_person)), mu_of_weights(plan)
        others = replace(without, beside_mu=math.sqrt((whole - own) * (whole + own)) * _UP)
        yield replace(draft, made=replace(plan, without=make_plan(others, encoder.n_features, draft.n_rows)))


# Whether a part of the budget finds numbers that many rows share.
#
# Whether a fit has slots for them is decided before, with knots and interactions (`auto_features.with_slots`).


def _with_atoms(draft: Draft) -> Iterator[Draft]:
    """The draft with noisy counts of the rows by number, in the columns in which atoms are looked for."""
    encoder = draft.settings.finding
    if encoder is None:
        return
    with suppress(ParameterError):
        part = atoms_plan(draft.settings, encoder, draft.n_rows)
        # Whatever later steps change, the counts stay.
        budget = draft.settings.budget
        left: dict[str, Any] = {"beside_mu": math.hypot(draft.settings.beside_mu, part.mu)}
        if budget.is_pure:
            left = {"budget": with_amount(budget, share_of(budget, 1.0 - part.share).amount)}
        yield replace(draft.having(**left), asked=replace(draft.asked, **left), parts=(*draft.parts, part))


def _with_centre(draft: Draft) -> Iterator[Draft]:
    """The draft with a centre, unless there is none, or its part of the budget costs more than shorter rows can gain."""
    plan, settings = draft.plan, draft.settings
    problem = plan.problem
    with suppress(ParameterError):
        centring = centring_plan(problem, plan.budget, _SHARE_OF_CENTRE)
        if plan.minimises:
            # The norm of Gaussian noise if what the centre leaves of the budget bought nothing else.
            longest = gradient_shift(problem.loss_bounds.lipschitz, problem.neighbours) * problem.row_norm
            ideal = longest * math.sqrt(problem.n_weights) / (centring.mu * math.sqrt(1.0 / centring.share - 1.0))
            if USUAL_RADIUS * ideal >= plan.noise_norm * plan.l2:
                return
        bound = Centred.unmoved(problem.row_bound, draft.n_features)
        moved = draft.having(row_bound=bound, beside_mu=math.hypot(settings.beside_mu, centring.mu))
        yield replace(moved, parts=(*draft.parts, centring))


# Whether rows are moved by a middle that is known without any row.
#
# That costs nothing. It is done where rows are clipped to a ball and are not moved by a middle of their own.


def _with_known_middle(draft: Draft) -> Iterator[Draft]:
    """The draft with rows moved by the middle of their levels and knots. Its constant is shortened as rows are."""
    if moved := around_levels(draft.asked.row_bound, draft.settings.row_bound):
        yield draft.having(row_bound=moved, intercept=draft.settings.intercept / moved.magnification)


def _share_of_rows(plan: Plan) -> float:
    """The noise as a part of what all rows of the largest norm can pull together."""
    return noise_in_rows(plan) / plan.problem.n_rows_low


# Whether "auto" stands for noisy gradients.
#
# Noise in an objective is damped by the curvature of the loss, but the curvature costs a part of the budget, and rows have
# to be clipped before they are used. Noisy gradients clip the slope of a row alone. For a loss with a margin both err alike
# with much noise. With less noise gradients err less often, because they change fewer rows. The logistic loss without a
# margin is half as steep at scores of 0 as it may become. So gradients that are clipped there need half the noise, which
# pays where noise is large. With next to no noise an exact minimiser is better than the mean of a fixed number of steps
# (benchmarks/gradients.py).

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


def _may_take_gradients(draft: Draft) -> bool:
    """Whether gradients were compared for such a fit, and were better."""
    return draft.plan.minimises and (_errs_less_often(draft) or _is_too_noisy(draft.plan))


def _errs_less_often(draft: Draft) -> bool:
    """Whether gradients err less often for two classes. Few weights of straight lines may have less noise of another law."""
    plan, asked = draft.plan, draft.asked
    if not _compares_gradients(draft) or not plan.noise.in_objective or not plan.problem.loss.constants.tapered:
        return False
    # From the first strength on gradients err less often, and from the second on an exact minimiser does.
    is_logistic, least = plan.problem.loss == LogisticLoss(), _enough_for_gradients(plan)
    if asked.usual_norm is not None:
        takes_few_sums = is_logistic or not asked.has_curves or has_many_numbers(plan.problem)
        enough = _ENOUGH_FOR_OTHER_KNOTS if takes_few_sums else _ENOUGH_FOR_CURVES
    elif is_logistic:
        least, enough = 0.0, _ENOUGH_FOR_THE_LOGISTIC_LOSS
    else:
        enough = ENOUGH_FOR_THE_HINGE
    is_gaussian = plan.noise.law == "gaussian" or asked.has_curves
    # Settings with a smaller bound on rows do not know the usual norm any more.
    return is_gaussian and least <= _strength(draft) < enough


def _compares_gradients(draft: Draft) -> bool:
    """Whether mechanisms were compared for such a plan: with noise of its own, for two classes, and for columns as given."""
    has_features = draft.asked.random_features or draft.asked.appends_features
    of_two_classes = draft.loss.score_size is None and draft.plan.problem.loss.constants.n_outputs == 1
    return draft.plan.noise is not None and of_two_classes and not has_features


def _enough_for_gradients(plan: Plan) -> float:
    """The `strength` from which on noisy gradients may take the place of a plan with noise in the objective."""
    return _ENOUGH_UNDER_RHO if plan.budget.is_concentrated else ENOUGH_FOR_GRADIENTS


def _is_too_noisy(plan: Plan) -> bool:
    """Whether gradients predict numbers or three and more classes better, because other noise is large."""
    loss, share = plan.problem.loss.constants, _share_of_rows(plan)
    if loss.n_outputs > 1:
        return share > _NOISY_FOR_CLASSES
    if not plan.perturbs_objective or (loss.threshold is None and not loss.is_count):
        return False
    if loss.is_count:
        return share > _NOISY_FOR_COUNTS
    return share > _NOISY_UNDER_RHO if plan.budget.is_concentrated else share > _NOISY and law_of(plan) == "gaussian"


def _with_gradients(draft: Draft) -> Iterator[Draft]:
    """Noisy gradients for the loss that was chosen. They clip slopes, so rows are as long as they were."""
    settings = replace(draft.asked, minimised=draft.loss, mechanism="gradient")
    others = tuple(said for said in draft.said if said[0] != "centre")
    parts = tuple(part for part in draft.parts if part.query.name != "centring")
    yield replace(draft, settings=settings, parts=parts, said=others)


# Whether a part of the budget makes predicted counts right in the mean.
#
# A clipped loss and a ridge draw predictions of counts below their mean. Two noisy sums after the weights give the factor
# by which they are too small. The more noise the weights have the more there is to gain, and the noise in the sums is a
# small part of the count of a row for all but few rows.

_LARGEST_SHARE, _LEAST_SHARE = 0.1, 0.01
"""The largest and the least part of the budget that pays for the sums: benchmarks/means_of_counts.py."""
_AIM = 0.0015
"""The deviation of the noise in the mean residual that is aimed at, as a share of the bound on counts (the same
benchmark)."""
_TOO_LARGE = 0.005
"""With more noise than this in the mean residual there is no matching: the same benchmark."""
_MOST_NOISE = 1.5
"""Noise and ridge of the weights may grow by this factor at most. Usually they grow by 1.01 to 1.25."""
_UP = 1.0 + 2.0**-30


def _with_mean(draft: Draft) -> Iterator[Draft]:
    """The fit that the steps before decide on what a share of the budget leaves, and the two sums."""
    asked, budget = replace(draft.asked, minimised=draft.loss, beside_mu=0.0), draft.asked.budget
    law = "gaussian" if budget.is_concentrated else law_of(draft.plan)  # a rho pays for no other
    # There may be no plan for what is left of the budget.
    with suppress(ParameterError):
        share = _share_of_mean(draft.plan, budget, law)
        if share is None:
            return
        is_joint = budget.is_approximate and law == "gaussian"
        if is_joint:
            mu = matching_plan(draft.plan.problem, budget, share, law).mu * _UP
            asked = replace(asked, beside_mu=math.hypot(asked.beside_mu, mu))
        else:
            # Sums with Laplace noise cost no delta.
            asked = replace(asked, budget=with_amount(budget, share_of(budget, 1.0 - share).amount))
        said = tuple(said for said in draft.said if said[0] == "threshold")
        made = decided(replace(draft, asked=asked, settings=asked, parts=(), said=said), STEPS[:-1])
        event = made.plan.event if is_joint else _event_of_both(made.plan, budget, share)
        matching = matching_plan(made.plan.problem, budget, share, law)
        yield replace(made, made=replace(made.plan, event=event, parts=(*made.plan.parts, matching)))


def _event_of_both(made: Plan, budget: Budget, share: float) -> Event:
    """What a ledger counts for weights and sums whose costs add up; its curve is that of pure privacy where both have it."""
    curve = made.event.curve
    if not isinstance(curve, PureMechanism) or budget.is_concentrated:
        return made.problem.event(budget)
    return made.problem.event(budget, PureMechanism((curve.epsilon + share * budget.amount) * _UP))


def law_of(plan: AnyPlan) -> str:
    """The law of the noise of a plan."""
    noise: Any = plan.noise or plan.lattice
    return "gaussian" if noise is None else noise.law


def noise_in_the_mean(matching: SumPlan[CountsAndResiduals], plan: Plan) -> float:
    """The deviation of the noise in the mean residual, as a share of the bound on counts."""
    noise: Any = matching.lattice
    return float(noise.deviation) / (plan.problem.intercept * matching.query.target_bound * plan.problem.n_rows_low)


def _share_of_mean(plan: Plan, budget: Budget, law: str) -> float | None:
    """The part of the budget at which the noise is what is aimed at; None if it is too large at the largest part."""
    noise = noise_in_the_mean(matching_plan(plan.problem, budget, _LARGEST_SHARE, law), plan)
    if noise > _TOO_LARGE:
        return None
    # Gaussian noise shrinks as the root of its share grows, Laplace noise as the share does.
    wanted = _LARGEST_SHARE * math.pow(noise / _AIM, 2.0 if law == "gaussian" else 1.0)
    return max(_LEAST_SHARE, min(_LARGEST_SHARE, wanted))


# The table and its loop.


def _always(candidate: Draft, _: Draft) -> bool:
    """Whether a candidate that needs no comparison has a plan."""
    return candidate.plan is not None


STEPS = (
    Step(
        "sums of least squares",
        None,
        _with_sums,
        # Their noise hides next to nothing, or they are needed.
        lambda candidate, _: _needs_sums(candidate.asked) or candidate.plan.forecast.ratio <= _NEXT_TO_NOTHING,
    ),
    Step("named coefficients", None, lambda draft: [replace(draft, made=plan_with_interest(*draft.facts))], _always),
    Step("threshold", None, lambda draft: [draft.having(minimised=loss_at_noise(*draft.facts))], lambda *_: True),
    Step(
        "loss",
        # Noise on the weights gains nothing by another loss.
        lambda draft: draft.mechanism in ("objective", "gradient"),
        _with_another_loss,
        lambda _, draft: draft.mechanism == "gradient" or not draft.has_plan or _is_loud(draft),
    ),
    Step(
        "length of rows",
        _may_shorten,
        lambda draft: [draft.having(row_bound=draft.loss.bound_if_noisy, usual_norm=None)],
        _is_gaussian,
    ),
    Step(
        "shares of intervals",
        None,
        lambda draft: [replace(draft, made=plan) for plan in plans_with_intervals(*draft.facts)],
        lambda candidate, draft: draft.made is None or breadth(candidate.plan) < breadth(draft.plan),
    ),
    Step("atoms", None, _with_atoms, _always),
    Step("scales", None, _with_scales, _always),
    Step(
        "centre",
        _gains_by_centre,
        _with_centre,
        lambda candidate, draft: USUAL_RADIUS * _share_of_rows(candidate.plan) < _share_of_rows(draft.plan),
    ),
    Step("noisy gradients", _may_take_gradients, _with_gradients, _always),
    Step("known middle", lambda draft: draft.plan.perturbs_objective, _with_known_middle, _always),
    # Gradients clip slopes by the length of a row, so shorter rows keep more of theirs, however small the noise is.
    Step("centre of gradients", lambda draft: not draft.plan.minimises and _may_centre(draft.plan), _with_centre, _always),
    Step("interactions", lambda draft: bool(draft.plan.scaling and mu_of_weights(draft.plan)), _with_pairs, _always),
    Step(
        "mean of counts",
        None,
        _with_mean,
        # Noise and ridge of the weights grow little.
        lambda candidate, draft: (
            noise_in_rows(candidate.plan) <= _MOST_NOISE * noise_in_rows(draft.plan)
            and candidate.plan.alpha <= _MOST_NOISE * draft.plan.alpha
        ),
    ),
)
"""What "auto" decides, in order."""


def _open_steps(asked: Settings, loss: ScoreLoss | None) -> dict[str, bool]:
    """For each step by its name, whether the settings leave anything to decide there, whatever the plan is."""
    has_intercept, has_features = asked.intercept > 0.0, asked.random_features or asked.appends_features
    # A centre and noisy gradients need Gaussian noise. Without an intercept, scores of moved rows are no scores of rows.
    may_be_gaussian = asked.may_centre and not asked.budget.is_pure
    return {
        "sums of least squares": asked.minimised.from_sums and asked.mechanism != "objective",
        "named coefficients": bool(asked.interest),
        "threshold": loss is not None and loss.thresholds != (),
        "loss": loss is not None and loss.if_noisy not in (None, loss.loss),
        "length of rows": loss is not None and loss.bound_if_noisy is not None and not asked.has_intervals,
        "shares of intervals": asked.has_intervals,
        "atoms": asked.finding is not None,
        "interactions": asked.without is not None and asked.may_scale,
        "scales": asked.may_scale and not asked.budget.is_pure and asked.budget.is_private,
        **dict.fromkeys(("centre", "known middle", "centre of gradients"), may_be_gaussian and has_intercept),
        # With random features an exact minimiser was better.
        "noisy gradients": may_be_gaussian and asked.mechanism == "auto" and asked.budget.is_private and not has_features,
        # Predictions are exponentials of scores that have an intercept, and weights stay as they are released: they become
        # 0 with an l1 penalty, and intervals are those of the weights that were released.
        "mean of counts": asked.match_mean
        and loss is not None
        and loss.loss.constants.is_count
        and asked.budget.is_private
        and has_intercept
        and asked.l1_ratio == 0.0
        and not asked.has_intervals,
    }


def decided(draft: Draft, steps: tuple[Step, ...]) -> Draft:
    """The draft after these steps."""
    is_open = _open_steps(draft.asked, draft.settings.minimised.of_scores)
    for step in steps:
        if draft.made is not None:
            break
        if not is_open.get(step.name, True) or (step.applies is not None and not step.applies(draft)):
            continue
        best = draft
        for candidate in step.candidates(draft):
            # There may be no plan for a candidate.
            with suppress(ParameterError):
                best = candidate if step.better(candidate, best) else best
        taken, _, left = _SAID[step.name].partition("\n\n")
        draft = best.saying(step.name, " ".join((left if best is draft else taken).split()))
    return draft


def sums_beside(plan: AnyPlan) -> tuple[Any, ...]:
    """The plans of all sums that are released beside the weights."""
    return (*plan.parts, *getattr(plan.intervals, "releases", ()))


def plan_for(settings: Settings, rows: CheckedRows) -> AnyPlan:
    """The plan of a fit to these rows. It uses their number only if the number is public."""
    if settings.prior is not None:
        settings.prior.refuse_rows(rows)
    n_rows = rows.n_rows if settings.neighbours is Neighbours.REPLACE_ONE else None
    plan = make_plan(settings.for_classes(len(rows.domain)), rows.source.n_features, n_rows)
    plan.problem.check(rows.n_rows, rows.source.n_features)
    return plan


# A caller may have asked NumPy to raise where numbers overflow or underflow, which they do on purpose here.
@np.errstate(all="ignore")
def make_plan(settings: Settings, n_features: int, n_rows: int | None) -> AnyPlan:
    """The plan for `n_rows` rows, or for the declared bounds on their number. It uses no row.

    Parameters
    ----------
    settings : the settings, already for the actual number of classes
    n_features : number of columns of a row as it enters the objective
    n_rows : number of rows if it is public, otherwise None
    """
    if settings.own_penalty is not None:
        check_penalty(settings.own_penalty, n_features)
    # A bound or a loss that a user wrote may change and still be the same object. So its plan is not remembered.
    loss = getattr(settings.minimised, "loss", None)
    has_users_code = settings.own_penalty is not None or (loss is not None and loss.constants.is_declared)
    is_frozen = type(settings.row_bound) in (BallBound, GroupBound) and not has_users_code
    return (_remembered if is_frozen else _remembered.__wrapped__)(settings, n_features, n_rows)


@lru_cache(maxsize=64)
def _remembered(settings: Settings, n_features: int, n_rows: int | None) -> AnyPlan:
    """The plan. It is a pure function of frozen values, so it is remembered."""
    start = settings
    if settings.minimised.from_sums:
        of_scores = settings.minimised.of_scores
        if settings.mechanism == "objective" and of_scores is None:
            raise ParameterError(wording("no objective perturbation of least squares"))
        if settings.mechanism == "objective" and settings.l1_ratio > 0.0:
            raise ParameterError(NO_OBJECTIVE)
        start = replace(settings, minimised=of_scores or settings.minimised)
    elif settings.has_intervals and not settings.interest:
        loss = settings.score_loss.loss.constants
        refuse_intervals(settings.mechanism, loss, loss.n_outputs * (n_features + (settings.intercept > 0.0)))
    draft = decided(Draft(settings, start, n_features, n_rows), STEPS)
    plan: AnyPlan = draft.plan
    if plan.intervals is not None:
        plan.intervals.check()
    said, is_named = dict(draft.said), settings.mechanism != "auto" and plan.mechanism != "none"
    why = (
        f'The mechanism is "{plan.mechanism}", because it was asked for.'
        if is_named
        else " ".join(_SAID[plan.mechanism].split())
    )
    # The step that takes gradients says why they are noisy.
    first = () if "noisy gradients" in said else (why,)
    return replace(plan, reasons=(*first, *said.values(), _of_alpha(plan, settings)))


# What a plan says of itself.

_PERCENT = {"hinge": f"{ENOUGH_FOR_THE_HINGE:g}", "atoms": f"{SHARE_OF_ATOMS:.0%}", "scales": f"{_SHARE_OF_SCALES:.0%}"}
_PERCENT |= {"pairs": f"{_SHARE_OF_PAIRS:.0%}"}
_SAID = {
    name: text.format(centre=f"{_SHARE_OF_CENTRE:.0%}", **_PERCENT)
    for name, text in sections_of(Path(__file__).with_suffix(".txt")).items()
}
"""Why "auto" takes a mechanism, and what it says of each step."""


def _of_alpha(plan: AnyPlan, asked: Settings) -> str:
    """Why a plan has its alpha."""
    if asked.alpha is not None:
        raised = f", raised to {plan.alpha:.4g} as the proof needs" if getattr(plan, "added_l2", 0.0) > 0.0 else ""
        return f"alpha is {asked.alpha:.4g}, which was asked for{raised}."
    if plan.mechanism == "none":
        return f"alpha is {plan.alpha:.4g}, one over the number of rows, as C = 1 is in scikit-learn."
    return " ".join(_SAID["alpha"].format(plan=plan).split())
