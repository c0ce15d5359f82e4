"""Intervals for named coefficients: what is computed from the release, beside formulas on rows without noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.inference import interest
from confide.inference.interest import (
    Combination,
    Facts,
    InterestEvidence,
    _careful_inverse,
    corrected_weights,
    directions_of,
    uncertainty_of_interest,
)

FIRST = Combination("x0", "per 1", ("x0",), 1.0, ((0, 1.0),))
N, CONSTANT, SHORT = 5_000, 1.0, 0.4
WEIGHTS = np.array([1.0, -0.5, 0.3])


def facts_of(**changed):
    facts = {
        "n_features": 2, "intercept": CONSTANT, "constant": SHORT, "l2": 0.0, "largest_slope": 1.0,
        "largest_curvature": 0.25, "n_rows": N, "usual_norm": 0.6, "noise_in_objective": 0.0, "curvature_deviation": 0.0,
        "sums_deviations": (0.0, 0.0, 0.0), "is_laplace": False,
    }  # fmt: skip
    return Facts(**(facts | changed))


def rows_of(seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-0.5, 0.5, size=(N, 2))
    rows[:, 1] = 0.3 * rows[:, 0] + 0.7 * rows[:, 1] + 0.1
    design = np.column_stack([rows, np.full(N, CONSTANT)])
    return design, (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-design @ WEIGHTS))).astype(float)


def released(facts, weights, combinations=(FIRST,), seed=0, noise=0.0, entropy=None):
    """What would leave at these weights, with noise on the curvature alone."""
    design, labels = rows_of(seed)
    fitted = 1.0 / (1.0 + np.exp(-design @ weights))
    bends = fitted * (1.0 - fitted)
    short = design * np.array([1.0, 1.0, SHORT / CONSTANT])
    curvature = (short * bends[:, None]).T @ short
    curvature = 0.5 * (curvature + curvature.T)
    if noise:
        drawn = noise * entropy.normal(size=(3, 3))
        curvature = curvature + (drawn + drawn.T) / math.sqrt(2.0)
    near = corrected_weights(facts, weights, curvature)
    along = directions_of(facts, combinations, weights, curvature) / facts.stretch
    fitted = 1.0 / (1.0 + np.exp(-design @ near))
    parts = np.clip(design @ along.T, -1.0, 1.0)
    slopes = fitted - labels
    sums = np.stack([slopes @ parts, (fitted * (1 - fitted)) @ parts**2, slopes**2 @ parts**2], axis=1)
    return InterestEvidence(facts, combinations, weights, curvature, sums)


def minimiser(seed=0):
    """The weights without ridge and noise, and their sandwich errors."""
    design, labels = rows_of(seed)
    weights = np.zeros(3)
    for _ in range(30):
        fitted = 1.0 / (1.0 + np.exp(-design @ weights))
        hessian = (design * (fitted * (1.0 - fitted))[:, None]).T @ design
        weights = weights - np.linalg.solve(hessian, design.T @ (fitted - labels))
    inverse = np.linalg.inv(hessian)
    return weights, np.sqrt(np.diag(inverse @ ((design * ((fitted - labels) ** 2)[:, None]).T @ design) @ inverse))


def test_without_noise_one_step_leads_to_the_minimiser_and_its_errors():
    """From weights a little off; for a coefficient and for a difference of two."""
    difference = Combination("x0 - x1", "", ("x0",), 1.0, ((0, 1.0), (1, -1.0)))
    expected, errors = minimiser()
    found = uncertainty_of_interest(released(facts_of(), expected + np.array([0.05, -0.04, 0.03]), (FIRST, difference)))
    assert found.estimates == pytest.approx([expected[0], expected[0] - expected[1]], abs=3e-3)
    assert found.sampling_error[0] == pytest.approx(errors[0], rel=0.01)
    assert found.privacy_errors.shape == (0, 2)


def test_the_pull_of_the_ridge_is_taken_back():
    """Weights that a ridge shrank, and the intercept's in its own units."""
    l2, design, labels = 30.0, *rows_of()
    weights = np.zeros(3)
    for _ in range(30):
        fitted = 1.0 / (1.0 + np.exp(-design @ weights))
        hessian = (design * (fitted * (1.0 - fitted))[:, None]).T @ design + l2 * np.eye(3)
        weights = weights - np.linalg.solve(hessian, design.T @ (fitted - labels) + l2 * weights)
    expected, _ = minimiser()
    assert abs(weights[0] - expected[0]) > 0.1
    facts = facts_of(l2=l2)
    evidence = released(facts, weights)
    assert corrected_weights(facts, weights, evidence.curvature) == pytest.approx(expected, abs=0.03)
    assert uncertainty_of_interest(evidence).estimates[0] == pytest.approx(expected[0], abs=0.01)


