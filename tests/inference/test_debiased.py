"""Intervals for named coefficients: what is computed from the release, beside formulas on rows without noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.erm.moment_sums import Frame
from confide.errors import ParameterError
from confide.inference import debiased
from confide.inference.debiased import (
    Combination,
    Facts,
    InterestEvidence,
    directions_of,
    in_frame,
    near_minimiser,
    supposed_of,
    uncertainty_of_interest,
)

FIRST = Combination("x0", "per 1", ("x0",), 1.0, ((0, 1.0),))
N, CONSTANT = 5_000, 1.0
WEIGHTS = np.array([1.0, -0.5, 0.3])


def facts_of(**changed):
    facts = {
        "n_features": 2, "intercept": CONSTANT, "row_norm": 0.0, "largest_slope": 1.0, "largest_curvature": 0.25,
        "n_rows": N, "curvature_deviation": 0.0, "slope_deviation": 0.0, "sums_deviations": (0.0, 0.0, 0.0),
        "is_laplace": False,
    }  # fmt: skip
    return Facts(**(facts | changed))


def rows_of(seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-0.5, 0.5, size=(N, 2))
    rows[:, 1] = 0.3 * rows[:, 0] + 0.7 * rows[:, 1] + 0.1
    design = np.column_stack([rows, np.full(N, CONSTANT)])
    return design, (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-design @ WEIGHTS))).astype(float)


def frame_of(design, length=math.inf):
    """The frame of the rows without noise."""
    rows = design[:, :-1]
    return Frame(tuple(rows.mean(axis=0).tolist()), tuple(rows.std(axis=0).tolist()), 1.0, CONSTANT, length)


def sums_along(design, labels, weights, along):
    """The three sums along directions for rows as they are."""
    fitted = 1.0 / (1.0 + np.exp(-design @ weights))
    parts, slopes = np.clip(design @ along.T, -1.0, 1.0), fitted - labels
    return np.stack([slopes @ parts, (fitted * (1.0 - fitted)) @ parts**2, slopes**2 @ parts**2], axis=1)


def released(facts, weights, combinations=(FIRST,), noise=(0.0, 0.0), entropy=None, rows=None):
    """What would leave if curvature and slopes were taken at these weights, with noise on both alone."""
    design, labels = rows_of() if rows is None else rows
    frame = frame_of(design)
    own, fitted = design @ frame.matrix.T, 1.0 / (1.0 + np.exp(-design @ weights))
    curvature, slopes = (own * (fitted * (1.0 - fitted))[:, None]).T @ own, own.T @ (fitted - labels)
    curvature = 0.5 * (curvature + curvature.T)
    if entropy is not None:
        drawn = noise[0] * entropy.normal(size=curvature.shape)
        curvature = curvature + (drawn + drawn.T) / math.sqrt(2.0)
        slopes = slopes + noise[1] * entropy.normal(size=len(slopes))
    start = in_frame(frame, weights)
    near = near_minimiser(facts, start, curvature, slopes)
    along = directions_of(facts, combinations, frame, near, curvature) @ frame.matrix
    sums = sums_along(design, labels, frame.matrix.T @ near.weights, along)
    return InterestEvidence(facts, combinations, weights, frame, start, curvature, slopes, sums)


def minimiser(rows=None):
    """The weights without ridge and noise, and their sandwich errors."""
    design, labels = rows_of() if rows is None else rows
    weights = np.zeros(design.shape[1])
    for _ in range(30):
        fitted = 1.0 / (1.0 + np.exp(-design @ weights))
        hessian = (design * (fitted * (1.0 - fitted))[:, None]).T @ design
        weights = weights - np.linalg.solve(hessian, design.T @ (fitted - labels))
    inverse = np.linalg.inv(hessian)
    return weights, np.sqrt(np.diag(inverse @ ((design * ((fitted - labels) ** 2)[:, None]).T @ design) @ inverse))


def skewed():
    """Columns whose mean lies forty of their spreads from 0, as amounts in a table of loans have them."""
    rng = np.random.default_rng(3)
    rows = np.minimum(rng.exponential(size=(N, 2)) * 0.02 - 0.9, 1.0)
    design = np.column_stack([rows, np.full(N, CONSTANT)])
    scores = 20.0 * (rows[:, 0] + 0.88) - 15.0 * (rows[:, 1] + 0.88) - 0.5
    return design, (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-scores))).astype(float)


def test_without_noise_the_steps_lead_to_the_minimiser_and_its_errors():
    """From weights that a ridge pulled to 0; for a coefficient and for a difference of two."""
    difference = Combination("x0 - x1", "", ("x0",), 1.0, ((0, 1.0), (1, -1.0)))
    expected, errors = minimiser()
    evidence = released(facts_of(), 0.5 * expected, (FIRST, difference))
    found = uncertainty_of_interest(evidence)
    assert found.estimates == pytest.approx([expected[0], expected[0] - expected[1]], abs=3e-3)
    assert found.sampling_error[0] == pytest.approx(errors[0], rel=0.01)
    assert supposed_of(evidence) == ()


@pytest.mark.parametrize("moved", [0.0, 0.9])
def test_a_shift_of_a_column_changes_nothing(moved):
    """Estimates and errors are those of the column where it was: noise and all. The intercept alone differs."""
    design, labels = skewed()
    design = design + np.array([moved, 0.0, 0.0])
    weights, errors = minimiser((design, labels))
    noise = {"curvature_deviation": 10.0, "slope_deviation": 15.0, "sums_deviations": (10.0, 3.0, 10.0)}
    start = np.array([0.0, 0.0, 0.0])
    evidence = released(
        facts_of(**noise), start, noise=(10.0, 15.0), entropy=np.random.default_rng(0), rows=(design, labels)
    )
    found = uncertainty_of_interest(evidence)
    assert supposed_of(evidence) == ()
    assert errors[0] < found.total_error[0] < 2.5 * errors[0]
    assert abs(found.estimates[0] - weights[0]) < 3.0 * found.total_error[0]
    start[2] += moved * start[0]
    unmoved = released(facts_of(**noise), start, noise=(10.0, 15.0), entropy=np.random.default_rng(0), rows=skewed())
    expected = uncertainty_of_interest(unmoved)
    assert found.estimates == pytest.approx(expected.estimates, rel=1e-6)
    assert found.total_error == pytest.approx(expected.total_error, rel=1e-6)


def test_weights_near_the_minimiser_err_as_is_said():
    """Noise on slopes and on curvature: 400 draws of both; 20% more or less would fail."""
    of_curvature, of_slopes = 12.0, 25.0
    facts = facts_of(curvature_deviation=of_curvature, slope_deviation=of_slopes)
    rng = np.random.default_rng(7)
    noise = {"noise": (of_curvature, of_slopes), "entropy": rng}
    found = [released(facts, 0.3 * WEIGHTS, **noise).near.weights for _ in range(400)]
    claimed = np.sqrt(np.diag(released(facts, 0.3 * WEIGHTS).near.noise))
    assert np.std(np.array(found), axis=0) / claimed == pytest.approx(np.ones(3), rel=0.2)


def test_what_the_noise_hides_is_replaced_by_what_is_supposed():
    """A direction without curvature: the weight is 0 there, and may be about 1 for each spread of the column."""
    curvature = np.diag([0.0, 900.0, 600.0])
    facts = facts_of(curvature_deviation=30.0, slope_deviation=30.0)
    near = near_minimiser(facts, np.array([0.7, 0.2, 0.1]), curvature, np.zeros(3))
    assert near.weights[0] == pytest.approx(0.0, abs=1e-6)
    assert math.sqrt(near.noise[0, 0]) == pytest.approx(1.0, rel=0.01)
    assert math.sqrt(near.noise[1, 1]) < 0.06
    wide = near_minimiser(facts, np.zeros(3), np.diag([900.0, 900.0, 0.0]), np.zeros(3))
    assert math.sqrt(wide.noise[2, 2]) == pytest.approx(3.0, rel=0.01)


def test_directions_do_not_meet_other_columns_and_have_the_clip_as_their_unit():
    """The curvature along a direction is the combination alone, and without noise rows spread by an eighth of the clip."""
    evidence = released(facts_of(), WEIGHTS)
    near, frame = evidence.near, evidence.frame
    (direction,) = directions_of(evidence.facts, (FIRST,), frame, near, evidence.curvature)
    along = evidence.curvature @ direction
    assert np.abs(along[1:]).max() <= 1e-4 * along[0]
    rows = debiased.curvature_of_rows(evidence.facts, evidence.curvature)
    assert math.sqrt(direction @ evidence.curvature @ direction / rows) == pytest.approx(1.0 / 8.0)


def test_rows_are_not_clipped_farther_out_than_they_can_lie():
    """An encoded column from -1 to 1 reaches 1 + |mean| over its spread, beside what other columns move rows by."""
    encoded = replace(FIRST, usual_spread=1.0 / 3.0, usual_clip=3.0**0.5)
    evidence = released(facts_of(), WEIGHTS)
    wide, capped = (
        directions_of(evidence.facts, (one,), evidence.frame, evidence.near, evidence.curvature)[0]
        for one in (FIRST, encoded)
    )
    ratio = wide[0] / capped[0]
    own = (1.0 + abs(evidence.frame.centre[0])) / evidence.frame.spreads[0]
    others = capped.copy()
    others[0] = 0.0
    rows = debiased.curvature_of_rows(evidence.facts, evidence.curvature)
    rest = math.sqrt(max(others @ evidence.curvature @ others / rows, (0.25 * np.linalg.norm(others[:2])) ** 2))
    assert ratio < 0.8
    assert own * abs(capped[0]) + 4.0 * rest == pytest.approx(1.0)


def test_no_clip_is_wider_than_the_bound_on_rows():
    """Rows of norm at most 1 lie at most |v| + |constant| along a direction v, however few of them are that long."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N, 2))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    design = np.column_stack([rows, np.full(N, CONSTANT)])
    data = design, (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-design @ WEIGHTS))).astype(float)
    evidence = released(facts_of(row_norm=1.0), WEIGHTS, rows=data)
    matrix = evidence.frame.matrix
    (direction,) = directions_of(evidence.facts, (FIRST,), evidence.frame, evidence.near, evidence.curvature) @ matrix
    assert np.linalg.norm(direction[:2]) + CONSTANT * abs(direction[2]) == pytest.approx(1.0)
    assert np.abs(design @ direction).max() > 0.9
    wide = replace(evidence.facts, row_norm=0.0)
    (other,) = directions_of(wide, (FIRST,), evidence.frame, evidence.near, evidence.curvature) @ matrix
    assert np.linalg.norm(other) < 0.25 * np.linalg.norm(direction)


