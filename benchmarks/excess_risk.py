"""How far are the bounds on the loss on new rows from the losses of fits? For populations whose loss is known exactly.

A population is a finite list of rows and labels with their probabilities, so its loss is a sum and the best weights of a
norm are found by Newton's method. Rows are drawn from it with replacement, the library fits them at the alpha that makes the
bound least, and the excess of the released weights over the best weights of the norm, or over the best of all weights if
these are shorter, is computed. Printed for each cell: the bound, the largest excess of all fits, its quantile at 1 -
failure, and the bound over this quantile.

- "sphere": rows on the unit sphere, labels of a logistic model whose weights have the norm to compare with
- "flipped": the same rows, and one label in five is flipped, so that the best of all weights are shorter
- "rare": most rows are 0, the others are along one axis: the ridge costs the most where rows say least

Run: python benchmarks/excess_risk.py [--draws 40] [--rows 1000 10000 100000] [--columns 2 10 50] [--epsilons .1 1]
     [--failures .2 .05] [--norms 1 5] [--populations sphere flipped rare]
     python benchmarks/excess_risk.py --kernel       random features against functions in the space of a kernel
     python benchmarks/excess_risk.py --table        sample sizes of the mechanisms, no fits
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

import confide
from confide.features.fourier import FourierMap
from confide.planning import (
    excess_risk_bound,
    kernel_excess_risk_bound,
    least_excess_risk,
    sample_size,
)

N_ATOMS = 4000
MECHANISMS = ("objective", "output")
POPULATIONS = ("sphere", "flipped", "rare")


@dataclass(frozen=True)
class Population:
    """Rows (m, d), the probability of each, and that of its label 1."""

    rows: np.ndarray
    mass: np.ndarray
    positive: np.ndarray

    @classmethod
    def named(cls, name: str, n_columns: int, norm: float, n_rows: int = 10_000, seed: int = 0) -> Population:
        rng = np.random.default_rng(seed)
        if name == "rare":
            # As many rows say something as make the slope of the ridge about that of the loss at half the norm.
            share = min(1.0, 8.0 / math.sqrt(n_rows))
            rows = np.vstack([np.eye(1, n_columns), np.zeros((1, n_columns))])
            return cls(rows, np.array([share, 1.0 - share]), np.array([expit(norm), 0.5]))
        rows = rng.normal(size=(N_ATOMS, n_columns))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        weights = np.ones(n_columns) / math.sqrt(n_columns)
        chance = expit(norm * rows @ weights)
        return cls(rows, np.full(N_ATOMS, 1.0 / N_ATOMS), 0.8 * chance + 0.1 if name == "flipped" else chance)

    def risk(self, weights: np.ndarray) -> float:
        """The mean logistic loss of a new row."""
        scores = self.rows @ weights
        return float(self.mass @ (np.logaddexp(0.0, scores) - self.positive * scores))

    def best(self, norm: float) -> np.ndarray:
        """The weights of least loss with at most this norm: those of the ridge whose weights are that long, by bisection."""
        free = self._minimiser(1e-12)
        if np.linalg.norm(free) <= norm:
            return free
        low, high = 1e-12, 1.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if np.linalg.norm(self._minimiser(middle)) > norm else (low, middle)
        return self._minimiser(high)

    def _minimiser(self, ridge: float) -> np.ndarray:
        weights = np.zeros(self.rows.shape[1])
        for _ in range(60):
            chance = expit(self.rows @ weights)
            gradient = self.rows.T @ (self.mass * (chance - self.positive)) + ridge * weights
            hessian = (self.rows.T * (self.mass * chance * (1.0 - chance))) @ self.rows + ridge * np.eye(len(weights))
            step = np.linalg.solve(hessian, gradient)
            weights -= step
            if np.abs(step).max() < 1e-11:
                break
        return weights

    def draw(self, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Independent rows and labels."""
        index = rng.choice(len(self.mass), size=n_rows, p=self.mass)
        return self.rows[index], (rng.random(n_rows) < self.positive[index]).astype(int)


