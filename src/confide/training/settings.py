"""The checked parameters of an estimator: public facts that determine a fit and are known before any row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import Loss, OneMargin
from confide.erm.penalties import StronglyConvex
from confide.erm.row_bounds import LARGEST_BOUND, LEAST_RADIUS, BallBound, Centred, RowBound
from confide.erm.row_sums import RowSum
from confide.erm.transformed_losses import ClippedSlopes
from confide.errors import ParameterError, wording
from confide.features.encoder import Encoder
from confide.features.forms import QuadraticForm
from confide.inference.debiased import Combination
from confide.inference.sampling_design import SamplingDesign
from confide.models.prior import Prior
from confide.parameters import PARAMETERS
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.centring import sum_of_rows
from confide.privacy.matching import whole_slopes
from confide.privacy.scales import sums_by_target
from confide.privacy.shapes import may_keep_groups
from confide.training.alpha import usual_norm_of_rows

WITHOUT_MEAN = wording("weights need a mean")
"""The refusal of a finite population where nothing says how large the least chance of a row was."""


@dataclass(frozen=True, slots=True)
class ScoreLoss:
    """A loss of the score, and the losses that replace it for three or more classes or if the noise is large.

    Attributes
    ----------
    loss : the loss for two classes, or for a regression
    one_vs_rest : for three or more classes, the loss of each class against all others; None if there is none
    softmax : whether three or more classes have one joint loss instead
    only_two : the message with which three or more classes are refused, if they are
    if_noisy : the loss that replaces it if the noise is large, see `plan.STEPS`; None if the user gave the loss by name
    bound_if_noisy : a smaller bound on rows that may come with `if_noisy`, only under Gaussian noise; None if there is none
    thresholds : losses with rising thresholds, of which `auto_loss.loss_at_noise` takes one; empty if it was given
    aim : what their threshold is to balance, a name of `auto_loss.AIMS`
    score_size : a public guess of the size of scores, for the automatic alpha; None for margins
    raises_alpha : whether an alpha that double precision cannot certify is raised instead of refused
    """

    loss: Loss
    one_vs_rest: OneMargin | None = None
    softmax: bool = False
    only_two: str = ""
    if_noisy: Loss | None = None
    bound_if_noisy: RowBound | None = None
    thresholds: tuple[Loss, ...] = ()
    aim: str = ""
    score_size: float | None = None
    raises_alpha: bool = False

    from_sums: ClassVar[bool] = False
    """Whether noisy sums over rows may be released in place of a minimiser."""
    with_square: ClassVar[bool] = False

    @property
    def of_scores(self) -> ScoreLoss | None:
        """The loss of the score, if there is one."""
        return self

    def for_classes(self, n_classes: int) -> ScoreLoss:
        """The loss for this number of classes; 0 for a regression."""
        if n_classes <= 2:
            return self
        if self.softmax:
            return replace(self, loss=Softmax(n_classes), if_noisy=None)
        if self.one_vs_rest is None:
            raise ParameterError(self.only_two or "This loss is for two classes, and the target is multiclass.")
        return replace(self, loss=OneVsRest(self.one_vs_rest, n_classes), if_noisy=None)


@dataclass(frozen=True, slots=True)
class SquaredError:
    """Least squares, from noisy sums over rows or from a perturbed objective.

    Attributes
    ----------
    target_bound : targets are clipped to it in absolute value
    with_square : whether the sum of squared targets is released too, for intervals
    of_scores : squared losses with clipped slopes, which a perturbed objective minimises; None for noisy sums alone
    """

    target_bound: float
    with_square: bool
    of_scores: ScoreLoss | None = None

    from_sums: ClassVar[bool] = True

    def for_classes(self, _: int) -> SquaredError:
        """The same: these are for numbers."""
        return self


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked parameters of an estimator: public facts, known before any row is read.

    Attributes
    ----------
    minimised : what a fit minimises
    budget : the privacy budget
    mechanism : a name of `auto_mechanism.MECHANISM_NAMES`, or "sufficient-statistics"
    alpha : ridge of the mean objective, or None for the automatic one
    row_bound, intercept : the bound on rows, and the constant that is appended to each row
    usual_norm : a public guess of the L2 norm of a typical row without its intercept; None for what the bound on rows says
    has_curves : whether the effect of a number may be a curve, with three knots or more
    ridges_of_curves : of `confide.training.alpha`; not empty where there are curves
    random_features : whether rows are random features of a kernel, and nothing else
    appending : the encoder whose rows random features are appended to, or None
    without : the settings of the same fit without its random features, which a part of the budget may choose; or None
    finding : the encoder with slots for atoms that a part of the budget may find, or None
    neighbours : which data sets the guarantee calls neighbours
    n_rows_bounds : (low, high), or None if the number of rows is public
    rows_per_person : the largest number of rows that one person contributed
    largest_sample_weight : the declared cap on a row's own weight
    class_weight : pairs of class and public weight, or None
    inference_share : part of the budget that is kept for intervals, 0 for none, or "auto"
    centre : whether a part of the budget may find the middle of the rows
    match_mean : whether a part of the budget may make predicted counts right in the mean
    beside_mu : explained in `Problem`
    monotone : pairs of a column and "up" or "down", the direction in which its released effect is made monotone
    prior : public weights towards which the ridge pulls; None for 0
    l1_ratio : share of the l1 penalty in the whole strength `alpha`, in [0, 1)
    has_schema : whether rows are encoded by a schema
    penalty : the quadratic form in whose norm rows and weights are; None for |w|^2
    bound_before_penalty : the bound on rows before they are brought to that norm; None without a form
    keeps_groups : whether rows stay as they are, with noise of the shape of their groups, and the form is that of the fit
    own_penalty : a strongly convex penalty of the user's own; None for a quadratic one
    target_shift : the public number that is subtracted from all targets, and added to the released intercept
    set_aside : explained in `Problem`, for a release that is one of several
    interest : the coefficients for which a part of the budget is kept
    risk_differences : whether a part of it is kept for differences of risks too
    given : the checked value of each parameter by its name, for what uses it as it is (`value`)
    appends_features : whether random features are appended to rows, beside which no atoms and noisy gradients are taken
    n_encoded : how many encoded columns stand beside random features of all columns; 0 where there are no such features
    has_intervals : whether a part of the budget is kept for intervals
    may_centre : whether rows may be moved by a centre
    may_scale : whether the columns of random features may get scales
    largest_weight : the largest weight that a row can have: its own weight times that of its class
    """

    minimised: ScoreLoss | SquaredError
    budget: Budget
    mechanism: str
    alpha: float | None
    row_bound: RowBound
    intercept: float
    neighbours: Neighbours
    n_rows_bounds: tuple[int, int] | None
    rows_per_person: int = 1
    largest_sample_weight: float = 1.0
    class_weight: tuple[tuple[Any, float], ...] | None = None
    inference_share: float | str = 0.0
    target_shift: float = 0.0
    set_aside: float = 0.0
    usual_norm: float | None = None
    has_curves: bool = False
    ridges_of_curves: tuple[float, ...] = ()
    random_features: bool = False
    appending: Encoder | None = None
    without: Settings | None = None
    finding: Encoder | None = None
    monotone: tuple[tuple[str, str], ...] = ()
    centre: bool = False
    match_mean: bool = False
    beside_mu: float = 0.0
    prior: Prior | None = None
    l1_ratio: float = 0.0
    has_schema: bool = False
    penalty: QuadraticForm | None = None
    bound_before_penalty: RowBound | None = None
    own_penalty: StronglyConvex | None = None
    keeps_groups: bool = False
    interest: tuple[Combination, ...] = ()
    risk_differences: bool = False
    given: tuple[tuple[str, object], ...] = ()
    appends_features: bool = field(init=False, repr=False, compare=False)
    n_encoded: int = field(init=False, repr=False, compare=False)
    has_intervals: bool = field(init=False, repr=False, compare=False)
    may_centre: bool = field(init=False, repr=False, compare=False)
    may_scale: bool = field(init=False, repr=False, compare=False)
    largest_weight: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        of_class = max(dict(self.class_weight or ()).values(), default=1.0)
        object.__setattr__(self, "has_curves", self.has_curves or bool(self.ridges_of_curves))
        object.__setattr__(self, "has_intervals", self.inference_share != 0.0 or bool(self.interest))
        features = None if self.appending is None else self.appending.schema.random_features
        of_all = features is not None and features.columns == 0
        object.__setattr__(self, "appends_features", of_all or (features is not None and bool(features.scales)))
        object.__setattr__(self, "n_encoded", self.appending.n_features if self.appending is not None and of_all else 0)
        # The weights of a prior are those of rows as they are, and a plan needs bounds on them before a centre is known.
        object.__setattr__(self, "may_centre", self.centre and self.prior is None)
        # Those of a prior are the scales of its own features, and a penalty has a map of its own.
        of_columns = features is not None and not features.scales and self.prior is None
        # Several fits of one release would have scales of their own, and their weights would not be of the same features.
        may_scale = of_columns and self.penalty is None and self.own_penalty is None and self.set_aside == 0.0
        object.__setattr__(self, "may_scale", may_scale)
        object.__setattr__(self, "largest_weight", self.largest_sample_weight * of_class)

    def value(self, name: str) -> Any:
        """The checked value of a parameter of the table."""
        return dict(self.given).get(name, PARAMETERS[name].default)

    def sampling_design(self, n_rows: int, *, has_weights: bool = False) -> SamplingDesign:
        """What is declared about a sample of so many rows, at least, whose rows may have weights of their own.

        Where no design effect is declared, rows of one person are supposed to depend on each other in any way.
        """
        largest, effect = self.largest_sample_weight, self.value("cluster_effect")
        mean, size = self.value("mean_sample_weight"), self.value("population_size")
        if size is not None and size < n_rows:
            raise ParameterError("population_size is below the number of rows; it must be the size of the whole population.")
        if size is not None and mean is None and (has_weights or largest != 1.0):
            raise ParameterError(WITHOUT_MEAN)
        return SamplingDesign(
            largest_weight=largest,
            mean_weight=mean,
            has_weights=mean is not None or largest != 1.0,
            cluster_effect=float(self.rows_per_person) if effect is None else effect,
            rows_per_person=self.rows_per_person,
            population_size=size,
            n_rows=1 if size is None else n_rows,
        )

    @property
    def n_slots(self) -> int:
        """How many columns are slots for atoms, or random features of few columns beside them."""
        features = None if self.appending is None or self.appends_features else self.appending.schema.random_features
        slots = 0 if self.finding is None else self.finding.slots * len(self.finding.sought)
        return slots + (0 if features is None else features.number)

    @property
    def score_loss(self) -> ScoreLoss:
        """The loss of the score that is minimised. Only noisy sums of least squares have none."""
        loss = self.minimised.of_scores
        assert loss is not None  # noqa: S101 - noisy sums are planned apart
        return loss

    def weights_of_prior(self, n_scores: int, n_features: int) -> tuple[float, ...]:
        """The prior as weights of a problem with so many scores and columns; empty if there is no prior."""
        if self.prior is None:
            return ()
        weights = self.prior.less(self.target_shift).weights(n_scores, n_features, self.intercept)
        if self.penalty is None:
            return weights
        # The constant of the intercept comes after the columns of the form and stays as it is.
        return tuple(self.penalty.weights_in_norm(np.array(weights).reshape(n_scores, -1)).ravel().tolist())

    def for_classes(self, n_classes: int) -> Settings:
        """The settings for this number of classes; 0 for a regression."""
        return replace(self, minimised=self.minimised.for_classes(n_classes)) if n_classes > 2 else self

    def row_sums(self, n_classes: int) -> tuple[RowSum, ...]:
        """The sums of a loss over rows that a plan may ask for, at any budget and any number of rows.

        Empty if a plan may ask for sums that are none of a loss. `n_classes` is 0 for a regression.
        """
        losses = self.minimised.for_classes(n_classes).of_scores
        # Unless the objective was asked for by name, a plan may take noisy sums, which are none of a loss.
        if losses is None or (self.minimised.from_sums and self.mechanism != "objective"):
            return ()
        pairs = [(losses.loss, self.row_bound)]
        pairs += [(loss, self.row_bound) for loss in losses.thresholds]
        if losses.if_noisy is not None:
            pairs += [(losses.if_noisy, bound) for bound in (self.row_bound, losses.bound_if_noisy) if bound]
        of_losses = [RowSum(loss, bound, self.intercept, 2, self.largest_weight) for loss, bound in pairs]
        sums = list(of_losses)
        if self.may_centre and losses.if_noisy and (moved := around_levels(self.row_bound, losses.bound_if_noisy)):
            sums.append(replace(of_losses[-1], intercept=self.intercept / moved.magnification))
        if self.mechanism in ("auto", "gradient"):
            # The limit of the slopes, like the width of a joint, follows from facts that a party of several does not know.
            clipped = ((row_sum, ClippedSlopes(row_sum.loss, row_sum.loss.constants.lipschitz)) for row_sum in of_losses)
            sums += [replace(row_sum, loss=loss, order=1) for row_sum, loss in clipped]
        if self.match_mean and losses.loss.constants.is_count:
            sums += [replace(row_sum, loss=whole_slopes(losses.loss)) for row_sum in of_losses[:1]]
        if self.appending is not None and self.may_scale and n_classes <= 2:
            bound = losses.loss.constants.target_bound
            sums.append(sums_by_target(self.appending.row_bound, bound, self.largest_weight))
        bounds = dict.fromkeys(row_sum.row_bound for row_sum in of_losses) if self.centre else {}
        return (*sums, *(sum_of_rows(bound, self.neighbours, self.largest_weight) for bound in bounds))


