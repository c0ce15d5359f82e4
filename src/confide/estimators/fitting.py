"""What a fit decides from public facts, its plan; then the charge, and after it the release.

Most of these lines choose what users leave open: the loss, the ridge, the mechanism, the share for intervals.
`charge_and_release`, at the end, is what every release goes through.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from confide.accounting.events import Event
from confide.accounting.ledger import Batch, Ledger
from confide.cautions import cautions, warn
from confide.data.arrays import summation_depth
from confide.data.source import RowSource
from confide.data.threads import one_blas_thread
from confide.erm.class_losses import OneVsRest
from confide.erm.declared_losses import DeclaredLoss
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import Loss
from confide.erm.row_bounds import BallBound, RowBound
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import PoissonLoss
from confide.errors import InsufficientRegularisation, NotCertified, ParameterError
from confide.estimators.non_private import NonPrivate
from confide.estimators.regularisation import balanced_l2, curvature_free_l2, usual_norm
from confide.features.encoder import RowsPerPerson
from confide.inference.evidence import Evidence
from confide.inference.forecast import IntervalsPlan
from confide.privacy.budgets import ApproxDP, Budget, Neighbours, budget_of_row
from confide.privacy.lattice import LatticeNoise
from confide.privacy.mechanism import Mechanism, Plan, Problem, Release
from confide.privacy.moments import SecondMoments
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.second_account import confirms
from confide.solvers.fallback import NewtonThenFallback

MECHANISMS: dict[str, Mechanism] = {
    "objective": ObjectivePerturbation(),
    "output": OutputPerturbation(),
    "output-laplace": OutputPerturbation(laplace_alone=True),
    "none": NonPrivate(),
}

_LEAST_HINGE_L2 = 1e-2
_LARGEST_SEAL_SHARE = 0.01
_MOST_STEPS, _STRIDE = 600, 8
"""Of the ridge, each 1.1 times the one before; and how many are passed over at once."""
_MOST_CLASS_WEIGHTS = 1000
"""Of several classes with intervals: a million entries get exact noise, and each pair of classes has its own products."""
_ENOUGH_FOR_THE_HINGE = 50.0
"""Least sum of usual rows over the noise, for each weight: compared on the data of benchmarks/peers."""
_LEAST_CURVED = {"laplace": 0.7, "gaussian": 1.0}
"""The least automatic ridge over that at which curvature is free; less by the margin, but not below half of it. Half costs
3 to 7% more Laplace noise under replace-one, else 4 to 17%, and as much more Gaussian noise. Compared on the data of
benchmarks/peers."""
_LEAST_CURVED_OF_CLASSES = 0.7
"""The same for several classes with a margin of 2 and more, under any law of noise; 1 without a margin. It costs 1 to 6%
more noise under replace-one, else 3 to 14%. Half was better still where noise is small, and worse where it is large.
Compared on Covertype, MNIST and made-up classes."""
_SHARES = (0.3, 0.05, 0.1, 0.15, 0.2, 0.4, 0.5, 0.6)
"""What "auto" chooses from."""
_MOST_NOISE_IN_THE_OBJECTIVE = 4.0
"""Over that on the weights at the same ridge: the loss damps noise in the objective (benchmarks/README.md)."""


@dataclass(frozen=True, slots=True)
class Smoother:
    """What takes the place of a hinge where noise is large beside the rows.

    Attributes
    ----------
    loss : a loss that pays less for its curvature
    row_bound : a narrower bound on rows, for Gaussian noise alone; None for none
    """

    loss: Loss
    row_bound: RowBound | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked parameters of an estimator: public facts, decided before any row is seen.

    Attributes
    ----------
    budget : Budget
    mechanism : "auto", "objective", "output" or "output-laplace"
    alpha : float, or None for the automatic one
    loss, row_bound, intercept : what one row adds
    neighbours : Neighbours
    n_rows_bounds : (low, high), or None where the number of rows is public
    rows_per_person : the most rows that one person contributed
    largest_sample_weight : the declared cap on a row's own weight
    class_weight : pairs of class and public weight, or None
    score_size : a public guess of how large scores are, for the automatic alpha; None for margins
    inference_share : part of the budget that is kept for intervals, 0 for none, or "auto"
    smoother : what loss and bound on rows give way to where noise is large, see `_decided`; None where they are asked for
    set_aside : as in `Problem`, for a release that is one of several
    n_threads : how many threads share rows in memory or in files; no plan or release depends on it
    """

    budget: Budget
    mechanism: str
    alpha: float | None
    loss: Loss
    row_bound: RowBound
    intercept: float
    neighbours: Neighbours
    n_rows_bounds: tuple[int, int] | None
    rows_per_person: int = 1
    largest_sample_weight: float = 1.0
    class_weight: tuple[tuple[Any, float], ...] | None = None
    score_size: float | None = None
    inference_share: float | str = 0.0
    smoother: Smoother | None = None
    set_aside: float = 0.0
    n_threads: int = 1

    @property
    def largest_weight(self) -> float:
        """The most that one row counts."""
        return self.largest_sample_weight * max((weight for _, weight in self.class_weight or ()), default=1.0)

    @property
    def row_sums(self) -> list[RowSum]:
        """The sums over rows that a plan may ask for: one, or those of `_decided`. Without budget or number of rows."""
        found, smoother = [(self.loss, self.row_bound)], self.smoother
        if smoother is not None and self.loss.n_outputs == 1:
            found += [(smoother.loss, bound) for bound in (self.row_bound, smoother.row_bound) if bound is not None]
        return [RowSum(loss, bound, self.intercept, 2, self.largest_weight) for loss, bound in found]

    @property
    def mechanism_name(self) -> str:
        """The mechanism that "auto" stands for, decided from public facts."""
        if not self.budget.is_private:
            return "none"
        # Objective perturbation does better wherever the loss adds curvature of its own, which damps its noise. Without that
        # its noise over the ridge is the larger one where the ridge is small: up to twice as large for pure and approximate
        # budgets, and many times for small concentrated ones, whose account is loose. Several scores: `_training_plan`.
        if self.mechanism == "auto":
            return "objective" if math.isfinite(self.loss.smoothness) else "output"
        return self.mechanism


