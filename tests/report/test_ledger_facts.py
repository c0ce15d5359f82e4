"""What a ledger says of a model: spent, left, and whether the charge is there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from confide import ZCDP, ApproxDP, Ledger, LedgerError, LogisticRegression, PrivacyWarning, PureDP, load
from confide.guarantee import Circumstances, Guarantee, NamedLedger
from confide.privacy.budgets import Neighbours
from confide.report.ledger_facts import LedgerFacts, unit_note
from tests.report.released import logistic, people, schema


def guarantee(budget, relation="replace-one", rows=1):
    return Guarantee(budget, Neighbours.parse(relation), "objective", (), None, rows)


def charged_to(ledger):
    return replace(guarantee(PureDP(1.0)), circumstances=Circumstances((9, 9), ledger=ledger))


def test_the_charge_of_a_fit_is_found_and_amounts_add_up():
    model, ledger = logistic.__wrapped__()
    facts = LedgerFacts.of(ledger, model.guarantee_, "", "study.db")
    assert facts.may_hold_the_charge
    assert not facts.holds_the_charge
    assert (facts.charge, facts.unnamed, facts.charges) == (None, (1,), 1)
    assert (facts.limit.epsilon, facts.spent.epsilon, facts.left.epsilon) == (4.0, 1.0, 3.0)
    assert facts.account == "epsilon = 1 spent of epsilon = 4; epsilon = 3 left"
    assert "Charge 1" in facts.sentence()
    assert json.loads(json.dumps(facts.to_dict(), allow_nan=False))["head"] == ledger.head


@pytest.mark.parametrize("budget", [PureDP(0.5), ZCDP(0.1), ApproxDP(1.0, 1e-7)])
def test_another_budget_is_no_charge_of_the_model(budget):
    _, ledger = logistic()
    facts = LedgerFacts.of(ledger, guarantee(budget), "")
    assert facts.charge is None
    assert not facts.holds_the_charge
    assert "no charge of a model of this kind" in facts.sentence()


def test_a_void_charge_is_not_that_of_a_private_model():
    ledger = Ledger(limit=4.0)
    ledger.charge(1.0, purpose="LogisticRegression.fit (void: random_state was set)")
    assert LedgerFacts.of(ledger, guarantee(PureDP(1.0)), "").charge is None


def test_a_ledger_of_another_unit_relation_or_limit_is_none_of_the_model():
    ledger = Ledger(limit=4.0, max_rows_per_person=2)
    ledger.charge(guarantee_event := PureDP(1.0))
    assert "up to 2 rows" in LedgerFacts.of(ledger, guarantee(guarantee_event), "").sentence()
    other = Ledger(limit=4.0)
    other.charge(1.0)
    assert "add-or-remove-one" in LedgerFacts.of(other, guarantee(PureDP(1.0), "add-or-remove-one"), "").sentence()
    named = NamedLedger(other.identity, PureDP(3.0), 1)
    for stated, found in ((named, "another limit"), (replace(named, identity="x"), "another identity")):
        facts = LedgerFacts.of(other, charged_to(stated), "")
        assert not facts.holds_the_charge
        assert found in facts.sentence()
    assert LedgerFacts.of(other, charged_to(replace(named, limit=PureDP(4.0))), "").disagreement is None


def test_a_checksum_beside_a_charge_decides(monkeypatch):
    """Where charges name checksums, the one of this file is taken, and those of other files are not."""
    rows = [
        {"number": 1, "purpose": "a", "epsilon": 1.0, "delta": None, "rho": None, "sha256": "abc"},
        {"number": 2, "purpose": "b", "epsilon": 1.0, "delta": None, "rho": None, "sha256": "def"},
    ]
    monkeypatch.setattr("confide.report.ledger_facts.charges_of", lambda ledger: rows)
    ledger = SimpleNamespace(
        limit=PureDP(4.0), spent=lambda _: PureDP(2.0), remaining=lambda _: PureDP(2.0),
        neighbours=Neighbours.REPLACE_ONE, max_rows_per_person=1, head="h",
    )  # fmt: skip
    assert LedgerFacts.of(ledger, guarantee(PureDP(1.0)), "abc").charge == 1
    assert "names the checksum" in LedgerFacts.of(ledger, guarantee(PureDP(1.0)), "abc").sentence()
    other = LedgerFacts.of(ledger, guarantee(PureDP(1.0)), "xyz")
    assert other.charge is None
    assert "Charge 1 has this budget but names another file (abc)." in other.sentence()
    assert not other.may_hold_the_charge


@pytest.mark.parametrize(("amount", "pays"), [(PureDP(0.01), False), (ApproxDP(1.0, 1e-6), True), (PureDP(2.0), True)])
def test_a_charge_that_names_the_file_must_pay_for_it(amount, pays):
    """Anybody may write a checksum beside a charge. One of several releases that were planned together is larger."""
    ledger = Ledger(limit=ApproxDP(4.0, 1e-5))
    ledger.charge(amount, purpose="income", details={"sha256": "abc"})
    facts = LedgerFacts.of(ledger, guarantee(PureDP(1.0)), "abc")
    assert facts.holds_the_charge == pays
    assert ("does not cover the model's budget" in facts.sentence()) != pays
    assert not LedgerFacts.of(ledger, guarantee(ZCDP(0.1)), "abc").holds_the_charge


def test_charges_that_name_no_file_prove_nothing():
    """A model that was never charged is not taken for one that was, whatever charges have its budget."""
    ledger = Ledger(limit=4.0)
    ledger.charge(1.0, purpose="LogisticRegression.fit")
    ledger.charge(1.0, purpose="income of adults")
    facts = LedgerFacts.of(ledger, guarantee(PureDP(1.0)), "abc", estimator="LogisticRegression")
    assert "Charges 1 and 2 have this model's budget and name no file" in facts.sentence()
    assert "does not say that it was charged" in facts.sentence()
    assert not facts.holds_the_charge


@pytest.mark.parametrize(
    ("purpose", "release"),
    [
        ("evaluate", None),
        ("private bounds", None),
        ("LinearSVC.fit", None),
        ("census", "evaluate"),
        ("census", "LinearSVC.fit"),
        ("census", "charged by hand"),
        ("census", "LogisticRegression.fit (void: random_state was set)"),
    ],
)
def test_a_charge_of_another_release_is_not_that_of_the_model(purpose, release):
    """Neither with its budget nor with its checksum."""
    ledger = Ledger(limit=4.0)
    ledger.charge(1.0, purpose=purpose, details={"sha256": "ab" * 32} | ({} if release is None else {"release": release}))
    for checksum in ("ab" * 32, "cd" * 32):
        facts = LedgerFacts.of(ledger, guarantee(PureDP(1.0)), checksum, estimator="LogisticRegression")
        assert (facts.charge, facts.unnamed, facts.other_files) == (None, (), ())


def test_words_of_a_purpose_decide_nothing():
    """A study may be called as the library calls a seed or another estimator's fit."""
    ledger = Ledger(limit=4.0)
    purpose = "effects (void of names), as in LinearSVC.fit of May"
    ledger.charge(1.0, purpose=purpose, details={"sha256": "ab" * 32, "release": "LogisticRegression.fit"})
    facts = LedgerFacts.of(ledger, guarantee(PureDP(1.0)), "ab" * 32, estimator="LogisticRegression")
    assert facts.charge == 1


