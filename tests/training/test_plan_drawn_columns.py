"""When a fit to a table of many categories has random features of few columns each beside curves and atoms."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ApproxDP, Ledger, PureDP, Schema
from confide.features.encoder import Encoder
from confide.privacy import scales
from confide.privacy.budgets import ZCDP
from confide.privacy.tables import AtomsOfColumns
from confide.report.verification import failures_of_plan, verify
from confide.training.auto_features import ENOUGH_ROWS_OF_FEW_COLUMNS, FEATURES_OF_FEW_COLUMNS, SLOTS

BUDGET = ApproxDP(9.0, 1e-5)
COLUMNS = {
    "gain": {"low": 0, "high": 2000, "scale": "log"},
    "age": {"low": 17, "high": 90},
    **{name: {"categories": list("abcd"), "other": True} for name in ("job", "place", "kind", "more")},
}
SCHEMA = Schema(COLUMNS, {"column": "y", "negative": "n", "positive": "p"})
N = 24_000


def table(n=N, seed=0):
    """Rows whose class is that of a pair of categories together, and of one gain that a tenth of them share."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.choice(list("abcd"), n) for name in ("job", "place", "kind", "more")})
    gain = np.where(rng.uniform(size=n) < 0.1, 777, rng.integers(0, 2001, n))
    frame = frame.assign(gain=gain, age=rng.integers(17, 91, n))
    together = (frame["job"] < "b") == (frame["place"] < "b")
    chance = np.where(gain == 777, 0.95, np.where(together, 0.55, 0.1) + 0.1 * (frame["job"] < "b"))
    return frame.assign(y=np.where(rng.uniform(size=n) < chance, "p", "n"))


ROWS = table()


def fitted(rows=ROWS, schema=SCHEMA, budget=BUDGET, **parameters):
    return confide.AdditiveClassifier(budget, schema=schema, **{"random_state": 0} | parameters).fit(rows, rows["y"])


@pytest.fixture(scope="module")
def model():
    return fitted()


def test_a_fit_finds_atoms_and_columns_and_pays_once(model):
    """Counts, sums of both classes, a centre and noisy gradients share one charge; what was taken is said."""
    ledger = Ledger(limit=BUDGET)
    plan = confide.AdditiveClassifier(BUDGET, schema=SCHEMA).plan(N)
    assert [part.query.name for part in plan.parts] == ["atoms", "scaling", "centring"]
    assert plan.mechanism == "gradient"
    assert plan.problem.beside_mu >= math.hypot(*(part.mu for part in plan.parts))
    assert fitted(ledger=ledger, random_state=None).guarantee_.void is None
    assert (ledger.spent().epsilon, len(ledger.entries())) == (pytest.approx(9.0), 1)
    assert model.schema_.random_features == FEATURES_OF_FEW_COLUMNS
    assert 777.0 in model.schema_.columns[0].atoms
    assert model.coef_.shape[1] == model._encoder.n_features + 400 == len(model.coefficient_names_)
    statement = model.guarantee_.statement()
    assert "the sums of the encoded rows of each class are released with noise" in statement
    assert "counted by their number" in statement


def test_a_row_is_as_long_as_the_plan_says():
    """Six columns, slots of one of them, and features of norm 1: a larger norm of features would break the bound."""
    schema = confide.AdditiveClassifier(BUDGET, schema=SCHEMA).chosen_schema(N)
    plan = confide.AdditiveClassifier(BUDGET, schema=SCHEMA).plan(N)
    assert plan.problem.row_bound.l2_norm == pytest.approx(math.sqrt(6 + 1 + 1), rel=1e-6)
    encoder = Encoder(schema, slots=SLOTS)
    assert plan.scaling.query.bound.l2_norm == encoder.row_bound.l2_norm == pytest.approx(math.sqrt(7))
    at_ends = ROWS[:100].assign(gain=0, age=17)  # of one hat each, and an atom
    rows = encoder.expand(encoder.with_atoms(encoder.read(at_ends), [[0.0]]), 0, 100)
    mapped = encoder.appended.scaled((1.0,) * encoder.n_features).transform(rows).astype(float)
    assert np.linalg.norm(mapped, axis=1).max() == pytest.approx(plan.problem.row_bound.l2_norm, rel=1e-6)
    longer = replace(schema, random_features=replace(FEATURES_OF_FEW_COLUMNS, norm=1.2))
    mapped = Encoder(longer, slots=SLOTS).appended.transform(rows)
    assert np.linalg.norm(mapped, axis=1).max() > 1.02 * plan.problem.row_bound.l2_norm


def test_columns_that_matter_are_drawn_more_often(model):
    """By released numbers alone: other rows with the same released numbers have the same features to the bit."""
    features = model._fourier.features
    assert features.reach == 3
    held = {name: (features.frequencies[:, group.start] != 0.0).mean() for name, group in
            zip(SCHEMA.column_names, model._encoder.groups, strict=False)}  # fmt: skip
    assert held["gain"] > 0.5 > held["more"]


def test_features_follow_from_released_numbers_alone(monkeypatch):
    """The same sums and counts over other rows lead to the same map, columns and atoms; few rows have them by the schema."""
    schema = replace(SCHEMA, random_features=FEATURES_OF_FEW_COLUMNS)
    found = (1.3, 0.7, 1.9, 0.8, 0.67, 1.0, 1.1)
    monkeypatch.setattr(scales, "scales_by", lambda *_: found)
    monkeypatch.setattr(AtomsOfColumns, "decoded", lambda *_: ((777.0,),))
    one, other = fitted(ROWS[:3000], schema), fitted(table(3000, seed=5)[::-1], schema, random_state=3)
    assert one._fourier == other._fourier
    assert one.schema_ == other.schema_
    np.testing.assert_array_equal(one._fourier.features.frequencies, other._fourier.features.frequencies)
    assert set(one._fourier.features.scales) == set(found)
    assert (one.coef_ != other.coef_).any()


