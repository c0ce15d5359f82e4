"""Warnings of fits that spend privacy without the caller's notice: given once, before the first of these fits."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from inspect import currentframe
from numbers import Integral
from typing import Any
from weakref import WeakSet

from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV, check_cv
from sklearn.pipeline import Pipeline

from confide.accounting.ledger import Batch, Ledger
from confide.callers import module_of, steps_outside
from confide.cautions import tell_of_repeats
from confide.errors import BudgetWarning, ParameterError
from confide.privacy.budgets import Budget, as_budget

_ONE_FIT_A_FOLD = ("cross_validate", "cross_val_score", "cross_val_predict")
_already_warned: WeakSet[Any] = WeakSet()
"""Searches and estimators for which the warning was given."""


class TellsOfRepeatedFits:
    """A private estimator that warns when scikit-learn is about to fit many clones of it."""

    def __sklearn_clone__(self) -> Any:
        # Every function of sklearn.model_selection clones the estimator in the caller's process before it starts workers, so
        # this is where the warning reaches the user, and before the first fit.
        _tell_of_repeated_fits(self)
        return super().__sklearn_clone__()  # type: ignore[misc]  # defined by scikit-learn's BaseEstimator


def _tell_of_repeated_fits(estimator: Any) -> None:
    """Warn once for each search, each estimator that is scored and each fit of many, unless the budget is infinite."""
    try:
        budget = as_budget(estimator.budget)
    except ParameterError:
        return  # every fit will refuse this budget
    calls = list(_calls_of_model_selection())
    if not calls:
        if budget.is_private and not isinstance(estimator.ledger, Batch):
            asked = f"{type(estimator).__name__}.fit"
            tell_of_repeats(asked, str(budget), is_charged=estimator.ledger is not None, is_clone=True)
        return
    level, facts, name = calls[-1]  # the outermost call
    warned = facts.get("self", facts["estimator"])
    if not budget.is_private or warned in _already_warned:
        return
    _already_warned.add(warned)
    n_fits = _number_of_fits(estimator, facts, name)
    fits = "many fits" if n_fits is None else f"up to {n_fits:,} fits"
    cost = "" if n_fits is None else f", together up to {_times(budget, n_fits)} where such costs add up"
    ledger = "charged to no ledger" if estimator.ledger is None else "charged to the ledger"
    kind = type(facts["self"]).__name__ if "self" in facts else name
    warnings.warn(
        f"{kind} makes {fits} of {type(estimator).__name__}. Each is a release of its own under {budget}, {ledger}{cost}. "
        f"The scores, and a choice made from them, are not private. confide.PrivateSearchCV chooses parameters under one "
        f"budget.",
        BudgetWarning,
        stacklevel=level,
    )


def tell_of_no_ledger(estimator: Any, ledger: Batch | Ledger | None) -> None:
    """Warn if a model that was read from a file is fitted again without a ledger: a file does not name one."""
    if estimator.__dict__.pop("_was_loaded", False) and ledger is None and as_budget(estimator.budget).is_private:
        warnings.warn(
            "this model was read from a file, and files name no ledger, so this fit is charged to none. If there is a "
            "ledger for these rows, give it first: model.set_params(ledger=confide.Ledger(path)).",
            BudgetWarning,
            stacklevel=1 + steps_outside(sys._getframe()),
        )


def _calls_of_model_selection() -> Iterator[tuple[int, dict[str, Any], str]]:
    """Calls of functions of sklearn.model_selection on the stack, the innermost first.

    Of each call: the number of steps from here to its caller, its parameters, and its name. The calls are recognised by the
    public names of their parameters, `estimator` and `cv`.
    """
    frame, steps = currentframe(), 0
    while frame is not None:
        if module_of(frame).startswith("sklearn.model_selection"):
            names = frame.f_locals
            names = {**names, **getattr(names.get("self"), "__dict__", {})}
            if {"estimator", "cv"} <= names.keys():
                yield steps + steps_outside(frame), names, frame.f_code.co_name
        frame, steps = frame.f_back, steps + 1


def _number_of_fits(estimator: Any, facts: dict[str, Any], name: str) -> int | None:
    """The largest number of fits of clones of the estimator; None if it does not follow from the parameters."""
    cloned = facts["estimator"]
    cloned = cloned.steps[-1][1] if isinstance(cloned, Pipeline) else cloned
    search, cv = facts.get("self"), facts["cv"]
    # Folds may be given as an iterator. Counting them would use it up.
    if not (cv is None or isinstance(cv, Integral) or hasattr(cv, "get_n_splits")):
        return None
    if type(cloned) is not type(estimator) or not (search is None or type(search) in (GridSearchCV, RandomizedSearchCV)):
        return None
    try:
        # The rows are not passed: the warning must not depend on them, so splitters that need them are not counted.
        n_splits = int(check_cv(cv).get_n_splits())
    except (TypeError, ValueError):
        return None
    if search is None:
        return n_splits if name in _ONE_FIT_A_FOLD else None
    grid = search.param_grid if isinstance(search, GridSearchCV) else search.param_distributions
    varied = {key.split("__")[-1] for point in (grid if isinstance(grid, list) else [grid]) for key in point}
    if "budget" in varied:
        return None
    n_candidates = len(ParameterGrid(grid)) if isinstance(search, GridSearchCV) else int(search.n_iter)
    return n_splits * n_candidates + (search.refit is not False)


def _times(budget: Budget, number: int) -> str:
    return ", ".join(f"{name} {number * getattr(budget, name):.6g}" for name in budget.ranges)