def test_what_one_step_leaves_is_the_pull_times_the_scores_that_it_moves():
    """Without noise on the curvature the pull is H^-1 times the ridge's gradient."""
    evidence = released(facts_of(l2=30.0), WEIGHTS)
    design, _ = rows_of()
    fitted = 1.0 / (1.0 + np.exp(-design @ WEIGHTS))
    bends = fitted * (1.0 - fitted)
    pull = np.linalg.solve((design * bends[:, None]).T @ design, 30.0 * WEIGHTS)
    expected = abs(pull[0]) * math.sqrt(bends @ (design @ pull) ** 2 / bends.sum())
    release = interest._Release.of(evidence)
    assert interest._left_by_steps(release, np.array([1.0, 0.0, 0.0]), 0.0) == pytest.approx(expected, rel=1e-6)


def test_directions_do_not_meet_other_columns_and_have_the_clip_as_their_unit():
    """The curvature along a direction is the combination alone, and without noise rows spread by an eighth of the clip."""
    evidence = released(facts_of(usual_norm=0.3), WEIGHTS)
    (direction,) = directions_of(evidence.facts, (FIRST,), WEIGHTS, evidence.curvature)
    along = evidence.curvature @ direction
    assert np.abs(along[1:]).max() <= 1e-4 * along[0]
    rows = evidence.curvature[-1, -1] / SHORT**2
    assert math.sqrt(direction @ evidence.curvature @ direction / rows) == pytest.approx(1.0 / 8.0)


def test_a_spread_far_below_that_of_typical_rows_is_not_believed():
    """The clip is at least twice the spread that independent typical columns would have."""
    evidence = released(facts_of(usual_norm=10.0), WEIGHTS)
    (direction,) = directions_of(evidence.facts, (FIRST,), WEIGHTS, evidence.curvature)
    assert 8.0 * 0.25 * np.linalg.norm(direction[:2]) * 10.0 / math.sqrt(2.0) == pytest.approx(1.0)


def test_errors_of_second_order_may_be_twice_those_of_first_order():
    """Beyond, nothing is known."""
    evidence = released(facts_of(sums_deviations=(5.0, 0.0, 0.0)), WEIGHTS)

    def found(spread):
        return uncertainty_of_interest(
            replace(evidence, facts=replace(evidence.facts, noise_in_objective=spread, curvature_deviation=3.0))
        )

    spreads = np.geomspace(1.0, 1e4, 400)
    known = [np.isfinite(found(spread).sampling_error[0]) for spread in spreads]
    last = spreads[max(np.flatnonzero(known))]
    errors = found(last)
    first = math.hypot(errors.sampling_error[0], 5.0 / 20.0 * errors.sampling_error[0])
    assert known[0]
    assert not known[-1]
    assert 1.6 < errors.privacy_error[0] / first < 2.2


@pytest.fixture
def narrowest_clip(monkeypatch):
    """Directions that do not depend on the noise."""
    monkeypatch.setattr(interest, "MOST_DEVIATIONS", 3.0)


def test_the_clip_is_as_wide_as_the_noise_allows():
    """The noise may be half the sampling error of the slopes, and a twentieth of the curvature, from 3 to 8 deviations."""

    def found(of_slopes, of_curvatures):
        return interest.deviations_of_clip(facts_of(sums_deviations=(of_slopes, of_curvatures, 0.0)), 400.0)

    assert found(0.0, 0.0) == found(1.0, 0.1) == 8.0
    # Slopes of a logistic loss have the variance of the curvature: a sampling error of 20 in units of a deviation.
    assert found(2.0, 0.0) == pytest.approx(0.5 * 20.0 / 2.0)
    assert found(2.0, 0.8) == pytest.approx(5.0)
    assert found(0.0, 0.8) == pytest.approx(math.sqrt(0.05 * 400.0 / 0.8))
    assert found(20.0, 0.0) == found(0.0, 20.0) == 3.0


