"""Rows that several tests of estimators share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def people():
    """600 people and whether they are above 50."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(0, 101, 600).astype(float), "job": rng.choice(["a", "b", "c"], 600)})
    return frame, (frame["age"] > 50).to_numpy().astype(int)
