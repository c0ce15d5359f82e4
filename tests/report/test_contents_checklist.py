"""The points that the signer confirms follow from the guarantee, the ledger and the schema."""

from __future__ import annotations

import numpy as np

from confide import LogisticRegression, Schema
from confide.report.contents import contents_of, points_to_confirm
from confide.report.ledger_facts import LedgerFacts
from confide.report.page import page_of
from tests.report.released import logistic, people, schema, without_privacy


def test_persons_bounds_and_releases_are_asked_for():
    model, ledger = logistic()
    facts = LedgerFacts.of(ledger, model.guarantee_, "")
    points = " ".join(points_to_confirm(model.guarantee_, facts, None))
    assert "at most one row" in points
    assert "without looking at the rows" in points
    assert "is in the ledger" in points
    alone = " ".join(points_to_confirm(model.guarantee_, None, Schema({"age": {"low": 0, "high": 9}}, person="id")))
    assert 'the column "id"' in alone
    assert "is in the ledger" not in alone


def test_labels_that_were_not_declared_and_several_rows_are_asked_for():
    frame, y = people()
    numbers = frame[["age"]].to_numpy() / 100
    model = LogisticRegression(1.0, max_rows_per_person=3).fit(numbers, y)
    points = " ".join(points_to_confirm(model.guarantee_, None, None))
    assert "at most 3 rows" in points
    assert "labels were not declared" in points


def test_words_of_a_label_ask_for_nothing():
    """A label may hold the word by which a sentence speaks of a prior, and one that says labels were not declared."""
    frame, y = people()
    named = np.where(y == "high", "prior conviction", "they were taken from the rows and are assumed to be public")
    model = LogisticRegression(1.0, classes=sorted(set(named))).fit(frame[["age"]].to_numpy() / 100, named)
    plain = points_to_confirm(logistic()[0].guarantee_, None, None)
    assert points_to_confirm(model.guarantee_, None, None) == plain
    again = model.refit(frame[["age"]].to_numpy() / 100, named)
    assert any("used as a prior" in point for point in contents_of(again).points)


def test_what_is_not_private_has_nothing_to_confirm():
    assert points_to_confirm(without_privacy().guarantee_, None, None) == ()


def test_what_was_released_before_is_not_confirmed_as_chosen_without_rows():
    """Of a model whose schema names a release of atoms; so it stands above the schema on the page."""
    described = schema().to_dict()
    stated = {"columns": ["age"], "epsilon": 1.0, "neighbours": "replace-one"}
    described["columns"]["age"] |= {"atoms": [18], "released_atoms": stated}
    model = LogisticRegression(1.0, schema=Schema.from_dict(described)).fit(*people())
    assert "were written down without looking at the rows, apart from what the schema names as released." in " ".join(
        contents_of(model).points
    )
    assert "before any row was seen, apart from what it names as released" in page_of(contents_of(model))
    assert "apart from" not in " ".join(contents_of(logistic()[0]).points)


def test_the_signer_confirms_that_nobody_is_in_two_cohorts():
    """A ledger counts each cohort by itself, so it rests on this."""
    schema = Schema({"age": {"low": 0, "high": 9}}, cohort=("month", "2026-12"))
    points = " ".join(points_to_confirm(logistic()[0].guarantee_, None, schema))
    assert 'Nobody has rows with two values in the column "month", earlier and later rows included.' in points
