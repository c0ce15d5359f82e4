"""The cells of one column as numbers, dates, levels, or identities of persons, whatever library holds them.

Columns are read through Arrow where possible: a column becomes an Arrow array, in one or more pieces, only its distinct
values are looked at in Python, and NumPy does the rest. Columns of Python objects are read cell by cell, because the meaning
of a cell must not depend on other rows. Where PyArrow is not installed, so are all columns but those of numbers that NumPy
holds; what is read is the same.

No message holds a cell. Other libraries quote cells in their errors, so their errors are dropped, and ours are raised
outside the `except` block that caught them. Then neither the error nor its context holds a value.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.array_types import COUNT_AND_EXPOSURE, Array, Indices, Labels, Targets
from confide.errors import InputError, SchemaError, is_list, is_text, is_whole, keep, wording
from confide.features.canonical_labels import MISSING_WORDS, Label, canonical_label, is_missing
from confide.features.checks import finite_number

NOT_NUMBERS = wording("no numbers")
"""How a message ends about a column whose cells cannot all be read as numbers. It is the same whatever the cells hold."""

DATES = "dates or times, where numbers are declared; declare dates, as in { low = 2010-01-01, high = 2030-12-31 }."
"""How the message ends where some of these cells are dates."""
DATE = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{4}|[0-9]{2})\b"
"""How text begins that is a date."""
POINT = "\u00b7"
"""What stands for a point in a number of a table that has commas before decimals, so that it is no number."""
_NO_NUMBERS = (
    (DATE, DATES),
    (r"[+-]?[0-9][0-9. '\u2019\u00a0\u202f]*,[0-9]", wording("numbers with commas")),
    (rf"[+-]?[0-9]+{POINT}[0-9]", wording("numbers with points")),
)
"""How text begins that is no number, and how the message ends."""


def not_numbers(texts: Iterable[str]) -> str:
    """How a message ends about a column of numbers that holds these texts, of which it shows none."""
    given = [text.strip() for text in texts]
    return next((said for form, said in _NO_NUMBERS if any(re.match(form, text) for text in given)), NOT_NUMBERS)


CellNumbers: TypeAlias = NDArray[np.floating[Any]]
"""(n,): the number in each cell, float32 or float64, NaN where a cell is missing."""
Levels: TypeAlias = NDArray[np.signedinteger[Any]]
"""(n,): the level of each cell, negative if it has none."""
Positions: TypeAlias = NDArray[np.signedinteger[Any]]
"""(m,): the position of each cell's value among the distinct values of its column, -1 if the cell is null."""
_POSITIONS_AT_ONCE = 2**15


