"""Array aliases whose names say the shape: k problems, d features, m rows of one block; and what makes arrays of values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Names: TypeAlias = NDArray[np.object_]
"""(d,): names of columns, text in an array of Python objects, as scikit-learn has them."""
ClassLabels: TypeAlias = NDArray[Any]
"""(n_classes,): the labels of classes, sorted."""
Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
"""Positions: of rows, of classes, or of some of k problems."""
Weights: TypeAlias = NDArray[np.float64]
"""(k, d): one row of weights for each problem."""
Margins: TypeAlias = NDArray[np.float64]
"""(m, k): label times score, for each row of the block and each problem."""
SparseRows: TypeAlias = Any
"""(m, d): a SciPy CSR array of float64 or float32, never written to. SciPy ships no types."""
Rows: TypeAlias = NDArray[Any] | SparseRows
"""(m, d): one block of rows, float64 or float32, never written to. `SparseRows` stands for `CodedRows`, too.

A sum that a solver makes of its own is shown coded rows as well, wherever a source makes its blocks so. What needs an array
calls `dense` of erm/coded_rows.py."""
Labels: TypeAlias = NDArray[np.int8] | NDArray[np.intp]
"""(m,): -1 or +1 for two classes; the position of the class for three or more."""
Targets: TypeAlias = Labels | NDArray[np.float64]
"""(m,): labels, or the numbers that a regression predicts; counts that have an exposure are `COUNT_AND_EXPOSURE`."""
Factors: TypeAlias = Array | None
"""(m,): how much each row counts; None where all count once."""
COUNT_AND_EXPOSURE = np.dtype([("count", np.float64), ("exposure", np.float64)])
"""A count beside the time, the number of persons or the area that it was counted in."""


def as_array(values: Any, kind: Any = None) -> Any:
    """The values as an array of this kind. If they are none, an empty array with three axes, which the caller refuses."""
    with suppress(TypeError, ValueError, OverflowError):
        return np.asarray(values, dtype=kind)
    return np.empty((0, 0, 0), dtype=np.str_ if kind is None else kind)