def make_plan(settings: Settings, n_features: int, n_rows: int | None) -> Plan:
    """The plan for `n_rows` rows, or for the declared bounds on their number. Uses no row."""
    if settings.inference_share != 0.0 and not math.isfinite(settings.loss.smoothness):
        raise ParameterError(
            "intervals need a loss that bends: use LogisticRegression, or loss='huber_hinge' or 'smooth_hinge', or leave "
            "inference_share at 0."
        )
    n_weights = settings.loss.n_outputs * (n_features + (settings.intercept > 0.0))
    if settings.inference_share != 0.0 and settings.loss.n_outputs > 1 and n_weights > _MOST_CLASS_WEIGHTS:
        raise ParameterError(
            f"intervals for several classes are for at most {_MOST_CLASS_WEIGHTS:,} weights, and classes times columns "
            f"would be {n_weights:,}. Use fewer columns or classes, or leave inference_share at 0."
        )
    if settings.inference_share != 0.0 and settings.loss.by_length:
        raise ParameterError("intervals need a slope of bounded size: use loss='huber', or leave inference_share at 0.")
    # A bound on rows or a loss of the user's own may change and still be the same object.
    is_frozen = type(settings.row_bound) in (BallBound, GroupBound) and not isinstance(settings.loss, DeclaredLoss)
    return (_planned if is_frozen else _planned.__wrapped__)(settings, n_features, n_rows)


def share_of(budget: Budget, share: float) -> Budget:
    """A part of a budget: parts whose shares add up to 1 cost the whole together (basic composition)."""
    if share == 1.0 or not budget.is_private:
        return budget
    return type(budget)(*(share * getattr(budget, name) * (1.0 - 2.0**-50) for name in budget.ranges))