def excesses(population: Population, plan, norm: float, n_draws: int, seed: int = 0) -> np.ndarray:
    """(n_draws,) excesses of fits by a plan's mechanism, budget and alpha."""
    n_rows = plan.problem.n_rows_low
    least, found = population.risk(population.best(norm)), []
    for draw in range(n_draws):
        rows, labels = population.draw(n_rows, np.random.default_rng([seed, draw]))
        model = confide.LogisticRegression(
            plan.budget, alpha=plan.problem.l2 / n_rows, mechanism=plan.mechanism, centre=False, fit_intercept=False,
            classes=[0, 1], row_norm=1.0, random_state=seed + draw,
        )  # fmt: skip
        found.append(population.risk(model.fit(rows, labels).coef_[0]) - least)
    return np.array(found)


def cell(name, n_rows, n_columns, budget, mechanism, failure, norm, n_draws):
    """The bound, and the excesses of fits."""
    model = confide.LogisticRegression(budget, mechanism=mechanism, fit_intercept=False, row_norm=1.0)
    population = Population.named(name, n_columns, norm, n_rows)
    norm = min(norm, float(np.linalg.norm(population.best(math.inf))))
    plan, bound = least_excess_risk(model, n_rows, n_columns, reference_norm=norm, failure=failure)
    return bound, excesses(population, plan, norm, n_draws)


def main() -> None:
    arguments = _arguments()
    warnings.simplefilter("ignore", confide.PrivacyWarning)
    if arguments.table:
        _print_sample_sizes()
    elif arguments.kernel:
        _print_kernels(arguments)
    else:
        _print_cells(arguments)


def _print_cells(arguments: argparse.Namespace) -> None:
    print("population  mechanism  law       rows  columns  epsilon  failure  norm   bound   largest  quantile  ratio")
    worst, beyond = 0.0, 0
    grid = itertools.product(
        arguments.populations, MECHANISMS, ("pure", "gaussian"), arguments.rows, arguments.columns, arguments.epsilons,
        arguments.failures, arguments.norms,
    )  # fmt: skip
    for name, mechanism, law, n_rows, n_columns, epsilon, failure, norm in grid:
        budget = confide.PureDP(epsilon) if law == "pure" else confide.ZCDP(epsilon**2 / 25.0)
        try:
            bound, found = cell(name, n_rows, n_columns, budget, mechanism, failure, norm, arguments.draws)
        except confide.ParameterError as error:
            print(f"{name:11} {mechanism:10} {law:8} {n_rows:6} {n_columns:8} {epsilon:8g}  {error}")
            continue
        quantile = float(np.quantile(found, 1.0 - failure))
        worst, beyond = max(worst, bound.excess_risk / quantile), beyond + int((found > bound.excess_risk).sum())
        print(
            f"{name:11} {mechanism:10} {law:8} {n_rows:6} {n_columns:8} {epsilon:8g} {failure:8g} "
            f"{bound.reference_norm:5.3g} "
            f"{bound.excess_risk:8.4f} {found.max():8.5f} {quantile:9.5f} {bound.excess_risk / quantile:6.1f}",
            flush=True,
        )
    print(f"fits beyond their bound: {beyond}; the largest ratio: {worst:.1f}")


