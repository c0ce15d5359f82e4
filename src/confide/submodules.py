"""Modules as attributes of their package, imported on first use: so `import confide` stays light."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from types import ModuleType


def on_first_use(package: str) -> Callable[[str], ModuleType]:
    """What a package needs as its `__getattr__` (PEP 562)."""

    def module_of(name: str) -> ModuleType:
        if any(module.name == name for module in pkgutil.iter_modules(sys.modules[package].__path__)):
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return module_of
