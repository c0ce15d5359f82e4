"""Settings: what a fit for more classes minimises, how much one row counts, and which sums a plan may ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge, LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.transformed_losses import ClippedSlopes
from confide.errors import ParameterError
from confide.training.settings import ScoreLoss
from tests.training.examples import least_squares, settings

HUBER = HuberHinge(0.5)
AUTOMATIC = ScoreLoss(HUBER, one_vs_rest=HUBER, if_noisy=LogisticHinge(0.5), bound_if_noisy=BallBound(0.5))


@pytest.mark.parametrize("n_classes", [0, 2])
def test_a_loss_for_two_classes_or_numbers_stays_as_it_is(n_classes):
    """With its alternative for large noise."""
    assert AUTOMATIC.for_classes(n_classes) is AUTOMATIC


def test_three_classes_have_one_loss_each_or_a_joint_one():
    """One against the rest, or softmax; the alternative for large noise is for two classes alone."""
    assert AUTOMATIC.for_classes(3) == ScoreLoss(OneVsRest(HUBER, 3), HUBER, bound_if_noisy=BallBound(0.5))
    assert ScoreLoss(LogisticLoss(), softmax=True).for_classes(4).loss == Softmax(4)
    assert settings(minimised=AUTOMATIC).for_classes(3).minimised.loss == OneVsRest(HUBER, 3)


def test_a_loss_for_two_classes_alone_refuses_three_in_its_own_words():
    """The estimator knows what to advise."""
    with pytest.raises(ParameterError, match="take another loss"):
        ScoreLoss(Hinge(), only_two="take another loss").for_classes(3)


def test_least_squares_knows_no_classes_and_asks_for_no_sums_of_a_loss():
    """Its sums are of another kind."""
    facts = least_squares()
    assert facts.for_classes(3) == facts
    assert facts.row_sums(0) == ()


def test_the_largest_weight_is_the_cap_times_the_largest_class_weight():
    """A row counts its own weight times that of its class."""
    assert settings().largest_weight == 1.0
    assert settings(largest_sample_weight=2.0, class_weight=((0, 0.5), (1, 3.0))).largest_weight == 6.0


@pytest.mark.parametrize(("share", "has_intervals"), [(0.0, False), (0.2, True), ("auto", True)])
def test_intervals_are_asked_for_by_a_share(share, has_intervals):
    """A number above 0, or the automatic one."""
    assert settings(inference_share=share).has_intervals is has_intervals


def test_the_sums_of_all_losses_that_a_plan_may_take_are_named():
    """The loss itself, the alternative on the same rows, and the alternative on shorter ones; each at order 2."""
    facts = settings(minimised=AUTOMATIC, intercept=2.0, largest_sample_weight=3.0)
    plain = replace(facts, mechanism="objective")
    pairs = [(row_sum.loss, row_sum.row_bound) for row_sum in plain.row_sums(0)]
    smooth = LogisticHinge(0.5)
    assert pairs == [(HUBER, BallBound(1.0)), (smooth, BallBound(1.0)), (smooth, BallBound(0.5))]
    assert {(row_sum.intercept, row_sum.order, row_sum.largest_weight) for row_sum in plain.row_sums(0)} == {(2.0, 2, 3.0)}
    assert len(settings(mechanism="output").row_sums(0)) == 1
    for name in ("auto", "gradient"):
        # Each may also be asked for with clipped slopes, which have gradients alone.
        sums = replace(facts, mechanism=name).row_sums(0)
        assert sums[:3] == plain.row_sums(0)
        clipped = [(row_sum.loss.loss, row_sum.row_bound, row_sum.order) for row_sum in sums[3:]]
        assert clipped == [(loss, bound, 1) for loss, bound in pairs]
        assert {type(row_sum.loss) for row_sum in sums[3:]} == {ClippedSlopes}
