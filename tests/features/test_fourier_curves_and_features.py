"""Rows with random Fourier features beside them."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.array_types import Array
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.errors import InputError, ParameterError
from confide.features.fourier import CurvesAndFeatures, FourierMap

APPENDING = CurvesAndFeatures(FourierMap(3, 8, length_scale=0.7, seed=5), 2.0, math.sqrt(3.0))


def rows_of(seed: int, n: int) -> Array:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 3))


def test_a_row_keeps_its_columns_and_gets_features_of_the_given_norm():
    """The columns come first. The features are those of the map times g. All are made in single precision."""
    rows = rows_of(0, 50)
    mapped = APPENDING.transform(rows)
    assert mapped.shape == (50, APPENDING.n_features) == (50, 11)
    assert mapped.dtype == np.float32
    assert np.array_equal(mapped[:, :3], rows.astype(np.float32))
    np.testing.assert_allclose(mapped[:, 3:], 2.0 * APPENDING.features.transform(rows), rtol=0.0, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(mapped[:, 3:].astype(float), axis=1), 2.0, rtol=1e-7)


def test_rows_of_any_numbers_stay_finite_in_single_precision():
    """No column is beyond the largest norm of a row, whatever finite numbers come."""
    mapped = APPENDING.transform(np.array([[1e300, -1e300, 0.0]]))
    np.testing.assert_array_equal(mapped[0, :3], [2.0**20, -(2.0**20), 0.0])
    assert np.isfinite(mapped).all()


def test_it_says_what_a_row_becomes():
    """As a part of a sentence, with the factor of the features."""
    assert str(APPENDING) == f"their columns and, times 2, {APPENDING.features}"


@given(st.integers(0, 1000), st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_the_ball_holds_every_row_and_no_ball_much_smaller_does(seed, g, scale):
    """Rows of norm r become rows of norm sqrt(r^2 + g^2). The bound clips none but for rounding, and clips longer rows."""
    rows = rows_of(seed, 5)
    rows *= scale / np.linalg.norm(rows, axis=1, keepdims=True)
    appending = CurvesAndFeatures(FourierMap(3, 8), g, scale)
    mapped = appending.transform(rows)
    assert appending.row_bound.norm == pytest.approx(math.hypot(scale, g), rel=1e-8)
    np.testing.assert_allclose(appending.row_bound.clip(mapped), mapped, rtol=2.0**-22)
    longer = 1.01 * mapped.astype(float)
    assert not np.shares_memory(appending.row_bound.clip(longer), longer)


def test_a_fit_may_clip_to_a_smaller_ball_and_to_no_larger_one():
    """Where noise is large, rows are clipped to the norm of a typical row with its features."""
    assert APPENDING.bound_for(1.5).norm == pytest.approx(2.5, rel=1e-8)
    assert APPENDING.may_have(APPENDING.row_bound)
    assert APPENDING.may_have(APPENDING.bound_for(1.5))
    assert not APPENDING.may_have(BallBound(2.0 * APPENDING.row_bound.norm))
    assert not APPENDING.may_have(GroupBound((11,), (1.0,)))


def test_a_row_is_mapped_alike_alone_and_in_any_block():
    """Bit for bit, so that neighbouring data sets stay neighbours."""
    rows = rows_of(1, 200)
    mapped = APPENDING.transform(rows)
    for start, stop in ((0, 1), (7, 9), (100, 200)):
        assert np.array_equal(APPENDING.transform(rows[start:stop]), mapped[start:stop])


def test_names_are_those_of_the_columns_and_then_those_of_the_features():
    """Cosines come before sines."""
    assert APPENDING.names_for(("a", "b", "c"))[:5] == ("a", "b", "c", "cos0", "cos1")
    assert len(APPENDING.names_for(("a", "b", "c"))) == APPENDING.n_features


def test_a_file_describes_it():
    """The JSON form gives an equal value."""
    assert CurvesAndFeatures.from_dict(json.loads(json.dumps(APPENDING.to_dict()))) == APPENDING


@pytest.mark.parametrize(
    "change",
    [{"feature_norm": 0.0}, {"row_norm": math.inf}, {"row_norm": "1"}, {"row_norm": True},
     {"more": 1}, {"kind": "fourier"}, {"features": {"kind": "other"}}],
)  # fmt: skip
def test_a_description_that_is_not_valid_is_refused(change):
    """Norms must be numbers in their range, and keys those that are written."""
    with pytest.raises(ParameterError):
        CurvesAndFeatures.from_dict(APPENDING.to_dict() | change)


def test_what_is_not_a_fourier_map_or_not_such_rows_is_refused():
    """The error says what is expected."""
    with pytest.raises(ParameterError, match="must be a FourierMap"):
        CurvesAndFeatures("rbf", 1.0, 1.0)
    with pytest.raises(InputError, match="rows of 3 columns"):
        APPENDING.transform(np.ones((2, 4)))


def test_it_travels_to_other_processes():
    """A pickle maps rows alike, to the bit."""
    twin = pickle.loads(pickle.dumps(APPENDING))
    assert twin == APPENDING
    rows = rows_of(2, 10)
    assert np.array_equal(twin.transform(rows), APPENDING.transform(rows))
