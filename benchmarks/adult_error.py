"""Test error on Adult, published split, shipped schema, automatic alpha: mean over noise draws, beside the targets.

Run: python benchmarks/adult_error.py [--draws 20]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import confide

TARGETS = {
    "pure": {0.1: 0.1970, 0.5: 0.1605, 1.0: 0.1560, 2.0: 0.1535},
    "approximate": {0.1: 0.1760, 0.5: 0.1570, 1.0: 0.1547, 2.0: 0.1533},
    "add-or-remove": {0.1: 0.1630, 0.5: 0.1542, 1.0: 0.1530},
}
SETTINGS: dict[str, tuple[Callable[[float], Any], dict[str, Any]]] = {
    "pure": (confide.PureDP, {}),
    "approximate": (lambda epsilon: confide.ApproxDP(epsilon, 1e-6), {}),
    "add-or-remove": (
        lambda epsilon: confide.ApproxDP(epsilon, 1e-5),
        {"neighbours": "add-or-remove-one", "n_rows_bounds": (30_000, 40_000)},
    ),
}


def main() -> None:
    """Print one line a setting and epsilon."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20)
    draws = parser.parse_args().draws
    adult = confide.datasets.load_adult()

    def line(budget: Any, draws: int, parameters: dict[str, Any]) -> str:
        errors = []
        for _ in range(draws):
            model = confide.LogisticRegression(budget, schema=adult.schema, **parameters)
            model.fit(adult.X_train, adult.y_train)
            errors.append(1.0 - model.score(adult.X_test, adult.y_test))
        spread = np.std(errors, ddof=1) / math.sqrt(draws) if draws > 1 else 0.0
        return f"test error {np.mean(errors):.4f} +- {spread:.4f}  alpha {model.alpha_:<8.3g}"

    for setting, targets in TARGETS.items():
        budget_of, parameters = SETTINGS[setting]
        for epsilon, target in targets.items():
            text = line(budget_of(epsilon), draws, parameters)
            print(f"{setting:13}  epsilon {epsilon:<4g}  {text}  target {target:.4f}", flush=True)
    print(f"{'not private':13}  epsilon inf   {line(math.inf, 1, {})}")


if __name__ == "__main__":
    main()
