"""A certified private fit, everything included, beside scikit-learn, SciPy and (if installed) glum without privacy.

All minimise the same objective over the same rows, the private fit with its noise. The others are asked for a relative
gradient norm of 1e-8; the certificate asks for more. CPU seconds, the median of several runs in turn.

Of a shape such as 200000x1000~0.9 each column has this correlation with the one before it.

Run: OMP_NUM_THREADS=1 python benchmarks/solver_speed.py [--runs 7] [--shapes 50000x100,1000000x100] [--problems 64]
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.signal
import scipy.sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression as Peer
from threadpoolctl import threadpool_limits

import confide
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.solvers.fallback import NewtonThenFallback

try:
    from glum import GeneralizedLinearRegressor
except ImportError:  # an optional peer
    GeneralizedLinearRegressor = None

ALPHA, RELATIVE = 1e-4, 1e-8
PRIVATE = "confide, private"


def seconds(run: Callable[[], Any]) -> float:
    """CPU time of one call."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def _keep(found: dict[str, Any], name: str, fit: Callable[[], Any]) -> None:
    found[name] = fit()


def made_up(
    n: int, d: int, dtype: str = "float64", correlation: float = 0.0, sizes: tuple[float, float] = (0.3, 1.5)
) -> tuple[Any, Any]:
    """Columns from the first of `sizes` to the second, and labels of a logistic model; rows are of norm about 1."""
    rng = np.random.default_rng(0)
    X = np.empty((n, d), dtype=dtype)
    for start in range(0, n, 10_000):
        drawn = rng.standard_normal((min(10_000, n - start), d), dtype=np.float32)
        if correlation:
            drawn = scipy.signal.lfilter([np.sqrt(1.0 - correlation**2)], [1.0, -correlation], drawn, axis=1)
        X[start : start + 10_000] = drawn
    X *= (np.linspace(*sizes, d) / np.sqrt(d)).astype(dtype)
    return X, (X @ (3 * rng.normal(size=d)).astype(dtype) + rng.logistic(size=n) > 0).astype(np.int64)


