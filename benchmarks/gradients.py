"""Which mechanism errs least: noise in the objective, the same with centred rows, noisy gradients, or what "auto" takes.

Printed for each data set of benchmarks/peers and budget: the `strength` of the plan with noise in the objective (the sum of
rows of typical norm over the noise, for each weight), and the test errors. Budgets are pairs (epsilon, 1e-5) with
add-or-remove-one, or with --zcdp the rho of concentrated budgets with replace-one. The limits in
`training/plan.py` were chosen on adult, bank, covertype and kddcup99. The other data sets confirm them.

Run: CONFIDE_DATA_DIR=... python benchmarks/gradients.py [--draws 10] [--data adult bank ...] [--budgets .05 .1 .5 1 2 4]
     [--estimator LinearSVC] [--zcdp]
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np

import confide
from benchmarks.peers.problems import HELD_OUT, NAMES, Problem, problem
from confide.training.alpha import strength

_WAYS = {
    "objective": {"mechanism": "objective", "centre": False},
    "objective, centred": {"mechanism": "objective"},
    "gradient": {"mechanism": "gradient"},
    "auto": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--data", nargs="+", default=[*NAMES, *HELD_OUT])
    parser.add_argument("--budgets", nargs="+", type=float, default=[0.05, 0.1, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--estimator", default="LinearSVC")
    parser.add_argument("--zcdp", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", confide.PrivacyWarning)
    print("data", "budget", "strength", *_WAYS, 'what "auto" takes', sep=" | ")
    for name in arguments.data:
        given = problem(name)
        for amount in arguments.budgets:
            models = {way: _model(given, arguments, amount, **changes) for way, changes in _WAYS.items()}
            plan = _plan(models["objective"], given)
            cells = [_errors(model, given, arguments.draws) for model in models.values()]
            taken = _plan(models["auto"], given)
            words = taken.mechanism + (", centred" if taken.centring else "")
            print(name, f"{amount:g}", f"{strength(plan, None):.2g}", *cells, words, sep=" | ", flush=True)


def _model(given: Problem, arguments: argparse.Namespace, amount: float, **changes):
    if arguments.zcdp:
        kind = {"budget": confide.ZCDP(amount)}
    else:
        budget = confide.ApproxDP(amount, 1e-5)
        kind = {"budget": budget, "neighbours": "add-or-remove-one", "n_rows_bounds": given.n_rows_bounds}
    return getattr(confide, arguments.estimator)(schema=given.split.schema, **kind, **changes)


def _plan(model, given: Problem):
    return model.plan() if model.n_rows_bounds else model.plan(len(given.split.y_train))


def _errors(model, given: Problem, n_draws: int) -> str:
    """Mean and standard error of the test error."""
    split = given.split
    fits = (model.fit(split.X_train, split.y_train) for _ in range(n_draws))
    errors = [1.0 - fit.score(split.X_test, split.y_test) for fit in fits]
    return f"{np.mean(errors):.4f} +- {np.std(errors) / math.sqrt(max(1, n_draws - 1)):.4f}"


if __name__ == "__main__":
    main()