def test_it_predicts_what_no_single_column_tells(model):
    """The class of a pair of columns."""
    test = table(seed=9)
    curves = fitted(interactions=())
    assert model.score(test, test["y"]) > curves.score(test, test["y"]) + 0.01


def test_files_reports_and_later_fits_know_it(model, tmp_path):
    """A file is loaded and verified, predicts the same, and its effects add up to its scores."""
    model = fitted(random_state=None)
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    scores = model.decision_function(ROWS[:500])
    np.testing.assert_array_equal(loaded.decision_function(ROWS[:500]), scores)
    assert failures_of_plan(loaded) == ()
    assert not [finding for finding in verify(loaded, schema=SCHEMA) if finding.outcome == "failed"]
    assert json.loads((tmp_path / "model.json").read_text())["content"]["fourier_map"]["features"]["reach"] == 3
    assert "effect" in model.effects_.columns
    model.report(tmp_path / "report.html")
    assert "random features" in (tmp_path / "report.html").read_text()
    later = model.refit(ROWS[::-1], ROWS["y"][::-1])
    assert later._fourier == model._fourier
    assert later.schema_.random_features == FEATURES_OF_FEW_COLUMNS


def test_rows_in_files_give_the_same_release(tmp_path):
    """Where the schema asks for such features, few rows have all parts of the plan too."""
    schema, rows = replace(SCHEMA, random_features=FEATURES_OF_FEW_COLUMNS), ROWS[:3000]
    plan = confide.AdditiveClassifier(BUDGET, schema=schema).plan(len(rows))
    assert [part.query.name for part in plan.parts] == ["atoms", "scaling", "centring"]
    model = fitted(rows, schema)
    rows.to_parquet(tmp_path / "rows.parquet")
    streamed = confide.AdditiveClassifier(BUDGET, schema=schema, random_state=0)
    streamed.fit(confide.open_rows(tmp_path / "rows.parquet", schema))
    assert 777.0 in model.schema_.columns[0].atoms
    assert streamed._fourier == model._fourier
    np.testing.assert_array_equal(streamed.coef_, model.coef_)


@pytest.mark.parametrize(
    ("budget", "n_rows", "changes"),
    [
        (ApproxDP(2.0, 1e-5), N, {}),
        (BUDGET, 19_000, {}),
        (PureDP(9.0), 10**6, {}),
        (PureDP(math.inf), 10**6, {}),
        (BUDGET, N, {"inference_share": 0.3}),
        (BUDGET, N, {"knots": 3}),
        (BUDGET, N, {"penalty": "smooth"}),
        (BUDGET, N, {"interactions": ()}),
        (BUDGET, N, {"schema": Schema(COLUMNS, {"column": "y", "classes": ["n", "o", "p"]})}),
    ],
    ids=["noise", "few rows", "pure", "no privacy", "intervals", "knots", "penalty", "none", "three classes"],
)
def test_other_fits_have_none(budget, n_rows, changes):
    """Where noise is larger, where rows are few without it, and where such features were not compared."""
    model = confide.AdditiveClassifier(budget, **{"schema": SCHEMA} | changes)
    assert model.chosen_schema(n_rows).random_features is None


def test_they_are_taken_from_so_many_rows_for_the_noise_on():
    """Rows for each unit of noise on a weight, 20,000 of them; less noise than that of a mu of 1 counts as such."""
    assert ENOUGH_ROWS_OF_FEW_COLUMNS == 20_000.0

    def has_features(n_rows, budget):
        return confide.AdditiveClassifier(budget, schema=SCHEMA).chosen_schema(n_rows).random_features is not None

    assert [has_features(n, ApproxDP(100.0, 1e-5)) for n in (19_900, 20_100)] == [False, True]
    assert [has_features(10**6, ZCDP(rho)) for rho in (1e-4, 1e-3)] == [False, True]


def test_a_regression_has_none():
    schema = Schema(COLUMNS, {"column": "y", "low": 0, "high": 1})
    assert confide.AdditiveRegressor(BUDGET, schema=schema).chosen_schema(10**6).random_features is None


@pytest.mark.parametrize(("budget", "n_classes"), [(PureDP(30.0), 2), (BUDGET, 3)], ids=["pure", "three classes"])
def test_atoms_are_found_beside_features_without_scales(budget, n_classes):
    """Where a schema asks for such features and no scales can be found, all columns have the same chance."""
    rows = ROWS[:8000]
    rows = rows.assign(y=np.where((rows["age"] > 60) & (n_classes == 3), "o", rows["y"]))
    classes = ["n", "p"] if n_classes == 2 else ["n", "o", "p"]
    columns = COLUMNS | {"kind": {"categories": [*"abcd", *map(str, range(90))], "other": True}}
    target = {"column": "y", "classes": classes} if n_classes == 3 else SCHEMA.target
    model = fitted(rows, Schema(columns, target, random_features=FEATURES_OF_FEW_COLUMNS), budget)
    assert 777.0 in model.schema_.columns[0].atoms
    assert model._fourier.features.scales == ()
    assert model._fourier == model._encoder.appended
    assert model.decision_function(rows[:5]).shape[0] == 5
