"""Names of a package that are imported on first use (PEP 562), so that importing the package stays light."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def submodules(package: str) -> Callable[[str], ModuleType]:
    """What a package needs as its `__getattr__`: its modules are attributes that are imported on first use."""

    def module_of(name: str) -> ModuleType:
        if name.isidentifier() and importlib.util.find_spec(f"{package}.{name}") is not None:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return module_of


def is_installed(library: str) -> bool:
    """Whether a library can be imported. A folder of its name that holds no package is none."""
    spec = importlib.util.find_spec(library)
    return spec is not None and spec.origin is not None


DONE_ABOVE: dict[str, str] = {}
"""Functions that a room offers and a room above it has, each with its module. `confide/__init__.py` fills it."""


def done_above(name: str) -> Any:
    """The function of this name in `DONE_ABOVE`. Its module is imported on first use."""
    return getattr(importlib.import_module(DONE_ABOVE[name]), name)


def public_names(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """What a package needs as its `__all__`, `__getattr__` and `__dir__`.

    The names are those that it imports for type checkers, below `if TYPE_CHECKING`. They are read from the source file, so
    that each is written once.
    """
    modules = _imported_for_type_checkers(file)
    names, module_of = list(modules), submodules(package)

    def attribute(name: str) -> Any:
        if modules.get(name, package) == package:
            return module_of(name)
        module, words = importlib.import_module(modules[name]), importlib.import_module("confide.known_words")
        value = getattr(module, name)
        if isinstance(value, type):
            words.suggest_keywords_of(value, "__init__")
        elif callable(value):
            value = words.with_suggestions(value)
            setattr(module, name, value)  # where pickle looks for it
        setattr(sys.modules[package], name, value)
        return value

    return names, attribute, lambda: sorted({*names, "__version__"})


def _imported_for_type_checkers(file: str) -> dict[str, str]:
    """The names that a file imports below `if TYPE_CHECKING`, each with the module that has it.

    Each import has a line of the form "from module import name as name". The lines are read as text, since parsing would
    take a third of the time of `import confide`.
    """
    commands = {}
    with open(file, encoding="utf-8") as lines:  # noqa: PTH123 - pathlib would take time too
        for line in lines:
            words = line.split()
            if line.startswith("    from ") and words[2] == "import" and words[4:] == ["as", words[3]]:
                commands[words[3]] = words[1]
    return commands