def test_a_wide_clip_keeps_what_a_wrong_model_estimates():
    """Where the log-odds bend and a few rows lie far out, a narrow clip moves the estimate, and a wide one does not."""
    rng = np.random.default_rng(5)
    far = np.minimum(rng.exponential(size=N) / 6.0, 1.0)
    design = np.column_stack([far, rng.uniform(-0.5, 0.5, size=N), np.full(N, CONSTANT)])
    labels = (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(1.0 - 30.0 * far * (0.4 - far)))).astype(float)
    weights = np.zeros(3)
    for _ in range(30):
        fitted = 1.0 / (1.0 + np.exp(-design @ weights))
        bends = fitted * (1.0 - fitted)
        weights = weights - np.linalg.solve((design * bends[:, None]).T @ design, design.T @ (fitted - labels))
    short = design * np.array([1.0, 1.0, SHORT / CONSTANT])
    curvature = (short * bends[:, None]).T @ short

    def estimate(of_slopes):
        facts = facts_of(sums_deviations=(of_slopes, 0.0, 0.0))
        along = directions_of(facts, (FIRST,), weights, curvature) / facts.stretch
        parts = np.clip(design @ along.T, -1.0, 1.0)
        slopes = fitted - labels
        sums = np.stack([slopes @ parts, bends @ parts**2, slopes**2 @ parts**2], axis=1)
        return uncertainty_of_interest(InterestEvidence(facts, (FIRST,), weights, curvature, sums))

    wide, narrow = estimate(0.5), estimate(100.0)
    assert abs(wide.estimates[0] - weights[0]) < 0.1 * wide.sampling_error[0]
    assert abs(narrow.estimates[0] - weights[0]) > 1.0 * wide.sampling_error[0]


def test_a_combination_in_directions_that_the_noise_hides_has_no_interval():
    """A hundredth of the combination may lie there; more may not."""
    curvature = np.diag([1.0, 900.0, 200.0])
    evidence = released(facts_of(), WEIGHTS)

    def found(angle, deviation):
        wanted = replace(FIRST, factors=((0, math.sin(angle)), (1, math.cos(angle))))
        facts = facts_of(curvature_deviation=deviation)
        along = directions_of(facts, (wanted,), WEIGHTS, curvature)
        bend = float((along @ curvature @ along.T)[0, 0])
        sums = np.array([[0.0, bend, bend]])
        return uncertainty_of_interest(
            replace(evidence, facts=facts, combinations=(wanted,), curvature=curvature, sums=sums)
        )

    def share(deviation):
        noisy = replace(evidence, facts=facts_of(curvature_deviation=deviation), curvature=curvature)
        return interest._Release.of(noisy).hidden_share(np.array([0.6, 0.8, 0.0]))

    assert share(0.6) == pytest.approx(0.36)
    assert share(0.5) == 0.0
    assert np.isinf(found(math.asin(math.sqrt(0.02)), 0.6).sampling_error[0])
    assert np.isfinite(found(math.asin(math.sqrt(0.005)), 0.6).sampling_error[0])
    assert np.isfinite(found(math.asin(math.sqrt(0.02)), 0.5).sampling_error[0])


def test_what_the_ridge_did_to_other_weights_is_an_error_too():
    """Without noise it is what is left: a ridge on other weights moves curvatures, and these the coefficient."""
    evidence = released(facts_of(l2=8.0), np.array([0.0, -3.5, 0.3]))
    found = uncertainty_of_interest(replace(evidence, facts=replace(evidence.facts, sums_deviations=(1e-6, 0.0, 0.0))))
    (direction,) = directions_of(evidence.facts, (FIRST,), evidence.weights, evidence.curvature)
    release = interest._Release.of(evidence)
    shift, rows = release.shift, evidence.curvature[-1, -1] / SHORT**2
    per_pull = direction[0] / evidence.sums[0, 1]
    # The last step leaves sqrt(shift) / .3 of what the first one left, and at most all of it.
    assert 0.1 < math.sqrt(shift) < 0.25
    crosswise = math.sqrt(shift) * shift * per_pull * math.sqrt(direction @ evidence.curvature @ direction * rows)
    own = interest._left_by_steps(release, np.array([1.0, 0.0, 0.0]), 0.0)
    assert crosswise > 0.3 * own
    assert found.privacy_error[0] == pytest.approx(math.hypot(crosswise, own), rel=0.03)


