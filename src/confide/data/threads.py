"""Work shared between threads, in a fixed order and with one BLAS thread for each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

# Found once, and at import: looking for loaded libraries in one thread while another loads one can block both for ever.
_THREAD_POOLS = ThreadpoolController()

Item = TypeVar("Item")
Made = TypeVar("Made")


def one_blas_thread() -> Any:
    """One BLAS thread from here on, and within a `with` no longer than that.

    Blocks of rows are small: a second BLAS thread costs more than it gives, and much more on a busy machine.
    """
    return _THREAD_POOLS.limit(limits=1, user_api="blas")


def made_in_order(make: Callable[[Item], Made], items: Iterable[Item], n_threads: int) -> Generator[Made, None, None]:
    """What is made of each item, in the order of the items, by so many threads. To be closed, which ends them.

    Few more results are held than there are threads, however many items there are.
    """
    if n_threads == 1:
        yield from map(make, items)
        return
    settings = np.geterr()

    def make_as_here(item: Item) -> Made:
        with np.errstate(**settings):
            return make(item)

    with one_blas_thread():
        # Some builds of BLAS have a number of threads for each thread that calls them: the limit here does not reach those.
        pool = ThreadPoolExecutor(n_threads, "confide-rows", initializer=one_blas_thread)
        ahead: deque[Future[Made]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(make_as_here, item))
                if len(ahead) > n_threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            # After an interrupt what is being made is finished, a fraction of a second, and nothing more is begun.
            pool.shutdown(cancel_futures=True)
