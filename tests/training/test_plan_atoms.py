"""When a part of the budget of a fit finds atoms, and what a fit does with them."""

from __future__ import annotations

import json
import math
import multiprocessing
from dataclasses import replace
from functools import partial
from threading import Thread

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ApproxDP, Ledger, LogisticRegression, PureDP, Schema
from confide.errors import FileError
from confide.expected_noise import noise_on_a_weight
from confide.features.encoder import Encoder
from confide.files import _checksum, read_document
from confide.privacy.budgets import ZCDP
from confide.report.verification import failures_of_plan, verify
from confide.training.auto_features import ENOUGH_FOR_ATOMS, ROWS_FOR_ATOMS, SLOTS
from confide.training.auto_mechanism import SHARE_OF_ATOMS

# Beside interactions of all columns no atoms are looked for.
AdditiveClassifier = partial(confide.AdditiveClassifier, interactions=())
AdditiveRegressor = partial(confide.AdditiveRegressor, interactions=())

BUDGET = ZCDP(4.0)
"""Under (epsilon, delta), so few weights would have Laplace noise, and atoms of one column."""
COLUMNS = {
    "gain": {"low": 0, "high": 20_000, "scale": "log"},
    "loss": {"low": 0, "high": 100, "scale": "log", "missing": True},
    "age": {"low": 17, "high": 90},
    "sex": {"categories": ["f", "m"]},
}
SCHEMA = Schema(COLUMNS, {"column": "y", "negative": "n", "positive": "p"})
NUMBERS = Schema(COLUMNS, {"column": "t", "low": 0, "high": 4})
COUNTS = Schema(COLUMNS, {"column": "t", "low": 0, "high": 4})
THREE = Schema(COLUMNS, {"column": "y", "classes": ["n", "o", "p"]})
LONG = Schema(COLUMNS | {"sex": {"categories": ["f", "m", *map(str, range(120))]}}, SCHEMA.target)
"""Under a pure budget slots must not outnumber other columns."""
N = 4000


