"""Real data sets as raw columns with a schema each, for benchmarks. The bounds are round public figures, not the data's.

Files are found in the folder that CONFIDE_DATA_DIR names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import confide
from confide import Schema

NAMES = ("adult", "bank", "bank-additional", "nltcs", "skin", "covertype", "kddcup99")


@dataclass(frozen=True)
class Split:
    """Training and test rows as raw columns, labels as -1 and +1, and what is publicly known of the columns."""

    schema: Schema
    X_train: pd.DataFrame
    y_train: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


def folder() -> Path:
    """Folder of the data sets."""
    name = os.environ.get("CONFIDE_DATA_DIR")
    if not name:
        raise SystemExit("set CONFIDE_DATA_DIR to the folder that holds the data sets")
    return Path(name)


def load(name: str, seed: int = 0) -> Split:
    """One data set: the published split of Adult, else a random 70/30 split by `seed`."""
    if name == "adult":
        adult = confide.datasets.load_adult()
        labels = [np.where(y == ">50K", 1, -1) for y in (adult.y_train, adult.y_test)]
        schema = Schema(columns=adult.schema.columns)
        return Split(schema, adult.X_train, labels[0], adult.X_test, labels[1])
    file, target, positive, describe = _RECIPES[name]
    frame = pd.read_parquet(folder() / file)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(frame))
    if name == "kddcup99":
        order = order[:100_000]
    cut = int(0.7 * len(order))
    labels = np.where(frame[target].to_numpy() == positive, 1, -1)
    rows = frame.drop(columns=[target])
    train, test = order[:cut], order[cut:]
    schema = Schema(columns=describe(rows))
    return Split(schema, rows.iloc[train], labels[train], rows.iloc[test], labels[test])


def _bounded(**bounds: tuple[float, float, str] | tuple[float, float]) -> dict[str, Any]:
    """Number columns from (low, high) or (low, high, scale)."""
    return {
        name.replace("__", "."): {"low": b[0], "high": b[1], "scale": b[2] if len(b) > 2 else "linear"}
        for name, b in bounds.items()
    }


def _with_categories(frame: pd.DataFrame, numbers: dict[str, Any]) -> dict[str, Any]:
    """The numbers, and every other column as a category with the levels of its code book."""
    columns = dict(numbers)
    for name in frame.columns:
        if name not in columns:
            columns[name] = {"categories": sorted(map(str, frame[name].unique()))}
    return columns


def _bank(frame: pd.DataFrame) -> dict[str, Any]:
    return _with_categories(
        frame,
        _bounded(age=(18, 100), balance=(-10_000, 110_000), day=(1, 31), duration=(0, 5000, "log"),
                 campaign=(1, 100, "log"), pdays=(-1, 1000, "log"), previous=(0, 300, "log")),
    )  # fmt: skip


def _bank_additional(frame: pd.DataFrame) -> dict[str, Any]:
    return _with_categories(
        frame,
        _bounded(age=(17, 100), duration=(0, 5000, "log"), campaign=(1, 100, "log"), pdays=(0, 999), previous=(0, 10),
                 emp__var__rate=(-4, 2), cons__price__idx=(92, 95), cons__conf__idx=(-51, -26), euribor3m=(0, 6),
                 nr__employed=(4900, 5300)),
    )  # fmt: skip


def _kddcup99(frame: pd.DataFrame) -> dict[str, Any]:
    wide = {
        "duration": 60_000, "src_bytes": 1e9, "dst_bytes": 1e9, "hot": 100, "num_compromised": 1000, "num_root": 1000,
        "num_file_creations": 100, "count": 511, "srv_count": 511,
    }  # fmt: skip
    small = {"wrong_fragment": 3, "urgent": 3, "num_failed_logins": 5, "su_attempted": 2, "num_shells": 2,
             "num_access_files": 10, "dst_host_count": 255, "dst_host_srv_count": 255}  # fmt: skip
    numbers: dict[str, Any] = {name: {"low": 0, "high": high, "scale": "log"} for name, high in wide.items()}
    numbers |= {name: {"low": 0, "high": high} for name, high in small.items()}
    texts = ("protocol_type", "service", "flag")
    numbers |= {name: {"low": 0, "high": 1} for name in frame.columns if name not in numbers and name not in texts}
    return _with_categories(frame, numbers)


_COVERTYPE = {
    "Elevation": (1800, 4000), "Aspect": (0, 360), "Slope": (0, 90), "Horizontal_Distance_To_Hydrology": (0, 1500),
    "Vertical_Distance_To_Hydrology": (-200, 700), "Horizontal_Distance_To_Roadways": (0, 8000),
    "Hillshade_9am": (0, 255), "Hillshade_Noon": (0, 255), "Hillshade_3pm": (0, 255),
    "Horizontal_Distance_To_Fire_Points": (0, 8000),
}  # fmt: skip


def _covertype(frame: pd.DataFrame) -> dict[str, Any]:
    return {name: dict(zip(("low", "high"), _COVERTYPE.get(name, (0, 1)), strict=True)) for name in frame.columns}


def _clothing(frame: pd.DataFrame) -> dict[str, Any]:
    """Numbers and categories; the texts are left out."""
    named = ["Division Name", "Department Name", "Class Name"]
    levels = {name: {"categories": sorted(frame[name].dropna().unique()), "missing": True} for name in named}
    numbers = {"Age": (18, 100), "Rating": (1, 5), "Positive Feedback Count": (0, 150, "log")}
    return _bounded(**numbers) | levels


def _range(low: float, high: float) -> Callable[[pd.DataFrame], dict[str, Any]]:
    return lambda frame: {name: {"low": low, "high": high} for name in frame.columns}


_RECIPES: dict[str, tuple[str, str, Any, Callable[[pd.DataFrame], dict[str, Any]]]] = {
    "bank": ("bank_full.parquet", "y", "yes", _bank),
    "bank-additional": ("bank_additional_full.parquet", "y", "yes", _bank_additional),
    "nltcs": ("nltcs.parquet", "outcome", 1, _range(0, 1)),
    "skin": ("skin_segmentation.parquet", "label", 1, _range(0, 255)),
    "covertype": ("covertype_sample.parquet", "Cover_Type", 2, _covertype),
    "kddcup99": ("kddcup99_10percent.parquet", "label", "normal.", _kddcup99),
    "clothing": ("clothing_reviews.parquet", "Recommended IND", 1, _clothing),
}