def test_part_of_a_step_leaves_less_noise_than_all_or_nothing():
    """Weights before the last step and the step are two estimates with noise of their own: 400 draws, less than either."""
    noise, of_sums = (12.0, 40.0), 12.0
    facts = facts_of(curvature_deviation=noise[0], slope_deviation=noise[1], sums_deviations=(of_sums, 0.0, of_sums))
    rng, found, expected = np.random.default_rng(4), [], minimiser()[0][0]
    for _ in range(400):
        evidence = released(facts, WEIGHTS, noise=noise, entropy=rng)
        evidence = replace(evidence, sums=evidence.sums + of_sums * rng.normal(size=(1, 3)) * np.array([1.0, 0.0, 0.0]))
        ((estimate, _, gaussian, sums, is_known),) = debiased._errors_of_all(evidence)
        assert is_known
        near, frame = evidence.near, evidence.frame
        (direction,) = directions_of(facts, (FIRST,), frame, near, evidence.curvature)
        step = direction[0] / frame.spreads[0] / evidence.sums[0, 1] * evidence.sums[0, 0]
        before = near.weights[0] / frame.spreads[0]
        found.append([estimate - expected, before - expected, before - step - expected, math.hypot(gaussian, sums)])
    part, before, whole, claimed = np.sqrt(np.mean(np.square(found), axis=0))
    assert part < 0.95 * min(before, whole)
    assert 0.85 < claimed / part < 1.5


