"""`describe`: what is read, refused, charged and found."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide.errors import BudgetExceeded, InputError, ParameterError
from confide.estimators import description
from confide.estimators.description import plan_of_description
from confide.features.schema import Schema
from confide.privacy.budgets import Neighbours

SCHEMA = Schema(
    {
        "age": {"low": 0, "high": 100},
        "income": {"low": 0, "high": 1e5, "scale": "log", "missing": True},
        "colour": {"categories": ["red", "green"], "other": True},
        "code": {"categories": [1, 2, 3]},
    },
    {"column": "sick", "negative": "no", "positive": "yes"},
)


@pytest.fixture(scope="module")
def frame():
    """3,000 made-up people."""
    rng = np.random.default_rng(0)
    income = np.where(rng.random(3000) < 0.2, np.nan, rng.lognormal(9.0, 1.0, 3000))
    return pd.DataFrame(
        {
            "sick": rng.choice(["no", "yes"], 3000, p=[0.9, 0.1]),
            "income": income,
            "age": rng.uniform(-5.0, 80.0, 3000),
            "colour": rng.choice(["red", "green", "blue"], 3000),
            "code": rng.choice([1, 2, 3, 4], 3000),
        }
    )


def test_without_noise_it_is_what_pandas_says(frame):
    """Numbers clipped to their bounds, categories by the schema, the target among them."""
    found = confide.describe(frame, SCHEMA, budget=np.inf, cross_tables=[("colour", "sick")])
    counts = {each.name: {level: count.value for level, count in each.counts.items()} for each in found.categories}
    assert counts["colour"]["red"] == (frame["colour"] == "red").sum()
    assert counts["colour"]["(other)"] == (frame["colour"] == "blue").sum()
    assert counts["code"]["(not listed)"] == (frame["code"] == 4).sum()
    assert counts["sick"] == {**frame["sick"].value_counts().to_dict(), "(not listed)": 0}
    age, income = found.numbers
    assert age.mean.value == pytest.approx(frame["age"].clip(0, 100).mean(), abs=1e-3)
    assert age.deviation.value == pytest.approx(frame["age"].clip(0, 100).std(), rel=1e-3)
    assert age.quantiles[0.5].value == pytest.approx(frame["age"].clip(0, 100).median(), abs=100 / 64)
    assert income.missing.value == pytest.approx(frame["income"].isna().mean())
    # Bins are even on the logarithmic scale.
    assert income.quantiles[0.5].value == pytest.approx(frame["income"].clip(0, 1e5).median(), rel=0.2)
    crossed = found.cross_tables[0].to_frame()
    assert crossed.loc["red", "yes"] == pytest.approx(((frame["colour"] == "red") & (frame["sick"] == "yes")).sum(), abs=0.1)
    assert found.n_rows == 3000
    assert found.void is not None


def test_correlations_without_noise_are_those_of_pandas(frame):
    """Of columns of numbers without missing cells, clipped to their bounds, in their unit; and of the target."""
    rows = frame.assign(gain=1e4 + 500.0 * frame["age"] + 1e4 * np.random.default_rng(1).random(3000))
    gain = {"low": 1, "high": 1e5, "scale": "log"}
    schema = Schema({"gain": gain, "income": gain | {"missing": True}}, {"column": "age", "low": 0, "high": 100})
    found = confide.describe(rows, schema, budget=np.inf, correlations=True).correlations
    assert found.names == ("gain", "age")
    clipped = rows.assign(age=rows["age"].clip(0, 100))
    pd.testing.assert_frame_equal(found.to_frame(), clipped[["gain", "age"]].corr(), atol=1e-5)
    covariance = np.cov(clipped["gain"], clipped["age"], bias=True)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-3)


def test_correlations_cost_noise_and_change_no_other_number(frame):
    """One release and one charge; the plan says so before a row is read."""
    schema = Schema({name: {"low": 0, "high": 100} for name in ("age", "years", "hours")})
    rows = frame.assign(years=frame["age"] / 2.0, hours=np.random.default_rng(3).uniform(0.0, 100.0, 3000))
    ledger = confide.Ledger(limit=2.0)
    found = confide.describe(rows, schema, budget=0.5, correlations=True, ledger=ledger)
    assert (len(ledger.entries()), ledger.spent().epsilon) == (1, 0.5)
    plan = plan_of_description(schema, confide.PureDP(0.5), correlations=True)
    assert found.plan.deviation == plan.deviation
    # In L1: three tables of 2, three moments of 9/8, and two products that change by 1.
    without = plan_of_description(schema, confide.PureDP(0.5))
    assert plan.deviation / without.deviation == pytest.approx((9.375 + 2.0) / 9.375, rel=0.01)
    exact = [confide.describe(rows, schema, budget=np.inf, correlations=given).to_dict() for given in (True, False)]
    assert exact[0].pop("correlations")["names"] == ["age", "years", "hours"]
    assert exact[0] == exact[1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_give_the_release_of_the_frame(frame, tmp_path, ending, monkeypatch):
    """In pieces, and in another order; a seed draws the same noise."""
    from confide.data import file_rows

    monkeypatch.setattr(file_rows, "BATCH_ROWS", 700)
    path = tmp_path / f"a.{ending}"
    turned = frame.sample(frac=1.0, random_state=1)
    if ending == "csv":
        turned.to_csv(path, index=False)
    else:
        turned.to_parquet(path)
    given = {"budget": confide.ZCDP(0.1), "random_state": 3, "cross_tables": [("code", "colour")]}
    assert confide.describe(path, SCHEMA, **given).to_dict() == confide.describe(frame, SCHEMA, **given).to_dict()


def test_one_charge_and_no_more_than_is_left(frame, tmp_path):
    """The event is that of the plan, charged before a row is used."""
    ledger = confide.Ledger(tmp_path / "a.db", limit=1.0)
    found = confide.describe(frame, SCHEMA, budget=0.6, ledger=ledger)
    assert ledger.spent().epsilon == pytest.approx(0.6)
    assert found.plan.event.budget == confide.PureDP(0.6)
    with pytest.raises(BudgetExceeded):
        confide.describe(frame, SCHEMA, budget=0.6, ledger=ledger)
    assert ledger.spent().epsilon == pytest.approx(0.6)


def test_what_cannot_be_read_is_refused_before_the_charge(frame, tmp_path):
    """Messages name the column and hold no cell."""
    ledger = confide.Ledger(tmp_path / "a.db", limit=1.0)
    for wrong in (frame.assign(age=np.nan), frame.assign(age="SECRET"), frame.drop(columns="sick"), frame.assign(sick=None)):
        with pytest.raises(InputError) as refused:
            confide.describe(wrong, SCHEMA, budget=0.5, ledger=ledger)
        assert "SECRET" not in str(refused.value)
    assert ledger.spent().epsilon == 0.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"columns": ["weight"]}, "names of columns of the schema"),
        ({"columns": []}, "at least one column"),
        ({"columns": ["age", "age"]}, "each once"),
        ({"columns": "age"}, "names of columns of the schema"),
        ({"cross_tables": [("colour", "age")]}, "is a number"),
        ({"cross_tables": [("colour", "colour")]}, "two different columns"),
        ({"cross_tables": [("colour", "weight")]}, "two different columns"),
        ({"cross_tables": [("colour", "code"), ("code", "colour")]}, "each pair of columns once"),
        ({"cross_tables": "colour"}, "must list pairs"),
        ({"quantiles": (0.5, 0.25)}, "rising order"),
        ({"quantiles": (0.0,)}, "strictly between"),
        ({"correlations": True}, "at least two columns of numbers"),
        ({"correlations": 1}, "correlations must be True or False"),
        ({"level": 1.0}, "level"),
        ({"schema": None}, "must be a Schema"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(frame, given, message):
    """Before anything is read."""
    with pytest.raises(ParameterError, match=message):
        confide.describe(frame, **{"schema": SCHEMA, "budget": 1.0, **given})


@pytest.mark.parametrize(
    "column",
    [
        {"categories": ["(other)", "a"], "other": True},
        {"categories": ["(missing)", "a"], "missing": True},
        {"categories": ["(not listed)", "a"]},
    ],
)
def test_categories_that_look_like_no_category_are_refused_before_the_charge(column, tmp_path):
    """Two levels of one name would show the count of one of them."""
    ledger = confide.Ledger(tmp_path / "a.db", limit=1.0)
    rows = pd.DataFrame({"c": ["a", "a", column["categories"][0]]})
    with pytest.raises(ParameterError, match="another name"):
        confide.describe(rows, Schema({"c": column}), budget=0.5, ledger=ledger)
    assert ledger.spent().epsilon == 0.0
    # The first two names are taken only where they are needed. The third marks what is not shown.
    other = Schema({"c": {"categories": column["categories"], "other": "a"}})
    if "(not listed)" in column["categories"]:
        with pytest.raises(ParameterError, match="another name"):
            confide.describe(rows, other, budget=0.5)
    else:
        assert len(confide.describe(rows, other, budget=0.5).categories[0].counts) == 2


@pytest.mark.parametrize("most", [1.0, 0.97])
def test_intervals_hold_where_the_number_of_rows_is_private(most):
    """A noisy number of rows bounds no count, and adds its own doubt to each share."""
    schema, n = Schema({"c": {"categories": ["a", "b", "c"]}}), 300
    rows = pd.DataFrame({"c": np.where(np.arange(n) < most * n, "a", "b")})
    held = np.zeros(3)
    for seed in range(60):
        found = confide.describe(rows, schema, budget=0.5, neighbours="add-or-remove-one", random_state=seed).categories[0]
        true = ((found.counts["a"], most * n), (found.shares["a"], most), (found.counts["b"], n - most * n))
        held += [rate.value is None or rate.low - 1e-9 <= number <= rate.high + 1e-9 for rate, number in true]
    assert (held >= 52).all()


def test_no_number_of_a_few_rows_is_exact_where_their_number_is_private():
    """Where the noisy number of rows is 0, no count is known."""
    rows, schema = pd.DataFrame({"c": ["a", "b", "b"]}), Schema({"c": {"categories": ["a", "b"]}})
    for seed in range(12):
        found = confide.describe(rows, schema, budget=0.1, neighbours="add-or-remove-one", random_state=seed)
        counts = found.categories[0].counts.values()
        assert all(rate.value is None or rate.low < rate.high for rate in counts)


def test_columns_may_be_named_one_after_the_other(frame):
    """By a generator, which gives its names once."""
    found = confide.describe(frame, SCHEMA, budget=1.0, columns=(name for name in ("colour", "sick")))
    assert [category.name for category in found.categories] == ["colour", "sick"]


def test_fewer_columns_have_less_noise():
    """Noise grows with the number of tables; the plan says so before a row is read."""
    one = plan_of_description(SCHEMA, confide.PureDP(1.0), columns=["colour"])
    two = plan_of_description(SCHEMA, confide.PureDP(1.0), columns=["colour", "sick"])
    assert two.deviation == pytest.approx(2.0 * one.deviation, rel=0.01)
    assert one.query.sizes == (3,)


def test_so_many_rows_of_each_person_count(frame):
    """One of each, so their number is private."""
    schema = Schema(SCHEMA.columns, person="who")
    rows = frame.assign(who=np.arange(3000) // 3)
    found = confide.describe(rows, schema, budget=np.inf, columns=["colour"])
    assert found.n_rows == 1000
    assert not found.n_rows_is_public
    assert "about 1,000 rows" in str(found)


def test_the_number_of_rows_is_private_where_rows_may_come_or_go(frame):
    """It is estimated from the noisy counts, and the exact number stands nowhere."""
    private = {"neighbours": "add-or-remove-one", "columns": ["colour"], "random_state": 0}
    found = confide.describe(frame, SCHEMA, budget=1.0, **private)
    assert found.public_n_rows is None
    assert found.n_rows != 3000.0
    assert found.n_rows == pytest.approx(3000.0, abs=30.0)
    assert not found.to_dict()["n_rows_is_public"]
    assert found.plan.neighbours is Neighbours.ADD_OR_REMOVE_ONE


def test_a_cap_on_rows_of_a_person_makes_the_noise_larger(frame):
    """Three rows each: the noise of a third of epsilon, and the event says so."""
    one, three = (
        confide.describe(frame, SCHEMA, budget=1.0, columns=["colour"], max_rows_per_person=rows) for rows in (1, 3)
    )
    assert three.plan.deviation == pytest.approx(3.0 * one.plan.deviation, rel=0.01)
    assert three.plan.event.rows_per_person == 3


def test_a_target_of_numbers_is_a_column_of_numbers(frame):
    """Between its bounds."""
    schema = Schema(SCHEMA.columns[2:], {"column": "age", "low": 0, "high": 100})
    found = confide.describe(frame, schema, budget=np.inf)
    assert [each.name for each in found.numbers] == ["age"]


@pytest.mark.parametrize("neighbours", list(Neighbours), ids=str)
@pytest.mark.parametrize("budget", [confide.PureDP(1.0), confide.ZCDP(0.02)], ids=lambda budget: budget.kind)
def test_each_number_that_leaves_has_noise_of_its_own(budget, neighbours):
    """Products too, where the noise is larger than the sums: 200 releases of 20 rows, with the noise of the theorem."""
    rows = pd.DataFrame(np.random.default_rng(0).uniform(-1.0, 1.0, (20, 3)), columns=list("abc"))
    rows["d"] = ["u", "v"] * 10
    schema = Schema({**{name: {"low": -1, "high": 1} for name in "abc"}, "d": {"categories": ["u", "v"]}})
    persons = {"neighbours": neighbours, "max_rows_per_person": 2}

    def numbers(budget, seed=0):
        found = confide.describe(rows, schema, budget=budget, correlations=True, random_state=seed, **persons)
        assert found.n_rows_is_public == (neighbours is Neighbours.REPLACE_ONE)
        released = found.released
        # A value, a square or a product moves the vector that gets the noise by half of what it is.
        return np.concatenate([*released.counts, 0.5 * released.moments.ravel(), 0.5 * released.products])

    noise = np.array([numbers(budget, seed) for seed in range(200)]) - numbers(np.inf)
    # Four tables, three columns, and of three products two that change by 2, or all three by 1. Two rows a person.
    l1, squared_l2 = (13.375, 13.0) if neighbours is Neighbours.REPLACE_ONE else (8.5, 6.25)
    deviation = 2.0 * (math.sqrt(2.0) * l1 if budget.is_pure else math.sqrt(squared_l2 / 0.04))
    assert noise.shape[1] == 3 * 64 + 3 + 9
    scales = noise.std(axis=0) / deviation
    assert 0.7 < scales.min() < scales.max() < 1.4
    assert math.sqrt((noise[:, -3:] ** 2).mean()) == pytest.approx(deviation, rel=0.12)
    assert np.abs(np.corrcoef(noise.T) - np.eye(noise.shape[1])).max() < 0.45


def test_correlations_of_columns_that_do_not_move_are_released_after_the_charge():
    """No content of rows refuses them then: one row, the same in all rows, or a column that is another one."""
    schema = Schema({"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}})
    for values in ([0.5], [1.0] * 30, list(np.linspace(0.0, 1.0, 30))):
        ledger, rows = confide.Ledger(limit=2.0), pd.DataFrame({"a": values, "b": values})
        for budget in (0.1, 1.0):
            found = confide.describe(rows, schema, budget=budget, correlations=True, ledger=ledger).correlations
            assert np.isfinite(found.covariance).all()
            assert np.linalg.eigvalsh(found.correlation).min() > -1e-12
        assert ledger.spent().epsilon == pytest.approx(1.1)


def test_rows_are_added_up_a_few_at_a_time(monkeypatch):
    """The sums are the same to the bit, and what is made of rows is never of all of them at once."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.uniform(-1.0, 1.0, (100, 2)), columns=list("ab")).assign(c=rng.choice(["u", "v"], 100))
    schema = Schema({"a": {"low": -1, "high": 1}, "b": {"low": -1, "high": 1}, "c": {"categories": ["u", "v"]}})
    seen, real = [], description.products_of
    monkeypatch.setattr(description, "products_of", lambda values: seen.append(values.shape[1]) or real(values))
    asked = {"budget": 1.0, "correlations": True, "random_state": 0}
    whole = confide.describe(rows, schema, **asked)
    monkeypatch.setattr(description, "_ROWS_AT_ONCE", 40)
    assert confide.describe(rows, schema, **asked).to_dict() == whole.to_dict()
    assert seen == [100, 40, 40, 20]
