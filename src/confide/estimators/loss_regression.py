"""Private linear regression with losses of the residual and of counts, by objective or output perturbation."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from confide.accounting.ledger import Batch, Ledger
from confide.data.source import RowSource
from confide.erm.losses import Loss
from confide.erm.target_losses import PoissonLoss, SquaredLoss
from confide.errors import InputError, ParameterError
from confide.estimators import parameters
from confide.estimators.fitting import Settings, make_plan, release_by
from confide.estimators.linear import FactsOfRows
from confide.estimators.linear_regression import LinearRegressor
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.inference.evidence import Evidence
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.privacy.mechanism import Plan
from confide.privacy.noise import Entropy
from confide.types import Array

THRESHOLD_SHARE = 0.1
"""Of `target_bound`, the default threshold of residuals. From 0.1 to 0.2 root mean square errors are the same, absolute ones
grow a little: compared on the data of benchmarks/regression_error.py, prices of diamonds, and made-up targets."""


class LossRegressor(LinearRegressor):
    """A linear regressor that minimises a mean loss with a ridge. Its loss is that of a subclass."""

    _accepts_sparse = True
    # How scikit-learn is told of a parameter that is not written out in `fit`, see there.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}

    def __init__(self, budget: float | Budget, *, max_sample_weight: float, **parameters: Any) -> None:
        super().__init__(budget, **parameters)
        self.max_sample_weight = max_sample_weight

    def fit(self, X: Any, y: Any = None, **row_facts: Unpack[FactsOfRows]) -> Self:
        """Train and release.

        Parameters
        ----------
        X : array or SciPy sparse matrix (n, d) of real numbers, or with a schema a pandas or Polars frame of raw columns, or
            rows from `open_rows`, opened with the column of their targets
        y : (n,) numbers; None for rows from `open_rows`
        sample_weight : (n,) numbers from 0 to `max_sample_weight`, or None for 1 each. Part of the data: each must be made
            from its own row alone.

        Returns
        -------
        self

        Raises
        ------
        ParameterError, InputError
            Before anything is charged.
        BudgetExceeded
            If the ledger has too little left; no row was used.

        Notes
        -----
        `sample_weight` is given by name. It is not written out in the signature because ensembles that find it
        there pass how often they drew a row, far above any cap on a weight. So they draw rows instead.
        """
        sample_weight = row_facts.pop("sample_weight", None)
        if row_facts:
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(row_facts))!r}")
        return self._fit(X, y, sample_weight)

    def _settings(self, schema: Schema | None) -> tuple[Settings, Encoder | None]:
        budget = as_budget(self.budget)
        encoder = parameters.checked_schema(schema)
        neighbours = Neighbours.parse(self.neighbours)
        target_bound = parameters.checked_target_bound(self.target_bound, budget)
        settings = Settings(
            budget=budget,
            mechanism=parameters.checked_choice(
                "mechanism", self.mechanism, ("auto", "objective", "output", "output-laplace")
            ),
            alpha=parameters.checked_alpha(self.alpha),
            loss=self._loss(target_bound),
            row_bound=parameters.checked_row_bound(self.row_norm, encoder, budget),
            intercept=parameters.checked_intercept(self.fit_intercept, self.intercept_scaling),
            neighbours=neighbours,
            n_rows_bounds=parameters.checked_bounds(self.n_rows_bounds, neighbours),
            rows_per_person=parameters.checked_rows_per_person(self.max_rows_per_person),
            largest_sample_weight=parameters.checked_largest_sample_weight(self.max_sample_weight),
            # Of counts the scores are logarithms.
            score_size=1.0 if self._has_counts else target_bound,
            inference_share=parameters.checked_share(getattr(self, "inference_share", 0.0)),
            n_threads=parameters.checked_jobs(self.n_jobs),
        )
        return settings, encoder

    def _plan(self, settings: Settings, n_features: int, n_rows: int | None) -> Plan:
        return make_plan(settings, n_features, n_rows)

    def _released(self, plan: Plan, source: RowSource, entropy: Entropy) -> tuple[Array, Evidence | None]:
        fit = release_by(plan, source, entropy)
        return fit.release.weights[0], fit.evidence

    def _why_no_intervals(self) -> str:
        if "inference_share" not in self.get_params(deep=False):
            return f"{type(self).__name__} has no intervals in this version; use HuberRegressor or Ridge."
        return super()._why_no_intervals()

    def _targets(self, y: Any, n_rows: int) -> Array:
        targets = super()._targets(y, n_rows)
        if self._has_counts and (targets < 0.0).any():
            raise InputError("y must hold counts, and no count is negative. Correct it.")
        return targets

    def _target_sentence(self) -> str:
        if self._has_counts:
            return f"Every target is clipped to its declared range, 0 to {self.target_bound:.6g}."
        return super()._target_sentence()

    def _mean(self, scores: Array) -> Array:
        if not self._has_counts:
            return scores
        with np.errstate(over="ignore"):
            return np.fmin(np.exp(scores), np.finfo(np.float64).max)

    def _loss(self, target_bound: float) -> Loss:
        """The loss, from checked parameters."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._has_counts
        return tags


def squared_loss(name: str, target_bound: float, threshold: Any) -> SquaredLoss:
    """Half the squared residual, its derivative clipped to the threshold, or by length."""
    default = THRESHOLD_SHARE * target_bound
    return SquaredLoss(target_bound, parameters.checked_threshold(threshold, default), by_length=name == "clipped_squared")


def poisson_loss(target_bound: float, threshold: Any) -> PoissonLoss:
    """The loss of counts."""
    if not math.isfinite(target_bound):
        raise ParameterError("counts need a finite target_bound: their loss bends the more, the larger they are.")
    return PoissonLoss(target_bound, parameters.checked_threshold(threshold, 1.0))


