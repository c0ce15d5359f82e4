"""What every mechanism is given and what it returns: public facts, a plan made before data is read, and a release."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from confide import expected_noise, plan_text
from confide._version import __version__
from confide.array_types import Weights
from confide.blocks import Shown
from confide.erm.group_bounds import GroupBound, groups_of
from confide.erm.losses import Loss, LossConstants
from confide.erm.objective import KeptObjective, Objective, Solver
from confide.erm.penalties import RIDGE, Penalty
from confide.erm.row_bounds import RowBound, before_moving, is_centred, norm_with_intercept
from confide.erm.source import RowSource
from confide.errors import ParameterError, wording
from confide.plan_text import Intervals, Part
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.bundles import shapes_of_groups
from confide.privacy.certificate import GradientRounding, planned_tolerance
from confide.privacy.events import Curve, Event
from confide.privacy.lattice import LatticeNoise
from confide.privacy.noise import LOG_FAILURE, Entropy
from confide.privacy.shapes import Ball, Cylinder, Shape, may_keep_groups, shape_of_groups

_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFacts:
    """The public facts that all training problems have in common. None of them is learned from rows.

    Attributes
    ----------
    row_bound, intercept : what is known of a row, see `confide.erm.row_sums.RowSum`
    n_features : number of columns of a row, before the intercept
    n_rows_low, n_rows_high : public bounds on the number of rows; under replace-one that number is public, and equals both
    summation_depth : upper bound on the length of the chain of additions behind one entry of a sum over rows
    neighbours : the neighbour relation
    rows_per_person : upper bound on the number of rows that one person contributed
    set_aside : a logarithm, above 0 where this is one of several releases that share a charge: proofs set aside an event of
        small probability, and this is by how much less probable that event must be
    summed_norm : largest L2 norm of a clipped row with its intercept, as rows are summed
    row_norm : the same in the norm of a form, if a penalty has one
    row_width : number of entries D of a row, including the constant of the intercept
    is_centred : whether a centre moves the rows
    n_weights : number of weights that are released together, including the intercept
    """

    row_bound: RowBound
    intercept: float
    n_features: int
    n_rows_low: int
    n_rows_high: int
    summation_depth: int
    neighbours: Neighbours
    rows_per_person: int = 1
    set_aside: float = 0.0
    summed_norm: float = field(init=False, compare=False, repr=False)
    row_norm: float = field(init=False, compare=False, repr=False)
    row_width: int = field(init=False, compare=False, repr=False)
    is_centred: bool = field(init=False, compare=False, repr=False)
    n_weights: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.n_rows_low <= self.n_rows_high:
            raise ParameterError("bounds on the number of rows need 1 <= low <= high.")
        if self.neighbours is Neighbours.REPLACE_ONE and self.n_rows_low != self.n_rows_high:
            raise ParameterError("under replace-one the number of rows is public: its bounds must be equal.")
        if self.rows_per_person < 1:
            raise ParameterError("max_rows_per_person must be a whole number of at least 1.")
        self.row_bound.check_width(self.n_features)
        norm, width = norm_with_intercept(self.row_bound, self.intercept), self.n_features + (self.intercept > 0.0)
        self._hold(summed_norm=norm, row_norm=norm, row_width=width, n_weights=width, is_centred=is_centred(self.row_bound))

    def _hold(self, **facts: Any) -> None:
        """Compute once what plan and release ask for many times."""
        for name, fact in facts.items():
            object.__setattr__(self, name, fact)

    def event(self, budget: Budget, curve: Curve | None = None) -> Event:
        """What a ledger counts for a release at this budget, see `Event.of`."""
        return Event.of(budget, curve, self)

    def check(self, n_rows: int, n_features: int) -> None:
        """Raise ParameterError unless the plan holds for rows of this shape."""
        if n_features != self.n_features or not self.n_rows_low <= n_rows <= self.n_rows_high:
            raise ParameterError(wording("plan for other rows", own=self))

    def check_source(self, source: RowSource) -> None:
        """The same for a source. It may have fewer rows, since rows beyond the cap of a person were dropped."""
        self.check(max(source.n_rows, self.n_rows_low), source.n_features)


NO_OBJECTIVE = wording("no objective with kinks")
LARGEST_RIDGE_FACTOR = 2.0**20
"""The largest ridge of a weight over the least one."""
LARGEST_OF_A_PRIOR = 2.0**200
"""The largest size of one weight of a prior, so that no product overflows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(ProblemFacts):
    """The public facts of one training problem with a loss of the score.

    Attributes
    ----------
    loss : what one row adds, see `confide.erm.row_sums.RowSum`
    l2 : ridge of the sum form, positive; alpha times `n_rows_low`
    largest_weight : upper bound on the weight of a row; means divide by the number of rows, never by the sum of weights
    beside_mu : shift over deviation of other Gaussian releases from the same rows that the budget pays for too: for one row,
        of all of them together, as one Gaussian mechanism
    prior : public weights o D towards which the ridge pulls, the intercept's in units of its constant; empty for 0
    penalty : what is minimised beside the losses; it has at most one part, since no theorem covers two together
    loss_bounds : constants of the loss of a row with its weight. Every calibration uses them
    n_weights : number of weights o D, for all scores of the loss
    """

    loss: Loss
    l2: float
    largest_weight: float = 1.0
    beside_mu: float = 0.0
    prior: tuple[float, ...] = ()
    penalty: Penalty = RIDGE
    loss_bounds: LossConstants = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        ProblemFacts.__post_init__(self)
        loss = self.loss.constants
        self._hold(n_weights=loss.n_outputs * self.row_width)
        if self.prior and not (len(self.prior) == self.n_weights and all(abs(x) <= LARGEST_OF_A_PRIOR for x in self.prior)):
            raise ParameterError(f"a prior needs {self.n_weights} weights, each a finite number of at most 2^200 in size.")
        if not 0.0 < self.l2 < math.inf:
            raise ParameterError("alpha must be a positive finite number: the guarantee rests on strong convexity.")
        if not 2.0**-100 <= self.largest_weight <= 2.0**100:
            raise ParameterError("the largest weight of a row must lie between 2^-100 and 2^100.")
        if not 0.0 <= self.beside_mu < math.inf:
            raise ParameterError("beside_mu must be a finite number of at least 0.")
        # Slopes that are clipped to a multiple of 1 / |x| but were bounded before, and rows with a constant: theorem 2 of
        # proofs/centring.md.
        if self.is_centred and not (loss.bounded_slopes and self.intercept > 0.0):
            raise ParameterError(wording("centred rows"))
        self._check_penalty()
        self._hold(loss_bounds=loss.weighted(self.largest_weight))
        if self.penalty.form is not None:
            self._hold(row_norm=self.penalty.row_norm(self.row_bound, self.intercept))

    def _check_penalty(self) -> None:
        """Refuse a penalty that no theorem covers."""
        penalty, bound, loss = self.penalty, self.row_bound, self.loss.constants
        one_score = loss.n_outputs == 1 and not loss.by_length
        # Written so that what is not a number is refused.
        if not 0.0 <= penalty.l1_ratio < 1.0:
            raise ParameterError("l1_ratio must lie in [0, 1): the guarantee rests on the ridge.")
        parts = (penalty.factors, penalty.l1_ratio, penalty.form is not None, penalty.function is not None)
        if sum(map(bool, parts)) > 1:
            raise ParameterError("several ridges, an l1 penalty, a form and a penalty of the user's own exclude each other.")
        if penalty.function is not None and (self.prior or self.is_centred):
            raise ParameterError("a penalty of the user's own is for rows as they are, and for no prior.")
        if penalty.form is not None and not (one_score and may_keep_groups(penalty.form, bound)):
            raise ParameterError("noise of groups needs a form whose blocks lie within groups, and a loss of one margin.")
        if not penalty.factors:
            return
        if not one_score or self.prior:
            raise ParameterError(wording("ridges of single weights"))
        # A centre that is found moves rows of the same bound.
        before = before_moving(bound)
        sizes = groups_of(before, self.intercept)[0] if type(before) is GroupBound else penalty.sizes
        are_in_range = min(penalty.factors) == 1.0 and all(1.0 <= each <= LARGEST_RIDGE_FACTOR for each in penalty.factors)
        is_whole = min(sizes, default=0) > 0 and sum(sizes) == self.n_weights
        if penalty.sizes != sizes or len(penalty.factors) != len(sizes) or not are_in_range or not is_whole:
            raise ParameterError(wording("factors of ridges", n_sizes=len(sizes), largest_ridge_factor=LARGEST_RIDGE_FACTOR))

    @property
    def curved_norm(self) -> float:
        """R of the curvature of a row beside its ridges: the largest root of the sum of x_d^2 / r_d, r their factors."""
        factors = self.penalty.factors
        if not factors or type(self.row_bound) is not GroupBound:
            return self.row_norm
        _, scales, _ = groups_of(self.row_bound, self.intercept)
        return math.sqrt(math.fsum(scale**2 / factor for scale, factor in zip(scales, factors, strict=True))) * _UP

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of noise that rows and loss allow. Several scores allow one ball around all their weights.

        A form allows the images of the shapes of groups. Noise in an objective needs penalties that are differentiable.
        """
        if self.penalty.l1_ratio > 0.0:
            raise ParameterError(NO_OBJECTIVE)
        if self.loss.constants.n_outputs > 1:
            return (Ball(self.n_weights, self.row_norm),)
        shapes = shapes_of(self.row_bound, self.intercept, self.n_features)
        if (form := self.penalty.form) is not None:
            return tuple(shape_of_groups(each, form, self.row_norm) for each in shapes if each.name in ("groups", "linked"))
        # Such a slope grows as the L2 norm of the row falls, so the gradient is bounded in the L2 norm alone.
        return tuple(shape for shape in shapes if shape.name == "ball" or not self.loss.constants.by_length)

    def rounding(self, l2: float) -> GradientRounding:
        """The rounding bound of the gradients at a given total ridge."""
        facts = (self.loss_bounds, self.row_norm, self.n_rows_high, self.row_width, self.summation_depth, l2)
        beside = (self.is_centred, math.hypot(*self.prior), self.intercept, self.penalty)
        return GradientRounding(*facts, *beside, self.summed_norm)

    def objective(self, source: RowSource, l2: float, noise: Weights) -> KeptObjective:
        """The objective over the rows of `source`, with this noise (1, o D) in its linear term, and the pull of the prior.

        More rows than the facts allow would void the rounding bound. But for a constant, (l2 / 2) |w - prior|^2 is
        (l2 / 2) |w|^2 - l2 prior . w: proofs/certificate.md, section 6.
        """
        self.check_source(source)
        linear = noise - l2 * np.array([self.prior]) if self.prior else noise
        return Objective(source, self.loss, self.row_bound, self.intercept, l2, linear, self.largest_weight, self.penalty)


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise with a density: its shape, its law and how large it is.

    Attributes
    ----------
    shape : Shape
    law : "laplace" has density proportional to exp(-scale |b|_K); "gaussian" has deviations at which a row is at most
        1 / scale deviations long
    scale : rate of the Laplace law, or scale of the Gaussian one
    in_objective : whether it is added to the summed objective, whose curvature damps it; otherwise to weights or sums
    norm : root mean square of the L2 norm
    """

    shape: Shape
    law: str
    scale: float
    in_objective: bool = False
    norm: float = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        norm = self.shape.laplace_norm if self.law == "laplace" else self.shape.gaussian_norm
        object.__setattr__(self, "norm", norm(self.scale))

    def bound(self, log_failure: float) -> float:
        """An L2 norm that a draw exceeds with probability at most exp(log_failure)."""
        size = self.shape.laplace_bound if self.law == "laplace" else self.shape.gaussian_bound
        return size(self.scale, log_failure)

    def error(self, log_failure: float) -> float:
        """Largest L2 distance between a computed draw within the bound and a draw of the exact law."""
        if self.law == "laplace":
            return self.shape.laplace_error * self.bound(log_failure)
        return self.shape.gaussian_error(self.scale, log_failure)

    def draw(self, entropy: Entropy) -> Weights:
        """One draw, (1, D)."""
        return (entropy.laplace if self.law == "laplace" else entropy.gaussian)(self.shape, 1, self.scale)


