"""Releases that spend more than they claim, each with the pair of data sets that shows it.

Those of libraries use the libraries themselves. Where a library cannot be installed beside the others, a release repeats the
lines that are at fault, and its name says so. Two releases that keep their promise are there for comparison.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.violations import opacus_training
from confide import ApproxDP, PureDP


@dataclass(frozen=True)
class Violation:
    """One release, its claim and its data sets.

    Attributes
    ----------
    name : what is released, and by which library
    fault : what is wrong, in a sentence; "none" for a release that keeps its promise
    epsilon : what is claimed
    release : an estimator's name for `confide audit`, or a callable
    first, second : data sets, None to let the audit choose them
    n_releases : from either data set
    delta : what is claimed besides; 0 for pure privacy
    """

    name: str
    fault: str
    epsilon: float
    release: str | Callable[[Any], Any]
    first: Any = None
    second: Any = None
    n_releases: int = 1000
    delta: float = 0.0

    @property
    def claim(self) -> PureDP | ApproxDP:
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)


def fitted(make: Callable[[], Any], *names: str) -> Callable[[Any, Any], Any]:
    """A release of these attributes of a model."""

    def release(X: Any, y: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(X, y)
        return np.concatenate([np.ravel(getattr(model, name)) for name in names])

    return release


def logistic(**given: Any) -> Any:
    from diffprivlib.models import LogisticRegression

    return LogisticRegression(**given)


def least_squares(**given: Any) -> Any:
    from diffprivlib.models import LinearRegression

    return LinearRegression(**given)


def laplace_of_diffprivlib(value: float) -> list[float]:
    from diffprivlib.mechanisms import Laplace

    return [Laplace(epsilon=1.0, delta=0.0, sensitivity=1.0).randomise(value)]


def count_of_opendp(value: int) -> list[int]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return [dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)(value)]


def length_by_opacus(X: Any, y: Any) -> list[float]:
    """The length of 100 weights after an epoch of DP-SGD. Opacus states (0.259, 1e-5) for it, whatever the rows."""
    weights, _ = opacus_training.trained(X, y, batch_size=2, epochs=1, noise=10.0)
    return [float(np.linalg.norm(weights))]


def batches_of_20_by_opacus(X: Any, y: Any) -> Any:
    """Weights after four epochs: 12 noisy steps over 41 rows, 8 over 40. Opacus states (2.01, 0.01) and (2.53, 0.01)."""
    return opacus_training.trained(X, y, batch_size=20, epochs=4, noise=1.5)[0]


def zeros(n_rows: int) -> tuple[Any, Any]:
    return np.zeros((n_rows, 100)), np.zeros(n_rows)


ANGLES = np.linspace(0.0, 6.0, 20)
X = 0.7 * np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
Y = (X[:, 0] > 0.0).astype(int)
ALONE = np.zeros(20, dtype=int)
ALONE[0] = 1
TALL, SHORT = np.array([[100.0], [1.0], [0.0]]), np.array([[0.0], [1.0], [0.0]])

VIOLATIONS = (
    Violation(
        "diffprivlib 0.6.6, LogisticRegression, its defaults",
        "the norm of rows is learned from the rows, and kept",
        1.0,
        "diffprivlib.models:LogisticRegression",
    ),
    Violation(
        "diffprivlib 0.6.6, GaussianNB, its defaults",
        "bounds of columns are learned from the rows",
        1.0,
        "diffprivlib.models:GaussianNB",
    ),
    Violation(
        "diffprivlib 0.6.6, LinearRegression, its defaults",
        "bounds of columns and targets are learned from the rows",
        1.0,
        "diffprivlib.models:LinearRegression",
    ),
    Violation(
        "diffprivlib 0.6.6, DecisionTreeClassifier, its defaults",
        "bounds and labels are learned from the rows",
        1.0,
        "diffprivlib.models:DecisionTreeClassifier",
        n_releases=200,
    ),
    Violation(
        "diffprivlib 0.6.6, LogisticRegression, one class",
        "rows of a single class are refused, which tells about one row",
        1.0,
        fitted(lambda: logistic(epsilon=1.0, data_norm=1.0), "coef_", "intercept_"),
        (X, ALONE),
        (X, 0 * ALONE),
    ),
    Violation(
        "diffprivlib 0.6.6, LinearRegression, bounds (0, 100)",
        "a sensitivity uses the lower bound twice, so it is 0",
        1.0,
        fitted(lambda: least_squares(epsilon=1.0, bounds_X=(0, 100), bounds_y=(0, 1), fit_intercept=False), "coef_"),
        (TALL, np.zeros(3)),
        (SHORT, np.zeros(3)),
    ),
    Violation(
        "seeded noise, the lines of a bolt-on optimiser",
        "the noise has the same seed in every run",
        1.0,
        lambda x: [x + np.random.default_rng(1).laplace()],
        0.0,
        1.0,
    ),
    Violation(
        "seeds of one byte, the lines of a benchmark",
        "there are 256 possible noise vectors",
        1.0,
        lambda x: [x + np.random.default_rng(os.urandom(1)[0]).laplace()],
        0.0,
        0.3,
        n_releases=4000,
    ),
    Violation(
        "a mean divided by the private number of rows",
        "nothing is left to divide by where the only row is absent",
        1.0,
        lambda v: [np.sum(v) / len(v) + np.random.default_rng().laplace(scale=1.0 / len(v))],
        [1.0],
        [],
    ),
    Violation(
        "statistics of values that are not clipped",
        "one value moves the mean by any distance",
        1.0,
        lambda v: [v.mean() + np.random.default_rng().laplace(scale=1.0 / len(v))],
        np.ones(20),
        np.append(np.ones(19), 1000.0),
    ),
    Violation(
        "an area under the curve without noise",
        "one row changes it",
        1.0,
        lambda v: {"auc": float(np.mean(v[:5, None] > v[None, 5:])), "noisy": float(np.random.default_rng().laplace())},
        np.arange(10.0),
        np.append(np.arange(9.0), -1.0),
    ),
    Violation(
        "Laplace noise of NumPy",
        "the last bits of a sum in floating point tell the value",
        1.0,
        lambda x: [x + np.random.default_rng().laplace()],
        0.0,
        1.0,
        n_releases=2000,
    ),
    Violation(
        "diffprivlib 0.6.6, mechanisms.Laplace",
        "the last bits of a sum in floating point tell the value",
        1.0,
        laplace_of_diffprivlib,
        0.0,
        1.0,
        n_releases=2000,
    ),
    Violation(
        "Opacus 1.6.0, an epoch over four rows",
        "the noise is divided by the private number of rows in a batch",
        0.26,
        length_by_opacus,
        zeros(4),
        zeros(3),
        delta=1e-5,
    ),
    Violation(
        "Opacus 1.6.0, batches of 20 from 41 rows or 40",
        "the number of noisy steps follows from the private number of rows",
        2.53,
        batches_of_20_by_opacus,
        opacus_training.first,
        opacus_training.second,
        n_releases=4000,
        delta=opacus_training.DELTA,
    ),
    Violation(
        "Opacus 1.6.0, DP-SGD",
        "none",
        2.53,
        opacus_training.release,
        opacus_training.first,
        opacus_training.second,
        delta=opacus_training.DELTA,
    ),
    Violation("OpenDP, a count with Laplace noise", "none", 1.0, count_of_opendp, 0, 1, n_releases=2000),
)
