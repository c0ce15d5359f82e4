"""All experiments, two at a time, each in a process of its own. Each continues where an earlier one ended.

All of them together take less than an hour on two cores. Finished cells are kept in experiments/results and are not computed
again: remove the file of an experiment to start it again. CONFIDE_DATA_DIR names the folder with the data sets (make data);
without it, only Adult and made-up rows are used.

Run: make experiments, or python experiments/run.py [--quick]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# The longest one first.
SCRIPTS = ("chaudhuri_monteleoni_sarwate_2011", "rubinstein_2012", "chaudhuri_monteleoni_2008", "wang_kifer_lee_2019")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
AT_A_TIME = min(2, os.cpu_count() or 1)


def run(name: str) -> int:
    """Run one, with its name before each line that it prints. Its exit status."""
    start, script = time.perf_counter(), Path(__file__).with_name(f"{name}.py")
    with subprocess.Popen(  # noqa: S603
        [sys.executable, script, *sys.argv[1:]], env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            print(f"{name}: {line}", end="", flush=True)
    print(f"{name}: {(time.perf_counter() - start) / 60.0:.1f} minutes", flush=True)
    return process.returncode


def main() -> None:
    """Run all; fail if one fails."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        failed = [name for name, status in zip(SCRIPTS, pool.map(run, SCRIPTS), strict=True) if status != 0]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; what they printed stands above.")


if __name__ == "__main__":
    main()
