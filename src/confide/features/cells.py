"""The cells of one column of a frame, as numbers or as levels of a category, whatever library holds them.

Arrow is the fast way: a column becomes an Arrow array, its few distinct values are looked at in Python, and NumPy does
the rest. Columns of Python objects are read cell by cell: what a cell means must not depend on other rows.

No message holds a cell. Other libraries quote cells in their errors, so theirs are dropped, and ours are raised outside
of the `except` block that caught them: neither the error nor its context holds a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.features.schema import canonical_label
from confide.types import Indices

Levels: TypeAlias = NDArray[np.signedinteger[Any]]
"""(n,): the level of each cell, negative where it is none of the levels."""


def columns_of(frame: Any, names: Sequence[str]) -> list[Any]:
    """The named columns of a frame of any library that narwhals reads, in the order of the names.

    Raises
    ------
    InputError
        If it is no frame in memory, has no rows, lacks a column or has two of one name. Only names given here are
        named: those of the frame may be cells of a file without a header.
    """
    import narwhals.stable.v1 as nw
    import pyarrow as pa

    if isinstance(frame, pa.Table) and frame.num_rows:
        # The usual piece of a file, read many times over. What is wrong with one is told below.
        places = {name: place for place, name in enumerate(frame.column_names)}
        if len(places) == frame.num_columns and all(name in places for name in names):
            return [frame.column(places[name]) for name in names]
    try:
        table = nw.from_native(frame, pass_through=True)
        present, n_rows = (set(table.columns), table.shape[0]) if isinstance(table, nw.DataFrame) else (set(), 0)
    except Exception:  # noqa: BLE001 - frames differ in what they raise, for repeated names above all
        table = None
    if isinstance(table, nw.LazyFrame):
        raise InputError("a schema needs a frame in memory; call .collect() (Polars) or .compute() (Dask) on it first.")
    if table is None and hasattr(frame, "columns"):
        repeated = [name for name in names if list(getattr(frame, "columns", ())).count(name) > 1]
        which = f" (these occur more than once: {listed(repeated)})" if repeated else ""
        raise InputError(f"the frame cannot be read: the names of its columns must all be different{which}.")
    if not isinstance(table, nw.DataFrame):
        raise InputError("a schema needs a pandas or Polars frame, whose columns have names.")
    absent = [name for name in names if name not in present]
    if absent:
        raise InputError(f"the frame lacks columns that the schema describes: {listed(absent)}.")
    if n_rows == 0:
        raise InputError("the frame has no rows; at least one is needed.")
    return [table[name] for name in names]


def read_numbers(what: str, cells: Any, refuse: bool = True) -> NDArray[np.floating[Any]]:
    """Numbers as an array (n,) not to be written to, float32 where the cells are and else float64; NaN for missing cells.

    Booleans are 0 and 1; text is read where it is a number, and blank text is missing.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "age"'
    cells : a Series, an Arrow array, a NumPy array or a list
    refuse : False reads a cell that is no number as a missing one

    Raises
    ------
    InputError
        If a cell is no number.
    """
    import pyarrow as pa

    arrow = _as_arrow(cells)
    if arrow is not None and pa.types.is_floating(arrow.type) and _is_number(arrow.type):
        numbers: NDArray[np.floating[Any]] = arrow.to_numpy(zero_copy_only=False)
        return numbers
    if arrow is not None and _is_number(arrow.type):
        return np.array(arrow.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    distinct, positions = _distinct(what, cells, arrow)
    read = [_number(value) for value in distinct]
    unreadable = np.array([number is None for number in read] + [False])
    if refuse and unreadable[positions].any():
        raise InputError(f"{what}: holds cells that are not numbers; give numbers, and leave missing cells empty.")
    return np.array([math.nan if number is None else number for number in read] + [math.nan])[positions]


def read_levels(what: str, cells: Any, levels: Mapping[str | None, int], missing: int, unknown: int) -> Levels:
    """The level of each cell, as a fresh array (n,) of small integers.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "sex"'
    cells : a Series, an Arrow array, a NumPy array or a list
    levels : level of each category in canonical form
    missing, unknown : what stands for a missing cell, and for a category that is not listed; at least -3

    Raises
    ------
    InputError
        If a cell is not text, a number or a boolean.
    """
    labels, positions = _labels(what, cells)
    table = [missing if label is None else levels.get(label, unknown) for label in labels] + [missing]
    return np.array(table, dtype=np.min_scalar_type(-2 - len(levels)))[positions]


def read_identities(what: str, cells: Any) -> Indices:
    """Whole numbers (n,), equal exactly where the cells are the same text or the same number.

    Two persons must never become one, so nothing is rounded and text is not read as a number: "01" is not "1", but 1 is "1"
    and 1.0, which readers make of one file.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "patient_id"'
    cells : a Series, an Arrow array, a NumPy array or a list

    Raises
    ------
    InputError
        If a cell is missing, or is not text, a number or a boolean.
    """
    labels, positions = _labels(what, cells, _identity)
    index: dict[str | None, int] = {None: -1}
    table = np.array([index.setdefault(label, len(index)) for label in labels] + [-1])
    identities: Indices = table[positions]
    if (identities == -1).any():
        raise InputError(f"{what}: holds missing values; every row needs the person that it belongs to.")
    return identities


def _identity(value: object) -> str | None:
    """The text of an identifier, exact whatever its type; None for a missing one."""
    if canonical_label(value) is None:
        return None
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    text = str(value).strip()  # the shortest decimal of a float, and exact for a Decimal
    if isinstance(value, (str, bool, np.bool_)):
        return text
    exact = Fraction(text)
    return str(exact) if exact.denominator == 1 else text


def _labels(
    what: str, cells: Any, form: Callable[[object], str | None] = canonical_label
) -> tuple[list[str | None], NDArray[np.int64]]:
    """The forms of a column's distinct values, and for each cell the position of its own, -1 where it is null."""
    distinct, positions = _distinct(what, cells, _as_arrow(cells))
    try:
        return [form(value) for value in distinct], positions
    except (TypeError, ValueError):  # no label at all, or an integer of thousands of digits
        pass
    raise InputError(f"{what}: holds cells that are not text, numbers or booleans; convert them to text.")


