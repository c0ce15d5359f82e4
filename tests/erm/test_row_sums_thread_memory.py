"""Memory that a thread uses again for every block."""

from __future__ import annotations

import threading

import numpy as np

from confide.erm.row_sums import scratch


def test_a_second_block_of_a_thread_gets_the_same_memory():
    """Also a smaller block, and one of single precision; another purpose has memory of its own."""
    first = scratch((50, 4))
    for again in (scratch((50, 4)), scratch((10, 4)), scratch((50, 4), dtype=np.float32)):
        assert np.shares_memory(first, again)
    assert not np.shares_memory(first, scratch((50, 4), "another purpose"))


def test_a_larger_block_gets_memory_of_its_size():
    """Every entry can be written to."""
    scratch((2, 2), "growing")
    block = scratch((300, 7), "growing")
    assert (block.shape, block.dtype) == ((300, 7), np.float64)
    block[...] = 1.0


def test_threads_share_no_memory():
    """Two threads clip their blocks at the same time."""
    found = []
    thread = threading.Thread(target=lambda: found.append(scratch((50, 4))))
    thread.start()
    thread.join()
    assert not np.shares_memory(scratch((50, 4)), found[0])


def test_memory_grows_only_when_it_has_to():
    """Exactly as large a block fits; one more row does not. Each purpose keeps its last memory."""
    first = scratch((3, 5), "exactly")
    assert np.shares_memory(first, scratch((5, 3), "exactly"))
    assert np.shares_memory(first, scratch((14, 1), "exactly"))
    assert not np.shares_memory(first, scratch((4, 5), "exactly"))
    single = scratch((2, 3), "exactly", np.float32)
    assert (single.shape, single.dtype) == ((2, 3), np.float32)
    assert np.shares_memory(scratch((7, 2)), scratch((1, 1), "rows"))