def made_up_sparse(n: int, d: int, entries: int) -> tuple[Any, Any]:
    """Words of texts: about `entries` of each row are not 0, and the k-th word is k times as rare as the first."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1.0 / np.arange(1, d + 1))
    words = np.searchsorted(shares / shares[-1], rng.random(n * entries)).astype(np.int32)
    data = np.abs(rng.normal(size=n * entries)) / np.sqrt(entries)
    X = scipy.sparse.csr_array((data, words, np.arange(n + 1, dtype=np.int32) * entries), shape=(n, d))
    X.sum_duplicates()
    return X, (X @ (3 * rng.normal(size=d)) + rng.logistic(size=n) > 0).astype(np.int64)


def by_scipy(X: Any, y: Any, alpha: float, linear: Any = 0.0) -> Callable[[], Any]:
    """L-BFGS on the mean form, without an intercept."""
    signs = np.where(y > 0, 1.0, -1.0).astype(X.dtype)

    def function(w: Any) -> tuple[float, Any]:
        z = signs * (X @ w.astype(X.dtype))
        decay = np.exp(-np.abs(z))
        value = (np.maximum(-z, 0.0) + np.log1p(decay)).mean() + 0.5 * alpha * w @ w + np.sum(linear * w)
        slope = -signs * np.where(z >= 0.0, decay, 1.0) / (1.0 + decay)
        return float(value), X.T @ slope / len(z) + alpha * w + linear

    start = np.zeros(X.shape[1])
    options = {"gtol": RELATIVE * first_slope(X, y, linear), "ftol": 0.0, "maxiter": 2000}
    return lambda: minimize(function, start, jac=True, method="L-BFGS-B", options=options).x


def first_slope(X: Any, y: Any, linear: Any = 0.0) -> float:
    """The largest entry of the gradient of the mean form at 0: peers ask for a part of it."""
    return float(np.abs(X.T @ np.where(y > 0, -0.5, 0.5).astype(X.dtype) / X.shape[0] + linear).max())


def left_of_slope(X: Any, y: Any, alpha: float, weights: Any) -> float:
    """The largest entry of the gradient at the weights, as a part of that at 0."""
    signs = np.where(y > 0, 1.0, -1.0)
    slopes = -signs / (1.0 + np.exp(signs * (X @ weights)))
    return float(np.abs(X.T @ slopes / X.shape[0] + alpha * weights).max()) / first_slope(X, y)


def contenders(X: Any, y: Any, without: tuple[str, ...] = (), alpha: float = ALPHA) -> dict[str, Callable[[], Any]]:
    """Fits by name."""
    strength = 1.0 / (alpha * X.shape[0])
    # Of tens of thousands of columns, pure noise is so large that no plan has so small an alpha.
    budget = confide.ApproxDP(1.0, 1e-6) if scipy.sparse.issparse(X) else confide.PureDP(1.0)
    private = confide.LogisticRegression(budget, alpha=alpha, row_norm=3.0, fit_intercept=False, classes=[0, 1])
    fits = {PRIVATE: lambda: private.fit(X, y), "SciPy L-BFGS": by_scipy(X, y, alpha)}
    tolerance = RELATIVE * first_slope(X, y)
    for solver in ("lbfgs",) if scipy.sparse.issparse(X) else ("lbfgs", "newton-cholesky"):
        peer = Peer(C=strength, fit_intercept=False, solver=solver, tol=tolerance, max_iter=2000)
        fits[f"scikit-learn {solver}"] = lambda peer=peer: peer.fit(X, y).coef_[0]  # type: ignore[misc]
    if GeneralizedLinearRegressor is not None and not scipy.sparse.issparse(X):
        # Its line search gives up on tolerances near rounding, and it then goes on to the last iteration.
        glum = GeneralizedLinearRegressor(
            family="binomial",
            l1_ratio=0,
            alpha=alpha,
            fit_intercept=False,
            gradient_tol=tolerance,
            solver="irls-ls",
            max_iter=20,
        )
        fits["glum"] = lambda: glum.fit(X, y).coef_
    return {name: fit for name, fit in fits.items() if name not in without}


def many_problems(X: Any, y: Any, k: int) -> None:
    """k perturbed problems at once, beside one after the other (five of them, times k / 5)."""
    n, d = X.shape
    source = MemorySource(ArrayBlocks(X), np.where(y > 0, 1, -1).astype(np.int8))
    linear = np.random.default_rng(1).laplace(size=(k, d)) * 10.0
    problems = Objective(source, LogisticLoss(), BallBound(3.0), 0.0, ALPHA * n, linear)
    start = np.zeros((k, d))
    tolerance = RELATIVE * float(np.linalg.norm(problems.evaluate(start[:1], order=1).gradient))
    with np.errstate(all="ignore"):
        together = seconds(lambda: NewtonThenFallback().solve(problems, start, tolerance))
        few = [problems.restrict(np.array([j])) for j in range(min(k, 5))]
        apart = statistics.mean(seconds(lambda p=p: NewtonThenFallback().solve(p, start[:1], tolerance)) for p in few)
    peer = statistics.mean(seconds(by_scipy(X, y, ALPHA, linear[j] / n)) for j in range(min(k, 3)))
    print(f"{k} problems at once {together:8.3f} s; one by one {k * apart / together:5.1f} times that, "
          f"SciPy one by one {k * peer / together:5.1f} times")  # fmt: skip


def limits(X: Any) -> None:
    """What the machine can do: reading rows, and a product of matrices."""
    square = np.ones((1500, 1500), dtype=X.dtype)
    read = min(seconds(lambda: np.add.reduce(X, axis=None)) for _ in range(3))
    product = min(seconds(lambda: square @ square) for _ in range(3))
    print(f"reading {X.nbytes / read / 1e9:.1f} GB/s, products {2 * 1500**3 / product / 1e9:.0f} GFLOP/s")


def main() -> None:
    """Print one block a shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--shapes", default="50000x100,1000000x100,200000x1000,200000x1000~0.9,5000000x20")
    parser.add_argument("--sparse", default="500000x20000x20", help="rows x columns x entries of a row, or nothing")
    parser.add_argument("--problems", type=int, default=0, help="also so many problems at once")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--alike", action="store_true", help="columns of one size, on which L-BFGS needs few passes")
    parser.add_argument("--alpha", type=float, default=ALPHA)
    parser.add_argument("--without", default="", help="names of fits to leave out, with commas between")
    arguments = parser.parse_args()
    sizes = (1.0, 1.0) if arguments.alike else (0.3, 1.5)
    cases: list[tuple[str, Callable[[], tuple[Any, Any]]]] = []
    for shape in filter(None, arguments.shapes.split(",")):
        size, _, correlation = shape.partition("~")
        n, d = map(int, size.split("x"))
        cases.append((shape, partial(made_up, n, d, arguments.dtype, float(correlation or 0.0), sizes)))
    if arguments.sparse:
        n, d, entries = map(int, arguments.sparse.split("x"))
        cases.append((arguments.sparse, partial(made_up_sparse, n, d, entries)))
    with threadpool_limits(1):
        for shape, make in cases:
            X, y = make()
            print(shape, X.dtype)
            if not scipy.sparse.issparse(X):
                limits(X)
            fits = contenders(X, y, tuple(arguments.without.split(",")), arguments.alpha)
            times: dict[str, list[float]] = {name: [] for name in fits}
            weights: dict[str, Any] = {}
            for _ in range(arguments.runs):
                for name, fit in fits.items():
                    times[name].append(seconds(partial(_keep, weights, name, fit)))
            own = statistics.median(times[PRIVATE])
            for name, measured in times.items():
                median = statistics.median(measured)
                left = "" if name == PRIVATE else f"   gradient {left_of_slope(X, y, arguments.alpha, weights[name]):.0e}"
                print(f"  {name:28} {median:8.3f} s   {median / own:6.2f}{left}", flush=True)
            tracemalloc.start()
            fits[PRIVATE]()
            print(f"  memory of the private fit beside X: {tracemalloc.get_traced_memory()[1] / 1e6:.0f} MB", flush=True)
            tracemalloc.stop()
            if arguments.problems and not scipy.sparse.issparse(X):
                many_problems(X, y, arguments.problems)


if __name__ == "__main__":
    main()
