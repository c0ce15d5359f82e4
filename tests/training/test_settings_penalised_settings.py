"""Fits with a quadratic form: the minimiser, the law of the noise in its norm, priors, and what a plan knows of rows."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.linalg import cholesky
from sklearn.base import clone

import confide
from confide import ZCDP, ApproxDP, BallBound, ParameterError, PureDP, Schema, Smooth
from confide.erm.losses import LogisticLoss
from confide.features.encoder import Encoder
from confide.features.forms import QuadraticForm
from confide.intake.penalties import checked_penalty, form_of
from confide.intake.rows import checked_input
from confide.privacy.noise import Entropy
from confide.report.verification import FAILED, verify
from confide.training.alpha import usual_norm_of_rows
from confide.training.assumptions import SENTENCES
from confide.training.fit import model_of_columns, released
from confide.training.plan import plan_for
from confide.training.settings import usual_norm_in
from tests.audit.attacks import lower_bound, upper_bound
from tests.privacy.densities import exact_minimiser, noise_behind, signed
from tests.privacy.laws import ACCEPT, check_law

MATRIX = np.array([[1.0, 0.9, 0.0], [0.9, 4.0, 0.0], [0.0, 0.0, 0.25]])
"""Eigenvalues from 0.25 to 4.2, so a map that is forgotten, transposed or off by 2 shows."""
FACTOR = cholesky(MATRIX, lower=True)
N_ROWS, NORM, CONSTANT, ALPHA = 8, 2.0, 1.5, 20.0
LONGEST = NORM / math.sqrt(np.linalg.eigvalsh(MATRIX)[0])
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(N_ROWS, 3)) * 3.0
CLIPPED = ROWS * np.minimum(1.0, NORM / np.linalg.norm(ROWS, axis=1))[:, None]
LABELS = np.where(np.arange(N_ROWS) % 3, 1, -1)
INSIDE = np.linalg.solve(FACTOR, CLIPPED.T).T
"""The rows in the norm of the form, without the library."""


def fits(budget, mechanism, n, **others):
    """(n, 4): weights of fits in the norm of the form, the intercept's in units of its constant; and their plan."""
    model = confide.LogisticRegression(
        budget, penalty=MATRIX, alpha=ALPHA, row_norm=NORM, intercept_scaling=CONSTANT, mechanism=mechanism, centre=False,
        **others,
    )  # fmt: skip
    settings = model._settings(None)
    with checked_input(ROWS, LABELS).checked([model._specification(settings, None)]) as (rows,):
        plan, entropy = plan_for(settings, rows), Entropy.seeded(0)
        models = [model_of_columns(released(plan, rows.source, entropy)[0], settings) for _ in range(n)]
    return np.array([np.r_[FACTOR.T @ each.coef[0], each.intercept / CONSTANT] for each in models]), plan


@pytest.mark.parametrize(("neighbours", "shift"), [("replace-one", 2.0), ("add-or-remove-one", 1.0)])
def test_noise_on_the_weights_has_the_law_of_the_norm_of_the_form(neighbours, shift):
    """w - w* in the norm of P is isotropic, over shift R / l2 sqrt(2 rho) standard normal; 30% off fails."""
    bounds = {} if neighbours == "replace-one" else {"neighbours": neighbours, "n_rows_bounds": (N_ROWS, N_ROWS + 2)}
    found, _ = fits(ZCDP(0.1), "output", 250, **bounds)
    l2 = ALPHA * N_ROWS
    centre = np.float64(exact_minimiser(LogisticLoss(), signed(INSIDE, LABELS, CONSTANT), l2, np.zeros(4)))
    deviation = shift * math.hypot(LONGEST, CONSTANT) / l2 / math.sqrt(0.2)
    check_law(np.abs((found - centre) / deviation).ravel(), stats.halfnorm.cdf)
    for coordinate in ((found - centre) / deviation).T:
        assert stats.kstest(coordinate, "norm").pvalue > ACCEPT


def test_noise_in_the_objective_has_the_law_of_the_norm_of_the_form():
    """Weights invert to Laplace noise in a cylinder whose radius is that of the longest row; 30% off fails."""
    epsilon = 0.8
    found, plan = fits(PureDP(epsilon), "objective", 250)
    noise = noise_behind(LogisticLoss(), signed(INSIDE, LABELS, CONSTANT), ALPHA * N_ROWS, found)
    rate = 0.999 * epsilon / 2.0
    ball = np.linalg.norm(noise, axis=1) * rate / math.hypot(LONGEST, CONSTANT)
    cylinder = np.maximum(np.linalg.norm(noise[:, :3], axis=1) / LONGEST, np.abs(noise[:, 3]) / CONSTANT) * rate
    check_law({"ball": ball, "cylinder": cylinder}[plan.noise.shape.name], stats.gamma(4).cdf)


