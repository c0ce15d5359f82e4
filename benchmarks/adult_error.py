"""Test error on Adult, published split, shipped schema, automatic alpha: mean over noise draws, beside the targets.

Run: python benchmarks/adult_error.py [--draws 20]
"""

from __future__ import annotations

import argparse

import numpy as np

import confide

TARGETS = {0.1: 0.205, 0.5: 0.170, 1.0: 0.162, 2.0: 0.157}


def main() -> None:
    """Print one line an epsilon."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20)
    draws = parser.parse_args().draws
    adult = confide.datasets.load_adult()
    for epsilon in [*TARGETS, float("inf")]:
        errors = []
        for _ in range(draws if np.isfinite(epsilon) else 1):
            model = confide.LogisticRegression(epsilon, schema=adult.schema)
            model.fit(adult.X_train, adult.y_train)
            errors.append(1.0 - model.score(adult.X_test, adult.y_test))
        target = f"target {TARGETS[epsilon]:.3f}" if epsilon in TARGETS else "not private"
        spread = np.std(errors) / np.sqrt(len(errors))
        print(f"epsilon {epsilon:4g}  test error {np.mean(errors):.4f} +- {spread:.4f}  alpha {model.alpha_:.3g}  {target}")


if __name__ == "__main__":
    main()
