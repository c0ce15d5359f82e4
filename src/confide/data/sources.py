"""Where rows come from: the files that a path, an address, a query or a stream stands for.

Parquet, Arrow, Feather and plain CSV files are read where they lie. Everything else is written once to a private temporary
file (`confide.data.spooled`), as Arrow where the source declares types, and as plain CSV where the schema does.

Libraries for sources are optional, and imported on use. Their messages may hold cells or passwords, so they are never passed
on.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from confide.data.files import READABLE, SEPARATORS, Kind, best_separator, files_named, opened, suffix_of
from confide.data.spooled import SpooledFile, given_by, pieces_of, spooled, spooled_cells, spooled_pieces
from confide.errors import FileError, InputError, ParameterError, imported, is_list
from confide.features.canonical_labels import canonical_label
from confide.features.cells import POINT
from confide.features.schema import Schema
from confide.features.toml_form import ADDRESS, is_path, refuse_address, shown_address
from confide.known_words import listed

SHEETS = (".xlsx", ".xls", ".xlsb", ".ods")
"""Endings of workbooks."""
STATISTICS = {".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".sas7bdat": "read_sas7bdat",
              ".xpt": "read_xport"}  # fmt: skip
"""Endings of files of Stata, SPSS and SAS, and what reads them."""
_ROWS_AT_ONCE = 2**14


def files_of(
    rows: Any, schema: Schema | None = None, query: str | None = None, target: str | None = None, values: Any = None
) -> tuple[Path, ...]:
    """The files of a table. Those of a pattern or of a folder are in the order of their names.

    Parameters
    ----------
    rows : path, pattern, folder, or address of files, or a list of them; rows that come in pieces
        (`confide.data.spooled.pieces_of`); the address of a database, with `query`
    schema : says how files of text are written, and whether it lists labels or codes
    query : the text of a query in SQL, or None
    target : a column of numbers beside those of the schema, or None
    values : a mapping of what names such as :release in the query stand for; the database gets them apart from its text

    Raises
    ------
    ParameterError, FileError, InputError
        If there is no file, a file comes twice, files are of several kinds, or a source cannot be read.
    """
    imported("pyarrow", "a table in a file, in pieces or in a database", "files")
    if query is not None:
        return (_answer(rows, query, values or {}),)
    if pieces_of(rows) is not None:
        return spooled_pieces(rows)
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "columns"):
        raise ParameterError("open_rows takes rows that come in pieces or lie elsewhere. Give fit a frame as it is, with y.")
    given = [rows] if is_path(rows) else list(rows) if is_list(rows) else [None]
    if not all(map(is_path, given)):
        raise ParameterError("open_rows needs the path of a file or a folder, an address, a pattern, or a list of them.")
    if not given:
        raise ParameterError("open_rows was given no file; give at least one.")
    found = [path for each in given for path in located(each)]
    if len({path.resolve() for path in found}) < len(found):
        # Each row must be counted only once.
        raise ParameterError("these files name the same file twice; give each once.")
    own = [path for path in given if isinstance(path, SpooledFile)]
    files = tuple(path if path in own else _readable(path, schema, target) for path in found)
    if len({suffix_of(path) for path in files}) > 1:
        raise ParameterError("the files are of several kinds; give files of one kind.")
    return files


def located(path: Any) -> Sequence[Path]:
    """The files that a path, a pattern, a folder or an address stands for, of whatever kind."""
    if isinstance(path, SpooledFile):
        return (path,)
    if (scheme := ADDRESS.match(str(path))) and scheme[1].lower() != "file":
        return _fetched(str(path))
    refuse_address(path)
    if not Path(path).is_dir():
        return files_named(os.fspath(path))
    endings = (*READABLE, *SHEETS, *STATISTICS)
    files = sorted(file for file in Path(path).rglob("*") if file.name.lower().endswith(endings) and file.is_file())
    # Programs keep files of their own in a folder, under names that begin so.
    kept = [file for file in files if not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)]
    if not kept:
        raise FileError(f"{path}: the folder holds no table. The name of a table ends in {listed(endings)}.")
    return kept


def _readable(path: Path, schema: Schema | None, target: str | None) -> Path:
    """A file that is read block by block: the path itself, or a private file of the same rows."""
    written, name = {} if schema is None else schema.table, path.name.lower()
    if name.endswith(tuple(STATISTICS)):
        rows = partial(_rows_of_statistics, path, schema)
    elif name.endswith(SHEETS):
        rows = partial(rows_of_sheet, path, written)
    elif schema is not None and written and suffix_of(path) == ".csv":
        rows = partial(_rows_of_text, path, schema, kinds_read(schema, target))
    else:
        return path
    parts = [part for part in path.parent.parts if "=" in part]  # what the folders of a partition state
    return spooled_cells("/".join([*parts, "rows.csv"]), f"{path}", rows)


def kinds_of_columns(schema: Schema) -> dict[str, Kind]:
    """The kind of each column of a CSV file that the columns of a schema read: text, unless all of them read numbers."""
    kinds: dict[str, Kind] = dict.fromkeys(schema.raw_names, "number")
    for column in schema.columns:
        if not (column.is_number and column.holds_numbers):
            kinds[column.raw_name] = "text"
    return kinds


def kinds_read(schema: Schema, target: str | None = None) -> dict[str, Kind]:
    """The kind of each column that is read from a CSV file: of the schema, person, cohort, weight, target or `target`."""
    kinds = kinds_of_columns(schema)
    if target is not None:
        kinds[target] = "number"
    elif schema.target is not None:
        kinds[schema.target.column] = "text" if schema.target.bounds is None else "number"
    if schema.choosing is not None:
        kinds[schema.choosing] = "text"
    for one in schema.beside:
        kinds[one.column] = "number"
    return kinds


# Files at an address.


def _fetched(address: str) -> list[SpooledFile]:
    """Private copies of the files at an address, or of all that match a pattern."""
    shown = shown_address(address)
    if re.match("(postgres|postgresql|sqlite|mysql|mariadb|oracle|mssql)[+:]", shown):
        raise ParameterError(f"{shown} is a database; give the text of a query in SQL for the rows (--query FILE).")
    remote: Any = imported("fsspec", f"{shown}, an address,", "remote")
    try:
        files = remote.open_files(re.sub(r":/+", "://", address, count=1), "rb")
        refused = "" if files else "no file matches it"
    except ImportError as error:
        refused = f"it needs a library more, {error.name or 'which fsspec names in its list of implementations'}"
    except Exception as error:  # noqa: BLE001 - every kind of address has errors of its own
        refused = type(error).__name__
    if refused:
        raise FileError(f"{shown} cannot be opened ({refused}); correct the address, or copy the file to this machine.")

    def copied(file: Any, stream: Any) -> None:
        def chunks() -> Iterator[bytes]:
            with file as given:
                yield from iter(partial(given.read, 2**20), b"")

        stream.writelines(given_by(shown, chunks))

    return [spooled(_name_of(file.path), shown_address(file.full_name), partial(copied, file)) for file in files]


def _name_of(path: str) -> str:
    """The name of a file at a path elsewhere, below the folders of its partition."""
    *folders, name = re.sub(r"^[^/]*://[^/?#]*|[?#].*", "", path).strip("/").split("/")
    return "/".join([*(folder for folder in folders if "=" in folder), name or "table"])


# Rows of a query.


def _answer(address: Any, query: Any, values: Mapping[str, str]) -> SpooledFile:
    """The rows of a query, as they were in the database at one moment."""
    if not isinstance(address, str) or not isinstance(query, str):
        raise ParameterError('query is for the address of a database, such as "postgresql://host/db", and is text in SQL.')
    sql: Any = imported("sqlalchemy", "a query", "postgres")
    try:
        url = sql.make_url(re.sub(r"^postgres(ql)?:", "postgresql+psycopg:", address))
        engine = sql.create_engine(url, poolclass=sql.NullPool)
        refused = ""
    except ImportError as error:
        refused = f"it needs a library more, {error.name}"
    except Exception as error:  # noqa: BLE001 - a message may hold the password
        refused = type(error).__name__
    if not refused and url.get_backend_name() == "sqlite" and url.database and not Path(url.database).is_file():
        refused = "there is no such file"
    shown = f"the query of {shown_address(address)}"
    if refused:
        raise FileError(f"{shown} cannot be asked ({refused}); correct the address of the database.")

    def rows() -> Iterator[Sequence[Any]]:
        with engine.connect() as connection:
            if engine.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            if engine.name == "sqlite":
                connection.exec_driver_sql("PRAGMA query_only = ON")
            options = {"stream_results": True, "max_row_buffer": _ROWS_AT_ONCE, "no_parameters": not values}
            asked, connection = query.strip().rstrip(";"), connection.execution_options(**options)
            # All other colons are those of SQL, as in ::date.
            named = sql.text(re.sub(rf":(?!({'|'.join(values)})\b)", r"\\:", asked))
            found = connection.execute(named, values) if values else connection.exec_driver_sql(asked)
            yield tuple(found.keys())
            for some in found.partitions(_ROWS_AT_ONCE):
                yield from some

    return spooled_cells("rows.csv", shown, rows)


# Sheets of a workbook.


def rows_of_sheet(path: Path, written: Any) -> Iterator[Sequence[Any]]:
    """The cells of one sheet, from its line of names on."""
    reader: Any = imported("python_calamine", f"{path}, a workbook,", "excel")
    with opened(path):
        pass  # says why a file cannot be read
    book = reader.CalamineWorkbook.from_path(str(path))
    names, sheet = book.sheet_names, written.get("sheet")
    if (sheet is None and len(names) > 1) or (sheet is not None and sheet not in names):
        lacks = f'has no sheet "{sheet}"' if sheet else "has several sheets"
        raise InputError(f'{path} {lacks}; name one in the schema, as in table = {{ sheet = "{names[0]}" }}.')
    rows = book.get_sheet_by_name(sheet or names[0]).iter_rows()
    given, line = _header(written)
    yield from [given] if given else ()
    for number, row in enumerate(rows, start=1):
        if any(cell not in ("", None) for cell in row) and number >= line:
            yield [_cell(cell) for cell in row]


def _header(written: Any) -> tuple[Any, int]:
    """The names of the columns, if the schema lists them, and the first line that is read."""
    header: Any = written.get("header", 1)
    return (header, 1) if is_list(header) else ([], header)


def _cell(cell: Any) -> Any:
    """A cell as it is written in text: whole numbers without a point, and nothing for one that is missing."""
    if not isinstance(cell, float):
        return cell
    return int(cell) if cell.is_integer() else None if math.isnan(cell) else cell


# Tables of text that are not written as programs write them.


def _rows_of_text(path: Path, schema: Schema, kinds: Mapping[str, Kind]) -> Iterator[Sequence[str]]:
    """The cells of a table of text, with numbers as programs write them."""
    written: Any = schema.table
    decimal, thousands = written.get("decimal", "."), written.get("thousands", "")
    given, line = _header(written)
    # The sign that is not declared may not stand in a number. A comma stands in none anyway.
    signs = str.maketrans({",": ".", ".": POINT} if decimal == "," else {})
    grouped = re.compile(rf"\s*[+-]?\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+(?:{re.escape(decimal)}\d*)?\s*")
    with opened(path) as stream:
        encoding = written.get("encoding", "utf-8")
        lines = io.TextIOWrapper(stream, "utf-8-sig" if encoding == "utf-8" else encoding, newline="")
        for _ in range(line - 1):
            lines.readline()
        first = lines.readline()
        cells = {sign: next(csv.reader([first], delimiter=sign), []) for sign in SEPARATORS}
        if given:
            separator = next((sign for sign in SEPARATORS if len(cells[sign]) == len(given)), ",")
        else:
            separator = best_separator(cells, kinds)
        separator = written.get("separator", "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else separator)
        csv.field_size_limit(sys.maxsize)
        table = (row for row in csv.reader(chain([first], lines), delimiter=separator, strict=True) if row)
        names = given or next(table, [])
        yield names
        places = [place for place, name in enumerate(names) if kinds.get(name) == "number"]
        for row in table:
            for place in places:
                if place < len(row):
                    cell = row[place]
                    cell = cell.replace(thousands, "") if thousands and grouped.fullmatch(cell) else cell
                    row[place] = cell.translate(signs)
            yield row


# Files of Stata, SPSS and SAS.


def facts_of_statistics(path: Path) -> Any:
    """What a file of Stata, SPSS or SAS says of its columns, as pyreadstat describes it. No row is read."""
    # Codes for missing cells are told where they are asked for, and not in files of these endings.
    asked = {} if path.suffix.lower() in (".por", ".xpt") else {"user_missing": True}
    return _statistics(path, metadataonly=True, **asked)[1]


def _statistics(path: Path, **options: Any) -> Any:
    """What pyreadstat reads of a file."""
    library: Any = imported("pyreadstat", f"{path}, a file of Stata, SPSS or SAS,", "statistics")
    with opened(path):
        pass  # says why a file cannot be read
    read = getattr(library, STATISTICS[path.suffix.lower()])
    return next(given_by(f"{path}", lambda: [read(str(path), **options)]))


def _rows_of_statistics(path: Path, schema: Schema | None) -> Iterator[Sequence[Any]]:
    """The cells of a file of Stata, SPSS or SAS. What the file declares to be missing is missing.

    A column whose categories the schema lists as labels of the file has these labels in its cells, and otherwise codes.
    """
    facts = facts_of_statistics(path)
    yield facts.column_names
    levels: dict[str, Any] = {} if schema is None else {each.raw_name: each.known for each in schema.columns if each.known}
    if schema is not None and schema.target is not None:
        levels[schema.target.column] = dict.fromkeys(map(canonical_label, schema.target.labels))
    labels: list[Mapping[Any, Any]] = []
    for name in facts.column_names:
        of_codes, known = facts.variable_value_labels.get(name, {}), levels.get(name, {})
        n_codes, n_labels = (sum(canonical_label(cell) in known for cell in side) for side in (of_codes, of_codes.values()))
        labels.append(of_codes if n_labels > n_codes else {})
    done = 0
    while True:
        columns, _ = _statistics(path, row_offset=done, row_limit=_ROWS_AT_ONCE, output_format="dict")
        pairs = zip(facts.column_names, labels, strict=True)
        cells = [[of_codes.get(cell, _cell(cell)) for cell in list(columns[name])] for name, of_codes in pairs]
        yield from zip(*cells, strict=True)
        done += len(cells[0]) if cells else 0
        if not cells or len(cells[0]) < _ROWS_AT_ONCE:
            return