def test_rows_of_a_rare_level_are_not_clipped():
    """The direction of a level keeps it within the clip, however few rows have it."""
    level = replace(FIRST, has_levels=True, usual_spread=0.25, usual_clip=0.5)
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(size=N) < 0.004, rng.uniform(-0.5, 0.5, size=N)]).astype(float)
    design = np.column_stack([rows, np.full(N, CONSTANT)])
    labels = (rng.uniform(size=N) < 0.5).astype(float)
    facts = facts_of(sums_deviations=(20.0, 5.0, 20.0))
    evidence = released(facts, np.zeros(3), (level,), rows=(design, labels))
    (direction,) = directions_of(facts, (level,), evidence.frame, evidence.near, evidence.curvature) @ evidence.frame.matrix
    assert np.abs(design @ direction).max() <= 1.0
    assert np.abs(design @ direction).max() > 0.7


def test_the_clip_is_as_wide_as_the_noise_allows():
    """The noise may be half the sampling error of the slopes, and a twentieth of the curvature, from 5 to 8 deviations."""

    def found(of_slopes, of_curvatures):
        return debiased.deviations_of_clip(facts_of(sums_deviations=(of_slopes, of_curvatures, 0.0)), 400.0)

    assert found(0.0, 0.0) == found(1.0, 0.1) == 8.0
    # Slopes of a logistic loss have the variance of the curvature: a sampling error of 20 in units of a deviation.
    assert found(1.6, 0.0) == pytest.approx(0.5 * 20.0 / 1.6)
    assert found(1.6, 0.5) == pytest.approx(0.5 * 20.0 / 1.6)
    assert found(0.0, 0.5) == pytest.approx(math.sqrt(0.05 * 400.0 / 0.5))
    assert found(20.0, 0.0) == found(0.0, 20.0) == 5.0


