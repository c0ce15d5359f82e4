"""Every exception that confide raises on purpose, and every warning.

::

    ConfideError
    ├── ParameterError (ValueError)      an argument that cannot be honoured
    │   ├── SchemaError                  a schema that contradicts itself
    │   └── InsufficientRegularisation   an alpha too small to certify the minimiser
    ├── InputError (ValueError)          rows or labels that cannot be used
    │   └── InputTypeError (TypeError)   rows or labels of a type that cannot be used
    ├── StudyError (ValueError)          a study that contradicts itself or its charges
    ├── FileError (ValueError)           a file that cannot be read or understood
    ├── LedgerError (RuntimeError)       a ledger that cannot be used in this way
    │   └── BudgetExceeded               a charge that does not fit under the limit
    └── NotCertified (RuntimeError)      a minimiser without certificate: no release

and every warning:

::

    PrivacyWarning (UserWarning)         a fit goes on, but promises less than its user may think
    BudgetWarning (UserWarning)          fits are about to spend more than their caller may expect
    AccuracyWarning (UserWarning)        a model may be less accurate than its user may expect
    SchemaWarning (UserWarning)          rows to be predicted hold cells that the schema does not describe

A message says what was expected, what came and what to do. It may name public facts (parameters, declared columns,
shapes), but never holds a value from the data. A `SchemaWarning` alone holds counts of rows: of those that its caller gave
to be predicted. Messages of several lines stand in `sentences.txt`, where `wording` finds them by their names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def sections_of(path: Path) -> dict[str, str]:
    """The sections of a file of texts, by their names, which stand between brackets on lines of their own."""
    _, *parts = re.split(r"^\[([^\]]+)\]\n", path.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def sentences_in(path: Path) -> dict[str, str]:
    """The same with each text on one line."""
    return {name: " ".join(text.split()) for name, text in sections_of(path).items()}


SENTENCES = sentences_in(Path(__file__).with_name("sentences.txt"))
"""What refusals and notes of several lines say, by names of what they are about; braces stand for what is filled in."""


def wording(about: str, /, **facts: object) -> str:
    """A sentence of `sentences.txt`, with facts in the place of the words in braces."""
    return SENTENCES[about].format(**facts)


class ConfideError(Exception):
    """Root of every exception raised by confide on purpose."""


class ParameterError(ConfideError, ValueError):
    """An argument is outside its range, or two arguments contradict each other. No row was read and nothing was charged."""


class SchemaError(ParameterError):
    """A schema contradicts itself, for example a lower bound above the upper one."""


class InsufficientRegularisation(ParameterError):  # noqa: N818 - says what is wrong
    """Alpha is too small for double precision to certify the minimiser closely enough. This depends on public facts only."""


class InputError(ConfideError, ValueError):
    """Rows or labels have the wrong shape, type or domain. They were refused before a budget was charged."""


class InputTypeError(InputError, TypeError):
    """Rows or labels have a type that cannot be used. They were refused before a budget was charged."""


class StudyError(ConfideError, ValueError):
    """A study file contradicts itself, or what was already charged for it. Nothing was charged."""


class FileError(ConfideError, ValueError):
    """A file is missing, damaged, of the wrong kind, or written by a version that this one does not understand."""


class LedgerError(ConfideError, RuntimeError):
    """The ledger cannot be used in this way: with another neighbour relation, in another process, or as a copy."""


class BudgetExceeded(LedgerError):  # noqa: N818 - a public name; what happened reads better than "...Error"
    """The charge does not fit under the ledger's limit. No data was used, and nothing was charged."""


class NotCertified(ConfideError, RuntimeError):  # noqa: N818 - as above
    """The computed minimiser could not be certified, so nothing is released. The charge stays."""


def checked_flag(name: str, value: object, refusal: type[ParameterError] = ParameterError) -> bool:
    """True or False, if it is one of them: the text "False" would count as true. NumPy's are taken as well.

    Parameters
    ----------
    name : the parameter
    value : what was given for it
    refusal : what is raised
    """
    if is_flag(value):
        return bool(value)
    raise refusal(f"{name} must be True or False.")


# What values are, as users, TOML and JSON give them, and how they are read. Every room asks it here.

Reader: TypeAlias = Callable[[str, Any], Any]
"""Takes how a message begins and a value, and gives the value in the form in which it is kept, or refuses it."""


def is_text(value: object) -> TypeIs[str]:
    """Whether this is text."""
    return isinstance(value, str)


def is_flag(value: object) -> TypeGuard[bool]:
    """Whether this is one truth value, of Python or of NumPy."""
    return type(value).__name__ in ("bool", "bool_")


def is_mapping(value: object) -> TypeIs[Mapping[Any, Any]]:
    """Whether this gives values by keys, as a table of TOML does."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value can be read as a list: it is iterable, neither text nor a mapping, and no single cell of NumPy."""
    is_cell = getattr(value, "shape", None) == ()
    return isinstance(value, Iterable) and not is_cell and not isinstance(value, str | bytes | Mapping)


def reader(
    must: str,
    holds: Callable[[Any], bool],
    made: Callable[[Any], Any] | None = None,
    refusal: type[Exception] = ParameterError,
) -> Reader:
    """What reads values of which `holds` is true, and makes something of them; a message says what others must be."""

    def read(what: str, value: Any) -> Any:
        if not holds(value):
            raise refusal(f"{what} must be {must}.")
        return value if made is None else made(value)

    return read


