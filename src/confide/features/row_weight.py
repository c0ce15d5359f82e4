"""The column that says how much each row counts, such as the design weights of a survey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.errors import InputError, SchemaError
from confide.features.cells import read_numbers
from confide.features.columns import shown_number
from confide.features.schema_checks import check_fields, column_title, finite_bound
from confide.types import Array

_LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class RowWeight:
    """The column of weights, and what is publicly known about it. It is not a feature.

    Parameters
    ----------
    column : name of the column in the table
    high : the cap, from 1e-9 to 1e9; a weight above it counts as the cap, and the noise grows with it
    mean : the mean weight, if it is public knowledge, above 0 and at most `high`; forecasts and intervals use it, and no
        noise depends on it. Of weights that are inverse chances of being in the sample it is the size of the population over
        the number of rows

    Raises
    ------
    SchemaError
        If a value contradicts this description.
    """

    column: str
    high: float
    mean: float | None = None

    def __post_init__(self) -> None:
        column_title(self.column, "the weight's column")
        high = finite_bound("weight", "high", self.high)
        if not 1.0 / _LARGEST <= high <= _LARGEST:
            raise SchemaError("weight: high must be a positive number between 1e-9 and 1e9, chosen without the rows.")
        object.__setattr__(self, "high", high)
        if self.mean is not None:
            mean = finite_bound("weight", "mean", self.mean)
            if not 0.0 < mean <= high:
                raise SchemaError("weight: mean must be above 0 and at most high.")
            object.__setattr__(self, "mean", mean)

    def read(self, cells: Any, *, refuse: bool) -> Array:
        """The weights (n,) of some rows, from 0 to the cap.

        Parameters
        ----------
        cells : the cells of the column
        refuse : False lets every cell pass; one that is no weight counts 0

        Raises
        ------
        InputError
            If a cell is missing, is no finite number or is negative.
        """
        what = f'column "{self.column}"'
        numbers = np.asarray(read_numbers(what, cells, refuse), dtype=np.float64)
        # The comparison is written so that a NaN is refused.
        if refuse and not ((numbers >= 0.0) & np.isfinite(numbers)).all():
            raise InputError(f"{what}: every row needs a weight, a finite number that is not negative.")
        return np.fmin(np.fmax(numbers, 0.0), self.high)

    def refusal_of_zeros(self) -> InputError:
        """The refusal of rows that all have the weight 0."""
        return InputError(f'column "{self.column}": the weights of all rows are 0; some row must count.')

    def __str__(self) -> str:
        mean = "" if self.mean is None else f", mean {shown_number(self.mean)}"
        return f"{self.column}: at most {shown_number(self.high)}{mean}"

    def to_dict(self) -> dict[str, Any]:
        """The weight as in a TOML file: JSON-able."""
        mean = {} if self.mean is None else {"mean": shown_number(self.mean)}
        return {"column": self.column, "high": shown_number(self.high)} | mean


def row_weight_of(described: object) -> RowWeight | None:
    """The weight of a schema, from a mapping as in a TOML file or as it was given.

    Raises
    ------
    SchemaError
        If the argument is neither, or contradicts itself.
    """
    if described is None or isinstance(described, RowWeight):
        return described
    if not isinstance(described, Mapping):
        raise SchemaError('weight must be a table such as { column = "design_weight", high = 20 }.')
    check_fields("weight", described, RowWeight)
    return RowWeight(**described)
