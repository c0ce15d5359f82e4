"""scikit-learn's face of what turns columns into bounded rows by public knowledge alone: encoders and feature maps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.schema import Schema
from confide.intake.arrays import numeric_blocks
from confide.intake.parameters import checked_schema
from confide.types import Array


class SchemaEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Encodes a frame of raw columns by a schema. Learns nothing from data: `fit` only checks that the columns are there.

    Numbers go to [-1, 1] by their public bounds (values outside are clipped), categories to one column a level, two-level
    categories to one column of -1 and +1, unknown categories to the declared `other` or to zeros, missing values to the
    declared indicator. A number with knots becomes one column a knot, an interaction the products of its members' columns.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Frames of raw columns alone: an array has no names by which the schema could know its columns.
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _encoder(self) -> Encoder:
        encoder = checked_schema(self.schema)
        if encoder is None:
            raise ParameterError("SchemaEncoder needs a schema.")
        return encoder


class RandomFourierFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Maps rows to rows of norm 1 whose inner products approximate a kernel. Learns nothing but the number of columns.

    ``make_pipeline(RandomFourierFeatures(...), LogisticRegression())`` is private kernel logistic regression: the map is
    decided by its parameters alone, so the guarantee of the second step is that of the whole. The same holds of a
    `SchemaEncoder` before it, but not of a scaler that learns from rows: bring columns to one scale by public bounds.

    Parameters
    ----------
    n_features : int, default 256
        Number of columns made, even. The error of the kernel falls like 1 / sqrt(n_features); noise grows with them.
    kernel : {"rbf", "laplacian", "cauchy"}, default "rbf"
        exp(-|D|^2 / (2 s^2)), exp(-|D|_1 / s) or the product of 1 / (1 + D_j^2 / s^2), of the difference D of two rows.
    length_scale : float, default 1.0
        The distance s over which the kernel falls. It must not be learned from private rows.
    orthogonal : bool, default False
        For "rbf": orthogonal frequencies, a smaller error.
    random_state : int, default 0
        Seed of the map. It is public and protects nothing: the map may be published with the model.

    Attributes
    ----------
    fourier_map_ : FourierMap
    n_features_in_ : int
    feature_names_in_ : array of str, where X has names

    Notes
    -----
    Source: Rubinstein, Bartlett, Huang and Taft, Learning in a Large Function Space (2012), algorithm 3. What a seed
    promises is said in confide/features/fourier.py.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> import confide
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (4000, 2))
    >>> inside = (X**2).sum(axis=1) < 0.6
    >>> features = confide.RandomFourierFeatures(64, length_scale=0.5)
    >>> model = make_pipeline(features, confide.LogisticRegression(2.0))
    >>> bool(model.fit(X, inside).score(X, inside) > 0.8)
    True
    """

    def __init__(
        self,
        n_features: int = 256,
        *,
        kernel: str = "rbf",
        length_scale: float = 1.0,
        orthogonal: bool = False,
        random_state: int = 0,
    ) -> None:
        self.n_features = n_features
        self.kernel = kernel
        self.length_scale = length_scale
        self.orthogonal = orthogonal
        self.random_state = random_state

    @property
    def row_bound(self) -> BallBound:
        """The ball of radius 1, which is what an estimator assumes of rows unless it is told otherwise."""
        return BallBound(1.0)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the columns of X; nothing else is learned."""
        self._map_of(n_inputs=1)  # a parameter outside its range is refused before any row
        fourier_map = self._map_of(numeric_blocks(X, self, is_fit=True, accepts_sparse=False).n_features)
        self.fourier_map_ = fourier_map
        return self

    def transform(self, X: Any) -> Array:
        """The mapped rows, (n, n_features) float64: cosines, then sines of the same angles."""
        check_is_fitted(self)
        blocks = numeric_blocks(X, self, is_fit=False, accepts_sparse=False)
        return self.fourier_map_.transform(blocks.block(0, blocks.n_rows))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns made: "cos0", "cos1", ..., "sin0", "sin1", ..."""
        check_is_fitted(self)
        return np.array(self.fourier_map_.names, dtype=object)

    def _map_of(self, n_inputs: int) -> FourierMap:
        return FourierMap(
            n_inputs=n_inputs,
            n_features=self.n_features,
            kernel=self.kernel,
            length_scale=self.length_scale,
            seed=self.random_state,
            orthogonal=self.orthogonal,
        )
