"""Signs and rough sizes of effects as a prior: the weights that they stand for, what is refused, and what a fit says."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

import confide
from confide import (
    AdditiveClassifier,
    AdditiveRegressor,
    ApproxDP,
    HuberRegressor,
    KernelSVC,
    LinearSVC,
    LogisticRegression,
    ParameterError,
    PoissonRegressor,
    Schema,
)
from confide.models.model import Link
from confide.report.verification import is_verified, verify

COLUMNS = {
    "age": {"low": 20, "high": 70, "missing": True},
    "pay": {"low": 0, "high": 1000, "scale": "log"},
    "sex": {"categories": ["f", "m"]},
    "job": {"categories": ["a", "b", "c"]},
}
CLASSES = {"column": "y", "negative": "no", "positive": "yes"}
SCHEMA = Schema(COLUMNS, target=CLASSES)


def weights(effects, kind=LogisticRegression, schema=SCHEMA, **parameters):
    """The prior weights of a plan by the names of encoded columns, and that of the intercept."""
    model = kind(1.0, schema=schema, prior=effects, **parameters)
    plan = model.plan(1_000)
    names = confide.features.encoder.Encoder(model._schema_of_plan(1_000, None)).feature_names
    found = dict(zip((*names, "(intercept)"), plan.problem.prior, strict=False))
    return {name: weight for name, weight in found.items() if weight}


def test_a_word_stands_for_log_odds_of_1_over_a_range_and_of_a_half_at_a_level():
    """A straight line is -1 to 1 over its range, and so is a column of two levels."""
    found = weights({"age": "up", "pay": "down", "sex=m": "up", "job=b": "down"})
    assert found == pytest.approx({"age": 0.5, "pay": -0.5, "sex=m": 0.25, "job=b": -0.5})
    assert weights({"sex=f": "up"}) == pytest.approx({"sex=m": -0.25})


def test_a_number_is_the_effect_of_one_unit_or_of_a_level():
    """The range of an age of 20 to 70 has 50 units."""
    assert weights({"age": 0.02, "job=c": -0.3, "sex=m": 0.4}) == pytest.approx({"age": 0.5, "job=c": -0.3, "sex=m": 0.2})


def test_a_curve_begins_as_a_line_on_its_own_scale():
    """Hats at the low, at evenly spaced knots and at the high; not at missing cells."""
    made = weights({"age": "up"}, AdditiveClassifier, loss="logistic", knots={"age": 3})
    assert made == pytest.approx({"age~20": -0.5, "age~32.5": -0.25, "age~57.5": 0.25, "age~70": 0.5})


@pytest.mark.parametrize(("kind", "margin"), [(AdditiveClassifier, 2.0), (LinearSVC, 2.0)])
def test_scores_with_a_margin_are_those_of_the_declared_log_odds(kind, margin):
    """From low to high the log-odds grow by 1, as the link of the hinge has it."""
    more = {"knots": 0} if kind is AdditiveClassifier else {}
    (weight,) = weights({"age": "up"}, kind, **more).values()
    favour = Link("logistic", margin).mean(np.array([-weight, weight]))
    assert np.diff(logit(favour)) == pytest.approx(1.0)
    assert favour[1] == pytest.approx(expit(0.5))


def test_effects_are_those_on_the_class_that_is_shown():
    """Where it is sorted first, the model's own weights favour the other one."""
    swapped = Schema(COLUMNS, target=CLASSES | {"negative": "yes", "positive": "no"})
    assert weights({"age": "up", "job=b": "up"}, schema=swapped) == pytest.approx({"age": -0.5, "job=b": -0.5})
    unnamed = Schema(COLUMNS)
    assert weights({"age": "up"}, schema=unnamed, classes=["no", "yes"]) == pytest.approx({"age": 0.5})


def test_regressions_have_a_quarter_of_the_bound_and_counts_half_a_logarithm():
    """In the units of the prediction. The prior intercept is the middle of the range of targets."""
    numbers = Schema(COLUMNS, target={"column": "y", "low": 1_000, "high": 1_040})
    plan = HuberRegressor(1.0, schema=numbers, prior={"age": "up", "job=a": 3.0}).plan(1_000)
    assert plan.problem.prior[0] == pytest.approx(0.5 * 0.25 * 20.0)
    assert set(plan.problem.prior[1:]) == {0.0, 3.0}
    assert HuberRegressor(1.0, schema=numbers, prior={"age": "up"})._settings(
        confide.features.encoder.Encoder(numbers)
    ).prior.intercept == (1_020.0,)
    counts = Schema(COLUMNS, target={"column": "y", "low": 0, "high": 30})
    for kind, more in ((PoissonRegressor, {}), (AdditiveRegressor, {"loss": "poisson", "knots": 0})):
        assert weights({"age": "up"}, kind, counts, **more)["age"] == pytest.approx(0.25)


