"""Threads that share passes over the rows, locks among processes, and who is told how many rows were used, and how fast.

The number of passes depends on the rows, so it may be shown on the curator's screen only. The line that `progress` writes by
itself therefore numbers passes only on a terminal, and never tells how many rows there are, which may be private.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from confide.errors import ParameterError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt

IS_WINDOWS = fcntl is None

Progress: TypeAlias = Callable[[str, int], None]
"""Is called with what is done ("checking", "training" or "scoring") and how many rows of this pass were used, at first 0."""

_SECONDS_BETWEEN_LINES = 0.5

_told: ContextVar[Progress | None] = ContextVar("confide_progress", default=None)
"""Who is told of passes that begin in this thread."""


@contextmanager
def progress(told: Progress | None = None) -> Iterator[None]:
    """Show the progress of fits for as long as the `with` block lasts.

    Parameters
    ----------
    told : callable or None
        Called with "checking", "training" or "scoring" and the number of rows of this pass that have been used: 0 when a
        pass begins, and the number of all rows when it ends. None writes a line on standard error: what is done, the
        number of the pass (only on a terminal), rows a second in this pass, and the time since the `with` block began.
        No fit stops where the function raises: a line on standard error names the kind of its error, and it is not called
        again.

    Notes
    -----
    A row counts once a pass, however many problems are solved at once. Passes over a sample in memory are not shown. Workers
    of a cluster report when a pass ends, and parties report one by one. Fits with a smooth loss usually take 5 to 20 passes.
    Fits with a hinge take 10 to 60 passes, or hundreds where the joint of the hinge is narrow. `Ridge` takes one pass.

    Keep the output on the curator's screen. The number of passes depends on the rows, so whoever counts passes, or reads the
    clock, learns something that no budget covers. Logs tell the same. Only fits of this thread are shown, and nothing here
    changes what they release.

    Returns
    -------
    A context manager, for a `with` block.

    Raises
    ------
    ParameterError
        If it is given anything but a function or None.

    Examples
    --------
    >>> import numpy as np
    >>> import confide
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5_000, 2))
    >>> done = []
    >>> with confide.progress(lambda what, n_rows: done.append((what, n_rows))):
    ...     model = confide.LogisticRegression(1.0).fit(X, X[:, 0] > 0.0)
    >>> done[-1]
    ('training', 5000)
    """
    if told is not None and not callable(told):
        raise ParameterError("progress must be given a function of what is done and a number of rows, or None.")
    line = _Line()
    token = _told.set(until_it_raises(told or line))
    try:
        yield
    finally:
        _told.reset(token)
        until_it_raises(lambda *_: line.end())("", 0)


def until_it_raises(told: Progress) -> Progress:
    """A function that is told of passes until it raises: its error must not stop a fit whose budget is spent."""
    is_told = True

    def tell(what: str, n_rows: int) -> None:
        nonlocal is_told
        try:
            if is_told:
                told(what, n_rows)
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything
            is_told = False
            with suppress(Exception):  # standard error may be closed, and is None without a console
                sys.stderr.write(f"confide: no more progress is shown: its function raised {type(error).__name__}.\n")

    return tell


class Pass:
    """One pass over the rows, reported as the rows are used.

    Parameters
    ----------
    what : "checking", "training" or "scoring"
    told : who is told, or None for whoever `progress` names
    """

    def __init__(self, what: str, told: Progress | None = None) -> None:
        self._what, self._told, self._n_rows = what, told or _told.get(), 0
        self.used(0)

    def used(self, n_rows: int) -> None:
        """Report that `n_rows` more rows have been used."""
        self._n_rows += n_rows
        if self._told is not None:
            self._told(self._what, self._n_rows)


def watched_pass(what: str) -> Pass | None:
    """A pass that begins in this thread; None where nobody is told of passes."""
    return None if _told.get() is None else Pass(what)


class Pace:
    """The number of the current pass and its speed, computed from the reports of passes.

    Parameters
    ----------
    clock : gives seconds that never decrease

    Attributes
    ----------
    number : number of this pass among consecutive passes that do the same, from 1
    seconds : time since this pass began
    speed : rows a second in this pass, as text; empty if no row was used or no time has passed
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun, self._what = clock, clock(), ""
        self.number, self.seconds, self.speed = 0, 0.0, ""

    def __call__(self, what: str, n_rows: int) -> None:
        now = self._clock()
        if n_rows == 0:
            self.number = self.number + 1 if what == self._what else 1
            self._begun, self._what = now, what
        self.seconds = now - self._begun
        self.speed = f"{n_rows / self.seconds:,.0f} rows/s" if n_rows and self.seconds > 0.0 else ""


