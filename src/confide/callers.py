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
_PARTS = ("estimators", "training", "callers", "budget_warnings", "known_words")
_ON_BEHALF_OF_USERS = tuple(f"confide.{part}" for part in _PARTS)
"""Parts of confide that stand there. The others, such as audits, decide themselves how often they release."""
_ENCODING = ("sklearn.ensemble", "sklearn.multiclass")
"""Parts of scikit-learn that fit estimators to positions of sorted labels; its predictions by folds do so too."""
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


def calls(frame: FrameType | None = None) -> Iterator[tuple[FrameType, str, str]]:
    """The calls that led to a frame, or here, the innermost first; of each the names of its module and its package."""
    frame = sys._getframe(1) if frame is None else frame
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        yield frame, module, module.split(".")[0]
        frame = frame.f_back


def steps_outside(frame: FrameType) -> int:
    """Number of calls between a frame and the first code outside of confide and scikit-learn, where a warning points."""
    steps = 0
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] in _PASSING_ON:
        frame, steps = frame.f_back, steps + 1
    return steps


def asked_again_by(what: str, *, counts_places: bool) -> str | None:
    """Who asks for the second time for a release, or for a clone, which comes before one. It is said once.

    What confide does by itself, as in a search or an audit, is no matter of the caller's.

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
    stack, has_left, place = list(calls()), False, None
    for frame, module, package in stack:
        if package not in _PASSING_ON:
            place = frame
            break
        if package == "confide" and (has_left or not module.startswith(_ON_BEHALF_OF_USERS)):
            return None
        if module.startswith("sklearn.model_selection"):
            return None  # it is told of elsewhere
        has_left = has_left or package != "confide"
    for frame, module, _ in reversed(stack):
        owner = frame.f_locals.get("self")
        # The outermost `fit` of a class of scikit-learn that is no pipeline and no search.
        is_fit = module.startswith("sklearn.") and "fit" in frame.f_code.co_name and owner is not None
        is_search = module.startswith("sklearn.model_selection")
        if is_fit and not is_search and not isinstance(getattr(owner, "steps", None), list):
            number, counts = _in_calls.get(owner, (0, {}))
            counts = counts if number == id(frame) else {}
            _in_calls[owner] = (id(frame), counts)
            counts[what] = counts.get(what, 0) + 1
            if counts[what] > 1:
                counts["told"] = counts.get("told", 0) + 1
                return type(owner).__name__ if counts["told"] == 1 else None
            break
    if not counts_places or place is None:
        return None
    times = _asked.setdefault(place.f_code, {})
    times[place.f_lasti] = times.get(place.f_lasti, 0) + 1
    return "" if times[place.f_lasti] == 2 else None


def labels_are_encoded() -> bool:
    """Whether the call comes from a part of scikit-learn that hands over positions in place of labels."""
    for frame, module, package in calls():
        if package in ("confide", "contextlib") or module in ("sklearn.base", "sklearn.pipeline"):
            continue
        by_folds = module.startswith("sklearn.model_selection") and frame.f_code.co_name == _ENCODING_CALL
        return by_folds or module.startswith(_ENCODING)
    return False


def learned_before(names_of_columns: Iterable[str] = ()) -> tuple[str, ...]:
    """The classes of the steps before this fit that learn from rows.

    They are the earlier steps of pipelines on the stack, transformers of a target there, and what gave columns their names.
    """
    names: dict[str, None] = {}
    positions: dict[int, int] = {}
    for frame, _, package in calls():
        owner = frame.f_locals.get("self")
        if package not in ("sklearn", "imblearn") or "fit" not in frame.f_code.co_name:
            continue
        steps = getattr(owner, "steps", None)
        if isinstance(steps, list):
            # Inside of its method _fit an earlier step is fitted, and otherwise the last one.
            position = positions.setdefault(id(owner), int(frame.f_locals.get("step_idx", len(steps) - 1)))
            names |= dict.fromkeys(name for _, step in steps[:position] for name in _learning(step))
        elif hasattr(owner, "regressor"):
            names |= dict.fromkeys(_learning(getattr(owner, "transformer", None)))
    for match in filter(None, map(_MAKE_NAMES.fullmatch, names_of_columns)):
        names[match[1]] = None
    return tuple(names)


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
    of_users = {"OneHotEncoder": "categories", "OrdinalEncoder": "categories", "SplineTransformer": "knots"}.get(name)
    is_constant = getattr(step, "strategy", None) == "constant"
    is_told = not looks and (is_constant or (of_users is not None and not isinstance(getattr(step, of_users), str)))
    is_own = type(step).__module__.split(".")[0] == "confide"
    if not (is_own or is_told or name in _LEARN_NOTHING or (tags is not None and not tags().requires_fit)):
        yield name
