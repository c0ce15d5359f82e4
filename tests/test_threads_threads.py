"""Work that threads share: results in order, few at a time, ended by an error, with one BLAS thread each."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from confide.threads import begun, made_in_order, one_blas_thread


def own_threads():
    """The threads of the pool that are running."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("confide-rows")]


def blas_threads():
    """How many threads each BLAS would use."""
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(n_threads):
    """It holds even if the first items take the longest."""
    taken = made_in_order(lambda i: time.sleep((20 - i) / 2000) or i * i, range(20), n_threads)
    assert list(taken) == [i * i for i in range(20)]
    assert not own_threads()


def test_work_is_shared():
    """Two items that wait for each other are both finished."""
    meeting = threading.Barrier(2, timeout=20)
    assert sorted(made_in_order(lambda _: meeting.wait(), range(2), 2)) == [0, 1]


def test_few_results_are_held_however_slowly_they_are_taken():
    """At most a few items more than there are threads are begun ahead of the one that was taken."""
    begun = []
    made = made_in_order(lambda i: begun.append(i) or i, range(1000), 2)
    for i in range(10):
        assert next(made) == i
        time.sleep(0.01)
        assert len(begun) <= i + 4
    made.close()
    assert not own_threads()


def test_an_error_in_a_thread_is_raised_here_and_ends_the_others():
    """No items are begun beyond those that had been handed out."""
    begun = []

    def make(i):
        begun.append(i)
        if i == 3:
            raise KeyError(i)
        return i

    with pytest.raises(KeyError):
        list(made_in_order(make, range(1000), 2))
    assert not own_threads()
    assert max(begun) <= 6


def test_each_thread_has_one_blas_thread_and_the_callers_warnings():
    """It holds while threads work. Afterwards the caller has the same settings as before."""
    before = blas_threads()
    with np.errstate(all="ignore"):
        made = list(made_in_order(lambda _: (blas_threads(), np.geterr()), range(4), 2))
    assert all(threads == {1} and set(errors.values()) == {"ignore"} for threads, errors in made)
    assert blas_threads() == before
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        list(made_in_order(lambda zero: np.ones(2) / np.full(2, zero), [0.0], 2))


class Library:
    """A BLAS whose number of threads is one for the whole process, with the limits of threadpoolctl."""

    n_threads = 8

    def limit(self, *, limits, user_api=None):
        limited = Limited(self, self.n_threads)
        self.n_threads = limits
        return limited


class Limited:
    def __init__(self, library, before):
        self.library, self.before = library, before

    def restore_original_limits(self):
        self.library.n_threads = self.before

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.restore_original_limits()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_the_limit_holds_until_the_last_of_several_threads_leaves(monkeypatch, order):
    """And is lifted then. If each put back what it had found, the second would leave one thread for good."""
    library, seen = Library(), []
    monkeypatch.setattr("confide.threads._THREAD_POOLS", library)
    entered, may_leave = [threading.Event() for _ in order], [threading.Event() for _ in order]

    def work(number):
        with one_blas_thread():
            entered[number].set()
            assert may_leave[number].wait(20)

    threads = [threading.Thread(target=work, args=(number,)) for number in sorted(order)]
    for thread, event in zip(threads, entered, strict=True):
        thread.start()
        assert event.wait(20)
    for number in order:
        seen.append(library.n_threads)
        may_leave[number].set()
        threads[number].join()
    assert [*seen, library.n_threads] == [1, 1, 1, 8]
    with one_blas_thread(), one_blas_thread():
        assert library.n_threads == 1
    assert library.n_threads == 8


def test_the_limit_ends_with_its_block():
    """It holds for every BLAS that was loaded when the package was imported."""
    before = blas_threads()
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before


SETTING = ContextVar("setting", default="of the library")


def test_settings_of_the_calling_thread_hold_in_its_threads():
    """Of a library that keeps them in a context, as NumPy keeps how numbers are written."""
    token = SETTING.set("of the caller")
    try:
        for n_threads in (1, 3):
            assert list(made_in_order(lambda _: SETTING.get(), range(5), n_threads)) == ["of the caller"] * 5
            with begun(SETTING.get, n_threads) as found:
                assert found() == "of the caller"
    finally:
        SETTING.reset(token)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_of_work_that_was_begun_is_raised_where_its_result_is_asked_for(n_threads):
    """And not at all where something else failed first, which waits for nothing."""

    def fails():
        raise ValueError("of the work")

    with begun(fails, n_threads) as found, pytest.raises(ValueError, match="of the work"):
        found()
    waited = threading.Event()
    with pytest.raises(KeyError), begun(lambda: waited.wait(60), n_threads):
        raise KeyError
    waited.set()


@pytest.mark.parametrize("n_started", [0, 1])
def test_work_is_done_here_where_no_thread_can_be_started(monkeypatch, n_started):
    """Where the system has none left, or the program is about to end. Each item is worked on once, in whatever thread."""
    start, left, done = threading.Thread.start, [None] * n_started, []

    def starts_a_few(thread):
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts_a_few)
    assert list(made_in_order(lambda i: time.sleep(0.001) or done.append(i) or i, range(20), 3)) == list(range(20))
    assert sorted(done) == list(range(20))
    with begun(lambda: "made", 2) as found:
        assert found() == "made"
    assert not own_threads()
