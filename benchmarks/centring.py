"""When does it pay to find the middle of the rows? Test error with and without a centre, over budgets, data sets and knots.

Printed for each data set of benchmarks/peers, straight lines or six knots, and budget: the noise of the plan without a
centre, as a share of what all rows together can pull; the error without a centre; and the error with one, for shares of the
budget. Rows and neighbours are those of benchmarks/peers (add-or-remove-one, delta 1e-5). With --counts no model is
fitted: it prints how far the centre of made-up rows lies from their mean, for several constants that count rows.

Run: CONFIDE_DATA_DIR=... python benchmarks/centring.py [--draws 8] [--data adult bank covertype] [--budgets .05 .1 .5 1]
     [--shares .02] [--estimator LinearSVC] [--knots] [--replace-one] [--zcdp]     (budgets are then rho)
     python benchmarks/centring.py --counts
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np

import confide
from benchmarks.peers.problems import HELD_OUT, NAMES, Problem, problem
from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.privacy import centring
from confide.privacy.budgets import ApproxDP, Budget, Neighbours
from confide.privacy.mechanism import Problem as Facts
from confide.privacy.noise import Entropy
from confide.training import plan


def main() -> None:
    arguments = _arguments()
    warnings.simplefilter("ignore", confide.PrivacyWarning)
    if arguments.counts:
        _print_counts()
        return
    for name in arguments.data:
        given = problem(name).on_knots if arguments.knots else problem(name)
        for amount in arguments.budgets:
            budget = confide.ZCDP(amount) if arguments.zcdp else ApproxDP(amount, 1e-5)
            noise = _noise_in_rows(_model(given, arguments, budget, False))
            cells = [f"{share:g}: {_errors(given, arguments, budget, share)}" for share in (0.0, *arguments.shares)]
            print(name, "knots" if arguments.knots else "lines", f"{amount:g}", f"noise {noise:.4f}", *cells, sep=" | ")


def _errors(given: Problem, arguments: argparse.Namespace, budget: Budget, share: float) -> str:
    """Mean and standard error of the test error. A share above 0 is taken whatever the rule says."""
    plan._SHARE_OF_CENTRE, plan._LEAST_NOISE, plan.USUAL_RADIUS = share, 0.0, 0.0  # type: ignore[attr-defined]
    plan._remembered.cache_clear()
    errors = []
    for seed in range(arguments.draws):
        model = _model(given, arguments, budget, share > 0.0, seed).fit(given.split.X_train, given.split.y_train)
        errors.append(1.0 - model.score(given.split.X_test, given.split.y_test))
    return f"{np.mean(errors):.4f} +- {np.std(errors) / math.sqrt(arguments.draws):.4f}"


def _model(given: Problem, arguments: argparse.Namespace, budget: Budget, centres: bool, seed: int = 0):
    neighbours = {"n_rows_bounds": given.n_rows_bounds, "neighbours": "add-or-remove-one"}
    return getattr(confide, arguments.estimator)(
        budget,
        schema=given.split.schema,
        centre="auto" if centres else False,
        random_state=seed,
        **({} if arguments.replace_one else neighbours),
    )


def _noise_in_rows(model) -> float:
    made = model.plan(None if model.n_rows_bounds else 42_000)
    longest = made.problem.loss.constants.lipschitz * made.problem.row_norm * made.problem.n_rows_low
    return made.noise_norm * made.l2 / longest


def _print_counts() -> None:
    """Root mean square distance of the centre from the mean of the rows, times 1,000."""
    for width in (10, 50, 200):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(20_000, width)) * 0.5 / math.sqrt(width)
        rows = BallBound(1.0).clip(rows + 0.75 / math.sqrt(width))
        facts = Facts(
            loss=LogisticLoss(),
            row_bound=BallBound(1.0),
            intercept=1.0,
            n_features=width,
            n_rows_low=10_000,
            n_rows_high=40_000,
            summation_depth=summation_depth(40_000, width),
            l2=1000.0,
            neighbours=Neighbours.ADD_OR_REMOVE_ONE,
        )
        source = MemorySource(ArrayBlocks(rows), np.ones(len(rows), np.int8))
        cells = []
        for scale in (0.15, 0.3, 0.6, 1.0):
            centring._COUNT_SCALE = scale
            made = centring.centring_plan(facts, ApproxDP(0.5, 1e-5), 0.02)
            exact = source.sum_over_rows(made.query.row_sum, np.zeros((1, made.lattice.dimension))).gradient
            entropy = Entropy.seeded(0)
            found = [centring.centred_by(made, made.lattice.release(exact, entropy)[0]).centre for _ in range(200)]
            distances = np.linalg.norm(np.array(found) - rows.mean(axis=0), axis=1)
            cells.append(f"{scale:g}: {1000.0 * math.sqrt(np.mean(distances**2)):.1f}")
        print(f"{width} columns", *cells, sep=" | ")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--data", nargs="+", choices=(*NAMES, *HELD_OUT), default=["adult", "bank", "covertype"])
    parser.add_argument("--budgets", nargs="+", type=float, default=[0.05, 0.1, 0.5, 1.0])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.02])
    parser.add_argument("--estimator", default="LinearSVC")
    for flag in ("knots", "replace-one", "zcdp", "counts"):
        parser.add_argument(f"--{flag}", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
