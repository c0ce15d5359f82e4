"""Releases of estimators, callables and files, and their outcomes: numbers, or a statistic that is learned."""

from __future__ import annotations

import copy
import importlib.util
import io
import math
import pickle
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from inspect import isclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from confide.array_types import Array
from confide.errors import FileError, ParameterError
from confide.features.toml_form import refuse_address


def is_own(estimator: Any) -> bool:
    """Whether an estimator is one of this package."""
    return type(estimator).__module__.startswith("confide.")


def released_by(release: Any) -> Callable[..., Any]:
    """What is released from data, as a callable that may be called many times."""
    if hasattr(release, "fit"):
        template = unfitted(release)
        # Ours keep nothing of a fit but attributes, so shallow copies are as good as new ones, and made much faster.
        return lambda *data: fitted_values(copy.copy(template) if is_own(template) else unfitted(template), data)
    if callable(release):
        return release  # type: ignore[no-any-return]
    raise ParameterError(f"release must be a callable or an estimator with a method fit; it is {type(release).__name__}.")


def arguments_of(data: Any) -> tuple[Any, ...]:
    """A data set as the arguments of a release: a tuple is several."""
    return data if isinstance(data, tuple) else (data,)


def unfitted(estimator: Any) -> Any:
    """A copy that was not fitted. Those of this package get fresh noise and charge no ledger."""
    if not hasattr(estimator, "fit"):
        raise ParameterError("an estimator must have a method fit.")
    if hasattr(estimator, "get_params"):
        from sklearn.base import clone

        made = clone(estimator, safe=False)
    else:
        made = copy.deepcopy(estimator)
    if is_own(estimator):
        made.set_params(**{name: None for name in ("random_state", "ledger") if name in made.get_params(deep=False)})
    return made


def fitted_values(estimator: Any, data: tuple[Any, ...]) -> Any:
    """Fit, and give what the estimator shows: weights of ours, and of others all attributes and parameters that changed."""
    before = dict(vars(estimator))
    fitted = estimator.fit(*data)
    fitted = estimator if fitted is None else fitted
    best = getattr(fitted, "best_estimator_", fitted) if is_own(fitted) else fitted
    if is_own(best) and hasattr(best, "coef_"):
        return np.concatenate([np.ravel(best.coef_), np.ravel(best.intercept_)]).astype(np.float64)
    if not vars(fitted):
        return {"repr": repr(fitted)}
    return {name: plain(value) for name, value in vars(fitted).items() if name not in before or value is not before[name]}


def plain(value: Any, depth: int = 4) -> Any:
    """A value as numbers, text, lists and dictionaries, objects by their attributes."""
    match value:
        case None:
            return "None"
        case bool() | int() | float() | str() | np.generic() | np.ndarray():
            return value
        case _ if depth == 0:
            return type(value).__name__
        case dict():
            return {str(key): plain(item, depth - 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item, depth - 1) for item in value]
        case _ if hasattr(value, "__dict__") and not callable(value):
            return plain(vars(value), depth)
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
        refuse_address(text)
        if not Path(text).is_file():
            raise FileError(f"there is no file {text}.")
        specification = importlib.util.spec_from_file_location(f"audited_{Path(text).stem}", text)
        if specification is None or specification.loader is None:
            raise FileError(f"{text} cannot be read as Python.")
        made = importlib.util.module_from_spec(specification)
        # Classes that the file defines can be pickled only if their module is known by its name.
        sys.modules[specification.name] = made
        try:
            specification.loader.exec_module(made)
        except Exception as error:
            raise FileError(f"{text} cannot be run: {type(error).__name__}: {error}") from error
        return made
    module, _, name = text.partition(":")
    if not name:
        raise ParameterError(f"{text} names no release. Give the path of a file that ends with .py, or module:name.")
    try:
        member: Any = importlib.import_module(module)
        for part in name.split("."):
            member = getattr(member, part)
    except (ImportError, AttributeError) as error:
        raise FileError(f"{text} cannot be imported: {error}.") from error
    return member() if isclass(member) else member


