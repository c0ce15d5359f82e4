"""Fingerprints of rows. They show whether a partition was the same when it was computed again.

A fingerprint covers every byte of the arrays that sums are taken over. It is private data, as those sums are, and is not
passed on.

A cryptographic hash takes as long as the sums themselves (benchmarks/fingerprints.py). So the bytes are first shortened:
each chunk of 1,024 words of 64 bits becomes two sums modulo 2^64, and only these sums are hashed:

    sum_i a_i w_i    and    sum_i b_i h_i,    where w_i are the words, h_i their upper halves, and a and b are keys.

Two different chunks have the same sums with probability at most 2^-33 over uniform keys. Proof: let upper halves differ, let
d_i be their differences, and let j be an index with d_j != 0. Since |d_j| < 2^32, the largest power of two that divides d_j
is at most 2^31. So for each value modulo 2^64, at most 2^31 of all b_j make b_j d_j equal to it, which is a share of 2^-33.
If no upper half differs, some lower half does, and the same argument holds for a and the first sum. The keys are fixed: rows
change by accident, and nobody chooses them against the keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

_WORDS_IN_CHUNK = 1024
_CHUNKS_AT_ONCE = 32
"""So many chunks stay in the cache between the two sums."""
SIZE = 16
"""Number of bytes of a fingerprint."""
_KEYS = np.frombuffer(hashlib.shake_256(__name__.encode()).digest(16 * _WORDS_IN_CHUNK), "<u8").reshape(2, _WORDS_IN_CHUNK)


class Fingerprint:
    """The fingerprint of the arrays that are added to it: of their content, types, shapes and order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=SIZE)

    def add(self, arrays: Iterable[np.ndarray[Any, Any]]) -> None:
        """Add more arrays of numbers."""
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
    """The two sums of each chunk, (2, number of chunks), for bytes that are a whole number of chunks."""
    chunks = content.view("<u8").reshape(-1, _WORDS_IN_CHUNK)
    sums = np.empty((2, len(chunks)), np.uint64)
    for start in range(0, len(chunks), _CHUNKS_AT_ONCE):
        words = chunks[start : start + _CHUNKS_AT_ONCE]
        stop = start + len(words)
        sums[0, start:stop] = words @ _KEYS[0]
        sums[1, start:stop] = (words >> np.uint64(32)) @ _KEYS[1]
    return sums