def test_save_notes_the_checksum_beside_the_charge(tmp_path):
    """So that the ledger shows which model was charged; the second fit is not the first."""
    ledger = Ledger(limit=4.0)
    first, second = (LogisticRegression(1.0, schema=schema(), ledger=ledger).fit(*people()) for _ in range(2))
    first.save(tmp_path / "first.json")
    first.save(tmp_path / "again.json")
    checksum = hashlib.sha256((tmp_path / "first.json").read_bytes()).hexdigest()
    facts = LedgerFacts.of(ledger, first.guarantee_, checksum, estimator="LogisticRegression")
    assert (facts.charge, facts.holds_the_charge, facts.says_charged) == (1, True, True)
    assert LedgerFacts.of(ledger, second.guarantee_, "", estimator="LogisticRegression").unnamed == (2,)
    load(tmp_path / "first.json").save(tmp_path / "third.json")  # names no ledger


def test_a_model_is_saved_even_if_its_ledger_takes_no_note(tmp_path, monkeypatch):
    ledger = Ledger(limit=4.0)
    model = LogisticRegression(1.0, schema=schema(), ledger=ledger).fit(*people())

    def fail(*_):
        raise LedgerError("it is closed.")

    monkeypatch.setattr(ledger, "note", fail)
    with pytest.warns(PrivacyWarning, match="could not be noted"):
        model.save(tmp_path / "model.json")
    assert load(tmp_path / "model.json").guarantee_ == model.guarantee_


def test_amounts_for_persons_with_fewer_rows_are_named_as_such():
    """They hold for such persons alone. With as many rows or fewer there is nothing to say."""
    ledger = Ledger(limit=4.0)
    ledger.charge(1.0)
    ledger.note(1, {"sha256": "abc"})
    facts = LedgerFacts.of(ledger, guarantee(PureDP(1.0), rows=2), "abc")
    assert facts.holds_the_charge
    assert "at most 1 row pay" in facts.unit_note
    assert "--max-rows-per-person 2" in facts.unit_note
    assert facts.account.endswith("for persons with at most 1 row")
    assert facts.to_dict()["unit_note"] == facts.unit_note
    assert LedgerFacts.of(ledger, guarantee(PureDP(1.0)), "").unit_note is None
    assert unit_note(3, 2) is None


def test_the_cohort_that_paid_is_named_with_what_it_has_left():
    """What is spent and left is that of its persons; a charge for everybody names no cohort."""
    relation = "add-or-remove-one"
    ledger = Ledger(limit=4.0, neighbours=relation, cohorts="month")
    for cohort in ("2026-11", "2026-12", None):
        own = "ab"[cohort is None] * 64
        ledger.charge(1.0, purpose="LogisticRegression.fit", details={"sha256": own}, cohort=cohort)
    ledger.charge(2.0, cohort="2026-11")
    facts = LedgerFacts.of(ledger, guarantee(PureDP(1.0), relation), "a" * 64)
    assert (facts.charge, facts.cohort, facts.to_dict()["cohort"]) == (2, "2026-12", "2026-12")
    assert facts.account == 'epsilon = 2 spent of epsilon = 4; epsilon = 2 left; for the persons of the cohort "2026-12"'
    assert 'The persons of the cohort "2026-12" paid it, and nobody else.' in facts.sentence()
    of_all = LedgerFacts.of(ledger, guarantee(PureDP(1.0), relation), "b" * 64)
    assert (of_all.charge, of_all.cohort, of_all.left.epsilon) == (3, None, 0.0)
    assert "cohort" not in of_all.sentence() + of_all.account