def optional(read: Reader) -> Reader:
    """What reads None as None, and every other value by a reader."""
    return lambda what, value: None if value is None else read(what, value)


def hold(kept: object, /, **values: object) -> None:
    """Let fields of a frozen value hold these values, in its `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(kept, name, value)


def keep(kept: object, where: str, /, **readers: Reader) -> None:
    """Let fields of a frozen value hold what their readers make of them. A message begins with `where` and the name."""
    for name, read in readers.items():
        object.__setattr__(kept, name, read(where + name, getattr(kept, name)))


checked_axes = optional(reader("Matplotlib axes, or None for new ones", lambda ax: hasattr(ax, "get_subplotspec")))
"""Reads the parameter `ax` of what draws. Matplotlib is an optional part, so axes are known by what they can do."""


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is one real number. Text and truth values are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def as_float(value: object) -> float:
    """The number as a float of Python, which no comparison rounds; nan for what is no number, or too large for one."""
    with suppress(OverflowError):
        return float(value) if is_number(value) else math.nan
    return math.nan


def is_label(value: object) -> bool:
    """Whether this can be a label of a class: text, a number or a truth value. Others may not be comparable with labels."""
    return is_text(value) or is_number(value) or is_flag(value)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is one whole number, of Python or of NumPy. Truth values are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def checked_number(
    what: str, value: object, low: float, high: float, shown: str, refusal: type[ParameterError] = ParameterError
) -> float:
    """A number from low to high, as a float.

    Parameters
    ----------
    what : how the message begins
    value : what was given
    low, high : the range
    shown : the range in words, for example "2^-20 to 1"
    refusal : the error that is raised
    """
    number = as_float(value)
    if not low <= number <= high:
        raise refusal(f"{what} must be a number from {shown}.")
    return number


def checked_whole(what: str, value: object, low: int, high: int, refusal: type[ParameterError] = ParameterError) -> int:
    """A whole number from low to high, as an int of Python; parameters as for `checked_number`."""
    if not is_whole(value) or not low <= value <= high:
        raise refusal(f"{what} must be a whole number from {low} to {high}.")
    return int(value)


def checked_count(name: str, value: object, least: int = 1, digits: int = 15) -> int:
    """A number of rows, columns or repetitions: from `least` to 10^digits. Doubles count up to 10^15."""
    if not is_whole(value) or not least <= value <= 10**digits:
        raise ParameterError(f"{name} must be a whole number of at least {least}, and at most 10^{digits}.")
    return int(value)


def checked_list(name: str, value: object, of_what: str) -> tuple[Any, ...]:
    """The items of what can be read as a list."""
    if not is_list(value):
        raise ParameterError(f"{name} must be a list of {of_what}.")
    return tuple(value)


def lacking(what: str, needed: str, extra: str) -> ParameterError:
    """The refusal of something that needs an optional part of the package.

    Parameters
    ----------
    what : what was asked for
    needed : the library that it needs
    extra : the optional part that brings this library
    """
    return ParameterError(wording("optional part is lacking", what=what, needed=needed, extra=extra))


def imported(module: str, what: str, extra: str) -> Any:
    """A module of an optional library.

    Parameters
    ----------
    module : its name
    what : what needs it, for the message
    extra : the optional part that brings it

    Raises
    ------
    ParameterError
        If the library, or one that it needs, is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        needed = error.name
    raise lacking(what, f"the library {needed}", extra)


class PrivacyWarning(UserWarning):
    """A guarantee promises less than its user may think.

    The budget is large, the noise has a seed, or labels or a step before the fit were learned from the rows. It is given
    before a budget is charged, so a filter that turns it into an error stops the fit. To silence it, call
    ``warnings.simplefilter("ignore", confide.PrivacyWarning)``. Plans, guarantees and reports say the same in any case.
    """


class BudgetWarning(UserWarning):
    """Releases are about to spend a budget more than once, or outside of every ledger. The next one was not charged yet.

    Searches and cross-validation are told before their first fit. Other repeated releases are told before the second one: by
    a class of scikit-learn, such as `VotingClassifier`, or by one line in a loop, if no ledger counts them. To silence it,
    call ``warnings.simplefilter("ignore", confide.BudgetWarning)``.
    """


class AccuracyWarning(UserWarning):
    """A model may be less accurate than its user may think: nothing bounds the rows, or rows and labels may not match.

    It follows from parameters and names, and never from the numbers in the rows, so it tells nothing about them. It comes
    before a budget is charged. To silence it, call ``warnings.simplefilter("ignore", confide.AccuracyWarning)``.
    """


class SchemaWarning(UserWarning):
    """Rows to be predicted hold numbers outside of their bounds, or categories that are not listed.

    Such a number counts as the nearer bound, and such a category as no level, so the prediction says little of such rows.
    The message names the columns and says how many cells, which is a fact about these rows like the predictions themselves;
    it holds no cell. Fits never give it. To silence it, call ``warnings.simplefilter("ignore", confide.SchemaWarning)``.

    Attributes
    ----------
    cells : dict from the name of each such column to its number of such cells
    """

    def __init__(self, message: str, cells: dict[str, int] | None = None) -> None:
        super().__init__(message, cells)
        self.cells = {} if cells is None else cells

    def __str__(self) -> str:
        return str(self.args[0])
