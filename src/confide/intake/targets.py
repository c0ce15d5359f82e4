"""Targets: labels of classes or numbers, converted to what a loss needs, or refused.

Everything here happens before a budget is charged, so its only outcome may be to accept or to refuse. The guarantee states
that this outcome is not protected. A refusal shows no label and no number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import column_or_1d

from confide.array_types import Array, Targets, as_array
from confide.budget_warnings import UNDECLARED_LABELS, warn
from confide.data.partitions import OpenedRows
from confide.errors import InputError, InputTypeError, ParameterError, is_list, wording
from confide.features.canonical_labels import Label
from confide.features.cells import (
    DIFFERENT_NUMBERS_OF_ROWS,
    UNDECLARED_CLASS,
    Exposure,
    NumberTarget,
    class_positions,
    read_labels,
    targets_at,
)
from confide.features.schema import Schema

MOST_CLASSES = 100
_FAR_FROM_ZERO = 1.5
"""The middle of a range of targets is subtracted from them if it is at least this many half-widths of the range away from 0.

Chosen on prices of diamonds, which crowd near the low end of their range, and confirmed by benchmarks/far_targets.py."""
_WIDE_RANGE = 400.0
"""The usual one of costs is the geometric middle of their range, as if its low end were at least the high one over this."""
NEEDS_EXPOSURE = wording("exposure is needed")
_LABELS_AT_ONCE = 2**20
"""Labels are sorted in pieces of this many, because sorting copies a piece and memory is limited."""


@dataclass(frozen=True, slots=True)
class OpenedTarget:
    """What workers and file readers need to know to read the target of opened rows. These are public facts.

    Attributes
    ----------
    domain : the classes in sorted order; empty for numbers
    numbers : which numbers are to be predicted, None for classes
    sentence : what the guarantee says about the labels or numbers
    declared : False if the labels were taken from the rows
    """

    domain: tuple[Label, ...]
    numbers: NumberTarget | None
    sentence: str
    declared: bool = True


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReadTargets(OpenedTarget):
    """The same of targets that were read. It holds data.

    Attributes
    ----------
    values : (n,) labels in {-1, +1}, or positions among three or more classes, or numbers
    """

    values: Targets = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Classes:
    """Labels of two to a hundred classes.

    Parameters
    ----------
    domain : the declared classes in sorted order, or None. None means {0, 1}, {-1, 1} or {False, True} if the labels fit,
        and otherwise the labels present
    matched_as_text : whether a schema declared the classes. Then a label is recognised in any way of writing it (1, 1.0,
    "1")
    """

    domain: tuple[Label, ...] | None
    matched_as_text: bool = False
    exposure: ClassVar[None] = None

    @classmethod
    def declared(cls, classes: Any, schema: Schema | None) -> Classes:
        """The classes of the parameter `classes`, or of a schema's target."""
        domain = declared_domain(classes, schema)
        if domain is None and schema is not None and schema.cohort is not None:
            raise ParameterError(wording("classes of cohorts"))
        return cls(domain, schema is not None and schema.target is not None)

    def read(self, y: Any, n_rows: int | None) -> ReadTargets:
        """Check the targets of rows in memory. Where the number of rows is None, the caller compares it."""
        if self.matched_as_text and self.domain is not None and y is not None:
            values = read_labels(y, *self.domain)
            if n_rows is not None and len(values) != n_rows:
                raise InputError(DIFFERENT_NUMBERS_OF_ROWS)
            return ReadTargets(self.domain, None, domain_sentence(self.domain, declared=True), values=values)
        labels = _one_column(y, "label")
        if labels.dtype.kind == "c":
            raise InputError("Complex data not supported: labels must be numbers, booleans or text.")
        if labels.dtype.kind == "O":
            _check_objects(labels.ravel())
        elif labels.dtype.kind not in "fiubUT":
            raise InputTypeError("y must hold numbers, booleans or text, but it holds other types, such as dates.")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise InputError("Input y contains NaN or infinity; labels must not be missing.")
        labels = column_or_1d(labels, warn=True)
        if n_rows is not None and labels.shape[0] != n_rows:
            raise InputError(DIFFERENT_NUMBERS_OF_ROWS)
        domain = _undeclared_domain(labels) if self.domain is None else self.domain
        if self.domain is None and domain not in ((0, 1), (-1, 1)):
            warn((UNDECLARED_LABELS,))
        positions = class_positions(labels, domain)
        if (positions < 0).any():
            raise InputError(UNDECLARED_CLASS)
        declared = self.domain is not None
        values = targets_at(positions, len(domain))
        return ReadTargets(domain, None, domain_sentence(domain, declared), declared, values=values)

    def of_opened(self, rows: OpenedRows) -> OpenedTarget:
        """How the targets of opened rows, which bring their own, are to be read."""
        if rows.target is not None:
            raise ParameterError(wording("numbers for a classifier"))
        if self.domain is not None:
            return OpenedTarget(self.domain, None, domain_sentence(self.domain, declared=True))
        target = self.read(rows.labels_present(), None)
        return OpenedTarget(target.domain, None, target.sentence, target.declared)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Finite real numbers.

    Parameters
    ----------
    are_counts : whether they are counts, so that none may be negative
    sentence : what the guarantee says about them
    low, high : public bounds, to which each number is clipped by itself
    shift : a public number that is subtracted then, and added to the released intercept
    exposure : that of counts, or None
    unit : the public number by which exposures are divided, or 1 where there are none
    """

    domain: ClassVar[None] = None
    matched_as_text: ClassVar[bool] = False
    are_counts: bool = False
    sentence: str = ""
    low: float = -math.inf
    high: float = math.inf
    shift: float = 0.0
    exposure: Exposure | None = None
    unit: float = 1.0

    @classmethod
    def within(
        cls, low: float, high: float, *, is_declared: bool = False, may_shift: bool = False, are_counts: bool = False
    ) -> Numbers:
        """Numbers that are clipped to a public interval, whose ends were declared, or follow from a bound on their size.

        If a fit may shift them, and the middle of the interval lies far from 0, it is subtracted.
        """
        middle = 0.5 * low + 0.5 * high
        shift = middle if may_shift and abs(middle) >= _FAR_FROM_ZERO * (0.5 * high - 0.5 * low) else 0.0
        if is_declared or low == 0.0:
            sentence = f"Every target is clipped to its declared range, {low:.6g} to {high:.6g}."
        else:
            sentence = f"Every target is clipped to its declared bound, {high:.6g} in absolute value."
        if shift:
            sentence += (
                f" Its middle, {shift:.6g}, is subtracted from every target, and added to the intercept that is released."
            )
        return cls(are_counts, sentence, low, high, shift)

    @property
    def bound(self) -> float:
        """The largest size of a target as it enters a fit: what sensitivities are computed from."""
        return max(abs(self.low - self.shift), abs(self.high - self.shift))

    def per(self, exposure: Exposure, *, in_units: bool) -> Numbers:
        """The same counts with an exposure. A fit with an intercept divides it by the middle of its bounds.

        So the ridge draws the rate to one count in such a time, whatever the unit of the exposure is.
        """
        unit = 0.5 * exposure.low + 0.5 * exposure.high if in_units else 1.0
        clipped = wording("clipped exposure", low=exposure.low, high=exposure.high)
        return replace(self, sentence=f"{self.sentence} {clipped}", exposure=exposure, unit=unit)

    def around_usual(self) -> Numbers:
        """The same numbers, with scores of 0 where the mean is a usual one: the ridge draws predictions to it."""
        usual = math.sqrt(max(self.low, self.high / _WIDE_RANGE)) * math.sqrt(self.high)
        return replace(self, unit=self.unit / min(max(usual, 2.0**-30), 2.0**30))

    def with_exposure(self, read: ReadTargets, exposure: Any) -> ReadTargets:
        """Counts that were read, with these exposures (n,) of their rows."""
        assert self.exposure is not None  # noqa: S101 - called for counts that have one
        return replace(read, values=self.exposure.paired(read.values, exposure, self.unit, refuse=True))

    def checked_exposure(self, exposure: Any, n_rows: int) -> Array:
        """Exposures for which counts are predicted, one number or (n_rows,) of them, which are not clipped."""
        given = as_array(exposure, np.float64)
        if self.exposure is None or exposure is None:
            raise InputError(NEEDS_EXPOSURE)
        if given.shape not in ((), (n_rows,)) or not ((given > 0.0) & np.isfinite(given)).all():
            raise InputError("exposure must be one finite number above 0, or one for each row.")
        return np.asarray(given)

    def read(self, y: Any, n_rows: int | None) -> ReadTargets:
        targets = numbers_of(y, n_rows)
        if self.are_counts and (targets < 0.0).any():
            raise InputError("y must hold counts or costs, but it holds negative numbers. Correct it.")
        return ReadTargets((), None, self.sentence, values=np.clip(targets, self.low, self.high) - self.shift)

    def of_opened(self, rows: OpenedRows) -> OpenedTarget:
        column = rows.target or number_column(rows.schema)
        if rows.schema is not None and column is None:
            raise ParameterError(wording("regressor needs a target"))
        if self.exposure is not None and not self.exposure.column:
            raise InputError(NEEDS_EXPOSURE)
        bounds = self.low, self.high, self.shift, self.exposure, self.unit
        return OpenedTarget((), NumberTarget(column or "", self.are_counts, *bounds), self.sentence)


TargetKind: TypeAlias = Classes | Numbers
"""Whether classes or numbers are to be predicted, and how they are read."""


def number_column(schema: Schema | None) -> str | None:
    """The column of numbers that is the target of a schema, or None."""
    target = None if schema is None else schema.target
    return None if target is None or target.bounds is None else target.column


def declared_domain(classes: Any, schema: Schema | None) -> tuple[Label, ...] | None:
    """The declared label domain in sorted order, or None."""
    target = None if schema is None else schema.target
    if target is not None and target.bounds is not None:
        raise ParameterError(wording("target of numbers for a classifier", column=target.column))
    if classes is None:
        if target is None:
            return None
        classes = target.labels
    elif target is not None:
        raise ParameterError("the schema already declares the labels of its target; leave `classes` out.")
    message = f"classes must be a list of 2 to {MOST_CLASSES} different labels of one type, for example classes=[0, 1]."
    if not is_list(classes):
        raise ParameterError(message)
    values = as_array(list(classes))
    if (
        values.ndim != 1
        or values.dtype.kind not in "fiubUS"
        or not 2 <= np.unique(values).size == values.size <= MOST_CLASSES
    ):
        raise ParameterError(message)
    return tuple(np.sort(values).tolist())


def domain_sentence(domain: tuple[Label, ...], declared: bool) -> str:
    """The sentence of the guarantee that says where the label domain comes from."""
    *first, last = [f'"{label}"' if isinstance(label, str) else str(label) for label in domain]
    named = f"{', '.join(first)} and {last}"
    if declared:
        return f"The labels {named} were declared, not learned from the rows."
    return f"The labels {named} were not declared: they were taken from the rows and are assumed to be public."


def numbers_of(y: Any, n_rows: int | None) -> Array:
    """Check the targets of a regression: (n_rows,) finite float64.

    Raises
    ------
    InputError
        If they are missing, have the wrong shape, or are no finite real numbers. The message shows no value of them.
    """
    array = _one_column(y, "number")
    if array.dtype.kind == "c" or (array.dtype.kind == "O" and any(isinstance(v, complex) for v in array.ravel())):
        raise InputError("Complex data not supported: y must hold real numbers.")
    if array.dtype.kind not in "fiubO":
        raise InputTypeError("y must hold real numbers, but it is text or dates.")
    try:
        # A number beyond the range of doubles becomes infinite and is refused below. A warning would show that it did.
        with np.errstate(all="ignore"):
            targets = column_or_1d(array, warn=True).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        targets = None
    if targets is None:
        raise InputTypeError("y must hold real numbers in the range of doubles, and no other objects.")
    if not np.isfinite(targets).all():
        raise InputError("Input y contains NaN or infinity; targets must not be missing.")
    if n_rows is not None and targets.shape[0] != n_rows:
        raise InputError("X and y have inconsistent numbers of samples: there must be one target for each row.")
    return np.asarray(targets)


def _one_column(y: Any, what: str) -> Any:
    """An array of one column; `what` is what it holds in each row, "number" or "label"."""
    if y is None:
        raise InputError("this estimator requires y to be passed, but the target y is None.")
    if issparse(y) or np.ma.isMaskedArray(y):
        raise InputTypeError(f"y is sparse or masked, and must be a dense one-dimensional array of {what}s.")
    try:
        # A list of labels keeps its objects: NumPy would turn a missing label beside text into the text "nan".
        array = np.array(y, dtype=object) if what == "label" and isinstance(y, (list, tuple)) else np.asarray(y)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1 and not (array.ndim == 2 and array.shape[1] == 1):
        raise InputError(f"y should be a 1d array: one {what} for each row.")
    return array


def _check_objects(labels: Any) -> None:
    """Refuse Python objects that are not all text, all booleans or all real numbers."""
    if set(map(type, labels)) in ({str}, {bool}, {int}):
        return  # the usual case, which is recognised in a fraction of the time
    if any(label is None or _differs_from_itself(label) for label in labels):
        raise InputError("Input y contains missing labels (None or NaN).")
    if any(isinstance(label, (complex, np.complexfloating)) for label in labels):
        raise InputError("Complex data not supported: labels must be numbers, booleans or text.")
    kinds: tuple[Any, ...] = (str, (bool, np.bool_), (int, float, np.integer, np.floating))
    if not any(all(isinstance(label, kind) for label in labels) for kind in kinds):
        raise InputTypeError("y must hold numbers, booleans or text, and all labels must be of one type. Correct it.")
    if any(label in (math.inf, -math.inf) for label in labels):
        raise InputError("Input y contains NaN or infinity; labels must not be missing.")


def _differs_from_itself(label: Any) -> bool:
    """Whether a label is missing: a NaN, a NaT, or pandas' NA, whose comparison raises an error."""
    try:
        return bool(label != label)
    except Exception:  # noqa: BLE001 - y may hold any object, and it only matters whether it can be compared
        return True


def _undeclared_domain(labels: Any) -> tuple[Label, ...]:
    if labels.dtype.kind == "O":
        present = sorted(set(labels.tolist()))
    else:
        # In pieces, because each is copied to be sorted.
        parts = [np.unique(labels[start : start + _LABELS_AT_ONCE]) for start in range(0, labels.size, _LABELS_AT_ONCE)]
        present = np.unique(np.concatenate(parts)).tolist()
    is_text = isinstance(present[0], str)
    if not is_text:
        kind = type(present[0])
        for first, second in ((0, 1), (-1, 1)):
            if all(label in (first, second) for label in present):
                return kind(first), kind(second)
    if len(present) == 1:
        raise InputError("y holds only one label, so the label domain is not known. Declare all labels with `classes`.")
    if len(present) > 2 and not is_text and any(label != math.floor(label) for label in present):
        raise InputError("Unknown label type: y looks continuous; a classifier needs labels. Declare them with `classes`.")
    if len(present) > MOST_CLASSES:
        raise InputError(f"y holds more than {MOST_CLASSES} different labels; a classifier takes at most {MOST_CLASSES}.")
    return tuple(present)
