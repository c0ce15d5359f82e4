"""A released model as a fitted pipeline of scikit-learn, with the same predictions.

The pipeline encodes raw columns by the schema, maps and clips rows as the model does, and ends with an estimator of
scikit-learn that has the released weights. The estimator is first fitted to made-up rows, so that it has every attribute
that its version of scikit-learn expects; then it gets the weights.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from confide.array_types import Array
from confide.blocks import frame_of
from confide.erm.row_bounds import BallBound, RowBound
from confide.estimators.parameters import BaseEstimator, TransformerMixin
from confide.estimators.transformers import SchemaEncoder
from confide.intake.arrays import numeric_blocks
from confide.models.model import Link, ReleasedModel

# Steps of a scikit-learn pipeline that scikit-learn has no like of: rows as a released model scores them.
#
# None of them learns from rows.


class RowsWithinBound(TransformerMixin, BaseEstimator):
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


def pipeline_of(released: ReleasedModel, link: Link) -> Pipeline:
    """The pipeline of a released model.

    Parameters
    ----------
    released : the model
    link : how its scores become predictions

    Returns
    -------
    Pipeline
        Fitted. Its steps are "encode" (with a schema), "rows" (without one), "features" (random features), "clip" (where
        rows are clipped after these), and "model".
    """
    encoder, bound, steps = released.encoder, released.scoring.row_bound, []
    if encoder is not None:
        first_step: Any = SchemaEncoder(encoder.schema)
        names = encoder.schema.raw_names
        first_step.n_features_in_, first_step.feature_names_in_ = len(names), np.array(names, dtype=object)
        steps.append(("encode", first_step))
        n_columns, is_within = encoder.n_features, bound == encoder.row_bound
    else:
        # Rows with random features are clipped after these.
        first = bound if released.fourier is None else BallBound(math.inf)
        row, inputs = np.zeros((1, released.columns.n_features_in)), released.columns.feature_names_in
        made_up = row if inputs is None else frame_of(row, columns=list(inputs))
        steps.append(("rows", RowsWithinBound(first).fit(made_up)))
        n_columns, is_within = released.columns.n_features_in, released.fourier is None
    if released.fourier is not None:
        steps.append(("features", FunctionTransformer(released.fourier.transform)))
        n_columns, is_within = released.fourier.n_features, False
    if not is_within:
        steps.append(("clip", RowsWithinBound(bound).fit(np.zeros((1, n_columns)))))
    return Pipeline([*steps, ("model", _last_step(released, link))])


def _last_step(released: ReleasedModel, link: Link) -> Any:
    coef, intercept = released.scoring.coef, released.scoring.intercept
    if link.kind in ("identity", "exponential"):
        made = LinearRegression() if link.kind == "identity" else PoissonRegressor()
        made.fit(np.zeros((2, coef.shape[1])), np.ones(2))
        made.coef_, made.intercept_ = coef[0].copy(), float(intercept[0])
        return made
    classes = np.array(released.domain)
    if link.margin:
        return _with_weights(LogisticHingeClassifier(link.margin), classes, coef, intercept)
    if link.kind == "one-vs-rest":
        # A logistic regression for each class against all others. Their probabilities are divided by their sum.
        several = OneVsRestClassifier(LogisticRegression()).fit(np.zeros((len(classes), coef.shape[1])), classes)
        for estimator, weights, constant in zip(several.estimators_, coef, intercept, strict=True):
            estimator.coef_, estimator.intercept_ = weights[None].copy(), np.array([constant])
        return several
    # Without probabilities a support vector machine, whose predictions need nothing but scores.
    return _with_weights(LogisticRegression() if link.has_probabilities else LinearSVC(), classes, coef, intercept)


def _with_weights(classifier: Any, classes: Any, coef: Array, intercept: Array) -> Any:
    """A linear classifier of scikit-learn with these classes, coefficients (k, d) and intercepts (k,)."""
    classifier.fit(np.zeros((len(classes), coef.shape[1])), classes)
    classifier.coef_, classifier.intercept_ = coef.copy(), intercept.copy()
    return classifier
