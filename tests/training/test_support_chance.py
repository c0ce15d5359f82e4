"""How large chance alone makes weights without an effect: bands that hold them, and are no wider than the noise says."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import confide
from confide.effects.effects import sizes_of_chance
from confide.estimators.released import ReleasedCoefficients, effects_of
from confide.estimators.search import plans_again
from confide.privacy.noise import Entropy
from confide.training.support import _SHARES_OF_ROWS, chance_of_weights

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


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("level", [0.92, 0.95, 0.99, 0.999])
def test_laplaces_quantile_is_the_largest_of_all_balls(level, part):
    """Theorem 2 of the page on noise bands, by quadrature, also where a part of the variance is that of Gaussian noise."""
    (own,) = sizes_of_chance(np.ones((1, 1)), level, 1, is_laplace=True)
    assert own == pytest.approx(-math.log(1.0 - level) / math.sqrt(2.0))
    for dimension in (1, 2, 3, 5, 10, 100, 10**4, 10**6):
        radii = stats.gamma(0.5 * (dimension + 1.0)).ppf((np.arange(20_000) + 0.5) / 20_000)
        variances = (1.0 - part) * radii / radii.mean() + part
        inside = 1.0 - np.mean(2.0 * stats.norm.sf(own / np.sqrt(variances)))
        assert inside >= level - 1e-4
    smaller = -math.log(1.0 - 0.9) / math.sqrt(2.0)
    assert 2.0 * stats.norm.sf(smaller) > 0.1  # the claim is for levels from 0.92 on


def test_all_values_of_an_unused_column_lie_within_together():
    """Theorem 1: at least the level, and hardly more, for Gaussian values with a common mean taken out."""
    draws = np.random.default_rng(0).normal(size=(40_000, 6))
    root = np.eye(6) - 1.0 / 6.0
    sizes = sizes_of_chance(root, 0.95, 6, is_laplace=False)
    held = np.mean(np.all(np.abs(draws @ root) <= sizes, axis=1))
    assert 0.947 < held < 0.965


def test_the_shares_of_rows_find_the_largest_deviation():
    """Lemma 3: 0.99 of the maximum over all shares, whatever the ratio of noise and pull."""
    for stiff in (1.0, 4.0, 64.0, 1024.0, 2.0**14):
        fine = np.append(0.0, np.geomspace(2.0**-14, 1.0, 3000))
        for pull in np.geomspace(1e-3, 1e3, 60):
            grid, all_shares = (
                np.sqrt((1.0 + pull * stiff * np.array(shares)) / (1.0 + stiff * np.array(shares)) ** 2).max()
                for shares in (_SHARES_OF_ROWS, fine)
            )
            assert grid >= 0.99 * all_shares


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
