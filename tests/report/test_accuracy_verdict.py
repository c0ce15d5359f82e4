"""The verdict: green only with a guarantee, a usual budget and a ledger that holds the charge."""

from __future__ import annotations

import hashlib

from confide import Ledger, LogisticRegression, PureDP
from confide.guarantee import Guarantee
from confide.privacy.budgets import Neighbours
from confide.report.accuracy import unusual_of, verdict_of
from confide.report.ledger_facts import LedgerFacts
from tests.report.released import logistic, people, schema, without_privacy


def facts(model, ledger):
    return LedgerFacts.of(ledger, model.guarantee_, hashlib.sha256(b"").hexdigest())


def test_private_and_charged_is_green_once_the_charge_names_the_file():
    ledger = Ledger(limit=4.0)
    model = LogisticRegression(1.0, schema=schema(), ledger=ledger).fit(*people())
    assert verdict_of(model.guarantee_, facts(model, ledger)).kind == "caution"
    ledger.note(1, {"sha256": hashlib.sha256(b"").hexdigest()})
    verdict = verdict_of(model.guarantee_, facts(model, ledger))
    assert verdict.kind == "private"
    assert "73.11%" in " ".join(verdict.sentences)


def test_an_interval_that_rests_on_a_supposition_is_not_green():
    """With a charge that names the file, and with other doubts, the coefficient is named."""
    ledger = Ledger(limit=4.0)
    model = LogisticRegression(1.0, schema=schema(), ledger=ledger).fit(*people())
    for names_file in (False, True):
        if names_file:
            ledger.note(1, {"sha256": hashlib.sha256(b"").hexdigest()})
        verdict = verdict_of(model.guarantee_, facts(model, ledger), supposed=("age",))
        assert verdict.kind == "caution"
        assert '"age": the noise hides how the column differs' in " ".join(verdict.sentences)
        assert ("hides what the rows tell" in verdict.headline) is names_file


def test_no_ledger_and_the_wrong_ledger_are_not_green():
    model, _ = logistic()
    assert verdict_of(model.guarantee_, None).kind == "caution"
    assert "No ledger" in " ".join(verdict_of(model.guarantee_, None).sentences)
    assert verdict_of(model.guarantee_, facts(model, Ledger(limit=4.0))).kind == "caution"


def test_no_guarantee_is_red():
    verdict = verdict_of(without_privacy().guarantee_, None)
    assert verdict.kind == "void"
    assert "infinite" in verdict.sentences[0]


def test_a_budget_that_promises_little_is_not_green_even_with_a_ledger():
    ledger = Ledger(limit=50.0)
    model = LogisticRegression(30.0, schema=schema(), ledger=ledger).fit(*people())
    assert unusual_of(model.guarantee_)
    verdict = verdict_of(model.guarantee_, facts(model, ledger))
    assert verdict.kind == "caution"
    assert "promises little" in verdict.headline


def test_a_fit_states_its_number_of_rows():
    """As a fact, and not in words alone; a guarantee that somebody wrote by hand has none."""
    frame, y = people()
    private = LogisticRegression(1.0, schema=schema(), neighbours="add-or-remove-one", n_rows_bounds=(500, 1500))
    assert logistic()[0].guarantee_.n_rows == (600, 600)
    assert private.fit(frame, y).guarantee_.n_rows == (500, 1500)
    assert Guarantee(PureDP(1.0), Neighbours.REPLACE_ONE, "objective", ("The number of rows, 9, is public.",)).n_rows is None
