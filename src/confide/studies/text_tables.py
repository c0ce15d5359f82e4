"""The names of the columns of a table, and the types that its file declares. No value of a row is used.

Of a file of text, the first 2**20 bytes are read and decoded, and only the cells of its first line are used. Of a Parquet or
Feather file, only its description of its columns is read. If a file of text has no line of names, its first line is data: a
line that looks like data is refused, and nothing of it is shown. No check recognises all data.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from confide.data.files import BATCH_ROWS, SEPARATORS, FilePart, Stamp, arrow_schema, attempt, best_separator, opened
from confide.data.sources import SHEETS, STATISTICS, facts_of_statistics, rows_of_sheet
from confide.errors import FileError, InputError, ParameterError, wording
from confide.features.cells import distinct_cells, looks_like_number
from confide.features.toml_form import refuse_address

if TYPE_CHECKING:
    import pyarrow as pa

# How a table of text is written: its encoding, its separator, and whether it is compressed. Found from bytes, not asked.
#
# A decoded cell is never shown here.

TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
"""Endings of the names of tables of text."""
ENCODING_NAMES = dict.fromkeys(("utf-8", "utf-8-sig"), "UTF-8") | {"latin-1": "Latin-1", "cp1252": "Windows-1252"}
ENCODING_NAMES |= dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be"), "UTF-16")
_NO_LATIN, _NO_WINDOWS = frozenset(range(0x80, 0xA0)), frozenset(b"\x81\x8d\x8f\x90\x9d")
"""Bytes that are no sign of text in Latin-1, and those of them that are none in Windows-1252, which has the euro."""
_FIRST_BYTES = 2**20
"""Within so many bytes the first line must end."""
_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a table of text is written.

    Parameters
    ----------
    encoding : a key of `ENCODING_NAMES`
    separator : what stands between cells, a key of `SEPARATORS`
    names : the cells of the first line that is not blank
    """

    encoding: str
    separator: str
    names: tuple[str, ...]

    @property
    def encoded(self) -> dict[str, object]:
        """What a schema says of the encoding: nothing of UTF-8."""
        return {} if self.encoding.startswith("utf-8") else {"encoding": self.encoding}


def is_text_table(path: Path) -> bool:
    """Whether the name of a file says that it is a table of text."""
    return path.name.lower().endswith(TEXT_ENDINGS)


def form_of(path: Path, wanted: Collection[str] = (), *, whole: bool) -> TextForm:
    """How a table of text is written. The separator is the one that a fit finds (`confide.data.files.separator_of`).

    Parameters
    ----------
    path : the file
    wanted : names of columns that decide between separators
    whole : whether all bytes are read to see whether they are UTF-8; otherwise the first line alone decides

    Raises
    ------
    FileError
        If the file cannot be read, is damaged, or begins with no text.
    """
    with opened(path) as stream:
        first = stream.read(_FIRST_BYTES)
        if first.startswith(codecs.BOM_UTF8):
            encoding = "utf-8-sig"
        elif first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16"
        elif b"\0" in first[:1000]:
            # Text of Latin letters in UTF-16 has a zero byte beside each letter.
            encoding = "utf-16-be" if first[:1] == b"\0" else "utf-16-le"
        else:
            seen = chain([first], iter(partial(stream.read, _CHUNK), b"")) if whole else [first.partition(b"\n")[0]]
            encoding = _encoding_of(seen)
    text = first.decode(encoding, errors="replace")
    only_tabs = path.name.lower().endswith((".tsv", ".tsv.gz"))
    rows = {separator: _first_row(text, separator) for separator in (["\t"] if only_tabs else SEPARATORS)}
    separator = best_separator(rows, wanted)
    if not rows[separator]:
        raise FileError(f"{path} is empty or is not text; its first line must hold the names of the columns.")
    return TextForm(encoding, separator, tuple(rows[separator]))


def _encoding_of(chunks: Iterable[bytes]) -> str:
    """UTF-8, or what else these bytes are text in: Windows-1252 where Latin-1 has no sign for one of them."""
    decoder, is_utf8, seen = codecs.getincrementaldecoder("utf-8")(), True, set[int]()
    for chunk in chain(chunks, [b""]):
        seen.update(chunk)
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError:
            is_utf8 = False
    return "utf-8" if is_utf8 else "cp1252" if seen & _NO_LATIN and not seen & _NO_WINDOWS else "latin-1"


