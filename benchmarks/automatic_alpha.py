"""Which norm of the weights makes the best automatic alpha? Test error on real data sets, over settings and budgets.

A cell is a data set, a setting (currency and neighbours) and a budget. In each cell the error is found at a grid of ridges,
with the noise that the plan has there; all noise draws of a ridge are solved as one batch of problems over the same rows.
A rule names a ridge, l2 = |b| S / B, and its error is read off between the grid's. Rules:

    B = f t^p,   t = n S / |b|,   |b| the noise in the summed objective, S the norm of a row: the largest that its bound
    allows ("largest"), or the usual one that `regularisation.usual_norm` guesses ("usual").

Printed at the end: the mean over cells of a rule's error above the cell's best ridge, in thousandths, and what the floor
costs, which is no smaller ridge than the curvature of the loss asks for under pure privacy.

Run: CONFIDE_DATA_DIR=... python benchmarks/automatic_alpha.py [--draws 24] [--data adult bank] [--seed 0]
     --settings pure approximate add-or-remove      (zcdp too)
     --rows groups      rows as the schema encodes them and the best shape of noise
            ball        the same rows, noise shaped as a ball
            clip        rows clipped to a ball that few rows of the schema would leave, noise shaped as that ball
     --mechanism objective | output
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from public_data import NAMES, load
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from confide.array_types import Array
from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import InsufficientRegularisation
from confide.features.encoder import Encoder
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, Neighbours, PureDP
from confide.privacy.mechanism import Mechanism, Plan, Problem
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.training.alpha import curvature_free_l2, usual_norm

MECHANISMS: dict[str, Mechanism] = {"objective": ObjectivePerturbation(), "output": OutputPerturbation()}
REPLACE, ADD_OR_REMOVE = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
SETTINGS: dict[str, tuple[Neighbours, tuple[float, ...], Callable[[float], Budget]]] = {
    "pure": (REPLACE, EPSILONS, PureDP),
    "approximate": (REPLACE, EPSILONS, lambda epsilon: ApproxDP(epsilon, 1e-6)),
    "add-or-remove": (ADD_OR_REMOVE, EPSILONS, lambda epsilon: ApproxDP(epsilon, 1e-5)),
    "zcdp": (REPLACE, (0.001, 0.005, 0.05, 0.5), ZCDP),
}
BOUNDS = 0.92, 1.23  # on the number of rows, where it is private
CHOSEN = ("usual", 1 / 3, 3.5)
RULES = [(size, 0.0, f) for size, f in (("largest", 24), ("usual", 18))]
RULES += [("largest", 0.25, f) for f in (5, 6, 7)] + [("largest", 1 / 3, f) for f in (3, 4, 5)]
RULES += [("largest", 0.5, f) for f in (1.5, 2, 2.5)] + [("usual", 0.25, f) for f in (4, 4.5, 5, 5.5)]
RULES += [("usual", 1 / 3, f) for f in (2.5, 3, 3.5, 4)] + [("usual", 0.5, f) for f in (1.5, 2, 2.5)]


@dataclass(frozen=True)
class Cell:
    """Test errors of one cell along its ridges, and the public facts that rules use."""

    name: str
    setting: str
    amount: float
    n_rows: int
    sizes: dict[str, float]
    floor: float
    ridges: Array
    noise: Array
    """|b| at each ridge: root mean square of the noise in the sum, for output perturbation of its displacement times l2."""
    errors: Array
    """(ridges, draws)"""
    laws: list[str]

    def noise_at(self, l2: float) -> float:
        return float(np.exp(np.interp(math.log(l2), np.log(self.ridges), np.log(self.noise))))

    def error_at(self, l2: float) -> float:
        return float(np.interp(math.log(l2), np.log(self.ridges), self.errors.mean(axis=1)))

    def best(self) -> float:
        """The least error at or above the floor."""
        above = self.errors.mean(axis=1)[self.ridges >= self.floor]
        return min([self.error_at(self.floor), *above])

    def ridge(self, rule: tuple[str, float, float]) -> float:
        """The ridge of a rule, without the floor. The noise depends on the ridge, a little."""
        (kind, power, factor), l2 = rule, float(np.median(self.ridges))
        size = self.sizes[kind]
        for _ in range(6):
            noise = self.noise_at(l2)
            l2 = noise * size / (factor * (self.n_rows * size / noise) ** power)
        return l2

    def error(self, rule: tuple[str, float, float]) -> float:
        return self.error_at(max(self.floor, self.ridge(rule)))

    def spread(self, rule: tuple[str, float, float]) -> float:
        """Standard error of `error`, at the nearest ridge."""
        nearest = np.abs(np.log(self.ridges / max(self.floor, self.ridge(rule)))).argmin()
        return float(self.errors[nearest].std() / math.sqrt(self.errors.shape[1]))


class Rows:
    """Rows with their intercept and labels; solves many problems over them."""

    def __init__(self, rows: Array, labels: Array) -> None:
        self.source = MemorySource(ArrayBlocks(rows), labels.astype(np.int8))

    def solve(self, l2: float, linear: Array, start: Array) -> Array:
        """Minimisers for k linear terms (k, D): L-BFGS on all at once, in coordinates where one Hessian is the identity."""

        def objective(terms: Array) -> Objective:
            return Objective(self.source, LogisticLoss(), BallBound(math.inf), 0.0, l2, terms)

        root = cholesky(objective(linear[:1]).evaluate(start[:1], order=2).hessian[0], lower=True)
        inverse = solve_triangular(root, np.eye(len(root)), lower=True)
        problems = objective(linear)

        def value_and_gradient(flat: Array) -> tuple[float, Array]:
            state = problems.evaluate(flat.reshape(start.shape) @ inverse, order=1)
            return float(state.value.sum()), (state.gradient @ inverse.T).ravel()

        # A gradient of 1 there is a displacement by one standard error of the weights.
        options = {"maxcor": 12, "gtol": 0.03, "ftol": 0.0, "maxiter": 200}
        result = minimize(value_and_gradient, (start @ root).ravel(), jac=True, method="L-BFGS-B", options=options)
        return result.x.reshape(start.shape) @ inverse


def cells_of(arguments: argparse.Namespace, name: str) -> Iterator[Cell]:
    """All cells of one data set."""
    split = load(name, arguments.seed)
    encoder = Encoder(split.schema)
    train, test = encoder.transform(split.X_train), encoder.transform(split.X_test)
    bound: RowBound = encoder.row_bound
    if arguments.rows == "ball":
        bound = BallBound(encoder.row_bound.l2_norm)
    if arguments.rows == "clip":
        # Two standard deviations above the mean of the squared norm, if numbers are spread evenly over [-1, 1].
        numbers = sum(hasattr(column, "low") for column in split.schema.columns)
        spread = min(numbers, numbers / 3.0 + 2.0 * math.sqrt(numbers * 4.0 / 45.0))
        bound = BallBound(math.sqrt(len(split.schema.columns) - numbers + spread))
        train, test = bound.clip(train), bound.clip(test)
    print(f"{name}: {len(train)} rows, {encoder.n_features} columns in {len(encoder.groups)} groups, majority class errs "
          f"{min(np.mean(split.y_test > 0), np.mean(split.y_test < 0)):.4f}", flush=True)  # fmt: skip
    rows = Rows(np.hstack([train, np.ones((len(train), 1))]), split.y_train)
    test = np.hstack([test, np.ones((len(test), 1))])
    usual = usual_norm(encoder.row_bound if arguments.rows == "ball" else bound, 1.0)
    for setting in arguments.settings:
        neighbours, amounts, budget_of = SETTINGS[setting]
        private = neighbours is ADD_OR_REMOVE
        low, high = (int(share * len(train)) if private else len(train) for share in BOUNDS)
        depth = summation_depth(high, encoder.n_features)
        problem = Problem(
            loss=LogisticLoss(), row_bound=bound, intercept=1.0, n_features=encoder.n_features, n_rows_low=low,
            n_rows_high=high, summation_depth=depth, l2=1.0, neighbours=neighbours,
        )  # fmt: skip
        for amount in amounts:
            plan_at = partial(_plan_at, MECHANISMS[arguments.mechanism], problem, budget_of(amount))
            floor = curvature_free_l2(budget_of(amount), problem.loss_bounds, problem.row_norm, neighbours)
            yield _cell(arguments, name, setting, amount, rows, test, split.y_test, usual, floor, plan_at)


def _plan_at(mechanism: Mechanism, problem: Problem, budget: Budget, l2: float) -> Plan:
    while True:
        try:
            return mechanism.plan(replace(problem, l2=l2), budget)
        except InsufficientRegularisation:
            l2 *= 1.1


def _cell(
    arguments: argparse.Namespace, name: str, setting: str, amount: float, rows: Rows, test: Array, labels: Array,
    usual: float, floor: float, plan_at: Callable[[float], Plan],
) -> Cell:  # fmt: skip
    plan = plan_at(10.0 * floor)
    n_rows, noise = plan.problem.n_rows_low, plan.noise_norm * plan.l2
    middle = noise * usual / (4.0 * (n_rows * usual / noise) ** 0.25)
    wide = 12 if arguments.mechanism == "output" else 7
    ridges, noises, errors, laws = middle * 2.0 ** (np.arange(-6, wide + 1) / 2), [], [], []
    weights = np.zeros((arguments.draws if arguments.mechanism == "objective" else 1, test.shape[1]))
    for l2 in ridges[::-1]:
        plan = plan_at(l2)
        noise = _draws(plan, arguments.draws, arguments.seed + 1)
        if arguments.mechanism == "objective":
            weights = released = rows.solve(plan.l2, noise, weights)
        else:
            weights = rows.solve(plan.l2, np.zeros_like(weights), weights)
            released = weights + noise
        errors.append(np.mean(np.where(test @ released.T > 0, 1, -1) != labels[:, None], axis=0))
        noises.append(plan.noise_norm * plan.l2)
        laws.append(plan.noise.law if plan.noise else "grid")
    sizes = {"largest": plan.problem.row_norm, "usual": usual}
    return Cell(
        name, setting, amount, n_rows, sizes, floor, ridges, np.array(noises[::-1]), np.array(errors[::-1]), laws[::-1]
    )


def _draws(plan: Plan, n_draws: int, seed: int) -> Array:
    """Draws (k, D) of the main noise; the seal is small beside it. A grid's own noise as a Gaussian of its norm."""
    if plan.noise is None:
        normals = np.random.default_rng(seed).standard_normal((n_draws, plan.problem.n_weights))
        return normals * (plan.noise_norm / math.sqrt(plan.problem.n_weights))
    entropy = Entropy.seeded(seed)
    law = entropy.laplace if plan.noise.law == "laplace" else entropy.gaussian
    return law(plan.noise.shape, n_draws, plan.noise.scale)


