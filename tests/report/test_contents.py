"""The contents of reports: facts, checksums, what was given besides, and what is refused."""

from __future__ import annotations

import hashlib

import pytest

from confide import LedgerError, LogisticRegression, ParameterError
from confide.report.contents import contents_of
from confide.report.verification import schema_hash
from confide.report.writing import text_of
from tests.report.released import COLUMNS, logistic, of_two_rows, people, schema, without_privacy


def test_facts_say_what_is_known_and_nothing_else(tmp_path):
    """The checksum is that of the file that `save` writes."""
    model, ledger = logistic()
    contents = contents_of(
        model, ledger=ledger, ledger_name="study.db", analyst="A. Name", data_name="people", date="2026-01-02"
    )
    facts = dict(contents.facts)
    assert facts["Analyst"] == "A. Name"
    assert facts["Rows"] == "600 (public)"
    assert facts["Ledger"] == "epsilon = 1 spent of epsilon = 4; epsilon = 3 left"
    assert facts["Date of this report"] == "2026-01-02"
    head = ledger.head
    model.save(tmp_path / "model.json")
    checksum = hashlib.sha256((tmp_path / "model.json").read_bytes()).hexdigest()
    assert dict(contents.checksums) == {
        "Model file": checksum, "Ledger's head": head,
        "Schema's contents (confide verify shows it)": schema_hash(model.schema),
    }  # fmt: skip
    alone = contents_of(model)
    assert "Analyst" not in dict(alone.facts)
    assert dict(alone.facts)["Ledger"] == "none was given"
    assert dict(contents_of(model, fingerprint="f" * 64).checksums)["Data"] == "f" * 64


def test_a_private_number_of_rows_is_shown_as_its_bounds():
    made = LogisticRegression(1.0, schema=schema(), neighbours="add-or-remove-one", n_rows_bounds=(500, 1500))
    assert dict(contents_of(made.fit(*people())).facts)["Rows"] == "private, between 500 and 1,500"


def test_the_hash_of_a_schema_depends_on_what_it_says_and_on_the_order_of_columns():
    from confide import Schema

    turned = Schema(columns=dict(reversed(COLUMNS.items())), target=schema().target)
    assert schema_hash(schema()) == schema_hash(schema())
    assert schema_hash(turned) != schema_hash(schema())


def test_the_odds_show_the_ledger_too():
    """One line for what was spent so far, and one for the limit."""
    model, ledger = logistic()
    assert [probability for _, probability in contents_of(model, ledger=ledger).odds] == [0.5, 0.7311, 0.7311, 0.9821]
    assert len(contents_of(model).odds) == 2
    assert contents_of(without_privacy()).odds == ()


def test_what_is_no_model_or_no_ledger_is_refused():
    with pytest.raises(ParameterError, match="fitted"):
        contents_of(LogisticRegression(1.0))
    with pytest.raises(ParameterError, match=r"confide\.Ledger"):
        contents_of(logistic()[0], ledger=3.0)
    with pytest.raises(LedgerError, match=r"absent\.db"):
        contents_of(logistic()[0], ledger="absent.db")


def test_a_ledger_for_persons_with_fewer_rows_has_no_odds_for_those_of_the_model():
    """What it counts is too little for them, so it is left out of every format, and each says why. Nothing is green."""
    model, ledger = of_two_rows()
    contents = contents_of(model, ledger=ledger)
    assert [seen for seen, _ in contents.odds] == ["before", "after this model"]
    assert contents.verdict.kind == "caution"
    assert "for persons with at most 1 row" in dict(contents.facts)["Ledger"]
    for kind in ("html", "markdown", "json"):
        text = text_of(contents, kind)
        assert "after all in the ledger" not in text
        assert "The ledger counts what persons with at most 1 row pay" in text
    assert "other charges" in " ".join(model.guarantee_.assumptions)
    assert "cost together is not shown" not in text_of(contents_of(logistic()[0], ledger=logistic()[1]), "markdown")