def test_a_wide_clip_keeps_what_a_wrong_model_estimates(monkeypatch):
    """Where the log-odds bend and a few rows lie far out, a clip at 2 deviations moves the estimate, one at 8 does not."""
    rng = np.random.default_rng(5)
    far = np.minimum(rng.exponential(size=N) / 6.0, 1.0)
    design = np.column_stack([far, rng.uniform(-0.5, 0.5, size=N), np.full(N, CONSTANT)])
    labels = (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(1.0 - 30.0 * far * (0.4 - far)))).astype(float)
    weights, _ = minimiser((design, labels))
    wide = uncertainty_of_interest(released(facts_of(), weights, rows=(design, labels)))
    monkeypatch.setattr(debiased, "FEWEST_DEVIATIONS", 2.0)
    monkeypatch.setattr(debiased, "MOST_DEVIATIONS", 2.0)
    narrow = uncertainty_of_interest(released(facts_of(), weights, rows=(design, labels)))
    assert abs(wide.estimates[0] - weights[0]) < 0.1 * wide.sampling_error[0]
    assert abs(narrow.estimates[0] - weights[0]) > 1.0 * wide.sampling_error[0]


@pytest.mark.parametrize("is_laplace", [False, True])
def test_the_errors_are_those_of_the_noise(is_laplace):
    """Noise on the sum of slopes and on the curvature widens intervals by what it adds; 15% more or less would fail."""
    expected, _ = minimiser()
    # Weights before the last step that are hardly known, so that it is taken.
    evidence = released(facts_of(slope_deviation=500.0), expected)
    plain = uncertainty_of_interest(evidence)
    (direction,) = directions_of(evidence.facts, (FIRST,), evidence.frame, evidence.near, evidence.curvature)
    reach = direction[0] / evidence.frame.spreads[0]
    noisy = replace(evidence, facts=replace(evidence.facts, sums_deviations=(8.0, 0.0, 0.0), is_laplace=is_laplace))
    # The clip depends on the noise too: the sums are those along the direction that would have been taken.
    (other,) = directions_of(noisy.facts, (FIRST,), noisy.frame, noisy.near, noisy.curvature)
    design, labels = rows_of()
    weights = noisy.frame.matrix.T @ noisy.near.weights
    noisy = replace(noisy, sums=sums_along(design, labels, weights, other[None] @ noisy.frame.matrix))
    per_pull = other[0] / noisy.frame.spreads[0] / noisy.sums[0, 1]
    found = uncertainty_of_interest(noisy)
    assert found.privacy_error[0] == pytest.approx(8.0 * per_pull, rel=0.06)
    assert found.sampling_error[0] == pytest.approx(plain.sampling_error[0], rel=5e-3)
    tail = float(np.quantile(found.privacy_errors[:, 0], 0.995)) / found.privacy_error[0]
    assert tail == pytest.approx(3.256 if is_laplace else 2.576, rel=0.08)
    # A curvature that is itself noisy: the change divided by it errs as much, in relation.
    pulled = replace(evidence, sums=evidence.sums + np.array([[30.0, 0.0, 0.0]]))
    doubtful = replace(pulled, facts=replace(pulled.facts, sums_deviations=(0.0, 0.05 * evidence.sums[0, 1], 0.0)))
    change = (30.0 + evidence.sums[0, 0]) * reach / evidence.sums[0, 1]
    factor = 1.0 + 0.5 * (1.96**2 + 1.0) * 0.05**2
    errors = [uncertainty_of_interest(each).privacy_error[0] for each in (pulled, doubtful)]
    assert math.sqrt(errors[1] ** 2 - errors[0] ** 2) == pytest.approx(factor * 0.05 * change, rel=0.1)


def test_the_error_of_second_order_is_that_of_a_simulation():
    """Noise on the curvature, times errors of the weights: 300 draws of both; a third less would fail."""
    of_curvature, of_slopes = 20.0, 40.0
    facts = facts_of(curvature_deviation=of_curvature, slope_deviation=of_slopes)
    expected, _ = minimiser()
    rng, errors, claimed = np.random.default_rng(3), [], []
    for _ in range(300):
        found = uncertainty_of_interest(released(facts, expected, noise=(of_curvature, of_slopes), entropy=rng))
        errors.append(found.estimates[0] - expected[0])
        claimed.append(found.privacy_error[0])
    # Errors of the weights due to sampling count in the claim, and these rows are the same in all draws. So does a curvature
    # that changes along the step, while in these rows both sides of it cancel.
    assert 1.0 < np.median(claimed) / np.sqrt(np.mean(np.square(errors))) < 2.0