def read_numbers(what: str, cells: Any, refuse: bool = True) -> CellNumbers:
    """Numbers as an array (n,) that must not be written to: float32 if the cells are, otherwise float64.

    Missing cells are NaN, and booleans are 0 and 1. Text is read if it is a number. Blank text and words such as NA are
    missing cells.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "age"'
    cells : a Series, an Arrow array, a NumPy array or a list
    refuse : False reads a cell that is not a number as a missing one

    Raises
    ------
    InputError
        If a cell is not a number.
    """
    arrow = _as_arrow(cells)
    if arrow is None:
        plain = _plain_numbers(cells)
        return _numbers_of_distinct(what, *_distinct(what, cells, None), refuse) if plain is None else plain
    import pyarrow as pa

    if refuse and pa.types.is_temporal(arrow.type):
        raise InputError(f"{what}: holds {DATES}")
    if not _is_number(arrow.type):
        return _numbers_of_distinct(what, *_distinct(what, cells, arrow), refuse)
    pieces: list[CellNumbers] = []
    for piece in getattr(arrow, "chunks", [arrow]):
        if pa.types.is_integer(piece.type) and piece.null_count == 0:
            pieces.append(np.asarray(piece.to_numpy().astype(np.float64)))
        else:
            # Without a copy where its type is that of the numbers.
            exact = piece if pa.types.is_floating(piece.type) else piece.cast(pa.float64(), safe=False)
            pieces.append(np.asarray(exact.to_numpy(zero_copy_only=False)))
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def read_dates(what: str, cells: Any, form: str | None = None, refuse: bool = True) -> CellNumbers:
    """Dates as days since 1970-01-01 (n,), NaN where a cell is missing; parameters as for `read_numbers`.

    Parameters
    ----------
    form : how text is written, in the letters of strptime; None for 2024-03-31 and 2024-03-31 14:30
    """
    arrow, read = _as_arrow(cells), partial(day_number, form=form)
    kind: Any = None if arrow is None else arrow.type
    if not str(kind).startswith(("date", "timestamp")):
        complaint = wording("no dates") if form is None else wording("no dates of a form", form=form)
        return _numbers_of_distinct(what, *_distinct(what, cells, arrow), refuse, read, complaint)
    import pyarrow as pa
    import pyarrow.compute as pc

    per_day = 1.0
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            try:
                arrow = pc.local_timestamp(arrow)
            except pa.ArrowInvalid:
                raise InputError(f"{what}: its time zone is not known here; install tzdata, or remove it.") from None
        per_day = 86400.0 * {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
    elif pa.types.is_date64(kind):
        per_day = 86_400_000.0
    whole = arrow.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return np.asarray(whole.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / per_day)


def _numbers_of_distinct(
    what: str,
    distinct: list[object],
    positions: list[Positions],
    refuse: bool,
    read: Callable[[object], float | None] | None = None,
    complaint: str = "",
) -> CellNumbers:
    """The number in each cell, from the distinct values and the position of each cell's value among them, in pieces."""
    numbers = [*map(read or number_in, distinct)]
    # The last entry stands for missing cells, whose position is -1.
    unreadable = np.array([number is None for number in numbers] + [False])
    if refuse and entries_at(positions, unreadable).any():
        others = [value for value, number in zip(distinct, numbers, strict=True) if number is None]
        has_date = any(isinstance(value, dt.date | dt.time | dt.timedelta) for value in others)
        raise InputError(f"{what}: holds {complaint or (DATES if has_date else not_numbers(filter(is_text, others)))}")
    table = [math.nan if number is None else number for number in numbers] + [math.nan]
    return entries_at(positions, np.array(table))  # type: ignore[no-any-return]


def read_levels(
    what: str,
    cells: Any,
    levels: Mapping[str | None, int],
    missing: int,
    unknown: int,
    form: Callable[[object], str | None] = canonical_label,
) -> Levels:
    """The level of each cell, as a fresh array (n,) of small integers. Words such as NA are missing unless they are levels.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "sex"'
    cells : a Series, an Arrow array, a NumPy array or a list
    levels : level of each category in canonical form
    missing, unknown : what stands for a missing cell, and for a category that is not listed; at least -3
    form : the text that is compared with the levels, see `labels_of`

    Raises
    ------
    InputError
        If a cell is not text, a number or a boolean.
    """
    labels, positions = labels_of(what, cells, form)
    # The last entry stands for missing cells, whose position is -1.
    table = [missing if is_missing(label, levels) else levels.get(label, unknown) for label in labels] + [missing]
    return np.asarray(entries_at(positions, np.array(table, dtype=np.min_scalar_type(-2 - len(levels)))))


def labels_at(what: str, cells: Any) -> NDArray[Any]:
    """The canonical form of each cell (n,), None where it is missing."""
    labels, positions = labels_of(what, cells)
    table = np.empty(len(labels) + 1, dtype=object)
    table[:-1] = labels
    return np.asarray(entries_at(positions, table))


def entries_at(positions: list[Positions], table: NDArray[Any]) -> Any:
    """The entry of a table at each of n positions, which come in pieces, as an array (n,); -1 stands for the last entry.

    In blocks, because NumPy makes 64-bit integers of all positions that it gets at once, which takes much memory.
    """
    entries = np.empty(sum(piece.size for piece in positions), table.dtype)
    begun = 0
    for piece in positions:
        for start in range(0, piece.size, _POSITIONS_AT_ONCE):
            block = piece[start : start + _POSITIONS_AT_ONCE]
            np.take(table, block, out=entries[begun : begun + block.size], mode="wrap")
            begun += block.size
    return entries


def number_in(value: object) -> float | None:
    """The number in a cell: NaN if the cell is missing, None if it is not a number."""
    match value:
        case str():
            value = value.strip()
            if not value or value in MISSING_WORDS:
                return math.nan
            if "_" in value:  # Python reads 1_000 as a number; other readers do not
                return None
        case None:
            return math.nan
        case Real() | Decimal() | np.bool_():
            pass
        case _:
            return math.nan if type(value).__name__ in ("NAType", "NaTType") else None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf


def looks_like_number(name: object) -> bool:
    """Whether a name is text that reads as a number: a sign that a row of data was taken for the names of the columns."""
    number = number_in(name) if is_text(name) else None
    return number is not None and not math.isnan(number)


def distinct_cells(what: str, cells: Any) -> tuple[list[object], Positions]:
    """The distinct values of a column, and for each cell the position of its value, -1 if the cell is null.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "sex"'
    cells : a Series, an Arrow array, a NumPy array or a list

    Raises
    ------
    InputError
        If a cell is of a kind that cannot be compared.
    """
    values, positions = _distinct(what, cells, _as_arrow(cells))
    return values, np.concatenate(positions)


def labels_of(
    what: str, cells: Any, form: Callable[[object], str | None] = canonical_label
) -> tuple[list[str | None], list[Positions]]:
    """The forms of a column's distinct values, and the positions of the cells' values among them, in pieces.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "sex"'
    cells : a Series, an Arrow array, a NumPy array or a list
    form : the text that stands for a value, None for a missing one; it raises TypeError or ValueError for what has none

    Raises
    ------
    InputError
        If a value has no form.
    """
    distinct, positions = _distinct(what, cells, _as_arrow(cells))
    with suppress(TypeError, ValueError):  # a value that cannot be a label, or an integer of thousands of digits
        return [form(value) for value in distinct], positions
    raise _not_labels(what)


def _distinct(what: str, cells: Any, arrow: Any) -> tuple[list[object], list[Positions]]:
    """The distinct values of a column, and the positions of the cells' values among them, in pieces (at least one)."""
    encoded = None
    if arrow is not None:
        import pyarrow as pa

        if pa.types.is_null(arrow.type):
            return [], [np.full(len(arrow), -1)]
        with suppress(pa.ArrowException):  # the distinct values are too large for one dictionary
            is_coded = pa.types.is_dictionary(arrow.type)
            encoded = (arrow if is_coded else arrow.dictionary_encode()) if _has_plain_values(arrow.type) else None
    if encoded is not None:
        # All pieces have the same dictionary. To make one piece of them would copy the column, which takes long for text.
        pieces = getattr(encoded, "chunks", [encoded])
        values = pieces[0].dictionary
        # NumPy keeps the type of float32 values, so that 0.1 in single precision is still the category 0.1.
        single = pa.types.is_float32(values.type)
        distinct = list(values.to_numpy(zero_copy_only=False)) if single else _listed(what, values)
        return distinct, [_wide(piece.indices).fill_null(-1).to_numpy(zero_copy_only=False) for piece in pieces]
    index: dict[tuple[type, object], int] = {}
    positions = None
    with suppress(TypeError):  # a cell that cannot be hashed
        # The type belongs to the key: 1, 1.0 and True are equal in Python, and different values here.
        keys = ((type(cell), cell) for cell in _listed(what, cells))
        positions = np.array([index.setdefault(key, len(index)) for key in keys], dtype=np.int64)
    if positions is None:
        raise _not_labels(what)
    return [value for _, value in index], [positions]


def _wide(indices: Any) -> Any:
    """The same integers in a type that has -1, and the next one after the largest."""
    import pyarrow as pa

    if indices.type in (pa.int32(), pa.int64()):
        return indices
    return indices.cast(pa.int64() if indices.type.bit_width > 16 else pa.int32())


def _not_labels(what: str) -> InputError:
    return InputError(f"{what}: holds cells that are not text, numbers or booleans; convert them to text.")


def _as_arrow(cells: Any) -> Any:
    """The column as an Arrow array, or as one in several pieces; None if it must be read cell by cell.

    Arrow makes one type for a whole column of Python objects, so a single cell could change the meaning of all others (0.1
    in single precision becomes 0.10000000149 beside a double). Such a column is taken only if it is text, because text
    cannot be mixed with other types.
    """
    import narwhals.stable.v1 as nw

    try:
        import pyarrow as pa

        if isinstance(cells, pa.ChunkedArray):
            return _in_pieces(cells)
        series = nw.from_native(cells, pass_through=True, allow_series=True)
        array = series.to_arrow() if isinstance(series, nw.Series) else pa.array(cells, from_pandas=True)
        array = _in_pieces(array) if hasattr(array, "chunks") else array
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    except Exception:  # noqa: BLE001 - any message may quote cells, and there is another way to read them
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array
    # Each cell may be an object with a type of its own, in place of one type for the column.
    dtype = _dtype_of_values(cells)
    return None if dtype is None or str(dtype).lower() == "object" else array


def _plain_numbers(cells: Any) -> CellNumbers | None:
    """A column of numbers as NumPy holds it, where there is no PyArrow; None if its cells must be read one by one."""
    import narwhals.stable.v1 as nw

    native = nw.to_native(cells, pass_through=True)
    with suppress(Exception):  # integers of 128 bits, for example; any message may quote cells
        # A list, categories and cells of which some are masked are read one by one.
        is_plain = hasattr(native, "dtype") and not (hasattr(native.dtype, "categories") or np.ma.isMaskedArray(native))
        numbers = np.asarray(native if is_plain else None)
        if numbers.dtype.kind in "fiub":
            return numbers if numbers.dtype == np.float32 else numbers.astype(np.float64, copy=False)
    return None


def _in_pieces(column: Any) -> Any:
    """A chunked column without empty chunks, all with the same dictionary; as one array if there is one chunk or none."""
    import pyarrow as pa

    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if len(chunks) < 2:
        return chunks[0] if chunks else column.combine_chunks()
    try:
        return pa.chunked_array(chunks).unify_dictionaries()
    except pa.ArrowException:
        # A common dictionary would need larger integers, or one of them holds a null. The values need none.
        return pa.chunked_array([chunk.dictionary_decode() for chunk in chunks])


def _dtype_of_values(cells: Any) -> Any:
    """The type of the values of a column, of its categories where it has some; None for a list."""
    import narwhals.stable.v1 as nw

    native = nw.to_native(cells, pass_through=True)
    dtype = getattr(native, "dtype", getattr(native, "type", None))
    return getattr(getattr(dtype, "categories", None), "dtype", dtype)


def _listed(what: str, cells: Any) -> list[object]:
    """The cells as objects of Python or NumPy."""
    kind = str(_dtype_of_values(cells)).lower()
    narrow: Any = {"float16": np.float16, "halffloat": np.float16, "float32": np.float32}.get(kind)
    method = next((method for method in ("to_list", "tolist", "to_pylist") if hasattr(cells, method)), None)
    try:
        values = list(cells if method is None else getattr(cells, method)())
        # As numbers of Python they would not tell that they are rounded.
        return values if narrow is None else [narrow(value) if isinstance(value, float) else value for value in values]
    except UnicodeDecodeError:
        error: Exception = InputError(f"{what}: holds text that is not UTF-8; write the file again in UTF-8.")
    except MemoryError:
        error = MemoryError(f"{what}: its cells do not fit into memory.")
    except Exception:  # noqa: BLE001 - a date that Python does not have, for example
        error = _not_labels(what)
    # Raised outside the handlers, because the original error shows a cell.
    raise error


def _is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers that NumPy has too. Null is one: all cells are missing."""
    import pyarrow as pa

    checks = (pa.types.is_integer, pa.types.is_float64, pa.types.is_float32, pa.types.is_boolean, pa.types.is_null)
    return any(check(kind) for check in checks)


def _has_plain_values(kind: Any) -> bool:
    """Whether an Arrow type, or the values of a dictionary type, are numbers or text."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _has_plain_values(kind.value_type) and not pa.types.is_dictionary(kind.value_type)
    return _is_number(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)


# Dates as numbers: days since 1970-01-01, of which the time of day is a share. Both ways, and the parts of a date.
#
# What the cell itself shows counts: a time zone moves no date.

_EPOCH = dt.datetime(1970, 1, 1)
_DAY = dt.timedelta(days=1)
_FARTHEST = 4e6
"""In days. All dates that Python knows are nearer."""
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:.*)?", re.ASCII)
_PROBE = dt.datetime(2001, 2, 3)

