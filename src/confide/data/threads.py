"""Work that several threads share: results come in a fixed order, and each thread uses one BLAS thread."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

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
        pool = ThreadPoolExecutor(n_threads, "confide-rows", _limited)
        yield from _by_threads(make_as_here, items, pool, n_threads)


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
        yield pool.submit(copy_context().run, make).result
    finally:
        # After an error or an interrupt nobody waits for it.
        pool.shutdown(wait=False, cancel_futures=True)


def mapped_in_order(make: Callable[[Item], Made], items: Iterable[Item], n_threads: int) -> Generator[Made, None, None]:
    """The same for work that uses neither BLAS nor NumPy, such as reading. No setting is changed for it."""
    if n_threads == 1:
        yield from map(make, items)
    else:
        yield from _by_threads(make, items, ThreadPoolExecutor(n_threads, "confide-reading"), n_threads)


def _by_threads(
    make: Callable[[Item], Made], items: Iterable[Item], pool: ThreadPoolExecutor, n_threads: int
) -> Generator[Made, None, None]:
    ahead: deque[Future[Made]] = deque()
    try:
        for item in items:
            # Some settings of libraries, such as how NumPy writes numbers as text, are known to the calling thread alone.
            ahead.append(pool.submit(copy_context().run, make, item))
            if len(ahead) > n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        # After an interrupt, running calls are finished, which takes a fraction of a second, and no more are begun.
        pool.shutdown(cancel_futures=True)
