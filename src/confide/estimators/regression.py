"""Private least squares with a ridge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from confide.accounting.ledger import Batch, Ledger
from confide.data.arrays import summation_depth
from confide.data.source import RowSource
from confide.erm.row_bounds import RowBound
from confide.errors import ParameterError
from confide.estimators import parameters
from confide.estimators.linear_regression import LinearRegressor
from confide.estimators.regularisation import noise_l2, usual_norm
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.inference.forecast import SumsForecast
from confide.inference.least_squares import SumsEvidence
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.privacy.noise import Entropy
from confide.privacy.sufficient_statistics import LeastSquares, NoisyStatistics, StatisticsPlan, SufficientStatistics
from confide.solvers.normal_equations import ridge_weights
from confide.types import Array


@dataclass(frozen=True, slots=True)
class _Settings:
    """The checked parameters: public facts, decided before any row is seen."""

    budget: Budget
    alpha: float | None
    row_bound: RowBound
    intercept: float
    target_bound: float
    neighbours: Neighbours
    n_rows_bounds: tuple[int, int] | None
    rows_per_person: int
    intervals: bool
    n_threads: int

    def plan(self, n_features: int, n_rows: int | None) -> StatisticsPlan:
        """The plan for `n_rows` rows, or for the declared bounds on their number. Uses no row."""
        low, high = self.n_rows_bounds or (n_rows, n_rows)
        if low is None or high is None:
            raise ParameterError("a plan needs the number of rows, n_rows.")
        problem = LeastSquares(
            row_bound=self.row_bound,
            intercept=self.intercept,
            n_features=n_features,
            n_rows_low=low,
            n_rows_high=high,
            summation_depth=summation_depth(high, n_features),
            neighbours=self.neighbours,
            rows_per_person=self.rows_per_person,
            target_bound=self.target_bound,
            with_square=self.intervals,
        )
        l2 = None if self.alpha is None else self.alpha * low
        if not self.budget.is_private:
            # Without privacy the automatic ridge is 1, as in scikit-learn.
            event = problem.event(self.budget)
            return StatisticsPlan(problem, self.budget, "none", None, 1.0, 0.0, event, 1.0 if l2 is None else l2)
        plan = SufficientStatistics().plan(problem, self.budget)
        automatic = noise_l2(plan.product_deviation, problem.n_weights)
        plan = replace(plan, l2=automatic if l2 is None else l2)
        forecast = SumsForecast.of(plan, usual_norm(self.row_bound, 0.0))
        if self.intervals:
            forecast.check()
        return replace(plan, forecast=forecast, intervals=forecast if self.intervals else None)


class Ridge(LinearRegressor):
    """Least squares with a ridge, released under differential privacy by noisy sums.

    Minimises mean (y - w . x)^2 / 2 + alpha / 2 |w|^2 over clipped rows and targets, from X^T X and X^T y with exact noise.
    The intercept is a penalised coordinate of w: its constant is part of every row.

    Parameters
    ----------
    budget : float, PureDP, ApproxDP or ZCDP, default 1.0
        A number is the epsilon of pure differential privacy, whose noise grows with the square of the number of columns:
        beyond ten of them an `ApproxDP` gives far better weights, and beyond twenty often `HuberRegressor`. The plan says
        where a poor fit is to be expected. ``float("inf")`` gives the model without privacy, and
        its guarantee says so.
    alpha : "auto" or float, default "auto"
        Ridge of the mean objective, positive; alpha times the number of rows is the alpha of scikit-learn's Ridge. "auto" is
        a function of public facts alone, of the size of the noise; without privacy it is scikit-learn's 1.
    schema : Schema or None
        Public knowledge about raw columns. With it X is a pandas or Polars frame, and the row bound comes from the schema.
        The target is given as `y`, an array of numbers.
    row_norm : float, row bound or None
        Every row is clipped to this L2 norm, default 1.0. Never inferred. Not together with a schema. ``float("inf")`` needs
        an infinite budget.
    fit_intercept : bool, default True
    intercept_scaling : float, default 1.0
        The constant appended to every clipped row. Larger values shrink the intercept less and cost noise. Where rows
        are not about 1 long take about `row_norm`: beside rows of norm 1000 a constant of 1 shifts no score, and
        beside rows of norm 0.001 nearly all noise is on its account.
    target_bound : float
        Needed in every fit and plan: every target is clipped to [-target_bound, target_bound], in its own units. Never
        inferred: scale and centre targets by public knowledge. ``float("inf")`` needs an infinite budget.
    mechanism : {"auto", "sufficient-statistics"}, default "auto"
    neighbours : {"replace-one", "add-or-remove-one"}
        Which data sets the guarantee calls neighbours.
    n_rows_bounds : (int, int) or None
        Public bounds on the number of rows, for "add-or-remove-one", where that number is private. The ridge of the sum
        is alpha times the lower bound.
    max_rows_per_person : int, default 1
        A public cap k on the rows of one person: the guarantee then protects a person, by group privacy. Where the schema
        names a column of persons, k rows of each are drawn anew in every fit; otherwise the cap is an assumption.
    intervals : bool, default False
        Whether the sum of squared targets is released too, for intervals of coefficients (`summary`, `conf_int`). Under
        replace-one and Gaussian noise that costs nothing, else a little more noise; see `plan`.
    ledger : Ledger, batch of one, or None
        Charged before a row is used.
    n_jobs : int or None
        Threads that share the rows: None is 1, or what `joblib.parallel_config` says; -1 is one for each core. Fits are the
        same to the bit whatever their number. Small calls of NumPy take turns, so measure before you ask for more than one.
    random_state : int or None
        For tests: a seed makes the noise reproducible and the guarantee void.

    Attributes
    ----------
    coef_ : array (n_coefficients,)
        One a column of X, or of the encoded columns with a schema.
    intercept_ : float
    coefficient_names_ : array (n_coefficients,) of str
    n_features_in_ : int
    feature_names_in_ : array of str, where X has names
    alpha_ : float
        The ridge used, a public number.
    guarantee_ : Guarantee

    Notes
    -----
    Guarantee: `coef_` and `intercept_` together are differentially private at the budget for the stated neighbour relation,
    in the sense and under the assumptions that `guarantee_.statement()` lists. Nothing else that depends on rows is kept.

    Sources: Y.-X. Wang, Revisiting differentially private linear regression, UAI 2018, for the sums; noise and ridge differ,
    see the proof beside the mechanism, confide/privacy/proofs/sufficient_statistics.md.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(10_000, 2))
    >>> model = Ridge(budget=1.0, target_bound=0.5).fit(X, X @ [0.5, -0.5])
    >>> bool(model.score(X, X @ [0.5, -0.5]) > 0.9)
    True
    """

    def __init__(
        self,
        budget: float | Budget = 1.0,
        *,
        alpha: float | str = "auto",
        schema: Schema | None = None,
        row_norm: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        target_bound: float | None = None,
        mechanism: str = "auto",
        neighbours: str | Neighbours = "replace-one",
        n_rows_bounds: tuple[int, int] | None = None,
        max_rows_per_person: int = 1,
        intervals: bool = False,
        ledger: Ledger | Batch | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            budget,
            alpha=alpha,
            schema=schema,
            row_norm=row_norm,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            target_bound=target_bound,
            mechanism=mechanism,
            neighbours=neighbours,
            n_rows_bounds=n_rows_bounds,
            max_rows_per_person=max_rows_per_person,
            ledger=ledger,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.intervals = intervals

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train and release.

        Parameters
        ----------
        X : array (n, d) of real numbers, or with a schema a pandas or Polars frame of raw columns, or rows from
            `open_rows`, opened with the column of their targets
        y : (n,) numbers; None for rows from `open_rows`

        Returns
        -------
        self

        Raises
        ------
        ParameterError, InputError
            Before anything is charged.
        BudgetExceeded
            If the ledger has too little left; no row was used.
        """
        return self._fit(X, y)

    def _settings(self, schema: Schema | None) -> tuple[_Settings, Encoder | None]:
        """The parameters, checked. No data."""
        budget, neighbours = as_budget(self.budget), Neighbours.parse(self.neighbours)
        encoder = parameters.checked_schema(schema)
        parameters.checked_choice("mechanism", self.mechanism, ("auto", "sufficient-statistics"))
        settings = _Settings(
            budget=budget,
            alpha=parameters.checked_alpha(self.alpha),
            row_bound=parameters.checked_row_bound(self.row_norm, encoder, budget),
            intercept=parameters.checked_intercept(self.fit_intercept, self.intercept_scaling),
            target_bound=parameters.checked_target_bound(self.target_bound, budget),
            neighbours=neighbours,
            n_rows_bounds=parameters.checked_bounds(self.n_rows_bounds, neighbours),
            rows_per_person=parameters.checked_rows_per_person(self.max_rows_per_person),
            intervals=parameters.checked_flag("intervals", self.intervals),
            n_threads=parameters.checked_jobs(self.n_jobs),
        )
        return settings, encoder

    def _plan(self, settings: _Settings, n_features: int, n_rows: int | None) -> StatisticsPlan:
        return settings.plan(n_features, n_rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._drowns_small_data()
        return tags

    def _drowns_small_data(self) -> bool:
        """Whether noise hides what 200 standardised rows of 10 columns tell, from public facts.

        That is the data set by which scikit-learn tells regressors with a poor score; sums over it are at most 200.
        """
        try:
            settings, encoder = self._settings(self.schema)
            plan = settings.plan(10, 200)
        except ParameterError:
            return False
        return encoder is None and max(plan.product_deviation, plan.target_deviation) > 2.0

    def _released(self, plan: StatisticsPlan, source: RowSource, entropy: Entropy) -> tuple[Array, SumsEvidence | None]:
        sums = _sums(plan, source, entropy)
        weights = ridge_weights(sums.products, sums.targets, plan.l2)
        return weights, SumsEvidence.of(sums, weights) if plan.problem.with_square else None

    def _why_no_intervals(self) -> str:
        return "intervals need the sum of squared targets: set intervals=True, and fit again."


def _sums(plan: StatisticsPlan, source: RowSource, entropy: Entropy) -> NoisyStatistics:
    """Sums with the noise of the plan, or without any where the budget is infinite."""
    if plan.budget.is_private:
        return SufficientStatistics().release(plan, source, entropy)
    totals = source.sum_over_rows(plan.problem.row_sum, np.zeros((1, plan.problem.n_weights)))
    square = 2.0 * float(totals.value[0]) if plan.problem.with_square else 0.0
    if not (np.isfinite(totals.hessian).all() and np.isfinite(totals.gradient).all() and np.isfinite(square)):
        raise ParameterError("rows this large overflow without a row norm; scale them, or give a finite row_norm.")
    return NoisyStatistics(totals.hessian[0], -totals.gradient[0], square, plan)
