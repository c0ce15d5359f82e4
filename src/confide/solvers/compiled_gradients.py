"""Gradients by the compiled kernel, for the first steps; see `confide.compiled`.

The kernel is not trusted with these. It reads rows alone and gives numbers to a solver, whose last step is made by the exact
gradients of `RowSum`. A kernel that gives wrong numbers makes a solver slow, or has it begin again without the kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.compiled.gradient_sums import CompiledSum, code_of
from confide.compiled.loading import kernel
from confide.compiled.stored_rows import StoredArray, StoredRows
from confide.data.arrays import MemorySource, StoredBlocks
from confide.data.source import SummableRows
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.solvers.objectives import Evaluation, Objectives
from confide.types import Indices, Weights

_AT_THE_BOUND = 1.0 + 2.0**-40
"""`BallBound` shortens rows to a little less than its norm. Rows that were scaled to that norm are taken as they are here:
exact gradients correct the difference, and to shorten every row would cost as much again."""


@dataclass(frozen=True, slots=True)
class CompiledObjective:
    """One problem whose gradients the kernel makes.

    Parameters
    ----------
    exact : the problem itself
    source : the same rows, as they are stored
    row_sum : the sum that the kernel makes
    """

    exact: Objectives
    source: SummableRows
    row_sum: CompiledSum

    def restrict(self, which: Indices) -> CompiledObjective:
        return replace(self, exact=self.exact.restrict(which))

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        if order != 1 and not (order == 2 and self.has_hessians):
            raise ParameterError("the kernel makes gradients, and Hessians of some rows of few columns.")
        exact = self.exact
        totals = self.source.sum_over_rows(replace(self.row_sum, order=order), weights)
        if order >= 2:
            diagonal = np.arange(weights.shape[1])
            totals.hessian[:, diagonal, diagonal] += exact.ridges
        return Evaluation(totals.value, totals.gradient + (exact.ridges * weights + exact.linear), totals.hessian)

    @property
    def has_hessians(self) -> bool:
        """Whether the kernel makes Hessians of this problem."""
        return self._rows is not None and self._rows.has_products

    @property
    def is_of_array(self) -> bool:
        """Whether these are rows of an array."""
        return isinstance(self._rows, StoredArray)

    @property
    def _rows(self) -> StoredRows | None:
        source: Any = self.source
        return source.blocks.rows if isinstance(source, MemorySource) and isinstance(source.blocks, StoredBlocks) else None


def compiled_objective(objective: Objectives, unshortened: bool) -> CompiledObjective | None:
    """The problem with gradients by the kernel; None without a kernel, and where it cannot make them.

    Parameters
    ----------
    objective : the exact objective. The kernel needs one problem, a loss that it knows, and rows as they are stored.
    unshortened : whether the bound seems to shorten no row. The kernel shortens rows of an array to a ball, and knows no
        other bound.
    """
    module, code, bound = kernel(), code_of(objective.loss), objective.row_bound
    if module is None or code is None or len(objective.linear) != 1:
        return None
    # To look for rows beyond a ball costs little, and a single one among millions would make the minimiser another one.
    radius = bound.l2_norm * _AT_THE_BOUND if isinstance(bound, BallBound) else math.inf
    source = objective.source.as_stored(True) if radius < math.inf else None
    if source is None and unshortened:
        source, radius = objective.source.as_stored(False), math.inf
    if source is None:
        return None
    row_sum = CompiledSum(module, code, objective.intercept, objective.largest_weight, radius)
    return CompiledObjective(objective, source, row_sum)