@lru_cache(maxsize=64)
def _planned(settings: Settings, n_features: int, n_rows: int | None) -> Plan:
    settings, plan_made = _decided(settings, n_features, n_rows)
    share = settings.inference_share
    if share == 0.0:
        return plan_made or _training_plan(settings, n_features, n_rows, settings.budget)
    if not isinstance(share, str):
        plan = _plan_with_intervals(settings, n_features, n_rows, share)
    elif not settings.budget.is_private:
        plan = _plan_with_intervals(settings, n_features, n_rows, _SHARES[0])
    else:
        plans = [_plan_with_intervals(settings, n_features, n_rows, share) for share in _SHARES]
        # The narrowest intervals among those that can be trusted, or the refusal of the nearest to it.
        plan = min(plans, key=lambda plan: (max(plan.intervals.ratio, plan.intervals.largest_ratio), plan.intervals.margin))
    plan.intervals.check()
    return plan


def _decided(settings: Settings, n_features: int, n_rows: int | None) -> tuple[Settings, Plan | None]:
    """The settings with the loss and the bound on rows that an automatic loss stands for, and their plan if it was made.

    The hinge where noise is small, for that is what was asked for. Where it is large, a loss whose curvature costs little;
    and under Gaussian noise, which grows with the longest row in every direction alike, rows clipped to their usual norm.
    Coefficients with intervals speak of rows as they are, so these are not clipped for them. All from public facts.
    """
    smoother, settings = settings.smoother, replace(settings, smoother=None)
    if smoother is None or settings.mechanism_name != "objective" or settings.loss.n_outputs > 1:
        return settings, None
    smooth = replace(settings, loss=smoother.loss)
    try:
        plan = _training_plan(settings, n_features, n_rows, settings.budget)
    except ParameterError:
        # What stops the hinge's plan need not stop the other's.
        return smooth, None
    problem = plan.problem
    rows = problem.largest_weight * problem.n_rows_low * usual_norm(problem.row_bound, problem.intercept)
    if plan.noise is None or rows >= _ENOUGH_FOR_THE_HINGE * problem.n_weights * plan.noise.norm:
        return settings, plan
    if smoother.row_bound is None or settings.inference_share != 0.0:
        return smooth, None
    plan = _training_plan(smooth, n_features, n_rows, settings.budget)
    if plan.noise is not None and plan.noise.law == "gaussian":
        return replace(smooth, row_bound=smoother.row_bound), None
    return smooth, plan


def _plan_with_intervals(settings: Settings, n_features: int, n_rows: int | None, share: float) -> Plan:
    training = _training_plan(settings, n_features, n_rows, share_of(settings.budget, 1.0 - share))
    moments = SecondMoments().plan(training, share_of(settings.budget, share))
    usual = usual_norm(settings.row_bound, 0.0) if math.isfinite(training.problem.row_norm) else 1.0
    intervals = IntervalsPlan.of(settings.budget, share, training, moments, usual)
    # Adaptive composition: the moments are taken at the released weights. One charge covers both, here and by hand.
    return replace(training, intervals=intervals, event=training.problem.event(settings.budget))


def _training_plan(settings: Settings, n_features: int, n_rows: int | None, budget: Budget) -> Plan:
    """The plan of the weights alone."""
    low, high = settings.n_rows_bounds or (n_rows, n_rows)
    if low is None or high is None:
        raise ParameterError("a plan needs the number of rows, n_rows.")
    problem = Problem(
        loss=settings.loss,
        row_bound=settings.row_bound,
        intercept=settings.intercept,
        n_features=n_features,
        n_rows_low=low,
        n_rows_high=high,
        summation_depth=summation_depth(high, n_features),
        l2=1.0 if settings.alpha is None else settings.alpha * low,
        neighbours=settings.neighbours,
        rows_per_person=settings.rows_per_person,
        largest_weight=settings.largest_weight,
        set_aside=settings.set_aside,
    )

    def planned_by(name: str) -> Plan:
        # Without privacy the automatic ridge is 1, scikit-learn's C = 1.
        if settings.alpha is not None or not settings.budget.is_private:
            return _plan_at_alpha(MECHANISMS[name], problem, budget)
        return _automatic_plan(MECHANISMS[name], problem, budget, settings.score_size, settings.inference_share == 0.0)

    plan = planned_by(settings.mechanism_name)
    if settings.mechanism == "auto" and plan.mechanism == "objective" and problem.loss.n_outputs > 1:
        # The account of Gaussian noise in the objective of several scores is loose, most of all for concentrated budgets.
        with suppress(InsufficientRegularisation):
            on_weights = MECHANISMS["output"].plan(replace(problem, l2=plan.l2), budget)
            if plan.noise_norm > _MOST_NOISE_IN_THE_OBJECTIVE * on_weights.noise_norm:
                return planned_by("output")
    return plan


