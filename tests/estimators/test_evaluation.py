"""Evaluation on private rows: rates against scikit-learn's, intervals against what they claim, and the charge."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import confide
from confide import BudgetExceeded, InputError, Ledger, LogisticRegression, ParameterError, Schema
from confide.features.table import RowsPerPerson
from confide.privacy.noise import Entropy
from confide.privacy.tables import counted
from confide.training import charge
from tests.inference.test_rates import population


@pytest.fixture(scope="module")
def model():
    """Trained on other rows."""
    return LogisticRegression(float("inf"), classes=[0, 1]).fit(*population(4000, 0))


def test_the_charge_comes_before_any_score(model, monkeypatch):
    """A ledger that has too little left is asked first; a failed evaluation stays charged; its limit is charged once."""
    X, y = population(500, 5)
    ledger = Ledger(limit=1.0)
    answer = confide.evaluate(model, X, y, budget=0.6, ledger=ledger)
    assert ledger.entries()["purpose"].tolist() == ["evaluate"]
    assert ledger.remaining().epsilon == pytest.approx(0.4)
    assert answer.void is None
    scored = []
    monkeypatch.setattr(LogisticRegression, "decision_function", lambda self, X: scored.append(X))
    with pytest.raises(BudgetExceeded):
        confide.evaluate(model, X, y, budget=0.6, ledger=ledger)
    assert scored == []
    with pytest.raises(InputError):
        confide.evaluate(model, X[:, :2], y, budget=0.1, ledger=ledger)
    with pytest.raises(InputError):
        confide.evaluate(model, X, y[:-1], budget=0.1, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_rates_speak_of_the_schemas_positive_class():
    """Whichever of the two labels comes first in sorted order."""
    import pandas as pd

    X, y = population(2000, 7)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    columns = {name: {"low": -1, "high": 1} for name in frame}
    answers = []
    for positive, negative in (("yes", "no"), ("no", "yes")):
        schema = Schema(columns=columns, target={"column": "y", "negative": negative, "positive": positive})
        fitted = LogisticRegression(math.inf, schema=schema).fit(frame, np.where(y, "yes", "no"))
        answers.append(confide.evaluate(fitted, frame, np.where(y, "yes", "no"), budget=math.inf))
    one, two = answers
    np.testing.assert_array_equal(one.counts, two.counts[::-1, ::-1])
    assert one.sensitivity.value == two.specificity.value
    assert one.auc.value == pytest.approx(two.auc.value)
    assert two.outcome == 'y = "no"'


def test_a_row_that_leaves_or_moves_the_others_changes_no_other_score(monkeypatch):
    """Not even one whose score is 0 but for rounding, which in BLAS differs between the last rows of a block and others."""
    X, y = np.random.default_rng(3).uniform(-0.2, 0.2, size=(4000, 17)), np.arange(2 * 3855) % 2 == 0
    fitted = LogisticRegression(math.inf, fit_intercept=False, row_norm=1.0).fit(X, X[:, 0] > 0.0)
    direction = fitted.coef_[0]
    level = X - np.outer(X @ direction / (direction @ direction), direction)

    def votes(row, n_rows):
        with threadpool_limits(1, "blas"):
            return fitted.predict(np.tile(row, (n_rows, 1)))[0]

    # Where BLAS has one order for all rows, any row will do.
    shaky = next((row for row in level if votes(row, 3) != votes(row, 8)), level[0])
    rows, cells = np.tile(shaky, (len(y), 1)), []  # two blocks

    def seen(of_rows, size):
        cells.append(of_rows)
        return counted(of_rows, size)

    monkeypatch.setattr("confide.evaluations.tables.counted", seen)
    for leaves in (0, 1, 4000):
        cells.clear()
        for kept in (slice(None), np.arange(len(rows)) != leaves):
            confide.evaluate(fitted, rows[kept], y[kept], budget=1.0, neighbours="add-or-remove-one", n_bins=2)
        np.testing.assert_array_equal(np.delete(cells[0], leaves), cells[1])
    # One row is replaced in a table that is sorted again: all others move up.
    cells.clear()
    rows[0] = 0.1 * direction
    for table in (rows, np.concatenate([rows[1:], rows[:1]])):
        confide.evaluate(fitted, table, y[:1].repeat(len(y)), budget=1.0, n_bins=2)
    np.testing.assert_array_equal(cells[0][1:], cells[1][:-1])


@pytest.mark.parametrize("more", [{}, {"clip": 1.0}], ids=["histogram", "tables"])
def test_noise_that_the_second_account_does_not_confirm_is_refused_before_the_charge(model, more, monkeypatch):
    """The ledger stays as it was, and no row was scored."""
    ledger = Ledger(limit=1.0)
    monkeypatch.setattr(charge, "denies", lambda lattice: True)
    with pytest.raises(confide.NotCertified, match="OpenDP"):
        confide.evaluate(model, *population(500, 5), budget=0.5, ledger=ledger, **more)
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize("more", [{}, {"clip": 1.0}], ids=["histogram", "tables"])
def test_the_number_of_rows_is_used_only_where_rows_are_replaced(model, more):
    """Where a row may come or go it is private: it is neither shown, nor put right in the counts, nor a reason to refuse."""
    X, y = population(500, 5)
    answers = {
        relation: confide.evaluate(model, X, y, budget=0.8, neighbours=relation, random_state=1, **more)
        for relation in ("replace-one", "add-or-remove-one")
    }
    assert [each.n_rows for each in answers.values()] == [500, None]
    for relation, answer in answers.items():
        total = answer.counts.sum() if not more else answer.tables[0].counts.sum()
        assert (abs(total - 500.0) < 1e-6) == (relation == "replace-one")
        assert answer.plan.event.neighbours.value == relation
    with pytest.raises(ParameterError, match="hide"):
        confide.evaluate(model, X[:20], y[:20], budget=0.01, **more)
    ledger = Ledger(limit=1.0, neighbours="add-or-remove-one")
    facts = {"neighbours": "add-or-remove-one", "ledger": ledger}
    assert confide.evaluate(model, X[:20], y[:20], budget=0.01, **facts, **more).n_rows is None
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_rows_of_a_person_beyond_the_cap_are_dropped(neighbours):
    """As in a fit: so many of each are drawn, their number is not public, and without the column nothing is charged."""
    X, y = population(300, 5)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(who=np.arange(300) // 3)
    schema = Schema(columns={name: {"low": -1.0, "high": 1.0} for name in "abc"}, person="who")
    fitted = LogisticRegression(math.inf, classes=[0, 1], schema=schema).fit(frame, y)
    for cap in (1, 2, 3):
        facts = {"neighbours": neighbours, "max_rows_per_person": cap, "random_state": 1}
        answer = confide.evaluate(fitted, frame, y, budget=math.inf, **facts)
        counted = RowsPerPerson(cap, Entropy.seeded(1).permutation).drawn(frame["who"].to_numpy())
        counted = np.arange(300) if counted is None else counted
        assert answer.counts.sum() == counted.size == 100 * cap
        right = fitted.predict(frame.iloc[counted]) == y[counted]
        assert answer.accuracy.value == pytest.approx(right.mean(), abs=1e-12)
        assert answer.n_rows is None
    ledger = Ledger(limit=1.0, neighbours=neighbours)
    with pytest.raises(InputError, match="who"):
        confide.evaluate(fitted, frame[["a", "b", "c"]], y, budget=1.0, neighbours=neighbours, ledger=ledger)
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize(
    "wrong",
    [{"n_bins": 7}, {"n_bins": 0}, {"n_bins": True}, {"level": 1.0}, {"level": "x"}, {"budget": -1.0}, {"ledger": 3}],
)
def test_what_cannot_be_honoured_is_refused(model, wrong):
    """Before anything is charged."""
    X, y = population(100, 9)
    with pytest.raises(ParameterError):
        confide.evaluate(model, X, y, **({"budget": 1.0} | wrong))


def test_only_fitted_models_are_evaluated():
    """Others are refused by name of what will do."""
    for other in (LogisticRegression(1.0), object(), confide.Ridge(1.0, target_bound=1.0), confide.RandomFourierFeatures(8)):
        with pytest.raises(ParameterError, match="fitted or loaded"):
            confide.evaluate(other, np.zeros((3, 3)), [0, 1, 0], budget=1.0)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("coef_", np.ones((3, 7))),
        ("coef_", "text"),
        ("coef_", np.full((1, 3), np.nan)),
        ("intercept_", np.ones(3)),
        ("intercept_", [np.inf]),
        ("classes_", np.array([0, 1, 2])),
    ],
)
@pytest.mark.parametrize("is_other", [False, True])
def test_a_model_whose_attributes_were_changed_is_refused_before_the_charge(attribute, value, is_other):
    """A user may set them, and what cannot score a row would fail when the budget is spent."""
    X, y = population(400, 1)
    good = LogisticRegression(float("inf"), classes=[0, 1]).fit(X, y)
    changed, ledger = LogisticRegression(float("inf"), classes=[0, 1]).fit(X, y), Ledger(limit=1.0)
    setattr(changed, attribute, value)
    pair = {"model": good, "other": changed} if is_other else {"model": changed}
    with pytest.raises(ParameterError, match="were changed"):
        confide.evaluate(**pair, X=X, y=y, budget=1.0, ledger=ledger)
    assert len(ledger.entries()) == 0


def test_a_model_of_opened_rows_is_judged_by_the_schemas_positive_class(tmp_path):
    """Also where that class sorts first: the rows brought the schema, and the estimator had none."""
    X, y = population(1500, 3)
    names = np.where(y > 0, "hi", "lo")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(p=names)
    schema = Schema(
        columns={name: {"low": -1.0, "high": 1.0} for name in "abc"},
        target={"column": "p", "negative": "lo", "positive": "hi"},
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    opened = confide.open_rows(tmp_path / "rows.parquet", schema)
    fits = [LogisticRegression(math.inf).fit(opened), LogisticRegression(math.inf, schema=schema).fit(frame, names)]
    answers = [confide.evaluate(model, frame, names, budget=math.inf) for model in fits]
    assert [answer.outcome for answer in answers] == ['p = "hi"'] * 2
    assert answers[0].sensitivity.value == pytest.approx(answers[1].sensitivity.value, abs=1e-3)
