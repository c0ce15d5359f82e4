"""Whose row each row is, and which rows of a person count, where one person may have several.

Identifiers are compared exactly, and a table in which two of them differ in spelling alone is refused. If they were taken
for two persons, one person could have more rows than the cap. If they were taken for one, the rows of one person could
decide which rows of another count, and to remove a person could cost twice as much.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.features.canonical_labels import MISSING_WORDS, canonical_label
from confide.features.cells import entries_at, labels_of
from confide.types import Indices

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-][0-9]{1,3})?")
"""How programs write a number. They write the sign of an exponent, which tells 1e+05 from an identifier such as 1e5."""
_UNSEEN = re.compile(
    "[\\0-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2065\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0\\U000e0100-\\U000e01ef]"
)
"""Letters that show nothing: control characters other than blanks, and what Unicode ignores outside its category Cf."""
_LONGEST_NUMBER = 1000
"""Characters of the longest text that is read as a number: Python refuses to write integers of several thousand digits."""
_NO_PERSON = frozenset(MISSING_WORDS)
_LEAST_ROUNDED = 2.0**11
"""Every type of floating-point number holds all whole numbers up to here."""


def read_identities(what: str, *columns: Any) -> Indices:
    """Whole numbers (n,), equal exactly where the cells are the same text or the same number.

    Nothing is rounded, and text is not read as a number. The integer 1, the text "1" and the number 1.0 are the same,
    because readers make all of them from one file.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "patient_id"'
    *columns : one or more parts of the column, each a Series, an Arrow array, a NumPy array or a list of a type of its own

    Raises
    ------
    InputError
        If a cell is missing, or is not text, a number or a boolean; if a number is so large, or has so many digits, that
        its type rounds it; or if two identifiers differ in spelling alone.
    """
    index: dict[str, int] = {}
    parts = []
    for cells in columns:
        identities, positions = labels_of(what, cells, identity_in)
        table = [-1 if identity is None else index.setdefault(identity, len(index)) for identity in identities]
        parts.append(entries_at(positions, np.array([*table, -1])))
    found: Indices = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if (found == -1).any():
        raise InputError(f"{what}: holds missing values; every row needs the person that it belongs to.")
    if ROUNDED in index:
        raise InputError(
            f"{what}: holds floating-point numbers so large, or with so many digits, that their type rounds them, so two "
            f"persons may have become one. Write them as integers or as text."
        )
    if n_respelled(index):
        raise InputError(
            f"{what}: some identifiers differ in spelling alone, as 7, 7.0 and 007 do, or A1 and a1, or letters that are "
            f"composed in another way. One person could count several times. Write each identifier in one way in all rows; "
            f"different persons need identifiers that differ in more than that, such as whole numbers."
        )
    return found


ROUNDED = "\0rounded"
"""Stands for the identity of a number that its type may have rounded. No cell can have it: blanks and it are stripped."""


def identity_in(value: object) -> str | None:
    """The exact text of an identifier of any type; None if it is missing, as empty cells and words such as NA are.

    Raises
    ------
    TypeError, ValueError
        If the value is not text, a number or a boolean, or is an integer of thousands of digits.
    """
    if isinstance(value, str):
        text = value.strip()
        return None if not text or text in _NO_PERSON else text
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    if canonical_label(value) is None:
        return None
    text = str(value)  # the shortest decimal of a float; exact for a Decimal
    if isinstance(value, (bool, np.bool_)):
        return text
    if isinstance(value, (float, np.floating)) and _is_rounded(value):
        return ROUNDED
    exact = Fraction(text)
    return str(exact) if exact.denominator == 1 else text


def _is_rounded(number: float | np.floating[Any]) -> bool:
    """Whether its type does not hold all whole numbers up to it, or, if it is narrow, all decimals of so many digits."""
    size, kind = abs(float(number)), np.finfo(type(number))
    if size % 1.0 and kind.bits < 64:
        return len(re.sub(r"e.*|\D", "", str(number)).strip("0")) > kind.precision
    return size >= _LEAST_ROUNDED and size >= 2.0 ** (kind.nmant + 1)


def n_respelled(identities: Iterable[str]) -> int:
    """How many of different identities are another one in another spelling."""
    seen: set[str] = set()
    count = 0
    for count, identity in enumerate(identities, start=1):  # noqa: B007 - counted
        seen.add(spelling_of(identity))
    return count - len(seen)


def spelling_of(identity: str) -> str:
    """What two identities have in common if they differ in spelling alone.

    That is in case, in blanks and invisible letters, in letters and digits that Unicode has in several forms (NFKC), in
    dashes, or in how a number is written: with leading zeros, decimals or an exponent.
    """
    if identity.isascii():
        if identity.isdigit():
            return identity.lstrip("0") or "0"
        if identity.isalnum():
            return identity.lower()
    else:
        visible = "".join(letter for letter in identity if unicodedata.category(letter) != "Cf")
        identity = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
        identity = "".join(map(_plain, identity))
    identity = " ".join(_UNSEEN.sub("", identity.lower()).split())
    is_number = len(identity) <= _LONGEST_NUMBER and _NUMBER.fullmatch(identity)
    return str(Fraction(identity)) if is_number else identity


def _plain(letter: str) -> str:
    """The digit or the hyphen that a digit of any script, or a dash or minus sign of any length, stands for."""
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    return "-" if letter == "\u2212" or unicodedata.category(letter) == "Pd" else letter


@dataclass(frozen=True, slots=True)
class RowsPerPerson:
    """A random choice of at most `most` rows of each person.

    The order of a table may depend on its content. So if the first rows of each person counted, a change of one person's
    rows could change which rows of another person count. Rows that are drawn at random depend on the rows of their own
    person only, and on nothing that anybody knows.

    Parameters
    ----------
    most : how many rows of each person count
    permutation : gives, for n, the numbers 0 to n - 1 in a secret order that is uniform and independent of everything else
    """

    most: int
    permutation: Callable[[int], Indices]

    def drawn(self, persons: Indices) -> Indices | None:
        """Positions of the rows that count, in rising order; None if all rows count.

        Parameters
        ----------
        persons : (n,) whole numbers, equal for rows of one person
        """
        shuffled = self.permutation(persons.size)
        order = shuffled[np.argsort(persons[shuffled], kind="stable")]
        grouped = persons[order]
        is_first = np.append(True, grouped[1:] != grouped[:-1])
        starts = np.flatnonzero(is_first)
        earlier = np.arange(persons.size) - starts[np.cumsum(is_first) - 1]
        kept: Indices = np.sort(order[earlier < self.most])
        return None if kept.size == persons.size else kept
