"""What a tape records, replays and compares; and noise of others that is seen by it."""

from __future__ import annotations

import numpy as np
import pytest

from confide.audit.replays import ControlFlowDiffers, Step, Tape, noisy, running
from confide.errors import ParameterError
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise
from confide.privacy.noise import Entropy
from confide.privacy.selection import Selection

ENTROPY = Entropy.seeded(0)


def steps_of(first, second, rows_changed=1):
    """The steps of two runs, and what they gave."""
    tape, given = Tape(rows_changed), []
    for number, run in enumerate((first, second)):
        tape.is_replayed = bool(number)
        with running(tape):
            given.append(run())
    return tape.steps, given


@pytest.mark.parametrize("factor", [0.99, 1.01])
@pytest.mark.parametrize(
    ("lattice", "apart"),
    [
        (LatticeGaussian.of_multiplier(2, -20, 1.0, 2.0), [0.6, 0.8]),
        (LatticeLaplace.of_l1(2, 1.0, 1.0), [0.5, -0.5]),
    ],
)
def test_a_distance_above_the_declared_one_is_too_far(lattice, apart, factor):
    """One percent below holds, one percent above does not; the second run gets the number of the first."""
    values = [np.zeros((1, 2)), factor * np.array([apart])]
    steps, given = steps_of(*(lambda value=value: lattice.release(value, ENTROPY) for value in values))
    assert [step.holds for step in steps] == [factor < 1.0]
    np.testing.assert_array_equal(*given)


def test_two_rows_may_differ_twice_as_far():
    """Of a person."""
    lattice = LatticeGaussian.of_multiplier(1, -20, 1.0, 2.0)
    values = [np.zeros((1, 1)), np.full((1, 1), 1.9)]
    steps, _ = steps_of(*(lambda value=value: lattice.release(value, ENTROPY) for value in values), rows_changed=2)
    assert steps[0].holds


def test_numbers_of_mistakes_may_differ_by_one():
    """In a private choice, whose outcome is that of the first run."""
    choice = Selection("exponential", 0.1)
    for other, holds in (([3, 6], True), ([3, 7], False)):
        steps, given = steps_of(lambda: choice.choose([3, 5], ENTROPY), lambda other=other: choice.choose(other, ENTROPY))
        assert [step.holds for step in steps] == [holds]
        assert given[0] == given[1]


def test_another_way_is_noticed():
    """Another step, another size, or one step more."""
    lattice = LatticeGaussian.of_multiplier(1, -20, 1.0, 2.0)

    def one():
        return lattice.release(np.zeros((1, 1)), ENTROPY)

    for other in (
        lambda: ENTROPY.below(3),
        lambda: lattice.release(np.zeros((2, 1)), ENTROPY),
        lambda: (one(), one()),
    ):
        with pytest.raises(ControlFlowDiffers):
            steps_of(one, other)


def test_orders_of_rows_are_kept_where_a_row_is_missing():
    """All other rows keep their places in the order."""
    _, (order, shorter) = steps_of(lambda: ENTROPY.permutation(6), lambda: ENTROPY.permutation(5))
    assert shorter.tolist() == [place for place in order.tolist() if place < 5]
    _, (order, longer) = steps_of(lambda: ENTROPY.permutation(5), lambda: ENTROPY.permutation(6))
    assert longer.tolist() == [*order.tolist(), 5]


def test_noise_of_others_is_seen():
    """Outside of a tape it is added; inside, distances are measured in the norm that is declared."""
    assert noisy(3.0, sensitivity=1.0, noise=np.zeros) == 3.0
    for norm, holds in (("l1", False), ("l2", True), ("max", True)):

        def sums(value, norm=norm):
            return noisy(np.array(value), sensitivity=1.5, noise=np.zeros, norm=norm, name="sums")

        steps, _ = steps_of(lambda: sums([0.0, 0.0]), lambda: sums([1.0, 1.0]))
        assert [(step.name, step.holds) for step in steps] == [("sums", holds)]


def test_unknown_norms_are_refused():
    """Before anything is added."""
    for wrong in ({"norm": "l3", "sensitivity": 1.0}, {"sensitivity": 0.0}):
        with pytest.raises(ParameterError):
            noisy(1.0, noise=np.zeros, **wrong)


def test_methods_are_restored():
    """Also after an error."""
    before = LatticeNoise.release
    with running(Tape(1)):
        assert LatticeNoise.release is not before
    with pytest.raises(ZeroDivisionError), running(Tape(1)):
        1 / 0  # noqa: B018 - it is the error that matters
    assert LatticeNoise.release is before


def test_a_distance_that_is_no_number_does_not_hold():
    """NaN is not within anything."""
    assert not Step("sum", float("nan"), 1.0).holds
