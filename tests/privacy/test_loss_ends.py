"""The ends of the privacy loss are those that a search over slopes finds, rounded away from 0."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian_objective import GaussianObjective
from confide.privacy.loss_ends import PairEnds, RowEnds, accounts_of

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
Z = np.linspace(-6.0, 6.0, 61)
SLOPES = np.linspace(0.0, 1.0, 801)


def is_just_above(found, exact):
    """Not below, and above by no more than the search over slopes is coarse."""
    return (found >= exact - 1e-12).all() and (found <= exact + 1e-4).all()


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("bend", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("shift", [0.1, 1.0])
def test_the_ends_of_one_row(shift, bend, two_sided):
    """The largest and the least loss over the slopes of one row."""
    ends = RowEnds(shift, (0.5, 0.25), (bend, 0.1), (0.5 * bend, 0.2), two_sided=two_sided)
    a = (np.concatenate([-SLOPES, SLOPES]) if two_sided else SLOPES)[:, None]
    bent = np.abs(a) * (1.0 - np.abs(a))
    upper = (a * shift * Z + 0.5 * (a * shift) ** 2 + bend * bent).max(axis=0) + 0.1
    lower = (a * shift * Z + 0.25 * (a * shift) ** 2 - 0.5 * bend * bent).min(axis=0) - 0.2
    assert is_just_above(ends.upper(Z), upper)
    assert is_just_above(-ends.lower(Z), -lower)


@pytest.mark.parametrize(("evenness", "even_bend"), [(1.0, 1.0), (0.6, 1.0), (0.3, 0.5)])
def test_the_ends_cover_rows_of_every_whitened_length(evenness, even_bend):
    """Rows with a share t of the largest whitened length, whose curvature is the larger of what t and the norm allow."""
    shift, bend = 0.8, 1.5
    ends = RowEnds(shift, (0.5, 0.5), (bend, 0.0), (bend, 0.0), ((evenness, even_bend), (1.0, 1.0)))
    a, uppers, lowers = SLOPES[:, None], [], []
    for t in np.linspace(0.02, 1.0, 50):
        longer = even_bend + (1.0 - even_bend) * (t**2 - evenness**2) / max(1.0 - evenness**2, 1e-9)
        curved = bend * (even_bend * (t / evenness) ** 2 if t < evenness else longer) * a * (1.0 - a)
        line, square = a * t * shift * Z, 0.5 * (a * t * shift) ** 2
        uppers.append((line + square + curved).max(axis=0))
        lowers.append((line + square - curved).min(axis=0))
    assert (ends.upper(Z) >= np.max(uppers, axis=0) - 1e-12).all()
    assert (ends.lower(Z) <= np.min(lowers, axis=0) + 1e-12).all()
    assert (ends.upper(Z) <= np.max(uppers, axis=0) + 1e-3).all()


@pytest.mark.parametrize("acute", [True, False])
@pytest.mark.parametrize("bend", [0.0, 0.7, 2.5])
def test_the_ends_of_two_rows(bend, acute):
    """All slopes of both rows, for angles on the side of the right one: never outside of the ends, which are close."""
    m = 0.6
    ends, a = PairEnds(2.0 * m, (bend, 0.05), ((1.0, 1.0),), acute), np.linspace(0.0, 1.0, 41)[:, None]
    tightest = []
    for cosine in np.linspace(0.0, 1.0, 6) * (1 if acute else -1):
        line = [a * m * Z for _ in range(2)]
        shapes = a[:, None] ** 2 + a[None] ** 2 + 2.0 * cosine * a[:, None] * a[None]
        loss = line[0][:, None] + line[1][None] + 0.5 * m**2 * shapes
        curved = bend * a * (1.0 - a) + 0.05
        upper = (loss + curved[:, None]).max(axis=(0, 1))
        lower = (loss - curved[None]).min(axis=(0, 1))
        assert (ends.upper(Z) >= upper - 1e-12).all()
        assert (ends.lower(Z) <= lower + 1e-12).all()
        tightest.append((ends.upper(Z) - upper).max())
    assert min(tightest) < 1e-3 + 1e-3 * bend


@pytest.mark.parametrize("n", [2, 4])
def test_the_ends_of_a_simplex_cover_all_mixtures_of_its_corners(n):
    """Softmax: mixtures v of corners whose noise is Z or less, noise of length M between corners at 60 degrees."""
    shift, bend, rng = 0.7, 1.2, np.random.default_rng(0)
    ends = RowEnds(shift, (0.5, 0.5), (bend, 0.0), (bend, 0.0), n_corners=n)
    for _ in range(400):
        noise = rng.normal(size=n)
        v = rng.dirichlet(np.full(n + 1, rng.choice([0.2, 1.0])), size=50)[:, :n]
        total, s = v.sum(axis=1), v.sum(axis=1) ** 2 + (v**2).sum(axis=1)
        loss, curved = v @ noise * shift + 0.25 * shift**2 * s, 0.5 * bend * (2.0 * total - s)
        assert (loss + curved <= ends.upper(noise.max(keepdims=True)) + 1e-12).all()
        assert (loss - curved >= ends.lower(noise.min(keepdims=True)) - 1e-12).all()


def test_the_accounts_know_relations_and_losses():
    """Shifts are doubled for replace-one; a tapered loss has a bend, others c_J; softmax and cubes have their own units."""
    tapered, other = (0.3, 0.1, math.inf, 0.0), (0.3, 0.1, math.inf, 0.0)
    for relation, shift, squares in ((ADD, 0.3, (0.5, 0.5)), (REPLACE, 0.6, (0.5, 0.0))):
        (cases,) = accounts_of(GaussianObjective(*other, relation, True))
        assert {row.shift for case in cases for _, row in case} == {shift}
        (sided,) = accounts_of(GaussianObjective(*other, relation, False))
        assert {row.two_sided for case in sided for _, row in case} == {True}
        assert {row.squares for case in sided for _, row in case} == {squares}
        assert all(math.isclose(sum(share for share, _ in case), 1.0) for case in sided)
    # Two rows at any angle: the proof has one case for acute angles and one for obtuse ones.
    (angles,) = accounts_of(GaussianObjective(*tapered, REPLACE, True, bend=0.8))
    assert [pair.acute for ((_, pair),) in angles] == [True, False]
    ((((_, row),), _),) = accounts_of(GaussianObjective(*tapered, ADD, True, bend=0.8))
    slopes = np.linspace(0.0, 1.0, 10_001)
    above = row.upper_cost[0] * slopes * (1.0 - slopes) + row.upper_cost[1] - np.log1p(0.8 * slopes * (1.0 - slopes))
    assert 0.0 <= above.min() < 1e-9
    assert above.max() < 0.01
    ((((_, simplex),), _),) = accounts_of(GaussianObjective(*tapered, ADD, True, 5, False, bend=0.8))
    assert (simplex.shift, simplex.n_corners) == (0.3, 4)
    assert simplex.upper_cost[0] == pytest.approx(0.8 * math.sqrt(2.0))
    ((((_, cube),), _),) = accounts_of(GaussianObjective(*tapered, ADD, True, 4, True, bend=0.8))
    assert (cube.shift, cube.upper_cost[0]) == (pytest.approx(0.15), pytest.approx(0.4))
    # Whether the curvature of several scores is c_J is not known here.
    assert accounts_of(GaussianObjective(*tapered, ADD, True, 4, True)) == []


def test_ends_are_moved_by_more_than_their_rounding():
    """2^-44 of M (1 + M) + B, where the exact end is 0: upwards and downwards."""
    ends, margin = RowEnds(3.0, (0.5, 0.5), (2.0, 0.0), (1.0, 0.0)), 2.0**-44
    assert ends.upper(np.array([-40.0])) == pytest.approx(14.0 * margin, rel=1e-9, abs=0.0)
    assert ends.lower(np.array([40.0])) == pytest.approx(-13.0 * margin, rel=1e-9, abs=0.0)


def test_a_loss_that_is_not_tapered_costs_its_curvature_everywhere():
    """c_J on one side, nothing on the other, and no bend."""
    ((above, below),) = accounts_of(GaussianObjective(0.3, 0.1, math.inf, 0.0, ADD, True))
    assert [(row.upper_cost, row.lower_cost) for _, row in above] == [((0.0, 0.1), (0.0, 0.0))]
    assert [(row.upper_cost, row.lower_cost) for _, row in below] == [((0.0, 0.0), (0.0, 0.1))]
