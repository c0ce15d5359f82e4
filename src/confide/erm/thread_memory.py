"""Memory that each thread uses again for every block of rows: new pages for every block cost more than the arithmetic."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from confide.types import Array

_memory = threading.local()


def scratch(shape: tuple[int, ...], purpose: str = "rows", dtype: type[np.floating[Any]] = np.float64) -> Array:
    """Memory of this thread for one block of clipped rows, which live no longer than their block is being added."""
    have: Array | None = getattr(_memory, purpose, None)
    if have is None or have.size < shape[0] * shape[1]:
        have = np.empty(shape[0] * shape[1])
        setattr(_memory, purpose, have)
    return have.view(dtype)[: shape[0] * shape[1]].reshape(shape)