def test_scores_that_the_ridge_moved_far_leave_no_interval():
    """One step does not lead back from a mean square shift of more than .3."""
    evidence = released(facts_of(), WEIGHTS)

    def moved(l2):
        return replace(evidence, facts=replace(evidence.facts, l2=l2))

    shift = interest._Release.of(moved(1.0)).shift
    assert interest._Release.of(moved(10.0)).shift == pytest.approx(100.0 * shift)
    assert np.isfinite(uncertainty_of_interest(moved(math.sqrt(0.28 / shift))).sampling_error[0])
    assert np.isinf(uncertainty_of_interest(moved(math.sqrt(0.32 / shift))).sampling_error[0])


def test_rows_of_a_rare_level_are_not_clipped():
    """The direction of a level keeps it within the clip, however few rows have it."""
    level = replace(FIRST, has_levels=True)
    curvature = np.diag([2.0, 50.0, 1_000.0 * SHORT**2])
    curvature[0, 2] = curvature[2, 0] = 2.0 * SHORT
    facts = facts_of()
    (rare,) = directions_of(facts, (level,), WEIGHTS, curvature)
    (other,) = directions_of(facts, (FIRST,), WEIGHTS, curvature)
    assert 0.5 < abs(rare[0]) <= 1.0
    assert abs(other[0]) > 1.0


@pytest.mark.usefixtures("narrowest_clip")
@pytest.mark.parametrize("is_laplace", [False, True])
def test_the_errors_are_those_of_the_noise(is_laplace):
    """Noise on the sum of slopes and on the curvature widens intervals by what it adds; 30% more or less would fail."""
    design, _ = rows_of()
    plain = uncertainty_of_interest(released(facts_of(), WEIGHTS))
    evidence = released(facts_of(), WEIGHTS)
    (direction,) = directions_of(evidence.facts, (FIRST,), WEIGHTS, evidence.curvature)
    per_pull = direction[0] / evidence.sums[0, 1]
    noisy = replace(evidence, facts=replace(evidence.facts, sums_deviations=(20.0, 0.0, 0.0), is_laplace=is_laplace))
    found = uncertainty_of_interest(noisy)
    assert found.privacy_error[0] == pytest.approx(20.0 * per_pull, rel=0.03)
    assert found.sampling_error[0] == pytest.approx(plain.sampling_error[0])
    tail = float(np.quantile(found.privacy_errors[:, 0], 0.995)) / found.privacy_error[0]
    assert tail == pytest.approx(3.256 if is_laplace else 2.576, rel=0.08)
    # A curvature that is itself noisy: the change divided by it errs as much, in relation.
    doubtful = replace(evidence, facts=replace(evidence.facts, sums_deviations=(0.0, 0.1 * evidence.sums[0, 1], 0.0)))
    change = abs(uncertainty_of_interest(doubtful).estimates[0] - WEIGHTS[0])
    factor = 1.0 + 0.5 * (1.96**2 + 1.0) * 0.01
    assert uncertainty_of_interest(doubtful).privacy_error[0] == pytest.approx(factor * 0.1 * change, rel=0.01)
    assert uncertainty_of_interest(doubtful).sampling_error[0] == pytest.approx(factor * plain.sampling_error[0])
    assert len(design) == N


def test_the_error_of_second_order_is_that_of_a_simulation():
    """Noise on the curvature, times errors of the weights: 300 draws of both; 30% more or less would fail."""
    noise, spread = 4.0, 12.0
    facts = facts_of(curvature_deviation=noise, noise_in_objective=spread)
    expected, _ = minimiser()
    design, _ = rows_of()
    fitted = 1.0 / (1.0 + np.exp(-design @ expected))
    hessian = (design * (fitted * (1.0 - fitted))[:, None]).T @ design
    rng, errors, claimed = np.random.default_rng(3), [], []
    for _ in range(300):
        weights = expected - np.linalg.solve(hessian, spread * rng.normal(size=3))
        found = uncertainty_of_interest(released(facts, weights, noise=noise, entropy=rng))
        errors.append(found.estimates[0] - expected[0])
        claimed.append(found.privacy_error[0])
    # Errors of the weights due to sampling count in the claim, and these rows are the same in all draws.
    assert 1.0 < np.median(claimed) / np.sqrt(np.mean(np.square(errors))) < 1.4


