"""Rows in memory: arrays, sparse matrices and frames become blocks of numbers, or are refused.

For a fit everything here happens before a budget is charged, so its only outcome may be to accept or to refuse. The
guarantee states that this outcome is not protected. A refusal shows no value from the rows. Rows to be scored are their
caller's own, so `rows_to_score` also counts cells that the schema does not describe.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.utils.validation import assert_all_finite, validate_data

from confide.array_types import Array, Indices, Targets, as_array
from confide.callers import steps_outside
from confide.data.arrays import ArrayBlocks, Blocks, EncodedBlocks
from confide.data.spooled import as_frame
from confide.erm.row_bounds import canonical
from confide.errors import InputError, InputTypeError, SchemaWarning, wording
from confide.features.cells import looks_like_number, positions_of
from confide.features.encoder import Encoder, cells_outside, sentence_of_cells_outside
from confide.features.schema import Schema
from confide.intake.specification import Columns, RowSpecification
from confide.known_words import names_by_position
from confide.threads import made_in_order

# How scikit-learn's messages begin that mention only shapes and column names. All others may print values of the array.
_SAFE_OPENINGS = (
    "Found array with",
    "Found input variables with inconsistent",
    "X has ",
    "The feature names should match",
    "Feature names",
)

_NUMBERS_AT_ONCE, _PARTS_AT_ONCE = 2**17, 16
"""So many numbers at a time are looked at, which stay in the cache; and a thread looks at so many times as many."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MemoryTable:
    """Checked rows in memory, as blocks.

    Attributes
    ----------
    blocks : the rows that are used
    kept : positions of these rows among the rows given, None if all are used
    n_rows_given : number of rows given
    columns : the columns of X
    """

    blocks: Blocks
    kept: Indices | None
    n_rows_given: int
    columns: Columns


def table_of(X: Any, specification: RowSpecification) -> MemoryTable:
    """Check the rows of a fit or an evaluation.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or frame of numbers; a frame of raw columns if the specification has an encoder. float32
        stays float32; a frame only if all its columns are float32
    specification : the requirements on the rows

    Raises
    ------
    InputError
        If X cannot be used. The message shows no value from X.
    """
    encoder, columns_of = specification.encoder, specification.columns_of
    if encoder is None:
        how: Any = {name: getattr(specification, name) for name in ("is_fit", "accepts_sparse", "n_threads")}
        blocks = numeric_blocks(X, columns_of, **how)
        return MemoryTable(blocks, None, blocks.n_rows, Columns.recorded_by(columns_of))
    if not _has_names(X, encoder):
        X = _array_to_encode(X, columns_of, is_fit=specification.is_fit)
    codes = encoder.read(X, specification.rows_per_person, n_threads=specification.n_threads)
    encoder.refuse_unused(codes.used)
    n_rows = codes.n_rows if codes.kept is None else len(X)
    return MemoryTable(EncodedBlocks(encoder, codes), codes.kept, n_rows, Columns.of_schema(encoder))


