"""The column that a model predicts: class labels, or numbers between public bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confide.errors import SchemaError
from confide.features.canonical_labels import Label, canonical_label
from confide.features.columns import shown_number, with_unit
from confide.features.schema_checks import check_fields, check_unit, column_title, finite_bound, plain_label


@dataclass(frozen=True, slots=True)
class Target:
    """The column to be predicted, and what it holds: two labels, three or more classes, or numbers.

    Parameters
    ----------
    column : name of the column in the table
    negative, positive : the two labels: text, numbers or booleans, different in canonical form
    classes : instead of these two, three or more labels of the same kinds
    low, high : instead of labels, the public bounds of numbers, low < high; a number outside is clipped to them
    unit : the unit of the numbers, such as "USD", shown wherever units are shown; it changes no number and is not compared

    Raises
    ------
    SchemaError
        If a value contradicts this description.
    """

    column: str
    negative: Label | None = None
    positive: Label | None = None
    classes: tuple[Label, ...] | None = None
    low: float | None = None
    high: float | None = None
    unit: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        column_title(self.column, "the target's column")
        check_unit("target", self.unit)
        if self.unit is not None and self.low is None and self.high is None:
            raise SchemaError("target: unit is for numbers, with low and high; labels have none. Leave it out.")
        if self.low is not None or self.high is not None:
            self._check_numbers()
        elif self.classes is None:
            self._check_two_labels()
        else:
            self._check_classes()

    def _check_numbers(self) -> None:
        if any(given is not None for given in (self.negative, self.positive, self.classes)):
            raise SchemaError(
                "target: give labels (negative and positive, or classes) for a classifier, or low and high for a regressor, "
                "not both."
            )
        for key in ("low", "high"):
            if getattr(self, key) is None:
                raise SchemaError(f'target: "{key}" is missing; numbers need both bounds, low and high.')
            object.__setattr__(self, key, finite_bound("target", key, getattr(self, key)))
        if not self.low < self.high:  # type: ignore[operator]  # both are numbers here
            raise SchemaError("target: low must be below high.")

    def _check_two_labels(self) -> None:
        if self.negative is None or self.positive is None:
            missing = "negative" if self.negative is None else "positive"
            raise SchemaError(
                f'target: "{missing}" is missing; name both labels, or list three or more labels as classes, or give '
                f"low and high for a column of numbers."
            )
        for key in ("negative", "positive"):
            object.__setattr__(self, key, plain_label("target", key, getattr(self, key)))
        if canonical_label(self.negative) == canonical_label(self.positive):
            raise SchemaError("target: negative and positive are the same label; give two different ones.")
        if _type_of(self.negative) is not _type_of(self.positive):
            raise SchemaError("target: negative and positive must have one type: two texts, two numbers or two booleans.")

    def _check_classes(self) -> None:
        if self.negative is not None or self.positive is not None:
            raise SchemaError("target: give negative and positive, or classes, not both.")
        if isinstance(self.classes, (str, bytes)) or not isinstance(self.classes, Iterable):
            raise SchemaError("target: classes must be a list of labels.")
        classes = tuple(plain_label("target", "each of classes", label) for label in self.classes)
        object.__setattr__(self, "classes", classes)
        if len(classes) < 3:
            raise SchemaError("target: classes must list three or more labels; for two, give negative and positive instead.")
        if len({canonical_label(label) for label in classes}) < len(classes):
            raise SchemaError("target: classes lists a label twice; keep one of them.")
        if len({_type_of(label) for label in classes}) > 1:
            raise SchemaError("target: classes must have one type: all text, or all numbers.")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of a column of numbers; None for labels."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def labels(self) -> tuple[Label, ...]:
        """All labels: the negative one before the positive one, or the classes in the order in which they were given.

        A column of numbers has none.
        """
        if self.bounds is not None:
            return ()
        return self.classes or (self.negative, self.positive)  # type: ignore[return-value]  # neither is None without classes

    def __str__(self) -> str:
        if self.bounds is not None:
            low, high = map(shown_number, self.bounds)
            return f"{self.column}: number from {low} to {with_unit(str(high), self.unit)}"
        return f"{self.column}: {' or '.join(map(str, self.labels))}"

    def to_dict(self) -> dict[str, Any]:
        """The target as in a TOML file: JSON-able."""
        if self.bounds is not None:
            unit = {} if self.unit is None else {"unit": self.unit}
            return {"column": self.column} | dict(zip(("low", "high"), map(shown_number, self.bounds), strict=True)) | unit
        if self.classes is not None:
            return {"column": self.column, "classes": list(self.classes)}
        return {"column": self.column, "negative": self.negative, "positive": self.positive}


def target_of(described: object) -> Target | None:
    """A target, from a mapping as in a TOML file, or as it was given.

    Raises
    ------
    SchemaError
        If the argument is neither, or contradicts itself.
    """
    if described is None or isinstance(described, Target):
        return described
    if not isinstance(described, Mapping):
        raise SchemaError(
            "target: describe it by { column = ..., negative = ..., positive = ... } or { column = ..., classes = [...] }, "
            "and a column of numbers by { column = ..., low = ..., high = ... }."
        )
    check_fields("target", described, Target)
    return Target(**described)


def _type_of(label: Label | None) -> type:
    """Text, boolean, or `object` for every number: 0 and 1.0 have one type."""
    return next(kind for kind in (str, bool, object) if isinstance(label, kind))