class HuberRegressor(LossRegressor):
    """Linear regression that gross errors do not upset, released under differential privacy.

    Minimises mean loss(w . x - y) + alpha / 2 |w|^2 over clipped rows and targets, perturbed so that the released weights
    are differentially private. The loss is half the squared residual, made linear where its derivative would leave
    [-threshold, threshold]: noise grows with the threshold, not with the largest residual. The intercept is a penalised
    coordinate of w: its constant is part of every row.

    Parameters
    ----------
    budget : float, PureDP, ApproxDP or ZCDP, default 1.0
    target_bound : float
        Needed in every fit and plan: every target is clipped to [-target_bound, target_bound], in its own units. Never
        inferred: scale and centre targets by public knowledge. ``float("inf")`` needs an infinite budget.
    threshold : float or None
        Residual, in the units of the target, beyond which a row pulls no harder. Public, never learned. A larger one is
        closer to least squares and costs noise. None is a tenth of `target_bound`.
    loss : {"huber", "clipped_squared"}, default "huber"
        "clipped_squared" lets a row of norm r pull up to residuals of threshold R / r, R the largest norm of a row with its
        intercept: closer to least squares where rows are much shorter than their bound, at the same noise. Its noise cannot
        be shaped by the columns.
    alpha, schema, row_norm, fit_intercept, intercept_scaling, mechanism, neighbours, n_rows_bounds, max_rows_per_person, \
max_sample_weight, inference_share, ledger, n_jobs, random_state :
        As in `LogisticRegression`. The target is given as `y`, an array of numbers, with a schema too.

    Attributes
    ----------
    coef_, intercept_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `Ridge`.

    Notes
    -----
    Guarantee: as for `LogisticRegression`. Residuals have either sign, so Gaussian noise has a dearer account here, and the
    curvature of the loss costs a part of the budget.

    scikit-learn's estimator of this name fits a scale beside the weights and divides residuals by it; here the threshold is
    absolute.

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

    def __init__(
        self,
        budget: float | Budget = 1.0,
        *,
        target_bound: float | None = None,
        threshold: float | None = None,
        loss: str = "huber",
        alpha: float | str = "auto",
        schema: Schema | None = None,
        row_norm: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        mechanism: str = "auto",
        neighbours: str | Neighbours = "replace-one",
        n_rows_bounds: tuple[int, int] | None = None,
        max_rows_per_person: int = 1,
        max_sample_weight: float = 1.0,
        inference_share: float | str = 0.0,
        ledger: Ledger | Batch | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            budget,
            target_bound=target_bound,
            alpha=alpha,
            schema=schema,
            row_norm=row_norm,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            mechanism=mechanism,
            neighbours=neighbours,
            n_rows_bounds=n_rows_bounds,
            max_rows_per_person=max_rows_per_person,
            max_sample_weight=max_sample_weight,
            ledger=ledger,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.threshold = threshold
        self.loss = loss
        self.inference_share = inference_share

    def _loss(self, target_bound: float) -> Loss:
        name = parameters.checked_choice("loss", self.loss, ("huber", "clipped_squared"))
        return squared_loss(name, target_bound, self.threshold)


class PoissonRegressor(LossRegressor):
    """Regression of counts whose mean is exp(w . x), released under differential privacy.

    Minimises mean loss + alpha / 2 |w|^2 over clipped rows and counts, perturbed so that the released weights are
    differentially private. The loss of a count y at score s is exp(s) - y s, made linear where its derivative exp(s) - y
    would leave [-threshold, threshold]. The intercept is a penalised coordinate of w: its constant is part of every row.

    Parameters
    ----------
    budget : float, PureDP, ApproxDP or ZCDP, default 1.0
    target_bound : float
        Needed in every fit and plan: every count is clipped to [0, target_bound]. Never inferred. The ridge grows with it:
        an `alpha` that the proof or double precision does not allow is raised, and `guarantee_` states by how much.
    threshold : float, default 1.0
        Difference of a count from its mean beyond which a row pulls no harder. Public, never learned. Noise grows with it;
        a small one draws predictions towards the median.
    alpha, schema, row_norm, fit_intercept, intercept_scaling, mechanism, neighbours, n_rows_bounds, max_rows_per_person, \
max_sample_weight, ledger, n_jobs, random_state :
        As in `LogisticRegression`. The counts are given as `y`, an array of numbers, with a schema too.

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
    >>> model = PoissonRegressor(budget=2.0, target_bound=5.0, threshold=2.0).fit(X, y)
    >>> bool(np.corrcoef(model.predict(X), np.exp(X @ [1.0, -1.0]))[0, 1] > 0.9)
    True
    """

    def __init__(
        self,
        budget: float | Budget = 1.0,
        *,
        target_bound: float | None = None,
        threshold: float = 1.0,
        alpha: float | str = "auto",
        schema: Schema | None = None,
        row_norm: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        mechanism: str = "auto",
        neighbours: str | Neighbours = "replace-one",
        n_rows_bounds: tuple[int, int] | None = None,
        max_rows_per_person: int = 1,
        max_sample_weight: float = 1.0,
        ledger: Ledger | Batch | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            budget,
            target_bound=target_bound,
            alpha=alpha,
            schema=schema,
            row_norm=row_norm,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            mechanism=mechanism,
            neighbours=neighbours,
            n_rows_bounds=n_rows_bounds,
            max_rows_per_person=max_rows_per_person,
            max_sample_weight=max_sample_weight,
            ledger=ledger,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.threshold = threshold

    @property
    def _has_counts(self) -> bool:
        return True

    def _loss(self, target_bound: float) -> Loss:
        return poisson_loss(target_bound, self.threshold)
