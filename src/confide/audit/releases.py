"""One release, whoever made the library: estimators and plain callables become callables of the data."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import io
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from confide.errors import FileError, ParameterError
from confide.features.toml_form import refuse_address

_OWN = "confide."


def is_own(estimator: Any) -> bool:
    """Whether an estimator is one of this package."""
    return type(estimator).__module__.startswith(_OWN)


def released_by(release: Any) -> Callable[..., Any]:
    """What is released from data, as a callable that may be called many times."""
    if hasattr(release, "fit"):
        template = unfitted(release)
        # Ours keep nothing of a fit but attributes, so shallow copies are as good as new ones, and made much faster.
        return lambda *data: fitted_values(copy.copy(template) if is_own(template) else unfitted(template), data)
    if not callable(release):
        raise ParameterError(
            f"release must be a callable or an estimator with a method fit; it is {type(release).__name__}."
        )
    return release  # type: ignore[no-any-return]


def unfitted(estimator: Any) -> Any:
    """A copy that was not fitted. Those of this package get fresh noise and charge no ledger."""
    if hasattr(estimator, "get_params"):
        from sklearn.base import clone

        made = clone(estimator, safe=False)
    else:
        made = copy.deepcopy(estimator)
    if is_own(estimator):
        changes = {name: None for name in ("random_state", "ledger") if name in made.get_params(deep=False)}
        made.set_params(**changes)
    return made


def fitted_values(estimator: Any, data: tuple[Any, ...]) -> Any:
    """Fit, and give what the estimator shows: weights of ours, and of others all attributes and parameters that changed."""
    before = dict(vars(estimator))
    fitted = estimator.fit(*data)
    fitted = estimator if fitted is None else fitted
    best = getattr(fitted, "best_estimator_", fitted) if is_own(fitted) else fitted
    if is_own(best) and hasattr(best, "coef_"):
        return np.concatenate([np.ravel(best.coef_), np.ravel(best.intercept_)]).astype(np.float64)
    return shown_by(fitted, before)


def shown_by(fitted: Any, before: dict[str, Any]) -> dict[str, Any]:
    """Attributes that a fit added or changed."""
    values = vars(fitted)
    if len(values) == 0:
        return {"repr": repr(fitted)}
    return {name: plain(value) for name, value in values.items() if name not in before or value is not before[name]}


def plain(value: Any, depth: int = 4) -> Any:
    """A value as numbers, text, lists and dictionaries, objects by their attributes."""
    if value is None or isinstance(value, bool | int | float | str | np.generic | np.ndarray):
        return str(value) if value is None else value
    if depth == 0:
        return type(value).__name__
    if isinstance(value, dict):
        return {str(key): plain(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each, depth - 1) for each in value]
    if hasattr(value, "__dict__") and not callable(value):
        return {name: plain(each, depth - 1) for name, each in vars(value).items()}
    return type(value).__name__


def contents(value: Any) -> bytes:
    """What a value holds, to the bit, whatever objects inside it are shared."""
    text = io.BytesIO()
    pickler = pickle.Pickler(text)
    pickler.fast = True  # without a memory of objects, which would tell which of them are shared
    try:
        pickler.dump(value)
    except Exception:  # noqa: BLE001 - what cannot be pickled is compared by what it shows
        return repr(plain(value)).encode()
    return text.getvalue()


def named(text: str) -> Any:
    """The object that a text names, as "module:name" or as the path of a file of Python, which is run.

    Raises
    ------
    FileError
        If there is no such file, module or name, or it cannot be imported.
    """
    if text.endswith(".py"):
        return _module_at(Path(text))
    module, _, name = text.partition(":")
    if not name:
        raise ParameterError(f"{text} names no release. Give the path of a file that ends with .py, or module:name.")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise FileError(f"{text} cannot be imported: {error}.") from error
    return found() if isinstance(found, type) else found


def _module_at(path: Path) -> ModuleType:
    refuse_address(path)
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    specification = importlib.util.spec_from_file_location(f"audited_{path.stem}", path)
    if specification is None or specification.loader is None:
        raise FileError(f"{path} cannot be read as Python.")
    module = importlib.util.module_from_spec(specification)
    # Classes that the file defines can be pickled only if their module is known by its name.
    sys.modules[specification.name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise FileError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    return module
