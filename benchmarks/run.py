"""All benchmarks that need nothing but the package, one after another; see README.md beside this file.

Run: make bench
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = [("adult_error.py",), ("large_fit.py", "--rows", "300000"), ("import_time.py",)]


def main() -> None:
    """Run each in a process of its own, one thread each."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    scripts = list(SCRIPTS)
    if os.environ.get("CONFIDE_DATA_DIR"):
        scripts.append(("automatic_alpha.py", "--draws", "8", "--data", "bank", "nltcs"))
        scripts += [("kdd_error.py", "--draws", "3"), ("sparse_error.py", "--draws", "3")]
    else:
        print("CONFIDE_DATA_DIR is not set: benchmarks on other data sets are left out")
    for script in scripts:
        print(f"\n== {' '.join(script)}", flush=True)
        subprocess.run([sys.executable, *script], check=True, env=environment, cwd=Path(__file__).parent)  # noqa: S603


if __name__ == "__main__":
    main()
