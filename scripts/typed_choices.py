"""Choices in docstrings, `{"replace-one", "add-or-remove-one"}`, as words on the site.

An extension of griffe, which zensical.toml names. Without it griffe reads "replace-one" as a type: one name minus another.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

_PARAMETER = re.compile(r"^(?P<name>\*{0,2}\w[\w, *]*) : (?P<kind>.*)$", re.MULTILINE)
_OF_TYPES = {inspect.getdoc(kind) for kind in (bool, int, float, str, tuple, list, dict, frozenset, type(None))}
_CURLED = "\N{LEFT DOUBLE QUOTATION MARK}\\1\N{RIGHT DOUBLE QUOTATION MARK}"


def readable(text: str) -> str:
    """A docstring whose choices are words: braces become a list, and quotes are curled, so that they are no code."""

    def line(found: re.Match[str]) -> str:
        kind = re.sub(r"\{([^{}]*), ([^{},]*)\}", r"\1 or \2", found["kind"])
        curled = re.sub(r'"([^"]*)"', _CURLED, kind)
        return f"{found['name']} : {curled}"

    return _PARAMETER.sub(line, text)


class TypedChoices(griffe.Extension):
    """What griffe calls for every object that has a docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of a class or a function before it is parsed, and drop those of Python's own types."""
        if obj.docstring is not None and inspect.cleandoc(obj.docstring.value) in _OF_TYPES:
            obj.docstring = None  # of the default of a parameter: a number, a text, a truth value
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
