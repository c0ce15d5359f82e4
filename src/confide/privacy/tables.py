"""Several tables of counts and the moments of several columns, in one release with exact noise. Proof: proofs/tables.md.

Every row lies in exactly one cell of each table, or spreads one unit over cells of it, and adds two numbers for each column
of moments: its value between -1 and 1, and the square of it. All are integers or multiples of one power of two, so sums are
exact in every order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide import expected_noise
from confide.array_types import Array
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours, budget_of_row
from confide.privacy.events import Event
from confide.privacy.lattice import LatticeLaplace, LatticeNoise, event_of, least_noise
from confide.privacy.mechanism import ANOTHERS, made_by
from confide.privacy.noise import Entropy

MOMENT_SCALE = 0.5
"""What multiplies moments beside counts. One half: the mean of a column then costs less than one of its tables, and at the
budgets of benchmarks/description.py its noise is a small part of a percent of the half range."""
_DIGITS = 20
"""Binary digits behind the point of the numbers that moments add up."""
_UP = 1.0 + 2.0**-40
_ROUNDED = 1.0 + 2.0**-16
"""What rounding to these digits may add to the distance of the moments of neighbours."""


@dataclass(frozen=True, slots=True)
class TablesPlan:
    """Everything decided before any row is read. Public.

    Attributes
    ----------
    sizes : tuple of int
        The number of cells of each table.
    n_moments : int
        The number of columns of which the sum and the sum of squares are released.
    budget : Budget
        What the release costs; charged before a row is read.
    neighbours : Neighbours
    lattice : LatticeNoise or None
        The noise on each count and on each scaled moment; None where there is no privacy.
    event : Event
        What a ledger counts.
    """

    sizes: tuple[int, ...]
    n_moments: int
    budget: Budget
    neighbours: Neighbours
    lattice: LatticeNoise | None
    event: Event

    deviation = property(expected_noise.deviation)

    @property
    def deviation_of_moments(self) -> float:
        """Standard deviation of the noise on a sum of values, or of squares, in units of half the range of the column."""
        return float(self.deviation / MOMENT_SCALE)

    @property
    def excess_kurtosis(self) -> float:
        """Excess kurtosis of the noise on one number: 3 for Laplace noise, 0 for Gaussian noise."""
        return 3.0 if isinstance(self.lattice, LatticeLaplace) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedTables:
    """What left.

    Attributes
    ----------
    counts : tuple of arrays, one for each table
    moments : array (n_moments, 2), the sums of values and of squares
    """

    counts: tuple[Array, ...]
    moments: Array


@dataclass(frozen=True, slots=True)
class NoisyTables:
    """Tables and moments with noise. Between its two verbs the caller charges the plan's event."""

    def plan(
        self, sizes: Sequence[int], n_moments: int, budget: Budget, neighbours: Neighbours, rows_per_person: int = 1
    ) -> TablesPlan:
        """The plan with the least noise among exact Laplace and exact Gaussian. No data is used."""
        if not sizes or min(sizes) < 1 or n_moments < 0 or rows_per_person < 1:
            raise ParameterError("a description needs a table, a cell in each table, and at least one row a person.")
        facts = (tuple(map(int, sizes)), int(n_moments), budget, neighbours)
        if not budget.is_private:
            return TablesPlan(*facts, None, Event(budget, None, rows_per_person, neighbours))
        size = sum(sizes) + 2 * n_moments
        of_row = budget_of_row(budget, rows_per_person)
        facts_of_rows = (len(sizes), n_moments, neighbours)
        lattice, curve = least_noise(size, l2_distance(*facts_of_rows), l1_distance(*facts_of_rows), of_row)
        return TablesPlan(*facts, lattice, event_of(budget, curve, rows_per_person, neighbours))

    def release(
        self, plan: TablesPlan, counts: Sequence[NDArray[np.int64] | Array], moments: NDArray[np.int64], entropy: Entropy
    ) -> ReleasedTables:
        """Release sums over all rows. The event was charged before this call.

        Parameters
        ----------
        plan : made by `plan`
        counts : for each table the sum over all rows of `counted`, or of `spread` in rows (`rows_of`)
        moments : (n_moments, 2), for each column the sum of `moments_of` over all rows
        entropy : where random bits come from
        """
        fits = made_by(plan, TablesPlan) and moments.shape == (plan.n_moments, 2)
        if not fits or tuple(each.shape for each in counts) != tuple((size,) for size in plan.sizes):
            raise ParameterError(ANOTHERS)
        scaled = MOMENT_SCALE * np.ldexp(moments.astype(np.float64), -_DIGITS).ravel()
        sums = np.concatenate([*(each.astype(np.float64) for each in counts), scaled])
        if plan.lattice is not None:
            sums = plan.lattice.release(sums[None], entropy)[0]
        ends = np.cumsum(plan.sizes)
        tables = np.split(sums[: ends[-1]], ends[:-1])
        return ReleasedTables(tuple(tables), (sums[ends[-1] :] / MOMENT_SCALE).reshape(plan.n_moments, 2))