def test_as_much_of_the_step_is_taken_as_leaves_least_noise():
    """Two estimates with independent noise: the weight itself, and what the step leads to."""
    assert interest.part_of_step(0.0, 2.0) == 1.0
    assert interest.part_of_step(1.0, 2.0) == pytest.approx(0.8)
    noise, spread = 30.0, 20.0
    facts = facts_of(noise_in_objective=spread, sums_deviations=(noise, 0.0, 0.0))
    expected, _ = minimiser()
    design, _ = rows_of()
    fitted = 1.0 / (1.0 + np.exp(-design @ expected))
    inverse = np.linalg.inv((design * (fitted * (1.0 - fitted))[:, None]).T @ design)
    rng, errors, found = np.random.default_rng(4), [], None
    for _ in range(400):
        evidence = released(facts, expected - inverse @ (spread * rng.normal(size=3)))
        evidence.sums[:, 0] += noise * rng.normal()
        found = uncertainty_of_interest(evidence)
        errors.append(found.estimates[0] - expected[0])
    (direction,) = directions_of(facts, (FIRST,), evidence.weights, evidence.curvature)
    of_step = noise * direction[0] / evidence.sums[0, 1]
    of_near = spread * float(np.linalg.norm(inverse[0]))
    least = of_step * of_near / math.hypot(of_step, of_near)
    assert least < 0.85 * of_step
    assert found.privacy_error[0] == pytest.approx(least, rel=0.05)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(least, rel=0.12)


def test_the_noise_on_the_curvature_leaves_no_bias_through_the_ridge():
    """It has a part in the direction and in the weights without the pull alike. Half or twice the correction would fail."""
    noise, l2 = 12.0, 40.0
    curvature = np.array([[210.0, 60.0, -20.0], [60.0, 160.0, 30.0], [-20.0, 30.0, 140.0]])
    facts = facts_of(l2=l2, curvature_deviation=noise, noise_in_objective=5.0)
    evidence = released(facts, np.array([2.0, -3.0, 0.5]))
    exact = np.linalg.solve(curvature, l2 * evidence.weights / facts.stretch)
    rng, errors, corrections = np.random.default_rng(6), [], []
    for _ in range(3_000):
        drawn = noise * rng.normal(size=(3, 3))
        release = interest._Release.of(replace(evidence, curvature=curvature + (drawn + drawn.T) / math.sqrt(2.0)))
        (direction,) = directions_of(facts, (FIRST,), evidence.weights, release.evidence.curvature)
        # The last step takes v . (H u) from the error u of the corrected weights, times what one unit of it means.
        error, unit = release.pull - exact, direction[0] / (direction @ curvature @ direction)
        errors.append(error[0] - unit * (direction @ curvature @ error))
        corrections.append(unit * interest._bias_of_step(release, np.array([1.0, 0.0, 0.0]), direction))
    bias = float(np.mean(errors))
    assert abs(bias) > 10.0 * float(np.std(errors)) / math.sqrt(3_000)
    assert -float(np.mean(corrections)) == pytest.approx(bias, rel=0.3)


def test_noise_on_the_curvature_moves_the_corrected_weights():
    """By the inverse curvature times the noise times the pull: a simulation; half of it would fail."""
    noise = 4.0
    facts = facts_of(l2=30.0, curvature_deviation=noise)
    rng, found = np.random.default_rng(7), []
    exact = released(facts_of(l2=30.0), WEIGHTS)
    for _ in range(400):
        evidence = released(facts, WEIGHTS, noise=noise, entropy=rng)
        found.append(interest._Release.of(evidence).near - interest._Release.of(exact).near)
    _, covariance = interest.errors_of_weights(facts, WEIGHTS, exact.curvature)
    ratio = np.std(np.array(found)[:, :2], axis=0) / np.sqrt(np.diag(covariance))[:2]
    assert ratio == pytest.approx([1.0, 1.0], rel=0.2)


def test_where_the_noise_hides_a_direction_the_whole_step_is_taken():
    """And the whole remainder of the ridge's pull is an error."""
    evidence = released(facts_of(l2=3.0, noise_in_objective=20.0, sums_deviations=(30.0, 0.0, 0.0)), WEIGHTS)
    release, wanted = interest._Release.of(evidence), np.array([1.0, 0.0, 0.0])
    assert release.hidden.size == 0
    hidden = replace(release, hidden=np.array([[0.0], [0.05], [1.0]]))
    for per_row in (0.0, 1e-3):
        parts = [interest._left_by_steps(each, wanted, per_row) for each in (release, hidden)]
        assert parts[1] == pytest.approx(parts[0]) if per_row == 0.0 else parts[1] > parts[0]
    (direction,) = directions_of(evidence.facts, (FIRST,), WEIGHTS, evidence.curvature)
    of_sums = 30.0 * direction[0] / evidence.sums[0, 1]
    assert interest._errors(hidden, 0, direction)[3] == pytest.approx(of_sums)
    assert interest._errors(release, 0, direction)[3] < 0.9 * of_sums