def test_the_noise_on_the_curvature_leaves_no_bias_through_the_pull():
    """It has a part in the direction and in the weights alike. Half or twice the correction would fail."""
    noise = 12.0
    curvature = np.array([[210.0, 60.0, -20.0], [60.0, 160.0, 30.0], [-20.0, 30.0, 140.0]])
    facts = facts_of(curvature_deviation=noise, slope_deviation=0.1)
    frame = Frame((0.0, 0.0), (1.0, 1.0), 1.0, 1.0, math.inf)
    pull = np.array([1.2, -1.5, 0.9])
    slopes = -curvature @ pull
    rng, errors, corrections = np.random.default_rng(6), [], []
    for _ in range(3_000):
        drawn = noise * rng.normal(size=(3, 3))
        noisy = curvature + (drawn + drawn.T) / math.sqrt(2.0)
        near = near_minimiser(facts, -pull, noisy, slopes)
        (direction,) = directions_of(facts, (FIRST,), frame, near, noisy)
        # The last step takes v . (H u) from the error u of the weights, times what one unit of it means.
        error, unit = near.weights, direction[0] / (direction @ curvature @ direction)
        errors.append(error[0] - unit * (direction @ curvature @ error))
        corrections.append(unit * debiased._bias_of_step(facts, near, np.array([1.0, 0.0, 0.0]), direction))
    bias = float(np.mean(errors))
    assert abs(bias) > 8.0 * float(np.std(errors)) / math.sqrt(3_000)
    assert -float(np.mean(corrections)) == pytest.approx(bias, rel=0.35)


def test_what_a_curvature_from_farther_away_leaves_is_an_error():
    """A fifth of the root of the mean square shift of scores, times errors of scores, for each row."""
    evidence = released(facts_of(sums_deviations=(1e-6, 0.0, 0.0)), 0.1 * WEIGHTS)
    near, curvature = evidence.near, evidence.curvature
    rows = debiased.curvature_of_rows(evidence.facts, curvature)
    (direction,) = directions_of(evidence.facts, (FIRST,), evidence.frame, near, curvature)
    per_pull = direction[0] / evidence.frame.spreads[0] / evidence.sums[0, 1]
    of_scores = float(np.sum(near.covariance * curvature)) / rows
    left = 0.2 * math.sqrt(near.shift * (near.shift**2 + of_scores) * rows)
    expected = left * per_pull * math.sqrt(direction @ curvature @ direction)
    assert near.shift == pytest.approx(float(near.pull @ curvature @ near.pull) / rows)
    lost = 1.0 - evidence.sums[0, 1] / (direction @ curvature @ direction)
    assert lost < 0.05
    assert uncertainty_of_interest(evidence).privacy_error[0] == pytest.approx(
        math.hypot(expected, max(lost, 0.0) * uncertainty_of_interest(evidence).estimates[0]), rel=0.1
    )


def test_a_long_step_errs_by_how_much_the_curvature_may_change_along_it():
    """Half of the step, times how far it moves scores: by one standard deviation of rows along the direction."""
    evidence = released(facts_of(slope_deviation=5_000.0), WEIGHTS)
    near, curvature = evidence.near, evidence.curvature
    (direction,) = directions_of(evidence.facts, (FIRST,), evidence.frame, near, curvature)
    reach = direction[0] / evidence.frame.spreads[0]
    rows = debiased.curvature_of_rows(evidence.facts, curvature)
    found = []
    for pull in (30.0, 60.0):
        moved = replace(evidence, sums=evidence.sums + np.array([[pull, 0.0, 0.0]]))
        change = -reach / moved.sums[0, 1] * moved.sums[0, 0]
        by_scores = abs(change) / reach * math.sqrt(direction @ curvature @ direction / rows)
        found.append((uncertainty_of_interest(moved).privacy_error[0], 0.5 * abs(change) * by_scores))
    (less, less_expected), (more, more_expected) = found
    assert supposed_of(moved) == ()
    assert math.sqrt(more**2 - less**2) == pytest.approx(math.sqrt(more_expected**2 - less_expected**2), rel=0.1)


