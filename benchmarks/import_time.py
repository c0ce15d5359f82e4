"""Time of a fresh `import confide` beside scikit-learn's own; median of several processes, alternating.

Run: python benchmarks/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys

CODE = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
STATEMENTS = ("import confide", "import sklearn", "from confide import LogisticRegression",
              "from sklearn.linear_model import LogisticRegression")  # fmt: skip


def main() -> None:
    """Print a median for each."""
    times: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(7):
        for statement in STATEMENTS:
            done = subprocess.run([sys.executable, "-c", CODE.format(statement)], capture_output=True, text=True, check=True)  # noqa: S603
            times[statement].append(float(done.stdout))
    for statement, values in times.items():
        print(f"{statement:55} {statistics.median(values):.3f} s")


if __name__ == "__main__":
    main()
