"""Differentially private stochastic gradient descent (Abadi and others, 2016) for logistic regression, in plain NumPy.

Every step takes each row with the same probability, clips the gradient of each row taken, adds Gaussian noise to their sum
and moves the weights. The noise is the least that `dp_accounting` allows for all steps together, by privacy loss
distributions, for neighbours that add or remove one row. The number of rows enters the size of a step alone, as its
public lower bound. The noise is drawn in double precision by NumPy: good for a comparison, not for a release.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from benchmarks.peers.outcomes import Outcome
from benchmarks.peers.problems import Problem
from dp_accounting import (
    ExplicitBracketInterval,
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_dp_mechanism,
    get_sigma_gaussian,
)
from dp_accounting.pld import PLDAccountant
from scipy.special import expit

from confide.array_types import Array

MOMENTUM = 0.9


@dataclass(frozen=True, order=True)
class Schedule:
    """Steps, and the probability with which each takes a row."""

    share: float
    steps: int


@cache
def noise_multiplier(schedule: Schedule, epsilon: float, delta: float) -> float:
    """Standard deviation of the noise over the clipping norm."""
    # Noise of all rows in each step: as many Gaussian mechanisms, which together are one, with less noise by the root.
    of_all = float(get_sigma_gaussian(epsilon, delta)) * schedule.steps**0.5
    if schedule.share == 1.0:
        return of_all

    def event(multiplier: float) -> Any:
        return SelfComposedDpEvent(PoissonSampledDpEvent(schedule.share, GaussianDpEvent(multiplier)), schedule.steps)

    return float(
        calibrate_dp_mechanism(
            lambda: PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE),
            event,
            epsilon,
            delta,
            ExplicitBracketInterval(max(0.3, 0.5 * schedule.share * of_all), max(5.0, of_all)),
            tol=0.005 * max(0.5, schedule.share * of_all),
        )
    )


def train(
    signed: Array, n_rows: float, schedule: Schedule, multiplier: float, rates: Array, clips: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Weights (d, k) of k runs with a rate and a clipping norm each: the last ones, and the mean over the second half.

    `signed` are the rows times their labels. Runs share the rows of each step, and have noise of their own.
    """
    weights = np.zeros((signed.shape[1], len(rates)), dtype=signed.dtype)
    velocity, mean = np.zeros_like(weights), np.zeros_like(weights)
    norms = np.linalg.norm(signed, axis=1, keepdims=True)
    # The gradient of a row is its norm times the slope long, so its slope is at most clip / norm after clipping.
    limits = (clips / np.maximum(norms, 1e-12)).astype(signed.dtype)
    for step in range(schedule.steps):
        rows, limit = signed, limits
        if schedule.share < 1.0:
            taken = np.flatnonzero(rng.random(len(signed)) < schedule.share)
            rows, limit = signed[taken], limits[taken]
        slopes = np.minimum(expit(-(rows @ weights)), limit)
        noise = rng.standard_normal(weights.shape) * (multiplier * clips)
        gradient = (noise - rows.T @ slopes) / (schedule.share * n_rows)
        velocity = MOMENTUM * velocity + gradient.astype(signed.dtype)
        weights = weights - (rates * velocity).astype(signed.dtype)
        if 2 * step >= schedule.steps:
            mean += weights / (schedule.steps - (schedule.steps + 1) // 2)
    return weights, mean


def settings(*, small: bool, curved: bool = False) -> list[dict[str, Any]]:
    """The grid of hyperparameters. Curves have larger rates, for a knot sees few rows, and its weight may be large."""
    schedules = [(1.0, 20), (1.0, 80), (0.1, 100), (0.1, 500), (0.02, 1500)][: 1 if small else None]
    rates = (0.06, 0.2, 0.6, 2.0, 6.0, 20.0, 60.0) if curved else (0.006, 0.02, 0.06, 0.2, 0.6, 2.0, 6.0)
    clips = (0.3, 1.0, 4.0)
    return [
        {"share": share, "steps": steps, "rate": rate, "clip": clip, "mean": mean}
        for (share, steps), rate, clip, mean in itertools.product(schedules, rates, clips, (False, True))
    ]


def wide_settings(*, small: bool) -> list[dict[str, Any]]:
    """The grid beside random features: the two schedules that do best on curves, and each length scale of the features."""
    some = [setting for setting in settings(small=small, curved=True) if setting["steps"] in (20 if small else 80, 500)]
    return [{**setting, "length_scale": scale} for scale in (0.12, 0.25, 0.5, 1.0) for setting in some]


def outcomes(
    problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
) -> list[list[Outcome]]:
    """Outcomes of each setting, one for each draw."""
    test = np.hstack([problem.test, np.ones((len(problem.test), 1))]).astype(np.float32)
    rows = np.hstack([problem.train, np.ones((len(problem.train), 1))])
    signed = (rows * problem.split.y_train[:, None]).astype(np.float32)
    found: list[list[Outcome]] = [[] for _ in chosen]
    rng = np.random.default_rng(seed)
    for schedule in sorted({Schedule(s["share"], s["steps"]) for s in chosen}):
        multiplier = noise_multiplier(schedule, epsilon, delta)
        here = [s for s in chosen if Schedule(s["share"], s["steps"]) == schedule]
        runs = sorted({(s["rate"], s["clip"]) for s in here})
        rates, clips = np.array(runs).T
        for _ in range(draws):
            last, mean = train(signed, problem.n_rows_bounds[0], schedule, multiplier, rates, clips, rng)
            of_last, of_mean = problem.outcomes(test @ last), problem.outcomes(test @ mean)
            for setting in here:
                one = of_mean if setting["mean"] else of_last
                found[chosen.index(setting)].append(one[runs.index((setting["rate"], setting["clip"]))])
    return found