PARTS: Mapping[str, tuple[Label, ...]] = {
    "year": (),
    "quarter": ("Q1", "Q2", "Q3", "Q4"),
    "month": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "hour": tuple(range(24)),
}
"""The parts of a date that may be columns, with their levels. The year is a number."""


def day_number(value: object, form: str | None = None) -> float | None:
    """The number of a date: NaN where there is none, and None if the value is no date.

    Parameters
    ----------
    value : a date, with or without a time, of Python, NumPy or pandas; or text, as in 2024-03-31 or 2024-03-31 14:30
    form : how text and whole numbers are written instead, in the letters of strptime
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return math.nan
    if type(value) is np.datetime64:
        value = value.astype("datetime64[us]").item()
    if form is not None and is_whole(value):
        value = str(value)
    if is_text(value):
        text = value.strip()
        if not text or text in MISSING_WORDS:
            return math.nan
        with suppress(ValueError):
            if form is not None:
                value = dt.datetime.strptime(text, form)
            elif _ISO.fullmatch(text):
                value = dt.datetime.fromisoformat(text)
    match value:
        case dt.datetime():
            return (value.replace(tzinfo=None) - _EPOCH) / _DAY
        case dt.date():
            return float(value.toordinal() - _EPOCH.toordinal())
    return None


def declared_day(what: str, value: object) -> float:
    """The number of a date that a schema gives, or a number of days as it is."""
    number = float(value) if type(value) in (int, float) else day_number(value)  # type: ignore[arg-type]
    if number is None or not abs(number) < _FARTHEST:
        raise SchemaError(f"{what} must be a date, such as 2024-03-31.")
    return number


def shown_days(numbers: Iterable[float], *, exact: bool = False) -> tuple[str, ...]:
    """Dates as people write them: without the time of day, unless two of them would read alike or the time counts.

    Days before the year 1 and after the year 9999 read as the first and the last that Python knows.
    """
    moments = [_EPOCH + dt.timedelta(seconds=round(min(max(number, -719_162), 2_932_896) * 86400.0)) for number in numbers]
    texts = tuple(str(moment.date()) for moment in moments)
    has_times = any(moment.time() != dt.time() for moment in moments)
    return tuple(map(_with_time, moments)) if has_times and (exact or len(set(texts)) < len(texts)) else texts


def _with_time(moment: dt.datetime) -> str:
    if moment.time() == dt.time():
        return str(moment.date())
    return moment.isoformat(" ", "seconds" if moment.second else "minutes")


def checked_form(what: str, form: Any) -> str:
    """How dates are written as text: letters of strptime that say year, month and day."""
    with suppress(ValueError, TypeError):
        if dt.datetime.strptime(_PROBE.strftime(form), form) == _PROBE:
            return str(form)
    raise SchemaError(f'{what} must say how a day, a month and a year are written, as in "%d.%m.%Y" for 31.03.2024.')


def part_of(days: Array, part: str) -> Array:
    """A part of each date (n,): a year, or the position of a level of `PARTS`; NaN where there is no date."""
    absent = ~np.isfinite(days)
    known = np.clip(np.where(absent, 0.0, days), -_FARTHEST, _FARTHEST)
    whole = np.floor(known)
    months = whole.astype(np.int64).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    made = {
        "year": lambda: months // 12 + 1970,
        "quarter": lambda: months % 12 // 3,
        "month": lambda: months % 12,
        "weekday": lambda: (whole + 3.0) % 7.0,
        # The share of a day is rounded far below a second.
        "hour": lambda: np.floor((known - whole) * 24.0 + 1e-5),
    }[part]()
    return np.where(absent, np.nan, np.minimum(made, 23.0) if part == "hour" else made).astype(np.float64)


# Labels and targets in the form that losses read: -1 and +1 for two classes, positions for more, and numbers.

# What is said of numeric rows and their labels, whether they lie in memory, in files or in partitions.
DIFFERENT_NUMBERS_OF_ROWS = "X and y have inconsistent numbers of samples: give one label or target for each row."
UNDECLARED_CLASS = "y holds labels outside the declared classes. Correct the labels or the declaration."
NOT_FINITE = "Input X contains NaN or infinity. Fill the gaps by a public rule, or declare them in a schema."

_UNKNOWN = -1
_MISSING = -2


def class_positions(labels: Any, domain: Sequence[Any]) -> Indices:
    """The position of each label among the declared classes.

    Parameters
    ----------
    labels : array (n,) of numbers, booleans, text or Python objects
    domain : the declared classes, all different, at least one

    Returns
    -------
    array (n,) of small integers, fresh
        The position from 0; -1 where a label is none of the classes.
    """
    positions = np.full(np.shape(labels), -1, dtype=np.min_scalar_type(-len(domain)))
    # Each class is compared by itself: in an array of one type for all classes, one class could change what another means.
    for position, label in enumerate(domain):
        # 0 where the label is this class and -1 elsewhere, so that "or" gives the position or -1. An assignment to chosen
        # places would take ten times as long.
        elsewhere = np.subtract(np.asarray(labels == label, dtype=bool), 1, dtype=positions.dtype)
        np.maximum(positions, elsewhere | position, out=positions)
    return positions


def targets_at(positions: Indices, n_classes: int) -> Labels:
    """What a loss reads, from the positions of classes (0 to n_classes - 1)."""
    return (2 * positions - 1).astype(np.int8) if n_classes == 2 else positions.astype(np.intp)


def positions_of(targets: Targets, n_classes: int) -> Indices:
    """The positions of classes, from what a loss reads: the inverse of `targets_at`."""
    return ((targets > 0) if n_classes == 2 else targets).astype(np.intp)


_SAME_AS_BOOLEANS = {"0": "false", "1": "true"}
"""Two labels that are these numbers are recognised as booleans too, and the other way round."""


def positions_by_label(classes: Sequence[Label]) -> dict[str | None, int]:
    """The position of each class by its canonical form. Classes 0 and 1 are False and True too, whichever are declared."""
    positions_by_name = {canonical_label(label): position for position, label in enumerate(classes)}
    for names in (_SAME_AS_BOOLEANS, {boolean: number for number, boolean in _SAME_AS_BOOLEANS.items()}):
        if positions_by_name.keys() == names.keys():
            return positions_by_name | {other: positions_by_name[label] for label, other in names.items()}
    return positions_by_name


def read_labels(values: Any, *classes: Label, refuse: bool = True, what: str = "the labels") -> Labels:
    """Labels of two classes as -1 and +1, labels of more classes as their positions.

    Parameters
    ----------
    values : pandas or Polars Series, Arrow array, NumPy array or list of raw labels, one for each row
    classes : the labels, compared in canonical form (`canonical_label`); if there are two, the negative one comes first.
        True and False are 1 and 0 where these are the two
    refuse : False after the labels were checked and a budget was charged: a label that is none of the classes counts as the
        first class
    what : how messages call them

    Returns
    -------
    array (n,), fresh
        int8, -1 for negative and +1 for positive; or the position of each class, from 0.

    Raises
    ------
    InputError
        If it is not one column of labels, or a label is missing or is none of the classes. The message holds no cell.
    """
    shape = getattr(values, "shape", (0,))
    is_column = is_list(values) and not isinstance(values, Set) and hasattr(values, "__len__") and len(shape) == 1
    if not is_column:
        raise InputError(f"{what} must be one column: a Series, a one-dimensional array or a list.")
    if len(values) == 0:
        raise InputError(f"{what}: there are none; give one for each row.")
    levels = read_levels(what, values, positions_by_label(classes), missing=_MISSING, unknown=_UNKNOWN)
    if not refuse:
        levels[levels < 0] = 0
    if (levels == _MISSING).any():
        raise InputError(f"{what}: some are missing; give only rows that have a label.")
    if (levels == _UNKNOWN).any():
        if len(classes) == 2:
            known, some = f"neither {classes[0]!r} nor {classes[1]!r}", "one of the two"
        else:
            known, some = f"none of {', '.join(map(repr, classes))}", "one of the classes"
        raise InputError(f"{what}: some are {known}; give only rows that have {some}.")
    return targets_at(levels, len(classes))


def numbers_of_rows(what: str, cells: Any, low: float, high: float, must: str, refuse: bool) -> Array:
    """One number for each row beside its features, (n,), clipped to [low, high]: how much it counts, or its exposure.

    Parameters
    ----------
    what : how messages name the cells
    must : what a message says that each must be. It must be above 0, or not below it where `low` is 0
    refuse : False lets every cell pass; one that is no number counts as `low`
    """
    numbers = np.asarray(read_numbers(what, cells, refuse), dtype=np.float64)
    # The comparison is written so that a NaN is refused.
    if refuse and not ((numbers >= min(low, math.ulp(0.0))) & np.isfinite(numbers)).all():
        raise InputError(f"{what}: {must}")
    return np.fmin(np.fmax(numbers, low), high)


@dataclass(frozen=True, slots=True)
class Exposure:
    """The time, the number of persons or the area that each count was made in, and its public bounds.

    Parameters
    ----------
    column : name of the column in the table; "" where it is an array of its own
    low, high : public bounds, 0 < low < high; an exposure outside is clipped to them

    Raises
    ------
    SchemaError
        If a value contradicts this description.
    """

    column: str
    low: float
    high: float

    def __post_init__(self) -> None:
        keep(self, "exposure: ", low=finite_number, high=finite_number)
        if not 1e-9 <= self.low < self.high <= min(1e9, 1e9 * self.low):
            raise SchemaError("exposure: low must be above 0 and below high; both lie between 1e-9 and 1e9.")

    def paired(self, counts: Any, cells: Any, unit: float, *, refuse: bool) -> Any:
        """Counts (n,) beside the exposures in these cells, clipped and divided by the unit.

        Raises
        ------
        InputError
            If an exposure is missing, is not finite or not above 0, or their number is another one.
        """
        what = f'column "{self.column}"' if self.column else "exposure"
        own = numbers_of_rows(what, cells, self.low, self.high, "each must be a finite number above 0.", refuse)
        if own.shape != counts.shape:
            raise InputError("exposure must be one number for each row.")
        pairs: Any = np.empty(len(counts), COUNT_AND_EXPOSURE)
        pairs["count"], pairs["exposure"] = counts, own / unit
        return pairs


@dataclass(frozen=True, slots=True)
class NumberTarget:
    """The numbers that a regression predicts, which take the place of labels.

    Parameters
    ----------
    column : the column that holds them; "" where they are an array of their own
    counts : whether they are counts, which must not be negative
    low, high : public bounds, to which each number is clipped by itself
    shift : a public number that is subtracted then
    exposure, unit : the exposure of counts, and the public number by which it is divided
    """

    column: str = ""
    counts: bool = False
    low: float = -math.inf
    high: float = math.inf
    shift: float = 0.0
    exposure: Exposure | None = None
    unit: float = 1.0

    def read(self, values: Any, *, table: Any = None, refuse: bool = True) -> Any:
        """The numbers of some rows, clipped to [low, high], less the shift: (n,) float64, or with their exposures.

        Parameters
        ----------
        values : Series, Arrow array, NumPy array or list of numbers, one for each row
        table : has the column of exposures, if counts have some
        refuse : False after the targets were checked and a budget was charged: one that is not a finite number counts as 0

        Raises
        ------
        InputError
            If a target is missing, is not a finite number, or is a negative count. The message holds no target.
        """
        what = f'column "{self.column}"' if self.column else "the targets"
        targets = np.array(read_numbers(what, values, refuse), dtype=np.float64)
        finite = np.isfinite(targets)
        if refuse and not finite.all():
            raise InputError(f"{what}: some are missing or infinite; give only rows whose target is a finite number.")
        if refuse and self.counts and (targets < 0.0).any():
            raise InputError(f"{what}: some are negative, but counts and costs must not be. Correct them.")
        targets[~finite] = 0.0
        np.subtract(np.clip(targets, self.low, self.high, out=targets), self.shift, out=targets)
        if self.exposure is None:
            return targets
        return self.exposure.paired(targets, table[self.exposure.column], self.unit, refuse=refuse)
