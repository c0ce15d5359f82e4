"""Random features that a schema asks for: a function of all columns together, beside the effects of single columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

from confide.errors import ParameterError, SchemaError
from confide.features.columns import shown_number
from confide.features.curves_and_features import CurvesAndFeatures
from confide.features.fourier import FourierMap
from confide.features.schema_checks import check_fields

_MOST_FEATURES = 2**16
_SMALLEST, _LARGEST = 2.0**-10, 2.0**10
_LARGEST_SEED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class RandomFeatures:
    """Random Fourier features of the encoded row, which models append to it.

    Parameters
    ----------
    number : how many, an even number
    length_scale : distance between two encoded rows over which the function of all columns changes; two rows that differ in
        one category are sqrt(2) apart
    norm : the L2 norm of the features of a row. The encoded columns of a row have at most the root of their number of
        groups; with a larger norm more of the model is a function of all columns together, and less a sum of effects
    seed : the public seed of the features

    Raises
    ------
    SchemaError
        If a value is outside its range.
    """

    number: int
    length_scale: float
    norm: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("number", 2, _MOST_FEATURES), ("seed", 0, _LARGEST_SEED)):
            count = getattr(self, name)
            if not isinstance(count, Integral) or isinstance(count, bool) or not low <= int(count) <= high:
                raise SchemaError(f"random_features: {name} must be a whole number from {low} to {high}.")
            object.__setattr__(self, name, int(count))
        if self.number % 2:
            raise SchemaError("random_features: number must be even, because each frequency gives a cosine and a sine.")
        for name in ("length_scale", "norm"):
            value = getattr(self, name)
            size = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
            if not _SMALLEST <= size <= _LARGEST:
                raise SchemaError(f"random_features: {name} must be a number from 2^-10 to 2^10.")
            object.__setattr__(self, name, size)

    def appended_to(self, n_inputs: int, row_norm: float) -> CurvesAndFeatures:
        """The map that appends the features to rows of so many columns, whose L2 norm is at most `row_norm`.

        Raises
        ------
        SchemaError
            If there are too many columns for so many features.
        """
        try:
            features = FourierMap(n_inputs, self.number, "rbf", self.length_scale, self.seed, orthogonal=True)
        except ParameterError as error:
            raise SchemaError(f"random_features: {error}") from None
        return CurvesAndFeatures(features, self.norm, row_norm)

    def to_dict(self) -> dict[str, Any]:
        """The form that a schema in JSON or TOML has."""
        return {
            field.name: shown_number(float(value)) if field.name in ("length_scale", "norm") else value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    def __str__(self) -> str:
        return (
            f"{self.number} random features of all columns, length scale {shown_number(self.length_scale)}, "
            f"norm {shown_number(self.norm)}"
        )


def random_features_of(described: Any) -> RandomFeatures | None:
    """The random features of a schema, checked: from a mapping, or as they were given; None if there are none.

    Raises
    ------
    SchemaError
        If the description contradicts itself.
    """
    if described is None or isinstance(described, RandomFeatures):
        return described
    if not isinstance(described, Mapping):
        raise SchemaError("random_features must be a table, as in random_features = { number = 500, length_scale = 1.5 }.")
    check_fields("random_features", described, RandomFeatures)
    return RandomFeatures(**described)
