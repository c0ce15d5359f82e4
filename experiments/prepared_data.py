"""Real data as the papers prepared them. They scale columns by the data, so the experiments as a whole are not private.

Files are found in the folder that CONFIDE_DATA_DIR names; Adult comes with the library.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from cells import Cell

import confide


def folder() -> Path | None:
    """Folder of the data sets; None if none is named."""
    name = os.environ.get("CONFIDE_DATA_DIR")
    return Path(name) if name else None


def is_there(cell: Cell) -> bool:
    """Whether the data set of a cell can be read."""
    return cell["data"] == "adult" or folder() is not None


def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Raw columns and labels 0 and 1 of a data set; of Adult the rows without missing values of both parts."""
    if name == "adult":
        adult = confide.datasets.load_adult()
        frame = pd.concat([adult.X_train, adult.X_test], ignore_index=True)
        labels = pd.concat([adult.y_train, adult.y_test], ignore_index=True) == ">50K"
        complete = frame.notna().all(axis=1)
        return frame[complete], labels[complete].to_numpy(dtype=int)
    file, target, positive = {
        "bank": ("bank_full.parquet", "y", "yes"),
        "kddcup99": ("kddcup99_10percent.parquet", "label", "normal."),
        "nltcs": ("nltcs.parquet", "outcome", 1),
    }[name]
    where = folder()
    assert where is not None, "asked for a data set without a folder"
    frame = pd.read_parquet(where / file)
    return frame.drop(columns=[target]), (frame[target] == positive).to_numpy(dtype=int)


@lru_cache(maxsize=2)
def scaled_rows(name: str, n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels as in Chaudhuri, Monteleoni and Sarwate (2011), in a random order of a fixed seed; the first n.

    One column for each level and a constant one; columns divided by their largest value, then rows longer than 1 shortened.
    """
    frame, labels = table_of(name)
    order = np.random.default_rng(2011).permutation(len(frame))[:n]
    columns = [np.ones(len(order))]
    for column in frame.columns:
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values):
            numbers = values.to_numpy(dtype=float)
            columns.append(numbers[order] / max(1e-300, np.abs(numbers).max()))
        else:
            columns.extend((values.to_numpy()[order] == level).astype(float) for level in sorted(values.dropna().unique()))
    rows = np.column_stack(columns)
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return rows, labels[order]