def log_failure(budget: Budget, problem: ProblemFacts) -> float:
    """Logarithm of the probability p with which a draw may exceed its bound.

    (1 + exp(epsilon)) p stays below 2^-199: proofs/seal.md.
    """
    return LOG_FAILURE - problem.set_aside - (0.0 if budget.is_concentrated else budget.amount)


@dataclass(frozen=True, slots=True)
class Plan(Shown):
    """Everything decided before any row is read. Public: safe to print, store and review.

    Attributes
    ----------
    problem : Problem
    budget : Budget
        What the weights cost; charged before a row is read.
    mechanism : str
        "objective", "output", "output-laplace", "gradient" or "none".
    l2 : float
        Total ridge of the sum form: the problem's, raised where the proof needs it.
    noise : Noise or None
        Continuous noise: in the summed objective, or on the weights for output perturbation.
    tolerance : float
        Largest exact gradient norm of the sum form that the noise was calibrated for.
    radius : float
        Largest distance between computed and exact weights before the last step.
    lattice : LatticeNoise or None
        The last step: exact noise on a grid. It covers the inexactness of the steps before (the seal), or is the main noise.
    event : Event
        What a ledger counts for the whole release, including the intervals.
    seal_share : float
        What the seal costs: its share of epsilon, or the relative growth of Gaussian noise that pays for it.
    intervals : IntervalsPlan, InterestPlan or None
        What is released besides the weights, at a budget of its own. The release of this plan does not use it.
    parts : tuple of SumPlan
        What a share of the budget pays for before and after the weights: the `atoms` of columns, a `scaling` of the columns
        in random features, whether `pairs` of columns act together, a `centring` of the rows, whose bound the problem then
        holds with that centre, and a `matching` of the mean of counts, which moves the intercept.
    without : Plan or None
        The plan of the weights without random features, which its part `pairs` may choose: proofs/scales.md, theorem 5.
    reasons : tuple of str
        What `why` says.
    """

    problem: Problem
    budget: Budget
    mechanism: str
    l2: float
    noise: Noise | None
    tolerance: float
    radius: float
    lattice: LatticeNoise | None
    event: Event
    seal_share: float = 0.0
    intervals: Intervals | None = None
    parts: tuple[Part, ...] = ()
    without: Plan | None = None
    reasons: tuple[str, ...] = field(default=(), compare=False, repr=False)

    minimises: ClassVar[bool] = True
    """Whether the weights are those of a minimiser, but for noise and `parts`. Theorems on their loss rest on it."""
    weights_on_grid = property(plan_text.weights_on_grid)
    grid_sentence = plan_text.grid_sentence
    scaling, pairs, matching = map(plan_text.part_named, ("scaling", "pairs", "matching"))
    centring, atoms = map(plan_text.part_named, ("centring", "atoms"))
    perturbs_objective, descent = property(plan_text.perturbs_objective), None

    largest_slope = property(expected_noise.largest_slope)
    added_l2 = property(expected_noise.added_l2)
    alpha = property(expected_noise.alpha)
    noise_norm = property(expected_noise.noise_norm)
    seal_norm = property(expected_noise.seal_norm)
    expected_distance = property(expected_noise.expected_distance)

    to_dict = plan_text.plan_document
    """A JSON form, for people and machines; the number of rows appears as its public bounds."""
    blocks = plan_text.plan_blocks
    why = plan_text.plan_reasons


