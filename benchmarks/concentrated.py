"""How accurate are models under concentrated privacy, and with curves? Test error at the defaults, and whether it is met.

Two tables of cells, each with a largest error that it should have:

- "concentrated": budgets in rho, neighbours replace a row, straight lines of `LinearSVC`; beside them `AdditiveClassifier`.
- "curves": (epsilon, 1e-5), neighbours add or remove a row, `AdditiveClassifier`.

Rows are those of benchmarks/peers. Each cell is the mean over so many fits, with its standard error and the mechanism.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.concentrated [--draws 10] [--data adult bank covertype]
     [--tables concentrated curves] [--models LinearSVC AdditiveClassifier]
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np

import confide
from benchmarks.peers.problems import Problem, problem

AIMS: dict[str, dict[str, dict[float, float]]] = {
    "concentrated": {
        "adult": {0.001: 0.158, 0.005: 0.1565, 0.05: 0.1555},
        "bank": {0.001: 0.107, 0.005: 0.102, 0.05: 0.0995},
        "covertype": {0.001: 0.258, 0.005: 0.247, 0.05: 0.243},
    },
    "curves": {
        "adult": {0.1: 0.150, 0.5: 0.1435, 1.0: 0.1425},
        "bank": {0.1: 0.1045, 0.5: 0.100, 1.0: 0.099},
        "covertype": {0.1: 0.237, 0.5: 0.2255, 1.0: 0.2235},
    },
}
"""For each table and data set: the largest error that a budget should have."""
MODELS = {"concentrated": ("LinearSVC", "AdditiveClassifier"), "curves": ("AdditiveClassifier",)}


def _estimator(given: Problem, table: str, name: str, amount: float) -> Any:
    facts: dict[str, Any] = {"schema": given.split.schema}
    if table == "concentrated":
        return getattr(confide, name)(confide.ZCDP(amount), **facts)
    facts |= {"neighbours": "add-or-remove-one", "n_rows_bounds": given.n_rows_bounds}
    return getattr(confide, name)(confide.ApproxDP(amount, 1e-5), **facts)


def _line(given: Problem, table: str, name: str, amount: float, draws: int) -> str:
    model, split = _estimator(given, table, name, amount), given.split
    fits = (model.fit(split.X_train, split.y_train) for _ in range(draws))
    errors = [1.0 - fit.score(split.X_test, split.y_test) for fit in fits]
    error = np.std(errors, ddof=1) / math.sqrt(draws) if draws > 1 else math.nan
    mechanism = model.plan(None if table == "curves" else len(split.y_train)).mechanism
    aim = AIMS[table][given.name][amount]
    verdict = "met" if np.mean(errors) <= aim else f"missed by {np.mean(errors) - aim:.4f}"
    cell = f"{table:12} {given.name:10} {amount:<6g} {name:18}"
    return f"{cell} {np.mean(errors):.4f} +- {error:.4f}  {mechanism:9} {aim:.4f} {verdict}"


def main() -> None:
    """Print one line for each cell."""
    warnings.simplefilter("ignore", confide.PrivacyWarning)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=AIMS["curves"], default=list(AIMS["curves"]))
    parser.add_argument("--tables", nargs="+", choices=AIMS, default=list(AIMS))
    parser.add_argument("--models", nargs="+", choices=MODELS["concentrated"], default=list(MODELS["concentrated"]))
    parser.add_argument("--draws", type=int, default=10)
    arguments = parser.parse_args()
    for name in arguments.data:
        given = problem(name)
        for table in arguments.tables:
            for amount in AIMS[table][name]:
                for model in MODELS[table]:
                    if model in arguments.models:
                        print(_line(given, table, model, amount, arguments.draws), flush=True)


if __name__ == "__main__":
    main()