# What a release published, as numbers: vectors, JSON values, fitted estimators and errors become rows of a matrix.
#
# An error is an outcome too: whether a release fails, and how, may tell data sets apart. Such an outcome is a `RuntimeError`
# with the type of the error and its text, which holds no rows, as a traceback may.

_MOST_WITH_BITS = 10
"""Of outcomes with more numbers than this, last bits are not looked at."""
_MOST_VALUES = 20
"""Of one place that holds text, so many values get a column each; all others share none."""


Leaf: TypeAlias = tuple[str, str | None, float]
"""The place of a number in an outcome, None, and the number; or the place of a text, the text, and 1."""


def leaves(outcome: Any, path: str = "") -> Iterator[Leaf]:
    """Every number, truth value and text of an outcome, with its place."""
    match outcome:
        case RuntimeError():
            yield f"{path}error", str(outcome), 1.0
        case Mapping():
            for key in sorted(outcome, key=str):
                yield from leaves(outcome[key], f"{path}{key}.")
        case np.ndarray():
            for index, value in enumerate(outcome.ravel().tolist()):
                yield from leaves(value, f"{path}{index}.")
        case str():
            yield path, outcome, 1.0
        case bytes():
            yield path, repr(outcome), 1.0
        case Sequence():
            yield f"{path}length", None, float(len(outcome))
            for index, value in enumerate(outcome):
                yield from leaves(value, f"{path}{index}.")
        case int() | float() | np.bool_() | np.integer() | np.floating():
            yield path, None, float(outcome)
        case _ if hasattr(outcome, "to_dict"):
            yield from leaves(outcome.to_dict(), path)
        case _ if hasattr(outcome, "__array__"):
            yield from leaves(np.asarray(outcome), path)
        case _:
            yield path, repr(outcome), 1.0


Column: TypeAlias = tuple[str, str | None]
"""What a column holds: the numbers at a place, or whether a place holds a text."""


def columns_of(outcomes: Sequence[Any]) -> tuple[Column, ...]:
    """The columns of these outcomes: those of numbers, and then those of the most frequent texts."""
    seen = Counter((path, text) for outcome in outcomes for path, text, _ in leaves(outcome))
    numbers, texts = list[Column](), dict[str, list[str]]()
    for path, text in seen:
        if text is None:
            numbers.append((path, None))
        else:
            texts.setdefault(path, []).append(text)
    often = list[Column]()
    for path, own in texts.items():
        often += [(path, text) for text in sorted(own, key=lambda text: (-seen[path, text], text))[:_MOST_VALUES]]
    return (*numbers, *often)


def matrix_of(outcomes: Sequence[Any], columns: Sequence[Column]) -> Array:
    """(n, columns): NaN where an outcome has no such number."""
    rows = np.tile([math.nan if text is None else 0.0 for _, text in columns], (len(outcomes), 1))
    places = {column: place for place, column in enumerate(columns)}
    for row, outcome in zip(rows, outcomes, strict=True):
        for path, text, number in leaves(outcome):
            if (path, text) in places:
                row[places[path, text]] = number
    return rows


