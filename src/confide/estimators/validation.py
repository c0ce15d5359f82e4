"""From what users pass to blocks of rows and labels, or one clear refusal that holds no value of the data.

Everything here happens before a budget is charged; its only outcome is accept or refuse, and the guarantee lists it.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.utils.validation import column_or_1d, validate_data

from confide.cautions import UNDECLARED_LABELS, warn
from confide.data.arrays import ArrayBlocks, Blocks
from confide.data.frames import EncodedBlocks
from confide.data.sparse import SparseBlocks
from confide.erm.row_bounds import canonical
from confide.errors import InputError, InputTypeError
from confide.estimators.parameters import MOST_CLASSES
from confide.features.column_names import looks_like_number
from confide.features.encoder import Encoder
from confide.features.labels import positions_of, targets_at
from confide.features.persons import RowsPerPerson
from confide.types import Array, Indices, Labels, Targets

_LABELS_AT_ONCE = 2**20
# Openings of scikit-learn's messages that speak of shapes and column names alone. All others may print the array.
_SAFE_OPENINGS = (
    "Found array with",
    "Found input variables with inconsistent",
    "X has ",
    "The feature names should match",
    "Feature names",
)


def rows_of(
    estimator: Any,
    X: Any,
    encoder: Encoder | None,
    *,
    reset: bool,
    rows_per_person: RowsPerPerson | None = None,
    accept_sparse: bool = False,
) -> Blocks:
    """Checked rows as blocks.

    Parameters
    ----------
    estimator : the estimator on which scikit-learn's validation records the columns (`n_features_in_` and the like)
    X : (n, d) array, sparse matrix or frame of numbers; a frame of raw columns where there is an encoder. float32 stays
        float32, of a frame where all columns are
    encoder : made of the estimator's schema, or None
    reset : True in fit, False afterwards
    rows_per_person : with a schema that names a column of persons, which rows of each are kept
    accept_sparse : whether a SciPy sparse matrix will do

    Raises
    ------
    InputError
        If X cannot be used; without any value from it.
    """
    if encoder is not None:
        codes = encoder.read(X, rows_per_person)
        if reset:
            names = encoder.schema.column_names
            estimator.n_features_in_ = len(names)
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return EncodedBlocks(encoder, codes)
    if np.ma.isMaskedArray(X):
        raise InputTypeError(
            "X is a masked array; fill its missing values by public knowledge, or declare them in a schema."
        )
    if issparse(X) and not accept_sparse:
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
            rows = validate_data(estimator, X, reset=reset, dtype=dtype, accept_sparse="csr", ensure_min_features=1)
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


def rows_given(
    estimator: Any, X: Any, encoder: Encoder | None, *, reset: bool, rows_per_person: RowsPerPerson, accept_sparse: bool
) -> tuple[Blocks, Indices | None, int]:
    """Checked rows; which of those given they are, None for all; and how many were given. Parameters as for `rows_of`."""
    blocks = rows_of(estimator, X, encoder, reset=reset, rows_per_person=rows_per_person, accept_sparse=accept_sparse)
    kept = blocks.codes.kept if isinstance(blocks, EncodedBlocks) else None
    return blocks, kept, blocks.n_rows if kept is None else len(X)


def refuse_unused(encoder: Encoder | None, blocks: Blocks) -> None:
    """Refuse a whole table with a column of which no cell is as the schema describes it."""
    if encoder is not None and isinstance(blocks, EncodedBlocks):
        encoder.refuse_unused(blocks.codes.used)


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


def labels_of(y: Any, n_rows: int, classes: tuple[Any, ...] | None) -> tuple[Labels, tuple[Any, ...], str]:
    """Labels in {-1, +1}, of more classes their positions; the classes, sorted; a sentence on where they come from.

    Parameters
    ----------
    y : (n_rows,) labels
    n_rows : number of rows of X
    classes : the declared domain in sorted order, or None: then {0, 1}, {-1, 1} or {False, True} where the labels fit, else
        the labels present

    Raises
    ------
    InputError
        If labels are missing, lie outside the domain, or do not tell what it is.

    Warns
    -----
    PrivacyWarning
        If the domain is that of the labels present.
    """
    labels = label_array(y)
    if labels.shape[0] != n_rows:
        raise InputError("X and y have inconsistent numbers of samples: there must be one label for each row.")
    domain = _undeclared_domain(labels) if classes is None else classes
    if classes is None and domain not in ((0, 1), (-1, 1)):
        warn((UNDECLARED_LABELS,))
    # Objects are compared one by one: as an array of one type, a single label could change the others.
    positions = np.full(labels.shape, -1, dtype=np.min_scalar_type(-len(domain)))
    for position, label in enumerate(domain):
        positions[np.asarray(labels == label, dtype=bool)] = position
    if (positions < 0).any():
        raise InputError("y holds labels outside the declared classes. Correct the labels or the declaration.")
    return targets_at(positions, len(domain)), domain, domain_sentence(domain, declared=classes is not None)


def domain_sentence(domain: tuple[Any, ...], *, declared: bool) -> str:
    """Where the label domain comes from."""
    named = f"{{{', '.join(map(repr, domain))}}}"
    if declared:
        return f"The label domain {named} was declared, not learned from the rows."
    return f"The label domain {named} was not declared: it was taken from the labels present and is assumed to be public."


def targets_of(y: Any, n_rows: int) -> Array:
    """Targets of a regression: (n_rows,) finite float64.

    Raises
    ------
    InputError
        If they are missing, of the wrong shape, or no finite real numbers; without any value of them.
    """
    if y is None:
        raise InputError("this estimator requires y to be passed, but the target y is None.")
    if issparse(y) or np.ma.isMaskedArray(y):
        raise InputTypeError("y must be a one-dimensional array of numbers, not sparse and without a mask.")
    try:
        array = np.asarray(y)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1 and not (array.ndim == 2 and array.shape[1] == 1):
        raise InputError("y should be a 1d array: one number for each row.")
    if array.dtype.kind == "c" or (array.dtype.kind == "O" and any(isinstance(v, complex) for v in array.ravel())):
        raise InputError("Complex data not supported: y must hold real numbers.")
    if array.dtype.kind not in "fiubO":
        raise InputTypeError("y must hold real numbers, but it is text or dates.")
    try:
        # Outside the range of doubles a number becomes infinite, which is refused below; the warning would tell.
        with np.errstate(all="ignore"):
            targets = column_or_1d(array, warn=True).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        targets = None
    if targets is None:
        raise InputTypeError("y must hold real numbers alone.")
    if not np.isfinite(targets).all():
        raise InputError("Input y contains NaN or infinity; targets must not be missing.")
    if targets.shape[0] != n_rows:
        raise InputError("X and y have inconsistent numbers of samples: there must be one target for each row.")
    return np.asarray(targets)


def label_array(y: Any) -> Any:
    """Labels as a one-dimensional array without missing values."""
    if y is None:
        raise InputError("this estimator requires y to be passed, but the target y is None.")
    if issparse(y):
        raise InputTypeError("y is sparse; labels must be a one-dimensional array.")
    if np.ma.isMaskedArray(y):
        raise InputTypeError("y is a masked array; labels must not be missing.")
    try:
        # A list is read cell by cell: NumPy would turn a missing label beside text into the text "nan".
        array = np.array(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1 and not (array.ndim == 2 and array.shape[1] == 1):
        raise InputError("y should be a 1d array: one label for each row.")
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: y must hold two labels.")
    if array.dtype.kind == "O":
        _check_objects(array.ravel())
    elif array.dtype.kind not in "fiubUT":
        raise InputTypeError("y must hold numbers, booleans or text.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError("Input y contains NaN or infinity; labels must not be missing.")
    return column_or_1d(array, warn=True)


def _check_objects(labels: Any) -> None:
    """Refuse Python objects that are not all text, all booleans or all real numbers."""
    if set(map(type, labels)) in ({str}, {bool}, {int}):
        return  # what most are, seen in a fraction of the time
    if any(label is None or _differs_from_itself(label) for label in labels):
        raise InputError("Input y contains missing labels (None or NaN).")
    if any(isinstance(label, (complex, np.complexfloating)) for label in labels):
        raise InputError("Complex data not supported: y must hold two labels.")
    kinds: tuple[Any, ...] = (str, (bool, np.bool_), (int, float, np.integer, np.floating))
    if not any(all(isinstance(label, kind) for label in labels) for kind in kinds):
        raise InputTypeError("y must hold numbers, booleans or text, and labels of one type. Correct it.")
    if any(label in (math.inf, -math.inf) for label in labels):
        raise InputError("Input y contains NaN or infinity; labels must not be missing.")


def _differs_from_itself(label: Any) -> bool:
    """Whether a label is a NaN, a NaT or pandas' NA, which cannot even be compared."""
    try:
        return bool(label != label)
    except Exception:  # noqa: BLE001 - any object may come here, and only whether it compares matters
        return True


