"""Forecasts around the budget, and rates on private rows."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest

from confide import ApproxDP, Ledger, ParameterError, PureDP, evaluate, load
from confide.estimators.evaluation import said_by_model
from confide.estimators.linear_model import checksum_of_model
from confide.evaluations.documents import checked_evaluation, what_does_not_follow
from confide.evaluations.result import NOT_LISTED
from confide.features.columns import CategoryColumn
from confide.planning.simulation import simulate
from confide.report.accuracy import (
    budgets_around,
    charge_of_rates,
    forecast_note,
    forecasts_of,
    tables_of_rates,
)
from confide.report.card import card_of
from confide.report.contents import contents_of
from confide.report.page import page_of
from tests.report.released import logistic, people, rates, without_privacy


def made_up(epsilon, error):
    """A forecast, without the simulation."""
    plan = SimpleNamespace(event=SimpleNamespace(budget=PureDP(epsilon)))
    return SimpleNamespace(
        error=error, low=error - 0.01, high=error + 0.02, non_private_error=0.1, constant_error=0.4, plan=plan
    )


def test_budgets_lie_around_the_chosen_one_and_keep_its_delta():
    found = budgets_around(ApproxDP(1.0, 1e-6))
    assert [budget.epsilon for budget in found] == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert {budget.delta for budget in found} == {1e-6}


def test_forecasts_are_those_of_the_planner(monkeypatch):
    """With the model's own parameters and number of rows, at each budget; one of them is simulated here."""
    asked = []

    def simulated(estimator, n_rows, n_features, **guesses):
        asked.append((estimator.budget, n_rows, n_features, guesses))
        return estimator

    monkeypatch.setattr("confide.report.accuracy.simulate", simulated)
    found = forecasts_of(logistic()[0], 0.2, 0.4)
    assert [each[0] for each in asked] == budgets_around(PureDP(1.0))
    assert {each[1:3] for each in asked} == {(600, None)}
    assert asked[0][3] == {"error": 0.2, "positive_rate": 0.4}
    assert all(each.ledger is None for each in found)
    assert simulate(found[2], 600, error=0.2, positive_rate=0.4).error > 0.2
    with pytest.raises(ParameterError, match="private models"):
        forecasts_of(without_privacy(), 0.2)


def test_the_note_says_what_is_supposed():
    assert "90.0%" in forecast_note([made_up(0.5, 0.3)])


OWN = checksum_of_model(logistic()[0])


@cache
def of_groups():
    """Rates by the levels of a column in which each row has a listed level or another one."""
    frame, y = people(3000, 1)
    return evaluate(logistic()[0], frame, y, budget=50.0, groups="work", ledger=Ledger(limit=60.0))


@cache
def compared():
    """Two models on the same rows."""
    return evaluate(logistic()[0], *people(3000, 1), budget=50.0, other=second())


@cache
def second():
    return logistic.__wrapped__()[0]


def test_rates_of_another_model_are_refused():
    """Of a copy with one other weight, and of the second of two models that were compared."""
    other = logistic.__wrapped__()[0]
    with pytest.raises(ParameterError, match="rates are of another model"):
        contents_of(other, evaluation=rates())
    with pytest.raises(ParameterError, match="rates are of another model"):
        contents_of(second(), evaluation=compared())
    assert contents_of(logistic()[0], evaluation=compared()).evaluation["model_checksums"][0] == OWN
    without = {name: value for name, value in rates().to_dict().items() if name != "model_checksums"}
    with pytest.raises(ParameterError, match="evaluation must be"):
        contents_of(logistic()[0], evaluation=without)


def test_a_model_that_was_saved_has_the_rates_of_its_object(tmp_path):
    """And the other way round."""
    model = logistic()[0]
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert contents_of(again, evaluation=rates()).sha256 == rates().model_checksums[0] == OWN
    assert evaluate(again, *people(400, 1), budget=1.0).model_checksums == (OWN,)