HIDDEN = {
    "too little curvature along the direction": lambda e: replace(
        e, facts=replace(e.facts, slope_deviation=500.0, sums_deviations=(0.0, e.sums[0, 1] / 3.9, 0.0))
    ),
    "a negative one": lambda e: replace(
        e, facts=replace(e.facts, slope_deviation=500.0), sums=e.sums * np.array([1.0, -1.0, 1.0])
    ),
    "errors of second order": lambda e: replace(
        e, facts=replace(e.facts, curvature_deviation=500.0, slope_deviation=2_000.0)
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_the_noise_hides_has_a_finite_interval_that_says_what_it_rests_on(name):
    """The weights before the last step, with all their errors and what is supposed of them."""
    evidence = HIDDEN[name](released(facts_of(), WEIGHTS))
    assert supposed_of(evidence) == ("x0",)
    found, near = uncertainty_of_interest(evidence), evidence.near
    wanted = evidence.frame.matrix @ np.array([1.0, 0.0, 0.0])
    assert found.estimates[0] == pytest.approx(float(wanted @ near.weights))
    assert np.isfinite(found.intervals(0.95)).all()
    assert found.total_error[0] >= math.sqrt(wanted @ near.covariance @ wanted) * (1.0 - 1e-3)


def test_a_curvature_that_is_just_told_from_its_noise_leads_a_step_on():
    """At 4.1 deviations of its noise, where 4 are asked for."""
    evidence = released(facts_of(slope_deviation=2000.0), WEIGHTS)
    kept = replace(evidence, facts=replace(evidence.facts, sums_deviations=(0.0, evidence.sums[0, 1] / 4.1, 0.0)))
    assert supposed_of(kept) == ()


def test_where_clipping_takes_a_part_of_the_curvature_the_interval_says_so():
    """Rows far out are clipped: as much of the coefficient as clipping takes of the curvature is an error."""
    evidence = released(facts_of(slope_deviation=2000.0), WEIGHTS)
    pull, bend, square = evidence.sums[0]
    less = replace(evidence, sums=np.array([[pull * 0.7, bend * 0.7, square]]))
    plain, found = uncertainty_of_interest(evidence), uncertainty_of_interest(less)
    added = math.sqrt(found.privacy_error[0] ** 2 - (plain.privacy_error[0] / 0.7) ** 2)
    assert supposed_of(less) == ()
    assert added == pytest.approx(0.3 * abs(found.estimates[0]), rel=0.2)


def test_two_estimates_that_differ_beyond_the_noise_widen_the_nearer_one():
    """Where the last step leads far away it is taken, for long rows count less in the weights before it."""
    evidence = released(facts_of(curvature_deviation=10.0, slope_deviation=5.0), WEIGHTS)
    far = replace(evidence, sums=evidence.sums + np.array([[200.0, 0.0, 0.0]]))
    assert supposed_of(far) == ()
    assert abs(uncertainty_of_interest(far).estimates[0] - uncertainty_of_interest(evidence).estimates[0]) > 0.1


def test_intervals_cover_what_long_rows_may_change_where_no_model_is_right():
    """Three tenths of a score for one spread, times the share of the curvature that the frame lost."""
    evidence = released(facts_of(sums_deviations=(20.0, 5.0, 20.0)), WEIGHTS)
    evidence = replace(evidence, frame=replace(evidence.frame, length=2.0), curvature=np.diag([900.0, 900.0, 900.0]))
    direction = np.array([0.2, 0.0, 0.0])
    kept = float(direction @ evidence.curvature @ direction)
    more = replace(evidence, sums=np.array([[0.0, kept / 0.8, 100.0]]))
    assert debiased._of_long_rows(more, 0, direction, 7.0) == pytest.approx(0.3 * 0.2 * 7.0)
    endless = replace(more, frame=replace(more.frame, length=math.inf))
    assert debiased._of_long_rows(endless, 0, direction, 7.0) == 0.0
    less = replace(evidence, sums=np.array([[0.0, 0.99 * kept, 100.0]]))
    assert debiased._of_long_rows(less, 0, direction, 7.0) == 0.0


@pytest.mark.parametrize(("reach", "beyond"), [(4.0, 0.0), (7.5, 0.5), (30.0, 1.0)])
@pytest.mark.parametrize("excess", [0.0, 0.19, 0.5])
def test_intervals_cover_what_clipping_may_change_where_far_rows_are_not_as_the_model_says(reach, beyond, excess):
    """Two sampling errors, times the part by which squared slopes exceed curvatures, where a column reaches so far.

    What the noise on squared slopes alone makes of it, a part of .2 here, is taken off.
    """
    column = replace(FIRST, usual_spread=1.0, usual_clip=1.0)
    # With so much noise on the slopes nearly all of the last step is taken.
    facts = facts_of(slope_deviation=500.0, sums_deviations=(20.0, 5.0, 20.0))
    evidence = released(facts, WEIGHTS, (column,))
    # The first column from -1 to 1, whose spread is such that it reaches so many deviations of the rows.
    frame = replace(evidence.frame, centre=(0.0, evidence.frame.centre[1]), spreads=(1.0 / reach, evidence.frame.spreads[1]))
    evidence = replace(evidence, frame=frame, curvature=np.diag([900.0, 900.0, 900.0]), slopes=np.zeros(3))
    evidence = replace(evidence, sums=np.array([[0.0, 100.0, 100.0 * (1.0 + excess)]]))
    (_, sampling, others, *_) = debiased._errors_of_all(evidence)[0]
    direction = directions_of(facts, (column,), frame, evidence.near, evidence.curvature)[0]
    assert debiased._beyond_clip(evidence, 0, direction) == pytest.approx(beyond, abs=0.01)
    expected = 2.0 * sampling * math.sqrt(max(excess**2 - 0.2**2, 0.0)) * beyond
    nothing = replace(evidence, sums=np.array([[0.0, 100.0, 100.0]]))
    (_, _, alone, *_) = debiased._errors_of_all(nothing)[0]
    assert math.sqrt(others**2 - alone**2) == pytest.approx(expected, rel=0.1, abs=1e-3)


def test_what_is_supposed_of_a_coefficient_grows_with_what_is_found():
    """A coefficient of three scores for one spread is supposed to be of this size, and one of half a score of size 1."""
    for size, factor in ((0.5, 1.0), (3.0, 9.0)):
        evidence = released(facts_of(slope_deviation=2000.0), WEIGHTS)
        evidence = replace(evidence, sums=np.zeros((1, 3)))
        wanted = evidence.frame.matrix @ np.array([1.0, 0.0, 0.0])
        near = evidence.near
        near = replace(near, weights=size * wanted / float(np.linalg.norm(wanted)), shift=0.0)
        (*_, others, _, _) = debiased._errors(evidence, near, 0, np.array([0.2, 0.0, 0.0]))
        supposed, noise = (float(wanted @ each @ wanted) for each in (near.supposed, near.noise))
        assert supposed > 0.1 * noise
        assert others**2 == pytest.approx(noise + (factor - 1.0) * supposed)


def test_weights_whose_long_rows_count_less_have_less_of_the_estimate():
    """The more curvature the frame lost, the nearer the estimate is to that of the whole step."""
    facts = facts_of(curvature_deviation=5.0, slope_deviation=40.0, sums_deviations=(8.0, 1.0, 8.0))
    evidence = released(facts, WEIGHTS)
    evidence = replace(evidence, sums=evidence.sums * np.array([1.0, 1.4, 1.0]) + np.array([[8.0, 0.0, 0.0]]))
    counted = replace(evidence, frame=replace(evidence.frame, length=2.0))
    (plain, *_), (moved, *_) = (debiased._errors_of_all(each)[0] for each in (evidence, counted))
    near = float((evidence.frame.matrix @ np.array([1.0, 0.0, 0.0])) @ evidence.near.weights)
    assert abs(moved - near) > 1.1 * abs(plain - near) > 0.0
    assert uncertainty_of_interest(counted).total_error[0] > uncertainty_of_interest(evidence).total_error[0]


def test_evidence_is_the_same_after_a_file_and_damage_is_refused():
    evidence = released(facts_of(is_laplace=True, sums_deviations=(1.0, 2.0, 3.0)), WEIGHTS)
    evidence = replace(evidence, frame=replace(evidence.frame, length=2.5))
    content = evidence.to_dict()
    again = InterestEvidence.from_dict(content)
    assert again.facts == evidence.facts
    assert again.frame == evidence.frame
    assert again.combinations == evidence.combinations
    for name in ("weights", "start", "curvature", "slopes", "sums"):
        assert np.array_equal(getattr(again, name), getattr(evidence, name))
    frame = content["frame"]
    for damaged in (
        content | {"weights": [0.0, math.nan, 0.0]},
        content | {"start": [0.0, 0.0]},
        content | {"slopes": [math.inf, 0.0, 0.0]},
        content | {"sums": [[1.0, 2.0]]},
        content | {"frame": frame | {"spreads": [0.0, 1.0]}},
        content | {"frame": frame | {"centre": [0.0, 1.0, 2.0]}},
        content | {"frame": frame | {"length": -1.0}},
        content | {"facts": content["facts"] | {"n_rows": 0}},
        content | {"more": 1},
        content | {"combinations": [content["combinations"][0] | {"factors": [[7, 1.0]]}]},
    ):
        with pytest.raises(ParameterError):
            InterestEvidence.from_dict(damaged)


def test_a_combination_that_no_row_tells_from_another_has_the_least_direction():
    """All levels of a category and a constant: one combination of them is told apart by no row. It gets no part."""
    rng = np.random.default_rng(0)
    levels = np.eye(3)[rng.integers(0, 3, N)]
    design = np.column_stack([levels, np.ones(N)])
    labels = (rng.uniform(size=N) < 0.4).astype(float)
    between = Combination("b", "against a", ("x",), 1.0, ((0, -1.0), (1, 1.0)), True, 1.0 / 6.0, 0.5, (0, 1, 2), ((0, 1.0),))
    facts = facts_of(n_features=3)
    evidence = released(facts, np.zeros(4), (between,), rows=(design, labels))
    (direction,) = (
        directions_of(facts, (between,), evidence.frame, evidence.near, evidence.curvature) @ evidence.frame.matrix
    )
    assert direction[0] == pytest.approx(-direction[1], rel=0.05)
    assert abs(direction[2]) < 0.05 * abs(direction[1])
    expected = [labels[levels[:, place] == 1.0].mean() for place in (0, 1)]
    odds = [math.log(each / (1.0 - each)) for each in expected]
    assert uncertainty_of_interest(evidence).estimates[0] == pytest.approx(odds[1] - odds[0], abs=5e-3)


def decided(times):
    """Rows whose columns nearly decide the outcome, released at weights that a ridge held back."""
    rng = np.random.default_rng(1)
    design, _ = rows_of()
    labels = (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-times * design @ WEIGHTS))).astype(float)
    truth, _ = minimiser((design, labels))
    facts = facts_of(curvature_deviation=5.0, slope_deviation=10.0, sums_deviations=(10.0, 2.0, 10.0))
    return truth[0], released(facts, 0.2 * truth, noise=(5.0, 10.0), entropy=rng, rows=(design, labels))