def main() -> None:
    """Print a line a cell, then the mean excess of each rule."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", nargs="*", default=NAMES)
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=["pure", "approximate", "add-or-remove"])
    parser.add_argument("--rows", choices=("groups", "ball", "clip"), default="groups")
    parser.add_argument("--mechanism", choices=list(MECHANISMS), default="objective")
    arguments = parser.parse_args()
    cells = []
    print(
        "at the ridge of the rule: test error and its standard error, law of the noise; then the best ridge, and the rule's"
    )
    for name in arguments.data:
        for cell in cells_of(arguments, name):
            cells.append(cell)
            best = int(cell.errors.mean(axis=1).argmin())
            law = cell.laws[int(np.abs(np.log(cell.ridges / max(cell.floor, cell.ridge(CHOSEN)))).argmin())]
            print(f"  {cell.setting:13} {cell.amount:<5g} {cell.error(CHOSEN):.4f} +- {cell.spread(CHOSEN):.4f}  {law:8}"
                  f"  best {cell.errors.mean(axis=1)[best]:.4f} at {cell.ridges[best]:8.1f}, rule {cell.ridge(CHOSEN):8.1f},"
                  f" floor {cell.floor:8.1f}", flush=True)  # fmt: skip
    report(cells, arguments.settings, arguments.data)


def report(cells: list[Cell], settings: list[str], names: list[str]) -> None:
    """Mean excess of each rule by setting and by data set, in thousandths, and what the floor does at the chosen rule."""
    print("\nexcess over the best ridge, thousandths: " + ", ".join(settings) + " | " + ", ".join(names) + " | mean")
    best = [cell.best() for cell in cells]
    for rule in RULES:
        excess = [1000.0 * (cell.error(rule) - least) for cell, least in zip(cells, best, strict=True)]

        def mean(key: str, of: str, excess: list[float] = excess) -> str:
            return f"{np.mean([e for e, cell in zip(excess, cells, strict=True) if getattr(cell, key) == of]):5.2f}"

        print(f"  {rule[0]:8} p {rule[1]:.2f} f {rule[2]:4g}  " + " ".join(mean("setting", s) for s in settings) + " | "
              + " ".join(mean("name", name) for name in names) + f" | {np.mean(excess):.3f}")  # fmt: skip
    for setting in settings:
        those = [cell for cell in cells if cell.setting == setting]
        binds = np.mean([cell.ridge(CHOSEN) < cell.floor for cell in those])
        cost = [1000.0 * (cell.error(CHOSEN) - cell.error_at(cell.ridge(CHOSEN))) for cell in those]
        print(f"floor, {setting}: binds in {binds:.0%} of the cells; costs {np.mean(cost):.2f}, from {min(cost):.2f} to "
              f"{max(cost):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
