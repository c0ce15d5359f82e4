"""Which expected weight norm B makes the best automatic alpha, alpha = E|b| R / (n B)? Test error on real data sets.

All noise draws of one cell are solved as one batch of problems over the same rows. The last lines give the mean over data
sets of the excess over the best B of the cell, in thousandths of error: the figure that B was chosen by.

Run: CONFIDE_DATA_DIR=... python benchmarks/automatic_alpha.py [--draws 24] [--data adult bank]
     --rows clip|unit   unit scales every encoded row to the full row norm, to see what that would gain
"""

from __future__ import annotations

import argparse

import numpy as np
from public_data import NAMES, load

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound, norm_with_intercept
from confide.estimators.regularisation import automatic_l2
from confide.features.encoder import Encoder
from confide.privacy.guarantee import Neighbours, PureDP
from confide.privacy.noise import Entropy
from confide.privacy.sensitivity import calibrated_objective
from confide.solvers.newton import Newton

WEIGHT_NORMS = (5.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0)
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


def main() -> None:
    """Print a table of test errors for each data set, then the mean excess of each B."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--data", nargs="*", default=NAMES)
    parser.add_argument("--rows", choices=("clip", "unit"), default="clip")
    arguments = parser.parse_args()
    loss, intercept, excess = LogisticLoss(), 1.0, []
    for name in arguments.data:
        split = load(name)
        encoder = Encoder(split.schema)
        train, test = encoder.transform(split.X_train), encoder.transform(split.X_test)
        bound = BallBound(encoder.row_bound.l2_norm)
        if arguments.rows == "unit":
            train, test = (rows * (bound.norm / np.linalg.norm(rows, axis=1, keepdims=True)) for rows in (train, test))
        source = MemorySource(ArrayBlocks(train), split.y_train.astype(np.int8))
        test = np.hstack([test, np.full((len(test), 1), intercept)])
        row_norm = norm_with_intercept(bound, intercept)
        width = encoder.n_features + 1
        print(f"{name}: {len(train)} rows, {encoder.n_features} columns, majority class errs "
              f"{min(np.mean(split.y_test > 0), np.mean(split.y_test < 0)):.4f}")  # fmt: skip
        unit_noise = Entropy.seeded(1).spherical_laplace(arguments.draws, width, 1.0)
        errors = np.zeros((len(WEIGHT_NORMS), len(EPSILONS)))
        for i, weight_norm in enumerate(WEIGHT_NORMS):
            for j, epsilon in enumerate(EPSILONS):
                l2 = automatic_l2(PureDP(epsilon), loss, width, row_norm, Neighbours.REPLACE_ONE, weight_norm)
                rate, l2 = calibrated_objective(epsilon, loss, row_norm, l2, Neighbours.REPLACE_ONE)
                objective = Objective(source, loss, bound, intercept, l2, unit_noise / rate)
                weights = Newton().solve(objective, np.zeros_like(unit_noise), 1e-5 * len(train)).weights
                errors[i, j] = np.mean(np.where(test @ weights.T > 0, 1, -1) != split.y_test[:, None])
            print(f"  B {weight_norm:4g}  " + "  ".join(f"{error:.4f}" for error in errors[i]), flush=True)
        excess.append(errors - errors.min(axis=0))
    print("mean excess over the best B, in thousandths, at epsilon " + ", ".join(map(str, EPSILONS)) + "; mean of all")
    mean = 1000 * np.mean(excess, axis=0)
    for weight_norm, row in zip(WEIGHT_NORMS, mean, strict=True):
        print(f"  B {weight_norm:4g}  " + "  ".join(f"{value:6.2f}" for value in row) + f"   {row.mean():6.2f}")


if __name__ == "__main__":
    main()
