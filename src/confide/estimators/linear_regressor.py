"""The base class of all linear regressors. Its subclasses differ in what they minimise and how."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from confide.array_types import Array
from confide.erm.coded_rows import dense
from confide.errors import ParameterError
from confide.estimators.linear_model import PrivateLinearModel
from confide.estimators.parameters import TargetParameter
from confide.features.encoder import Encoder
from confide.intake import parameters
from confide.intake.arrays import weights_of
from confide.intake.targets import Numbers, numbers_of
from confide.models.model import Link, ReleasedModel
from confide.parameters import checked
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.plan import AnyPlan, make_plan


class LinearRegressor(TargetParameter, RegressorMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn ships no types
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

    def predict(self, X: Any) -> Array:
        """Predict the target of each row, (n,), in its own unit. Rows are clipped to the same bound as in the fit.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.

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
        scores = np.empty(blocks.n_rows)
        for start in range(0, blocks.n_rows, blocks.rows_in_block):
            stop = min(start + blocks.rows_in_block, blocks.n_rows)
            scores[start:stop] = dense(self._row_bound.clip(blocks.block(start, stop))) @ self.coef_
        return self._link.mean(scores + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute R^2 on the given rows. Targets are not clipped here. On private rows it is outside every guarantee.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.
        y : (n,) numbers
            Targets, in their own unit.
        sample_weight : (n,) numbers that are not negative, or None
            The weight of each row in the mean.

        Returns
        -------
        float, at most 1
            R^2: 1 for perfect predictions, 0 for those of the mean.

        Raises
        ------
        InputError, ParameterError
            If rows, targets or weights cannot be used. The message shows no value from them.
        """
        predicted = self.predict(X)
        targets, weights = numbers_of(y, len(predicted)), weights_of(sample_weight, len(predicted))
        return float(r2_score(targets, predicted, sample_weight=weights))

    def _target(self, encoder: Encoder | None) -> Numbers:
        target, ends = None if encoder is None else encoder.schema.target, (self.target_low, self.target_high)
        counts = self._has_counts
        return parameters.checked_target_range(self.target_bound, ends, target, counts=counts, may_shift=self._may_shift)

    def _shift_of_targets(self, encoder: Encoder | None) -> float:
        return self._target(encoder).shift

    @property
    def _may_shift(self) -> bool:
        """Whether a model of shifted targets is one of the targets, with another intercept."""
        return bool(checked("fit_intercept", self.fit_intercept)) and not self._has_counts

    @property
    def _has_counts(self) -> bool:
        """Whether targets are counts, whose mean is the exponential of the score."""
        return False

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
        try:
            plan = make_plan(self._settings(None), 10, 200)
        except ParameterError:
            return False
        if isinstance(plan, StatisticsPlan):
            is_noisy = max(plan.product_deviation, plan.target_deviation) > 2.0
        else:
            is_noisy = plan.noise_norm * plan.l2 > math.sqrt(plan.problem.n_weights)
        return self.schema is None and is_noisy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._noise_hides_small_data()
        return tags
