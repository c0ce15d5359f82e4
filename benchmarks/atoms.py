"""What atoms that were found by private counts gain, where the counts are paid from the budget of the fit.

Test errors of `AdditiveClassifier` with and without atoms. "charge" is the fit at its defaults, which finds them under its
one charge, beside one with `atoms=False`. The others have `private_atoms` before the fit: under a concentrated budget a
tenth of rho pays for the counts; under (epsilon, delta) both are charged to a ledger that adds up Rényi divergences; "ideal"
gives both what they could cost if Gaussian noise were added up exactly, in one charge; a pure budget pays 15% of epsilon.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.atoms [--data adult ...] [--draws 5] [--currency rho ...] [--amounts .05 ...]
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np
from scipy.optimize import brentq
from threadpoolctl import threadpool_limits

from benchmarks.peers.problems import Problem, problem
from benchmarks.public_data import load
from confide import ZCDP, AdditiveClassifier, ApproxDP, Ledger, private_atoms
from confide.errors import BudgetExceeded
from confide.privacy.gaussian import gaussian_delta, largest_mu

DELTA = 1e-5
AMOUNTS = {
    "charge": (0.1, 0.5, 1.0, 4.0),
    "rho": (0.005, 0.05, 0.5),
    "ledger": (0.5, 1.0, 4.0),
    "ideal": (0.1, 0.5, 1.0, 4.0),
    "pure": (1.0, 2.0, 4.0),
}
SHARE, PURE_SHARE = 0.1, 0.15
STEPS = (1.0, 0.95, 0.91, 0.89, 0.87, 0.85, 0.8, 0.7)
"""What the fit asks a ledger for, as shares of what exact sums of Gaussian noise would leave it."""


def epsilon_of(mu: float) -> float:
    """The epsilon of Gaussian noise of this shift."""
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, mu) - DELTA, 1e-9, 200.0))


def parts(currency: str, amount: float) -> tuple[Any, Any, list[Any]]:
    """The whole budget, that of the counts, and those that the fit asks for, the largest first."""
    if currency == "rho":
        return ZCDP(amount), ZCDP(SHARE * amount), [ZCDP((1.0 - SHARE) * amount)]
    if currency == "pure":
        return amount, PURE_SHARE * amount, [(1.0 - PURE_SHARE) * amount]
    mu = largest_mu(amount, DELTA)
    left = epsilon_of(math.sqrt(1.0 - SHARE) * mu)
    steps = STEPS if currency == "ledger" else STEPS[:1]
    of_counts = ApproxDP(epsilon_of(math.sqrt(SHARE) * mu), DELTA)
    return ApproxDP(amount, DELTA), of_counts, [ApproxDP(step * left, DELTA) for step in steps]


def errors(given: Problem, currency: str, amount: float) -> tuple[float, float, int]:
    """The test error without atoms and with them, and the number of atoms, of one fit each."""
    split = given.split
    private: dict[str, Any] = {"neighbours": "replace-one" if currency == "pure" else "add-or-remove-one"}
    rows = {} if currency == "pure" else {"n_rows_bounds": given.n_rows_bounds}
    whole, of_counts, left = parts(currency, amount)

    def model_of(schema: Any, budget: Any, ledger: Any = None, atoms: Any = False) -> Any:
        model = AdditiveClassifier(budget, schema=schema, ledger=ledger, atoms=atoms, **private, **rows)
        return model.fit(split.X_train, split.y_train)

    def error_of(*given: Any) -> float:
        return 1.0 - float(model_of(*given).score(split.X_test, split.y_test))

    if currency == "charge":
        model = model_of(split.schema, whole, None, "auto")
        n_atoms = sum(len(column.atoms) for column in model.schema_.columns if column.is_number)
        return error_of(split.schema, whole), 1.0 - float(model.score(split.X_test, split.y_test)), n_atoms

    ledger = Ledger(limit=whole, accounting="renyi", **private) if currency == "ledger" else None
    found = private_atoms(split.X_train, split.schema, budget=of_counts, ledger=ledger, **private)
    with_atoms = math.nan
    for budget in left:
        try:
            with_atoms = error_of(found.schema, budget, ledger)
        except BudgetExceeded:
            continue
        break
    return error_of(split.schema, whole), with_atoms, sum(len(column.atoms) for column in found.columns)


def main() -> None:
    """Print a line for each data set and budget."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=["adult", "bank", "bank-additional", "kddcup99-all"])
    parser.add_argument("--currency", nargs="+", default=["charge", "rho", "ledger"], choices=AMOUNTS)
    parser.add_argument("--amounts", nargs="+", type=float)
    parser.add_argument("--draws", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in asked.data:
        try:
            given = problem(name)
        except KeyError:
            given = Problem(name, load(name))
        for currency in asked.currency:
            for amount in asked.amounts or AMOUNTS[currency]:
                with threadpool_limits(1):
                    made = np.array([errors(given, currency, amount) for _ in range(asked.draws)])
                (without, with_atoms, atoms), spread = made.mean(axis=0), made.std(axis=0) / math.sqrt(asked.draws)
                pair = f"without {without:.4f} +- {spread[0]:.4f}  with {with_atoms:.4f} +- {spread[1]:.4f}"
                print(f"{name:16} {currency:6} {amount:<6g} {pair}  {atoms:.0f} atoms", flush=True)


if __name__ == "__main__":
    main()
