"""How far off, by rank, are quantiles of ten columns in one release? Errors in rows, of the values that were released.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.quantiles [--draws 5] [--data adult ...]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import confide

BUDGETS = {"pure .5": 0.5, "(.5, 1e-6)": confide.ApproxDP(0.5, 1e-6), "rho .01": confide.ZCDP(0.01)}
QUANTILES = {".01, .99": (0.01, 0.99), "quarters": (0.25, 0.5, 0.75), "tenths": tuple(k / 10 for k in range(1, 10))}
LINEAR, LOG, LOG10 = "linear", "log", "log10"
# The constants of `features/columns.py` were chosen on the first three. Outer bounds are what somebody would give who has
# not seen the rows.
OUTER: dict[str, dict[str, tuple[float, float, str]]] = {
    "adult_train": {
        "age": (0, 150, LINEAR), "fnlwgt": (1e3, 1e7, LOG10), "education-num": (0, 20, LINEAR),
        "capital-gain": (0, 1e7, LOG), "capital-loss": (0, 1e6, LOG), "hours-per-week": (0, 168, LINEAR),
    },
    "bank_full": {
        "age": (0, 150, LINEAR), "balance": (-1e5, 1e6, LINEAR), "day": (1, 31, LINEAR), "duration": (0, 86400, LOG),
        "campaign": (0, 1000, LOG), "pdays": (-1, 1e4, LOG), "previous": (0, 1000, LOG),
    },
    "diamonds": {
        "carat": (0, 20, LINEAR), "depth": (0, 100, LINEAR), "table": (0, 100, LINEAR), "price": (1, 1e6, LOG10),
        "x": (0, 50, LINEAR), "y": (0, 50, LINEAR), "z": (0, 50, LINEAR),
    },
    "flights": {
        "month": (1, 12, LINEAR), "day": (1, 31, LINEAR), "hour": (0, 24, LINEAR), "distance": (0, 12500, LINEAR),
        "dep_delay": (-1000, 5000, LINEAR), "arr_delay": (-1000, 5000, LINEAR),
    },
    "covertype_sample": {
        "Elevation": (0, 9000, LINEAR), "Aspect": (0, 360, LINEAR), "Slope": (0, 90, LINEAR),
        "Horizontal_Distance_To_Hydrology": (0, 1e5, LOG), "Vertical_Distance_To_Hydrology": (-1e4, 1e4, LINEAR),
        "Horizontal_Distance_To_Roadways": (0, 1e5, LOG), "Hillshade_9am": (0, 255, LINEAR),
        "Hillshade_Noon": (0, 255, LINEAR), "Hillshade_3pm": (0, 255, LINEAR),
        "Horizontal_Distance_To_Fire_Points": (0, 1e5, LOG),
    },
    "randhie": {
        "mdvis": (0, 1000, LOG), "coins": (0, 100, LINEAR), "income": (1, 1e6, LOG10), "xage": (0, 150, LINEAR),
        "educdec": (0, 50, LINEAR), "num": (0, 50, LINEAR), "disea": (0, 100, LINEAR), "mhi": (0, 100, LINEAR),
        "meddol": (0, 1e7, LOG),
    },
}  # fmt: skip


def main() -> None:
    """Print one line for each data set, budget and set of quantiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--data", nargs="*", default=list(OUTER))
    given = parser.parse_args()
    for data in given.data:
        rows, columns = table(data)
        for name, budget in BUDGETS.items():
            for which, quantiles in QUANTILES.items():
                off = np.array(list(errors(rows, columns, budget, quantiles, given.draws)))
                shown = (
                    f"mean {off.mean():6.0f}  median {np.median(off):5.0f}  nine of ten below {np.quantile(off, 0.9):6.0f}"
                )
                print(f"{data:18s} {name:11s} {which:9s} {shown}", flush=True)


def table(data: str) -> tuple[pd.DataFrame, dict[str, dict[str, Any]]]:
    """Ten columns of a data set, some of them twice where it has fewer, and their outer bounds."""
    rows = pd.read_parquet(Path(os.environ["CONFIDE_DATA_DIR"]) / f"{data}.parquet")
    taken = list(islice(cycle(OUTER[data].items()), 10))
    frame = pd.DataFrame({f"{name} {k}": rows[name].astype(float) for k, (name, _) in enumerate(taken)})
    described = [{"low": low, "high": high, "scale": scale, "missing": True} for _, (low, high, scale) in taken]
    return frame, dict(zip(frame, described, strict=True))


def errors(rows: pd.DataFrame, columns: dict[str, Any], budget: Any, quantiles: Any, draws: int) -> Iterator[float]:
    """How many rows would have to change for each released number to be its quantile."""
    cells = {name: np.sort(rows[name].dropna().to_numpy()) for name in columns}
    for _ in range(draws):
        for name, found in confide.private_bounds(rows, columns, budget=budget, quantiles=quantiles).quantiles.items():
            for q, value in found.items():
                below, up_to = (np.searchsorted(cells[name], value, side) for side in ("left", "right"))
                yield max(0.0, below - q * cells[name].size, q * cells[name].size - up_to)


if __name__ == "__main__":
    main()
