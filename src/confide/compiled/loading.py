"""The compiled module, if it was built and is not switched off.

It is built from `kernel.c` when confide is installed where there is a C compiler. Without it everything works, with NumPy
alone. The environment variable CONFIDE_COMPILED=0 switches it off, and CONFIDE_COMPILED=plain makes it use instructions that
every processor has. Solvers take their first steps with it, and random features are made with it. Two kinds of its sums are
trusted, and proved: gradients that certificates look at, over arrays and codes, and gradients that are released with noise
(both in `confide.compiled.sums`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Protocol, cast

MOST_BENT = 64
"""The kernel makes sums of products of at most so many columns, the constant of the intercept included."""
MOST_CODED_BENT, MOST_LINES = 512, 64
"""The same of rows that are codes: encoded columns, and columns that are lines, each with the constant."""


class Kernel(Protocol):
    """The functions of the compiled module. Each adds sums over rows to `out` (d + 1,) and leaves rows as they are.

    The sums are that of slope times row (d,), and that of the slopes. The loss is given as in `LossCode`. Arguments are
    given by their position, in the order that stands with each function.
    """

    dense_sums: Callable[..., None]
    """(rows, radius, labels, counts, largest, weights, offset, loss, a, low, high, out, products, plain)

    Rows (n, d), float64 or float32 in any order of memory; each is shortened to the radius, if it is longer. `products` is
    None, or an array of D^2 zeros for at most `MOST_BENT` columns: the sum of second derivative times x x^T is added to its
    upper triangle, with D = d, or d + 1 where rows have the constant 1.
    """
    clipped_sums: Callable[..., bool]
    """(rows, radius, farthest, rows_in_block, labels, counts, largest, weights, offset, loss, a, low, high, out, centring,
    plain)

    The same rows, summed up block by block, with chains of additions no longer than those of NumPy. `centring` is None, or
    centre, radius and magnification for rows in one piece, which are moved, shortened again and magnified. False where the
    squared length of a row is beyond `farthest`, or is no number. Then `out` is of no use.
    """
    scaled_sums: Callable[..., None]
    """(rows, scales, shifts, limits, labels, counts, largest, weights, offset, at_centre, loss, a, low, high, out, moved,
    plain)

    Rows (n, d), each in one piece and multiplied by its scale, with slopes clipped to their limits, unless these are None.
    Where there are shifts, each score is less by shift times `at_centre`, and the sum of slope times shift is added to
    `moved` (1,). Rows of float32 are multiplied in single precision, for solvers alone.
    """
    coded_sums: Callable[..., bool]
    """(columns, n_rows, rows_in_block, labels, counts, largest, weights, offset, loss, a, low, high, out, products, plain)

    Rows that are codes of columns, as `StoredCodes` describes them, summed up block by block. False where a row lacks a
    level in a linked category. Then the sums are not those of rows within their bounds. `products` is as in `dense_sums`,
    for at most `MOST_CODED_BENT` columns, of which at most `MOST_LINES` are lines.
    """

    angles: Callable[..., None]
    """(rows, inputs, out, plain)

    Writes the product of rows (n, d) with inputs (d, m) to `out` (n, m), all float64. Entries that are 0 are left out.
    """
    turned: Callable[..., None]
    """(angles, scale, out, plain)

    Writes the cosines of angles (n, d), times a scale, to `out` (n, 2 d), float64 or float32, and their sines beside them.
    """

    def processor(self) -> str:
        """Which instructions are used: "AVX2", or "plain" for those that every processor of this kind has."""


def kernel() -> Kernel | None:
    """The compiled module; None where it was not built or is switched off."""
    return None if os.environ.get("CONFIDE_COMPILED") == "0" else _built()


def is_plain() -> bool:
    """Whether the kernel is asked to use no instructions that only some processors have."""
    return os.environ.get("CONFIDE_COMPILED") == "plain"


@cache
def _built() -> Kernel | None:
    with suppress(ImportError):
        return cast(Kernel, import_module("confide.compiled._kernel"))
    return None