def around_levels(groups: RowBound, ball: RowBound | None) -> Centred | None:
    """The bound that moves rows by the middle of their levels and knots; None where it moves none, or too far.

    A row has one level of a category, and lies between two knots of a curve. So k columns of it add up to their scale, and
    all rows lie around a k-th of it in each of them. Of the squared norm of a typical row, which is what the ball allows,
    the middle has at most about half, and moved rows have the rest.
    """
    if type(groups) is not GroupBound or type(ball) is not BallBound:
        return None
    parts = [scale / size if size > 1 else 0.0 for size, scale in zip(groups.sizes, groups.scales, strict=True)]
    middle = tuple(np.repeat(parts, groups.sizes).tolist())
    left = 1.0 - math.fsum(entry**2 for entry in middle) / ball.norm**2
    return Centred(ball, middle, math.sqrt(left) * ball.norm) if LEAST_RADIUS**2 <= left < 1.0 else None


# The settings of a fit with a penalty: of rows in the norm of a quadratic form, or with a function of the user's.

_NO_INTERVALS = "there are no intervals with a penalty of your own. Leave out inference_share or intervals."


def with_own_penalty(settings: Settings, penalty: StronglyConvex) -> Settings:
    """The same settings with a strongly convex penalty of the user's own in place of the ridge.

    Noise is in the objective or on the weights, and rows are not moved by a centre.
    """
    minimised = settings.minimised
    if settings.has_intervals or minimised.with_square:
        raise ParameterError(_NO_INTERVALS)
    if settings.prior is not None:
        raise ParameterError("a prior has the ridge |w|^2, and penalty is another one. Leave out prior, or penalty.")
    if settings.mechanism in ("gradient", "sufficient-statistics"):
        raise ParameterError(wording("no own penalty", mechanism=settings.mechanism))
    if minimised.of_scores is None:
        raise ParameterError("least squares with a penalty of your own needs a finite target_bound.")
    return replace(settings, minimised=minimised.of_scores, own_penalty=penalty, centre=False)


