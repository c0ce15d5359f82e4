"""Private least squares with a ridge."""

from __future__ import annotations

from typing import Any, Self

from confide.errors import ParameterError
from confide.estimators.linear_regressor import LinearRegressor
from confide.estimators.shared_parameters import estimator
from confide.features.encoder import Encoder
from confide.intake import parameters
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.plan import make_plan
from confide.training.settings import SquaredError


@estimator
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
    mechanism : {"auto", "sufficient-statistics"}, default "auto"
    intervals : bool, default False
        Whether the sum of squared targets is released too, for intervals of coefficients (`summary`, `conf_int`). Under
        replace-one and Gaussian noise that costs nothing, else a little more noise; see `plan`.
    other parameters : those that linear models share

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

    intervals: bool = False

    _accepts_sparse = False
    _mechanisms = ("auto", "sufficient-statistics")

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
        return self._train(X, y)

    def _minimised(self, encoder: Encoder | None) -> SquaredError:
        target_bound = parameters.checked_target_bound(self.target_bound)
        return SquaredError(target_bound, parameters.checked_flag("intervals", self.intervals))

    def _why_no_intervals(self) -> str:
        return "intervals need the sum of squared targets: set intervals=True, and fit again."

    def _drowns_small_data(self) -> bool:
        """Whether noise hides what 200 standardised rows of 10 columns tell, from public facts.

        That is the data set by which scikit-learn tells regressors with a poor score; sums over it are at most 200.
        """
        try:
            plan = make_plan(self._settings(None), 10, 200)
        except ParameterError:
            return False
        is_noisy = isinstance(plan, StatisticsPlan) and max(plan.product_deviation, plan.target_deviation) > 2.0
        return self.schema is None and is_noisy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._drowns_small_data()
        return tags
