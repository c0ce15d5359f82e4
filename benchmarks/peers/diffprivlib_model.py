"""IBM diffprivlib's LogisticRegression, in two ways: as its documentation has it, and as its proof needs it.

As documented (`any`), rows as encoded with `data_norm` and an intercept of its own, its stated epsilon is known to be
exceeded: the curvature term grows with the norm where it should with its square, and the intercept is not regularised,
though the proof asks for curvature in every perturbed direction. As its proof needs it (`sound`), rows are divided by their
norm, a constant column is one of theirs, and `fit_intercept` is off. Neither accounts for a solver that stops short of the
minimiser, nor for floating-point noise.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from benchmarks.peers.outcomes import Outcome
from benchmarks.peers.problems import Problem

SIZES = (1.5, 5.0, 15.0, 45.0)


def settings(epsilon: float, way: str, *, small: bool) -> list[dict[str, Any]]:
    """The grid of hyperparameters. Ridges are those of rows of norm 1."""
    sizes = SIZES[1:2] if small else SIZES
    return [{"norm": norm, "ridge": size / epsilon, "way": way} for norm in ("largest", "usual") for size in sizes]


def outcomes(
    problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
) -> list[list[Outcome]]:
    """Outcomes of each setting, one for each draw."""
    from diffprivlib.models import LogisticRegression

    if delta != 0.0:
        raise ValueError("diffprivlib's model has pure privacy alone")
    found: list[list[Outcome]] = []
    for number, setting in enumerate(chosen):
        norm = problem.norms[setting["norm"]]
        if setting["way"] == "sound":
            train, test = problem.unit_rows(setting["norm"])
            scale, data_norm, intercept = 1.0, 1.0, False
        else:
            train, test = problem.train, problem.test
            scale, data_norm, intercept = 1.0 + norm**2, norm, True
        found.append([])
        for draw in range(draws):
            model = LogisticRegression(
                epsilon=epsilon, data_norm=data_norm, C=1.0 / (scale * setting["ridge"]), fit_intercept=intercept,
                random_state=np.random.default_rng([seed, number, draw]).integers(2**31),
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # rows are clipped to the norm, and old parameters of scikit-learn
                model.fit(train, problem.split.y_train)
            found[-1] += problem.outcomes((test @ model.coef_.T) + model.intercept_)
    return found