def test_the_headline_counts_what_rates_cost():
    """Green only if the model and its rates were charged, and the rates are private."""
    model, ledger = logistic.__wrapped__()
    ledger.note(1, {"sha256": checksum_of_model(model)})
    given = {"ledger": ledger, "model_name": "model.json"}
    rows = people(400, 1)
    charged = evaluate(model, *rows, budget=1.0, ledger=Ledger(limit=2.0))
    kinds = {
        "private": (None, charged),
        "caution": (evaluate(model, *rows, budget=1.0), evaluate(model, *rows, budget=1.0, random_state=1)),
    }
    for kind, given_rates in kinds.items():
        for one in given_rates:
            assert contents_of(model, **given, evaluation=one).verdict.kind == kind
    claimed = charged.to_dict() | {"charged_to": ledger.identity}
    assert "holds no such charge" in contents_of(model, **given, evaluation=claimed).verdict.sentences[1]
    ledger.charge(1.0, purpose="evaluate")
    assert contents_of(model, **given, evaluation=claimed).verdict.kind == "private"
    assert "charged to no ledger" in contents_of(model, **given, evaluation=kinds["caution"][0]).verdict.sentences[1]
    assert "not private" in contents_of(model, **given, evaluation=kinds["caution"][1]).verdict.sentences[1]


def test_differences_of_groups_are_shown_and_unlisted_rows_are_not():
    """Each group against the first, with intervals."""
    found = {title: (headings, lines) for title, headings, lines in tables_of_rates(checked_evaluation(of_groups(), (OWN,)))}
    assert list(found) == ["", "work = private", "work = state", "work = self <b>", "work = (other)"]
    assert found["work = private"][0] == ("Rate", "Value")
    headings, lines = found["work = state"]
    difference = of_groups().difference("accuracy", "state", "private")
    assert headings == ("Rate", "Value", "Difference from private")
    assert lines[0][2] == f"{difference.value:.3f} ({difference.low:.3f} to {difference.high:.3f})"
    assert "work = state" in page_of(contents_of(logistic()[0], evaluation=of_groups()))


def test_rows_that_a_schema_does_not_list_are_no_group_of_a_report():
    """A column without `other` excludes them."""
    frame, y = people(3000, 1)
    found = evaluate(logistic()[0], frame, y, budget=50.0, groups=CategoryColumn("name", ("a", "b")))
    assert NOT_LISTED in found.by_group
    assert NOT_LISTED not in found.group_differences
    assert not any("not listed" in title for title, *_ in tables_of_rates(checked_evaluation(found, (OWN,))))


DOCUMENTS = {"two classes": rates, "groups": of_groups, "two models": compared}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_damaged_rates_are_refused_or_shown(kind):
    """Whatever one value becomes, a report is written, or the refusal is that of an evaluation."""
    document, accepted = DOCUMENTS[kind]().to_dict(), []
    contents = contents_of(logistic()[0], evaluation=document)
    for change in list(edits(json.loads(json.dumps(document))))[:: 40 if kind == "groups" else 4]:
        with suppress(ParameterError):
            found = checked_evaluation(change, (OWN,))
            accepted += [found] if found and not what_does_not_follow(found, said_by_model(logistic()[0])) else []
    for found in accepted[::10]:
        card_of(replace(contents, evaluation=found))
        page_of(replace(contents, evaluation=found))


def edits(value):
    """The value with each of its parts left out, or replaced by one of another type."""
    for part in (None, True, -1, 10**400, 1e308, "x", [], {}, [None]):
        yield part
    keys = value if isinstance(value, dict) else range(min(2, len(value))) if isinstance(value, list) else ()
    for key in keys:
        yield {name: part for name, part in value.items() if name != key} if isinstance(value, dict) else value[:-1]
        for part in edits(value[key]):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = part
            yield copy


@pytest.mark.parametrize(
    ("charge", "words"),
    [
        ({"charge": {"ledger": "held_out.db"}}, "to the ledger held_out.db with the identity abc."),
        (
            {"charge": {"ledger": "postgresql://host/db?password=x"}},
            "to the ledger postgresql://host/db with the identity abc.",
        ),
        ({"charge": {"ledger": None}}, "with the identity abc."),
        ({"charged_to": None}, "to no ledger"),
        ({}, "with the identity abc."),
    ],
)
def test_the_ledger_of_rates_is_named_where_it_is_known(charge, words):
    assert words in charge_of_rates({"charged_to": "abc"} | charge)
