"""Memory lent to solvers, which are not trusted: the same numbers, in which nothing that a solver is given can write.

A read-only view is not enough: its `base` is an array that can be written to. No attribute of what is lent here leads to
such an array, and neither does a call of anything that attributes lead to. The owner of the memory is kept in the closure of
a function. Code that searches for it can find it there, and NumPy makes an array at any address that it is told. That a
solver does neither is an assumption (proofs/certificate.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from confide.erm.coded_rows import CodedLayout, CodedRows
from confide.types import Array, Rows


class _Borrowed:
    """The memory of an array, for NumPy to read. It says where the memory is, and gives the array to nobody."""

    __slots__ = ("_interface",)

    def __init__(self, array: Any) -> None:
        facts = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], True)}
        # The function keeps the array alive. It returns these facts about the array, and never the array itself.
        self._interface: Callable[[], dict[str, Any]] = lambda: facts.copy() if array is not None else {}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface()


def made_for_a_solver(block: Rows) -> Rows:
    """A block that nobody else keeps, in which a solver may write. Coded rows get a layout of their own."""
    return _coded(block.layout, block.columns, block.entries) if type(block) is CodedRows else block


def _coded(layout: CodedLayout, columns: NDArray[np.int32], entries: Array) -> CodedRows:
    """Coded rows with their own copy of the layout: that of the encoder says where the entries of all its blocks are."""
    # The constructors would check the same numbers a second time. The fields of a layout are numbers, tuples and bytes.
    coded, own = object.__new__(CodedRows), object.__new__(CodedLayout)
    for each in fields(CodedLayout):
        object.__setattr__(own, each.name, getattr(layout, each.name))
    for name, value in (("layout", own), ("columns", columns), ("entries", entries)):
        object.__setattr__(coded, name, value)
    return coded


def unwritable(array: Any) -> Any:
    """The same numbers in the same memory, as an array that refuses to be made writable.

    CSR rows, coded rows and None are accepted, too.
    """
    if array is None:
        return None
    if type(array) is CodedRows:
        return _coded(array.layout, unwritable(array.columns), unwritable(array.entries))
    if issparse(array):
        # The constructor would copy views of much larger arrays, so they are set as attributes.
        rows = csr_array(array.shape, dtype=array.dtype)
        rows.data, rows.indices, rows.indptr = map(unwritable, (array.data, array.indices, array.indptr))
        return rows
    return np.asarray(_Borrowed(array))