class _Line:
    """One line on standard error, which is written over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun, self._pace = clock, clock(), Pace(clock)
        self._written, self._width = -float("inf"), 0

    def __call__(self, what: str, n_rows: int) -> None:
        self._pace(what, n_rows)
        now = self._clock()
        if now - self._written < _SECONDS_BETWEEN_LINES:
            return
        self._written = now
        # Output that does not go to a terminal may be kept in a log, which must not hold the number of passes.
        number = f", pass {self._pace.number}" if sys.stderr.isatty() else ""
        speed = f"{self._pace.speed} in this pass, " if self._pace.speed else ""
        self._write(f"{what}{number}: {speed}{now - self._begun:.0f} s")

    def end(self) -> None:
        """Clear the line."""
        if self._width:
            self._write("")

    def _write(self, text: str) -> None:
        stream: Any = sys.stderr
        stream.write("\r" + text.ljust(self._width) if text else "\r" + " " * self._width + "\r")
        stream.flush()
        self._width = len(text)


# Work that several threads share: results come in a fixed order, and each thread uses one BLAS thread.

# Created once, at import: if one thread looks for loaded libraries while another loads one, both can block for ever.
_THREAD_POOLS = ThreadpoolController()
_OF_A_THREAD = _THREAD_POOLS.select(internal_api="openblas").select(threading_layer="openmp")

Item = TypeVar("Item")
Made = TypeVar("Made")


class _Limit:
    """A limit that is there while any thread is in its block, and is lifted when the last one leaves.

    The limit is one for the process. If each thread put back what it had found, a thread that came second would put back the
    limit of the first, for good, and the first would lift it while the second works.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._lifted_by: Any = None
        self.forget()

    def forget(self) -> None:
        """Be free of threads that a forked process does not have."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._lifted_by = _limited()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                lifted, self._lifted_by = self._lifted_by, None
                lifted.restore_original_limits()


def _limited() -> Any:
    """Limit BLAS to one thread from now on, for this thread or for all, as its build has it."""
    return _THREAD_POOLS.limit(limits=1, user_api="blas")


_one_thread = _Limit()
if not IS_WINDOWS:
    os.register_at_fork(after_in_child=_one_thread.forget)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the end of the `with` block, also where several threads are in such blocks.

    Blocks of rows are small, so a second BLAS thread costs more time than it saves, and much more on a busy machine.
    """
    # Some builds of BLAS keep a limit for each calling thread: of OpenBLAS, those with OpenMP.
    with _one_thread, _OF_A_THREAD.limit(limits=1):
        yield


def made_in_order(make: Callable[[Item], Made], items: Iterable[Item], n_threads: int) -> Generator[Made, None, None]:
    """What `make` gives for each item, in the order of the items, computed by `n_threads` threads.

    Closing the generator ends the threads. At any time only a few more results are held than there are threads, however many
    items there are.
    """
    if n_threads == 1:
        yield from map(make, items)
        return
    settings = np.geterr()

    def make_as_here(item: Item) -> Made:
        with np.errstate(**settings):
            return make(item)

    with one_blas_thread():
        # Some builds of BLAS keep a limit for each calling thread. The limit above does not reach the threads of the pool.
        yield from _by_threads(make_as_here, items, ThreadPoolExecutor(n_threads, "confide-rows", _limited), n_threads)


@contextmanager
def begun(make: Callable[[], Made], n_threads: int) -> Iterator[Callable[[], Made]]:
    """Begin work in a thread of its own, if there may be more than one; what is yielded waits for its result or its error.

    With one thread, it does the work when it is called. The work may give no warning: it would name a place of that thread.
    """
    if n_threads == 1:
        yield make
        return
    pool = ThreadPoolExecutor(1, "confide-beside")
    try:
        yield _begun_in(pool, make)
    finally:
        # After an error or an interrupt nobody waits for it.
        pool.shutdown(wait=False, cancel_futures=True)


def _by_threads(
    make: Callable[[Item], Made], items: Iterable[Item], pool: ThreadPoolExecutor, n_threads: int
) -> Generator[Made, None, None]:
    ahead: deque[Callable[[], Made]] = deque()
    try:
        for item in items:
            ahead.append(_begun_in(pool, partial(make, item)))
            if len(ahead) > n_threads:
                yield ahead.popleft()()
        while ahead:
            yield ahead.popleft()()
    finally:
        # After an interrupt, running calls are finished, which takes a fraction of a second, and no more are begun.
        pool.shutdown(cancel_futures=True)


def _begun_in(pool: ThreadPoolExecutor, make: Callable[[], Made]) -> Callable[[], Made]:
    """Begin work in a thread of the pool, or do it here if none can be started; what is returned gives its result.

    No thread can be started where the system has none left, or where the program is about to end.
    """
    made: Future[Made] = Future()

    def work() -> None:
        try:
            made.set_result(make())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            made.set_exception(error)

    try:
        # Some settings of libraries, such as how NumPy writes numbers as text, are known to the calling thread alone.
        pool.submit(copy_context().run, work)
    except RuntimeError:
        pool.shutdown()  # threads that were started before finish what they were given, and this work may be among it
        if not made.done():
            work()
    return made.result


_LOCKED_BYTE = 2**31 - 2 if IS_WINDOWS else 2**62
"""The byte that is locked: a lock may lie behind the end of a file, and SQLite locks bytes far before this one. Windows lets
nobody else read what is locked, and C libraries of it count such bytes in 32 bits."""

_REFUSALS: tuple[type[OSError], ...] = (OSError,) if IS_WINDOWS else (BlockingIOError, PermissionError)
"""Words of systems for a lock that somebody else has. On Windows nothing else is to be expected."""


def lock(handle: int, *, for_process: bool = False, give_back: bool = False) -> None:
    """Lock an open file, by whatever name it was opened. Nobody waits. The system gives back what a dead process held.

    Parameters
    ----------
    handle : the file, which may be written
    for_process : whether the lock is a byte that belongs to this process until it closes the file anywhere. Otherwise it
        belongs to this opening, so that the same process is kept out too, and forked processes share it. On Windows every
        lock is a byte of one opening
    give_back : whether the lock, which belongs to this opening, is given back in place of taken

    Raises
    ------
    BlockingIOError
        If it is locked.
    """
    try:
        if IS_WINDOWS:
            os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_UNLCK if give_back else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        elif for_process:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKED_BYTE)
        else:
            fcntl.flock(handle, fcntl.LOCK_UN if give_back else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except _REFUSALS as error:
        raise BlockingIOError(error.errno, error.strerror) from None
