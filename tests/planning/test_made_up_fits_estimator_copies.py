"""Copies of estimators with other parameters."""

from __future__ import annotations

from confide import LinearSVC, PureDP
from confide.planning.made_up_fits import estimator_with


def test_a_copy_has_the_given_parameters_and_all_others_of_the_first():
    """The first estimator stays as it is."""
    first = LinearSVC(PureDP(1.0), alpha=0.1, row_norm=2.0)
    copy = estimator_with(first, alpha=0.2, mechanism="output")
    assert type(copy) is LinearSVC
    assert copy.get_params() == first.get_params() | {"alpha": 0.2, "mechanism": "output"}
    assert first.alpha == 0.1