@pytest.mark.parametrize("times", [10.0, 20.0])
def test_where_columns_nearly_decide_the_outcome_the_coefficient_is_unknown(times):
    """One step from weights that a ridge held back ends far from it, and an interval around that would miss it."""
    truth, evidence = decided(times)
    wanted = evidence.frame.matrix @ np.array([1.0, 0.0, 0.0])
    direction = directions_of(evidence.facts, (FIRST,), evidence.frame, evidence.near, evidence.curvature)[0]
    estimate, *parts, _ = debiased._errors(evidence, evidence.near, 0, direction)
    assert abs(estimate - truth) > 3.0 * math.hypot(*parts)
    assert abs(estimate) / np.linalg.norm(wanted[:2]) > 1.0
    assert supposed_of(evidence) == ("x0",)
    assert np.isinf(uncertainty_of_interest(evidence).intervals(0.95)).all()


@pytest.mark.parametrize(("left_open", "times"), [(0.9, 1.0), (0.41, 1.0), (0.2, 2.0), (0.05, 8.0)])
def test_the_less_is_left_open_of_the_outcome_the_larger_coefficients_are_supposed(left_open, times):
    """At weights of 0 both outcomes are equally frequent, so a quarter of the rows is their variance."""
    evidence = released(facts_of(), np.zeros(3))
    curvature = evidence.curvature.copy()
    curvature[-1, -1] = left_open * N / 4.0 * CONSTANT**2
    evidence = replace(evidence, curvature=curvature)
    none = replace(evidence.near, weights=np.zeros(3))
    assert debiased._times_usual(evidence, none) == pytest.approx(times)


