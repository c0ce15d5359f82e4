"""A table read piece by piece for its curator, with every cell of a file of text as text, however the file is written.

A fit reads numbers as numbers and refuses a file in which one cell is none. Here every cell is looked at, so that it can be
counted. Memory does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confide.curation.text_form import TextForm, form_of, is_text_table
from confide.data.on_disk import BATCH_ROWS, FilePart, Stamp, attempt
from confide.errors import FileError
from confide.features.cells import distinct_cells

_BLOCK_BYTES = 2**22


@dataclass(slots=True)
class Ragged:
    """How many rows of a file have more or fewer cells than its first line has names. They are skipped."""

    n_rows: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a table. It holds data.

    Parameters
    ----------
    table : Arrow table or record batch
    from_text : whether it comes from a file of text, so that all cells are text
    """

    table: Any
    from_text: bool

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def cells(self, name: str) -> Any:
        """The cells of a column, as one Arrow array."""
        import pyarrow as pa

        column = self.table.column(name)
        if isinstance(column, pa.ChunkedArray):
            return column.unify_dictionaries().combine_chunks()
        return column

    def distinct(self, name: str) -> list[tuple[object, int]]:
        """The different cells of a column, None for a null, and in how many rows each is."""
        import numpy as np

        values, positions = distinct_cells(f'column "{name}"', self.cells(name))
        counts = np.bincount(positions + 1, minlength=len(values) + 1).tolist()
        return [(None, counts[0])] * bool(counts[0]) + list(zip(values, counts[1:], strict=True))


def table_pieces(
    path: Path, names: Sequence[str], form: TextForm | None = None, ragged: Ragged | None = None
) -> Iterator[Piece]:
    """The rows of a file, some at a time.

    Parameters
    ----------
    path : a file of text, in any form that `form_of` finds, or a Parquet or Feather file
    names : the columns to read
    form : how a file of text is written; None to find out
    ragged : counts rows that have more or fewer cells than the first line

    Raises
    ------
    FileError
        If the file cannot be read. The message shows no cell.
    """
    if is_text_table(path):
        form = form_of(path, whole=True) if form is None else form
        batches = _text_batches(path, list(names), form, Ragged() if ragged is None else ragged)
    else:
        batches = FilePart(Stamp.of(path), dict.fromkeys(names, "text")).tables(list(names), BATCH_ROWS)
    while (batch := attempt(partial(next, batches, None), partial(_unreadable, path))) is not None:
        if batch.num_rows:
            yield Piece(batch, is_text_table(path))


def _unreadable(path: Path, _: str) -> FileError:
    return FileError(f"{path} cannot be read: it is damaged, or a quote in it is not closed.")


def _text_batches(path: Path, names: list[str], form: TextForm, ragged: Ragged) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    def skip(_: object) -> str:
        ragged.n_rows += 1
        return "skip"

    text = pa.dictionary(pa.int32(), pa.string())
    # Decompression follows from the ending of the name.
    with pa.input_stream(str(path)) as stream:
        yield from arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, encoding=form.encoding.removesuffix("-sig")),
            parse_options=arrow_csv.ParseOptions(
                delimiter=form.separator, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, text), include_columns=names),
        )
