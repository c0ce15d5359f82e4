"""Names, above all of columns: how messages list them, which one was meant, and whether they look like data."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Iterable

from confide.features.cells import number_in
from confide.known_words import plain_name


def printable_lines(text: str) -> str:
    """The text without characters that control a terminal or turn the direction of what follows; a name may hold some."""
    return "".join(letter if letter.isprintable() or letter in "\n\xa0" else "?" for letter in text)


def printable_line(text: str) -> str:
    """The same in one line: a name with a line end must not look like another line."""
    return printable_lines("?".join(text.split("\n")))


def listed_absent(absent: Iterable[str], present: Collection[object]) -> str:
    """Absent names in quotes, each with the present name that differs from it by case, blanks or separators alone.

    Other present names are not shown: where a file has no line of names, they are cells.
    """
    plain = {plain_name(each): each for each in present if isinstance(each, str)}

    def hint(name: str) -> str:
        found = plain.get(plain_name(name), "")
        if found and unicodedata.normalize("NFC", found) == unicodedata.normalize("NFC", name):
            return " (it is there with its letters composed in another way; write both in Unicode form NFC)"
        return f' (did you mean "{found}"?)' if found else ""

    return ", ".join(f'"{name}"{hint(name)}' for name in absent)


def names_by_position(n_columns: int) -> tuple[str, ...]:
    """Names for the columns of an array, which has none: x0, x1, ..."""
    return tuple(f"x{position}" for position in range(n_columns))


def looks_like_number(name: object) -> bool:
    """Whether a name is text that reads as a number: a sign that a row of data was taken for the names of the columns."""
    number = number_in(name) if isinstance(name, str) else None
    return number is not None and not math.isnan(number)
