"""Scores of rows by a released linear model.

If a private number is computed from scores, each score must depend only on its own row, to the bit: `scores_alone`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from confide.array_types import Array, Weights
from confide.data.arrays import Blocks, EncodedBlocks
from confide.erm.coded_rows import dense
from confide.erm.row_bounds import BallBound, Centred, RowBound
from confide.erm.row_sums import product
from confide.privacy.mechanism import ProblemFacts

_MODERATE = 2.0**1000
"""Rows with larger squared norms may overflow and are clipped one by one; the others are clipped together."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Released weights in the form in which they score rows.

    Attributes
    ----------
    coef : array (o, d), o the number of scores for each row
    intercept : array (o,)
    row_bound : the bound to which rows are clipped, as in the fit
    """

    coef: Array
    intercept: Array
    row_bound: RowBound

    @classmethod
    def of(cls, released: Weights, facts: ProblemFacts) -> Self:
        """Coefficients of the columns and intercepts, from released weights (o, D) and public facts.

        Weights for centred rows become those for the rows as they were: f (x - m) . w = x . (f w) - m . (f w).
        """
        bound, coef = facts.row_bound, released[:, : facts.n_features].copy()
        intercept = facts.intercept * released[:, -1] if facts.intercept > 0.0 else np.zeros(len(released))
        if isinstance(bound, Centred):
            coef *= bound.magnification
            return cls(coef, intercept - coef @ np.array(bound.centre), bound.inner)
        return cls(coef, intercept, bound)

    def scores(self, blocks: Blocks) -> Array:
        """Scores of encoded and mapped rows: (n,), or (n, o) for several scores. Their rounding depends on the block."""
        scores = np.empty((blocks.n_rows, len(self.coef)))
        for start in range(0, blocks.n_rows, blocks.rows_in_block):
            stop = min(start + blocks.rows_in_block, blocks.n_rows)
            scores[start:stop] = product(self.row_bound.clip(blocks.block(start, stop)), self.coef.T)
        scores += self.intercept
        return scores[:, 0] if len(self.coef) == 1 else scores

    def scores_alone(self, blocks: Blocks) -> Array:
        """The same scores, but each depends only on its own row, to the bit, whatever the other rows are and their order.

        A product of matrices may add up different rows of a block in different orders, and so may a norm. Here columns are
        added one after the other, in operations that round each entry by itself. Proof: proofs/counts.md, section 3.
        """
        scores = np.empty((len(self.coef), blocks.n_rows))
        for start in range(0, blocks.n_rows, blocks.rows_in_block):
            stop = min(start + blocks.rows_in_block, blocks.n_rows)
            block = dense(blocks.block(start, stop))
            if issparse(block):
                # SciPy adds up each sparse row by itself, and so does the bound on rows.
                scores[:, start:stop] = (self.row_bound.clip(block) @ self.coef.T).T
                continue
            columns = np.ascontiguousarray(block.T, dtype=np.float64)
            # Encoded rows satisfy the bound of their encoder, so they need no clipping.
            if not (isinstance(blocks, EncodedBlocks) and blocks.encoder.row_bound == self.row_bound):
                columns = _clipped_alone(self.row_bound, columns)
            scores[:, start:stop] = _added_up(columns, self.coef)
        scores += self.intercept[:, None]
        return scores[0] if len(self.coef) == 1 else scores.T


def _added_up(columns: Array, coef: Array) -> Array:
    """(o, m): scores of m rows, given by their columns (d, m)."""
    scores, products = np.zeros((2, len(coef), columns.shape[1]))
    for column, weights in zip(columns, coef.T, strict=True):
        # Multiply and add in two steps. A fused operation rounds differently, and might be used for some entries only.
        np.multiply(weights[:, None], column, out=products)
        scores += products
    return scores


def _clipped_alone(row_bound: RowBound, columns: Array) -> Array:
    """Clip rows that are given by their columns (d, m), each one as if it were alone."""
    if not isinstance(row_bound, BallBound):
        rows = [row_bound.clip(np.array(row[None], order="C"))[0] for row in columns.T]
        return np.ascontiguousarray(np.array(rows).reshape(columns.T.shape).T)
    # Rows within this radius are not changed by BallBound, in whatever order their norm is summed up.
    radius = row_bound.norm * (1.0 - max(2.0**-40, (len(columns) + 8) * 2.0**-52))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = np.zeros(columns.shape[1])
        for column in columns:
            squares += column * column
        # The comparison is written so that a norm that overflows counts as outside.
        outside = ~(squares <= radius * radius)
        if not outside.any():
            return columns
        huge = ~(squares <= _MODERATE)
        factors = np.where(outside & ~huge, radius / np.sqrt(np.where(outside & ~huge, squares, 1.0)), 1.0)
        clipped: Array = columns * factors
    for position in np.flatnonzero(huge):
        clipped[:, position] = row_bound.clip(np.array(columns[:, position][None], order="C"))[0]
    return clipped


def favoured(scores: Array) -> Any:
    """The position of the class that the scores of each row favour, (n,)."""
    return (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
