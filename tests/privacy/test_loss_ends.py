"""The ends of the privacy loss are those that a search over slopes finds, rounded away from 0."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from confide.privacy.budgets import Neighbours
from confide.privacy.loss_ends import PairEnds, RowEnds, accounts_of
from confide.privacy.objective_account import GaussianObjective

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


@pytest.mark.parametrize("acute", [True, False])
@pytest.mark.parametrize(("bend", "flat"), [(0.0, 0.3), (0.7, 0.0), (2.5, 0.1)])
def test_the_ends_of_two_rows_are_those_of_theorem_5(bend, flat, acute):
    """Over all slopes of both rows; only the row that goes raises the upper end, and only the one that comes the lower."""
    m, a = 0.7, np.linspace(0.0, 1.0, 201)
    first, second = a[:, None, None], a[None, :, None]
    ends = PairEnds(2.0 * m, (bend, flat), ((1.0, 1.0),), acute)
    square = ((first + second) ** 2 if acute else first**2 + second**2) * 0.5 * m**2
    upper = ((first + second) * m * Z + square + bend * first * (1.0 - first)).max(axis=(0, 1)) + flat
    square = (first**2 + second**2) * 0.5 * m**2 if acute else 0.0
    lower = ((first + second) * m * Z + square - bend * second * (1.0 - second)).min(axis=(0, 1)) - flat
    assert is_just_above(ends.upper(Z), upper)
    assert is_just_above(-ends.lower(Z), -lower)
    assert (ends.two_sided, ends.n_corners) == (False, 1)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_ends_of_corners_are_those_of_theorem_5_of_several_scores(n):
    """With e = B - p M^2 above 0: a (X + e (1 - 1/n) / 2) + e (1 + 1/n) / 2 a (1 - a), and the same below with B + q M^2."""
    shift, bend, a = 0.7, 1.2, SLOPES[:, None]
    ends = RowEnds(shift, (0.5, 0.25), (bend, 0.0), (bend, 0.0), n_corners=n)
    for found, side, square in ((ends.upper(Z), 1.0, -0.5 * shift**2), (-ends.lower(Z), -1.0, 0.25 * shift**2)):
        e, x = bend + square, side * shift * Z - square
        assert is_just_above(found, (a * (x + 0.5 * e * (1 - 1 / n)) + 0.5 * e * (1 + 1 / n) * a * (1 - a)).max(axis=0))


@pytest.mark.parametrize("bend", [1e-6, 0.8, 40.0])
def test_the_charge_of_a_tapered_loss_is_the_tangent_in_the_middle(bend):
    """log(1 + B s), s = a (1 - a), touched at s = 1/8: its slope and its value at 0, each rounded up."""
    ((((_, row),), _),) = accounts_of(GaussianObjective(0.3, 0.1, math.inf, 0.0, ADD, True, bend=bend))
    with mpmath.workdps(40):
        middle = mpmath.mpf(bend) / 8
        slope, value = bend / (1 + middle), mpmath.log1p(middle) - middle / (1 + middle)
        assert 0.9 * 2.0**-40 < row.upper_cost[0] / slope - 1 < 1.1 * 2.0**-40
        assert 2.0**-52 * middle < row.upper_cost[1] - value < 2.0**-49 * middle


@pytest.mark.parametrize(
    ("n", "separable", "part"), [(2, True, 0.5**0.5), (4, True, 0.5), (2, False, 2**0.5), (5, False, 2**0.5)]
)
def test_several_scores_have_shares_of_shift_and_bend_that_are_rounded_up(n, separable, part):
    """Cubes: mu / sqrt(k) and B / sqrt(k). Softmax: mu and sqrt(2) B, and one corner less than there are classes."""
    for relation, times in ((ADD, 1.0), (REPLACE, 2.0)):
        (cases,) = accounts_of(GaussianObjective(0.3, 0.1, math.inf, 0.0, relation, True, n, separable, bend=0.8))
        rows = [row for case in cases for _, row in case]
        assert {row.n_corners for row in rows} == {1 if separable else n - 1}
        for row in rows:
            bends = sorted((row.upper_cost[0], row.lower_cost[0]))
            assert bends[0] == row.upper_cost[1] == row.lower_cost[1] == 0.0
            assert times * 0.8 * part <= bends[1] * (1.0 + 2.0**-51) <= times * 0.8 * part * (1.0 + 2.0**-38)
            shift = times * 0.3 * (part if separable else 1.0)
            assert shift <= row.shift * (1.0 + 2.0**-51) <= shift * (1.0 + 2.0**-38)
        if relation is REPLACE:
            assert [share for case in cases for share, _ in case] == [0.5, 0.5]


@pytest.mark.parametrize(("evenness", "even_bend"), [(0.6, 1.0), (0.3, 0.5), (0.8, 0.1)])
def test_lengths_of_rows_reach_from_evenness_to_1_on_the_line_of_the_theorem(evenness, even_bend):
    """Squares of four lengths at equal distances; the part of the bend is linear in the square, rounded up, at most 1."""
    facts = (0.3, 0.1, math.inf, 0.0)
    curve = GaussianObjective(*facts, ADD, True, bend=0.8, evenness=evenness, even_bend=even_bend)
    (cases,) = accounts_of(curve)
    lengths = [row.lengths for ((share, row),) in cases if share == 1.0]
    # One row has one length: up to the first, or between two; and it is in the first data set or in the second.
    assert len(lengths) == 8
    assert lengths[:4] == lengths[4:]
    assert [len(each) for each in lengths[:4]] == [1, 2, 2, 2]
    points = [lengths[0][0], *(second for _, second in lengths[1:4])]
    assert [first for first, _ in lengths[1:4]] == points[:3]
    np.testing.assert_allclose([t**2 for t, _ in points], evenness**2 + np.arange(4) / 3.0 * (1.0 - evenness**2), rtol=1e-12)
    assert points[-1] == (1.0, 1.0)
    assert max(part for _, part in points) == 1.0
    for t, part in points[:-1]:
        line = even_bend + (1.0 - even_bend) * (t**2 - evenness**2) / (1.0 - evenness**2)
        assert line * (1.0 + 2.0**-42) <= part <= line * (1.0 + 2.0**-38) or part == 1.0 <= line * (1.0 + 2.0**-50)
    replaced = GaussianObjective(*facts, REPLACE, True, bend=0.8, evenness=evenness, even_bend=even_bend)
    for ((share, pair),) in accounts_of(replaced)[0]:
        assert share == 1.0
        assert pair.lengths == (points[0], points[-1])
