"""Real data as the papers prepared them. They scale columns by the data, so the experiments as a whole are not private.

Files are found in the folder that CONFIDE_DATA_DIR names; `make data` puts them there. Adult comes with the library.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from cells import Cell

import confide

FILES = {
    "bank": "bank_full.parquet",
    "nltcs": "nltcs.parquet",
    "ipums_br": "ipums_br.parquet",
    "kddcup99": "kddcup99_10percent.parquet",
}
"""Files of the data sets, as `make data` prepares them."""
TARGETS = {"bank": ("y", "yes"), "nltcs": ("outcome", 1), "ipums_br": ("label", 1)}
"""Columns of the labels, and what is label 1."""
DENIAL_OF_SERVICE = ("back.", "land.", "neptune.", "pod.", "smurf.", "teardrop.")
"""The types of attack in KDD Cup 99 that deny service."""
THINNED = ("ipsweep.", "neptune.", "nmap.", "normal.", "portsweep.", "satan.", "smurf.")
"""The types of connection of which the published 10 percent of KDD Cup 99 keep a tenth. They keep every row of the 16
others, so that these are ten times as frequent there as in the whole set (0.94% against 0.095%)."""
KDD = {
    # name: (as frequent as in the whole set, label 1)
    "kddcup99": (True, "normal"),
    "kddcup99, 10 percent": (False, "normal"),
    "kddcup99, denial of service": (True, "denial"),
    "kddcup99, 10 percent, denial of service": (False, "denial"),
}
"""Samples and tasks. "kddcup99" has each type as often as the whole set of 4,898,431 rows, and the task of the paper."""


def folder() -> Path | None:
    """Folder of the data sets; None if none is named."""
    name = os.environ.get("CONFIDE_DATA_DIR")
    return Path(name) if name else None


def file_of(name: str) -> str:
    """The file of a data set, or of a sample of it."""
    return FILES[name.partition(",")[0]]


def is_there(cell: Cell) -> bool:
    """Whether the data set of a cell can be read."""
    where = folder()
    return cell["data"] == "adult" or (where is not None and (where / file_of(cell["data"])).is_file())


def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Raw columns and labels 0 and 1 of a data set; of Adult the rows without missing values of both parts."""
    if name == "adult":
        adult = confide.datasets.load_adult()
        frame = pd.concat([adult.X_train, adult.X_test], ignore_index=True)
        labels = pd.concat([adult.y_train, adult.y_test], ignore_index=True) == ">50K"
        complete = frame.notna().all(axis=1)
        return frame[complete], labels[complete].to_numpy(dtype=int)
    where = folder()
    assert where is not None, "asked for a data set without a folder"
    if name in KDD:
        return _connections(where, *KDD[name])
    frame, (target, positive) = pd.read_parquet(where / FILES[name]), TARGETS[name]
    return frame.drop(columns=[target]), (frame[target] == positive).to_numpy(dtype=int)


def _connections(where: Path, as_in_the_whole_set: bool, task: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The published 10 percent of KDD Cup 99, or all but nine tenths of the types of which they keep every row."""
    frame = pd.read_parquet(where / FILES["kddcup99"])
    if as_in_the_whole_set:
        kept = np.random.default_rng(1999).uniform(size=len(frame)) < np.where(frame["label"].isin(THINNED), 1.0, 0.1)
        frame = frame[kept].reset_index(drop=True)
    kind = frame.pop("label")
    labels = kind == "normal." if task == "normal" else kind.isin(DENIAL_OF_SERVICE)
    return frame, labels.to_numpy(dtype=int)


@lru_cache(maxsize=2)
def scaled_rows(name: str, n: int | None = None, encoding: str = "constant") -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels as in Chaudhuri, Monteleoni and Sarwate (2011), in a random order of a fixed seed; the first n.

    One column for each level and a constant one; columns divided by their largest value, then rows longer than 1 shortened.
    The other encodings are "no constant", and "largest", which divides all rows by the length of the longest.
    """
    frame, labels = table_of(name)
    order = np.random.default_rng(2011).permutation(len(frame))[:n]
    columns = [] if encoding == "no constant" else [np.ones(len(order))]
    for column in frame.columns:
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values):
            numbers = values.to_numpy(dtype=float)
            columns.append(numbers[order] / max(1e-300, np.abs(numbers).max()))
        else:
            columns.extend(_levels(values, order))
    rows = np.column_stack(columns)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= lengths.max() if encoding == "largest" else np.maximum(1.0, lengths)
    return rows, labels[order]


def between_0_and_1(frame: pd.DataFrame) -> np.ndarray:
    """One column for each level, and each column of numbers between 0 and 1 by its smallest and largest value."""
    columns, everywhere = [], np.arange(len(frame))
    for name in frame.columns:
        values = frame[name]
        if pd.api.types.is_numeric_dtype(values):
            numbers = values.to_numpy(dtype=float)
            columns.append((numbers - numbers.min()) / max(1e-300, np.ptp(numbers)))
        else:
            columns.extend(_levels(values, everywhere))
    return np.column_stack(columns)


def _levels(values: pd.Series, order: np.ndarray) -> list[np.ndarray]:
    ordered = values.to_numpy()[order]
    return [(ordered == level).astype(float) for level in sorted(values.dropna().unique())]
