"""Fingerprints of rows depend on their content alone, and on all of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from confide.data.streams import SIZE, Fingerprint


def fingerprint_of(*arrays):
    fingerprint = Fingerprint()
    fingerprint.add(arrays)
    return fingerprint.digest()


def test_equal_content_has_equal_fingerprints_however_it_lies_in_memory():
    """Copies, Fortran order, strided views, and arrays added one by one have the same fingerprint."""
    rows = np.random.default_rng(0).normal(size=(3000, 5))
    expected = fingerprint_of(rows, rows[:, 0])
    wider = np.zeros((6000, 7))
    wider[::2, 1:6] = rows
    for same in (rows.copy(), np.asfortranarray(rows), wider[::2, 1:6]):
        assert fingerprint_of(same, same[:, 0]) == expected
    one_by_one = Fingerprint()
    one_by_one.add([rows])
    one_by_one.add([rows[:, 0]])
    assert one_by_one.digest() == expected
    assert len(expected) == SIZE


@pytest.mark.parametrize("size", [1, 7, 8191, 8192, 8193, 24_576, 30_001])
def test_every_byte_counts(size):
    """Changing the lowest or highest bit of the first, the last, or any byte beside the end of a chunk is noticed."""
    content = np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8)
    expected = fingerprint_of(content)
    near_ends = {position for end in range(0, size + 1, 8192) for position in range(end - 8, end + 8)}
    for position in [*sorted(near_ends & set(range(size))), size - 1]:
        for bit in (1, 128):
            changed = content.copy()
            changed[position] ^= bit
            assert fingerprint_of(changed) != expected


def test_changes_that_one_sum_alone_would_miss_are_seen():
    """Changed signs, which change a sum of words by multiples of 2^63, and numbers that change places are noticed."""
    rows = np.random.default_rng(2).normal(size=1024)
    found = {fingerprint_of(rows)}
    pairs = list(combinations(range(24), 2))
    for pair in pairs:
        changed = rows.copy()
        changed[list(pair)] *= -1.0
        found.add(fingerprint_of(changed))
    assert len(found) == len(pairs) + 1
    single = rows.astype(np.float32)
    places = np.arange(1024)
    for i in (0, 1, 511, 1022):
        places[i], places[i + 1] = i + 1, i
        assert fingerprint_of(single[places]) != fingerprint_of(single)
        places[i], places[i + 1] = i, i + 1


def test_chunks_that_change_places_types_and_shapes_are_seen():
    """The same bytes in another order of chunks, with another type or in another shape have another fingerprint."""
    rows = np.random.default_rng(3).normal(size=(2, 1024))
    others = [rows[::-1], rows.view(np.int64), rows.T.copy().T.reshape(1024, 2), rows.reshape(-1)]
    assert len({fingerprint_of(rows), *map(fingerprint_of, others)}) == 5
    assert fingerprint_of(rows[0], rows[1]) != fingerprint_of(rows)
    assert fingerprint_of(rows[:0]) != fingerprint_of(rows[:0], rows[:0])
