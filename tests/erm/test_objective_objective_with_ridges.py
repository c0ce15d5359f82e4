"""Each weight has a ridge of its own: values, derivatives, and what a solver is given."""

from __future__ import annotations

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.penalties import Penalty
from confide.erm.row_bounds import BallBound
from tests.privacy.problems import with_ridges

FACTORS = np.array([1.0, 3.0, 2.0, 5.0])
POINTS = np.random.default_rng(2).normal(size=(3, 4))


def objectives():
    """Three problems with one ridge of 2, and with four."""
    rng = np.random.default_rng(0)
    rows = MemorySource(ArrayBlocks(rng.normal(size=(50, 4))), rng.choice([-1, 1], size=50).astype(np.int8))
    given = (rows, LogisticLoss(), BallBound(1.0), 0.0, 2.0, rng.normal(size=(3, 4)))
    return Objective(*given), with_ridges(Objective(*given), FACTORS.tolist())


def test_each_weight_has_a_ridge_of_its_own():
    """The value has half of each ridge times the squared weight, and derivatives follow. Copies keep it."""
    plain, found = objectives()
    more = 2.0 * (FACTORS - 1.0)
    np.testing.assert_allclose(found.ridges, [2.0, 6.0, 4.0, 10.0])
    assert plain.ridges == 2.0
    added = (0.5 * (more * POINTS**2).sum(axis=1), more * POINTS, np.repeat(np.diag(more)[None], 3, axis=0))
    for each in (found, found.restrict(np.arange(3)), found.replaced(l2=2.0), found.lent()):
        for order, name in enumerate(("value", "gradient", "hessian")):
            expected = getattr(plain.evaluate(POINTS, order), name) + added[order]
            np.testing.assert_allclose(getattr(each.evaluate(POINTS, order), name), expected, rtol=1e-12)
        np.testing.assert_allclose(each.gradients(POINTS), plain.gradients(POINTS) + more * POINTS, rtol=1e-12)
    assert found.smoothness - plain.smoothness == pytest.approx(8.0)


def test_a_solver_cannot_change_the_ridges():
    """They lie in memory that cannot be made writable."""
    _, own = objectives()
    for face in (own, own.lent()):
        for change in (lambda ridges: ridges.fill(9.0), lambda ridges: ridges.setflags(write=True)):
            with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
                change(face.ridges)
        np.testing.assert_array_equal(face.ridges, 2.0 * FACTORS)


def test_groups_of_weights_share_their_ridge():
    """One factor for each group, repeated for its weights."""
    plain, _ = objectives()
    grouped = plain.replaced(penalty=Penalty(factors=(1.0, 3.0), sizes=(3, 1)))
    np.testing.assert_array_equal(grouped.ridges, [2.0, 2.0, 2.0, 6.0])
