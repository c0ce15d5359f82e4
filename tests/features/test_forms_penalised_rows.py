"""Rows in the norm of a form: clipped first, and each a function of itself alone."""

from __future__ import annotations

import numpy as np
import pytest

from confide import BallBound
from confide.features.forms import PenalisedRows, QuadraticForm
from confide.features.fourier import FourierMap

MATRIX = np.array([[2.0, 1.0], [1.0, 5.0]])
FORM = QuadraticForm.of(np.ones(3), [(1, MATRIX)])


@pytest.mark.parametrize("norm", [0.5, 3.0, None])
def test_rows_are_clipped_and_then_brought_to_the_norm(norm):
    """As the ball clips them; without a norm an encoder has bounded them."""
    rows = np.random.default_rng(0).normal(size=(50, 3))
    expected = rows if norm is None else np.asarray(BallBound(norm).clip(rows))
    found = PenalisedRows(FORM, None, norm).transform(rows)
    assert found == pytest.approx(FORM.rows(expected), rel=1e-6, abs=1e-6)
    assert found.flags.owndata
    assert found.flags.writeable


def test_a_mapped_row_depends_on_that_row_alone():
    """To the bit, whatever its size and whatever rows are beside it; nothing becomes infinite."""
    rows = np.random.default_rng(1).standard_cauchy(size=(40, 3)) * np.geomspace(1e-300, 1e300, 40)[:, None]
    rows[5] = 0.0
    mapped = PenalisedRows(FORM, None, 2.0)
    together = mapped.transform(rows)
    assert np.isfinite(together).all()
    assert np.linalg.norm(together, axis=1).max() <= 2.0 * FORM.longest_map
    for start, stop in ((0, 1), (5, 7), (11, 40)):
        assert np.array_equal(mapped.transform(rows[start:stop]), together[start:stop])


@pytest.mark.parametrize("size", [9, 130])
def test_the_clip_of_wide_rows_depends_on_each_row_alone(size):
    """To the bit: squares are added in one order, however the rows of a block lie in memory."""
    rows = np.random.default_rng(size).normal(size=(60, size))
    mapped = PenalisedRows(QuadraticForm.of(np.ones(size)), None, 0.7)
    together = mapped.transform(rows)
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.full(60, 0.7))
    assert np.array_equal(mapped.transform(np.asfortranarray(rows)), together)
    assert np.array_equal(np.concatenate([mapped.transform(row[None]) for row in rows]), together)


def test_random_features_come_before_and_stay_as_they_are():
    """The form is one of the columns before them."""

    class Beside:
        n_features = 7

        def transform(self, rows):
            return np.concatenate([rows, FourierMap(3, 4).transform(rows)], axis=1)

    rows = np.random.default_rng(2).normal(size=(6, 3))
    mapped = PenalisedRows(FORM, Beside(), None)
    assert mapped.n_features == 7
    assert np.array_equal(mapped.transform(rows)[:, 3:], FourierMap(3, 4).transform(rows))
    assert np.array_equal(mapped.transform(rows)[:, :3], FORM.rows(rows))
