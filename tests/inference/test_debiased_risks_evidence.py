"""What was released for differences of risks: its units, and how it survives a file."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.inference.debiased import InterestEvidence, RisksEvidence, uncertainty_of_risks
from confide.privacy.budgets import ZCDP, Neighbours, PureDP
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.standardised_sums import RiskSums, StandardisedSums, largest_bend, largest_difference
from tests.inference.test_debiased import facts_of, released
from tests.inference.test_debiased_risk_differences import LEVEL, covariance_of_minimiser, with_risks
from tests.privacy.problems import problem

STEPS = np.array([0.7, -1.5])
SUMS = StandardisedSums(np.array([12.0, -20.0]), np.array([15.0, 9.0]), np.full((2, 3), 3.0), 80.0)


@pytest.mark.parametrize("is_private", [True, False])
def test_sums_become_means_and_their_noise_too(is_private):
    """Divided by the number of rows, which is noisy where it is private; 15% less noise would be seen."""
    facts = problem(60, intercept=1.0, neighbours=Neighbours.ADD_OR_REMOVE_ONE, high=100)
    training = ObjectivePerturbation().plan(facts, PureDP(1.0))
    plan = RiskSums.plan(training, 2, ZCDP(0.5) if is_private else PureDP(math.inf))
    evidence = RisksEvidence.of(plan, STEPS, SUMS)
    np.testing.assert_allclose(evidence.differences, [0.15, -0.25])
    np.testing.assert_allclose(evidence.rates, [0.1875, 0.1125])
    np.testing.assert_allclose(evidence.bends, 0.0375)
    noise = math.sqrt(2.0 * (1.0 + 1 / 16 + 1 / 64) + 1.0) if is_private else 0.0
    assert plan.deviation == pytest.approx(noise, rel=4e-3)
    np.testing.assert_allclose(evidence.deviations[0], noise * largest_difference(STEPS) / 80.0, rtol=4e-3)
    np.testing.assert_allclose(evidence.deviations[1], noise * 8.0 * largest_bend(STEPS) * math.sqrt(2.0) / 80.0, rtol=4e-3)
    assert evidence.count_deviation == pytest.approx(noise / 80.0, rel=4e-3)
    assert not evidence.is_laplace


def test_where_the_noise_leaves_no_row_nothing_is_divided_by_zero():
    """A noisy number of rows below 1 counts as 1."""
    facts = problem(60, intercept=1.0, neighbours=Neighbours.ADD_OR_REMOVE_ONE, high=100)
    plan = RiskSums.plan(ObjectivePerturbation().plan(facts, PureDP(1.0)), 2, PureDP(0.5))
    evidence = RisksEvidence.of(plan, STEPS, StandardisedSums(SUMS.differences, SUMS.rates, SUMS.bends, -3.0))
    assert evidence.n_rows == 1.0
    assert evidence.is_laplace


def test_evidence_survives_a_file_and_damage_is_found():
    """Written and read again it says the same; other shapes and numbers are refused."""
    weights, _ = covariance_of_minimiser()
    evidence = with_risks(released(facts_of(slope_deviation=1.0), weights, (LEVEL,)), deviations=(0.01, 0.02))
    again = InterestEvidence.from_dict(evidence.to_dict())
    assert again.combinations == evidence.combinations
    np.testing.assert_array_equal(uncertainty_of_risks(again).intervals(), uncertainty_of_risks(evidence).intervals())
    for name, value in (("rates", [0.1, 0.2]), ("n_rows", 0.0), ("differences", [math.nan])):
        with pytest.raises(ParameterError, match="do not fit each other"):
            RisksEvidence.from_dict(evidence.risks.to_dict() | {name: value})
    with pytest.raises(ParameterError, match="another version"):
        RisksEvidence.from_dict(evidence.risks.to_dict() | {"more": 1})
    assert largest_difference(evidence.risks.steps)[0] >= abs(evidence.risks.differences[0])
