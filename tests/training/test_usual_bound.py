"""The ball of a typical row."""

from __future__ import annotations

import pytest

from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.training.alpha import usual_norm
from confide.training.usual_bound import usual_bound

COLUMNS = {"x": {"low": 0, "high": 1}, "job": {"categories": ["a", "b", "c"], "other": True}}


def test_random_features_make_the_typical_row_longer():
    """Without them it is the usual norm of the encoded columns, sqrt(1/3 + 1); features of norm 2 add 4 to its square."""
    plain, longer = (
        Encoder(Schema(COLUMNS)),
        Encoder(Schema(COLUMNS, random_features={"number": 4, "length_scale": 1, "norm": 2})),
    )
    assert usual_bound(plain).norm == usual_norm(plain.row_bound, 0.0) == pytest.approx((4 / 3) ** 0.5)
    assert usual_bound(longer).norm == pytest.approx((4 / 3 + 4) ** 0.5)
    assert longer.appended.may_have(usual_bound(longer))
