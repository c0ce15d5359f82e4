"""scikit-learn's face of the encoder: raw columns to bounded rows, by public knowledge alone."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from confide.erm.row_bounds import GroupBound
from confide.errors import ParameterError
from confide.estimators.parameters import checked_schema
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.types import Array


class SchemaEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Encodes a frame of raw columns by a schema. Learns nothing from data: `fit` only checks that the columns are there.

    Numbers go to [-1, 1] by their public bounds (values outside are clipped), categories to one column a level, two-level
    categories to one column of -1 and +1, unknown categories to the declared `other` or to zeros, missing values to the
    declared indicator.

    Parameters
    ----------
    schema : Schema

    Attributes
    ----------
    n_features_in_, feature_names_in_ : the schema's raw columns
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @property
    def row_bound(self) -> GroupBound:
        """The public bound that every encoded row obeys, group by group; an estimator takes it as ``row_norm``."""
        return self._encoder().row_bound

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the frame's columns; nothing is learned."""
        encoder = self._encoder()
        encoder.read(X)
        names = encoder.schema.column_names
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: Any) -> Array:
        """The encoded rows, (n, encoded columns) float64."""
        check_is_fitted(self)
        return self._encoder().transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the encoded columns."""
        return np.array(self._encoder().feature_names, dtype=object)

    def _encoder(self) -> Encoder:
        encoder = checked_schema(self.schema)
        if encoder is None:
            raise ParameterError("SchemaEncoder needs a schema.")
        return encoder
