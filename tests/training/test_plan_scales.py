"""When a part of the budget finds the scales of columns in random features, and what a fit does with them."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from threading import Thread

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ApproxDP, LinearSVC, LogisticRegression, PureDP, Schema
from confide.data.streams import Reading
from confide.errors import FileError
from confide.features.encoder import Encoder
from confide.files import _checksum, read_document
from confide.privacy.budgets import ZCDP
from confide.report.verification import failures_of_plan
from confide.training import alpha
from confide.training.alpha import curvature_free_l2
from confide.training.plan import _remembered

BUDGET = ApproxDP(4.0, 1e-5)
COLUMNS = {
    "a": {"low": 0, "high": 1, "knots": 3},
    "b": {"low": 0, "high": 1},
    "c": {"categories": ["no", "yes"]},
    "d": {"categories": ["x", "y", "z"]},
}
FEATURES = {"number": 20, "length_scale": 1.0}
CLASSES = Schema(COLUMNS, {"column": "t", "negative": "n", "positive": "p"}, random_features=FEATURES)
NUMBERS = Schema(COLUMNS, {"column": "t", "low": 0, "high": 4}, random_features=FEATURES)


def table(n=3000, seed=0):
    """Rows whose class depends on one number and, much less, on one category."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.uniform(size=n),
            "b": rng.uniform(size=n),
            "c": rng.choice(["no", "yes"], size=n),
            "d": rng.choice(list("xyz"), size=n),
        }
    )
    chance = 0.15 + 0.6 * (frame["a"] > 0.5) + 0.1 * (frame["d"] == "z")
    return frame.assign(t=np.where(rng.uniform(size=n) < chance, "p", "n"))


def plan_of(schema=CLASSES, model=LinearSVC, budget=BUDGET, **parameters):
    return model(budget, schema=schema, **parameters).plan(3000)


def scales_of(model):
    """The scale of the first encoded column of each column of the schema."""
    scales = np.array(model._fourier.features.scales)
    return scales[[group.start for group in model._encoder.groups]]


def written(content, path):
    """A file of this content with the right checksum."""
    document = {"kind": "confide-model", "format_version": 1, "checksum": _checksum(content), "content": content}
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("budget", [BUDGET, ZCDP(0.1)], ids=["approximate", "concentrated"])
def test_a_fit_finds_which_columns_matter(budget):
    """One event covers the sums and the weights, and what says so is on the plan and in the guarantee."""
    rows = table()
    plan = plan_of(budget=budget)
    assert plan.problem.beside_mu >= plan.scaling.mu > 0.0
    assert plan.event.budget == budget
    assert plan.to_dict()["scaling"]["share"] == 0.02
    assert "changes along each of them" in str(plan)
    assert "along which columns" in plan.why()
    alone = plan_of(replace(CLASSES, random_features=FEATURES | {"scales": [1, 1, 1, 1]}), budget=budget)
    assert alone.scaling is None
    assert 1.0 < plan.noise.norm / alone.noise.norm < 1.03
    model = LinearSVC(budget, schema=CLASSES, random_state=0).fit(rows, rows["t"])
    first, *others = scales_of(model)
    assert first > 1.8 * max(others)
    assert "The scales of columns in random features follow" in model.guarantee_.statement()
    assert model._encoder.schema == CLASSES
    assert "over a scale for each column" in str(model._fourier)


@pytest.mark.parametrize(
    ("schema", "model", "parameters"),
    [
        (CLASSES, LinearSVC, {"budget": PureDP(4.0)}),
        (CLASSES, LinearSVC, {"budget": PureDP(np.inf)}),
        (replace(CLASSES, random_features=None), LinearSVC, {}),
        (replace(CLASSES, random_features=FEATURES | {"scales": [1, 2, 1, 1]}), LinearSVC, {}),
        (Schema(COLUMNS, {"column": "t", "classes": ["n", "o", "p"]}, random_features=FEATURES), LogisticRegression, {}),
    ],
    ids=["pure", "not private", "no features", "given", "three classes"],
)
def test_other_fits_find_none(schema, model, parameters):
    """Their plan has no such part."""
    estimator = model(**{"budget": BUDGET} | parameters, schema=schema)
    classes = {"n_classes": 3} if "classes" in str(schema.target.to_dict()) else {}
    assert estimator.plan(3000, **classes).scaling is None


