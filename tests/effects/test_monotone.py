"""Monotone effects: a projection of what was released, refused before a fit where it could not be promised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import confide
from confide import ParameterError
from confide.effects.effects import Effects
from confide.effects.monotone import checked_monotone, monotone_sentence, monotone_weights
from confide.estimators.linear_model import released_model
from tests.effects.examples import INTERACTIONS, labels, model, schema, table


def curve(released, name):
    effects = Effects(released, "log-odds")
    return next(term.effects[: term.points[0].n_numbers, 0] for term in effects.terms if term.columns == (name,))


@pytest.mark.parametrize(("share", "budget"), [(0.0, 2.0), (0.0, 50.0), (0.4, 50.0)])
def test_projected_curves_are_monotone_in_the_shown_class_and_change_no_more_than_needed(share, budget):
    """The positive class is classes_[0], so "up" means falling weights. A second projection changes nothing."""
    released = released_model(model(share, budget=budget))
    for directions in ({"age": "up"}, {"age": "down", "income": "down", "rank": "down"}):
        once = replace(released, scoring=monotone_weights(released, directions))
        for name, direction in directions.items():
            steps = np.diff(curve(once, name))
            assert (steps * (1 if direction == "up" else -1) >= -1e-9).all()
        again = monotone_weights(once, directions)
        np.testing.assert_allclose(again.coef, once.scoring.coef, atol=1e-9)
        if not share:
            assert released.encoder is not None
            places = [g.place for g in released.encoder.groups if g.column not in directions]
            for place in places:
                np.testing.assert_array_equal(once.scoring.coef[:, place], released.scoring.coef[:, place])


def test_a_monotone_curve_stays_as_it_is():
    """The curve of age rises by itself."""
    released = released_model(model(0.4))
    assert (np.diff(curve(released, "age")) > 0).all()
    np.testing.assert_allclose(monotone_weights(released, {"age": "up"}).coef, released.scoring.coef, atol=1e-12)


def test_a_straight_line_of_the_wrong_sign_becomes_0():
    released = released_model(model())
    rising = curve(released, "rank")[1] > 0
    projected = replace(released, scoring=monotone_weights(released, {"rank": "down" if rising else "up"}))
    np.testing.assert_array_equal(curve(projected, "rank"), 0.0)
    kept = monotone_weights(released, {"rank": "up" if rising else "down"})
    np.testing.assert_array_equal(kept.coef, released.scoring.coef)


def test_projection_brings_curves_nearer_to_a_monotone_truth():
    """In the metric of the projection, for every draw: here noise of size 1 around a rising curve, equal for all weights."""
    released = released_model(model())
    encoder = released.encoder
    assert encoder is not None
    place = encoder.groups[0].place
    rng = np.random.default_rng(0)
    truth = -np.linspace(0.0, 1.0, 4)  # falling weights, as the shown class is classes_[0]
    for _ in range(20):
        coef = released.scoring.coef.copy()
        coef[0, place] = truth + rng.normal(size=4)
        noisy = replace(released, scoring=replace(released.scoring, coef=coef))
        nearer = monotone_weights(noisy, {"age": "up"}).coef[0, place]
        assert np.linalg.norm(nearer - truth) <= np.linalg.norm(coef[0, place] - truth) + 1e-12


def test_in_the_metric_of_noise_the_projection_is_nearest():
    """No other monotone curve on the way to the projection is nearer in the inverse covariance of the noise."""
    from confide.inference.debiased import with_known_zeros

    released = released_model(model(0.4))
    assert released.encoder is not None
    before = np.append(released.scoring.coef[0], released.scoring.intercept)
    scoring = monotone_weights(released, {"age": "down"})
    after = np.append(scoring.coef[0], scoring.intercept)
    evidence = with_known_zeros(released.evidence, released.encoder)
    errors = evidence.joint_uncertainty(np.eye(len(before)))[0].privacy_errors
    metric = np.linalg.inv(errors.T @ errors / len(errors))
    rng, place = np.random.default_rng(0), released.encoder.groups[0].place
    # The projection p of w onto a convex set: (w - p) . M (q - p) <= 0 for every member q.
    for _ in range(50):
        other = before + rng.normal(size=len(before))
        other[place] = np.sort(other[place])  # "down" in the shown class, so rising weights
        assert (before - after) @ metric @ (other - after) <= 1e-6 * np.abs(metric).max()


@pytest.mark.parametrize(
    ("monotone", "message"),
    [
        (["age"], "monotone must map names"),
        ({"size": "up"}, 'which is no column. The columns are "age"'),
        ({"age": "rising"}, 'say "up" or "down" for column "age"'),
        ({"sex": "up"}, 'column "sex" is a category'),
    ],
)
def test_what_cannot_be_monotone_is_refused(monotone, message):
    with pytest.raises(ParameterError, match=message):
        checked_monotone(monotone, schema())


def test_members_of_interactions_and_missing_schemas_are_refused():
    with pytest.raises(ParameterError, match='column "age" belongs to an interaction'):
        checked_monotone({"age": "up"}, schema(INTERACTIONS))
    with pytest.raises(ParameterError, match="need a schema"):
        checked_monotone({"age": "up"}, None)
    assert checked_monotone(None, None) == {}
    assert checked_monotone({"rank": "up"}, schema(INTERACTIONS)) == {"rank": "up"}


def test_the_sentence_names_columns_and_directions():
    assert monotone_sentence({}) == ""
    assert '"age" may only rise, "rank" may only fall' in monotone_sentence({"age": "up", "rank": "down"})
    assert "post-processing" in monotone_sentence({"age": "up"})


def test_a_regression_is_monotone_in_its_prediction():
    frame = table()
    described = confide.Schema(columns=schema().columns)
    fitted = confide.HuberRegressor(5.0, schema=described, target_bound=1.0)
    fitted.fit(frame, (labels(frame) == "no").astype(float))
    released = released_model(fitted)
    projected = replace(released, scoring=monotone_weights(released, {"age": "up"}))
    assert (np.diff(curve(projected, "age")) >= -1e-9).all()