def test_each_entry_has_its_own_noise():
    """The constant's noise says nothing about a column that it does not meet; and older files hold one number."""
    evidence = released(facts_of(noise_in_objective=(3.0, 4.0, 50.0)), WEIGHTS)
    assert InterestEvidence.from_dict(evidence.to_dict()).facts == evidence.facts
    older = evidence.to_dict()
    older["facts"] = older["facts"] | {"noise_in_objective": 3.0}
    assert InterestEvidence.from_dict(older).facts.noise_on_weights.tolist() == [3.0, 3.0, 3.0]
    older["facts"] = older["facts"] | {"noise_in_objective": [3.0, 3.0]}
    with pytest.raises(ParameterError, match="damaged"):
        InterestEvidence.from_dict(older)
    curvature = np.diag([400.0, 300.0, 100.0])
    _, covariance = interest.errors_of_weights(evidence.facts, WEIGHTS, curvature)
    assert np.sqrt(np.diag(covariance)) == pytest.approx([3.0 / 400.0, 4.0 / 300.0, 50.0 * SHORT / 100.0])


@pytest.mark.usefixtures("narrowest_clip")
def test_what_the_noise_hides_has_no_interval():
    """Too little curvature along the direction, too much of it clipped, or too large an error of second order."""
    evidence = released(facts_of(), WEIGHTS)
    pull, bend, square = evidence.sums[0]
    facts = evidence.facts
    hidden = [
        replace(evidence, facts=replace(facts, sums_deviations=(0.0, bend / 3.9, 0.0))),
        replace(evidence, sums=np.array([[pull, 0.7 * bend, square]])),
        replace(evidence, sums=np.array([[pull, -bend, square]])),
        replace(evidence, facts=replace(facts, curvature_deviation=60.0, noise_in_objective=300.0)),
    ]
    for each in hidden:
        found = uncertainty_of_interest(each)
        assert np.isinf(found.sampling_error).all()
        assert found.p_values().tolist() == [1.0]
        assert np.isfinite(found.estimates).all()
    for kept in (
        replace(evidence, facts=replace(facts, sums_deviations=(0.0, bend / 4.1, 0.0))),
        replace(evidence, sums=np.array([[pull, 0.8 * bend, square]])),
    ):
        assert np.isfinite(uncertainty_of_interest(kept).sampling_error).all()


def test_evidence_is_the_same_after_a_file_and_damage_is_refused():
    evidence = released(facts_of(is_laplace=True, sums_deviations=(1.0, 2.0, 3.0)), WEIGHTS)
    content = evidence.to_dict()
    again = InterestEvidence.from_dict(content)
    assert again.facts == evidence.facts
    assert again.combinations == evidence.combinations
    for name in ("weights", "curvature", "sums"):
        assert np.array_equal(getattr(again, name), getattr(evidence, name))
    for damaged in (
        content | {"weights": [0.0, math.nan, 0.0]},
        content | {"sums": [[1.0, 2.0]]},
        content | {"facts": content["facts"] | {"n_rows": 0}},
        content | {"more": 1},
        content | {"combinations": [content["combinations"][0] | {"factors": [[7, 1.0]]}]},
    ):
        with pytest.raises(ParameterError):
            InterestEvidence.from_dict(damaged)


def test_a_curvature_that_is_singular_has_a_careful_inverse():
    """All levels of a category and a constant: one combination of them is told apart by no row. It gets no part."""
    levels = np.eye(3)[np.arange(30) % 3]
    rows = np.column_stack([levels, np.ones(30)])
    for scale in (1.0, 1e-3, 1e6, 3.0**0.5):
        curvature = scale * (rows.T @ rows)
        found = _careful_inverse(replace(facts_of(), curvature_deviation=0.0), curvature)
        np.testing.assert_allclose(curvature @ found @ curvature, curvature, rtol=1e-6, atol=1e-6 * scale)
        assert np.abs(found @ np.array([1.0, 1.0, 1.0, -1.0])).max() <= 1e-3 * np.abs(found).max()