def test_scales_of_a_schema_are_used():
    """They belong to the columns in the order of the schema."""
    schema = replace(CLASSES, random_features=FEATURES | {"scales": [1, 2, 3, 4]})
    rows = table(500)
    model = LinearSVC(BUDGET, schema=schema, random_state=0).fit(rows, rows["t"])
    np.testing.assert_array_equal(scales_of(model), [1.0, 2.0, 3.0, 4.0])


def test_rows_in_files_and_at_parties_give_the_same_release(tmp_path):
    """To the bit: blocks are the same wherever rows lie, and parties are told the scales."""
    rows = table()
    model = LinearSVC(BUDGET, schema=CLASSES, random_state=1).fit(rows, rows["t"])
    rows.to_parquet(tmp_path / "rows.parquet")
    streamed = LinearSVC(BUDGET, schema=CLASSES, random_state=1)
    streamed.fit(confide.open_rows(tmp_path / "rows.parquet", CLASSES))
    np.testing.assert_array_equal(streamed.coef_, model.coef_)
    assert streamed._fourier == model._fourier
    ends = [multiprocessing.Pipe() for _ in range(2)]
    halves = (rows[:1500], rows[1500:])
    parties = [
        Thread(target=confide.take_part, args=(theirs, LinearSVC(BUDGET, schema=CLASSES), half, half["t"]))
        for (_, theirs), half in zip(ends, halves, strict=True)
    ]
    for party in parties:
        party.start()
    together = LinearSVC(BUDGET, schema=CLASSES, random_state=1)
    together.fit(confide.FederatedRows(CLASSES, [ours for ours, _ in ends]))
    for party in parties:
        party.join()
    assert together._fourier == model._fourier
    np.testing.assert_allclose(together.coef_, model.coef_, atol=1e-6)


def test_a_file_keeps_the_scales_and_verification_asks_for_them(tmp_path):
    """A file that lacks them, though the plan finds some, is found out; one with too many cannot be read."""
    rows, path = table(), tmp_path / "model.json"
    LinearSVC(BUDGET, schema=CLASSES).fit(rows, rows["t"]).save(path)
    model = confide.load(path)
    assert scales_of(model)[0] > 1.0
    assert failures_of_plan(model) == ()

    content = read_document(path)
    scales = content["fourier_map"]["features"].pop("scales")
    assert "map of rows to random features" in failures_of_plan(confide.load(written(content, path)))[0]
    content["fourier_map"]["features"]["scales"] = [*scales, 1.0]
    with pytest.raises(FileError):
        confide.load(written(content, path))


def test_a_prior_brings_its_scales():
    """Its weights belong to features with these scales, so nothing is spent to find others."""
    rows = table()
    first = LinearSVC(BUDGET, schema=CLASSES).fit(rows, rows["t"])
    again = LinearSVC(BUDGET, schema=CLASSES, prior=first)
    assert again.plan(3000).scaling is None
    assert again.fit(rows, rows["t"])._fourier == first._fourier


def test_numbers_divide_rows_by_their_targets():
    """A regression finds the column by which its target grows."""
    rows = table(6000)
    numbers = 3.0 * (rows["a"] > 0.5) + np.random.default_rng(1).uniform(size=len(rows))
    rows = rows.assign(t=numbers)
    model = confide.HuberRegressor(BUDGET, schema=NUMBERS, random_state=0).fit(rows, rows["t"])
    first, *others = scales_of(model)
    assert first > 1.8 * max(others)


@pytest.mark.parametrize("mechanism", ["auto", "output", "gradient"])
def test_counts_whose_mean_is_matched_by_a_rho_of_its_own_are_released(mechanism):
    """What is charged for the mean is no part of what the weights leave for the scales."""
    ledger = confide.Ledger(limit=ZCDP(9.0))
    frame = table()
    counts = np.random.default_rng(1).poisson(1.0, len(frame)).clip(0, 4)
    model = confide.PoissonRegressor(ZCDP(0.5), schema=NUMBERS, ledger=ledger, mechanism=mechanism).fit(frame, counts)
    assert {"scaling", "matching"} <= {part.query.name for part in model.plan(len(frame)).parts}
    assert ledger.spent() == ZCDP(0.5)


