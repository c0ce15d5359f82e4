"""Threads that share the rows of a fit: no bit depends on them, and an interrupt ends them."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import confide
from confide import ApproxDP, Ledger, LogisticRegression, ParameterError
from confide.data import arrays
from confide.erm.row_sums import RowSum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8_000, 6)) / 3
Y = (X @ RNG.normal(size=6) + 0.3 * RNG.logistic(size=len(X)) > 0).astype(np.int64)

ESTIMATORS = [
    confide.LogisticRegression,
    confide.LinearSVC,
    confide.KernelSVC,
    confide.ERMClassifier,
    partial(confide.Ridge, target_bound=1.0),
    partial(confide.HuberRegressor, target_bound=1.0),
    partial(confide.PoissonRegressor, target_bound=10.0),
    partial(confide.ERMRegressor, target_bound=1.0),
]


@pytest.fixture
def used(monkeypatch):
    """The numbers of threads of the sums over all rows; blocks are small, so that there is work for all of them."""
    monkeypatch.setattr(arrays, "_MOST_ROWS", 200)
    monkeypatch.setattr(arrays, "_BLOCKS_IN_GROUP", 4)
    monkeypatch.setattr(arrays, "_MANY_NUMBERS", 0)  # short passes gain nothing by threads
    seen, original = [], arrays.sum_over_groups

    def watched(row_sum, groups, n_features, weights, n_threads=1, *more):
        seen.append(n_threads)
        return original(row_sum, groups, n_features, weights, n_threads, *more)

    monkeypatch.setattr(arrays, "sum_over_groups", watched)
    return seen


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_same_seed_gives_the_same_weights_whatever_the_number_of_threads(kind, used):
    """To the bit; and the threads are those asked for."""
    model = kind(ApproxDP(1.0, 1e-6), random_state=5)
    y = Y if hasattr(model, "classes") else np.abs(X @ [0.1, 0.2, 0.3, 0.1, 0.2, 0.1])
    one = clone(model).fit(X, y)
    assert set(used) == {1}
    used.clear()
    three = clone(model).set_params(n_jobs=3).fit(X, y)
    assert set(used) == {3}
    np.testing.assert_array_equal(one.coef_, three.coef_)
    np.testing.assert_array_equal(one.intercept_, three.intercept_)
    assert one.guarantee_ == three.guarantee_


@pytest.mark.parametrize("sparse", [False, True])
def test_intervals_and_weights_are_shared_too(used, sparse):
    """The same bits, of the intervals as well. Sparse rows are not shared, because SciPy makes threads wait."""
    rows = np.where(np.abs(X) > 0.3, X, 0.0)
    rows = scipy.sparse.csr_array(rows) if sparse else rows
    models = [
        LogisticRegression(4.0, random_state=1, inference_share=0.3, n_jobs=n_jobs, max_sample_weight=2.0).fit(
            rows, Y, sample_weight=np.linspace(0, 2, len(Y))
        )
        for n_jobs in (1, 2)
    ]
    assert set(used) == ({1} if sparse else {1, 2})
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(models[0].conf_int(), models[1].conf_int())


def test_the_number_is_read_as_scikit_learn_reads_it(used):
    """None is 1, or what the context says; negative numbers count from all cores."""
    cores = joblib.effective_n_jobs(-1)
    for n_jobs, expected in ((None, 1), (2, 2), (-1, cores), (np.int64(3), 3)):
        used.clear()
        LogisticRegression(1.0, n_jobs=n_jobs).fit(X, Y)
        assert set(used) == {expected}
    used.clear()
    with joblib.parallel_config(n_jobs=4):
        LogisticRegression(1.0).fit(X, Y)
    assert set(used) == {4}


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
@pytest.mark.parametrize("kind", [ESTIMATORS[0], *ESTIMATORS[4:6]])
def test_other_values_are_refused_before_anything_is_charged(kind, n_jobs):
    """With what would do."""
    ledger = Ledger(limit=10.0)
    with pytest.raises(ParameterError, match="-1 for all cores"):
        kind(1.0, n_jobs=n_jobs, ledger=ledger).fit(X, Y)
    assert len(ledger.entries()) == 0


@pytest.mark.usefixtures("by_numpy_alone")
def test_an_interrupt_ends_the_fit_and_its_threads_and_leaves_the_charge(tmp_path, monkeypatch):
    """Ctrl-C in a pass over 125 blocks: the charge stays, no thread is left, and no file but the ledger's own."""
    ledger = Ledger(tmp_path / "ledger.sqlite", limit=1.0)
    plain, added = RowSum.add_block, []

    def interrupting(self, *block):
        added.append(threading.current_thread().name)
        if len(added) == 150:
            os.kill(os.getpid(), signal.SIGINT)
        if len(added) >= 150:
            time.sleep(0.01)
        plain(self, *block)

    monkeypatch.setattr(arrays, "_MOST_ROWS", 64)
    monkeypatch.setattr(arrays, "_BLOCKS_IN_GROUP", 4)
    monkeypatch.setattr(RowSum, "add_block", interrupting)
    model = LogisticRegression(0.5, ledger=ledger, n_jobs=2)
    before = set(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert all(name.startswith("confide-rows") for name in added)
    assert len(added) < 250, "the fit went on"
    # One that was being started when the interrupt came ends by itself.
    left = [thread for thread in threading.enumerate() if thread.name.startswith("confide-rows")]
    for thread in left:
        thread.join(timeout=60.0)
    assert not any(thread.is_alive() for thread in left)
    assert not hasattr(model, "coef_")
    assert len(ledger.entries()) == 1
    assert set(tmp_path.iterdir()) == before


def test_a_fit_is_not_lost_where_no_thread_can_be_started_after_its_charge(used, monkeypatch):
    """As where other programs took the last thread of a container. The weights are the same to the bit."""
    expected = LogisticRegression(1.0, random_state=0, n_jobs=2).fit(X, Y)
    charge, ledger = Ledger.charge, Ledger(limit=1.0)

    def fails(thread):
        raise RuntimeError("can't start new thread")

    def charging(*given, **named):
        charge(*given, **named)
        monkeypatch.setattr(threading.Thread, "start", fails)

    monkeypatch.setattr(Ledger, "charge", charging)
    model = LogisticRegression(1.0, random_state=0, n_jobs=2, ledger=ledger).fit(X, Y)
    assert max(used) == 2
    assert np.array_equal(model.coef_, expected.coef_)
