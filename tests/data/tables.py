"""A made-up table with every kind of column, in files of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet

import confide

SCHEMA = confide.Schema(
    columns={
        "age": {"low": 0, "high": 100, "atoms": [0, 100]},
        "debt": {"low": 0, "high": 1e5, "scale": "log", "missing": True},
        "work": {"categories": ["a", "b", "c"], "other": True},
        "size": {"categories": [1, 2, 3], "missing": True},
    },
    target={"column": "ill", "negative": "no", "positive": "yes"},
)


def made_up(n: int = 3000, age: str = "float32") -> pd.DataFrame:
    """Raw columns, gaps and unlisted categories among them, the target, and one column that no schema speaks of."""
    rng = np.random.default_rng(5)
    ages = rng.uniform(-10, 110, n).astype(age)
    debt = np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(8, 2, n))
    return pd.DataFrame(
        {
            "age": ages,
            "note": [f"secret {i}" for i in range(n)],
            "debt": debt,
            "work": rng.choice(["a", "b", "c", "d"], n),
            "size": pd.array(rng.choice([1, 2, 3], n), dtype="Int64"),
            "ill": np.where(rng.random(n) < 1 / (1 + np.exp(-(ages - 50) / 20)), "yes", "no"),
        }
    )


def written(frame: pd.DataFrame, folder: Path, kind: str) -> Any:
    """The frame in files, and what to open them by."""
    if kind == "csv":
        frame.to_csv(folder / "table.csv", index=False)
        return folder / "table.csv"
    if kind == "feather":
        feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), str(folder / "t.feather"), chunksize=700)
        return str(folder / "t.feather")
    third = len(frame) // 3
    parts = [frame.iloc[:third], frame.iloc[third : third + 1], frame.iloc[third + 1 :].astype({"age": "float64"})]
    for number, part in enumerate(parts):
        table = pa.Table.from_pandas(part, preserve_index=False)
        parquet.write_table(table, folder / f"part{number}.parquet", row_group_size=611)
    return folder / "part*.parquet"