def _distinct(what: str, cells: Any, arrow: Any) -> tuple[list[object], NDArray[np.int64]]:
    """The distinct values of a column, and for each cell the position of its value, -1 where it is null."""
    import pyarrow as pa

    if arrow is not None and pa.types.is_null(arrow.type):
        return [], np.full(len(arrow), -1)
    if arrow is not None and _is_plain(arrow.type):
        encoded = arrow if pa.types.is_dictionary(arrow.type) else arrow.dictionary_encode()
        values = encoded.dictionary
        # Elements of a float32 array know that they are float32, so that 0.1 is the category 0.1.
        distinct = list(values.to_numpy()) if pa.types.is_float32(values.type) else values.to_pylist()
        return distinct, encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    listed = _as_list(cells)
    index: dict[tuple[type, object], int] = {}
    hashable = True
    try:
        # 1, 1.0 and True are equal in Python and different here.
        positions = np.array([index.setdefault((type(cell), cell), len(index)) for cell in listed], dtype=np.int64)
    except TypeError:
        hashable = False
    if not hashable:
        raise InputError(f"{what}: holds cells that are not text, numbers or booleans; convert them to text.")
    return [value for _, value in index], positions


def _as_arrow(cells: Any) -> Any:
    """The column as one Arrow array, or None where it must be read cell by cell.

    Of Python objects Arrow makes one type for the whole column, so that a single cell could change what all others mean
    (0.1 in single precision becomes 0.10000000149 beside a double). Then only text is taken, which cannot be mixed.
    """
    import narwhals.stable.v1 as nw
    import pyarrow as pa

    try:
        if isinstance(cells, pa.ChunkedArray):
            # Several chunks are copied into one, and one is only looked at.
            return cells.chunk(0) if cells.num_chunks == 1 else cells.unify_dictionaries().combine_chunks()
        series = nw.from_native(cells, pass_through=True, allow_series=True)
        array = series.to_arrow() if isinstance(series, nw.Series) else pa.array(cells, from_pandas=True)
        if isinstance(array, pa.ChunkedArray):
            array = array.unify_dictionaries().combine_chunks()
    except Exception:  # noqa: BLE001 - whatever it is, its message may quote cells, and there is another way to read them
        return None
    if not isinstance(array, pa.Array):
        return None
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return array if is_text or not _holds_objects(cells) else None


def _holds_objects(cells: Any) -> bool:
    """Whether each cell is an object with a type of its own, rather than the column having one."""
    import narwhals.stable.v1 as nw
    import pyarrow as pa

    native = nw.to_native(cells, pass_through=True)
    if isinstance(native, (pa.Array, pa.ChunkedArray)):
        return False
    dtype = getattr(native, "dtype", None)
    categories = getattr(dtype, "categories", None)
    dtype = getattr(categories, "dtype", dtype)
    return dtype is None or str(dtype).lower() == "object"


def _as_list(cells: Any) -> list[object]:
    for method in ("to_list", "tolist", "to_pylist"):
        if hasattr(cells, method):
            return list(getattr(cells, method)())
    return list(cells)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_integer, pa.types.is_float64, pa.types.is_float32, pa.types.is_boolean, pa.types.is_null)
    return any(check(kind) for check in checks)


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _is_plain(kind.value_type) and not pa.types.is_dictionary(kind.value_type)
    return _is_number(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)


def looks_like_number(name: object) -> bool:
    """Whether a column's name is text that reads as a number, as a cell does that was taken for a name."""
    number = _number(name) if isinstance(name, str) else None
    return number is not None and not math.isnan(number)


def _number(value: object) -> float | None:
    """A cell as a number: NaN where it is missing, None where it is no number."""
    if isinstance(value, str):
        value = value.strip() or math.nan
        if isinstance(value, str) and "_" in value:  # Python reads 1_000, nobody else does
            return None
    elif value is None or type(value).__name__ in ("NAType", "NaTType"):
        return math.nan
    elif not isinstance(value, (Real, Decimal, np.bool_)):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf


def listed(names: Sequence[str]) -> str:
    """Names of columns in a message."""
    return ", ".join(f'"{name}"' for name in names)