@pytest.mark.parametrize("rate", [0.02, 0.5])
def test_a_rare_outcome_is_not_taken_for_one_that_the_columns_decide(rate):
    """The curvature is small because the outcome is rare, which the weights tell."""
    evidence = released(facts_of(), np.array([0.1, 0.0, math.log(rate / (1.0 - rate)) / CONSTANT]))
    assert debiased._times_usual(evidence, replace(evidence.near, weights=evidence.start)) == 1.0


LEFT = {
    # size in scores, how far the steps moved it, whether it is known, what is added
    "usual": (1.1, 0.6, True, 0.0),
    "large, and near": (1.3, 0.3, True, 0.5 * 0.3**2),
    "large, and far": (1.3, 0.5, False, math.inf),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_large_coefficient_errs_by_what_the_steps_to_it_leave_or_is_unknown(name):
    size, moved, is_known, added = LEFT[name]
    evidence = released(facts_of(), WEIGHTS)
    wanted = evidence.frame.matrix @ np.array([1.0, 0.0, 0.0])
    unit = float(np.linalg.norm(wanted[:2]))
    start = evidence.start + ((size - moved) * unit - float(wanted @ evidence.start)) * wanted / float(wanted @ wanted)
    evidence, near = replace(evidence, start=start), evidence.near
    direction = directions_of(evidence.facts, (FIRST,), evidence.frame, near, evidence.curvature)[0]
    found = debiased._if_settled(evidence, near, 0, direction, True, (size * unit, 0.1, 0.2, 0.0, True))
    assert found[-1] is is_known
    if is_known:
        assert found[1:3] == pytest.approx((0.1, math.hypot(0.2, added * unit)))
    else:
        assert found[1] == math.inf


@pytest.mark.parametrize(("shift", "is_known"), [(0.4, True), (0.6, False)])
def test_a_step_that_moves_scores_far_leaves_nothing_known(shift, is_known):
    evidence = released(facts_of(), WEIGHTS)
    near = replace(evidence.near, shift=shift, supposed=np.zeros((3, 3)))
    direction = directions_of(evidence.facts, (FIRST,), evidence.frame, near, evidence.curvature)[0]
    found = debiased._if_settled(evidence, near, 0, direction, False, (0.0, 0.1, 0.2, 0.0, True))
    assert found[-1] is is_known
    assert math.isfinite(found[1]) is is_known
