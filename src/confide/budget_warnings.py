"""Sentences that warn of an unusual budget, of repeated releases and of rows that a model may fit badly.

Plans, fits, guarantees and reports show the same ones of a budget.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from confide.callers import asked_again_by, steps_outside
from confide.errors import AccuracyWarning, BudgetWarning, PrivacyWarning, wording

EXAMPLE_DELTA = 1e-6
"""Delta at which a concentrated budget is shown as an epsilon."""
_USUAL_DELTA = 1e-5
_LARGEST_USUAL_EPSILON = 10.0

MANY_CLASSES = 20
"""So many classes and more are worse off with one-vs-rest than with softmax. Of made-up clusters with 20 classes, at a pure
epsilon of 4, softmax had an accuracy of .93, `LinearSVC` .82 and one-vs-rest of logistic losses .73; with 50 classes at
(1, 1e-6) it was .98, .66 and .55; with 10 classes all were within .01."""

UNDECLARED_LABELS = wording("undeclared labels")


SEEDED = wording("seeded noise")


_rows_are_made_up: ContextVar[bool] = ContextVar("_rows_are_made_up", default=False)


@contextmanager
def of_made_up_rows() -> Iterator[None]:
    """Fits in the block are of made-up rows, which need no protection, so nothing is said of them."""
    token = _rows_are_made_up.set(True)
    try:
        yield
    finally:
        _rows_are_made_up.reset(token)


def cautions(budget: Any, n_rows_low: int, n_rows_high: int) -> tuple[str, ...]:
    """The sentences on a budget that promises little, from public facts alone. A usual or an infinite budget has none.

    Parameters
    ----------
    budget : PureDP, ApproxDP or ZCDP
    n_rows_low, n_rows_high : public bounds on the number of rows; they are equal where that number is public
    """
    if not budget.is_private:
        return ()
    sentences, delta = [], budget.slack
    if delta * n_rows_low >= 1.0:
        sentences.append(wording("delta above one over the rows", delta=delta))
    elif delta * n_rows_high >= 1.0:
        sentences.append(wording("delta above one over the most rows", delta=delta))
    elif delta > _USUAL_DELTA:
        sentences.append(wording("unusual delta", delta=delta, usual=_USUAL_DELTA))
    implied = budget.to_approx(EXAMPLE_DELTA) if budget.is_concentrated else budget
    if implied.epsilon > _LARGEST_USUAL_EPSILON:
        which = "Its epsilon" if implied is budget else f"The epsilon that it implies with delta = {EXAMPLE_DELTA:g}"
        factor, usual = f"10^{math.floor(implied.epsilon / math.log(10.0))}", _LARGEST_USUAL_EPSILON
        sentences.append(wording("unusual epsilon", which=which, epsilon=implied.epsilon, usual=usual, factor=factor))
    return tuple(sentences)


def warn(sentences: Iterable[str], kind: type[Warning] = PrivacyWarning) -> None:
    """Give each sentence as a warning, which points to the caller's line."""
    for sentence in () if _rows_are_made_up.get() else sentences:
        warnings.warn(sentence, kind, stacklevel=1 + steps_outside(sys._getframe()))


def tell_of_repeats(asked: str, price: str, *, is_charged: bool, is_clone: bool = False) -> None:
    """Warn once where the caller asks for the second release in a row, unless a ledger counts what a loop asks for.

    Parameters
    ----------
    asked : what is released, such as "LogisticRegression.fit"
    price : the budget of each release, in words
    is_charged : whether a ledger is charged
    is_clone : whether an estimator is cloned, which comes before its fit
    """
    if _rows_are_made_up.get():
        return
    by = asked_again_by("clone" if is_clone else "release", counts_places=not is_charged and not is_clone)
    if by is None:
        return
    where = "charged to the ledger, one by one" if is_charged else "charged to no ledger"
    who = f"{by} asks for several releases, {asked} among them" if by else f"this line asks for {asked} again"
    advice = wording("repeats to be planned") if is_charged else wording("repeats to be charged")
    sentence = f"{who}. Each is a release of its own under {price}, {where}; the costs add up for the same persons. {advice}"
    warn((sentence,), BudgetWarning)


def of_many_classes(*plans: Any) -> tuple[str, ...]:
    """What there is to say of plans with one-vs-rest for so many classes: their noise outweighs each comparison."""
    sentences = {}
    for plan in plans:
        loss = plan.problem.loss.constants if plan.budget.is_private and hasattr(plan.problem, "loss") else None
        if loss is not None and loss.separable and loss.n_outputs >= MANY_CLASSES:
            sentences[loss.n_outputs] = wording("each class against all", classes=loss.n_outputs)
    return tuple(sentence for _, sentence in sorted(sentences.items())) if sentences else ()


def tell_of_unknown_size(estimator: Any, *, has_schema: bool) -> None:
    """Warn where nothing says how large rows are. It follows from the parameters alone, and never from the rows."""
    if has_schema:
        return
    if getattr(estimator, "row_norm", 1.0) is None:
        warn((wording("default norm of rows"),), AccuracyWarning)
    if str(getattr(estimator, "length_scale", None)) == "auto":
        warn((wording("default length of a kernel"),), AccuracyWarning)


def attempts_sentence(attempt: int) -> tuple[str, ...]:
    """What a release assumes of the earlier attempts under its charge, by its own number; empty for the first one."""
    if attempt == 1:
        return ()
    earlier = "An earlier attempt" if attempt == 2 else f"{attempt - 1} earlier attempts"
    return (wording("earlier attempts", earlier=earlier),)


def void_because(is_private: bool, seed: int | None, consequence: str) -> str | None:
    """Why there is no guarantee: there is no noise, or the noise can be subtracted. None if there is a guarantee."""
    if not is_private:
        return f"The budget is infinite: no noise was added, and {consequence}."
    if seed is not None:
        return "The noise came from a fixed seed (random_state): whoever knows or guesses the seed can subtract it."
    return None
