"""The benchmarks that say how fast the package is here, one after another, in about three minutes; see README.md.

The others, of accuracy and of what takes long, have scripts of their own; `--all` runs what of them needs no more than the
package, and where CONFIDE_DATA_DIR names a folder with the data sets a small part of those on them.

Run: make bench, or python benchmarks/run.py [--all]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from compare import ONE_THREAD

SPEED = [("side_by_side.py",), ("adult_latency.py",), ("import_time.py",)]
MORE = [("adult_error.py",), ("large_fit.py", "--rows", "300000"), ("private_search.py", "--draws", "2")]
ON_DATA = [
    ("automatic_alpha.py", "--draws", "8", "--data", "bank", "nltcs"),
    ("kdd_error.py", "--draws", "3"),
    ("sparse_error.py", "--draws", "3"),
]


def main() -> None:
    """Run each in a process of its own, one thread each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="also those of accuracy")
    scripts = list(SPEED)
    if parser.parse_args().all:
        scripts += MORE
        if os.environ.get("CONFIDE_DATA_DIR"):
            scripts += ON_DATA
        else:
            print("CONFIDE_DATA_DIR is not set: benchmarks on other data sets are left out")
    for script in scripts:
        print(f"\n== {' '.join(script)}", flush=True)
        subprocess.run([sys.executable, *script], check=True, env={**os.environ, **ONE_THREAD}, cwd=Path(__file__).parent)  # noqa: S603


if __name__ == "__main__":
    main()
