"""What a ledger promises wherever it is kept, in a file or in a database: charges stay, among many processes and kills."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from confide import LogisticRegression
from confide.accounting.ledger import Ledger
from confide.errors import LedgerError
from confide.privacy.budgets import ApproxDP, PureDP
from tests.accounting.many_processes import FORK, assert_exact, charge_until_stopped

# A forked child that exits is no test of its own; numpy's threads are idle.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

PROCESSES = {"file": 16, "database": 8}
LONGEST_LIFE = {"file": 0.03, "database": 0.1}
"""Seconds after its first charge in which a process is killed."""


@pytest.fixture(params=["file", "database"])
def kind(request):
    return request.param


@pytest.fixture
def place(kind, request, tmp_path):
    """The path or the URL of a ledger that is not there yet."""
    return tmp_path / "study.db" if kind == "file" else request.getfixturevalue("url")


def test_what_was_charged_is_there_after_reopening(charged):
    """Limit, relation, way of adding, charges and head."""
    ledger = Ledger(charged)
    assert (ledger.limit, ledger.neighbours, ledger.accounting) == (ApproxDP(4.0, 1e-6), "replace-one", "sum")
    assert ledger.spent() == ApproxDP(1.75, 1e-7)
    before = ledger.head
    ledger.charge(0.25)
    assert ledger.spent() == Ledger(charged).spent() == ApproxDP(2.0, 1e-7)
    assert Ledger(charged).head == ledger.head != before
    assert ledger.verify(before) == ledger.verify(ledger.head) == 4
    assert ledger.entries()["purpose"].tolist() == ["mean age", "fit", "SECOND MEAN", ""]


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"limit": 3.0}, "has the limit epsilon = 4, delta = 1e-06, not epsilon = 3"),
        ({"limit": ApproxDP(4.0, 1e-5)}, "not epsilon = 4, delta = 1e-05"),
        ({"limit": ApproxDP(4.0, 1e-6), "neighbours": "add-or-remove-one"}, "replace-one guarantees, not add-or-remove-one"),
        ({"neighbours": "add-or-remove-one"}, "one ledger for each relation"),
        ({"accounting": "renyi"}, "accounting='sum', not 'renyi'"),
        ({"max_rows_per_person": 2}, "is for max_rows_per_person=1, not 2"),
    ],
)
def test_a_ledger_that_is_not_as_the_caller_says_is_refused(charged, options, advice):
    """Limit, relation, persons and way of adding are fixed once."""
    with pytest.raises(LedgerError, match=advice):
        Ledger(charged, **options)


def create_and_report(place, start, results):
    start.wait()
    results.put(Ledger(place, limit=1.0).identity)


def test_many_processes_that_create_one_ledger_share_it(kind, place):
    """The first wins, the others open it, and no unfinished file stays."""
    start, results = FORK.Barrier(8), FORK.Queue()
    children = [FORK.Process(target=create_and_report, args=(place, start, results)) for _ in range(8)]
    for child in children:
        child.start()
    assert len({results.get(timeout=60) for _ in children}) == 1
    for child in children:
        child.join()
    if kind == "file":
        assert [entry.name for entry in place.parent.iterdir()] == ["study.db"]


@pytest.mark.parametrize("share", [None, 0.73])
def test_many_processes_lose_no_charge_and_never_overspend(kind, place, share):
    """Each of 16 charges of each process is counted once; or exactly those that fit."""
    total = PROCESSES[kind] * 16
    expected = total if share is None else int(share * total)
    limit = 100.0 if share is None else expected / 100
    assert_exact(place, limit=limit, processes=PROCESSES[kind], times=16, expected=expected)


def fit_until_killed(place, acknowledged):
    model = LogisticRegression(0.001, ledger=Ledger(place))
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    while True:
        model.fit(X, y)
        os.write(acknowledged, b".")


def spent_after_kills(place, target, times, longest):
    """Kill a child at a random moment, again and again, and compare what it said with what the ledger says."""
    rng = np.random.default_rng(3)
    Ledger(place, limit=1e6)
    acknowledged = 0
    for _ in range(times):
        reader, writer = os.pipe()
        child = FORK.Process(target=target, args=(place, writer))
        child.start()
        os.close(writer)
        assert os.read(reader, 1) == b"."
        time.sleep(float(rng.uniform(0.0, longest)))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        acknowledged += 1 + sum(len(piece) for piece in iter(lambda: os.read(reader, 65536), b""))  # noqa: B023
        os.close(reader)
        # A writer: it waits for the lock, and so for a COMMIT of the dead client that a server still works on.
        ledger = Ledger(place)
        ledger.charge(0.001)
        count = ledger.verify()
        assert acknowledged + 1 <= count <= acknowledged + 2
        assert ledger.spent().epsilon == pytest.approx(count / 1000)
        acknowledged = count


TARGETS = [("file", charge_until_stopped), ("file", fit_until_killed), ("database", charge_until_stopped)]


@pytest.mark.parametrize(("kind", "target"), TARGETS)
def test_no_acknowledged_charge_is_lost_by_kills(kind, place, target):
    """20 times: the ledger opens, holds every charge whose call returned and at most one more, and takes more."""
    spent_after_kills(place, target, 20, LONGEST_LIFE[kind])


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "target"), TARGETS)
def test_no_acknowledged_charge_is_lost_by_many_kills(kind, place, target):
    """The same, longer."""
    spent_after_kills(place, target, 200 if kind == "file" else 100, LONGEST_LIFE[kind])


def test_an_open_ledger_survives_a_fork(place):
    """Parent and child go on with the same object and the same ledger."""
    ledger = Ledger(place, limit=10.0)
    ledger.charge(1.0)
    child = FORK.Process(target=ledger.charge, args=(2.0,))
    child.start()
    ledger.charge(4.0)
    child.join()
    assert child.exitcode == 0
    assert ledger.spent() == PureDP(7.0)


@pytest.mark.filterwarnings("ignore::confide.errors.BudgetWarning")
def test_grid_search_in_several_processes_charges_the_one_ledger(place):
    """Two candidates on three folds and one refit: seven fits, whoever ran them."""
    X = np.random.default_rng(0).normal(size=(120, 2))
    ledger = Ledger(place, limit=10.0)
    search = GridSearchCV(LogisticRegression(0.5, ledger=ledger), {"alpha": [0.1, 1.0]}, cv=3, n_jobs=2)
    search.fit(X, (X[:, 0] > 0).astype(int))
    assert ledger.spent() == PureDP(3.5)
    assert search.best_estimator_.ledger._records.path == place
