"""A statistic that is learned from releases, for where their density is not known: scores of a classifier.

Only the releases that teach it, and no others, decide what it looks at.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from confide.types import Array

Statistic = Callable[[Array], Array]
"""From releases (n, columns) to numbers (n,) that are larger where the first data set is likelier."""
_N_FOLDS = 2
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
    best: tuple[float, str, Any, Array, Array] | None = None
    for name, make in _classifiers(first.shape[1]).items():
        one, other = _crossed(make, first, second)
        value = worth(one, other)
        if best is None or value > best[0]:
            best = (value, name, make, one, other)
    assert best is not None  # noqa: S101 - there is at least one classifier
    _, name, make, one, other = best
    taught = _taught(make, first, second)
    return lambda releases: _scores(taught, releases), one, other, f"learned ({name})"


def _classifiers(n_columns: int) -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, RobustScaler

    def rule(*between: Any) -> Any:
        clipped = FunctionTransformer(np.clip, kw_args={"a_min": -20.0, "a_max": 20.0})
        return make_pipeline(RobustScaler(), clipped, *between, LogisticRegression(max_iter=100))

    def trees() -> Any:
        return HistGradientBoostingClassifier(
            max_iter=25, max_leaf_nodes=8, learning_rate=0.2, early_stopping=False, random_state=0
        )

    found: dict[str, Callable[[], Any]] = {"linear rule": rule}
    if n_columns <= _WIDEST_SQUARES:
        found["quadratic rule"] = lambda: rule(PolynomialFeatures(2, include_bias=False))
    return found | {"trees": trees}


def _taught(make: Callable[[], Any], first: Array, second: Array) -> Any:
    labels = np.repeat([1, 0], [len(first), len(second)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rule that did not quite converge is a rule all the same
        return make().fit(np.concatenate([first, second]), labels)


def _crossed(make: Callable[[], Any], first: Array, second: Array) -> tuple[Array, Array]:
    """Scores of releases by classifiers that other releases taught."""
    scores = [np.empty(len(first)), np.empty(len(second))]
    for fold in range(_N_FOLDS):
        kept = [np.arange(len(side)) % _N_FOLDS != fold for side in (first, second)]
        taught = _taught(make, first[kept[0]], second[kept[1]])
        for own, side, keeps in zip(scores, (first, second), kept, strict=True):
            own[~keeps] = _scores(taught, side[~keeps])
    return scores[0], scores[1]


def _scores(classifier: Any, releases: Array) -> Array:
    return np.asarray(classifier.decision_function(releases), dtype=np.float64)
