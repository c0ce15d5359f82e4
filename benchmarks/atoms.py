"""What atoms gain that a fit finds by private counts under its own charge.

Test errors of `AdditiveClassifier` at its defaults, which finds them where public facts say that it pays, and with
`atoms=False`: add-or-remove-one under (epsilon, 1e-5), or replace-one under a pure budget.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.atoms [--data adult ...] [--draws 5] [--pure] [--epsilons .5 ...]
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.peers.problems import Problem, problem
from benchmarks.public_data import load
from confide import AdditiveClassifier, ApproxDP, PureDP

DELTA = 1e-5


def errors(given: Problem, budget: Any) -> tuple[float, float, int]:
    """The test error without atoms and with them, and the number of atoms, of one fit each."""
    split = given.split
    private: dict[str, Any] = {"neighbours": "replace-one"}
    if not budget.is_pure:
        private = {"neighbours": "add-or-remove-one", "n_rows_bounds": given.n_rows_bounds}
    without, found = (
        AdditiveClassifier(budget, schema=split.schema, atoms=atoms, **private).fit(split.X_train, split.y_train)
        for atoms in (False, "auto")
    )
    wrong = [1.0 - float(model.score(split.X_test, split.y_test)) for model in (without, found)]
    return wrong[0], wrong[1], sum(len(column.atoms) for column in found.schema_.columns if column.is_number)


def main() -> None:
    """Print a line for each data set and budget."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=["adult", "bank", "bank-additional", "kddcup99-all"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--draws", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in asked.data:
        try:
            given = problem(name)
        except KeyError:
            given = Problem(name, load(name))
        for epsilon in asked.epsilons:
            budget = PureDP(epsilon) if asked.pure else ApproxDP(epsilon, DELTA)
            with threadpool_limits(1):
                made = np.array([errors(given, budget) for _ in range(asked.draws)])
            (without, with_atoms, atoms), spread = made.mean(axis=0), made.std(axis=0) / math.sqrt(asked.draws)
            pair = f"without {without:.4f} +- {spread[0]:.4f}  with {with_atoms:.4f} +- {spread[1]:.4f}"
            print(f"{name:16} {epsilon:<6g} {pair}  {atoms:.0f} atoms", flush=True)


if __name__ == "__main__":
    main()