def shown_at_the_worst_pair(n, factor=1.0):
    """Lower bound on the epsilon that weights show of the label of one row, the longest in the norm of the form, less 1."""
    found = []
    for side in (1, -1):
        model = confide.LinearSVC(
            1.0, loss="huber_hinge", penalty=[0.01], alpha=2e3, row_norm=1.0, fit_intercept=False, mechanism="output",
            centre=False,
        )  # fmt: skip
        settings, labels = model._settings(None), np.resize([1, -1], 20)
        labels[0] = side
        given = checked_input(np.r_[1.0, np.zeros(19)][:, None], labels)
        with given.checked([model._specification(settings, None)]) as (rows,):
            plan, entropy = plan_for(settings, rows), Entropy.seeded(side % 7)
            plan = replace(plan, lattice=replace(plan.lattice, epsilon=plan.lattice.epsilon / factor))
            found.append([released(plan, rows.source, entropy)[0].coef[0, 0] for _ in range(n)])
    # The event: the weight exceeds the middle of the first fifty from one side, which are not counted.
    inside, outside = (int((np.array(weights[50:]) > np.median(found[0][:50])).sum()) for weights in found)
    return math.log(lower_bound(inside, n - 50) / upper_bound(outside, n - 50)) - 1.0


@pytest.mark.parametrize(
    "bug", ["none", "a third of the noise", "the norm before the form", "rows two and a half times as long"]
)
def test_planted_bugs_show_more_than_the_budget(bug, monkeypatch):
    """Noise for the norm of rows as they came, while rows enter as long as they are; or a third of the noise."""
    if bug not in ("none", "a third of the noise"):
        longest, factor = QuadraticForm.longest, 0.1 if bug == "the norm before the form" else 0.4
        monkeypatch.setattr(QuadraticForm, "longest", lambda form, bound: factor * longest(form, bound))
        # The clip in the norm of the form is what makes the bound true, whatever the map is.
        assert shown_at_the_worst_pair(100) <= 0.0
        monkeypatch.setattr(BallBound, "clip", lambda self, rows, scratch=None: np.asarray(rows, dtype=np.float64))
    assert (shown_at_the_worst_pair(350, factor=1.0 / 3.0 if bug == "a third of the noise" else 1.0) > 0.0) == (
        bug != "none"
    )


