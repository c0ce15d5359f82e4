"""Rows in memory: from arrays, sparse matrices and frames to blocks of numbers, or one clear refusal without any value.

Everything here happens before a budget is charged; its only outcome is to accept or to refuse, and the guarantee says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.utils.validation import validate_data

from confide.data.arrays import ArrayBlocks, Blocks
from confide.data.frames import EncodedBlocks
from confide.data.sparse import SparseBlocks
from confide.erm.row_bounds import canonical
from confide.errors import InputError, InputTypeError
from confide.features.column_names import looks_like_number
from confide.features.encoder import Encoder
from confide.intake.specification import Columns, RowSpecification
from confide.types import Indices

# Openings of scikit-learn's messages that speak of shapes and column names alone. All others may print the array.
_SAFE_OPENINGS = (
    "Found array with",
    "Found input variables with inconsistent",
    "X has ",
    "The feature names should match",
    "Feature names",
)


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """Checked rows in memory, as blocks.

    Attributes
    ----------
    blocks : the rows that count
    kept : which of the rows given they are, None for all
    n_rows_given : how many rows were given
    columns : the columns of X
    """

    blocks: Blocks
    kept: Indices | None
    n_rows_given: int
    columns: Columns


def table_of(X: Any, specification: RowSpecification) -> MemoryTable:
    """The rows of a fit or an evaluation, checked.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or frame of numbers; a frame of raw columns where the specification has an encoder.
        float32 stays float32, in a frame where all columns are
    specification : what the rows must be like

    Raises
    ------
    InputError
        If X cannot be used; without any value from it.
    """
    encoder, columns_of = specification.encoder, specification.columns_of
    if encoder is None:
        blocks = numeric_blocks(X, columns_of, is_fit=specification.is_fit, accepts_sparse=specification.accepts_sparse)
        return MemoryTable(blocks, None, blocks.n_rows, Columns.recorded_by(columns_of))
    codes = encoder.read(X, specification.rows_per_person)
    encoder.refuse_unused(codes.used)
    n_rows = codes.n_rows if codes.kept is None else len(X)
    return MemoryTable(EncodedBlocks(encoder, codes), codes.kept, n_rows, Columns.of_schema(encoder))


def rows_to_score(X: Any, estimator: Any, encoder: Encoder | None, *, accepts_sparse: bool) -> Blocks:
    """The rows that a fitted estimator is to score, checked against the columns of its fit. See `table_of`."""
    if encoder is not None:
        return EncodedBlocks(encoder, encoder.read(X))
    return numeric_blocks(X, estimator, is_fit=False, accepts_sparse=accepts_sparse)


def numeric_blocks(X: Any, columns_of: Any, *, is_fit: bool, accepts_sparse: bool) -> Blocks:
    """Rows of numbers, checked, as blocks; their columns are recorded on `columns_of`, or compared with what it has."""
    if np.ma.isMaskedArray(X):
        raise InputTypeError(
            "X is a masked array; fill its missing values by public knowledge, or declare them in a schema."
        )
    if issparse(X) and not accepts_sparse:
        raise InputTypeError("X is a sparse matrix; this needs a dense one: pass X.toarray() if it fits in memory.")
    dtype: Any = [np.float64, np.float32]
    if issparse(X):
        X = _sound_sparse(X)
    elif (table := _table(X)) is not None:
        _refuse_cells_as_names(table.columns)
        # Of a frame one row tells the types; the rest is looked at by scikit-learn.
        _refuse_unusable(table.head(1).to_native())
        # One array holds all columns, so it is float32 only where all of them are.
        dtype = np.float32 if set(map(str, table.schema.values())) == {"Float32"} else dtype
    else:
        # Read here once, for whatever comes after: what only claims to be an array may be another one at each reading.
        X = _array(X)
        _refuse_unusable(X)
    message = "X could not be read as an array of real numbers with one row a person; give numbers, or a schema."
    try:
        # A floating-point warning of its check for finite values would depend on the data.
        # Its check may be switched off by configuration, ours may not.
        with np.errstate(all="ignore"), config_context(assume_finite=False):
            rows = validate_data(columns_of, X, reset=is_fit, dtype=dtype, accept_sparse="csr", ensure_min_features=1)
    except (TypeError, ValueError, OverflowError) as error:
        text = str(error)
        if text.startswith("Input X contains"):
            message = f"{text.splitlines()[0]} Fill the gaps by a public rule, or declare them in a schema."
        elif text.startswith(_SAFE_OPENINGS):
            # Without the number of rows, which may be private.
            message = " ".join(re.sub(r"\(shape=\([0-9]+, ", "(shape=(, ", text).split())
        kind = InputTypeError if isinstance(error, TypeError) else InputError
    else:
        if not issparse(rows):
            return ArrayBlocks(np.asarray(rows))
        rows = canonical(rows)
        # What finite entries of one place add up to need not be finite.
        if np.isfinite(rows.data).all():
            return SparseBlocks(rows)
        message = "X is a sparse matrix with entries that are stored in parts, whose sum is too large. Correct them."
        kind = InputError
    # Raised here, outside the handler, so that the original error with its printed array is not attached.
    raise kind(message)


def _sound_sparse(X: Any) -> Any:
    """A sparse matrix of real numbers whose indices are where its shape says: compiled code will follow them unchecked."""
    if X.dtype.kind == "c":
        raise InputError("Complex data not supported: X must hold real numbers.")
    if X.dtype.kind not in "fiub":
        raise InputTypeError("X must hold real numbers.")
    if X.ndim != 2:
        raise InputError(f"Expected 2D array, got {X.ndim}D array instead. X must be (rows, features).")
    try:
        if X.format in ("csr", "csc", "bsr"):
            # A new object around the same arrays: the check may tidy the object it is asked of.
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
        elif X.format == "coo":
            # The constructor checks where entries are, which could be changed since.
            X = type(X)((X.data, (X.row, X.col)), shape=X.shape)
        rows = X.tocsr()
        rows.check_format(full_check=True)
        return rows
    except (TypeError, ValueError, IndexError):
        message = "X is a sparse matrix whose indices do not fit its shape; build it anew, for example from X.tocoo()."
    raise InputError(message)


def _table(X: Any) -> Any:
    """X as narwhals sees a frame of any library, or None if it is none."""
    import narwhals.stable.v1 as nw

    try:
        table = nw.from_native(X, pass_through=True)
    except Exception:  # noqa: BLE001 - frames differ in what they raise, for repeated names above all
        table = None
    if isinstance(table, nw.LazyFrame):
        raise InputError("X must be in memory; call .collect() (Polars) or .compute() (Dask) on it first.")
    if table is None and hasattr(X, "columns"):
        raise InputError("the frame cannot be read: the names of its columns must all be different.")
    return table if isinstance(table, nw.DataFrame) else None


def _refuse_cells_as_names(names: Any) -> None:
    """Refuse a frame whose names are a row of the data: they would be shown with the model, without noise.

    "0", "1", ... are names that programs give.
    """
    texts = [name for name in names if isinstance(name, str) and not name.startswith("Unnamed: ")]
    numbers = [name for name in texts if looks_like_number(name)]
    if numbers and len(numbers) == len(texts) and not {*numbers} <= {*map(str, range(len(names) + 1))}:
        raise InputError(
            "the names of the columns are numbers, as where the first row of a file without a line of names was taken for "
            "them. Names are public and shown with the model: read the file with header=None, or give the columns names."
        )


def _array(values: Any) -> Any:
    """What the values are as an array; as one of text, which is refused, where they are none."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        return np.empty(0, dtype=np.str_)


def _refuse_unusable(X: Any) -> None:
    """Refuse by type and shape, before anything that prints an array can see it."""
    array = _array(X)
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: X must hold real numbers.")
    if array.dtype.kind not in "fiubO" or (array.dtype.kind == "O" and _holds_text_or_objects(array)):
        raise InputTypeError(
            "X must hold real numbers: every argument must be a string or a number that reads as a float, and text columns "
            "need a schema."
            if array.dtype.kind == "O"
            else "X must hold real numbers, but it is text, dates or rows of unequal length. For raw columns give a schema."
        )
    if array.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X must be (rows, features); use "
            f"X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single row."
        )


def _holds_text_or_objects(array: Any) -> bool:
    try:
        array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return True
    return False
