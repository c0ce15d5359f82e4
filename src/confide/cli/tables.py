"""Reading and writing of tables by declared types: nothing about types is learned from the data.

From a CSV file, declared numbers are read as float64 and everything else as text. Parquet and Feather files state their own
types. The encoder (`confide.features.encoder`) decides what a cell means.

Messages of pyarrow quote cells, so they are never passed on.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from confide.data.on_disk import (
    CSV_MISSING,
    SEPARATORS,
    Kind,
    attempt,
    check_names,
    csv_refusal,
    csv_types,
    header_of,
    opened,
    separator_of,
    suffix_of,
)
from confide.errors import FileError, InputError
from confide.files import check_output, new_file
from confide.known_words import listed

_ROWS_PER_BATCH = 10_000


def read_columns(path: Path, kinds: Mapping[str, Kind]) -> Any:
    """The named columns of a file, as an Arrow table.

    Parameters
    ----------
    path : a CSV file in UTF-8 with a line of names and one separator between cells, or a Parquet or Feather file
    kinds : the columns to read, and whether a CSV file holds numbers or text in them. An empty cell is missing;
        so is a word such as NA or NaN, unless it is a listed level.

    Raises
    ------
    FileError, InputError
        With a message of one line, which names only columns in `kinds`: if a file lacks its line of names, what looks like
        other names are cells.
    """
    if suffix_of(path) == ".csv":
        check_names(path, header_of(path, kinds), kinds)
        table = _read_csv(path, csv_types(kinds), list(kinds), separator_of(path, kinds))
    else:
        table = _read_arrow(path, kinds)
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows below its line of names; at least one row is needed.")
    return table


def read_all(path: Path, wanted: Collection[str] = ()) -> Any:
    """All columns of a file as an Arrow table, in order. Cells of a CSV file are text, unchanged.

    Parameters
    ----------
    path : the file
    wanted : columns that it has, by which the separator of a CSV file is found
    """
    import pyarrow as pa

    if suffix_of(path) != ".csv":
        return _read_arrow(path, None)
    return _read_csv(path, dict.fromkeys(header_of(path, wanted), pa.string()), None, separator_of(path, wanted))


def separator_sentences(files: Sequence[Path], kinds: Collection[str]) -> list[str]:
    """What stands between the cells of CSV files, if it is not a comma: decided from their first lines alone.

    Parameters
    ----------
    files : the files of a table
    kinds : the columns that are read
    """
    if suffix_of(files[0]) != ".csv":
        return []
    found = sorted({SEPARATORS[separator_of(path, kinds)] for path in files} - {SEPARATORS[","]})
    what = "The file is" if len(files) == 1 else "Files are"
    return [f"{what} separated by {' and '.join(found)}, as the line of names shows."] if found else []


def write_table(table: Any, path: Path, *, overwrite: bool = False) -> None:
    """Write a CSV, Parquet or Feather file, as the ending of its name says, in one step (`confide.files.new_file`)."""
    with new_file(path, overwrite=overwrite) as unfinished:
        if suffix_of(path) == ".csv":
            with unfinished.open("w", encoding="utf-8", newline="") as stream:
                write_csv(table, stream)
        elif suffix_of(path) == ".parquet":
            import pyarrow.parquet as parquet

            parquet.write_table(table, unfinished)
        else:
            import pyarrow.feather as feather

            feather.write_feather(table, str(unfinished))


def write_csv(table: Any, stream: TextIO) -> None:
    """Write a table as CSV, with quotes only where they are needed."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS_PER_BATCH):
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def check_path(
    path: Path, others: Collection[Path], endings: Collection[str] | None = None, *, overwrite: bool = False
) -> None:
    """Refuse, before any work, an output that could not be written, or would replace an input or another output."""
    if endings is not None and path.suffix.lower() not in endings:
        raise FileError(f"{path}: the name of the output file must end in {listed(endings)}.")
    if any(_is_same(path, other) for other in others):
        raise FileError(f"{path} is an input of this command, or its other output, and would be lost; choose another name.")
    check_output(path, overwrite=overwrite)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, also if by different names or links."""
    with suppress(OSError, RuntimeError):  # a file that does not exist, or links that form a circle
        return one.resolve() == other.resolve() or one.samefile(other)
    return False


def _read_arrow(path: Path, kinds: Mapping[str, Kind] | None) -> Any:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    wanted = None if kinds is None else list(kinds)
    with suppress(pa.ArrowException, OSError), opened(path) as stream:
        if suffix_of(path) == ".parquet":
            file = parquet.ParquetFile(stream)
            check_names(path, file.schema_arrow.names, wanted or [])
            return file.read(columns=wanted)
        table = feather.read_table(stream)
        check_names(path, table.column_names, wanted or [])
        return table if wanted is None else table.select(wanted)
    raise FileError(f"{path} is damaged, or is not a file of the type that its name states.")


def _read_csv(path: Path, types: dict[str, Any], wanted: list[str] | None, separator: str) -> Any:
    import pyarrow.csv as arrow_csv

    options = {
        "parse_options": arrow_csv.ParseOptions(newlines_in_values=True, delimiter=separator),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=types, include_columns=wanted, null_values=list(CSV_MISSING)
        ),
    }
    return attempt(lambda: arrow_csv.read_csv(path, **options), partial(csv_refusal, path, types))
