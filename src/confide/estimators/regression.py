"""Private regression: what all linear regressors have in common; ridge regression, Huber's loss, quantiles, and counts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import r2_score

from confide.array_types import Array
from confide.erm.row_bounds import RowBound
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.errors import ParameterError, checked_flag, is_text, wording
from confide.estimators.linear_model import PrivateLinearModel
from confide.estimators.parameters import (
    CountParameters,
    DesignParameters,
    IntervalsParameter,
    PenaltyParameter,
    RegressorMixin,
    SampleWeightParameter,
    StraightLineParameters,
    TargetParameter,
    estimator,
)
from confide.features.encoder import Encoder
from confide.intake import parameters
from confide.intake.arrays import weights_of
from confide.intake.rows import exposure_of, with_target
from confide.intake.targets import Numbers, numbers_of
from confide.models.model import Link, ReleasedModel
from confide.models.prior import USUAL_EFFECT_ON_COUNTS, USUAL_SHARE
from confide.models.scores import LinearModel
from confide.parameters import checked, checked_choice
from confide.privacy.budgets import Neighbours
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.auto_loss import MECHANISMS_OF_LEAST_SQUARES, at_shares, is_automatic, squared_error, squared_losses
from confide.training.plan import AnyPlan, make_plan
from confide.training.settings import ScoreLoss, SquaredError

LOSSES_OF_MEANS = ("poisson", "gamma", "tweedie", "negative_binomial")
"""Losses of counts and costs, whose mean is the exponential of the score."""


class LinearRegressor(TargetParameter, RegressorMixin, PrivateLinearModel):
    """A linear regressor, released under differential privacy. A subclass says what it minimises."""

    intercept_: float

    def plan(self, n_rows: int | None = None, n_features: int | None = None) -> AnyPlan:
        """Show everything that a fit would decide from public facts. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int or None
            Number of rows, at least 1. Not used if `n_rows_bounds` is given.
        n_features : int or None
            Number of columns of X, at least 1. With a schema leave it out: the schema has the number.

        Returns
        -------
        Plan or StatisticsPlan
            Budget, alpha, mechanism and noise. It prints.

        Raises
        ------
        ParameterError
            If a parameter cannot be used, or there is no private fit with these parameters.
        """
        return self._plan(n_rows, n_features)

    def predict(self, X: Any, exposure: Any = None) -> Array:
        """Predict the target of each row, (n,), in its own unit. Rows are clipped to the same bound as in the fit.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.
        exposure : number, (n,) numbers or None
            For models of counts with an exposure: the expected count is for this exposure, which is not clipped. None means
            1, so that predictions are rates, also where X has the column of exposures.

        Returns
        -------
        array (n,) of float64
            In the unit of the target.

        Raises
        ------
        InputError
            If the rows cannot be used. The message shows no value from them.
        """
        blocks = self._blocks_to_score(X)
        model = LinearModel(np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_), self._row_bound)
        means = self._link.mean(model.scores(blocks))
        return means if exposure is None else means * self._target(self._encoder).checked_exposure(exposure, len(means))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> float:
        """Compute R^2 on the given rows. Targets are not clipped here. On private rows it is outside every guarantee.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.
        y : (n,) numbers, or None
            Targets, in their own unit; None for a frame that has the schema's as a column.
        sample_weight : (n,) numbers that are not negative, or None
            The weight of each row in the mean.
        exposure : (n,) numbers or None
            Of counts, as for `fit`; None if X has the column that the schema names.

        Returns
        -------
        float, at most 1
            R^2: 1 for perfect predictions, 0 for those of the mean.

        Raises
        ------
        InputError, ParameterError
            If rows, targets or weights cannot be used. The message shows no value from them.
        """
        X, y = with_target(X, y, self.schema)
        target, predicted = self._target(self._encoder), self.predict(X)
        if target.exposure is not None or exposure is not None:
            predicted *= target.checked_exposure(exposure_of(X, target.exposure, exposure), len(predicted))
        targets, weights = numbers_of(y, len(predicted)), weights_of(sample_weight, len(predicted))
        return float(r2_score(targets, predicted, sample_weight=weights))

    def _target(self, encoder: Encoder | None) -> Numbers:
        target, ends = None if encoder is None else encoder.schema.target, (self.target_low, self.target_high)
        counts = self._has_counts
        numbers = parameters.checked_target_range(self.target_bound, ends, target, counts=counts, may_shift=self._may_shift)
        exposure = parameters.checked_exposure(getattr(self, "exposure_range", None), target, counts=counts)
        numbers = numbers if exposure is None else numbers.per(exposure, in_units=bool(self.fit_intercept))
        return numbers.around_usual() if self.fit_intercept and self._named_loss in LOSSES_OF_MEANS[1:] else numbers

    def _units_of_effects(self, encoder: Encoder | None) -> tuple[float, Callable[[float], float]]:
        return USUAL_EFFECT_ON_COUNTS if self._has_counts else USUAL_SHARE * self._target(encoder).bound, float

    def _shift_of_targets(self, encoder: Encoder | None) -> float:
        target = self._target(encoder)
        return target.shift - math.log(target.unit)

    @property
    def _may_shift(self) -> bool:
        """Whether a model of shifted targets is one of the targets, with another intercept."""
        return bool(checked("fit_intercept", self.fit_intercept)) and not self._has_counts

    @property
    def _has_counts(self) -> bool:
        """Whether targets are counts or costs, whose mean is the exponential of the score."""
        return self._named_loss in LOSSES_OF_MEANS

    @property
    def _named_loss(self) -> str:
        """The loss that has a name, or ""."""
        return loss if is_text(loss := getattr(self, "loss", "")) else ""

    @property
    def _link(self) -> Link:
        return Link("exponential" if self._has_counts else "identity")

    def _hold(self, released: ReleasedModel) -> None:
        super()._hold(released)
        self.coef_, self.intercept_ = released.scoring.coef[0].copy(), float(released.scoring.intercept[0])

    def _noise_hides_small_data(self) -> bool:
        """Whether the noise is large beside the sums over 200 standardised rows of 10 columns. Decided from public facts.

        scikit-learn's checks test the score of regressors on such a data set, on which sums are at most 200.
        """
        if self.schema is not None or self._has_own_loss:
            return self.schema is None  # no plan needs to be made: columns are others, or a loss would be checked anew
        try:
            plan = make_plan(self._settings(None), 10, 200)
        except ParameterError:
            return False
        if isinstance(plan, StatisticsPlan):
            return bool(max(plan.product_deviation, plan.target_deviation) > 2.0)
        return bool(plan.noise_norm * plan.l2 > math.sqrt(plan.problem.n_weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._noise_hides_small_data()
        tags.target_tags.positive_only = self._has_counts
        return tags


@estimator
class Ridge(DesignParameters, StraightLineParameters, PenaltyParameter, LinearRegressor):
    """Ridge regression (least squares with a ridge), released under differential privacy.

    Minimises mean (y - w . x)^2 / 2 + alpha / 2 |w|^2 over clipped rows and targets, or nearly so. The intercept is a
    penalised coordinate of w: a constant is appended to every row. There are two mechanisms:

    - "objective" minimises the objective with random noise in it. The slope of the loss of a row is clipped to a threshold,
      from a tenth of `target_bound` to all of it: the more noise, the less. It follows from public facts alone (see
      `HuberRegressor`), and the plan and the guarantee show it. Up to it the loss is the squared error, and beyond it a
      residual pulls no harder.
    - "sufficient-statistics" computes the weights from X^T X and X^T y, which are released with exact noise. That is the
      squared error itself. The noise is larger, and under pure privacy it grows with the square of the number of columns.

    Parameters
    ----------
    budget : float, PureDP, ApproxDP or ZCDP, default 1.0
        What the fit may cost. A number is the epsilon of pure differential privacy. ``float("inf")`` gives the model without
        privacy, and its guarantee says so.
    alpha : "auto" or float, default "auto"
        Ridge of the mean objective, positive and at most 1e12. alpha times the number of rows is the alpha of scikit-learn's
        Ridge. "auto" depends only on public facts, namely on the size of the noise; without privacy it is 1 in
        scikit-learn's sense.
    schema : Schema or None
        Public knowledge about raw columns. With a schema, X is a pandas or Polars frame, and the bound on rows follows from
        the schema. It may have a target of numbers with their bounds; `y` is an array of numbers in any case.
    mechanism : {"auto", "objective", "sufficient-statistics"}, default "auto"
        "auto" is "objective". It is "sufficient-statistics" if intervals are asked for, if the noise on the sums hides next
        to nothing, and without privacy. This is decided from public facts alone, and the plan shows it.
    intervals : bool, default False
        Whether intervals of coefficients can be computed (`summary`, `conf_int`). Then the weights come from noisy sums, and
        the sum of squared targets is released too. With replace-one neighbours and Gaussian noise that sum costs nothing
        more; otherwise it brings a little more noise. See `plan`. With a column of persons they need "add-or-remove-one",
        under which the number of the rows that count is released.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_ : array (n_coefficients,)
        Weights; one for each column of X, or with a schema for each encoded column.
    intercept_ : float
        Added to the predictions; 0 without an intercept.
    coefficient_names_ : array (n_coefficients,) of str
        Names of the columns of X, or of the encoded columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; missing if X has none.
    alpha_ : float
        The alpha that was used. It is a public number.
    guarantee_ : Guarantee
        What is promised, and the assumptions it rests on.

    Notes
    -----
    Guarantee: `coef_`, `intercept_` and what is released for intervals are together differentially private at the budget,
    for the stated neighbour relation and under the assumptions that `guarantee_.statement()` lists. Nothing else that
    depends on rows is kept.

    Sources: Y.-X. Wang, Revisiting differentially private linear regression, UAI 2018, for the sums. The noise and the ridge
    are different here; see the proof page confide/privacy/proofs/sufficient_statistics.md. For the objective see
    `HuberRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(10_000, 2))
    >>> model = Ridge(budget=1.0, target_bound=0.5).fit(X, X @ [0.5, -0.5])
    >>> bool(model.score(X, X @ [0.5, -0.5]) > 0.9)
    True
    """

    intervals: bool = False
    intercept_scaling: float = 1.0

    _accepts_sparse = False
    _mechanisms = MECHANISMS_OF_LEAST_SQUARES

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on the rows, charge the ledger, and release the model.

        Parameters
        ----------
        X : array or frame (n, d), or rows from `open_rows`
            Real numbers; with a schema, a pandas or Polars frame of raw columns. Rows from `open_rows` need a schema with a
            target of numbers, or the column of their targets: ``open_rows(..., target=column)``.
        y : (n,) real numbers, or None
            None for rows from `open_rows`, which bring their targets, and for a frame that has the schema's as a column.

        Returns
        -------
        self

        Raises
        ------
        ParameterError, InputError
            If a parameter or the rows cannot be used. Nothing was charged.
        BudgetExceeded
            If the ledger has too little left. Nothing was charged, and no row was used.
        """
        return self._train(X, y)

    def _minimised(self, encoder: Encoder | None) -> SquaredError:
        has_intervals = checked_flag("intervals", self.intervals)
        has_persons = encoder is not None and encoder.schema.person is not None
        # The number of rows is public, but not the number of those that a cap on the rows of a person leaves.
        if has_intervals and has_persons and Neighbours.parse(self.neighbours) is Neighbours.REPLACE_ONE:
            raise ParameterError(wording("intervals need counted rows"))
        return squared_error(self._target(encoder).bound, with_square=has_intervals)

    def _why_no_intervals(self) -> str:
        return "intervals need the sum of squared targets: set intervals=True, and fit again."


# Private linear regression with robust losses and with a loss for counts, by objective or output perturbation.

SHARE_OF_RESIDUALS = 0.1
"""The threshold of residuals that None means, as a share of `target_bound`."""
_SIZE_OF_LOG_COUNTS = 2.0
"""A public guess of the size of the scores of counts, which are logarithms. Half of it was worse on nearly all data of
benchmarks/thresholds.py, and one and a half times of it equally good."""
_CONSTANT_OF_COUNTS = 0.5
"""The automatic constant of counts beside the longest row, if that is more than 1. The score of a count is far from 0 where
its mean is far from 1, and the ridge should not draw it there. On admissions to hospital, which are rare, the deviance
explained at (0.5, 1e-6) is .026 with a constant of 1 and .051 with one of 2 (rows of norm 3.5)."""


class LossRegressor(SampleWeightParameter, LinearRegressor):
    """A linear regressor that minimises a mean loss plus a ridge. A subclass says which loss."""

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, *, exposure: ArrayLike | None = None
    ) -> Self:
        """Train on the rows, charge the ledger, and release the model.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d), or rows from `open_rows`
            Real numbers; with a schema, a frame of raw columns. Rows from `open_rows` need a schema with a target of
            numbers, or the column of their targets: ``open_rows(..., target=column)``.
        y : (n,) real numbers, or None
            None for rows from `open_rows`, which bring their targets, and for a frame that has the schema's as a column.
        sample_weight : (n,) numbers from 0 to `max_sample_weight`, or None
            How much each row counts; None means 1 each. Weights are part of the data: the weight of a row must be made from
            that row alone.
        exposure : (n,) numbers above 0, or None
            Of counts: the time, the number of persons or the area that each was counted in. It needs `exposure_range`; a
            schema that names its column reads it from X.

        Returns
        -------
        self

        Raises
        ------
        ParameterError, InputError
            If a parameter or the rows cannot be used. Nothing was charged.
        BudgetExceeded
            If the ledger has too little left. Nothing was charged, and no row was used.
        """
        return self._train(X, y, sample_weight, exposure)

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        target = self._target(encoder)
        # For counts the scores are logarithms of means, so they are of about the same size in any units of the target.
        score_size = _SIZE_OF_LOG_COUNTS if self._has_counts else target.bound
        return replace(self._loss(target), score_size=score_size, raises_alpha=self._has_counts)

    def _constant_of(self, row_bound: RowBound) -> Any:
        if not is_automatic(self.intercept_scaling):
            return self.intercept_scaling
        longest = row_bound.l2_norm if self._has_counts and math.isfinite(row_bound.l2_norm) else 1.0
        return max(1.0, _CONSTANT_OF_COUNTS * longest)

    @abstractmethod
    def _loss(self, target: Numbers) -> ScoreLoss:
        """The loss from checked parameters."""

    def _why_no_intervals(self) -> str:
        if "inference_share" not in self.get_params(deep=False):
            return f"{type(self).__name__} has no intervals in this version; use HuberRegressor or Ridge."
        return super()._why_no_intervals()


def squared_loss(name: str, target_bound: float, threshold: Any) -> ScoreLoss:
    """Half the squared residual with a clipped derivative: at the threshold, or at a threshold that grows for short rows."""
    by_length = name == "clipped_squared"
    if is_automatic(threshold):
        return squared_losses(target_bound, aim="robust", by_length=by_length)
    given = SHARE_OF_RESIDUALS * target_bound if threshold is None else threshold
    return ScoreLoss(SquaredLoss(target_bound, checked("threshold", given), by_length=by_length))


def mean_loss(model: Any, target: Numbers, share: float | None = None) -> ScoreLoss:
    """The loss for counts or costs that a model names. The threshold None means this share of the bound, or 1."""
    name, own, threshold = model._named_loss, target.exposure, model.threshold
    low, high = (1.0, 1.0) if own is None else (own.low, own.high)
    if not math.isfinite(target.bound):
        raise ParameterError(wording("bound of counts"))
    if name == "gamma" and not target.low > 0.0:
        raise ParameterError(wording("gamma of zeros"))
    power = {"gamma": 2.0, "tweedie": checked("power", getattr(model, "power", 1.5))}.get(name, 1.0)
    dispersion = checked("dispersion", model.dispersion) if name == "negative_binomial" else 0.0
    exposure = None if own is None and target.unit == 1.0 else (low / target.unit, high / target.unit)

    def loss_at(limit: float) -> MeanLoss:
        return MeanLoss(target.bound, limit, exposure, power, dispersion, target.low if power > 1.0 else 0.0)

    # The slope of the largest target where its mean is that of scores of 0.
    usual = 1.0 if name == "poisson" else 0.5 * (low + high) / target.unit
    steepest = target.bound * usual ** (1.0 - power) / (1.0 + dispersion * usual)
    if is_automatic(threshold):
        return at_shares(steepest, "counts" if name == "poisson" else "costs", loss_at)
    of_none = usual ** (2.0 - power) if share is None else share * steepest
    return ScoreLoss(loss_at(checked("threshold", of_none if threshold is None else threshold)))


@estimator
class HuberRegressor(IntervalsParameter, StraightLineParameters, PenaltyParameter, LossRegressor):
    """Linear regression that is robust to outliers, released under differential privacy.

    Minimises mean loss(w . x - y) + alpha / 2 |w|^2 over clipped rows and targets, perturbed so that the released weights
    are differentially private. The loss is half the squared residual, and linear where its derivative would leave
    [-threshold, threshold]. So the noise grows with the threshold, not with the largest residual. The intercept is a
    penalised coordinate of w: a constant is appended to every row.

    Parameters
    ----------
    threshold : "auto", float or None, default "auto"
        Residual beyond which the influence of a row no longer grows; positive, in the units of the target. It is public and
        never learned. A larger threshold is closer to least squares and brings more noise. "auto" is a tenth to a fifth of
        `target_bound`: the more noise, the less. It depends on public facts alone (`target_bound`, number of rows and of
        features, budget), and the plan and the guarantee show it. None means a tenth of `target_bound`.
    loss : {"huber", "clipped_squared"}, default "huber"
        With "clipped_squared", the threshold of a row of norm r is threshold R / r, where R is the largest norm that a row
        with its intercept can have. That is closer to least squares if rows are much shorter than their bound, and the noise
        has the same size; but the noise cannot be shaped by the columns, and there are no intervals.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_, intercept_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `Ridge`.

    Notes
    -----
    Guarantee: as for `LogisticRegression`. Residuals can be positive or negative, so Gaussian noise costs more of the budget
    here than for the logistic loss, and the curvature of the loss costs a part of it too.

    scikit-learn's estimator of this name also fits a scale and divides residuals by it; here the threshold is absolute.

    Sources: Chaudhuri, Monteleoni and Sarwate, Differentially Private Empirical Risk Minimization, JMLR 2011; Redberg,
    Koskela and Wang, Improving the Privacy and Practicality of Objective Perturbation, NeurIPS 2023, for the clipped square;
    proofs in confide/privacy/proofs/target_losses.md.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(10_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> y[:500] = 1.0  # gross errors
    >>> model = HuberRegressor(budget=1.0, target_bound=1.0).fit(X, y)
    >>> bool(model.score(X[500:], y[500:]) > 0.9)
    True
    """

    threshold: Literal["auto"] | float | None = "auto"
    loss: Literal["huber", "clipped_squared"] = "huber"

    def _loss(self, target: Numbers) -> ScoreLoss:
        return squared_loss(checked_choice("loss", self.loss, ("huber", "clipped_squared")), target.bound, self.threshold)


@estimator
class PoissonRegressor(CountParameters, IntervalsParameter, StraightLineParameters, PenaltyParameter, LossRegressor):
    """Regression of counts whose mean is exp(w . x), released under differential privacy.

    Minimises mean loss + alpha / 2 |w|^2 over clipped rows and counts, perturbed so that the released weights are
    differentially private. The loss of a count y at score s is exp(s) - y s, and linear where its derivative exp(s) - y
    would leave [-threshold, threshold]. The intercept is a penalised coordinate of w: a constant is appended to every row.

    Parameters
    ----------
    target_bound : float or None, default None
        Required by `fit` and `plan` unless the schema has a target of numbers; positive and finite. Every count is clipped
        to [0, target_bound], or to the range in the schema; the bound is never inferred from the counts. The ridge grows
        with it: an `alpha` that the proof or double precision does not allow is raised, and `guarantee_` states by how much.
    threshold : "auto" or float, default "auto"
        Difference between a count and its mean beyond which the influence of a row no longer grows; positive. It is public
        and never learned. The noise grows with it; a small threshold draws predictions towards the median, below the mean.
        "auto" is about half of `target_bound`: a little less where noise is large, and all of it without noise. It depends
        on public facts alone (`target_bound`, number of rows and of features, budget), and the plan and the guarantee show
        it.
    intercept_scaling : "auto" or float, default "auto"
        The constant that is appended to every clipped row, positive. A larger constant shrinks the intercept less and brings
        more noise. "auto" is half the largest norm of a row, and at least 1.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_, intercept_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `Ridge`; predictions are exp(score).

    Notes
    -----
    Guarantee: as for `LogisticRegression`. Sources: as for `HuberRegressor`; proofs in
    confide/privacy/proofs/target_losses.md.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    >>> y = rng.poisson(np.exp(X @ [1.0, -1.0]))
    >>> model = PoissonRegressor(budget=2.0, target_bound=5.0).fit(X, y)
    >>> bool(np.corrcoef(model.predict(X), np.exp(X @ [1.0, -1.0]))[0, 1] > 0.9)
    True
    """

    threshold: Literal["auto"] | float = "auto"
    intercept_scaling: float | Literal["auto"] = "auto"

    _named_loss = "poisson"

    def _loss(self, target: Numbers) -> ScoreLoss:
        return mean_loss(self, target)
