"""All experiments, one after another. Each continues where an earlier run ended.

All of them together take about an hour on one core. Finished cells are kept in experiments/results and are not computed
again: remove the file of an experiment to start it again. CONFIDE_DATA_DIR names the folder with the data sets; without it,
only Adult and made-up rows are used.

Run: make experiments, or python experiments/run.py [--quick]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

SCRIPTS = ("chaudhuri_monteleoni_2008", "chaudhuri_monteleoni_sarwate_2011", "rubinstein_2012", "wang_kifer_lee_2019")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")


def main() -> None:
    """Run each in a process of its own, one thread each."""
    for place, name in enumerate(SCRIPTS, start=1):
        print(f"\n== {place} of {len(SCRIPTS)}: {name}", flush=True)
        start, script = time.perf_counter(), Path(__file__).with_name(f"{name}.py")
        subprocess.run([sys.executable, script, *sys.argv[1:]], check=True, env={**os.environ, **ONE_THREAD})  # noqa: S603
        print(f"{name}: {(time.perf_counter() - start) / 60.0:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