def names_of_columns(X: Any) -> tuple[str, ...]:
    """The names of the columns of a frame, or x0, x1, ... for an array of numbers.

    Raises
    ------
    InputError
        If X is neither, or a name is not text.
    """
    names = _names(X)
    if names is not None:
        _refuse_cells_as_names(names)
        return names
    if issparse(X):
        raise InputTypeError("X is a sparse matrix, and a dense array is needed. Pass X.toarray() if it fits in memory.")
    array = as_array(X)
    _refuse_unusable(array)
    if array.shape[1] == 0:
        raise InputError("Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return names_by_position(array.shape[1])


def rows_to_score(X: Any, estimator: Any, encoder: Encoder | None, *, accepts_sparse: bool) -> Blocks:
    """Check the rows that a fitted estimator is to score against the columns of its fit. See `table_of`.

    A `SchemaWarning` names columns with cells that the schema does not describe.
    """
    X = as_frame(X)
    if encoder is not None:
        rows = X if _has_names(X, encoder) else _array_to_encode(X, estimator, is_fit=False)
        codes = encoder.read(rows)
        if outside := cells_outside(rows, encoder.schema, codes):
            warning = SchemaWarning(text_of_cells_outside(encoder.schema, codes.n_rows, outside), outside)
            warnings.warn(warning, stacklevel=1 + steps_outside(sys._getframe()))
        return EncodedBlocks(encoder, codes)
    return numeric_blocks(X, estimator, is_fit=False, accepts_sparse=accepts_sparse)


def text_of_cells_outside(schema: Schema, n_rows: int, outside: Mapping[str, int]) -> str:
    """What a caller is told of so many cells, by column, that the schema does not describe, in rows to be predicted."""
    sentences = [sentence_of_cells_outside(schema.columns_by_name[name], count) for name, count in outside.items()]
    rows = "the row to be predicted holds" if n_rows == 1 else f"the {n_rows:,} rows to be predicted hold"
    return wording("cells outside of the schema", rows=rows, columns="; ".join(sentences))


def _has_names(X: Any, encoder: Encoder) -> bool:
    """Whether X is read by the names of its columns. An array is read by position, if its schema calls them x0, x1, ..."""
    names = encoder.schema.raw_names
    return names != names_by_position(len(names)) or _names(X) is not None


def _names(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a frame. None for what is no frame, and for a frame whose columns are numbered."""
    table = _table(X)
    return None if table is None or not all(isinstance(name, str) for name in table.columns) else tuple(table.columns)


def _array_to_encode(X: Any, columns_of: Any, *, is_fit: bool) -> Any:
    """A checked array of numbers, (n, d)."""
    blocks = numeric_blocks(X, columns_of, is_fit=is_fit, accepts_sparse=False)
    return blocks.block(0, blocks.n_rows)


def numeric_blocks(X: Any, columns_of: Any, *, is_fit: bool, accepts_sparse: bool, n_threads: int = 1) -> Blocks:
    """Check rows of numbers and give them as blocks.

    A fit records their columns on `columns_of`, also if it then refuses the rows because a number is not finite; otherwise
    they are compared with the columns recorded there. So many threads look whether all numbers are finite.
    """
    if np.ma.isMaskedArray(X):
        raise InputTypeError("X is a masked array. Fill missing values by public knowledge, or declare them in a schema.")
    if issparse(X) and not accepts_sparse:
        raise InputTypeError("X is a sparse matrix, and a dense array is needed. Pass X.toarray() if it fits in memory.")
    dtype: Any = [np.float64, np.float32]
    if issparse(X):
        X = _sound_sparse(X)
    elif (table := _table(X)) is not None:
        _refuse_cells_as_names(table.columns)
        # The first row of a frame shows its types. scikit-learn checks the other rows.
        _refuse_unusable(table.head(1).to_native())
        # One array holds all columns, so it is float32 only where all of them are.
        dtype = np.float32 if set(map(str, table.schema.values())) == {"Float32"} else dtype
    else:
        # Convert once, for every step that follows: an object that only claims to be an array may change between readings.
        X = as_array(X)
        _refuse_unusable(X)
    message = "X could not be read as an array (rows, features) of real numbers. Give numbers, or a schema for raw columns."
    try:
        # errstate: a check for finite values may give a floating-point warning, which would depend on the data.
        # assume_finite: users may switch that check off in scikit-learn's configuration, but not here.
        with np.errstate(all="ignore"), config_context(assume_finite=False):
            how: Any = {"reset": is_fit, "dtype": dtype, "accept_sparse": "csr", "ensure_min_features": 1}
            rows = validate_data(columns_of, X, **how, ensure_all_finite=False)
            if issparse(rows) or not _all_finite(rows, n_threads):
                assert_all_finite(rows, input_name="X")
    except (TypeError, ValueError, OverflowError) as error:
        text = str(error)
        if text.startswith("Input X contains"):
            message = f"{text.splitlines()[0]} Fill missing values by a public rule, or declare them in a schema."
        elif text.startswith(_SAFE_OPENINGS):
            # The number of rows is removed, because it may be private.
            message = " ".join(re.sub(r"\(shape=\([0-9]+, ", "(shape=(, ", text).split())
        kind = InputTypeError if isinstance(error, TypeError) else InputError
    else:
        if not issparse(rows):
            return ArrayBlocks(np.asarray(rows))
        rows = canonical(rows)
        # Several entries may be stored for one place. Each may be finite and their sum not.
        if np.isfinite(rows.data).all():
            return ArrayBlocks(rows)
        message = wording("sparse sum too large")
        kind = InputError
    # Raised here, outside the handler, so that the original error, which may print the array, is not attached.
    raise kind(message)


def _all_finite(rows: Any, n_threads: int) -> bool:
    """Whether all numbers of an array are finite, looked at in the order in which they lie in memory, without a copy."""
    rows = rows.T if abs(rows.strides[0]) < abs(rows.strides[1]) else rows
    step = max(1, _NUMBERS_AT_ONCE // max(1, rows.shape[1]))
    corners = list(product(range(0, rows.shape[0], step), range(0, rows.shape[1], _NUMBERS_AT_ONCE)))

    def are_finite(first: int) -> bool:
        for row, column in corners[first : first + _PARTS_AT_ONCE]:
            if not np.isfinite(rows[row : row + step, column : column + _NUMBERS_AT_ONCE]).all():
                return False
        return True

    with closing(made_in_order(are_finite, range(0, len(corners), _PARTS_AT_ONCE), n_threads)) as answers:
        return all(answers)


def _sound_sparse(X: Any) -> Any:
    """A sparse matrix of real numbers whose indices fit its shape.

    Compiled code follows the indices without a check, so wrong ones would read other memory.
    """
    if X.dtype.kind == "c":
        raise InputError("Complex data not supported: X must hold real numbers.")
    if X.dtype.kind not in "fiub":
        raise InputTypeError("X must hold real numbers.")
    if X.ndim != 2:
        raise InputError(f"Expected 2D array, got {X.ndim}D array instead. X must be (rows, features).")
    try:
        if X.format in ("csr", "csc", "bsr"):
            # A new object around the same numbers, because the check may change the object that it is called on. It has its
            # own pointers and indices, which nobody else can change once they are checked. Sums look at those of rows again.
            X = type(X)((X.data, X.indices if X.format == "csr" else X.indices.copy(), X.indptr.copy()), shape=X.shape)
            X.check_format(full_check=True)
        elif X.format == "coo":
            # The constructor checks the indices. They may have been changed since X was made, so a new object is made.
            X = type(X)((X.data, (X.row.copy(), X.col.copy())), shape=X.shape)
        rows = X.tocsr()
        rows.check_format(full_check=True)
        return rows
    except (TypeError, ValueError, IndexError):
        message = "X is a sparse matrix whose indices do not fit its shape. Build it again, with indices inside its shape."
    raise InputError(message)


def _table(X: Any) -> Any:
    """The narwhals view of X if it is a frame of any library, otherwise None."""
    import narwhals.stable.v1 as nw

    table = None
    with suppress(Exception):  # libraries raise different errors, above all for repeated column names
        table = nw.from_native(X, pass_through=True)
    if table is None and hasattr(X, "columns"):
        raise InputError("the frame cannot be read. Check that the names of its columns are all different.")
    return table if isinstance(table, nw.DataFrame) else None


def _refuse_cells_as_names(names: Any) -> None:
    """Refuse a frame whose column names look like a row of the data: they would be shown with the model, without noise.

    The names "0", "1", ... are allowed, because programs give them.
    """
    texts = [name for name in names if isinstance(name, str) and not name.startswith("Unnamed: ")]
    numbers = [name for name in texts if looks_like_number(name)]
    if numbers and len(numbers) == len(texts) and not {*numbers} <= {*map(str, range(len(names) + 1))}:
        raise InputError(wording("column names look like data"))


def _refuse_unusable(X: Any) -> None:
    """Refuse by type and shape, before X reaches code whose messages may print an array."""
    array = as_array(X)
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: X must hold real numbers.")
    is_number = array.dtype.kind in "fiub"
    if array.dtype.kind == "O":
        with suppress(TypeError, ValueError, OverflowError):
            array.astype(np.float64)
            is_number = True
    if not is_number:
        raise InputTypeError(
            # scikit-learn's checks look for the words "argument must be a string ... number".
            "X must hold real numbers: every argument must be a string or a number that reads as a float. For text columns "
            "give a schema."
            if array.dtype.kind == "O"
            else "X must hold real numbers, but it is text, dates or rows of unequal length. For raw columns give a schema."
        )
    if array.ndim != 2:
        raise InputError(wording("rows must be a table", ndim=array.ndim))


# How much each row counts: its own weight, which is given with the rows, times the public weight of its class.


def weights_of(sample_weight: Any, n_rows: int) -> Any:
    """Check the weights of rows in a score: (n_rows,) finite numbers, none negative and not all 0, or None."""
    if sample_weight is None:
        return None
    weights = weight_array(sample_weight)
    if weights.shape != (n_rows,) or not (np.isfinite(weights) & (weights >= 0.0)).all() or not weights.any():
        raise InputError("sample_weight must be one finite number for each row, none negative and not all 0.")
    return weights


def weight_array(sample_weight: Any) -> Array:
    """The weights as an array of numbers, converted once. If they are no numbers, an empty array, which is refused later."""
    # Conversion would drop a mask or imaginary parts without a word, so such arrays are refused too.
    given = np.empty(0) if np.ma.isMaskedArray(sample_weight) else as_array(sample_weight)
    return np.empty(0) if np.iscomplexobj(given) else np.array(as_array(given, np.float64))


def row_weights_of(
    sample_weight: Any,
    largest: float,
    labels: Targets,
    classes: tuple[Any, ...],
    class_weight: tuple[tuple[Any, float], ...] | None,
) -> Array | None:
    """How much each row counts in a fit: its own weight times the weight of its class; None if all count 1.

    Parameters
    ----------
    sample_weight : (n,) numbers from 0 to `largest`, or None for 1 each
    largest : the declared cap
    labels : (n,) in {-1, +1}, or positions among three or more classes, or the targets of a regression
    classes : the classes in sorted order; empty for a regression
    class_weight : pairs of class and public weight, or None
    """
    weights = None
    if sample_weight is not None:
        weights = weight_array(sample_weight)
        # The comparisons are written so that a NaN counts as out of range.
        if weights.shape != labels.shape or not ((weights >= 0.0) & (weights <= largest)).all() or not weights.any():
            raise InputError(wording("weights out of range"))
    elif largest < 1.0:
        raise InputError(wording("cap of weights below 1"))
    if class_weight is None:
        return weights
    by_class = dict(class_weight)
    if set(by_class) != set(classes):
        raise InputError("class_weight must name all classes and no other label. Correct it, or declare the classes.")
    of_class = np.array([by_class[label] for label in classes])[positions_of(labels, len(classes))]
    return of_class if weights is None else of_class * weights
