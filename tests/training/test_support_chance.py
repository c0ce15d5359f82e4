"""How large chance alone makes weights without an effect: bands that hold them, and are no wider than the noise says."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide.estimators.released import ReleasedCoefficients, effects_of
from confide.estimators.search import plans_again
from confide.privacy.noise import Entropy
from confide.training.support import chance_of_weights

LEVELS = ("u", "v", "w", "x")
SCHEMA = confide.Schema(
    columns={"number": {"low": -1, "high": 1}, "other": {"low": -1, "high": 1}, "job": {"categories": list(LEVELS)}},
    target={"column": "y", "negative": "no", "positive": "yes"},
)
CASES = {
    "Laplace": (confide.PureDP(1.0), "objective"),
    "Gaussian": (confide.ZCDP(0.1), "objective"),
    "on weights": (confide.PureDP(1.0), "output"),
    "gradients": (confide.ApproxDP(1.0, 1e-6), "gradient"),
}


def fitted(budget, mechanism, seed=0, n=2000):
    """A model of rows whose labels follow from the first number alone."""
    rng = np.random.default_rng(seed)
    frame = {name: rng.uniform(-1, 1, n) for name in ("number", "other")} | {"job": rng.choice(LEVELS, n)}
    labels = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-2 * frame["number"])), "yes", "no")
    model = confide.LogisticRegression(budget, schema=SCHEMA, mechanism=mechanism, centre=False)
    return model.fit(pd.DataFrame(frame), labels)


@pytest.mark.parametrize("name", ["Laplace", "Gaussian"])
def test_the_widest_size_is_at_least_the_noise_over_the_ridge_and_hardly_more(name):
    """For a number that no row uses it is that noise; 4,000 draws of the plan's own noise tell its size from 15% more."""
    model = fitted(*CASES[name])
    plan = plans_again(model)[0]
    draw = Entropy.seeded(0)
    assert plan.noise.law == name.lower()
    drawn = (draw.laplace if name == "Laplace" else draw.gaussian)(plan.noise.shape, 4000, plan.noise.scale)
    ridge = np.broadcast_to(plan.problem.penalty.ridges(plan.l2), drawn.shape[1])
    of_noise = np.sqrt(np.mean(np.square(drawn), axis=0)) / ridge
    at_most = chance_of_weights(plan, model.coef_)[1]
    assert np.all(at_most[:2] >= 0.97 * of_noise[:2])
    assert np.all(at_most[:2] <= 1.15 * of_noise[:2])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_columns_without_an_effect_lie_within_and_columns_with_one_do_not(case):
    """Of 24 columns of noise at most five lie outside of the narrow band: at 95% that happens once in 200 times."""
    outside = 0
    for seed in range(12):
        found = {effect.name: effect for effect in effects_of(fitted(*case, seed)).with_bands()}
        assert all(0.0 < even <= most for value in found["job"].values for even, most in [value.noise])
        outside += sum(not all(abs(v.effect) <= v.noise[0] for v in found[name].values) for name in ("other", "job"))
    assert outside <= 5


def test_a_larger_budget_has_narrower_bands_and_none_has_none():
    """Twice the budget, about half the noise on the weights; and no noise, no band."""
    bands = [
        next(effects_of(fitted(confide.PureDP(epsilon), "output")).with_bands()).values[0].noise[1] * model_ridge(epsilon)
        for epsilon in (1.0, 2.0)
    ]
    assert 1.7 < bands[0] / bands[1] < 2.3
    without = fitted(confide.PureDP(math.inf), "auto")
    assert all(value.noise == () for effect in effects_of(without).with_bands() for value in effect.values)
    assert all(one.noise == () for one in ReleasedCoefficients.of(without).coefficients)


def model_ridge(epsilon):
    """The ridge by which noise on weights is divided; alpha may depend on the budget."""
    return fitted(confide.PureDP(epsilon), "output").alpha_


def test_bands_need_no_row_and_no_charge(tmp_path):
    """A loaded model has the same ones, from its file alone."""
    ledger = confide.Ledger(limit=1.0)
    model = fitted(*CASES["Laplace"])
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    shown = [[value.noise for effect in effects_of(one).with_bands() for value in effect.values] for one in (model, loaded)]
    assert shown[0] == shown[1]
    assert ledger.spent().amount == 0.0


def test_coefficients_have_the_bands_of_their_units():
    """A number per 1 has half the band of the way from low to high, and a level against another the root of two levels."""
    model = fitted(*CASES["Laplace"])
    released = {one.name: one for one in ReleasedCoefficients.of(model).coefficients}
    effects = {effect.name: effect for effect in effects_of(model).with_bands()}
    assert released["number"].noise[1] == pytest.approx(effects["number"].values[0].noise[1])
    assert released["(intercept)"].noise == ()
    assert released["job: v"].size[1] == abs(released["job: v"].estimate)
