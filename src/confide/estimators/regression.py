"""Private ridge regression, from a perturbed objective or from noisy sums over rows."""

from __future__ import annotations

from typing import Any, Self

from confide.errors import checked_flag
from confide.estimators.linear_regressor import LinearRegressor
from confide.estimators.shared_parameters import (
    DesignParameters,
    PenaltyParameter,
    RowNormParameter,
    SparsityParameter,
    estimator,
)
from confide.features.encoder import Encoder
from confide.intake import parameters
from confide.privacy.budgets import Neighbours
from confide.training.least_squares_choice import MECHANISMS_OF_LEAST_SQUARES, squared_error
from confide.training.settings import SquaredError


@estimator
class Ridge(DesignParameters, RowNormParameter, SparsityParameter, PenaltyParameter, LinearRegressor):
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
            None for rows from `open_rows`, which bring their targets.

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
        if has_intervals and Neighbours.parse(self.neighbours) is Neighbours.REPLACE_ONE:
            parameters.refuse_uncounted_rows(encoder)
        return squared_error(self._target_range(encoder).bound, with_square=has_intervals)

    @property
    def _asks_for_intervals(self) -> bool:
        return checked_flag("intervals", self.intervals)

    def _why_no_intervals(self) -> str:
        return "intervals need the sum of squared targets: set intervals=True, and fit again."