def l1_distance(n_tables: int, n_moments: int, neighbours: Neighbours) -> float:
    """The largest L1 distance of the scaled sums of neighbours."""
    # Theorem 1: a replaced row leaves one cell and enters another; (x - y) + (x^2 - y^2) is at most 9/4.
    of_table, of_moments = (2.0, 2.25) if neighbours is Neighbours.REPLACE_ONE else (1.0, 2.0)
    return (n_tables * of_table + n_moments * MOMENT_SCALE * of_moments * _ROUNDED) * _UP


def l2_distance(n_tables: int, n_moments: int, neighbours: Neighbours) -> float:
    """The largest L2 distance of the scaled sums of neighbours."""
    # Theorem 1: (x - y)^2 + (x^2 - y^2)^2 is at most 4, and x^2 + x^4 at most 2.
    of_table, of_moments = (2.0, 4.0) if neighbours is Neighbours.REPLACE_ONE else (1.0, 2.0)
    return math.sqrt(n_tables * of_table + n_moments * MOMENT_SCALE**2 * of_moments * _ROUNDED**2) * _UP


def counted(cells: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """Rows (n,) by cell, (size,). A cell that does not exist counts as the nearest one, so each row counts exactly once."""
    return np.bincount(np.clip(cells, 0, size - 1), minlength=size).astype(np.int64)


def spread(blocks: NDArray[np.integer], shares: Array, n_blocks: int) -> NDArray[np.int64]:
    """One unit of each row (n,), spread over the k cells of its block: sums (n_blocks * k,) in units of 2^-20.

    The shares of a row are rounded so that none is negative and all add up to one unit, whatever they are. A block that does
    not exist counts as the nearest one.

    Parameters
    ----------
    blocks : (n,) the block of cells of each row
    shares : (n, k) how much of the unit of each row falls into each cell of its block
    n_blocks : number of blocks of the table
    """
    upto = np.cumsum(np.where(shares > 0.0, shares, 0.0), axis=1)[:, :-1]
    # What lies below each cell, as a rising number of units. The last cell takes what is left of the unit.
    below = np.maximum.accumulate(np.rint(np.ldexp(np.minimum(upto, 1.0), _DIGITS)).astype(np.int64), axis=1)
    ends = [np.zeros((len(below), 1), dtype=np.int64), below, np.full((len(below), 1), 2**_DIGITS)]
    units = np.diff(np.concatenate(ends, axis=1), axis=1)
    sums = np.zeros((n_blocks, shares.shape[1]), dtype=np.int64)
    np.add.at(sums, np.clip(blocks, 0, n_blocks - 1), units)
    return sums.ravel()


def rows_of(units: NDArray[np.int64]) -> Array:
    """Sums of `spread` over all rows, in rows."""
    return np.ldexp(units.astype(np.float64), -_DIGITS)


def moments_of(values: Array) -> NDArray[np.int64]:
    """(2,): the sums of values (n,) and of their squares, in units of 2^-20. NaN is a missing value, and adds nothing.

    Each value is clipped to [-1, 1] and rounded by itself, so the sums do not depend on the order of the rows.
    """
    present = np.clip(np.where(np.isnan(values), 0.0, values), -1.0, 1.0)
    pairs = np.stack([present, present * present])
    return np.asarray(np.rint(np.ldexp(pairs, _DIGITS)).astype(np.int64).sum(axis=1))