def _undeclared_domain(labels: Any) -> tuple[Any, ...]:
    if labels.dtype.kind == "O":
        present = sorted(set(labels.tolist()))
    else:
        # In parts, since each is copied to be sorted.
        parts = [np.unique(labels[start : start + _LABELS_AT_ONCE]) for start in range(0, labels.size, _LABELS_AT_ONCE)]
        present = np.unique(np.concatenate(parts)).tolist()
    is_text = isinstance(present[0], str)
    if not is_text:
        kind = type(present[0])
        for first, second in ((0, 1), (-1, 1)):
            if all(label in (first, second) for label in present):
                return kind(first), kind(second)
    if len(present) == 1:
        raise InputError("y holds one label only, which does not tell the domain. Declare all labels with `classes`.")
    if len(present) > 2 and not is_text and any(label != math.floor(label) for label in present):
        raise InputError(
            "Unknown label type: y looks continuous, and a classifier needs labels. Declare them with `classes`."
        )
    if len(present) > MOST_CLASSES:
        raise InputError(f"y holds more than {MOST_CLASSES} different labels, the most that a classifier here takes.")
    return tuple(present)


def weights_of(sample_weight: Any, n_rows: int) -> Any:
    """Weights of rows in a score: (n_rows,) finite, not negative and not all 0, or None."""
    if sample_weight is None:
        return None
    weights = weight_array(sample_weight)
    if weights.shape != (n_rows,) or not (np.isfinite(weights) & (weights >= 0.0)).all() or not weights.any():
        raise InputError("sample_weight must be one finite number for each row, none negative and not all 0.")
    return weights


