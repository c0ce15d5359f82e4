"""What finite precision costs: the seal beside the main noise, at the automatic alpha, from public facts alone.

For each number of rows and of features, pure and Gaussian: the automatic alpha, the root mean square of the seal over that
of the main noise (both as displacements of weights), and what the seal takes of the budget. A second table gives the least
alpha at which a plan exists at all, and its seal: below it double precision cannot certify the minimiser, and fits are
refused before any row is read.

Run: python benchmarks/seal_table.py [--epsilon 1]
"""

from __future__ import annotations

import argparse
import math

from confide.errors import ParameterError
from confide.estimators.logistic import LogisticRegression
from confide.privacy.budgets import ApproxDP, Budget, PureDP
from confide.privacy.mechanism import Plan

ROWS = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
FEATURES = (10, 100, 1000)


def plan(budget: Budget, n_rows: int, n_features: int, alpha: float | str) -> Plan | None:
    """The plan, or None where there is none."""
    try:
        return LogisticRegression(budget, alpha=alpha).plan(n_rows, n_features)
    except ParameterError:
        return None


def described(found: Plan | None) -> str:
    """Alpha, seal over main noise, share of the budget."""
    if found is None:
        return f"{'cannot be had':>32}"
    return f"{found.alpha:10.2e}  {found.seal_norm / found.noise_norm:9.1e}  {found.seal_share:9.2e}"


def least_alpha(budget: Budget, n_rows: int, n_features: int) -> float:
    """The least alpha with a plan whose own alpha was not raised for the proof, by bisection of its logarithm."""
    low, high = 1e-16, 1e6
    while high > 1.02 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if plan(budget, n_rows, n_features, middle) else (middle, high)
    return high


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=1.0)
    epsilon = parser.parse_args().epsilon
    budgets = {"pure": PureDP(epsilon), "Gaussian, delta 1e-6": ApproxDP(epsilon, 1e-6)}
    for title, alpha_of in (("automatic alpha", lambda *_: "auto"), ("least alpha with a plan", least_alpha)):
        print(f"{title}; epsilon {epsilon:g}")
        print(f"{'rows':>11} {'features':>8}" + "".join(f"  {name:^32}" for name in budgets))
        print(" " * 20 + "".join(f"  {'alpha':>10}  {'seal/main':>9}  {'cost':>9}" for _ in budgets))
        for n_rows in ROWS:
            for n_features in FEATURES:
                cells = [described(plan(b, n_rows, n_features, alpha_of(b, n_rows, n_features))) for b in budgets.values()]
                print(f"{n_rows:11,} {n_features:8}" + "".join(f"  {cell}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