def _print_sample_sizes() -> None:
    """The contrast of the mechanisms: rows that suffice for the weights of norm 1 and an excess."""
    print("columns  epsilon  excess   objective, pure   output, pure   objective, zCDP   output, zCDP   no noise")
    for excess, epsilon, n_columns in itertools.product((0.1, 0.01), (1.0, 0.01), (10, 100, 1000)):
        sizes = []
        for budget, mechanism in itertools.product((confide.PureDP(epsilon), confide.ZCDP(epsilon**2 / 25.0)), MECHANISMS):
            model = confide.LogisticRegression(budget, mechanism=mechanism, fit_intercept=False)
            sizes.append(sample_size(model, n_columns, excess=excess, by="excess_risk_bound").n_rows)
        none = confide.LogisticRegression(1e6, mechanism="objective", fit_intercept=False)
        sizes.append(sample_size(none, n_columns, excess=excess, by="excess_risk_bound").n_rows)
        print(f"{n_columns:7} {epsilon:8g} {excess:7g} " + " ".join(f"{size:>16,}" for size in sizes), flush=True)


def _print_kernels(arguments: argparse.Namespace) -> None:
    """Random features against functions of the space of a Gaussian kernel."""
    print("rows  pairs  epsilon  bound   largest excess  ratio to the quantile")
    for n_rows, n_pairs, epsilon in itertools.product(arguments.rows, (50, 500), arguments.epsilons):
        bound, found = kernel_cell(n_rows, n_pairs, epsilon, 0.05, arguments.draws)
        ratio = bound.excess_risk / float(np.quantile(found, 0.95))
        print(f"{n_rows:6} {n_pairs:6} {epsilon:8g} {bound.excess_risk:8.4f} {found.max():8.5f} {ratio:6.1f}", flush=True)


def kernel_cell(n_rows, n_pairs, epsilon, failure, n_draws, norm=3.0, kernel="rbf"):
    """The bound over functions of this norm in the space of a kernel, and excesses over one of them.

    Each with its own map.
    """
    rng = np.random.default_rng(7)
    inputs, centres = rng.uniform(-1.0, 1.0, size=(N_ATOMS, 2)), np.array([[0.5, 0.0], [-0.5, 0.3]])
    signs = np.array([1.0, -1.0])

    def gram(a, b):
        apart = a[:, None] - b[None]
        return np.exp(-0.5 * (apart**2).sum(-1)) if kernel == "rbf" else np.exp(-np.abs(apart).sum(-1))

    scores = gram(inputs, centres) @ signs
    scores *= norm / math.sqrt(signs @ gram(centres, centres) @ signs)
    chance = expit(scores)
    least = float(np.mean(np.logaddexp(0.0, scores) - chance * scores))
    model = confide.LogisticRegression(epsilon, mechanism="objective", fit_intercept=False, row_norm=1.0)
    plan, _ = least_excess_risk(model, n_rows, 2 * n_pairs, reference_norm=norm, failure=failure)
    bound = kernel_excess_risk_bound(plan, n_pairs, kernel_norm=norm, failure=failure)
    found = []
    for draw in range(n_draws):
        rows = FourierMap(2, 2 * n_pairs, kernel=kernel, seed=draw).transform(inputs)
        population = Population(rows, np.full(N_ATOMS, 1.0 / N_ATOMS), chance)
        x, y = population.draw(n_rows, np.random.default_rng([1, draw]))
        fit = confide.LogisticRegression(
            epsilon, alpha=plan.problem.l2 / n_rows, mechanism="objective", centre=False, fit_intercept=False,
            classes=[0, 1], row_norm=1.0, random_state=draw,
        )  # fmt: skip
        found.append(population.risk(fit.fit(x, y).coef_[0]) - least)
    return bound, np.array(found)


def bound_at(n_rows, n_columns, alpha, **options):
    """The bound at a given alpha, pure and in the objective."""
    model = confide.LogisticRegression(1.0, alpha=alpha, mechanism="objective", centre=False, fit_intercept=False)
    return excess_risk_bound(model.plan(n_rows, n_columns), **options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 10, 50])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--failures", type=float, nargs="+", default=[0.2, 0.05])
    parser.add_argument("--norms", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--populations", nargs="+", default=list(POPULATIONS), choices=POPULATIONS)
    parser.add_argument("--kernel", action="store_true")
    parser.add_argument("--table", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
