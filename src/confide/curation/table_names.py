"""The names of the columns of a table, and the types that its file declares. No value of a row is used.

Of a file of text, the first 2**20 bytes are read and decoded, and only the cells of its first line are used. Of a Parquet or
Feather file, only its description of its columns is read. If a file of text has no line of names, its first line is data: a
line that looks like data is refused, and nothing of it is shown. No check recognises all data.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from confide.curation.text_form import form_of, is_text_table, text_endings
from confide.data.on_disk import attempt, opened
from confide.errors import FileError, InputError, ParameterError
from confide.features.column_names import looks_like_number
from confide.features.toml_form import refuse_address

DeclaredType: TypeAlias = Literal["number", "text", "boolean", "other"]

_ENDINGS_OF_TYPED_FILES = (".parquet", ".feather", ".arrow")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_ANSWERS = frozenset({"yes", "no", "true", "false", "male", "female"})
_SIGNS = tuple("$€<>=")
_LONGEST_NAME = 120
"""In characters. A longer first cell is a text, not a name."""


@dataclass(frozen=True, slots=True)
class TableNames:
    """The columns of a table by name, in order.

    Parameters
    ----------
    names : all different, none blank
    types : what the file declares of them; nothing for a file of text
    n_unnamed : how many columns have no name, or are the index of a data frame; they are left out
    """

    names: tuple[str, ...]
    types: dict[str, DeclaredType]
    n_unnamed: int = 0


def names_of_table(path: Path, *, has_header: bool = False) -> TableNames:
    """The names in a file.

    Parameters
    ----------
    path : the file
    has_header : whether its curator says that its first line holds names; otherwise a line that looks like data is refused

    Raises
    ------
    FileError
        If the file cannot be read, or its ending is not that of a table.
    InputError
        If its first line looks like data. The message shows nothing of it.
    """
    refuse_address(path)
    if path.name.lower().endswith(_ENDINGS_OF_TYPED_FILES):
        return _names_of_typed_file(path)
    if not is_text_table(path):
        advice = " Save the sheet as CSV first." if path.suffix.lower() in (".xls", ".xlsx", ".ods") else ""
        raise FileError(
            f"{path}: the name of a table must end in {text_endings()}, {', '.join(_ENDINGS_OF_TYPED_FILES)}.{advice}"
        )
    found = form_of(path, whole=False).names
    names = [name for name in found if name.strip()]
    if repeated := sorted({name for name in names if has_header and names.count(name) > 1}):
        raise InputError(f'{path}: the first line has the name "{repeated[0]}" twice; every column needs a name of its own.')
    if not has_header and looks_like_data(found):
        raise InputError(
            f"The first line of {path} looks like data: among its cells are numbers, dates, answers such as yes, texts "
            f"that begin with a digit or a sign, line breaks, repeated or long texts. If the file has no line of names, put "
            f"one above its rows. If these are names, say so with --header, or give them as --columns A,B,C."
        )
    return TableNames(tuple(names), {}, len(found) - len(names))


def names_given(text: str) -> TableNames:
    """The names that an option lists, with commas between them and quotes around names that hold commas.

    Raises
    ------
    ParameterError
        If a name is blank, or comes twice.
    """
    import csv

    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names or not all(names):
        raise ParameterError("--columns needs the names of all columns, with commas between them, such as age,sex,income.")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ParameterError(f'--columns names "{repeated[0]}" twice; every column needs a name of its own.')
    return TableNames(tuple(names), {})


def looks_like_data(cells: Sequence[str]) -> bool:
    """Whether the first line of a table is probably not a line of names.

    Parameters
    ----------
    cells : its cells. A blank cell may be the head of an index column; more than one are no names
    """
    named = [cell for cell in cells if cell.strip()]
    return len(set(named)) < len(named) or len(cells) - len(named) > 1 or not named or any(_is_data(cell) for cell in named)


def _is_data(cell: str) -> bool:
    """Whether a cell looks like one of a row."""
    text = cell.strip()
    return bool(
        looks_like_number(cell)
        or _DATE.fullmatch(cell)
        or _MAIL.fullmatch(cell)
        or len(cell) > _LONGEST_NAME
        or text.casefold() in _ANSWERS
        or text[0].isdigit()
        or text.startswith(_SIGNS)
        or any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in cell)
    )


def schema_of_typed_file(path: Path) -> Any:
    """What a Parquet or Feather file says of its columns, as an Arrow schema.

    Raises
    ------
    FileError
        If the file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    def damaged(_: str) -> FileError:
        return FileError(f"{path} is damaged, or is not a file of the kind that its name says; get a fresh copy.")

    with opened(path) as stream:
        if path.suffix.lower() == ".parquet":
            return attempt(lambda: parquet.read_schema(stream), damaged)
        return attempt(lambda: pa.ipc.open_file(stream).schema, damaged)


def _names_of_typed_file(path: Path) -> TableNames:
    schema = schema_of_typed_file(path)
    kept = [name for name in schema.names if name.strip() and not name.startswith("__index_level_")]
    if len(set(kept)) < len(kept):
        raise InputError(f"{path} has columns of the same name; give each column a name of its own.")
    if not kept:
        raise FileError(f"{path} has no named columns.")
    return TableNames(
        tuple(kept), {name: _declared(schema.field(name).type) for name in kept}, len(schema.names) - len(kept)
    )


def _declared(kind: Any) -> DeclaredType:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else "other"