def test_pieces_of_rows_without_their_map_are_the_pieces_with_it():
    """Partitions are checked by the sums of their pieces, so pieces that are cut elsewhere would seem to have changed."""
    encoder = Encoder(
        Schema({f"x{i}": {"low": 0, "high": 1} for i in range(50)}, random_features=FEATURES | {"number": 500})
    )
    reading = Reading(encoder, ("n", "p"), fourier=encoder.appended)
    alone = reading.remapped(lambda _: None)
    assert (alone.rows_in_block, alone.rows_in_piece) == (reading.rows_in_block, reading.rows_in_piece)
    scaled = reading.remapped(lambda features: features.scaled((1.5,) * 50))
    assert scaled.rows_in_piece == reading.rows_in_piece


@pytest.mark.parametrize("candidates", [[0.01], [0.01, 0.02]])
@pytest.mark.parametrize("method", ["permute-and-flip", "repeated"])
def test_a_search_scores_rows_by_the_features_of_their_weights(method, candidates):
    """Its score is nearly how often the chosen model is right."""
    frame = table(6000)
    estimator = LinearSVC(schema=Schema(CLASSES.columns, CLASSES.target, random_features=FEATURES | {"norm": 4.0}))
    search = confide.PrivateSearchCV(
        estimator, {"alpha": candidates}, budget=ApproxDP(20.0, 1e-5), method=method, score_share=0.3, expected_tries=2.0
    )
    search.fit(frame, frame["t"])
    assert abs(search.best_score_ - search.best_estimator_.score(frame, frame["t"])) < 0.08


PRIVATE_NUMBER = {"neighbours": "add-or-remove-one", "n_rows_bounds": (20_000, 24_000)}


def classes_with(budget=BUDGET, model=confide.AdditiveClassifier, schema=CLASSES, **parameters):
    return model(budget, schema=schema, **parameters).plan(*(() if "n_rows_bounds" in parameters else (24_000,)))


@pytest.mark.parametrize(("parameters", "share"), [(PRIVATE_NUMBER, 0.8), ({}, 1.0)], ids=["add", "replace"])
def test_features_of_two_classes_keep_their_ridge_and_encoded_columns_have_less(parameters, share, monkeypatch):
    """The least ridge is a share of that at which curvature is free; without features' own ridge all have the larger one."""
    schema = replace(CLASSES, random_features=FEATURES | {"number": 400})
    plan = classes_with(ApproxDP(1.0, 1e-5), schema=schema, **parameters)
    encoder = Encoder(schema)
    assert plan.problem.penalty.sizes == (encoder.n_features, 400, 1)
    one, largest, other = plan.problem.penalty.factors
    assert one == other == 1.0 < largest
    problem = plan.problem
    free = curvature_free_l2(plan.budget, problem.loss_bounds, problem.row_norm, problem.neighbours)
    assert plan.l2 == pytest.approx(share * free, rel=0.11)  # steps of a tenth, where double precision needs more
    assert "others have more" in str(plan)
    monkeypatch.setattr(alpha, "_with_ridge_of_features", lambda *given: alpha._balanced_plan(*given)[0])
    _remembered.cache_clear()
    alone = classes_with(plan.budget, schema=schema, **parameters)
    _remembered.cache_clear()
    assert not alone.problem.penalty.factors
    assert largest * plan.l2 == pytest.approx(alone.l2, rel=0.11)


@pytest.mark.parametrize(
    ("budget", "schema", "model"),
    [
        (PureDP(4.0), CLASSES, confide.AdditiveClassifier),
        (BUDGET, NUMBERS, confide.AdditiveRegressor),
        (BUDGET, CLASSES, LinearSVC),
        (BUDGET, replace(CLASSES, random_features=FEATURES | {"columns": 2}), confide.AdditiveClassifier),
        (ApproxDP(0.1, 1e-5), CLASSES, confide.AdditiveClassifier),
    ],
    ids=["pure", "numbers", "hinge", "few columns", "large noise"],
)
def test_all_other_features_have_the_ridge_of_all_weights(budget, schema, model):
    """Two ridges were compared for logistic loss, features of all columns, and little Gaussian noise."""
    plan = classes_with(budget, model, schema)
    assert not plan.problem.penalty.factors
