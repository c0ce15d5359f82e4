"""scikit-learn transformers that turn columns into bounded rows by public knowledge only: an encoder and a feature map."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from confide.array_types import Array
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.estimators.parameters import BaseEstimator, TransformerMixin, estimator
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.schema import Schema
from confide.intake.arrays import numeric_blocks
from confide.intake.parameters import checked_schema


@estimator
class SchemaEncoder(TransformerMixin, BaseEstimator):
    """Encode a frame of raw columns by a schema.

    It learns nothing from data: `fit` only checks that the columns are there.

    - A number is mapped to [-1, 1] by its public bounds; values outside are clipped. A number with knots becomes one column
      for each knot.
    - A category becomes one column for each level; with two levels, one column of -1 and +1. An unknown category goes to the
      declared `other`, or to zeros.
    - A missing value goes to the declared indicator.
    - An interaction becomes the products of its members' columns, times its scale.

    If the schema has `random_features`, they are not among the columns: linear models with this schema append them.

    Parameters
    ----------
    schema : Schema
        The public description of the raw columns.

    Attributes
    ----------
    n_features_in_ : int
        Number of raw columns of the schema.
    feature_names_in_ : array of str
        Names of the raw columns of the schema.

    Notes
    -----
    Guarantee: none is needed, because the encoding of a row depends only on the schema and on that row. The guarantee of a
    private model that is trained on encoded rows covers both steps.
    """

    schema: Schema = field(kw_only=False)

    @property
    def row_bound(self) -> GroupBound:
        """The public bound on every encoded row, group by group. Give it to an estimator as ``row_norm``."""
        return self._encoder().row_bound

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that the frame X has the schema's columns; nothing is learned.

        Parameters
        ----------
        X : frame (n, any number of columns)
            With the schema's columns among them, in any order.
        y : ignored

        Raises
        ------
        InputError
            If a column is missing, or holds cells of another kind.
        """
        encoder = self._encoder()
        encoder.read(X)
        names = encoder.schema.raw_names
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: Any) -> Array:
        """Encode the rows of the frame X: an array (n, n_encoded_columns) of float64.

        Parameters
        ----------
        X : frame (n, any number of columns)
            Raw columns, in the units of the schema.

        Returns
        -------
        array (n, n_columns) of float64
            The rows, mapped.

        Raises
        ------
        InputError
            If a column is missing, or holds cells of another kind.
        """
        check_is_fitted(self)
        return self._encoder().transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the encoded columns.

        Parameters
        ----------
        input_features : ignored
            The schema names the raw columns.

        Returns
        -------
        array (n_features_out,) of str
            In the order of the columns of `transform`.

        Raises
        ------
        ParameterError
            If `schema` is not a schema.
        """
        return np.array(self._encoder().feature_names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Only frames are accepted: an array has no names by which the schema could recognise its columns.
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _encoder(self) -> Encoder:
        encoder = checked_schema(self.schema)
        if encoder is None:
            raise ParameterError("SchemaEncoder needs a schema.")
        return encoder


@estimator
class RandomFourierFeatures(TransformerMixin, BaseEstimator):
    """Map rows to rows of norm 1 whose inner products approximate a kernel. It learns only the number of columns.

    ``make_pipeline(RandomFourierFeatures(...), LogisticRegression())`` is private kernel logistic regression. The map
    depends only on its parameters, so the guarantee of the second step holds for the whole pipeline. The same is true if a
    `SchemaEncoder` comes first. It is not true for a scaler that learns from rows: bring columns to one scale by public
    bounds instead.

    Parameters
    ----------
    n_features : int, default 256
        Number of new columns, even. The error of the kernel falls like 1 / sqrt(n_features); the noise of a model grows with
        the number of columns.
    kernel : {"rbf", "laplacian", "cauchy"}, default "rbf"
        exp(-|D|^2 / (2 s^2)), exp(-|D|_1 / s), or the product of 1 / (1 + D_j^2 / s^2) over j. D is the difference of two
        rows and s is `length_scale`.
    length_scale : float, default 1.0
        The distance s over which the kernel falls, positive. It must not be learned from private rows.
    orthogonal : bool, default False
        For "rbf": whether frequencies are orthogonal, which makes the error smaller.
    random_state : int, default 0
        Seed of the map. It is public and protects nothing: the map may be published with the model.

    Attributes
    ----------
    fourier_map_ : FourierMap
        The public map.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; missing if X has none.

    Notes
    -----
    Guarantee: none is needed, because the features of a row depend only on public parameters and on that row.

    Source: Rubinstein, Bartlett, Huang and Taft, Learning in a Large Function Space (2012), algorithm 3. What stays the
    same for one seed on other machines is said in confide/features/fourier.py.

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

    n_features: int = field(default=256, kw_only=False)
    kernel: Literal["rbf", "laplacian", "cauchy"] = "rbf"
    length_scale: float = 1.0
    orthogonal: bool = False
    random_state: int = 0

    @property
    def row_bound(self) -> BallBound:
        """The ball of radius 1, which is also the default bound on rows of an estimator."""
        return BallBound(1.0)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the columns of X and draw the map; nothing else is learned.

        Parameters
        ----------
        X : array or frame (n, d)
            Real numbers.
        y : ignored

        Raises
        ------
        ParameterError, InputError
            If a parameter or X cannot be used.
        """
        self._map_of(n_inputs=1)  # refuses a parameter that is out of range before X is looked at
        self.fourier_map_ = self._map_of(numeric_blocks(X, self, is_fit=True, accepts_sparse=False).n_features)
        return self

    def transform(self, X: Any) -> Array:
        """Map the rows of X: an array (n, n_features) of float64, first cosines, then sines of the same angles.

        Parameters
        ----------
        X : array or frame (n, d)
            Real numbers, as many columns as in `fit`.

        Returns
        -------
        array (n, n_columns) of float64
            The rows, mapped.

        Raises
        ------
        InputError
            If X cannot be used.
        """
        check_is_fitted(self)
        blocks = numeric_blocks(X, self, is_fit=False, accepts_sparse=False)
        return self.fourier_map_.transform(blocks.block(0, blocks.n_rows))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the new columns: "cos0", "cos1", ..., "sin0", "sin1", ...

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        array (n_features_out,) of str
            In the order of the columns of `transform`.

        Raises
        ------
        NotFittedError
            If the map was not drawn yet.
        """
        check_is_fitted(self)
        return np.array(self.fourier_map_.names, dtype=object)

    def _map_of(self, n_inputs: int) -> FourierMap:
        kind = (self.kernel, self.length_scale, self.random_state, self.orthogonal)
        return FourierMap(n_inputs, self.n_features, *kind)
