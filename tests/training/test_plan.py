"""The plan of a fit: made from public facts, checked against the rows, and remembered where it cannot change."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide import BallBound, LogisticRegression


class Changing:
    """A row bound of a user's own, whose norm may change between two fits."""

    def __init__(self, norm):
        self.norm = norm

    @property
    def l2_norm(self):
        return self.norm

    def clip(self, rows):
        return BallBound(self.norm).clip(rows)

    def check_width(self, n_features):
        pass

    def to_dict(self):
        return {"kind": "changing"}


def test_a_row_bound_that_changed_gets_a_new_plan():
    """A cached plan would keep the noise of the old norm."""
    bound = Changing(1.0)
    model = LogisticRegression(1.0, row_norm=bound, alpha=0.1)
    first = model.plan(500, 3).noise.norm
    bound.norm = 10.0
    assert model.plan(500, 3).noise.norm > 5 * first


@pytest.mark.parametrize("norm", [-1.0, 0.0, math.nan, 1e200, np.float32(1.0), "wide", None])
def test_a_row_bound_with_an_impossible_norm_is_refused(norm):
    """Before any row, in words."""
    with pytest.raises(confide.ParameterError, match="l2_norm"):
        LogisticRegression(1.0, row_norm=Changing(norm)).plan(500, 3)