def penalised(settings: Settings, form: QuadraticForm, encoder: Encoder | None, *, of_two_classes: bool = False) -> Settings:
    """The same settings for rows in the norm of a form: their bound, and the norm of a typical one.

    Two classes under a pure budget keep rows as they are, and the noise has the shape of their groups.
    Where the noise is large, rows may be shortened to the norm of a typical one, as without a form. With a prior the ridge
    pulls towards it in the same norm (`Settings.weights_of_prior`).
    """
    minimised, own = settings.minimised, settings.row_bound
    if settings.has_intervals or minimised.with_square:
        raise ParameterError(_NO_INTERVALS)
    if encoder is None and not isinstance(own, BallBound):
        raise ParameterError("a penalty needs row_norm as a number, or a schema.")
    appended = None if encoder is None else encoder.appended
    keeps_groups = of_two_classes and encoder is not None and _keeps_groups(settings, form, encoder)
    if not keeps_groups:
        norm = form.longest(own if encoder is None else encoder.row_bound)
        bound = BallBound(norm) if appended is None else appended.bound_for(norm)
        if math.isfinite(norm) and not norm <= LARGEST_BOUND:
            raise ParameterError("the penalty makes rows too long. Raise its strengths.")
        settings = replace(settings, row_bound=bound)
    usual = None if encoder is None else usual_norm_in(form, encoder)
    if isinstance(minimised, ScoreLoss) and minimised.bound_if_noisy is not None and usual is not None:
        # With random features beside the columns, rows to be predicted could not be shortened as in the fit.
        may_shorten = not keeps_groups and appended is None
        shorter = BallBound(min(usual, settings.row_bound.l2_norm)) if may_shorten else None
        minimised = replace(minimised, bound_if_noisy=shorter)
    return replace(
        settings, minimised=minimised, usual_norm=usual, penalty=form, bound_before_penalty=own, keeps_groups=keeps_groups
    )


