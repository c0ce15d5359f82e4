"""The in-memory ledger: exact sums, one object under every copy, and refusals that charge nothing."""

from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
import threading

import pytest

from confide.errors import BudgetExceeded, LedgerError, ParameterError
from confide.privacy.guarantee import PureDP
from confide.privacy.ledger import Ledger


def test_charges_add_up_to_the_limit_exactly():
    """Ten charges of 0.1 fit under 1.0, and not one more."""
    ledger = Ledger(limit=1.0)
    for i in range(10):
        ledger.charge(0.1, purpose=f"fit {i}")
    assert ledger.spent().epsilon == 1.0
    assert ledger.remaining().epsilon == 0.0
    with pytest.raises(BudgetExceeded, match="Nothing was used or charged"):
        ledger.charge(1e-9)
    frame = ledger.entries()
    assert list(frame.columns) == ["number", "epsilon", "purpose"]
    assert frame["purpose"].tolist()[-1] == "fit 9"
    assert len(frame) == 10


def test_a_tiny_rest_can_be_asked_for():
    """Less is left than the smallest budget of a release."""
    ledger = Ledger(limit=1.0)
    ledger.charge(0.9999999999)
    assert 0 < ledger.remaining().epsilon < 2e-10


def test_a_refused_charge_changes_nothing():
    """The refusal names what was asked, what is left and the limit."""
    ledger = Ledger(limit=PureDP(1.0))
    ledger.charge(PureDP(0.6))
    with pytest.raises(BudgetExceeded, match=r"epsilon 0\.5; the ledger has 0\.4 left of 1"):
        ledger.charge(PureDP(0.5))
    assert ledger.spent().epsilon == pytest.approx(0.6)
    with pytest.raises(BudgetExceeded):
        ledger.charge(math.inf)


@pytest.mark.parametrize("budget", [0, -1, math.nan, True, "0.1", None])
def test_charges_that_are_no_budget_are_refused(budget):
    """They could not be summed."""
    with pytest.raises(ParameterError):
        Ledger(limit=1.0).charge(budget)


def test_an_infinite_limit_is_refused():
    """It would limit nothing."""
    with pytest.raises(ParameterError):
        Ledger(limit=math.inf)


def test_charges_of_another_relation_are_refused():
    """Replace-one and add-or-remove-one epsilons do not add."""
    ledger = Ledger(limit=1.0)
    with pytest.raises(LedgerError, match="one ledger for each relation"):
        ledger.charge(0.1, neighbours="add-or-remove-one")
    ledger.charge(0.1, neighbours="replace-one")


def test_every_copy_is_the_ledger_itself():
    """copy, deepcopy and scikit-learn's clone, alone and inside an estimator."""
    from sklearn.base import clone

    from confide import LogisticRegression

    ledger = Ledger(limit=1.0)
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"a": [ledger]})["a"][0] is ledger
    assert clone(LogisticRegression(ledger=ledger)).ledger is ledger


def test_pickling_is_refused_with_advice():
    """A copy in another process would spend the same budget again."""
    with pytest.raises(LedgerError, match="n_jobs=1"):
        pickle.dumps(Ledger(limit=1.0))


def _charge_and_report(ledger, queue):
    try:
        ledger.charge(0.1)
        queue.put("charged")
    except LedgerError:
        queue.put("refused")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_cannot_charge():
    """Its charge would be lost to the parent."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this platform cannot fork")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    ledger = Ledger(limit=1.0)
    child = context.Process(target=_charge_and_report, args=(ledger, queue))
    child.start()
    assert queue.get(timeout=30) == "refused"
    child.join()
    assert ledger.spent().epsilon == 0.0


def test_threads_cannot_overspend():
    """8 threads ask for 1.6 in all under a limit of 1: exactly 1 is granted."""
    ledger = Ledger(limit=1.0)
    granted = []

    def work():
        for _ in range(20):
            try:
                ledger.charge(0.01)
                granted.append(1)
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 100
    assert ledger.spent().epsilon == 1.0
