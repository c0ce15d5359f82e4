"""A fit that asks whether columns act together: features stay if they do, and otherwise another plan has the weights."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide import AdditiveClassifier, ApproxDP, PureDP, Schema
from confide.data.arrays import MemorySource
from confide.errors import ParameterError
from confide.estimators.released import words_on_noise
from confide.estimators.search import plans_again
from confide.features.encoder import Encoder
from confide.files import read_document
from confide.privacy import scales
from confide.privacy.budgets import ZCDP, Neighbours
from confide.privacy.gaussian import gaussian_delta
from confide.privacy.lattice import LatticeNoise
from confide.report.verification import failures_of_plan
from confide.report.writing import write_report
from confide.training.fit import lattices_of
from tests.training.test_plan_scales import COLUMNS, table, written

BUDGET = ApproxDP(4.0, 1e-5)
FEATURES = {"number": 20, "length_scale": 1.0, "if_found": True}
SCHEMA = Schema(COLUMNS, {"column": "t", "negative": "n", "positive": "p"}, random_features=FEATURES)
PRIVATE_NUMBER = {"neighbours": "add-or-remove-one", "n_rows_bounds": (2_800, 3_600)}


def together(n=3000):
    """Rows whose class depends on a number and a category together, and on neither alone."""
    frame = table(n)
    chance = np.where((frame["a"] > 0.5) == (frame["c"] == "yes"), 0.9, 0.1)
    return frame.assign(t=np.where(np.random.default_rng(3).uniform(size=n) < chance, "p", "n"))


def fitted(rows, **parameters):
    return AdditiveClassifier(**{"budget": BUDGET, "schema": SCHEMA, "random_state": 0} | parameters).fit(rows, rows["t"])


@pytest.mark.parametrize("relation", [{}, PRIVATE_NUMBER], ids=["replace", "add"])
def test_features_stay_where_columns_act_together_and_only_there(relation, tmp_path):
    """One event, written before any row is used, covers both; files, plans and predictions follow what was found."""
    ledgers = [confide.Ledger(limit=BUDGET, neighbours=relation.get("neighbours", "replace-one")) for _ in range(2)]
    pairs = zip((together(), table()), ledgers, strict=True)
    with_both, alone = (fitted(rows, ledger=ledger, **relation) for rows, ledger in pairs)
    plan = with_both.plan(3000)
    assert [ledger.spent() for ledger in ledgers] == [BUDGET, BUDGET]
    assert plan.to_dict()["pairs"]["share"] == 0.05
    assert plan.without.mechanism == "gradient"
    assert "act together" in plan.why()
    assert with_both.schema_.random_features is not None
    assert with_both.schema_.features_not_found is None
    assert alone.schema_.random_features is None
    assert alone.schema_.features_not_found == SCHEMA.random_features
    assert alone.coef_.shape[1] == plan.without.problem.n_features == plan.problem.n_features - 20
    assert alone.alpha_ == plan.without.alpha != plan.alpha == with_both.alpha_
    assert "no interactions" in str(alone.schema_)
    rows = together(1000)
    assert with_both.score(rows, rows["t"]) > 0.7
    for name, model in (("with", with_both), ("without", alone)):
        path = tmp_path / f"{name}.json"
        model.save(path)
        read = confide.load(path)
        assert failures_of_plan(read) == ()
        assert plans_again(read)[1].event == plan.event
        np.testing.assert_array_equal(read.decision_function(rows), model.decision_function(rows))
        assert "Unless they show that columns act together" in read.guarantee_.statement()
    assert (with_both.guarantee_.mechanism, alone.guarantee_.mechanism) == ("objective", "gradient")
    assert "showed that columns act together: the released weights have" in with_both.guarantee_.statement()
    assert "did not show that columns act together: the released weights have" in alone.guarantee_.statement()
    assert with_both.guarantee_.budget == alone.guarantee_.budget == BUDGET


def test_a_file_that_hides_what_was_found_is_found_out(tmp_path):
    """Without the features that were left out, with features for sure, or with another ridge, its plan is another one."""
    path = tmp_path / "model.json"
    fitted(table()).save(path)
    content = read_document(path)
    described = json.dumps(content)
    hidden = json.loads(described)
    del hidden["schema"]["features_not_found"]
    certain = json.loads(described)
    del certain["schema"]["features_not_found"]["if_found"]
    renamed = content | {"guarantee": content["guarantee"] | {"mechanism": "objective"}}
    silent = content | {"guarantee": content["guarantee"] | {"assumptions": content["guarantee"]["assumptions"][:-1]}}
    for changed in (hidden, certain, renamed, silent, content | {"alpha": 0.5 * content["alpha"]}):
        assert failures_of_plan(confide.load(written(changed, path))) != ()


def test_rows_in_files_find_the_same(tmp_path):
    """To the bit, whichever plan has the weights."""
    for rows in (together(), table()):
        rows.to_parquet(tmp_path / "rows.parquet")
        model, streamed = fitted(rows), AdditiveClassifier(BUDGET, schema=SCHEMA, random_state=0)
        streamed.fit(confide.open_rows(tmp_path / "rows.parquet", SCHEMA))
        np.testing.assert_array_equal(streamed.coef_, model.coef_)
        assert streamed.schema_ == model.schema_


def test_what_is_chosen_follows_from_released_numbers_alone(monkeypatch):
    """With the same released sums, rows of another table have the same cells, the same choice and the same bounds."""
    of_fits, real = [], LatticeNoise.release

    def release(self, exact, entropy, *more):
        own = of_fits[-1]
        own.append(exact)
        return of_fits[0][len(own) - 1] if len(own) <= 2 else real(self, exact, entropy, *more)

    monkeypatch.setattr(LatticeNoise, "release", release)
    for kept in (together(), table()):
        of_fits.clear()
        models = []
        for rows in (kept, table(seed=5), together(2900)):
            of_fits.append([])
            models.append(fitted(rows, **PRIVATE_NUMBER))
        assert np.abs(of_fits[1][1] - of_fits[0][1]).max() > 30.0
        assert models[0].schema_ == models[1].schema_ == models[2].schema_
        assert models[0]._fourier == models[1]._fourier == models[2]._fourier


@pytest.mark.parametrize("size", [0.0, 1e-300, 1.0, 1e3, 1e9, 1e300])
def test_nothing_fails_after_the_charge_whatever_was_released(size, monkeypatch):
    """Sums of any size and sign: cells, the choice and the weights of either plan follow."""
    rng, real, n_released = np.random.default_rng(0), LatticeNoise.release, []

    def release(self, exact, entropy, *more):
        n_released.append(1)
        return rng.normal(size=exact.shape) * size if len(n_released) <= 2 else real(self, exact, entropy, *more)

    for rows in (together(300), table(300)):
        n_released.clear()
        monkeypatch.setattr(LatticeNoise, "release", release)
        ledger = confide.Ledger(limit=BUDGET)
        model = fitted(rows, ledger=ledger)
        assert len(n_released) >= 3
        assert ledger.spent() == BUDGET
        assert np.isfinite(model.coef_).all()


def test_heavy_rows_fail_no_more_than_others():
    """Sums of rows that count 10^18 times are brought to units of the heaviest row before anything is solved."""
    for rows in (together(), table()):
        heavy = {"class_weight": {"n": 1e9, "p": 1e9}, "max_sample_weight": 1e9}
        model = AdditiveClassifier(BUDGET, schema=SCHEMA, ledger=confide.Ledger(limit=BUDGET), **heavy)
        model.fit(rows, rows["t"], sample_weight=np.full(len(rows), 1e9))
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("alphas", [[1e-3], [1e-3, 1e-2]])
def test_a_search_keeps_features_and_says_so(alphas):
    """Its candidates are not asked, not even a single one, and what it charged leads to a model."""
    rows = table(3000)
    search = confide.PrivateSearchCV(AdditiveClassifier(schema=SCHEMA), {"alpha": alphas}, budget=BUDGET)
    search.fit(rows, rows["t"])
    assert search.best_estimator_.schema_.random_features == replace(SCHEMA.random_features, if_found=False)
    assert failures_of_plan(search.best_estimator_) == ()
    assert all(plan.pairs is plan.without is None for plan in search.plan(3000).plans)


def test_numbers_and_priors_are_not_asked():
    """A regression has no classes, and features of a prior are its own."""
    numbers = Schema(COLUMNS, {"column": "t", "low": 0, "high": 4}, random_features=FEATURES)
    assert confide.AdditiveRegressor(BUDGET, schema=numbers, target_bound=4).plan(3000).pairs is None
    first = fitted(together(), random_state=None)
    again = first.refit(together(2900), together(2900)["t"], ledger=confide.Ledger(limit=BUDGET))
    assert again.schema_.random_features == replace(first.schema_.random_features, if_found=False)
    assert again.plan(2900).pairs is None
    third = again.refit(together(2800), together(2800)["t"], ledger=confide.Ledger(limit=BUDGET))
    assert third.schema_ == again.schema_


def test_a_schema_has_features_or_has_left_them_out():
    """Both at once would leave open which plan a fit had."""
    with pytest.raises(confide.errors.SchemaError, match="features_not_found"):
        replace(SCHEMA, features_not_found=FEATURES)


def test_the_noise_of_both_plans_is_checked_before_the_charge():
    """OpenDP is asked of each lattice, and a plan that the event does not cover is refused before a row is used."""
    plan = AdditiveClassifier(BUDGET, schema=SCHEMA).plan(3000)
    assert plan.without.lattice in lattices_of(plan)
    assert {part.lattice for part in (*plan.parts, *plan.without.parts)} <= set(lattices_of(plan))
    others = AdditiveClassifier(ApproxDP(5.0, 1e-5), schema=SCHEMA).plan(3000).without
    for wrong in (replace(plan, without=None), replace(plan, without=others), replace(plan, without=plan)):
        with pytest.raises(ParameterError, match="another mechanism"):
            lattices_of(wrong)
    pairs_alone = replace(plan, parts=tuple(part for part in plan.parts if part.query.name != "pairs"))
    with pytest.raises(ParameterError, match="another mechanism"):
        lattices_of(pairs_alone)


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        ({"budget": PureDP(4.0)}, SCHEMA),
        ({"budget": ZCDP(0.5)}, SCHEMA),
        ({"mechanism": "objective"}, SCHEMA),
        ({}, replace(SCHEMA, random_features=FEATURES | {"if_found": False})),
        ({}, Schema(COLUMNS, {"column": "t", "classes": ["n", "o", "p"]}, random_features=FEATURES)),
    ],
    ids=["pure", "concentrated", "named mechanism", "always", "three classes"],
)
def test_other_fits_keep_their_features(parameters, schema):
    """Their plans have no such part."""
    classes = {"n_classes": 3} if "classes" in str(schema.target.to_dict()) else {}
    plan = AdditiveClassifier(**{"budget": BUDGET, "schema": schema} | parameters).plan(3000, **classes)
    assert plan.pairs is None
    assert plan.without is None
    assert plan.problem.n_features == Encoder(schema).n_features + 20


@pytest.mark.parametrize(
    "parameters", [{"budget": PureDP(4.0)}, {"mechanism": "objective"}], ids=["pure", "named mechanism"]
)
def test_a_fit_that_could_not_ask_says_nothing_was_found(parameters, tmp_path):
    """Its features stand for sure, whatever its schema asked for, in the model and in the words about it."""
    model, asked = fitted(together(), **parameters), fitted(together())
    assert model.schema_.random_features == replace(SCHEMA.random_features, if_found=False)
    assert not any("act together" in sentence for sentence in words_on_noise(model))
    assert any("act together" in sentence for sentence in words_on_noise(asked))
    model.save(tmp_path / "model.json")
    assert failures_of_plan(confide.load(tmp_path / "model.json")) == ()


def test_another_fit_takes_what_was_found(tmp_path):
    """A schema that says that nothing was found leads to no features, and so does such a model as a prior."""
    alone = fitted(table(), random_state=None)
    again = AdditiveClassifier(BUDGET, schema=alone.schema_, random_state=1).fit(table(), table()["t"])
    assert again.schema_.random_features is again.schema_.features_not_found is None
    refitted = alone.refit(table(seed=2), table(seed=2)["t"], ledger=confide.Ledger(limit=BUDGET))
    assert refitted.schema_.random_features is None
    refitted.save(tmp_path / "model.json")
    assert failures_of_plan(confide.load(tmp_path / "model.json")) == ()


def test_the_rows_are_encoded_in_blocks_of_their_own():
    """Rows without features are summed as those of a plan without any, whose rounding has the depth of such blocks."""
    rows, kept = table(), []
    real = MemorySource.remapped

    def remapped(self, change):
        made = real(self, change)
        kept.append((change, made))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemorySource, "remapped", remapped)
        fitted(rows)
    plain = [made for change, made in kept if change is None]
    assert len(plain) == 1
    own = MemorySource(replace(plain[0].blocks, rows_in_block=0), plain[0].labels)
    assert plain[0].blocks.rows_in_block == own.blocks.rows_in_block


def test_auto_writes_that_features_depend_on_what_is_found():
    """Features that a user asks for, and those of a regression, stand whatever is found."""
    columns = {name: {"low": -4, "high": 4} for name in "abc"}
    estimator = AdditiveClassifier(BUDGET, schema=Schema(columns))
    assert estimator.chosen_schema(40_000).random_features.if_found
    assert not estimator.set_params(interactions="all").chosen_schema(40_000).random_features.if_found
    assert Schema.from_dict(estimator.chosen_schema(40_000).to_dict()) == estimator.chosen_schema(40_000)


def shift_of(part, problem):
    """The largest shift of a noisy sum over the deviation of its noise, from the bound on rows alone."""
    rows = 2.0 if problem.neighbours is Neighbours.REPLACE_ONE else 1.0
    return rows * problem.largest_weight * part.query.row_sum.row_bound.l2_norm / part.lattice.deviation


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"fit_intercept": False},
        {"fit_intercept": False} | PRIVATE_NUMBER,
        {"budget": ApproxDP(40.0, 1e-5)},
        {"max_sample_weight": 3.0},
    ],
    ids=str,
)
def test_one_event_covers_the_sums_with_either_plan(parameters):
    """Computed from bounds and deviations: the sums beside plan A, and the sums with plan B."""
    estimator = AdditiveClassifier(**{"budget": BUDGET, "schema": SCHEMA} | parameters)
    plan = estimator.plan(None if "n_rows_bounds" in parameters else 3000)
    other, curve, problem = plan.without, plan.event.curve, plan.problem
    sums = {part.query.name: shift_of(part, problem) for part in plan.parts if part.query.name in ("scaling", "pairs")}
    others = [part.mu for part in plan.parts if part.query.name != "pairs"]
    assert math.hypot(sums["pairs"], *others) <= curve.beside_mu * (1.0 + 1e-6)
    of_other = math.hypot(math.sqrt(other.n_passes) / other.lattice.multiplier, *(part.mu for part in other.parts))
    twice = 2.0 if problem.neighbours is Neighbours.REPLACE_ONE else 1.0
    assert of_other <= math.hypot(twice * curve.mu, curve.seal_mu)
    for epsilon in np.exp(np.linspace(-3.0, 4.0, 30)):
        assert gaussian_delta(epsilon, math.hypot(*sums.values(), of_other)) <= curve.delta(epsilon) * (1.0 + 1e-6)


def test_cells_follow_from_released_sums_alone(monkeypatch):
    """The same released sums of other rows lead to the same cells, bit for bit."""
    of_fits, made, real, coarse = [], [], LatticeNoise.release, scales.coarse_cells

    def release(self, exact, entropy, *more):
        own = of_fits[-1]
        own.append(exact)
        return of_fits[0][len(own) - 1] if len(own) <= 2 else real(self, exact, entropy, *more)

    def cells(*given):
        made.append(coarse(*given))
        return made[-1]

    monkeypatch.setattr(LatticeNoise, "release", release)
    monkeypatch.setattr(scales, "coarse_cells", cells)
    for rows in (together(), table(seed=5).assign(a=0.1), together(2900).assign(a=0.9)):
        of_fits.append([])
        fitted(rows, **PRIVATE_NUMBER)
    for other in made[1:]:
        np.testing.assert_array_equal(other.cells, made[0].cells)


def test_foreign_plans_and_parts_are_refused_before_the_charge():
    """Of another relation, number of rows, weight or persons; noisier than the event covers; or paid by nothing."""
    plan = AdditiveClassifier(BUDGET, schema=SCHEMA).plan(3000)
    low, other = ApproxDP(0.5, 1e-6), plan.without
    private = {"neighbours": "add-or-remove-one", "n_rows_bounds": (3000, 3000)}
    of_others = [
        AdditiveClassifier(low, schema=SCHEMA, **private).plan().without,
        AdditiveClassifier(low, schema=SCHEMA).plan(2999).without,
        AdditiveClassifier(low, schema=SCHEMA, max_sample_weight=2.0).plan(3000).without,
        replace(other, lattice=type(other.lattice).of_mu(
            other.lattice.dimension, 1.0, scales.mu_of_weights(plan) / math.sqrt(other.n_passes) * (1.0 - 1e-9)
        )),
        1,
    ]  # fmt: skip
    wrong = [replace(plan, without=each) for each in of_others]
    wrong.append(replace(plan, problem=replace(plan.problem, beside_mu=0.5 * plan.problem.beside_mu)))
    query = plan.pairs.query
    for what in ({"neighbours": Neighbours.ADD_OR_REMOVE_ONE}, {"rows_per_person": 2}):
        part = scales.scales_plan(replace(query, problem=replace(query.problem, **what)), plan.pairs.budget, 0.05)
        wrong.append(replace(plan, parts=tuple(part if each.query.name == "pairs" else each for each in plan.parts)))
    for each in wrong:
        with pytest.raises(ParameterError, match="another mechanism"):
            lattices_of(each)


def test_a_model_says_in_words_what_was_found(tmp_path):
    """In its guarantee, both bounds on rows and what plan B releases; in the report, what became of the features."""
    kept, alone = (fitted(rows, random_state=None) for rows in (together(), table()))
    for model, found in ((kept, False), (alone, True)):
        assert "Without random features, rows are clipped to an L2 norm of 2.23607" in model.guarantee_.statement()
        write_report(model, tmp_path / "report.html", overwrite=True)
        text = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert ("Columns were not found to act together" in text) == found
        assert ("Columns were found to act together" in text) != found
        assert (">gradient<" in text) == found
