"""The tree of exceptions is the one that the module's docstring draws."""

from __future__ import annotations

import inspect
import re

import confide
from confide import errors

CLASSES = {name: getattr(errors, name) for name in errors.__all__}


def test_the_drawing_shows_every_exception_with_its_bases():
    """The drawing in the docstring shows the depth of each class, and its built-in base in parentheses."""
    drawn = re.findall(r"^    ([│├└─ ]*)(\w+)(?: \((\w+)\))?(?:  .*)?$", inspect.getdoc(errors), re.MULTILINE)
    above, found = [], set()
    for branch, name, builtin in drawn:
        kind = CLASSES[name]
        depth = len(branch) // 4
        del above[depth:]
        bases = {base.__name__ for base in kind.__bases__}
        assert bases == {*([above[-1]] if above else []), *([builtin] if builtin else [])} or name == "ConfideError"
        above.append(name)
        found.add(name)
    assert found == set(CLASSES)


def test_every_exception_says_what_it_means_and_is_raised_on_purpose():
    """All exceptions except warnings have one root, and each has a docstring."""
    for name, kind in CLASSES.items():
        assert kind.__doc__, name
        assert issubclass(kind, errors.ConfideError) != issubclass(kind, UserWarning)


def test_those_that_users_catch_are_public():
    """They are attributes of the package."""
    public = {name for name in CLASSES if hasattr(confide, name)}
    assert public >= {"ConfideError", "ParameterError", "SchemaError", "InputError", "FileError", "LedgerError"}
    assert all(getattr(confide, name) is CLASSES[name] for name in public)