def vectors(first: Sequence[Any], second: Sequence[Any], learned_from: int) -> tuple[Array, Array, bool]:
    """Both samples of outcomes as matrices with the same columns, and whether they are vectors of numbers alone.

    The columns follow from the first `learned_from` outcomes of either sample.
    """
    both = (*first, *second)
    arrays = all(isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f" for numbers in both)
    if arrays and len({numbers.shape for numbers in both}) == 1:
        return np.array([numbers.ravel() for numbers in first]), np.array([numbers.ravel() for numbers in second]), True
    columns = columns_of([*first[:learned_from], *second[:learned_from]])
    one, other = matrix_of(first, columns), matrix_of(second, columns)
    are_numbers = all(text is None for _, text in columns)
    return one, other, are_numbers and bool(np.isfinite(one).all() and np.isfinite(other).all())


def with_bits(matrix: Array) -> Array:
    """The columns, and for each that holds fractions how many zeros its numbers end with and what their last bits are.

    Noise that is added in floating point shows in them, see Mironov (2012).
    """
    blocks = [matrix]
    for column in matrix.T if matrix.shape[1] <= _MOST_WITH_BITS else ():
        known = column[np.isfinite(column)]
        if known.size and not np.array_equal(known, np.rint(known)):
            mantissas, exponents = np.frexp(np.where(np.isfinite(column), column, 0.0))
            digits = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
            lowest = np.where(digits == 0, 54.0, np.log2(np.maximum(1, digits & -digits)))
            # The place of the last bit that is not 0, as a power of two.
            blocks += [np.column_stack([lowest, exponents - 53.0 + lowest, digits & 3])]
    return np.column_stack(blocks)


def bounded(matrix: Array) -> Array:
    """The numbers without NaN and infinities, and a column for each that has some."""
    missing = np.isnan(matrix)
    whole = np.clip(np.where(missing, 0.0, matrix), -math.sqrt(1e300), math.sqrt(1e300))
    return np.column_stack([whole, missing[:, missing.any(axis=0)].astype(float)])


# A statistic that is learned from releases, for where their density is not known: scores of a classifier.
#
# Only the releases that teach it, and no others, decide what it looks at.

Statistic = Callable[[Array], Array]
"""From releases (n, columns) to numbers (n,) that are larger where the first data set is likelier."""
_WIDEST_SQUARES = 30
"""With more columns than this there are no products of columns beside them."""


def learned(first: Array, second: Array, worth: Callable[[Array, Array], float]) -> tuple[Statistic, Array, Array, str]:
    """The best of a linear rule, a quadratic one and trees.

    Parameters
    ----------
    first, second : (n, columns)
        Releases that teach the classifier.
    worth : callable
        From scores of either sample to what a threshold on them would show.

    Returns
    -------
    statistic, scores of the first sample, scores of the second, name
        The scores are those of classifiers that were taught by other releases than the ones they score, so that a threshold
        can be chosen on them.
    """
    classifiers = _classifiers(first.shape[1])
    crossed = {name: _crossed(make, first, second) for name, make in classifiers.items()}
    name = max(crossed, key=lambda name: worth(*crossed[name]))
    (one, other), taught = crossed[name], _taught(classifiers[name], first, second)
    return lambda releases: _scores(taught, releases), one, other, f"learned ({name})"


def _classifiers(n_columns: int) -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, RobustScaler

    def rule(*between: Any) -> Any:
        clipped = FunctionTransformer(np.clip, kw_args={"a_min": -20.0, "a_max": 20.0})
        return make_pipeline(RobustScaler(), clipped, *between, LogisticRegression(max_iter=100))

    few = {"max_iter": 25, "max_leaf_nodes": 8, "learning_rate": 0.2, "early_stopping": False, "random_state": 0}
    rules: dict[str, Callable[[], Any]] = {"linear rule": rule}
    if n_columns <= _WIDEST_SQUARES:
        rules["quadratic rule"] = lambda: rule(PolynomialFeatures(2, include_bias=False))
    return rules | {"trees": partial(HistGradientBoostingClassifier, **few)}


def _taught(make: Callable[[], Any], first: Array, second: Array) -> Any:
    labels = np.repeat([1, 0], [len(first), len(second)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rule that did not quite converge is a rule all the same
        return make().fit(np.concatenate([first, second]), labels)


def _crossed(make: Callable[[], Any], first: Array, second: Array) -> tuple[Array, Array]:
    """Scores of releases by classifiers that other releases taught."""
    one, other = np.empty(len(first)), np.empty(len(second))
    for half in (0, 1):
        taught = _taught(make, first[1 - half :: 2], second[1 - half :: 2])
        one[half::2], other[half::2] = (_scores(taught, side[half::2]) for side in (first, second))
    return one, other


def _scores(classifier: Any, releases: Array) -> Array:
    return np.asarray(classifier.decision_function(releases), dtype=np.float64)