def _first_row(text: str, separator: str) -> list[str]:
    """The cells of the first line that is not blank; nothing if it is not text."""
    csv.field_size_limit(sys.maxsize)
    with suppress(csv.Error):
        return next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row), [])
    return []


def stem_of(path: str | os.PathLike[str]) -> str:
    """The name of a table without its folder and its endings: "people" for "data/people.csv.gz"."""
    name = Path(path).name
    return name.removesuffix(".gz").rpartition(".")[0] or name


DeclaredType: TypeAlias = Literal["number", "text", "boolean", "date", "ordered", "other"]

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
    labels : the labels that a file of Stata, SPSS or SAS has for the codes of a column, without those of missing cells
    missing : the columns of which the file declares codes for missing cells
    written : how a file of text is written, as in a schema: what its first line tells, or what a public file shows
    n_unnamed : how many columns have no name, or are the index of a data frame; they are left out
    """

    names: tuple[str, ...]
    types: dict[str, DeclaredType]
    n_unnamed: int = 0
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    missing: Collection[str] = ()
    written: Mapping[str, object] = field(default_factory=dict)


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
        schema = arrow_schema(path)
        kept = [name for name in schema.names if name.strip() and not name.startswith("__index_level_")]
        if len(set(kept)) < len(kept):
            raise InputError(f"{path} has columns of the same name; give each column a name of its own.")
        if not kept:
            raise FileError(f"{path} has no named columns.")
        types = {name: _declared(schema.field(name).type) for name in kept}
        return TableNames(tuple(kept), types, len(schema.names) - len(kept))
    if path.suffix.lower() in STATISTICS:
        return _names_of_statistics(path)
    is_sheet = path.name.lower().endswith(SHEETS)
    if not is_sheet and not is_text_table(path):
        endings = (*TEXT_ENDINGS, *_ENDINGS_OF_TYPED_FILES, *SHEETS, *STATISTICS)
        raise FileError(f"{path}: the name of a table must end in {', '.join(endings)}.")
    form = None if is_sheet else form_of(path, whole=False)
    cells = next(rows_of_sheet(path, {}), ()) if form is None else form.names
    names_found = ["" if cell is None else str(cell) for cell in cells]
    names = [name for name in names_found if name.strip()]
    if has_header and (twice := _repeated(names)):
        raise InputError(f'{path}: the first line has the name "{twice}" twice; every column needs a name of its own.')
    if not has_header and looks_like_data(names_found):
        raise InputError(wording("first line of a table looks like data", path=path))
    # Programs that write semicolons do so because decimals have commas.
    written = {} if form is None else form.encoded | ({"decimal": ","} if form.separator == ";" else {})
    return TableNames(tuple(names), {}, len(names_found) - len(names), written=written)


def _names_of_statistics(path: Path) -> TableNames:
    """What a file of Stata, SPSS or SAS declares: names, types, labels, and codes for missing cells. No row is read."""
    facts, types, labels = facts_of_statistics(path), dict[str, DeclaredType](), dict[str, list[str]]()
    declared = set[str]()
    for name in facts.column_names:
        written = str(facts.original_variable_types.get(name)).lower()
        is_date = re.match("%t[dc]|%d|.?(date|ymd)|yymmdd|ddmmyy|mmddyy", written) is not None
        is_text = facts.readstat_variable_types[name] == "string"
        types[name] = "date" if is_date else "text" if is_text else "other" if re.match("%t|.*time", written) else "number"
        gaps = facts.missing_ranges.get(name, [])
        # Stata codes missing cells by letters, and has no others among the labels of numbers.
        known = facts.variable_value_labels.get(name, {})
        missing = [code for code in known if type(code) is str and not is_text]
        missing += facts.missing_user_values.get(name, [])
        coded = [code for code in known if code not in missing and not any(gap["lo"] <= code <= gap["hi"] for gap in gaps)]
        kept = [str(known[code]) for code in coded]
        if len(kept) > 1:
            labels[name] = kept
        declared |= {name} if gaps or missing else set()
    return TableNames(tuple(facts.column_names), types, 0, labels, declared)


def names_given(text: str) -> TableNames:
    """The names that an option lists, with commas between them and quotes around names that hold commas.

    Raises
    ------
    ParameterError
        If a name is blank, or comes twice.
    """
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names or not all(names):
        raise ParameterError("--columns needs the names of all columns, with commas between them, such as age,sex,income.")
    if twice := _repeated(names):
        raise ParameterError(f'--columns names "{twice}" twice; every column needs a name of its own.')
    return TableNames(tuple(names), {})


def _repeated(names: Sequence[str]) -> str:
    """The first name in the order of the alphabet that comes twice, or ""."""
    return min((name for name in names if names.count(name) > 1), default="")


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
    text, has_control = cell.strip(), any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in cell)
    is_written = looks_like_number(cell) or _DATE.fullmatch(cell) or _MAIL.fullmatch(cell) or len(cell) > _LONGEST_NAME
    return bool(is_written or has_control or text.casefold() in _ANSWERS or text[0].isdigit() or text.startswith(_SIGNS))


def _declared(kind: Any) -> DeclaredType:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        if kind.ordered:
            return "ordered"
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else "other"


# A table read piece by piece for its curator, with every cell of a file of text as text, however the file is written.
#
# A fit reads numbers as numbers and refuses a file in which one cell is none. Here every cell is looked at, so that it can
# be counted. Memory does not grow with the number of rows.

_BLOCK_BYTES = 2**22


Batch: TypeAlias = "pa.Table | pa.RecordBatch"
"""Some rows of a table. It holds data."""


def cells_in(piece: Batch, name: str) -> Any:
    """The cells of a column, as one Arrow array."""
    import pyarrow as pa

    column = piece.column(name)
    return column.unify_dictionaries().combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def distinct_in(piece: Batch, name: str) -> list[tuple[object, int]]:
    """The different cells of a column, None for a null, and in how many rows each is."""
    import numpy as np

    values, positions = distinct_cells(f'column "{name}"', cells_in(piece, name))
    counts = np.bincount(positions + 1, minlength=len(values) + 1).tolist()
    return [(None, counts[0])] * bool(counts[0]) + list(zip(values, counts[1:], strict=True))


def table_pieces(
    path: Path, names: Sequence[str], form: TextForm | None = None, skip: Callable[[object], str] = lambda _: "skip"
) -> Iterator[Batch]:
    """The rows of a file, some at a time.

    Parameters
    ----------
    path : a file of text, in any form that `form_of` finds, or a Parquet or Feather file
    names : the columns to read
    form : how a file of text is written; None to find out
    skip : told of each row that has more or fewer cells than the first line, it answers "skip"

    Raises
    ------
    FileError
        If the file cannot be read. The message shows no cell.
    """
    part = FilePart(Stamp.of(path), dict.fromkeys(names, "text"))
    if is_text_table(path):
        written = form or form_of(path, whole=True)
        held = part.held(names, lambda: written.names)
        batches = (part.with_stated(batch, names, held) for batch in _text_batches(path, held, written, skip))
    else:
        batches = (batch for batch in part.tables(list(names), BATCH_ROWS))
    refusal = FileError(f"{path} cannot be read: it is damaged, or a quote in it is not closed.")
    while (batch := attempt(partial(next, batches, None), lambda _: refusal)) is not None:
        if batch.num_rows:
            yield batch


def _text_batches(path: Path, names: list[str], form: TextForm, skip: Callable[[object], str]) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    text = pa.dictionary(pa.int32(), pa.string())
    how = arrow_csv.ParseOptions(delimiter=form.separator, newlines_in_values=True, invalid_row_handler=skip)
    read = arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, encoding=form.encoding.removesuffix("-sig"))
    convert = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, text), include_columns=names)
    # Decompression follows from the ending of the name.
    with pa.input_stream(str(path)) as stream:
        yield from arrow_csv.open_csv(stream, read, how, convert)
