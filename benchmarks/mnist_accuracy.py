"""Test accuracy on MNIST (60,000 + 10,000), joint softmax, pixels as they are, rows clipped to norm 1, automatic alpha.

Run: python benchmarks/mnist_accuracy.py [--draws 5] [--alphas 3e-4 1.2e-3]
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from public_data import folder
from sklearn.linear_model import LogisticRegression as Plain

import confide

BUDGET = confide.ApproxDP(1.0, 1e-6)
TARGET = 0.84
NON_PRIVATE_ALPHAS = (1e-4, 1e-5, 1e-6)


def with_intercept(rows: np.ndarray) -> np.ndarray:
    """Rows as the private fit sees them: norm 1 at most, and a constant of 1, which is penalised like the rest."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.hstack([rows / np.maximum(1.0, norms), np.ones((len(rows), 1), dtype=rows.dtype)])


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--alphas", type=float, nargs="*", default=[])
    chosen = parser.parse_args()
    with np.load(folder() / "mnist.npz") as digits:
        X, X_test = ((digits[name].reshape(-1, 784) / 255.0).astype(np.float32) for name in ("x_train", "x_test"))
        y, y_test = digits["y_train"], digits["y_test"]

    def private(name: str, **parameters: object) -> float:
        accuracies, seconds = [], []
        for _ in range(chosen.draws):
            model = confide.LogisticRegression(BUDGET, classes=range(10), **parameters)
            start = time.process_time()
            model.fit(X, y)
            seconds.append(time.process_time() - start)
            accuracies.append(model.score(X_test, y_test))
        spread = f"{min(accuracies):.4f} to {max(accuracies):.4f}"
        print(
            f"{name:26} alpha {model.alpha_:<9.3g} median {statistics.median(accuracies):.4f} "
            f"({spread}, {chosen.draws} draws)  "
            f"{statistics.median(seconds):.0f} s CPU",
            flush=True,
        )
        return float(model.alpha_)

    print(f"{BUDGET}; target {TARGET}")
    alpha = private("automatic alpha")
    private("automatic, no intercept", fit_intercept=False)
    for other in chosen.alphas:
        private("another alpha", alpha=other)
    rows, test_rows = with_intercept(X), with_intercept(X_test)
    for other in (alpha, *NON_PRIVATE_ALPHAS):
        plain = Plain(C=1.0 / (other * len(X)), fit_intercept=False, max_iter=300).fit(rows, y)
        accuracy = plain.score(test_rows, y_test)
        print(f"{'not private, scikit-learn':26} alpha {other:<9.3g} {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
