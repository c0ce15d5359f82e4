"""Private boosting of random trees with Newton's steps (Maddock, Cormode, Wang, Maple and Jha, 2022), in plain NumPy.

A tree is drawn from public facts alone: columns, their bounds and their levels. A batch of trees shares the gradients and
second derivatives of the logistic loss at the scores so far; their sums over each leaf of the batch are the only things
that are read from the rows, and get Gaussian noise. A leaf's weight is Newton's step, gradient over second derivative plus
a ridge, and the mean of a batch, times a rate, is added to the scores.

For neighbours that add or remove one row: with p the probability of the wrong class, a row adds p to one sum of gradients
and p (1 - p) to one of second derivatives, of every tree. The second is multiplied by CURVATURE before noise is added. A
row's part of one tree then is at most 1 long, sqrt(p^2 + (CURVATURE p (1 - p))^2) <= 1, so that second derivatives are known
better than gradients for nothing: the authors' bound, for a factor of 1, is sqrt(1 + 1/16). All trees are as many Gaussian
mechanisms, which together are one. The number of rows is not used. Noise is drawn in double precision by NumPy: good for a
comparison, not for a release.

The authors also move the candidates for splits to where noisy second derivatives are. Here they are drawn on the scale of
the schema's column, which is public.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.peers.outcomes import Outcome
from benchmarks.peers.problems import Codes, Problem
from dp_accounting import get_sigma_gaussian
from scipy.sparse import csr_matrix
from scipy.special import expit

from confide.array_types import Array

PARTS = 256
"""Equal parts of a number's scale, between which trees may split."""
CURVATURE = 3.33
"""What sums of second derivatives are multiplied by. A row's part of a tree stays within length 1 up to the square root of
the least (1 + p) / (p^2 (1 - p)), which is the golden ratio to the power 5/2, 3.3302."""


@dataclass(frozen=True, order=True)
class Shape:
    """Trees, their depth, how many share a noisy sum, and how many columns each may split (0: all of them)."""

    trees: int
    depth: int
    batch: int
    columns: int


def noise_deviation(shape: Shape, epsilon: float, delta: float) -> float:
    """Standard deviation of the noise of every sum: a row's part of one tree is at most 1 long, of all trees sqrt(trees)."""
    return float(get_sigma_gaussian(epsilon, delta)) * math.sqrt(shape.trees)


def leaves(rows: Array, codes: Codes, shape: Shape, rng: np.random.Generator) -> Array:
    """The leaf of each row (n, d) of codes in a tree that is drawn at random, without a look at the rows.

    Levels are put in an order at random. Each node splits a column at a place drawn from those left to it.
    """
    sizes, columns = codes.sizes, np.arange(len(codes.sizes))
    if shape.columns:
        columns = rng.choice(columns, size=min(shape.columns, len(sizes)), replace=False)
    orders = [rng.permutation(sizes[c]) if codes.levels[c] else np.arange(sizes[c]) for c in columns]
    inner = 2**shape.depth - 1
    chosen, goes_up = np.zeros(inner, dtype=np.int64), np.zeros((inner, max(sizes)), dtype=np.int64)
    ranges = np.zeros((2 * inner + 1, len(columns), 2), dtype=np.int64)
    ranges[0, :, 1] = [sizes[c] for c in columns]
    for node in range(inner):
        low, high = ranges[node].T
        ranges[2 * node + 1] = ranges[2 * node + 2] = ranges[node]
        splittable = np.flatnonzero(high - low > 1)
        if len(splittable):
            place = rng.choice(splittable)
            split = rng.integers(low[place] + 1, high[place])
            chosen[node] = columns[place]
            goes_up[node, : sizes[columns[place]]] = orders[place] >= split
            ranges[2 * node + 1, place, 1] = ranges[2 * node + 2, place, 0] = split
    node, first = np.zeros(len(rows), dtype=np.int64), np.arange(len(rows)) * rows.shape[1]
    for _ in range(shape.depth):
        code = rows.ravel()[first + chosen[node]]
        node = 2 * node + 1 + goes_up.ravel()[node * max(sizes) + code]
    return node - inner


