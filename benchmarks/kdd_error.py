"""Test error on KDD Cup 99, normal against attack, everything at its default: mean over noise draws, beside the targets.

70,000 random rows of the published 10 percent, 56,000 of them to learn from; their seed and the schema are public.

Run: CONFIDE_DATA_DIR=... python benchmarks/kdd_error.py [--draws 10] [--seed 1]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
from public_data import folder

import confide

TARGETS = {0.1: 0.015, 1.0: 0.008, math.inf: math.nan}
N_ROWS, N_TRAINING = 70_000, 56_000


def main() -> None:
    """Print one line an estimator and epsilon."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    schema = confide.Schema.from_toml(Path(__file__).with_name("kddcup99.toml"))
    frame = pd.read_parquet(folder() / "kddcup99_10percent.parquet")
    frame = frame.iloc[np.random.default_rng(options.seed).permutation(len(frame))[:N_ROWS]]
    labels = np.where(frame["label"] == "normal.", "normal.", "attack")
    train, test = slice(0, N_TRAINING), slice(N_TRAINING, N_ROWS)
    print(f"always attack: test error {np.mean(labels[test] != 'attack'):.4f}")
    for estimator in (confide.LogisticRegression, confide.LinearSVC):
        for epsilon, target in TARGETS.items():
            errors = []
            for _ in range(options.draws if math.isfinite(epsilon) else 1):
                model = estimator(epsilon, schema=schema).fit(frame[train], labels[train])
                errors.append(1.0 - model.score(frame[test], labels[test]))
            spread = np.std(errors, ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else 0.0
            print(
                f"{estimator.__name__:18}  epsilon {epsilon:<4g}  test error {np.mean(errors):.4f} +- {spread:.4f}  "
                f"alpha {model.alpha_:<8.3g}" + (f"  target {target}" if math.isfinite(target) else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