def test_random_features_beside_columns_have_no_declared_effect():
    """They come after the columns. Features alone have no columns."""
    model = KernelSVC(4.0, schema=SCHEMA, prior={"age": "up"}, n_features=20)
    prior = model.plan(10_000).problem.prior
    assert len(prior) > 20
    assert prior[0] > 0.0 == max(map(abs, prior[1:]))
    with pytest.raises(ParameterError, match="random features alone"):
        KernelSVC(4.0, schema=SCHEMA, prior={"age": "up"}, n_features=20, feature_norm=None).plan(10_000)


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        ({"agee": "up"}, r'"agee" \(did you mean "age"\?\), which is no column and no level'),
        ({"job=d": "up"}, r'"job=d".*which is no column'),
        ({"sex=M": "up"}, r'did you mean "sex=m"'),
        ({3: "up"}, 'prior names "3"'),
        ({"job": "up"}, 'column "job" is a category; name one of its levels: "job=c"'),
        ({"age": "upp"}, r'"up", "down" or a finite number for "age" \(did you mean "up"\?\)'),
        ({"age": True}, "a finite number"),
        ({"age": math.nan}, "a finite number"),
        ({"age": math.inf}, "a finite number"),
        ({"pay": 0.1}, 'say "up" or "down" for "pay"'),
        ({"age": 0.401}, r'20.1 is too large an effect of "age"'),
        ({"job=a": -20.1}, "too large"),
        ({}, "names columns of a schema"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_before_the_charge(effects, message):
    """In words, with the name that was probably meant; the ledger stays as it was."""
    ledger = confide.Ledger(limit=1.0)
    rows = pd.DataFrame({"age": [30, 40], "pay": [1, 2], "sex": ["f", "m"], "job": ["a", "b"]})
    with pytest.raises(ParameterError, match=message):
        LogisticRegression(1.0, schema=SCHEMA, prior=effects, ledger=ledger).fit(rows, ["no", "yes"])
    assert ledger.remaining().epsilon == 1.0


def test_a_large_effect_that_may_be_meant_is_taken():
    """20 times the usual one is the most."""
    assert weights({"age": 0.399})["age"] == pytest.approx(0.399 * 25)


def test_signs_need_a_schema_bounds_of_targets_and_one_score():
    """Without them there are no ranges, no size and no direction."""
    with pytest.raises(ParameterError, match="names columns of a schema"):
        LogisticRegression(1.0, prior={"a": "up"}).plan(500, 3)
    with pytest.raises(ParameterError, match="a target of numbers needs bounds"):
        HuberRegressor(math.inf, schema=Schema(COLUMNS), prior={"age": "up"}, target_bound=math.inf).plan(500)
    with pytest.raises(ParameterError, match="three or more classes have a score each"):
        LogisticRegression(1.0, schema=Schema(COLUMNS), prior={"age": "up"}, classes=["a", "b", "c"]).plan(500, n_classes=3)
    bounded = AdditiveClassifier(1.0, bounds={"x": (0, 2), "z": (0, 1)}, prior={"x": 1.0}, knots=0, loss="logistic")
    assert bounded.plan(500, 2).problem.prior[0] == pytest.approx(1.0)


def test_the_ridge_is_not_larger_with_signs_as_with_a_model():
    """They are rough, so weights are not expected to be near them."""
    plain = LogisticRegression(ApproxDP(0.5, 1e-6), schema=SCHEMA, centre=False)
    for mechanism in ("objective", "gradient"):
        plain.set_params(mechanism=mechanism, prior=None)
        without = plain.plan(800).alpha
        assert plain.set_params(prior={"age": "up"}).plan(800).alpha == pytest.approx(without)
        own = Schema(SCHEMA.columns, target=SCHEMA.target)
        n_weights = confide.features.encoder.Encoder(own).n_features
        assert plain.set_params(prior=([0.1] * n_weights, 0.0)).plan(800).alpha > 1.1 * without


def made_up(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({
        "age": rng.uniform(20, 70, n_rows), "pay": rng.uniform(0, 1000, n_rows),
        "sex": rng.choice(["f", "m"], n_rows), "job": rng.choice(["a", "b", "c"], n_rows),
    })  # fmt: skip
    odds = (rows["age"] - 45.0) / 12.0 + 1.5 * (rows["job"] == "b") - 0.5
    return rows, np.where(rng.uniform(size=n_rows) < expit(odds), "yes", "no")


def test_a_fit_states_the_effects_and_its_file_keeps_them(tmp_path):
    """The statement lists what was declared, a loaded model has the same prior, and verification writes it again."""
    rows, labels = made_up(400)
    model = AdditiveClassifier(ApproxDP(1.0, 1e-6), schema=SCHEMA, prior={"age": "up", "job=b": 0.5}).fit(rows, labels)
    said = '"age" up, "job=b" 0.5.'
    assert f"effects that were declared, without looking at the rows: {said}" in model.guarantee_.statement()
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert again.prior.declared == (("age", "up"), ("job=b", 0.5))
    assert np.array_equal(again.coef_, model.coef_)
    assert "declared" in repr(again.prior)
    assert is_verified(verify(again))


def test_right_signs_lower_the_error_of_a_small_table_and_wrong_ones_raise_it():
    """The mean over seeds, of the same rows."""
    test, answers = made_up(3_000, seed=99)
    found = []
    for effects in (None, {"age": "up", "job=b": "up"}, {"age": "down", "job=b": "down"}):
        errors = []
        for seed in range(12):
            rows, labels = made_up(150, seed)
            model = LogisticRegression(0.5, schema=SCHEMA, prior=effects, random_state=seed)
            errors.append(1.0 - model.fit(rows, labels).score(test, answers))
        found.append(np.mean(errors))
    none, right, wrong = found
    assert right < none - 0.01
    assert wrong > none + 0.02


@pytest.mark.parametrize("effect", ["down", -0.02])
def test_a_prior_and_a_monotone_effect_that_contradict_each_other_are_refused(effect):
    """Before any charge: one of them is a slip. What agrees, or speaks of other columns, is taken."""
    opposite = AdditiveClassifier(1.0, schema=SCHEMA, prior={"age": effect}, monotone={"age": "up"})
    with pytest.raises(ParameterError, match='monotone and prior say opposite things of column "age"'):
        opposite.plan(1000)
    for prior, monotone in (({"age": effect}, {"age": "down"}), ({"age": effect}, {"pay": "up"})):
        assert AdditiveClassifier(1.0, schema=SCHEMA, prior=prior, monotone=monotone).plan(1000).alpha > 0.0
