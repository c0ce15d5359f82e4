"""A released model as a fitted pipeline of scikit-learn, with the same predictions.

The pipeline encodes raw columns by the schema, maps and clips rows as the model does, and ends with an estimator of
scikit-learn that has the released weights. The estimator is first fitted to made-up rows, so that it has every attribute
that its version of scikit-learn expects; then it gets the weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from confide.erm.row_bounds import BallBound
from confide.estimators.transformers import SchemaEncoder
from confide.exports.steps import LogisticHingeClassifier, MappedRows, RowsWithinBound
from confide.features.encoder import Encoder
from confide.released_models.links import Link
from confide.released_models.model import ReleasedModel
from confide.types import Array


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
        steps.append(("encode", _fitted_encoder(encoder)))
        n_columns, is_within = encoder.n_features, bound == encoder.row_bound
    else:
        # Rows with random features are clipped after these.
        first = bound if released.fourier is None else BallBound(math.inf)
        steps.append(("rows", RowsWithinBound(first).fit(_made_up_rows(released))))
        n_columns, is_within = released.columns.n_features_in, released.fourier is None
    if released.fourier is not None:
        steps.append(("features", MappedRows(released.fourier)))
        n_columns, is_within = released.fourier.n_features, False
    if not is_within:
        steps.append(("clip", RowsWithinBound(bound).fit(np.zeros((1, n_columns)))))
    return Pipeline([*steps, ("model", _last_step(released, link))])


def _fitted_encoder(encoder: Encoder) -> SchemaEncoder:
    made: SchemaEncoder = SchemaEncoder(encoder.schema)
    names = encoder.schema.column_names
    made.n_features_in_, made.feature_names_in_ = len(names), np.array(names, dtype=object)
    return made


def _made_up_rows(released: ReleasedModel) -> Any:
    """One row with the columns of the fit."""
    row, names = np.zeros((1, released.columns.n_features_in)), released.columns.feature_names_in
    if names is None:
        return row
    import pandas as pd

    return pd.DataFrame(row, columns=list(names))


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
        return _one_against_rest(classes, coef, intercept)
    # Without probabilities a support vector machine, whose predictions need nothing but scores.
    kind = LogisticRegression if link.has_probabilities else LinearSVC
    return _with_weights(kind(), classes, coef, intercept)


def _with_weights(classifier: Any, classes: Any, coef: Array, intercept: Array) -> Any:
    """A linear classifier of scikit-learn with these classes, coefficients (k, d) and intercepts (k,)."""
    classifier.fit(np.zeros((len(classes), coef.shape[1])), classes)
    classifier.coef_, classifier.intercept_ = coef.copy(), intercept.copy()
    return classifier


def _one_against_rest(classes: Any, coef: Array, intercept: Array) -> Any:
    """A logistic regression for each class against all others. Their probabilities are divided by their sum."""
    made = OneVsRestClassifier(LogisticRegression()).fit(np.zeros((len(classes), coef.shape[1])), classes)
    for each, weights, constant in zip(made.estimators_, coef, intercept, strict=True):
        each.coef_, each.intercept_ = weights[None].copy(), np.array([constant])
    return made
