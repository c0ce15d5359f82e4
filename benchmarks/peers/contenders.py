"""Who is compared: confide at its defaults, and its peers, each with a grid of settings."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from benchmarks.peers import (
    additive_boosting,
    diffprivlib_model,
    gradient_descent,
    output_perturbation,
    random_trees,
    synthetic_rows,
)
from benchmarks.peers.outcomes import Outcome
from benchmarks.peers.problems import KNOTS, Problem
from sklearn.linear_model import LogisticRegression

import confide

DELTA = 1e-5
PURE, APPROXIMATE, NONE = "pure, replace-one", f"delta = {DELTA:g}, add-or-remove-one", "not private"
LOGISTIC, SVC, ADDITIVE = "confide", "confide, LinearSVC", "confide, AdditiveClassifier"
STRAIGHT = (LOGISTIC, SVC)
"""Our contenders on straight lines."""
DOCUMENTED = "diffprivlib, as documented: its stated epsilon is exceeded in places"


class Outcomes(Protocol):
    """Outcomes of each of some settings, one for each draw."""

    def __call__(
        self, problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
    ) -> list[list[Outcome]]: ...


@dataclass(frozen=True)
class Contender:
    """Somebody who trains.

    It has a grid of settings for each epsilon, and outcomes of settings. `needs` is an object that must be importable,
    written "module:name", and `package` the distribution that holds it. `curved` says whether the effect of a number may
    bend. Each setting of the grid gets `tried` fits, and the best ones, so many `finalists`, get fresh fits.
    """

    name: str
    guarantee: str
    settings: Callable[[float], list[dict[str, Any]]]
    outcomes: Outcomes
    needs: str = ""
    package: str = ""
    curved: bool = False
    tried: int = 2
    finalists: int = 2

    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        if self.needs:
            try:
                pkgutil.resolve_name(self.needs)
            except (ImportError, AttributeError) as error:
                return str(error)
        return ""

    def is_rival_of(self, ours: str) -> bool:
        """Whether one of our contenders is measured by it: straight lines are by peers on straight lines, curves by all."""
        return self.name not in (*STRAIGHT, ADDITIVE) and (ours == ADDITIVE or not self.curved)


def by_confide(estimator: type[Any]) -> Outcomes:
    """Fits to raw columns with everything at its default; noise is the operating system's, so the seed is not used."""

    def outcomes(
        problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
    ) -> list[list[Outcome]]:
        del chosen, seed
        budget: Any = confide.ApproxDP(epsilon, delta) if delta else epsilon
        more: dict[str, Any] = {"neighbours": "add-or-remove-one", "n_rows_bounds": problem.n_rows_bounds} if delta else {}
        split, scores = problem.split, []
        for _ in range(draws):
            model = estimator(budget, schema=split.schema, **more).fit(split.X_train, split.y_train)
            scores.append(model.decision_function(split.X_test))
        return [problem.outcomes(np.stack(scores, axis=1))]

    return outcomes


def by_scikit_learn(
    problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
) -> list[list[Outcome]]:
    """Logistic regression without privacy, the same at each draw."""
    del epsilon, delta, seed
    train, test = problem.unit_rows("largest")
    found = []
    for setting in chosen:
        model = LogisticRegression(C=1.0 / setting["ridge"], fit_intercept=False, solver="newton-cholesky", max_iter=100)
        model.fit(train, problem.split.y_train)
        found.append(problem.outcomes(test @ model.coef_.T) * draws)
    return found


def on_knots(outcomes: Outcomes) -> Outcomes:
    """The same training, on rows in which every column of numbers has evenly spaced knots."""

    def curved(
        problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
    ) -> list[list[Outcome]]:
        return outcomes(problem.on_knots, epsilon, delta, chosen, draws, seed)

    return curved


