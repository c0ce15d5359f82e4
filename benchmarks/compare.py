"""Whether a revision is slower than another: the same small fits by both, in turns, as ratios of CPU time.

Each revision gets a worktree, each turn a process of its own, one thread; the order changes from turn to turn. The ratio
is that of medians over turns; the spread is the middle half of the ratios turn by turn. Where even its lower end is above
1, the fit is slower. Only the public API is used, so that older revisions can be compared.

Run: python benchmarks/compare.py main HEAD [--turns 7] [--fail-above 1.10]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

REPOSITORY = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")


def cases() -> dict[str, Callable[[], Any]]:
    """Fits by name, each of a fraction of a second."""
    import confide

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 100)) / 10.0
    single = X.astype(np.float32)
    narrow = rng.normal(size=(300_000, 10)) / 4.0
    sparse = scipy.sparse.random_array((20_000, 3_000), density=0.005, format="csr", rng=rng)
    adult = confide.datasets.load_adult()

    def labels(rows: Any) -> Any:
        return (rows @ rng.normal(size=rows.shape[1]) > 0).astype(np.int64)

    y, y_narrow, y_sparse, three = labels(X), labels(narrow), labels(sparse), np.arange(len(X)) % 3
    logistic, svc = confide.LogisticRegression, confide.LinearSVC
    return {
        "40,000 x 100": lambda: logistic(1.0, classes=[0, 1]).fit(X, y),
        "40,000 x 100 float32": lambda: logistic(1.0, classes=[0, 1]).fit(single, y),
        "300,000 x 10": lambda: logistic(1.0, classes=[0, 1]).fit(narrow, y_narrow),
        "20,000 x 3,000 sparse": lambda: logistic(1.0, alpha=0.1, classes=[0, 1]).fit(sparse, y_sparse),
        "Adult, from its frame": lambda: logistic(1.0, schema=adult.schema).fit(adult.X_train, adult.y_train),
        "hinge": lambda: svc(1.0, loss="huber_hinge", classes=[0, 1]).fit(X[:20_000], y[:20_000]),
        "three classes": lambda: logistic(4.0, classes=[0, 1, 2]).fit(X[:10_000, :30], three[:10_000]),
        "Ridge": lambda: confide.Ridge(1.0, target_bound=1.0).fit(X, y * 1.0),
    }


def measure(repeats: int) -> dict[str, float]:
    """The least CPU seconds of each case in this process; a case that the revision refuses is left out."""
    warnings.simplefilter("ignore")
    found = {}
    for name, fit in cases().items():
        seconds = []
        try:
            fit()
            for _ in range(repeats):
                begin = time.process_time()
                fit()
                seconds.append(time.process_time() - begin)
        except Exception as error:  # noqa: BLE001 - an older revision may lack anything
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        found[name] = min(seconds)
    return found


def git(*arguments: str) -> str:
    """What git prints."""
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603, S607


def commit(name: str) -> str:
    """The hash of what a name stands for."""
    return git("rev-parse", "--verify", f"{name}^{{commit}}")


@contextmanager
def checked_out(revisions: Sequence[str]) -> Iterator[tuple[Path, ...]]:
    """A worktree of each revision, removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        trees = tuple(Path(folder) / str(place) for place in range(len(revisions)))
        try:
            for tree, revision in zip(trees, revisions, strict=True):
                git("worktree", "add", "--detach", "--quiet", str(tree), revision)
            yield trees
        finally:
            for tree in trees:
                if tree.exists():
                    git("worktree", "remove", "--force", str(tree))


def environment(tree: Path) -> dict[str, str]:
    """That of a process which imports the package of a tree and has one thread."""
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": str(tree / "src")}


def turn(tree: Path, repeats: int) -> dict[str, float]:
    """One process of one revision."""
    command = [sys.executable, __file__, "--measure", str(repeats)]
    done = subprocess.run(command, cwd=tree, env=environment(tree), check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def compared(base: list[dict[str, float]], head: list[dict[str, float]], most: float | None) -> bool:
    """Print a line for each case; whether one of them is slower than allowed."""
    slower = False
    for name in {**base[0], **head[0]}:
        if any(name not in measured for measured in (*base, *head)):
            print(f"{name:24} only one of the two revisions takes it")
            continue
        before, after = ([measured[name] for measured in turns] for turns in (base, head))
        ratio = statistics.median(after) / statistics.median(before)
        low, _, high = statistics.quantiles([b / a for a, b in zip(before, after, strict=True)], n=4)
        verdict = "slower" if low > 1.0 else "faster" if high < 1.0 else ""
        slower |= most is not None and ratio > most and low > 1.0
        print(f"{name:24} {statistics.median(before):7.3f} s {statistics.median(after):7.3f} s   "
              f"{ratio:5.2f} ({low:.2f} to {high:.2f})  {verdict}")  # fmt: skip
    return slower


def main() -> int:
    """Print ratios; 1 if something is slower than allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", nargs="?", default="main")
    parser.add_argument("head", nargs="?", default="HEAD")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=3, help="of each fit in a turn, of which the fastest counts")
    parser.add_argument("--fail-above", type=float, default=None, help="the ratio from which a slower fit is an error")
    parser.add_argument("--measure", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return 0
    revisions = [commit(name) for name in (arguments.base, arguments.head)]
    results: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
    with checked_out(revisions) as trees:
        for number in range(arguments.turns):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                results[which].append(turn(trees[which], arguments.repeats))
    print(f"{arguments.base} {revisions[0][:10]} and {arguments.head} {revisions[1][:10]}: CPU seconds, ratio (spread)")
    return int(compared(*results, arguments.fail_above))


if __name__ == "__main__":
    sys.exit(main())
