"""Where rows live. A source knows blocks and order, and nothing of the formula that is summed over them."""

from __future__ import annotations

from typing import Protocol

from confide.erm.row_sums import SumOverRows, Totals
from confide.types import Weights


class RowSource(Protocol):
    """Rows with their labels, wherever they live. Owes one sentence: every row is counted exactly once.

    One with more verbs for solvers owes another: `sample` gives copies. What else it has no solver sees (`data/lent.py`).
    """

    @property
    def n_features(self) -> int:
        """Number of columns of a row, before the intercept."""

    @property
    def n_rows(self) -> int:
        """Number of rows: public under replace-one, private under add-or-remove-one."""

    def sum_over_rows(self, row_sum: SumOverRows, weights: Weights) -> Totals:
        """The completed totals of `row_sum` at (k, D) weights: one pass over the rows."""