def leaf_sums(within: csr_matrix, signs: Array, scores: Array) -> Array:
    """Sums (leaves, 2 k) over the rows of each leaf: gradients of k runs, and their second derivatives times CURVATURE.

    `within` (n, leaves) has a 1 where a row is in a leaf, `signs` (n, 1) are labels, and `scores` (n, k) are those so far.
    """
    wrong = expit(-signs * scores)
    return within.T @ np.hstack([signs * wrong, CURVATURE * wrong * (1.0 - wrong)])


def boosted(
    of_trees: Array, labels: Array, shape: Shape, deviation: float, rates: Array, ridges: Array, rng: np.random.Generator
) -> Array:
    """Scores (n, k) of all rows in k runs with a rate and a ridge each; `of_trees` are leaves (trees, n), labels come first.

    Runs share the trees, and have noise of their own.
    """
    n_rows, n_train, n_runs = of_trees.shape[1], len(labels), len(rates)
    scores, signs = np.zeros((n_rows, n_runs), dtype=np.float32), labels.astype(np.float32)[:, None]
    for begin in range(0, shape.trees, shape.batch):
        here = of_trees[begin : begin + shape.batch]
        places = (here + (np.arange(len(here)) * 2**shape.depth)[:, None]).T.ravel()
        size = len(here) * 2**shape.depth
        ones = np.ones(len(places), dtype=np.float32)
        within = csr_matrix((ones, places, np.arange(n_rows + 1) * len(here)), shape=(n_rows, size))
        sums = leaf_sums(within[:n_train], signs, scores[:n_train])
        sums = sums + deviation * rng.standard_normal(sums.shape)
        gradients, curvatures = sums[:, :n_runs], np.maximum(sums[:, n_runs:], 0.0) / CURVATURE
        scores += within @ (gradients / (curvatures + ridges) * (rates / len(here))).astype(np.float32)
    return scores


def settings(*, small: bool) -> list[dict[str, Any]]:
    """The grid of hyperparameters: shapes of the forest, each with rates and with ridges over the noise's deviation."""
    # Trees, their depth, trees that share a sum, columns of a tree (0: all).
    shapes = [(1000, 2, 1, 0), (1000, 4, 1, 0), (1000, 6, 1, 0), (1000, 8, 1, 0), (1000, 5, 1, 1), (1000, 6, 10, 0)]
    return [
        dict(zip(("trees", "depth", "batch", "columns", "rate", "ridge"), (*shape, rate, ridge), strict=True))
        for shape, rate, ridge in itertools.product([(100, 4, 1, 0)] if small else shapes, (0.1, 0.3, 1.0), (3.0, 10.0))
    ]


def outcomes(
    problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
) -> list[list[Outcome]]:
    """Outcomes of each setting, one for each draw, each with trees of its own."""
    codes = problem.codes(PARTS)
    rows, labels = np.vstack([codes.train, codes.test]), problem.split.y_train
    shapes = [Shape(*(one[name] for name in ("trees", "depth", "batch", "columns"))) for one in chosen]
    found: list[list[Outcome]] = [[] for _ in chosen]
    rng = np.random.default_rng(seed)
    for shape in sorted(set(shapes)):
        places = [place for place, other in enumerate(shapes) if other == shape]
        deviation = noise_deviation(shape, epsilon, delta)
        rates, ridges = np.array([[chosen[place]["rate"], chosen[place]["ridge"] * deviation] for place in places]).T
        for _ in range(draws):
            of_trees = np.array([leaves(rows, codes, shape, rng).astype(np.uint16) for _ in range(shape.trees)])
            scores = boosted(of_trees, labels, shape, deviation, rates, ridges, rng)
            for place, outcome in zip(places, problem.outcomes(scores[len(labels) :]), strict=True):
                found[place].append(outcome)
    return found
