"""Mechanisms side by side."""

from __future__ import annotations

import pytest

from confide import ApproxDP, LinearSVC, LogisticRegression, ParameterError, Ridge
from confide.planning.advice import compare_mechanisms


def test_mechanisms_are_ordered_by_what_they_cost():
    """At one alpha, with the reason where one cannot be used."""
    rows = compare_mechanisms(LogisticRegression(1.0, alpha=0.01), 10_000, 5)
    distances = [row.plan.expected_distance for row in rows if row.plan]
    assert {row.mechanism for row in rows} == {"objective", "output", "output-laplace", "gradient"}
    assert distances == sorted(distances)
    hinge = {row.mechanism: row for row in compare_mechanisms(LinearSVC(1.0, alpha=0.01, loss="hinge"), 10_000, 5)}
    assert hinge["objective"].plan is None
    assert "smooth" in hinge["objective"].refusal


@pytest.mark.parametrize(
    "estimator",
    [Ridge(10.0, target_bound=1.0, intervals=True), LogisticRegression(float("inf"))],
    ids=["sums", "no privacy"],
)
def test_models_without_noise_of_this_kind_are_refused(estimator):
    """With the estimators that it is for."""
    with pytest.raises(ParameterError, match="loss of the score"):
        compare_mechanisms(estimator, 1000, 5)


def test_a_mechanism_that_the_budget_does_not_admit_is_compared_with_the_others():
    """Though it is the estimator's own: the refusal stands beside the plans."""
    rows = compare_mechanisms(LogisticRegression(ApproxDP(1.0, 1e-6), mechanism="output-laplace"), 10_000, 5)
    assert {row.mechanism for row in rows if row.plan} == {"objective", "output", "gradient"}
    assert "pure" in next(row.refusal for row in rows if row.mechanism == "output-laplace")
