"""Cells of rows to be predicted that the schema does not describe: counted for the caller, who has these rows.

A fit counts no such cells, because their number would be an answer about its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.features.cells import read_numbers
from confide.features.codes import Codes, encoding_of, is_kept_as_is
from confide.features.columns import CategoryColumn, NumberColumn, shown_number
from confide.features.schema import Schema
from confide.features.table import RawTable


@dataclass(frozen=True, slots=True)
class CellsOutside:
    """How many cells of one column lie outside of what its description allows. It holds a count of rows, and no cell.

    Parameters
    ----------
    column : the column's public description
    count : number of cells, at least 1
    """

    column: NumberColumn | CategoryColumn
    count: int

    def __str__(self) -> str:
        several = self.count != 1
        number = f'"{self.column.name}": {self.count:,} cell{"s" * several}'
        if isinstance(self.column, NumberColumn):
            low, high = shown_number(self.column.low), self.column.shown(self.column.high)
            place = f"lie{'s' * (not several)} outside {low} to {high} and count{'s' * (not several)} as the nearer bound"
            return f"{number} {place}"
        if several:
            return f"{number} are none of the listed categories and count as no level"
        return f"{number} is none of the listed categories and counts as no level"


def cells_outside(frame: Any, schema: Schema, codes: Codes) -> tuple[CellsOutside, ...]:
    """The columns with numbers outside their bounds, or with categories that have no level; missing cells do not count.

    A category that counts as another one (`other`) is described, so it does not count here.

    Parameters
    ----------
    frame : the rows, as `Encoder.read` took them
    schema : the public description of the columns
    codes : what `Encoder.read` gave for the frame, checked
    """
    kept, others = iter(codes.numbers), iter(codes.others)
    raw: RawTable | None = None
    found: list[CellsOutside] = []
    for place, column in enumerate(schema.columns):
        is_kept = is_kept_as_is(encoding_of(column))
        read = next(kept if is_kept else others)
        if isinstance(column, CategoryColumn):
            count = int((read < 0).sum())
        else:
            if not is_kept:
                # These codes were clipped already.
                raw = raw or RawTable.of(frame, schema, with_person=False)
                read = column.without_codes(read_numbers(f'column "{column.name}"', raw.columns[place]))
            count = _outside(column, read)
        if count:
            found.append(CellsOutside(column, count))
    return tuple(found)


def _outside(column: NumberColumn, numbers: Any) -> int:
    # NaN, a missing number, is neither below nor above.
    with np.errstate(invalid="ignore"):
        # As numbers of Python the bounds would be rounded to the precision of the column.
        return int(((numbers < np.float64(column.low)) | (numbers > np.float64(column.high))).sum())
