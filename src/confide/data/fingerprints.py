"""Fingerprints of rows: by them it is noticed that a partition did not come out the same when it was computed again.

A fingerprint covers every byte of the arrays that sums are taken over. It is data, as those sums are, and goes no further.

A cryptographic hash takes as long as the sums themselves. So words of 64 bits are first brought together, a chunk of 1,024
at a time, as two sums modulo 2^64, and only these are hashed:

    sum_i a_i w_i    and    sum_i b_i h_i,    w_i the words, h_i their upper halves, a and b keys.

Two chunks that differ have the same sums with probability at most 2^-33 over uniform keys. Where upper halves differ,
let d_i be their differences, and j one with d_j != 0. It is below 2^32 in size, so the largest power of two in it is at most
2^31, and of all b_j at most 2^31 give b_j d_j any one value modulo 2^64: a share of 2^-33. Where no upper half differs, some
lower half does, and the same holds for a and the first sum. The keys are fixed, for rows change by accident and not against
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

_WORDS_IN_CHUNK = 1024
_CHUNKS_AT_ONCE = 32
"""They stay in the cache between the two sums."""
SIZE = 16
"""Bytes of a fingerprint."""
_KEYS = np.frombuffer(hashlib.shake_256(__name__.encode()).digest(16 * _WORDS_IN_CHUNK), "<u8").reshape(2, _WORDS_IN_CHUNK)


class Fingerprint:
    """The fingerprint of the arrays that are added, in their order, with their types and shapes."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=SIZE)

    def add(self, arrays: Iterable[np.ndarray[Any, Any]]) -> None:
        """Take more arrays of numbers into it."""
        for array in arrays:
            self._hash.update(f"{array.dtype.str}{array.shape}".encode())
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            whole = content.size - content.size % _KEYS[0].nbytes
            self._hash.update(_shortened(content[:whole]).tobytes())
            self._hash.update(content[whole:].tobytes())

    def digest(self) -> bytes:
        """The fingerprint of all that was added."""
        return self._hash.digest()


def _shortened(content: Any) -> Any:
    """The two sums (2, chunks) of bytes, whole chunks of them."""
    chunks = content.view("<u8").reshape(-1, _WORDS_IN_CHUNK)
    sums = np.empty((2, len(chunks)), np.uint64)
    for start in range(0, len(chunks), _CHUNKS_AT_ONCE):
        words = chunks[start : start + _CHUNKS_AT_ONCE]
        stop = start + len(words)
        sums[0, start:stop] = words @ _KEYS[0]
        sums[1, start:stop] = (words >> np.uint64(32)) @ _KEYS[1]
    return sums
