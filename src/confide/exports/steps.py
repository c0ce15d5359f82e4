"""Steps of a scikit-learn pipeline that scikit-learn has no like of: rows as a released model scores them.

None of them learns from rows.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.svm import LinearSVC

from confide.erm.row_bounds import RowBound
from confide.features.public_maps import PublicMap
from confide.intake.arrays import numeric_blocks
from confide.released_models.links import Link
from confide.types import Array


class RowsWithinBound(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Check rows of numbers, and clip each to a public bound.

    Parameters
    ----------
    row_bound : RowBound
        The bound.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; missing if X has none.
    """

    def __init__(self, row_bound: RowBound) -> None:
        self.row_bound = row_bound

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check and count the columns of X; nothing else is learned."""
        numeric_blocks(X, self, is_fit=True, accepts_sparse=True)
        return self

    def transform(self, X: Any) -> Any:
        """The rows (n, n_features) as float64, clipped; sparse rows stay sparse.

        Raises
        ------
        InputError
            If X has other columns, or holds what is no finite number.
        """
        blocks = numeric_blocks(X, self, is_fit=False, accepts_sparse=True)
        return self.row_bound.clip(blocks.block(0, blocks.n_rows))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class MappedRows(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Map each row by a public map, such as random Fourier features.

    Parameters
    ----------
    public_map : PublicMap
        The map.
    """

    def __init__(self, public_map: PublicMap) -> None:
        self.public_map = public_map

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        return self

    def transform(self, X: Any) -> Array:
        """The mapped rows, (n, n_features)."""
        return self.public_map.transform(np.asarray(X))

    def __sklearn_is_fitted__(self) -> bool:
        return True


class LogisticHingeClassifier(LinearSVC):  # type: ignore[misc]  # scikit-learn ships no types
    """A linear classifier whose probabilities are those of the logistic hinge, log(1 + exp(margin - z)).

    Parameters
    ----------
    margin : float, default 2.0
        The margin of the loss that the weights minimise.
    """

    def __init__(self, margin: float = 2.0) -> None:
        super().__init__()
        self.margin = margin

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of the probability of each class in `classes_`, (n, n_classes)."""
        link = Link("logistic" if len(self.classes_) == 2 else "one-vs-rest", self.margin)
        return link.log_probabilities(self.decision_function(X))

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class in `classes_`, (n, n_classes)."""
        return np.exp(self.predict_log_proba(X))