def _keeps_groups(settings: Settings, form: QuadraticForm, encoder: Encoder) -> bool:
    """Whether rows stay as they are: under a pure budget the noise of groups of columns is smaller than that of a ball."""
    is_pure = settings.budget.is_pure and settings.budget.is_private
    is_plain = encoder.appended is None and settings.row_bound == encoder.row_bound
    return is_pure and is_plain and may_keep_groups(form, settings.row_bound)


def usual_norm_in(form: QuadraticForm, encoder: Encoder) -> float:
    """The norm of a typical encoded row with this form, without the intercept, from public facts."""
    appended = encoder.appended
    features = 0.0 if appended is None else appended.feature_norm**2
    plain = usual_norm_of_rows(encoder) ** 2 - features
    unchanged = QuadraticForm.of(np.ones(encoder.n_features))
    ratio = _typical_square(form, encoder) / _typical_square(unchanged, encoder)
    return math.sqrt(plain * ratio + features)


def _typical_square(form: QuadraticForm, encoder: Encoder) -> float:
    """The mean squared norm of a row whose entries are spread evenly over levels, and between knots."""
    of_groups = []
    for group, factors, scale in zip(encoder.groups, encoder.factors, encoder.row_bound.scales, strict=True):
        squares, encoding = form.column_squares[group.start : group.start + group.size], factors[0]
        if len(factors) > 1 or group.size == 1 or not encoding.is_number or not encoding.n_hats:
            # As `usual_norm` has it for a single column.
            square = float(squares.mean()) / (3.0 if group.size == 1 else 1.0)
        else:
            hats = form.rows(np.eye(form.n_features)[group.start : group.start + encoding.n_hats])
            left, right = hats[:-1], hats[1:]
            # At a share f of the way between two knots a row is (1 - f) of one hat and f of the next, and f is uniform.
            pairs = (left * left).sum(axis=1) + (right * right).sum(axis=1) + (left * right).sum(axis=1)
            square = float(pairs.mean()) / 3.0
        of_groups.append(scale**2 * square)
    return math.fsum(of_groups)
