"""Differences of risks: estimates and errors beside formulas on rows without noise, and what noise does to them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.inference.debiased import (
    Combination,
    RisksEvidence,
    points_of_risks,
    uncertainty_of_interest,
    uncertainty_of_risks,
)
from tests.inference.test_debiased import CONSTANT, FIRST, WEIGHTS, N, facts_of, minimiser, released, rows_of

LEVEL = Combination("x0: b", "against a", ("x0",), 1.0, ((0, 1.0),), True, own=(0,), base=((0, -0.2),))
"""A made-up category: its column has the entry -0.2 at the reference, and 0.8 at the level."""


def probability(scores):
    return 1.0 / (1.0 + np.exp(-scores))


def with_risks(evidence, deviations=(0.0, 0.0), count_deviation=0.0, is_laplace=False):
    """The evidence of the same release with the means that would leave at its points, without noise on them."""
    design, _ = rows_of()
    points, steps = points_of_risks(evidence)
    low, high = (probability(design @ points.T + each) for each in (0.0, steps))
    rates, bends = high * (1.0 - high), high * (1.0 - high) - low * (1.0 - low)
    k = len(steps)
    return replace(
        evidence,
        risks=RisksEvidence(
            steps, (high - low).mean(axis=0), rates.mean(axis=0), bends.T @ design / N, float(N),
            tuple(np.full(k, each) for each in deviations), count_deviation, is_laplace,
        ),
    )  # fmt: skip


def by_delta_method(before, after, weights, errors):
    """Mean difference of probabilities of two designs, and its standard error given the covariance of the weights."""
    low, high = probability(before @ weights), probability(after @ weights)
    gradient = (after.T @ (high * (1.0 - high)) - before.T @ (low * (1.0 - low))) / N
    return float(np.mean(high - low)), float(np.sqrt(gradient @ errors @ gradient + np.var(high - low) / N))


def covariance_of_minimiser():
    design, _ = rows_of()
    weights, _ = minimiser()
    fitted = probability(design @ weights)
    return weights, np.linalg.inv((design * (fitted * (1.0 - fitted))[:, None]).T @ design)


@pytest.mark.parametrize("combination", [FIRST, LEVEL], ids=["number", "level"])
def test_without_noise_they_are_those_of_the_delta_method(combination):
    """For a number every row moves by its own step; for a level all rows are given it, and then the reference."""
    weights, covariance = covariance_of_minimiser()
    design, _ = rows_of()
    before, after = design.copy(), design.copy()
    if combination is LEVEL:
        before[:, 0] = -0.2
        after[:, 0] = 0.8
    else:
        after[:, 0] += 1.0
    expected, error = by_delta_method(before, after, weights, covariance)
    found = uncertainty_of_risks(with_risks(released(facts_of(), weights, (combination,))))
    assert found.estimates[0] == pytest.approx(expected, rel=5e-3)
    # Differences among rows are bounded by their mean alone.
    assert error <= found.sampling_error[0] * 1.005 <= 1.06 * error
    assert found.privacy_errors.shape == (0, 1)


def test_noise_on_the_means_is_a_part_of_the_errors():
    """On differences, of its law; and on the number of rows, in proportion to the difference. 15% less would be seen."""
    weights, _ = covariance_of_minimiser()
    evidence = released(facts_of(slope_deviation=1e-9), weights)
    for is_laplace, tail in ((False, 1.96), (True, math.log(20.0) / math.sqrt(2.0))):
        found = uncertainty_of_risks(with_risks(evidence, deviations=(0.5, 0.0), is_laplace=is_laplace))
        assert found.privacy_error[0] == pytest.approx(0.5, rel=0.01)
        assert found.margins(0.95)[0] == pytest.approx(0.5 * tail, rel=0.01)
    counted = uncertainty_of_risks(with_risks(evidence, count_deviation=0.3))
    assert counted.privacy_error[0] == pytest.approx(0.3 * abs(counted.estimates[0]), rel=0.01)


def test_errors_of_the_coefficient_pass_at_the_rate_of_the_probability():
    """Noise on the sum of slopes moves the coefficient, and p (1 - p) times as much the difference."""
    weights, _ = covariance_of_minimiser()
    evidence = with_risks(released(facts_of(slope_deviation=60.0, sums_deviations=(2.0, 0.0, 0.0)), weights))
    rate = evidence.risks.rates[0]
    more = replace(evidence, facts=replace(evidence.facts, sums_deviations=(2.5, 0.0, 0.0)))
    errors = [
        (uncertainty_of_interest(each).privacy_error[0], uncertainty_of_risks(each).privacy_error[0])
        for each in (evidence, more)
    ]
    (of_coefficient, of_risk), (of_more, risk_of_more) = errors
    assert of_more > 1.2 * of_coefficient
    assert risk_of_more**2 - of_risk**2 == pytest.approx(rate**2 * (of_more**2 - of_coefficient**2), rel=0.03)


def test_errors_of_the_other_weights_count_by_how_much_the_rate_bends():
    """Noise on the slopes moves the other weights, of which the difference knows through the bends alone."""
    weights, _ = covariance_of_minimiser()
    evidence = with_risks(released(facts_of(slope_deviation=60.0), weights, (LEVEL,)))
    bends = evidence.risks.bends[0].copy()
    bends[0] = -0.2 * bends[2] / CONSTANT
    found = uncertainty_of_risks(evidence)
    of_coefficient = evidence.risks.rates[0] * uncertainty_of_interest(evidence).privacy_error[0]
    of_others = 60.0 * float(np.linalg.norm(np.linalg.solve(evidence.curvature, evidence.frame.matrix @ bends)))
    assert of_others > 0.2 * of_coefficient
    assert found.privacy_error[0] == pytest.approx(math.hypot(of_coefficient, of_others), rel=0.03)


def test_scores_are_drawn_together_by_what_the_noise_spread_them():
    """With weights that are mostly noise the spread of scores at the points is that of the true ones, on average."""
    weights, _ = covariance_of_minimiser()
    design, _ = rows_of()
    noise, found = 250.0, []
    rng = np.random.default_rng(4)
    for _ in range(40):
        evidence = released(facts_of(slope_deviation=noise), weights, noise=(0.0, noise), entropy=rng)
        (point,), _ = points_of_risks(evidence)
        near = evidence.frame.matrix.T @ evidence.near.weights
        found.append((np.var(design @ near), np.var(design @ point), np.mean(design @ (point - near))))
    spread, kept, shift = np.mean(found, axis=0)
    true = np.var(design @ weights)
    assert spread > 1.3 * true
    assert kept == pytest.approx(true, rel=0.25)
    assert abs(shift) < 0.05


def test_what_the_noise_hides_of_the_coefficient_leaves_a_finite_difference():
    """Its error is that of the weights before the last step."""
    weights, _ = covariance_of_minimiser()
    hidden = with_risks(released(facts_of(slope_deviation=60.0, sums_deviations=(1.0, 1e9, 1.0)), weights))
    found = uncertainty_of_risks(hidden)
    assert np.isfinite(found.margins(0.95)).all()
    assert found.total_error[0] > 0.9 * hidden.risks.rates[0] * uncertainty_of_interest(hidden).total_error[0]


def test_scores_keep_a_quarter_of_their_variance_whatever_the_noise():
    """Weights that are noise alone are halved, and the mean of the scores stays."""
    design, _ = rows_of()
    evidence = released(facts_of(slope_deviation=1_000.0), 0.3 * WEIGHTS)
    (point,), _ = points_of_risks(evidence)
    near = evidence.frame.matrix.T @ evidence.near.weights
    np.testing.assert_allclose(point[:2], 0.5 * near[:2], rtol=1e-6)
    fitted = probability(design @ (0.3 * WEIGHTS))
    bends = fitted * (1.0 - fitted)
    assert bends @ (design @ point) == pytest.approx(bends @ (design @ near), rel=1e-6)
