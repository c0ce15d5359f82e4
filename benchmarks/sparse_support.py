"""Which columns count: the support of a private elastic net, beside two published methods, on made-up sparse problems.

    y = x . w + 0.5 z,  x uniform in [-1, 1]^d,  z standard normal,  5 weights of either sign and size 0.5 to 1, the others 0

All methods get the same rows, (epsilon, 1e-6) for replace-one neighbours, |x_j| <= 1, residuals clipped to 1. Ours is
`HuberRegressor(l1_ratio=.5)`, whose alpha, support and weights follow from the budget and public facts. The peers, written
here plainly, are given more:

- Frank-Wolfe: Talwar, Thakurta and Zhang, Nearly Optimal Private LASSO, NeurIPS 2015, algorithm 2, with the exponential
  mechanism in place of noisy maxima and today's account (rho = T epsilon_0^2 / 8), which costs it less than theirs. It is
  given the true L1 norm, the best number of steps of a grid (chosen by the true weights), and how many columns count.
- Votes: Kifer, Smith and Thakurta, Private Convex Empirical Risk Minimization and High-dimensional Regression, COLT 2012,
  section 3.1: sqrt(n) parts of the rows each name as many columns as count (least-angle regression), and the columns with
  the most votes are chosen by the exponential mechanism. It spends the whole budget on the support and is given its size.

F1 is the harmonic mean of the share of the columns found that count and the share of the columns that count that are found.

    python benchmarks/sparse_support.py [--fits 20] [--columns 50 500]
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np
from sklearn.linear_model import lars_path

import confide
from confide.privacy.budgets import concentrated_epsilon

COUNTING, NOISE, DELTA = 5, 0.5, 1e-6
ROWS = {50: (1_000, 3_000, 10_000), 500: (3_000, 10_000)}
EPSILONS = (0.5, 1.0, 4.0)
STEPS = (5, 10, 20, 40, 80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--columns", type=int, nargs="+", default=list(ROWS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| columns | rows | epsilon | ours | its size | ours, 5 largest | ours, pure | Frank-Wolfe, 5 largest | votes, 5 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for d in given.columns:
        for n in ROWS[d]:
            for epsilon in EPSILONS:
                found = np.array([one(n, d, epsilon, seed) for seed in range(given.fits)])
                mean, error = found.mean(axis=0), found.std(axis=0) / math.sqrt(given.fits)
                cells = [f"{m:.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True)]
                cells[1] = f"{mean[1]:.1f}"
                print(f"| {d} | {n:,} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


def one(n: int, d: int, epsilon: float, seed: int) -> list[float]:
    """F1 of all methods on one made-up problem, and the size of our support."""
    rng = np.random.default_rng([n, d, seed])
    X, weights = rng.uniform(-1.0, 1.0, (n, d)), np.zeros(d)
    weights[rng.permutation(d)[:COUNTING]] = rng.choice([-1.0, 1.0], COUNTING) * rng.uniform(0.5, 1.0, COUNTING)
    y, counts = X @ weights + NOISE * rng.normal(size=n), weights != 0.0
    common = {"l1_ratio": 0.5, "target_bound": 4.0, "threshold": 1.0, "fit_intercept": False}
    bounded = common | {"row_norm": 1.1 * math.sqrt(d / 3.0)}
    ours = confide.HuberRegressor(confide.ApproxDP(epsilon, DELTA), **bounded).fit(X, y)
    pure = confide.HuberRegressor(epsilon, **bounded).fit(X, y) if d <= 100 else None
    rho = rho_of(epsilon)
    by_steps = [largest(frank_wolfe(X, y, np.abs(weights).sum(), steps, rho, rng)) for steps in STEPS]
    return [
        f1(ours.support_, counts),
        float(ours.support_.sum()),
        f1(largest(ours.coef_), counts),
        math.nan if pure is None else f1(pure.support_, counts),
        max(f1(support, counts) for support in by_steps),
        f1(voted(X, y, rho, rng), counts),
    ]


def rho_of(epsilon: float) -> float:
    """The largest rho that is (epsilon, delta)-DP."""
    low, high = 0.0, epsilon**2 + epsilon
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if concentrated_epsilon(middle, DELTA) <= epsilon else (low, middle)
    return low


def frank_wolfe(X: np.ndarray, y: np.ndarray, radius: float, steps: int, rho: float, rng: np.random.Generator) -> np.ndarray:
    """Weights (d,) of the private Frank-Wolfe method over |w|_1 <= radius, for Huber's loss with slopes up to 1."""
    n, d = X.shape
    of_step = math.sqrt(8.0 * rho / steps)
    # One row changes the mean slope along a corner by at most 2 radius / n.
    sensitivity = 2.0 * radius / n
    weights = np.zeros(d)
    for step in range(steps):
        gradient = X.T @ np.clip(X @ weights - y, -1.0, 1.0) / n
        scores = -radius * np.concatenate([gradient, -gradient])
        chosen = int(np.argmax(of_step * scores / (2.0 * sensitivity) + rng.gumbel(size=2 * d)))
        weights *= 1.0 - 2.0 / (step + 2.0)
        weights[chosen % d] += 2.0 / (step + 2.0) * (radius if chosen < d else -radius)
    return weights


def voted(X: np.ndarray, y: np.ndarray, rho: float, rng: np.random.Generator) -> np.ndarray:
    """Which columns have the most votes of sqrt(n) parts of the rows, chosen one after another."""
    n, d = X.shape
    votes = np.zeros(d)
    for rows in np.array_split(rng.permutation(n), int(math.sqrt(n))):
        _, active, _ = lars_path(X[rows], y[rows], max_iter=COUNTING)
        votes[list(active)] += 1.0
    of_choice = math.sqrt(8.0 * rho / COUNTING)
    support = np.zeros(d, dtype=bool)
    for _ in range(COUNTING):
        # One row changes the votes of one part, so each number of votes by at most 1.
        scores = np.where(support, -np.inf, of_choice * votes / 2.0 + rng.gumbel(size=d))
        support[int(np.argmax(scores))] = True
    return support


def largest(weights: np.ndarray) -> np.ndarray:
    """Which are the largest weights, as many as count; weights of 0 are none of them."""
    support = np.zeros(len(weights), dtype=bool)
    support[np.argsort(-np.abs(weights))[:COUNTING]] = True
    return support & (weights != 0.0)


def f1(support: np.ndarray, counts: np.ndarray) -> float:
    """The F1 score of a support."""
    return 2.0 * float((support & counts).sum()) / float(support.sum() + counts.sum())


if __name__ == "__main__":
    main()