def weight_array(sample_weight: Any) -> Array:
    """What weights are as an array of numbers, read once; an empty one where they are none, which is refused later."""
    try:
        # A mask would be lost, and so would imaginary parts: they are refused like what is no number.
        given = np.empty(0) if np.ma.isMaskedArray(sample_weight) else np.asarray(sample_weight)
        return np.empty(0) if np.iscomplexobj(given) else given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)


def row_weights_of(
    sample_weight: Any,
    largest: float,
    labels: Targets,
    classes: tuple[Any, ...],
    class_weight: tuple[tuple[Any, float], ...] | None,
) -> Array | None:
    """How much each row counts in a fit: its own weight times that of its class; None where all count 1.

    Parameters
    ----------
    sample_weight : (n,) numbers from 0 to `largest`, or None for 1 each
    largest : the declared cap
    labels : (n,) in {-1, +1}, positions of three classes and more, or the targets of a regression
    classes : the classes in sorted order; none for a regression
    class_weight : pairs of class and public weight, or None
    """
    weights = None
    if sample_weight is not None:
        weights = weight_array(sample_weight)
        # Written so that what is not a number counts as outside.
        if weights.shape != labels.shape or not ((weights >= 0.0) & (weights <= largest)).all() or not weights.any():
            raise InputError(
                "sample_weight must be one number for each row, from zero to max_sample_weight, and not all zero. Scale the "
                "weights by a public rule, or declare a larger cap: noise grows with it."
            )
    elif largest < 1.0:
        raise InputError(
            "without sample_weight every row counts 1, and max_sample_weight is below 1: give weights or raise it."
        )
    if class_weight is None:
        return weights
    by_class = dict(class_weight)
    if set(by_class) != set(classes):
        raise InputError("class_weight must name all classes and no other. Correct it, or declare `classes`.")
    of_class = np.array([by_class[label] for label in classes])[positions_of(labels, len(classes))]
    return of_class if weights is None else of_class * weights