@dataclass(frozen=True, slots=True)
class Release:
    """What leaves the mechanism: noisy weights and public facts."""

    weights: Weights
    """(k, D)"""
    plan: Plan
    version: str = __version__


def made_by(plan: object, kind: type, mechanism: str | None = None) -> bool:
    """Whether a plan is of this kind and was made by the mechanism of this name.

    The noise that one mechanism needs may be too little for another.
    """
    return type(plan) is kind and getattr(plan, "mechanism", None) == mechanism


ANOTHERS = "this plan was made by another mechanism, which needs other noise. Release it by the mechanism that made it."


def shapes_of(row_bound: RowBound, intercept: float, n_features: int) -> tuple[Shape, ...]:
    """The shapes that hold every clipped row of `n_features` columns, its constant `intercept` appended unless it is 0."""
    constant = int(intercept > 0.0)
    ball = Ball(n_features + constant, norm_with_intercept(row_bound, intercept))
    sizes, scales, linked = groups_of(row_bound, intercept)
    if not sizes:
        return (ball, Cylinder(n_features, row_bound.l2_norm, intercept)) if constant else (ball,)
    # Groups are linked by the constant.
    return (ball, *shapes_of_groups(sizes, scales, linked if constant else (False,) * len(sizes)))


class Mechanism(Protocol):
    """A way to release weights privately. Between its two verbs the caller charges the plan's event."""

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Decide everything from public facts. No data is used."""

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        """Use the rows once and release. The event of the plan was charged before this call."""


def zero_weights(problem: Problem) -> Weights:
    """(1, D) zeros: the start of every solver, and the linear term where there is none."""
    return np.zeros((1, problem.n_weights))


# How far a certified minimiser may lie from the exact one: what the seal has to cover. Proof: proofs/seal.md.


def tolerance_and_radius(problem: Problem, budget: Budget, l2: float, noise: Noise) -> tuple[float, float]:
    """The tolerance, and the largest distance of certified weights from the exact minimiser for noise of the exact law."""
    failure, rounding = log_failure(budget, problem), problem.rounding(l2)
    longest = noise.bound(failure)
    tolerance = planned_tolerance(rounding, longest)
    return tolerance, (tolerance + (noise.error(failure) + rounding.linear_error(longest))) / l2 * _UP