def _plan_at_alpha(mechanism: Mechanism, problem: Problem, budget: Budget) -> Plan:
    """The plan at the alpha that was asked for. For counts one that double precision cannot certify is raised.

    Their loss may bend by as much as `target_bound`, so what is certain depends on a parameter that scikit-learn's estimator
    does not have. What was added is stated, like what the curvature adds.
    """
    try:
        return mechanism.plan(problem, budget)
    except InsufficientRegularisation:
        if not isinstance(problem.loss, PoissonLoss):
            raise
    plan = _first_plan(mechanism, problem, budget, largest_seal_share=1.0)
    return replace(plan, problem=problem)


def _automatic_plan(
    mechanism: Mechanism, problem: Problem, budget: Budget, score_size: float | None, weights_alone: bool
) -> Plan:
    """The plan at the automatic ridge, which rises where double precision would cost more than 1% of the budget.

    Weights alone may cost a little more noise if less ridge shrinks them; intervals have to cover the noise.
    """
    least = curvature_free_l2(
        budget_of_row(budget, problem.rows_per_person), problem.loss_bounds, problem.row_norm, problem.neighbours
    )
    # Slopes of a regression are in units of its target, a ridge is not.
    least /= score_size or 1.0
    if not problem.loss.self_concordant and math.isfinite(problem.loss.smoothness):
        # A hinge does not bend where all rows are far from its joint, and there the ridge alone holds against the noise.
        least = max(least, _LEAST_HINGE_L2 * problem.row_norm**2)
    plan = _first_plan(mechanism, replace(problem, l2=max(least, problem.largest_weight * problem.row_norm**2)), budget)
    usual = usual_norm(problem.row_bound, problem.intercept)
    # As many rows as would weigh the most: so the unit of the weights does not matter.
    weight = problem.largest_weight * problem.n_rows_low
    # The noise depends on the ridge, a little, and so may its law.
    for _ in range(2):
        share = _share_of_curvature_free(plan) if weights_alone else 1.0
        # That of the weights of one score: each is balanced as a problem of two classes would be.
        noise_norm = plan.noise_norm * plan.l2 / math.sqrt(problem.loss.n_outputs)
        on_weights = plan.mechanism != "objective"
        balanced = balanced_l2(
            noise_norm,
            weight,
            usual,
            on_weights=on_weights,
            score_size=score_size,
            margin=_margin_of(problem.loss),
        )
        l2 = max(share * least, balanced)
        plan = _first_plan(mechanism, replace(problem, l2=l2), budget)
    return plan


def _share_of_curvature_free(plan: Plan) -> float:
    """Which part of the ridge at which the curvature costs nothing the automatic one may be."""
    problem, noise = plan.problem, plan.noise
    if plan.mechanism != "objective" or noise is None or not problem.loss.tapered:
        return 1.0
    if problem.loss.n_outputs > 1:
        return max(_LEAST_CURVED_OF_CLASSES, 1.0 / max(1.0, _margin_of(problem.loss)))
    in_parts = isinstance(plan.budget, ApproxDP) and problem.neighbours is Neighbours.ADD_OR_REMOVE_ONE
    if noise.law == "gaussian" and not in_parts:
        # The account knows nothing between free and dear.
        return 1.0
    # The larger scores are to be, the more a ridge shrinks them.
    return max(0.5, _LEAST_CURVED[noise.law] / max(1.0, _margin_of(problem.loss)))


def _margin_of(loss: Loss) -> float:
    """Where the corner of a hinge is, of several classes that of each."""
    of_class = loss.loss if isinstance(loss, OneVsRest) else loss
    return float(getattr(of_class, "margin", 1.0))


