"""Which expected weight norm B makes the best automatic alpha, alpha = E|b| R / (n B)? Test error on real data sets.

Two families of rules: B constant, and B = f (n R / E|b|)^(1/3), which grows with what the rows can tell beside the noise.
All noise draws of one cell are solved as one batch of problems over the same rows. The last lines give the mean over data
sets of the excess over the best rule of the cell, in thousandths of error: the figure by which the rule was chosen.

Run: CONFIDE_DATA_DIR=... python benchmarks/automatic_alpha.py [--draws 16] [--data adult bank]
     --rows clip|bound|unit   how encoded rows meet the row norm: clipped as the library does; clipped at the largest norm
                              that the schema allows, which no row exceeds; or each scaled to exactly that norm
"""

from __future__ import annotations

import argparse

import numpy as np
from public_data import NAMES, load

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound, norm_with_intercept
from confide.features.encoder import Encoder
from confide.privacy.guarantee import Neighbours
from confide.privacy.noise import Entropy
from confide.privacy.sensitivity import calibrated_objective
from confide.solvers.newton import Newton

RULES = [(f"B {b:g}", b, 0.0) for b in (5, 10, 14, 20, 28, 40)]
RULES += [(f"B {f:g} t^1/3", f, 1 / 3) for f in (3, 4, 5, 6, 7)]
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


def main() -> None:
    """Print a table of test errors for each data set, then the mean excess of each B."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--data", nargs="*", default=NAMES)
    parser.add_argument("--rows", choices=("clip", "bound", "unit"), default="clip")
    arguments = parser.parse_args()
    loss, intercept, excess = LogisticLoss(), 1.0, []
    for name in arguments.data:
        split = load(name)
        encoder = Encoder(split.schema)
        train, test = encoder.transform(split.X_train), encoder.transform(split.X_test)
        bound = BallBound(encoder.row_norm if arguments.rows == "clip" else encoder.row_bound.l2_norm)
        if arguments.rows == "unit":
            train, test = (rows * (bound.norm / np.linalg.norm(rows, axis=1, keepdims=True)) for rows in (train, test))
        source = MemorySource(ArrayBlocks(train), split.y_train.astype(np.int8))
        test = np.hstack([bound.clip(test), np.full((len(test), 1), intercept)])
        row_norm = norm_with_intercept(bound, intercept)
        width = encoder.n_features + 1
        print(f"{name}: {len(train)} rows, {encoder.n_features} columns, majority class errs "
              f"{min(np.mean(split.y_test > 0), np.mean(split.y_test < 0)):.4f}")  # fmt: skip
        unit_noise = Entropy.seeded(1).spherical_laplace(arguments.draws, width, 1.0)
        errors = np.zeros((len(RULES), len(EPSILONS)))
        for i, (rule, factor, power) in enumerate(RULES):
            for j, epsilon in enumerate(EPSILONS):
                noise = 2.0 * row_norm * width / epsilon
                weight_norm = factor * (len(train) * row_norm / noise) ** power
                l2 = max(noise * row_norm / weight_norm, 2.1 * row_norm**2 / epsilon)
                rate, l2 = calibrated_objective(epsilon, loss, row_norm, l2, Neighbours.REPLACE_ONE)
                objective = Objective(source, loss, bound, intercept, l2, unit_noise / rate)
                weights = Newton().solve(objective, np.zeros_like(unit_noise), 1e-5 * len(train)).weights
                errors[i, j] = np.mean(np.where(test @ weights.T > 0, 1, -1) != split.y_test[:, None])
            print(f"  {rule:10}  " + "  ".join(f"{error:.4f}" for error in errors[i]), flush=True)
        excess.append(errors - errors.min(axis=0))
    print("mean excess over the best rule, in thousandths, at epsilon " + ", ".join(map(str, EPSILONS)) + "; mean of all")
    mean = 1000 * np.mean(excess, axis=0)
    for (rule, _, _), row in zip(RULES, mean, strict=True):
        print(f"  {rule:10}  " + "  ".join(f"{value:6.2f}" for value in row) + f"   {row.mean():6.2f}")


if __name__ == "__main__":
    main()