ESTIMATORS = {
    "logistic": (confide.LogisticRegression, {}, (LABELS > 0).astype(int)),
    "softmax": (confide.LogisticRegression, {}, np.arange(N_ROWS) % 3),
    "huber hinge": (confide.LinearSVC, {"loss": "huber_hinge"}, LABELS),
    "huber": (confide.HuberRegressor, {"target_bound": 2.0}, CLIPPED[:, 0]),
    "least squares": (confide.Ridge, {"target_bound": 2.0}, CLIPPED[:, 0]),
    "counts": (confide.PoissonRegressor, {"target_bound": 5.0, "intercept_scaling": 1.0}, np.arange(N_ROWS) % 4),
    "by name": (confide.ERMClassifier, {"loss": "smooth_hinge"}, LABELS),
    "of targets": (confide.ERMRegressor, {"target_bound": 2.0, "loss": "huber"}, CLIPPED[:, 0]),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_without_privacy_every_estimator_minimises_its_loss_and_the_form(name):
    """As the same estimator does with rows and weights that were brought to the norm of the form by hand."""
    make, parameters, targets = ESTIMATORS[name]
    common = {"budget": float("inf"), "alpha": 0.05} | parameters
    own = make(**common, penalty=MATRIX, row_norm=100.0).fit(CLIPPED, targets)
    by_hand = make(**common, row_norm=100.0).fit(INSIDE, targets)
    assert np.atleast_2d(own.coef_) @ FACTOR == pytest.approx(np.atleast_2d(by_hand.coef_), rel=1e-3, abs=1e-4)
    assert np.ravel(own.intercept_) == pytest.approx(np.ravel(by_hand.intercept_), rel=1e-3, abs=1e-4)
    assert own.predict(CLIPPED) == pytest.approx(by_hand.predict(INSIDE), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [
        *itertools.product(["objective", "output"], [PureDP(2.0), ApproxDP(2.0, 1e-6), ZCDP(0.5)]),
        *itertools.product(["gradient"], [ApproxDP(2.0, 1e-6), ZCDP(0.5)]),
    ],
)
def test_a_fit_is_that_of_rows_brought_to_the_norm_by_hand(mechanism, budget):
    """With the same seed, alpha included: every mechanism, every currency."""
    rows = RNG.normal(size=(400, 3))
    labels = rows[:, 0] > 0.0
    common = {"budget": budget, "mechanism": mechanism, "random_state": 3, "centre": False}
    own = confide.LogisticRegression(**common, penalty=MATRIX, row_norm=1.0).fit(rows, labels)
    clipped = rows * np.minimum(1.0, 1.0 / np.linalg.norm(rows, axis=1))[:, None]
    inside = np.linalg.solve(FACTOR, clipped.T).T
    by_hand = confide.LogisticRegression(**common, row_norm=LONGEST / NORM * (1 + 2e-9)).fit(inside, labels)
    assert own.alpha_ == pytest.approx(by_hand.alpha_, rel=1e-6)
    assert own.coef_ @ FACTOR == pytest.approx(by_hand.coef_, rel=1e-2, abs=1e-3 * np.abs(by_hand.coef_).max())


def test_a_prior_is_pulled_to_in_the_norm_of_the_form():
    """Without privacy and with a huge alpha the weights are those of the prior, and a refit takes the model's own."""
    prior = ([0.5, -1.0, 2.0], 0.3)
    model = confide.LogisticRegression(float("inf"), alpha=1e6, penalty=MATRIX, prior=prior, row_norm=9.0)
    model.fit(CLIPPED, LABELS)
    assert model.coef_[0] == pytest.approx(prior[0], abs=1e-3)
    assert model.intercept_ == pytest.approx(prior[1], abs=1e-3)
    again = model.refit(CLIPPED[:4], LABELS[:4])
    assert again.coef_[0] == pytest.approx(prior[0], abs=1e-3)
    assert again.penalty is not None


SCHEMA = Schema(
    columns={
        "age": {"low": 0, "high": 100, "knots": 9},
        "level": {"categories": list("abcdefgh"), "other": True},
        "pay": {"low": 0, "high": 10},
    },
    target={"column": "y", "negative": 0, "positive": 1},
)
SMOOTH = {"age": Smooth(30.0), "level": Smooth(5.0), "pay": 4.0}


def frame(n, seed=0):
    """Raw rows, spread evenly."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "level": rng.choice([*"abcdefgh", "z"], n),
            "pay": rng.uniform(0, 10, n),
        }
    )


def test_the_norm_of_a_typical_row_is_that_of_rows_spread_evenly():
    """And without a form it is what it was."""
    encoder = Encoder(SCHEMA)
    form = form_of(checked_penalty(SMOOTH), encoder, tuple)
    squares = (form.rows(encoder.transform(frame(20_000))) ** 2).sum(axis=1)
    assert usual_norm_in(form, encoder) == pytest.approx(math.sqrt(squares.mean()), rel=0.02)
    unchanged = QuadraticForm.of(np.ones(encoder.n_features))
    assert usual_norm_in(unchanged, encoder) == pytest.approx(usual_norm_of_rows(encoder))
    assert math.sqrt(squares.max()) <= form.longest(encoder.row_bound)


def test_the_plan_knows_the_bound_in_the_norm_and_no_row():
    """Of the groups of the schema: the longest row has the longest level of each group."""
    encoder = Encoder(SCHEMA)
    form = form_of(checked_penalty(SMOOTH), encoder, tuple)
    model = confide.LogisticRegression(ApproxDP(1.0, 1e-6), schema=SCHEMA, penalty=SMOOTH, mechanism="output", centre=False)
    bound = model.plan(n_rows=1_000).problem.row_bound
    assert bound.norm in (form.longest(encoder.row_bound), usual_norm_in(form, encoder))
    with pytest.raises(ParameterError, match="no intervals with a penalty"):
        confide.LogisticRegression(1.0, schema=SCHEMA, penalty=SMOOTH, inference_share=0.2).plan(n_rows=1_000)
    with pytest.raises(ParameterError, match="no intervals with a penalty"):
        confide.Ridge(1.0, penalty=[1.0, 9.0], target_bound=1.0, intervals=True).plan(n_rows=1_000, n_features=2)
    with pytest.raises(ParameterError, match="row_norm as a number"):
        confide.LogisticRegression(1.0, row_norm=confide.BoxBound([1.0, 1.0]), penalty=[1.0, 2.0]).plan(
            n_rows=1_000, n_features=2
        )
    with pytest.raises(ParameterError, match="has 2 columns, and rows of the fit have 3"):
        confide.LogisticRegression(1.0, penalty=[1.0, 2.0]).fit(ROWS, LABELS)


def test_scores_of_a_smoothed_model_are_those_of_its_weights():
    """The statement says what was done, a saved model predicts the same, and names of columns are kept."""
    raw = frame(3_000)
    labels = (raw["age"] + 10.0 * raw["pay"] > 100.0).astype(int)
    model = confide.LogisticRegression(ApproxDP(8.0, 1e-6), schema=SCHEMA, penalty=SMOOTH, random_state=0).fit(raw, labels)
    assert model.score(raw, labels) > 0.8
    scores = Encoder(SCHEMA).transform(raw) @ model.coef_[0] + model.intercept_
    assert model.decision_function(raw) == pytest.approx(scores)
    assert "quadratic form that was chosen without looking at the rows" in model.guarantee_.statement()
    assert list(model.coefficient_names_) == list(Encoder(SCHEMA).feature_names)


TWO_CLASSES = Schema(
    columns={
        "age": {"low": 0, "high": 100, "knots": 6},
        "level": {"categories": list("abcd")},
        "pay": {"low": 0, "high": 10},
    },
    target={"column": "y", "negative": 0, "positive": 1},
)


def test_two_classes_under_a_pure_budget_keep_their_rows_as_they_are():
    """The noise has the shape of the groups, and the statement says so; other budgets and classes bring rows to the norm."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"age": rng.uniform(0, 100, 3000), "level": rng.choice(list("abcd"), 3000), "pay": rng.uniform(0, 10, 3000)}
    )
    targets = (frame["age"] > 50.0).astype(int)
    model = confide.LogisticRegression(PureDP(1.0), schema=TWO_CLASSES, penalty={"age": Smooth(10.0), "level": Smooth(5.0)})
    fitted = model.fit(frame, targets)
    assert fitted.score(frame, targets) > 0.85
    assert fitted.plan(3000).noise.shape.name == "groups in the norm of the penalty"
    assert SENTENCES["penalised in groups"] in fitted.guarantee_.assumptions
    assert not [finding for finding in verify(fitted) if finding.outcome == FAILED]
    # Where it pays: with the ball of the norm the noise is larger.
    undeclared = confide.LogisticRegression(
        PureDP(1.0), schema=Schema(columns=TWO_CLASSES.to_dict()["columns"]), penalty=model.penalty, alpha=fitted.alpha_
    )
    own, ball = (each.plan(3000).noise.norm for each in (model.set_params(alpha=fitted.alpha_), undeclared))
    assert own < 0.8 * ball
    for other in (
        {"budget": ApproxDP(1.0, 1e-6)},
        {"classes": [0, 1, 2], "schema": undeclared.schema},
        {"penalty": MATRIX[:1, :1] * np.eye(fitted.coef_.size) + 0.1},
    ):
        settings = clone(model).set_params(**other)._settings(Encoder(other.get("schema", TWO_CLASSES)))
        assert not settings.keeps_groups


def test_without_privacy_noise_the_minimiser_is_that_of_mapped_rows():
    """Noise of a vast budget is next to nothing, and the form is penalised as by rows in its norm."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(
        {"age": rng.uniform(0, 100, 500), "level": rng.choice(list("abcd"), 500), "pay": rng.uniform(0, 10, 500)}
    )
    targets = ((frame["age"] > 50.0) ^ (rng.random(500) < 0.2)).astype(int)
    penalty = {"age": Smooth(10.0), "level": Smooth(5.0), "pay": 0.3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own, exact = (
            confide.LogisticRegression(budget, schema=TWO_CLASSES, penalty=penalty, alpha=0.01).fit(frame, targets)
            for budget in (PureDP(1e6), float("inf"))
        )
    assert own.coef_ == pytest.approx(exact.coef_, abs=1e-3)
    assert own.intercept_ == pytest.approx(exact.intercept_, abs=1e-3)