def table(n=N, seed=0):
    """Rows of which a gain of 5,013 says no, and one of 7,688 yes, though gains around them say nothing."""
    rng = np.random.default_rng(seed)
    gain = np.where(rng.uniform(size=n) < 0.4, 0, rng.integers(1, 20_000, n))
    gain[: n // 10], gain[n // 10 : n // 5] = 5013, 7688
    chance = np.where(gain == 5013, 0.02, np.where(gain == 7688, 0.98, 0.4))
    frame = pd.DataFrame({"gain": gain, "loss": rng.integers(0, 101, n).astype(float), "age": rng.integers(17, 91, n)})
    frame.loc[::7, "loss"] = np.nan
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["y"] = np.where(rng.uniform(size=n) < chance, "p", "n")
    return frame.assign(t=2.0 * (frame["y"] == "p") + rng.uniform(size=n)).sample(frac=1.0, random_state=1)


ROWS = table()


def fitted(kind=AdditiveClassifier, rows=ROWS, budget=BUDGET, schema=SCHEMA, **parameters):
    target = rows["y"] if "y" in str(schema.target) or schema is SCHEMA else rows["t"]
    return kind(budget, schema=schema, **{"random_state": 0} | parameters).fit(rows, target)


def atoms_of(model):
    return {column.name: column.atoms for column in model.schema_.columns if column.is_number and column.atoms}


def written(content, path):
    """A file of this content with the right checksum."""
    document = {"kind": "confide-model", "format_version": 1, "checksum": _checksum(content), "content": content}
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("budget", [ApproxDP(9.0, 1e-6), BUDGET], ids=["approximate", "concentrated"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_a_fit_finds_numbers_that_many_rows_share(budget, neighbours):
    """Under the one charge of the fit; plan, guarantee, schema and effects say so, and it errs less often than without."""
    bounds = {} if neighbours == "replace-one" else {"n_rows_bounds": (N - 100, N + 500)}
    ledger, given = Ledger(limit=budget, neighbours=neighbours), bounds | {"neighbours": neighbours, "mechanism": "gradient"}
    model = AdditiveClassifier(budget, schema=SCHEMA, ledger=ledger, **given)
    plan = model.plan(None if bounds else N)
    assert plan.atoms.share == SHARE_OF_ATOMS == 0.15
    assert plan.to_dict()["atoms"]["columns"] == ["gain", "loss"]
    assert "numbers that many rows share" in str(plan)
    assert "15% of the budget finds numbers that many rows share" in plan.why()
    model.fit(ROWS, ROWS["y"])
    assert math.isclose(*(float(next(iter(each.amounts.values()))) for each in (ledger.spent(), budget)), rel_tol=1e-9)
    assert len(ledger.entries()) == 1
    assert {5013.0, 7688.0} <= set(atoms_of(model)["gain"])
    assert model.coef_.shape == (1, model._encoder.n_features)
    assert [name for name in model.coefficient_names_ if name.startswith("gain=")] == [
        f"gain={atom:g}" for atom in atoms_of(model)["gain"]
    ]
    assert 'the rows are counted by their number in "gain" and "loss", with noise' in model.guarantee_.statement()
    effects = model.effects_.set_index("value")["effect"]
    assert effects["= 5013"] < -1.0 < 1.0 < effects["= 7688"]
    test = table(seed=9)
    without = AdditiveClassifier(budget, schema=SCHEMA, atoms=False, **given).fit(ROWS, ROWS["y"])
    assert model.score(test, test["y"]) > without.score(test, test["y"]) + 0.05


@pytest.mark.parametrize(
    ("kind", "schema", "parameters"),
    [
        (AdditiveRegressor, NUMBERS, {}),
        (AdditiveRegressor, COUNTS, {"loss": "poisson"}),
        (AdditiveClassifier, THREE, {}),
        (AdditiveClassifier, SCHEMA, {"mechanism": "objective"}),
        (AdditiveClassifier, SCHEMA, {"mechanism": "gradient"}),
        (AdditiveClassifier, SCHEMA, {"centre": False}),
        (AdditiveClassifier, SCHEMA, {"loss": "logistic"}),
        (AdditiveClassifier, SCHEMA, {"max_rows_per_person": 2, "budget": ZCDP(30.0)}),
        (AdditiveClassifier, LONG, {"budget": PureDP(20.0)}),
        (AdditiveClassifier, SCHEMA, {"class_weight": {"n": 1.0, "p": 0.5}}),
    ],
    ids=[
        "numbers",
        "counts",
        "three classes",
        "objective",
        "gradients",
        "no centre",
        "logistic",
        "persons",
        "pure",
        "weights",
    ],
)
def test_fits_of_every_kind_find_them(kind, schema, parameters, tmp_path):
    """Each with its own plan, which `confide verify` makes again; files say the same as the model."""
    model = fitted(kind, schema=schema, **parameters)
    assert {5013.0, 7688.0} <= set(atoms_of(model)["gain"])
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert failures_of_plan(loaded) == ()
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(ROWS))
    assert loaded.schema_.to_dict() == model.schema_.to_dict()


def test_rows_of_persons_and_weights_of_rows_do_not_matter(tmp_path):
    """Rows beyond the cap of a person are not counted; a row of any weight counts once."""
    rows = ROWS.assign(who=np.arange(N) // 4, w=0.5)
    weighted = replace(SCHEMA, weight={"column": "w", "high": 1.0})
    model = fitted(rows=rows, schema=weighted)
    assert atoms_of(model) == atoms_of(fitted())
    persons = replace(SCHEMA, person="who")
    ledger = Ledger(limit=ZCDP(30.0))
    model = fitted(rows=rows, schema=persons, budget=ZCDP(30.0), ledger=ledger)
    assert 5013.0 in atoms_of(model)["gain"]


def test_rows_in_files_and_partitions_give_the_same_release(tmp_path, monkeypatch):
    """To the bit from files, kept or read again; from partitions the same atoms."""
    monkeypatch.setattr("confide.data.file_rows._HELD_BYTES", 0)
    model = fitted(random_state=1)
    ROWS.to_parquet(tmp_path / "rows.parquet")
    for cache in (False, True):
        rows = confide.open_rows(tmp_path / "rows.parquet", SCHEMA, cache=cache)
        streamed = AdditiveClassifier(BUDGET, schema=SCHEMA, random_state=1).fit(rows)
        np.testing.assert_array_equal(streamed.coef_, model.coef_)
        assert streamed.schema_ == model.schema_
    dask = pytest.importorskip("dask.dataframe")
    parts = confide.open_rows(dask.from_pandas(ROWS, npartitions=3), SCHEMA)
    divided = AdditiveClassifier(BUDGET, schema=SCHEMA, random_state=1).fit(parts)
    assert divided.schema_ == model.schema_
    np.testing.assert_allclose(divided.coef_, model.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        (NUMBERS, {"budget": PureDP(30.0)}),
        (SCHEMA, {"budget": PureDP(30.0)}),
        (SCHEMA, {"budget": PureDP(math.inf)}),
        (SCHEMA, {"atoms": False}),
        (SCHEMA, {"monotone": {"age": "up"}}),
        (SCHEMA, {"penalty": "smooth"}),
        (SCHEMA, {"inference_share": 0.3}),
        (SCHEMA, {"interactions": "all"}),
        (SCHEMA, {"mechanism": "output"}),
        (SCHEMA, {"prior": AdditiveClassifier(math.inf, schema=SCHEMA, random_state=0).fit(ROWS, ROWS["y"])}),
        (replace(SCHEMA, columns={"gain": {"low": 0, "high": 100}, "sex": {"categories": ["f", "m"]}}), {}),
        (replace(SCHEMA, columns={"gain": {"low": 0, "high": 100, "scale": "log", "atoms": [5]}}), {}),
        (replace(SCHEMA, columns={"gain": {"low": 0.2, "high": 0.9, "scale": "log"}}), {}),
    ],
)
def test_other_fits_look_for_none(schema, parameters):
    """It follows from public facts, and their plan has no such part."""
    kind = AdditiveRegressor if schema is NUMBERS else AdditiveClassifier
    model = kind(**{"budget": BUDGET, "schema": schema, "random_state": 0} | parameters)
    assert getattr(model.plan(N), "atoms", None) is None
    assert LogisticRegression(BUDGET, schema=SCHEMA).plan(N).atoms is None
    squared = AdditiveRegressor(BUDGET, schema=NUMBERS, loss="squared").plan(N)
    assert getattr(squared, "atoms", None) is None


@pytest.mark.parametrize(
    ("columns", "interact"),
    [
        ({"a=b": COLUMNS["gain"], "a": {"categories": ["b=5013", "c", "d"]}}, ()),
        (
            {
                "c=A:age": COLUMNS["gain"],
                "c": {"categories": ["A", "B", "C"]},
                "age": {"categories": ["5013", "y", "z"]},
            },
            [["c", "age"]],
        ),
        ({"q=(missing)": COLUMNS["gain"], "q": {"categories": ["(missing)=5013", "c", "d"]}}, ()),
        ({"gain": COLUMNS["gain"], "gain=7": {"low": 0, "high": 1}}, ()),
    ],
    ids=["level", "product", "missing", "column"],
)
def test_names_that_an_atom_might_have_leave_a_column_out(columns, interact):
    """Two encoded columns of one name would be refused when the model is made, after the charge."""
    schema = Schema(columns, {"column": "y", "negative": "n", "positive": "p"}, interact=interact)
    with_another = Encoder(replace(schema, columns={**columns, "loss": COLUMNS["loss"]}), slots=2)
    assert [column.name for column in with_another.sought] == ["loss"]
    assert "loss=(missing)" in with_another.feature_names
    rows = pd.DataFrame({name: each.get("categories", [0.5])[-1] for name, each in columns.items()}, index=ROWS.index)
    model = AdditiveClassifier(BUDGET, schema=schema).fit(rows.assign(**{next(iter(columns)): ROWS["gain"]}), ROWS["y"])
    assert model.plan(N).atoms is None
    assert atoms_of(model) == {}


def test_where_noise_is_large_beside_the_rows_none_are_looked_for():
    """Three deviations of the noise on a count may be 28 in 10,000 rows: one row less is too few."""
    model = AdditiveClassifier(BUDGET, schema=SCHEMA)
    assert ENOUGH_FOR_ATOMS == {"gaussian": 0.0028, "laplace": 0.0015}
    pure = AdditiveClassifier(PureDP(20.0), schema=LONG)
    least = math.ceil(3.0 * pure.plan(N).atoms.deviation / 0.0015)
    assert [pure.plan(n).atoms is None for n in (least, least - 1)] == [False, True]
    enough = math.ceil(3.0 * model.plan(N).atoms.deviation / 0.0028)
    assert model.plan(enough).atoms is not None
    assert model.plan(enough - 1).atoms is None
    assert model.plan(enough - 1).problem == AdditiveClassifier(BUDGET, schema=SCHEMA, atoms=False).plan(enough - 1).problem


def test_a_pure_budget_is_charged_once():
    """Counts and weights share it, and a ledger that adds up Rényi divergences counts a pure release."""
    ledger = Ledger(limit=PureDP(20.0))
    model = AdditiveClassifier(PureDP(20.0), schema=LONG, ledger=ledger).fit(ROWS, ROWS["y"])
    assert ledger.spent() == PureDP(20.0)
    assert len(ledger.entries()) == 1
    assert model.guarantee_.budget == PureDP(20.0)
    assert {5013.0, 7688.0} <= set(atoms_of(model)["gain"])


@pytest.mark.parametrize(
    ("interact", "columns"), [((), ["gain"]), (["loss"], ["loss"]), (["gain"], ["gain"])], ids=["none", "second", "first"]
)
def test_few_weights_have_atoms_in_one_column(interact, columns, tmp_path):
    """Under (epsilon, delta), with so many rows for each unit of noise: in a column of an interaction, or the first."""
    assert ROWS_FOR_ATOMS == 3_500.0
    ages = {f"age{i}": COLUMNS["age"] for i in range(6)}
    schema = replace(SCHEMA, columns=COLUMNS | ages, interact=[["sex", name] for name in interact])
    model, plain = (
        AdditiveClassifier(ApproxDP(2.0, 1e-9), schema=schema, knots=2, atoms=atoms) for atoms in ("auto", False)
    )
    noise = plain.plan(13_000)
    assert noise.noise.law == "laplace"
    least = ROWS_FOR_ATOMS * noise_on_a_weight(noise) / noise.problem.row_bound.l2_norm
    assert model.plan(int(0.97 * least)) == plain.plan(int(0.97 * least))
    plan = model.plan(int(1.03 * least))
    assert [column.name for column in plan.atoms.query.columns] == columns
    assert plan.problem.n_features == noise.problem.n_features + SLOTS
    assert plan.noise.law == "gaussian"
    rows = ROWS.assign(**dict.fromkeys(ages, ROWS["age"]))
    fit = AdditiveClassifier(ApproxDP(20.0, 1e-9), schema=schema, knots=2, random_state=0).fit(rows, rows["y"])
    assert ({5013.0, 7688.0} <= set(atoms_of(fit).get("gain", ()))) == (columns == ["gain"])
    assert f'the rows are counted by their number in "{columns[0]}", with noise' in fit.guarantee_.statement()
    fit.save(tmp_path / "model.json")
    assert failures_of_plan(confide.load(tmp_path / "model.json")) == ()


def test_a_column_gets_as_many_atoms_as_it_has_slots():
    """The plan has a column of zeros for each slot that stays empty, and neither its ridge nor its mechanism counts them."""
    assert SLOTS == 64
    plan = AdditiveClassifier(BUDGET, schema=SCHEMA).plan(N)
    plain = AdditiveClassifier(BUDGET, schema=SCHEMA, atoms=False).plan(N)
    assert plan.problem.n_features == plain.problem.n_features + 2 * SLOTS
    assert plan.alpha < 1.3 * plain.alpha
    rng = np.random.default_rng(0)
    many = ROWS.assign(gain=rng.choice(np.arange(100, 20_000, 199), N))
    assert len(atoms_of(fitted(rows=many, budget=ZCDP(400.0)))["gain"]) == SLOTS


def test_where_none_is_found_the_model_is_one_without_atoms(tmp_path):
    """Its schema keeps no trace, and its plan is made again all the same."""
    rng = np.random.default_rng(0)
    rows = ROWS.assign(gain=rng.uniform(1, 20_000, N), loss=np.nan)
    rows.loc[0, "loss"] = 3.5
    # Noise alone may make an atom; each of these seeds makes none in about one of five cases.
    models = (fitted(rows=rows, random_state=seed) for seed in range(40))
    model = next(model for model in models if not atoms_of(model))
    assert model.schema_ == AdditiveClassifier(BUDGET, schema=SCHEMA, atoms=False).chosen_schema(N)
    model.save(tmp_path / "model.json")
    assert failures_of_plan(confide.load(tmp_path / "model.json")) == ()


def test_atoms_of_a_model_are_released_facts_for_another_fit(tmp_path):
    """A schema says that its own fit found them; another fit takes them as they are and names their price."""
    ledger = Ledger(limit=BUDGET)
    model = fitted(ledger=ledger)
    release = next(column.released_atoms for column in model.schema_.columns if column.name == "gain")
    assert release.by_fit
    assert release.price == "rho = 4 (replace-one)"
    assert Schema.from_dict(model.schema_.to_dict()).to_dict() == model.schema_.to_dict()
    other = fitted(LogisticRegression, schema=model.schema_)
    assert 'The atoms of "gain" and "loss" were not declared' in other.guarantee_.statement()
    again = fitted(schema=model.schema_, random_state=3)
    assert atoms_of(again) == atoms_of(model)
    again.save(tmp_path / "again.json")
    assert failures_of_plan(confide.load(tmp_path / "again.json")) == ()
    refitted = model.refit(ROWS, ROWS["y"], ledger=None)
    assert atoms_of(refitted) == atoms_of(model)
    assert refitted.guarantee_.void is not None  # the seed of this test


def test_verify_knows_which_atoms_a_fit_may_find(tmp_path):
    """The agreed schema has none, and a file with others than the plan may find is refused."""
    model = AdditiveClassifier(BUDGET, schema=SCHEMA).fit(ROWS, ROWS["y"])
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    findings = verify(loaded, schema=SCHEMA)
    assert any("atoms that the fit found" in finding.sentence for finding in findings if finding.outcome == "verified")
    assert not [finding for finding in findings if finding.outcome == "failed"]
    again = AdditiveClassifier(BUDGET, schema=model.schema_).fit(ROWS, ROWS["y"])
    again.save(tmp_path / "again.json")
    findings = verify(confide.load(tmp_path / "again.json"), schema=model.schema_)
    assert any("exactly this schema" in finding.sentence for finding in findings)
    assert not [finding for finding in findings if finding.outcome == "failed"]
    content = read_document(tmp_path / "model.json")
    places = {"price": ("rho", 9.0), "mark": ("by_fit", False)}
    for name, (key, value) in places.items():
        changed = json.loads(json.dumps(content))
        for column in changed["schema"]["columns"].values():
            if "released_atoms" in column:
                column["released_atoms"][key] = value
        if name == "mark":
            for column in changed["schema"]["columns"].values():
                column.get("released_atoms", {}).pop("by_fit", None)
        try:
            other = confide.load(written(changed, tmp_path / f"{name}.json"))
        except FileError:
            continue
        assert failures_of_plan(other), name


def test_a_search_and_fits_on_parts_look_for_none():
    """Their fits share one release, and would have atoms of their own."""
    search = confide.PrivateSearchCV(AdditiveClassifier(schema=SCHEMA), {"alpha": [0.01, 0.1]}, budget=ZCDP(9.0))
    assert all(plan.atoms is None for plan in search.plan(N).plans)
    search.fit(ROWS, ROWS["y"])
    assert atoms_of(search.best_estimator_) == {}


def test_rows_of_parties_are_fitted_without(tmp_path):
    """They send no counts; the fit leaves atoms out, and its plan is made again so."""
    schema = AdditiveClassifier(BUDGET, schema=SCHEMA).chosen_schema(N)
    ends = [multiprocessing.Pipe() for _ in range(2)]
    halves = zip(ends, (ROWS[: N // 2], ROWS[N // 2 :]), strict=True)
    parties = [
        Thread(target=confide.take_part, args=(theirs, AdditiveClassifier(BUDGET, schema=schema), half, half["y"]))
        for (_, theirs), half in halves
    ]
    for party in parties:
        party.start()
    model = AdditiveClassifier(BUDGET, schema=schema).fit(confide.FederatedRows(schema, [ours for ours, _ in ends]))
    for party in parties:
        party.join()
    assert atoms_of(model) == {}
    assert "counted by their number" not in model.guarantee_.statement()
    model.save(tmp_path / "model.json")
    assert failures_of_plan(confide.load(tmp_path / "model.json")) == ()


def test_slots_are_part_of_an_encoder():
    """Encoders with and without are different ones; what is kept of a model has none."""
    assert Encoder(SCHEMA, slots=SLOTS) != Encoder(SCHEMA)
    assert fitted()._encoder.slots == 0
