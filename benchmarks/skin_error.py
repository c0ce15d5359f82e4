"""Test error on Skin Segmentation of a linear and a kernel support vector machine under (1, 1e-6)-privacy, replace-one.

Three colours, whose effect is not linear: what random features are for. A random 70/30 split by a public seed.

Run: CONFIDE_DATA_DIR=... python benchmarks/skin_error.py [--draws 5]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from public_data import load

import confide


def main() -> None:
    """Print one line an estimator."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=5)
    draws = parser.parse_args().draws
    split = load("skin")
    budget = confide.ApproxDP(1.0, 1e-6)
    print(f"always not skin: test error {np.mean(split.y_test == 1):.4f}")
    for name, model in {
        "LinearSVC": confide.LinearSVC(budget, schema=split.schema),
        "KernelSVC, rbf": confide.KernelSVC(budget, schema=split.schema, length_scale=0.5, n_features=128),
        "KernelSVC, rbf, not private": confide.KernelSVC(math.inf, schema=split.schema, length_scale=0.5, n_features=128),
    }.items():
        times = draws if model.budget is budget else 1
        errors = [1.0 - model.fit(split.X_train, split.y_train).score(split.X_test, split.y_test) for _ in range(times)]
        spread = np.std(errors, ddof=1) / math.sqrt(times) if times > 1 else 0.0
        print(f"{name:28}  test error {np.mean(errors):.4f} +- {spread:.4f}  alpha {model.alpha_:.3g}", flush=True)


if __name__ == "__main__":
    main()
