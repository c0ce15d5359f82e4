"""Words and names in messages: how they are listed, and which of them was probably meant by one that is not among them."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Collection, Iterable
from configparser import ConfigParser
from functools import wraps
from importlib import resources
from inspect import CO_VARKEYWORDS, unwrap
from types import FunctionType
from typing import Any, TypeVar, cast

Called = TypeVar("Called", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type)


def listed(names: Iterable[str]) -> str:
    """Names in quotes, with commas between them."""
    return ", ".join(f'"{name}"' for name in names)


def plain_name(name: str) -> str:
    """A name without what readers and people change: case, blanks, separators, accents and invisible characters."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", name).casefold() if letter.isalnum())


def closest(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """The known name that was probably meant, or "": one that differs by case and separators, or else one like it."""
    plain = {plain_name(word): word for word in known}
    wanted = plain_name(name)
    close = [wanted] if wanted in plain else difflib.get_close_matches(wanted, plain, n=1, cutoff=cutoff)
    return plain[close[0]] if wanted and close else ""


def suggestion(given: object, known: Iterable[object]) -> str:
    """A question about a known name that looks like the given one, or nothing."""
    meant = closest(str(given), map(str, known))
    return f' (did you mean "{meant}"?)' if meant else ""


def listed_unknown(unknown: Iterable[object], known: Collection[object]) -> str:
    """Unknown names in quotes, each with the known name that was probably meant. All known names may be shown."""
    return ", ".join(f'"{name}"{suggestion(name, known)}' for name in unknown)


def words_of(known: Iterable[object], given: object) -> str:
    """The words that a parameter takes, and which of them was probably meant."""
    words = [str(word) for word in known]
    return ", ".join(map(repr, words)) + suggestion(given, words)


def with_suggestions(function: Called) -> Called:
    """The function, whose refusal of an unknown keyword asks for the one that was meant, in the words of Python 3.13."""
    code = unwrap(function).__code__
    if code.co_flags & CO_VARKEYWORDS or hasattr(function, "suggests"):
        return function  # it refuses unknown keywords itself, or in this way already
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known and (meant := closest(name, known)):
                said = f"{function.__qualname__}() got an unexpected keyword argument '{name}'. Did you mean '{meant}'?"
                raise TypeError(said)
        return function(*args, **kwargs)

    asked.suggests = True  # type: ignore[attr-defined]
    return cast("Called", asked)


def suggest_keywords_of(kind: Kind, *others: str) -> Kind:
    """The class, of which the public methods with parameters, and these others, refuse unknown keywords in this way."""
    for owner in kind.__mro__:
        members = [*vars(owner).items()] if owner.__module__.startswith("confide.") else []
        for name, member in members:
            function = getattr(member, "__func__", member)  # of a class method or a static one
            if isinstance(function, FunctionType) and (name[0] != "_" or name in others):
                code = unwrap(function).__code__
                if code.co_argcount + code.co_kwonlyargcount > 1:
                    asked = with_suggestions(function)
                    type.__setattr__(owner, name, asked if function is member else type(member)(asked))
    return kind


# Names of columns, which may hold any character.


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
    plain = {plain_name(name): name for name in present if isinstance(name, str)}

    def hint(name: str) -> str:
        match = plain.get(plain_name(name), "")
        if match and unicodedata.normalize("NFC", match) == unicodedata.normalize("NFC", name):
            return " (it is there with its letters composed in another way; write both in Unicode form NFC)"
        return f' (did you mean "{match}"?)' if match else ""

    return ", ".join(f'"{name}"{hint(name)}' for name in absent)


def names_by_position(n_columns: int) -> tuple[str, ...]:
    """Names for the columns of an array, which has none: x0, x1, ..."""
    return tuple(map("x{}".format, range(n_columns)))


def sentences_of(name: str) -> ConfigParser:
    """The sentences of a file in `studies/texts`, or other words of it, by section and name."""
    said = ConfigParser(interpolation=None, delimiters=("=",))
    said.read_string(resources.files("confide.studies").joinpath("texts", name).read_text(encoding="utf-8"))
    return said