def _first_plan(
    mechanism: Mechanism, problem: Problem, budget: Budget, largest_seal_share: float = _LARGEST_SEAL_SHARE
) -> Plan:
    """The plan at the ridge of the problem, or at the first larger one that allows it.

    The ridges that allow it lie between two ends, for doubles are too coarse for those too small and for those too large. So
    every few are tried, then halves of what lies between; all, one after the other, only where so long steps meet none.
    """
    if isinstance(mechanism, ObjectivePerturbation):
        # So that a law whose seal costs too much does not stand before one that is possible.
        mechanism = ObjectivePerturbation(largest_seal_share)
    ridges = list(accumulate(range(1, _MOST_STEPS), lambda l2, _: 1.1 * l2, initial=problem.l2))

    @cache
    def plan_at(step: int) -> Plan | None:
        with suppress(InsufficientRegularisation):
            plan = mechanism.plan(replace(problem, l2=ridges[step]), budget)
            if plan.seal_share <= largest_seal_share:
                return plan
        return None

    for stride in (_STRIDE, 1):
        for step in range(0, _MOST_STEPS, stride):
            if found := plan_at(step):
                between = range(max(0, step - stride), step + 1)
                return plan_at(between[bisect_left(between, True, key=lambda k: plan_at(k) is not None)]) or found
    raise ParameterError(
        f"no alpha is large enough for up to {problem.n_rows_high} rows at this budget: double precision cannot certify the "
        f"minimiser closely enough. Narrow n_rows_bounds, or use fewer rows or a larger budget."
    )


@dataclass(frozen=True, slots=True)
class Fit:
    """What one fit released: weights, and if a share of the budget was kept for them, what intervals are made of."""

    release: Release
    evidence: Evidence | None


def before_charge(plan: Plan | StatisticsPlan, ledger: Ledger | Batch | None) -> None:
    """What remains to be done before a charge: the second account, and a warning of an unusual budget.

    Of a batch nothing is warned: what it pays for is a part of something larger.
    """
    confirm_noise(*lattices_of(plan))
    if not isinstance(ledger, Batch):
        warn(cautions(plan.event.budget, plan.problem.n_rows_low, plan.problem.n_rows_high))


def confirm_noise(*lattices: LatticeNoise | None) -> None:
    """Ask OpenDP for its account of the noise now, before the charge: a release asks again, and is answered the same."""
    for lattice in lattices:
        if lattice is not None and not confirms(lattice):
            raise NotCertified("OpenDP finds the noise less private than claimed. Nothing was used or charged.")


def lattices_of(plan: Plan | StatisticsPlan) -> tuple[LatticeNoise | None, ...]:
    """All noise on a grid that a release by this plan draws."""
    moments = plan.intervals.moments.lattice if isinstance(plan, Plan) and plan.intervals is not None else None
    return plan.lattice, moments


def release_by(plan: Plan, source: RowSource, entropy: Entropy) -> Fit:
    """Release by a plan whose event was charged before this call."""
    released = MECHANISMS[plan.mechanism].release(plan, source, NewtonThenFallback(), entropy)
    if plan.intervals is None:
        return Fit(released, None)
    moments = SecondMoments().release(plan.intervals.moments, released.weights, source, entropy)
    return Fit(released, Evidence.of(plan, released.weights[0], moments))


Released = TypeVar("Released")


def charge_and_release(
    release: Callable[[Entropy], Released],
    event: Event,
    neighbours: Neighbours,
    ledger: Ledger | Batch | None,
    seed: int | None,
    purpose: str,
) -> Released:
    """Charge the event, which is durable before the next line runs, then release.

    All that could fail without a row was done before: what follows the charge draws, solves, certifies and writes.
    """
    entropy = entropy_of(seed)
    # Floating-point warnings would depend on the data.
    with np.errstate(all="ignore"), one_blas_thread():
        if ledger is not None:
            # Who reads the ledger must see that its limit does not speak of this release.
            void = "" if seed is None else " (void: random_state was set)"
            ledger.charge(event, purpose=purpose + void, neighbours=neighbours)
        return release(entropy)


def entropy_of(seed: int | None) -> Entropy:
    """Where random bits come from: the operating system, or a seed for tests."""
    return Entropy.fresh() if seed is None else Entropy.seeded(seed)


def rows_per_person(most: int, seed: int | None) -> RowsPerPerson:
    """Which rows of each person count: so many, drawn at random."""
    return RowsPerPerson(most, entropy_of(seed).permutation)
