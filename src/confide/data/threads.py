"""Work that several threads share: results come in a fixed order, and each thread uses one BLAS thread."""

from __future__ import annotations

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

Item = TypeVar("Item")
Made = TypeVar("Made")


def one_blas_thread() -> Any:
    """Limit BLAS to one thread from now on; as a context manager, until the end of the `with` block.

    Blocks of rows are small, so a second BLAS thread costs more time than it saves, and much more on a busy machine.
    """
    return _THREAD_POOLS.limit(limits=1, user_api="blas")


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
        pool = ThreadPoolExecutor(n_threads, "confide-rows", one_blas_thread)
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
