"""How much does a public prior help logistic regression, and which ridge suits it? Test error on real data sets.

A prior is the minimiser for the first 300 or 1,000 rows of a random order, as if these were public, or a private release
from the first half at the same budget; the fit is to the other rows. Neighbours replace a row where the prior is a release,
and else add or remove one; delta is 1e-5, and the data sets are those of benchmarks/peers. Each fit has the ridge that is
automatic without a prior, times a factor; all draws of the noise are solved as one batch. Printed for each cell: t of
`balanced_l2`, mean errors of the prior, without it and with it at each factor, and last at the automatic ridge.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.public_prior [--data bank adult ...] [--draws 24] [--epsilons 0.05 0.1 0.5]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import confide
from benchmarks.peers.problems import HELD_OUT, NAMES, Problem, problem
from confide import ApproxDP
from confide.array_types import Array
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.privacy.mechanism import Plan
from confide.privacy.noise import Entropy
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.sampled import Metric
from confide.training.alpha import RATIO_WITHOUT_SHARE, SHARE_WITH_PRIOR, typical_norm

FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0)
KINDS = ("release", "300", "1000")


@dataclass(frozen=True)
class Rows:
    """Rows with their intercept and labels; solves many problems over them."""

    rows: Array
    labels: Array

    def minimisers(self, l2: float, linear: Array, start: Array) -> Array:
        """(k, D) minimisers for k linear terms, by one method for all of them in the metric of one Hessian."""
        source = MemorySource(ArrayBlocks(self.rows), self.labels.astype(np.int8))
        objective = Objective(source, LogisticLoss(), BallBound(math.inf), 0.0, l2, linear)
        middle = replace(objective, linear=linear.mean(axis=0, keepdims=True))
        metric = Metric.of(middle.evaluate(start.mean(axis=0, keepdims=True), order=2).hessian[0])
        return LimitedMemory(200, metric=metric).solve(objective, start, 1e-6 * len(self.rows)).weights


@dataclass(frozen=True)
class Cell:
    """One line of the table: test errors of every draw, by the factor of the ridge, of the prior and without it."""

    name: str
    epsilon: float
    kind: str
    ratio: float
    errors: dict[str, Array]

    @property
    def automatic(self) -> float:
        """The mean error at the factor of the automatic ridge, read off between the factors that were tried."""
        factor = 1.0 / min(1.0, max(SHARE_WITH_PRIOR, math.sqrt(self.ratio / RATIO_WITHOUT_SHARE)))
        return float(np.interp(factor, FACTORS, [self.errors[f"{each:g}"].mean() for each in FACTORS]))

    def __str__(self) -> str:
        numbers = "  ".join(f"{name} {values.mean():.4f}" for name, values in self.errors.items())
        gain = self.errors["2"] - self.errors["1"]
        error = gain.std() / math.sqrt(len(gain))
        start = f"{self.name:16s} {self.epsilon:5g} {self.kind:>8s}  t {self.ratio:6.1f}"
        return f"{start}  {numbers}  auto {self.automatic:.4f}  (2 less 1: {gain.mean():+.4f} +- {error:.4f})"


def plan_of(own: Problem, epsilon: float, n_rows: int | None) -> Plan:
    """The plan without a prior: for a public number of rows, or for bounds on it."""
    private = {} if n_rows else {"neighbours": "add-or-remove-one", "n_rows_bounds": own.n_rows_bounds}
    schema = own.split.schema
    return confide.LogisticRegression(ApproxDP(epsilon, 1e-5), schema=schema, classes=[-1, 1], **private).plan(n_rows)


def cells_of(name: str, epsilons: list[float], draws: int) -> Iterator[Cell]:
    """All cells of one data set."""
    own = problem(name)
    train, test = (np.column_stack([rows, np.ones(len(rows))]) for rows in (own.train, own.test))
    order = np.random.default_rng(0).permutation(len(train))
    whole = Rows(train[order], own.split.y_train[order])
    width = train.shape[1]

    def errors(weights: Array) -> Array:
        return ((test @ weights.T > 0.0) != (own.split.y_test[:, None] > 0)).mean(axis=0)

    for epsilon in epsilons:
        for kind in KINDS:
            first = len(train) // 2 if kind == "release" else int(kind)
            plan = plan_of(own, epsilon, first if kind == "release" else None)
            before, after = (Rows(whole.rows[part], whole.labels[part]) for part in (slice(0, first), slice(first, None)))
            nothing = np.zeros((draws, width))
            noises = [
                np.concatenate([plan.noise.draw(Entropy.seeded(2 * draw + which)) for draw in range(draws)])  # type: ignore[union-attr]
                for which in (0, 1)
            ]
            if kind == "release":
                prior = before.minimisers(plan.l2, noises[0], nothing)
            else:
                prior = np.repeat(before.minimisers(1.0, nothing[:1], nothing[:1]), draws, axis=0)
            found = {"prior": errors(prior), "none": errors(after.minimisers(plan.l2, noises[1], nothing))}
            for factor in FACTORS:
                l2 = factor * plan.l2
                found[f"{factor:g}"] = errors(after.minimisers(l2, noises[1] - l2 * prior, prior.copy()))
            typical = typical_norm(plan.problem, None)
            yield Cell(name, epsilon, kind, plan.problem.n_rows_low * typical / (plan.noise_norm * plan.l2), found)


def main() -> None:
    """Print all cells, and what the automatic ridge gains over that without a prior."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ["bank", "adult", "covertype", "bank-additional", "nltcs"]
    parser.add_argument("--data", nargs="+", default=default, choices=NAMES + HELD_OUT)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.05, 0.1, 0.5])
    parser.add_argument("--draws", type=int, default=24)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = []
    for name in arguments.data:
        for cell in cells_of(name, arguments.epsilons, arguments.draws):
            cells.append(cell)
            print(cell, flush=True)
    for label, chosen in (("t below 60", [c for c in cells if c.ratio < 60.0]), ("all cells", cells)):
        if chosen:
            gain = np.mean([cell.automatic - cell.errors["1"].mean() for cell in chosen])
            print(f"{label}: the automatic ridge changes the error by {gain:+.5f} in the mean of {len(chosen)} cells")


if __name__ == "__main__":
    main()
