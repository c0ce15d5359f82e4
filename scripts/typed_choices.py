"""Choices in docstrings, `{"replace-one", "add-or-remove-one"}`, as words on the site.

An extension of griffe, which zensical.toml names. Without it griffe reads "replace-one" as a type: one name minus another.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

_PARAMETER = re.compile(r"^(?P<name>\*{0,2}\w[\w, *]*) : (?P<kind>.*)$", re.MULTILINE)
_PROSE = re.compile(r"^(?P<name>\w[\w, ]*) : (?P<words>.{61,})\n(?=    [a-z(]|\S|\n|\Z)", re.MULTILINE)
"""What stands behind the colon of a parameter is long and goes on in the next line: it is no type, but says what it is."""
_OF_TYPES = {inspect.getdoc(kind) for kind in (bool, int, float, str, tuple, list, dict, frozenset, type(None))}
_CURLED = "\N{LEFT DOUBLE QUOTATION MARK}\\1\N{RIGHT DOUBLE QUOTATION MARK}"


def readable(text: str) -> str:
    """A docstring whose choices are words: braces become a list, and quotes are curled, so that they are no code.

    Hyphens of types are no signs of subtraction, and a sentence in place of a type stands below the name, as others do.
    """

    def line(found: re.Match[str]) -> str:
        kind = re.sub(r"\{([^{}]*), ([^{},]*)\}", r"\1 or \2", found["kind"])
        curled = re.sub(r'"([^"]*)"', _CURLED, kind).replace("path-like", "path\N{NON-BREAKING HYPHEN}like")
        return f"{found['name']} : {curled}"

    return _PARAMETER.sub(line, _PROSE.sub(r"\g<name>\n    \g<words>\n", text))


class TypedChoices(griffe.Extension):
    """What griffe calls for every object that has a docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of a class or a function before it is parsed, and drop those of Python's own types."""
        if obj.docstring is not None and inspect.cleandoc(obj.docstring.value) in _OF_TYPES:
            obj.docstring = None  # of the default of a parameter: a number, a text, a truth value
        for parameter in obj.parameters if isinstance(obj, griffe.Function) else ():
            if isinstance(
                parameter.default, str
            ):  # of an enumeration its value, and of a mapping that cannot change the mapping
                parameter.default = re.sub(r"^(?:<\w[\w.]*: (.*)>|mappingproxy\((.*)\))$", r"\1\2", parameter.default)
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
