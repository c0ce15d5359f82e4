"""How far probabilities of private additive classifiers are from frequencies, for both losses.

The expected calibration error is the mean over ten bins, of equally many test rows each, of the distance between the mean
probability and the share of positive rows. The Brier score and the log loss count how much probabilities tell, too.

With --held-out a fifth of the rows is kept from the fit, and their noisy counts calibrate the model.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.calibration [--data adult ...] [--draws 4] [--held-out]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from scipy.special import expit
from sklearn.metrics import brier_score_loss, log_loss
from threadpoolctl import threadpool_limits

from benchmarks.peers.problems import problem
from confide import AdditiveClassifier, ApproxDP, CalibratedClassifier, LinearSVC, LogisticRegression, evaluate

EPSILONS = (0.1, 0.5, 1.0, 4.0, math.inf)


def calibration_error(probability: np.ndarray, positive: np.ndarray) -> float:
    """The expected calibration error of probabilities (n,) of rows that are positive or not (n,)."""
    bins = np.array_split(np.argsort(probability), 10)
    return sum(abs(probability[rows].sum() - positive[rows].sum()) for rows in bins) / len(probability)


def held_out(name: str, draws: int) -> None:
    """Print calibration error and log loss of models of all rows, and of models that the counts of a fifth calibrate."""
    split, rng = problem(name).split, np.random.default_rng(0)
    positive = split.y_test > 0
    for epsilon in (0.5, 1.0):
        for kind in (LogisticRegression, LinearSVC, AdditiveClassifier):
            found = []
            for _ in range(draws):
                shuffled = rng.permutation(len(split.y_train))
                last, first = np.split(shuffled, [len(shuffled) // 5])
                whole = kind(epsilon, schema=split.schema).fit(split.X_train, split.y_train)
                model = kind(epsilon, schema=split.schema).fit(split.X_train.iloc[first], split.y_train[first])
                counts = evaluate(model, split.X_train.iloc[last], split.y_train[last], budget=epsilon, n_bins=50)
                for each in (whole, CalibratedClassifier(model, counts)):
                    has_chances = hasattr(each, "predict_proba")
                    chance = (
                        each.predict_proba(split.X_test)[:, 1]
                        if has_chances
                        else expit(whole.decision_function(split.X_test))
                    )
                    clipped = np.clip(chance, 1e-6, 1 - 1e-6)
                    found.append((calibration_error(chance, positive), log_loss(positive, clipped)))
            means = np.reshape(found, (draws, 4)).mean(axis=0)
            print(
                f"{name:9} epsilon {epsilon:<4g} {kind.__name__:18} all rows {means[:2]}  with counts {means[2:]}",
                flush=True,
            )


def main() -> None:
    """Print a line for each data set, epsilon and loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=["adult", "bank", "covertype"])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    if options.held_out:
        with threadpool_limits(1):
            for name in [name for name in options.data if name != "covertype"]:
                held_out(name, options.draws)
        return
    with threadpool_limits(1):
        for name in options.data:
            given = problem(name)
            split, positive = given.split, given.split.y_test > 0
            for epsilon in EPSILONS:
                for loss in ("logistic_hinge", "auto", "logistic"):
                    if math.isfinite(epsilon):
                        private = {"neighbours": "add-or-remove-one", "n_rows_bounds": given.n_rows_bounds}
                        model = AdditiveClassifier(ApproxDP(epsilon, 1e-5), schema=split.schema, loss=loss, **private)
                    else:
                        model = AdditiveClassifier(epsilon, schema=split.schema, loss=loss)
                    found = []
                    for _ in range(options.draws if math.isfinite(epsilon) else 1):
                        chance = model.fit(split.X_train, split.y_train).predict_proba(split.X_test)[:, 1]
                        clipped = np.clip(chance, 1e-6, 1 - 1e-6)
                        found.append(
                            (
                                calibration_error(chance, positive),
                                brier_score_loss(positive, chance),
                                log_loss(positive, clipped),
                            )
                        )
                    error, brier, log = np.mean(found, axis=0)
                    print(
                        f"{name:9} epsilon {epsilon:<4g} {loss:14} calibration error {error:.4f}  Brier {brier:.4f}  "
                        f"log loss {log:.4f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
