"""What the calls on the stack say of a release: who asks for it, whether again, and what was learned before. No row is read.

What happens in another process cannot be seen there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

_PASSING_ON = ("confide", "sklearn", "imblearn", "joblib", "contextlib")
"""Packages whose calls stand between a user's line and a release."""
_ON_BEHALF_OF_USERS = tuple(
    f"confide.{part}" for part in ("estimators", "training", "callers", "budget_warnings", "known_words")
)
"""Parts of confide that stand there. The others, such as audits, decide themselves how often they release."""
_ENCODING = ("sklearn.ensemble", "sklearn.multiclass")
"""Parts of scikit-learn that fit estimators to positions of sorted labels; `cross_val_predict` does so too."""
_ENCODING_CALL = "_fit_and_predict"
_LEARN_NOTHING = (
    *("PolynomialFeatures", "RBFSampler", "SkewedChi2Sampler", "GaussianRandomProjection", "SparseRandomProjection"),
    "FrozenEstimator",
)
"""Transformers of scikit-learn that must be fitted, and learn no more than the number of columns, or nothing then."""
_MAKE_NAMES = re.compile(
    "((standard|minmax|maxabs|robust)scaler|(quantile|power|spline)transformer|(simple|knn|iterative)imputer|kbinsdiscretizer|"
    "selectkbest|selectpercentile|selectfrommodel|(incremental|kernel|sparse)?pca|truncatedsvd|fastica|nmf|factoranalysis|"
    r"kmeans)(\d+|__.+)"
)
"""Names of columns that scikit-learn's transformers give to what they learned, such as "pca0" or "standardscaler__age"."""

_asked: WeakKeyDictionary[CodeType, dict[int, int]] = WeakKeyDictionary()
"""How often each place in code asked for a release without a ledger."""
_in_calls: WeakKeyDictionary[Any, tuple[int, dict[str, int]]] = WeakKeyDictionary()
"""For each object of scikit-learn the frame of its last call of `fit`, and what was counted there."""


def steps_outside(frame: FrameType) -> int:
    """Number of calls between a frame and the first code outside of confide and scikit-learn, where a warning points."""
    steps = 0
    while frame.f_back is not None and module_of(frame).split(".")[0] in _PASSING_ON:
        frame, steps = frame.f_back, steps + 1
    return steps


def module_of(frame: FrameType) -> str:
    """The name of the module whose code a frame runs."""
    return str(frame.f_globals.get("__name__"))


def asked_again_by(what: str, *, counts_places: bool) -> str | None:
    """Who asks for the second time for a release, or for a clone, which comes before one. It is said once.

    What confide does by itself, as in a search or an audit, is no matter of the caller's, and neither is what scikit-learn's
    `model_selection` does, which is told of elsewhere.

    Parameters
    ----------
    what : "release" or "clone"
    counts_places : whether to count what one place in the caller's code asks for

    Returns
    -------
    str or None
        The class of scikit-learn of whose `fit` the call comes for the second time; "" if a place in the caller's code asks
        for the second time; None otherwise.
    """
    has_left, place, fit = False, None, None
    for frame, module, package in _frames():
        if place is None:
            if package == "confide" and (has_left or not module.startswith(_ON_BEHALF_OF_USERS)):
                return None
            if module.startswith("sklearn.model_selection"):
                return None
            has_left = has_left or package != "confide"
            place = None if package in _PASSING_ON else frame
        # The outermost call of `fit` of a class of scikit-learn that is no pipeline and no search.
        is_fit = module.startswith("sklearn.") and "fit" in frame.f_code.co_name
        owner = frame.f_locals.get("self") if is_fit and not module.startswith("sklearn.model_selection") else None
        if owner is not None and not isinstance(getattr(owner, "steps", None), list):
            fit = frame
    if fit is not None:
        owner = fit.f_locals["self"]
        number, counts = _in_calls.get(owner, (0, {}))
        counts = counts if number == id(fit) else {}
        _in_calls[owner] = (id(fit), counts)
        counts[what] = counts.get(what, 0) + 1
        if counts[what] > 1:
            counts["told"] = counts.get("told", 0) + 1
            return type(owner).__name__ if counts["told"] == 1 else None
    if not counts_places or place is None:
        return None
    # Whether the first instruction outside of such packages asks for the second time.
    places = _asked.setdefault(place.f_code, {})
    places[place.f_lasti] = places.get(place.f_lasti, 0) + 1
    return "" if places[place.f_lasti] == 2 else None


def labels_are_encoded() -> bool:
    """Whether the call comes from a part of scikit-learn that hands over positions in place of labels."""
    for frame, module, package in _frames():
        if package not in ("confide", "contextlib") and module not in ("sklearn.base", "sklearn.pipeline"):
            selects = module.startswith("sklearn.model_selection") and frame.f_code.co_name == _ENCODING_CALL
            return selects or module.startswith(_ENCODING)
    return False


def learned_before(names_of_columns: Iterable[str] = ()) -> tuple[str, ...]:
    """The classes of the steps before this fit that learn from rows.

    They are the earlier steps of pipelines on the stack, transformers of a target there, and what gave columns their names.
    """
    names: dict[str, None] = {}
    positions: dict[int, int] = {}
    for frame, _, package in _frames():
        if package not in ("sklearn", "imblearn") or "fit" not in frame.f_code.co_name:
            continue
        owner = frame.f_locals.get("self")
        steps = getattr(owner, "steps", None)
        if isinstance(steps, list):
            # Where a loop of scikit-learn counts its steps, an earlier one is fitted, and otherwise the last one.
            position = positions.setdefault(id(owner), int(frame.f_locals.get("step_idx", len(steps) - 1)))
            names |= dict.fromkeys(name for _, step in steps[:position] for name in _learning(step))
        elif hasattr(owner, "regressor"):
            names |= dict.fromkeys(_learning(getattr(owner, "transformer", None)))
    named = filter(None, map(_MAKE_NAMES.fullmatch, names_of_columns))
    return tuple(names | dict.fromkeys(match[1] for match in named))


def _learning(step: Any) -> Iterator[str]:
    """The classes that learn from rows in a step: its own, or those of its parts."""
    if step is None or isinstance(step, str):
        return
    parts = next(filter(None, (getattr(step, name, None) for name in ("steps", "transformers", "transformer_list"))), None)
    if isinstance(parts, (list, tuple)):
        # Columns that a ColumnTransformer does not name go to its `remainder`, a word or a transformer.
        for part in (*(part[1] for part in parts), getattr(step, "remainder", None)):
            yield from _learning(part)
        return
    name, tags = type(step).__name__, getattr(step, "__sklearn_tags__", None)
    # Which levels are rare, and which columns have gaps, is seen in the rows alone.
    looks = any(getattr(step, attribute, None) for attribute in ("min_frequency", "max_categories", "add_indicator"))
    is_told = not looks and (
        getattr(step, "strategy", None) == "constant"
        or (name in ("OneHotEncoder", "OrdinalEncoder") and not isinstance(step.categories, str))
        or (name == "SplineTransformer" and not isinstance(step.knots, str))
    )
    is_own = type(step).__module__.split(".")[0] == "confide"
    if not (is_own or is_told or name in _LEARN_NOTHING or (tags is not None and not tags().requires_fit)):
        yield name


def _frames() -> Iterator[tuple[FrameType, str, str]]:
    """The calls that led here, the innermost first, each with its module and its package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = module_of(frame)
        yield frame, module, module.split(".")[0]
        frame = frame.f_back