def with_features(outcomes: Outcomes) -> Outcomes:
    """The same training, on rows with knots and with random features, whose length scale is a part of the setting."""

    def wide(
        problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
    ) -> list[list[Outcome]]:
        found: list[list[Outcome]] = [[] for _ in chosen]
        for length_scale in {setting["length_scale"] for setting in chosen}:
            places = [place for place, setting in enumerate(chosen) if setting["length_scale"] == length_scale]
            some = [chosen[place] for place in places]
            done = outcomes(problem.with_features(length_scale), epsilon, delta, some, draws, seed)
            for place, outcome in zip(places, done, strict=True):
                found[place] = outcome
        return found

    return wide


def contenders(*, small: bool) -> list[Contender]:
    """All, in the order of the table."""

    def diffprivlib(way: str) -> dict[str, Any]:
        return {
            "settings": lambda epsilon: diffprivlib_model.settings(epsilon, way, small=small),
            "outcomes": diffprivlib_model.outcomes,
            "needs": "diffprivlib.models:LogisticRegression",
            "package": "diffprivlib",
        }

    def boosting(*, tuned: bool) -> dict[str, Any]:
        return {
            "settings": lambda _: additive_boosting.settings(tuned=tuned),
            "outcomes": additive_boosting.outcomes,
            "needs": "interpret.privacy:DPExplainableBoostingClassifier",
            "package": "interpret-core",
            "curved": True,
        }

    def trees(_: float) -> list[dict[str, Any]]:
        return random_trees.settings(small=small)

    def drawn(_: float) -> list[dict[str, Any]]:
        return synthetic_rows.settings(small=small)

    def nothing(_: float) -> list[dict[str, Any]]:
        return [{}]

    def steps(*, curved: bool) -> Callable[[float], list[dict[str, Any]]]:
        return lambda _: gradient_descent.settings(small=small, curved=curved)

    def wide_steps(_: float) -> list[dict[str, Any]]:
        return gradient_descent.wide_settings(small=small)

    def on_weights(_: float) -> list[dict[str, Any]]:
        return output_perturbation.settings(small=small)

    def ridges(_: float) -> list[dict[str, Any]]:
        return [{"ridge": 10.0**power} for power in range(-5, 2)]

    def ours(guarantee: str) -> list[Contender]:
        return [
            Contender(LOGISTIC, guarantee, nothing, by_confide(confide.LogisticRegression)),
            Contender(SVC, guarantee, nothing, by_confide(confide.LinearSVC)),
            Contender(ADDITIVE, guarantee, nothing, by_confide(confide.AdditiveClassifier), curved=True),
        ]

    knots = f"{KNOTS} knots"
    return [
        *ours(PURE),
        Contender("diffprivlib, as its proof needs it", PURE, **diffprivlib("sound")),
        Contender(DOCUMENTED, PURE, **diffprivlib("any")),
        Contender("scikit-learn, Laplace noise on weights", PURE, on_weights, output_perturbation.outcomes),
        *ours(APPROXIMATE),
        Contender("DP-SGD", APPROXIMATE, steps(curved=False), gradient_descent.outcomes),
        Contender(f"DP-SGD, {knots}", APPROXIMATE, steps(curved=True), on_knots(gradient_descent.outcomes), curved=True),
        Contender(
            f"DP-SGD, {knots} and random features",
            APPROXIMATE,
            wide_steps,
            with_features(gradient_descent.outcomes),
            curved=True,
        ),
        Contender("DP-EBM", APPROXIMATE, **boosting(tuned=False)),
        Contender("DP-EBM, tuned", APPROXIMATE, **boosting(tuned=True), tried=1, finalists=3),
        Contender("boosted random trees", APPROXIMATE, trees, random_trees.outcomes, curved=True, finalists=3),
        Contender(
            "scikit-learn, boosted trees on OpenDP's synthetic rows",
            APPROXIMATE,
            drawn,
            synthetic_rows.outcomes,
            needs="mbi:MarkovRandomField",
            package="opendp",
            curved=True,
            finalists=3,
        ),
        Contender("scikit-learn, Gaussian noise on weights", APPROXIMATE, on_weights, output_perturbation.outcomes),
        *ours(NONE),
        Contender("scikit-learn", NONE, ridges, by_scikit_learn),
        Contender(f"scikit-learn, {knots}", NONE, ridges, on_knots(by_scikit_learn), curved=True),
    ]
