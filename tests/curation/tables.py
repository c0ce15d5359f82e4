"""The tables that tests of the check read, and their schema."""

from __future__ import annotations

import numpy as np
import pandas as pd

from confide import Schema

SCHEMA = Schema(
    columns={
        "age": {"low": 20, "high": 60},
        "Größe (cm)": {"low": 100, "high": 220, "missing": True},
        "work": {"categories": ["private", "state"], "other": True},
        "sex": {"categories": ["F", "M"]},
    },
    target={"column": "ill", "negative": "no", "positive": "yes"},
)


def people(n_rows: int = 200) -> pd.DataFrame:
    """Rows that a fit takes: a tenth of the heights is missing, and a quarter of the works is not listed."""
    at = np.arange(n_rows)
    return pd.DataFrame(
        {
            "age": 20 + at % 41,
            "Größe (cm)": np.where(at % 10 == 0, np.nan, 150.5 + at % 40),
            "work": np.array(["private", "state", "private", "SECRETVALUE"])[at % 4],
            "sex": np.array(["F", "M"])[at % 2],
            "ill": np.array(["no", "yes"])[at // 2 % 2],
        }
    )
