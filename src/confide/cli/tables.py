"""From a file to a table and back, by what was declared: nothing about types is learned from the data.

Of a CSV file, declared numbers are read as float64 and everything else as text; Parquet and Feather files bring their
types with them. What a cell means is for the encoder to say (`confide.features.encoder`).

pyarrow quotes cells in its messages, so they are never passed on.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, TypeAlias

from confide.errors import FileError, InputError
from confide.features.cells import looks_like_number

Kind: TypeAlias = Literal["number", "text"]

READABLE = (".csv", ".parquet", ".feather", ".arrow")
_ROWS_AT_A_TIME = 10_000
_QUOTES = '{}: a quote (") is not closed; close it, or write "" for one that belongs to a cell, between quotes.'


def read_columns(path: Path, kinds: Mapping[str, Kind]) -> Any:
    """The named columns of a file, as an Arrow table.

    Parameters
    ----------
    path : a CSV file in UTF-8 with a line of names and commas between cells, or a Parquet or Feather file
    kinds : the columns wanted, and what a CSV file holds in them. An empty cell is missing; so is a word such as NA or
        NaN where a number is due.

    Raises
    ------
    FileError, InputError
        In one line that names columns among `kinds` alone: other names may be cells of a file without a first line of
        names.
    """
    import pyarrow as pa

    if _suffix(path) == ".csv":
        header = _header(path)
        _check_names(path, header, kinds)
        text = pa.dictionary(pa.int32(), pa.string())
        types = {name: pa.float64() if kind == "number" else text for name, kind in kinds.items()}
        table = _read_csv(path, header, types, list(kinds))
    else:
        table = _read_arrow(path, kinds)
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows below its names; at least one is needed.")
    return table


def read_all(path: Path) -> Any:
    """All columns of a file as an Arrow table, in order; those of a CSV file as text, letter by letter."""
    import pyarrow as pa

    if _suffix(path) != ".csv":
        return _read_arrow(path, None)
    header = _header(path)
    return _read_csv(path, header, dict.fromkeys(header, pa.string()), None)


def write_table(table: Any, path: Path) -> None:
    """Write a CSV, Parquet or Feather file, by the end of its name."""
    try:
        if _suffix(path) == ".csv":
            with path.open("w", encoding="utf-8", newline="") as stream:
                write_csv(table, stream)
        elif _suffix(path) == ".parquet":
            import pyarrow.parquet as parquet

            parquet.write_table(table, path)
        else:
            import pyarrow.feather as feather

            feather.write_feather(table, str(path))
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or 'the system refused'}.") from None


def write_csv(table: Any, stream: TextIO) -> None:
    """Write a table as CSV, with quotes only where they are needed."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS_AT_A_TIME):
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def check_output(path: Path, inputs: Collection[Path], endings: Collection[str] | None = None) -> None:
    """Refuse, before any work, an output that could not be written or would replace an input."""
    if endings is not None and path.suffix.lower() not in endings:
        raise FileError(f"{path}: the name of the output must end in {_listed(endings)}.")
    if (path.exists() and not path.is_file()) or not path.parent.is_dir():
        raise FileError(f"cannot write {path}: it must be an ordinary file in a folder that exists.")
    if any(path.resolve() == other.resolve() for other in inputs):
        raise FileError(f"{path} is an input of this command and would be lost; give another name with --out.")


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in READABLE:
        raise FileError(f"{path}: the name of a table must end in {_listed(READABLE)}.")
    return suffix


def _read_arrow(path: Path, kinds: Mapping[str, Kind] | None) -> Any:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    wanted = None if kinds is None else list(kinds)
    with suppress(pa.ArrowException, OSError), _opened(path) as stream:
        if _suffix(path) == ".parquet":
            file = parquet.ParquetFile(stream)
            _check_names(path, file.schema_arrow.names, wanted or [])
            return file.read(columns=wanted)
        table = feather.read_table(stream)
        _check_names(path, table.column_names, wanted or [])
        return table if wanted is None else table.select(wanted)
    raise FileError(f"{path} is damaged, or not a file of the kind that its name says.")


def _read_csv(path: Path, header: list[str], types: dict[str, Any], wanted: list[str] | None) -> Any:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    try:
        return arrow_csv.read_csv(
            path,
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=types, include_columns=wanted),
        )
    except (pa.ArrowException, OSError) as error:
        complaint = str(error)
    # Of the complaint only the kind and the number of a column are used; the rest of it may be data.
    if re.match(r"CSV parse error: (Row #[0-9]+: )?Expected [0-9]+ columns, got [0-9]+", complaint):
        raise InputError(f"{path}: some rows have more or fewer cells than the first line has names; correct them.")
    found = re.match(r"In CSV column #([0-9]+): ", complaint)
    name = header[int(found[1])] if found and int(found[1]) < len(header) else None
    if name is not None and types.get(name) == pa.float64():
        raise InputError(
            f'{path}: column "{name}" holds cells that are not numbers; give numbers, and leave missing cells empty.'
        )
    raise FileError(f"{path} cannot be read as CSV; give a text file in UTF-8 with commas between cells.")


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV file, after checks that pyarrow does not make."""
    with _opened(path) as stream:
        n_quotes = sum(chunk.count(b'"') for chunk in iter(lambda: stream.read(1 << 20), b""))
    if n_quotes % 2:
        # pyarrow would take the rest of the file for one cell.
        raise InputError(_QUOTES.format(path))
    if n_quotes:
        _check_quotes(path)
    names: list[str] = []
    with suppress(csv.Error), _opened(path) as stream:
        # Rows may follow in the same block, and whether they are UTF-8 is for pyarrow to say.
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        names = next((row for row in csv.reader(lines) if row), [])
    if not names:
        raise FileError(f"{path} is empty or is not text; its first line must hold the names of the columns.")
    return names


def _check_quotes(path: Path) -> None:
    """Refuse text between a closing quote and the next comma: pyarrow would run several rows together there."""
    csv.field_size_limit(sys.maxsize)
    with _opened(path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        try:
            for _ in csv.reader(lines, strict=True):
                pass
        except csv.Error:
            wrong = True
        else:
            wrong = False
    if wrong:
        raise InputError(_QUOTES.format(path))


def _check_names(path: Path, present: Collection[str], wanted: Collection[str]) -> None:
    absent = [name for name in wanted if name not in present]
    is_csv = _suffix(path) == ".csv"
    if absent and is_csv and any(looks_like_number(name) for name in present):
        raise InputError(
            f"{path} lacks the columns {_listed(absent)}, and its first line looks like a row: put a line with the names of "
            f"the columns above it."
        )
    if absent:
        raise InputError(
            f"{path} lacks the columns {_listed(absent)}; add them."
            + (" A CSV file is text in UTF-8, with a line of names first and commas between them." if is_csv else "")
        )
    repeated = [name for name in wanted if list(present).count(name) > 1]
    if repeated:
        raise InputError(f"{path} has more than one column of the name {_listed(repeated)}; keep one of each.")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    with stream:
        yield stream


def _listed(names: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
