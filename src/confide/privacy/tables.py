"""Counts of rows by cell, several tables of counts with moments of columns, and counts of levels that nobody can list.

Every row lies in exactly one cell of each table, or spreads one unit over cells of it, and adds two numbers for each column
of moments: its value between -1 and 1, and the square of it; and for each pair of some columns the product of their values.
All are integers or multiples of one power of two, so sums are exact in every order of the rows. Proofs: proofs/counts.md,
proofs/tables.md and proofs/levels.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array
from confide.errors import ParameterError, wording
from confide.features.atoms import atoms_of
from confide.features.columns import NumberColumn
from confide.plan_text import document_of_sum
from confide.privacy.budgets import Budget, Neighbours, budget_of_row
from confide.privacy.events import Event
from confide.privacy.lattice import LatticeLaplace, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Plan
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import Before, SumPlan, SumQuery, planned_beside

MOMENT_SCALE = 0.5
"""What multiplies moments beside counts. One half: the mean of a column then costs less than one of its tables, and at the
budgets of benchmarks/description.py its noise is a small part of a percent of the half range."""
_DIGITS = 20
"""Binary digits behind the point of the numbers that moments add up."""
_UP = 1.0 + 2.0**-40
_ROUNDED = 1.0 + 2.0**-16
"""What rounding to these digits may add to the distance of the moments of neighbours."""


@dataclass(frozen=True, slots=True)
class Counts(SumQuery):
    """Rows by cell; every row lies in exactly one of `n_cells` cells."""

    n_cells: int
    neighbours: Neighbours
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        if self.n_cells < 1 or self.rows_per_person < 1:
            raise ParameterError("counts need at least one cell, and at least one row a person.")

    @property
    def protected(self) -> Counts:
        return self

    @property
    def size(self) -> int:
        return self.n_cells

    @property
    def distances(self) -> tuple[float, float]:
        """Theorem 1 of proofs/counts.md: a replaced row leaves one cell and enters another."""
        changed = 2.0 if self.neighbours is Neighbours.REPLACE_ONE else 1.0
        return math.sqrt(changed) * _UP, changed

    def check(self, rows: NDArray[np.int64]) -> None:
        if rows.shape != (self.n_cells,):
            raise ParameterError(ANOTHERS)

    def summed(self, rows: NDArray[np.int64]) -> Array:
        """Sums of `counted` over all rows (n_cells,), as numbers."""
        return rows.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedTables:
    """What left.

    Attributes
    ----------
    counts : tuple of arrays, one for each table
    moments : array (n_moments, 2), the sums of values and of squares
    products : array (n_products,), the sums of products of pairs of columns, in the order of an upper triangle
    """

    counts: tuple[Array, ...]
    moments: Array
    products: Array


@dataclass(frozen=True, slots=True)
class Tables(SumQuery):
    """Several tables of counts, of several columns the sum and the sum of squares, and of pairs of them that of products.

    Attributes
    ----------
    sizes : tuple of int, the number of cells of each table
    n_moments : int, the number of columns with moments
    neighbours, rows_per_person : whom the release protects
    n_crossed : int, the number of columns of which each pair has a product; 0 for none
    """

    sizes: tuple[int, ...]
    n_moments: int
    neighbours: Neighbours
    rows_per_person: int = 1
    n_crossed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(map(int, self.sizes)))
        if not self.sizes or min(*self.sizes, self.rows_per_person) < 1 or min(self.n_moments, self.n_crossed) < 0:
            raise ParameterError("a description needs a table, a cell in each table, and at least one row a person.")

    @property
    def n_products(self) -> int:
        """The number of pairs of columns whose products are summed."""
        return self.n_crossed * (self.n_crossed - 1) // 2

    @property
    def protected(self) -> Tables:
        return self

    @property
    def size(self) -> int:
        return sum(self.sizes) + 2 * self.n_moments + self.n_products

    @property
    def distances(self) -> tuple[float, float]:
        """Theorem 1 of proofs/tables.md."""
        facts = (len(self.sizes), self.n_moments, self.neighbours, self.n_crossed)
        return l2_distance(*facts), l1_distance(*facts)

    def check(self, rows: tuple[Sequence[Array], NDArray[np.int64]]) -> None:
        counts, moments = rows
        sizes = tuple(table.shape for table in counts)
        if moments.shape != (2 * self.n_moments + self.n_products,) or sizes != tuple(zip(self.sizes)):
            raise ParameterError(ANOTHERS)

    def summed(self, rows: tuple[Sequence[Array], NDArray[np.int64]]) -> Array:
        """Of each table the sum over all rows of `counted`, or of `spread` in rows (`rows_of`), then scaled moments.

        The moments (2 * n_moments + n_products,) are the sum over all rows of `moments_of`, for each column, and then of
        `products_of`.
        """
        counts, moments = rows
        scaled = MOMENT_SCALE * np.ldexp(moments.astype(np.float64), -_DIGITS)
        return np.concatenate([*(table.astype(np.float64) for table in counts), scaled])

    def decoded(self, plan: SumPlan[Tables], sums: Array) -> ReleasedTables:
        ends = np.cumsum((*self.sizes, 2 * self.n_moments))
        *tables, moments, products = np.split(sums, ends)
        return ReleasedTables(tuple(tables), moments.reshape(-1, 2) / MOMENT_SCALE, products / MOMENT_SCALE)


def deviation_of_moments(plan: SumPlan[Tables]) -> float:
    """Standard deviation of the noise on a sum of values, squares or products, in units of half the range of a column."""
    return float(plan.deviation / MOMENT_SCALE)


def l1_distance(n_tables: int, n_moments: int, neighbours: Neighbours, n_crossed: int = 0) -> float:
    """The largest L1 distance of the scaled sums of neighbours."""
    # Theorem 1: a replaced row leaves one cell and enters another; (x - y) + (x^2 - y^2) is at most 9/4.
    of_table, of_moments = (2.0, 2.25) if neighbours is Neighbours.REPLACE_ONE else (1.0, 2.0)
    changed, most = _changed_products(n_crossed, neighbours)
    return (n_tables * of_table + MOMENT_SCALE * (n_moments * of_moments + changed * most) * _ROUNDED) * _UP


def l2_distance(n_tables: int, n_moments: int, neighbours: Neighbours, n_crossed: int = 0) -> float:
    """The largest L2 distance of the scaled sums of neighbours."""
    # Theorem 1: (x - y)^2 + (x^2 - y^2)^2 is at most 4, and x^2 + x^4 at most 2.
    of_table, of_moments = (2.0, 4.0) if neighbours is Neighbours.REPLACE_ONE else (1.0, 2.0)
    changed, most = _changed_products(n_crossed, neighbours)
    scaled = MOMENT_SCALE**2 * (n_moments * of_moments + changed * most**2) * _ROUNDED**2
    return math.sqrt(n_tables * of_table + scaled) * _UP


def _changed_products(n_crossed: int, neighbours: Neighbours) -> tuple[int, float]:
    """How many products of pairs one row changes at most, and by how much each of them, in the worst case. Theorem 1."""
    if neighbours is Neighbours.REPLACE_ONE:
        # The pairs of a column whose value changes sign and one whose value does not: half of the columns each.
        return n_crossed**2 // 4, 2.0
    return n_crossed * (n_crossed - 1) // 2, 1.0


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
    present = _present(values)
    return _in_units(np.stack([present, present * present]))


def products_of(values: Array) -> NDArray[np.int64]:
    """(k (k - 1) / 2,): the sums of products of all pairs of k columns (k, n), otherwise as `moments_of`."""
    present = _present(values)
    sums = [_in_units(first * present[place:]) for place, first in enumerate(present, 1)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *sums])


def _present(values: Array) -> Array:
    return np.clip(np.where(np.isnan(values), 0.0, values), -1.0, 1.0)


def _in_units(numbers: Array) -> NDArray[np.int64]:
    """Sums (m,) of numbers (m, n) between -1 and 1, each of which is rounded to units of 2^-20."""
    return np.asarray(np.rint(np.ldexp(numbers, _DIGITS)).astype(np.int64).sum(axis=1))


def common_total(tables: Sequence[Array]) -> float:
    """The number of rows, from tables in which each row lies in one cell; the fewer cells, the less noise in a total."""
    weights = np.array([1.0 / table.size for table in tables])
    return max(0.0, float(weights @ np.array([table.sum() for table in tables]) / weights.sum()))


# Atoms of columns, as a part of a plan of weights: numbers that many rows share.


@dataclass(frozen=True, slots=True)
class AtomsOfColumns(Tables):
    """The rows by cell of columns in which a fit looks for atoms. Proof: proofs/tables.md, theorem 3.

    Attributes
    ----------
    sizes, n_moments, neighbours, rows_per_person : as in `Tables`; there are no moments
    columns : the columns, one for each table
    slots : the largest number of atoms of a column
    n_rows : public bounds on the number of rows
    """

    columns: tuple[NumberColumn, ...] = ()
    slots: int = 0
    n_rows: tuple[int, int] = (1, 1)

    name = "atoms"
    pays_for = "finding numbers that many rows share"
    of_grid = "for the atoms of columns"
    line = "atoms", "finds numbers that many rows share, each of which has an effect of its own"

    def document(self, part: SumPlan[AtomsOfColumns]) -> dict[str, Any]:
        """A JSON form of a part of a plan."""
        facts = {"mu": part.mu, "columns": [column.name for column in self.columns], "most": self.slots}
        return document_of_sum(part) | facts

    def sentence(self, part: SumPlan[AtomsOfColumns]) -> str:
        """What is released, for the guarantee."""
        names = " and ".join(f'"{column.name}"' for column in self.columns)
        return wording("sentence of atoms", names=names, share=part.share)

    def check(self, rows: Any) -> None:
        if rows.n_rows > self.n_rows[1]:
            raise ParameterError(ANOTHERS)

    def summed(self, rows: Any) -> Array:
        """The counts of all tables, over all rows wherever they lie."""
        counts: NDArray[np.int64] = rows.sum_of_pieces(partial(counted_cells, self.sizes), self.size)
        return counts.astype(np.float64)

    def decoded(self, plan: Any, sums: Array) -> Any:
        """The atoms of each column, a tuple of numbers."""
        counts = np.split(sums, np.cumsum(self.sizes)[:-1])
        n_rows = min(max(common_total(counts), float(self.n_rows[0])), float(self.n_rows[1]))
        return atoms_of(self.columns, counts, plan.deviation, n_rows, plan.law, self.slots)

    def before(self, part: Any, plan: Plan, rows: Any, entropy: Entropy) -> Before:
        """Release the counts, and give the rows with the atoms that follow. The event of the plan was charged before."""
        facts, own = plan.problem, (self.neighbours, self.rows_per_person, self.n_rows)
        if own != (facts.neighbours, facts.rows_per_person, (facts.n_rows_low, facts.n_rows_high)):
            raise ParameterError(ANOTHERS)
        atoms = planned_beside(part, plan, self).release(rows, entropy)
        return plan, rows.with_atoms(atoms), atoms


def counted_cells(sizes: tuple[int, ...], piece: Any) -> NDArray[np.int64]:
    """The rows of a piece by cell, for each of the columns in which a fit looks for atoms."""
    return np.concatenate([counted(cells, size) for cells, size in zip(piece.cells, sizes, strict=True)])


# Levels of categories that nobody can list: those whose noisy number of rows reaches a threshold. Proof: proofs/levels.md.

_DOWN = 1.0 - 2.0**-40
MOST_UNLISTED = 500
"""The largest number of columns whose levels are found together. With more, counts would lie off the grid of the noise."""


@dataclass(frozen=True, slots=True)
class LevelsPlan:
    """Everything decided before any row is read. Public.

    Attributes
    ----------
    n_columns : int
        The number of columns of categories whose levels are found.
    lattice : LatticeLaplace
        The noise on the number of rows of each level.
    threshold : float
        In rows, a multiple of the grid step: a level whose noisy number is below it is not released.
    budget : Budget
        What all columns cost together.
    neighbours : Neighbours
    event : Event
        What a ledger counts.
    """

    n_columns: int
    lattice: LatticeLaplace
    threshold: float
    budget: Budget
    neighbours: Neighbours
    event: Event

    @classmethod
    def of(cls, n_columns: int, budget: Budget, neighbours: Neighbours, rows_per_person: int = 1) -> Self:
        """The plan with the lowest threshold. No data is used."""
        if not (budget.is_approximate and budget.is_private):
            raise ParameterError(wording("levels need a delta"))
        if not 1 <= n_columns <= MOST_UNLISTED:
            raise ParameterError(f"levels are found for 1 to {MOST_UNLISTED} columns together.")
        row = budget_of_row(budget, rows_per_person)
        # Theorem 1: of each column at most one level is of one row alone, and is released with a probability of `alone`.
        alone = row.slack / n_columns * _DOWN
        epsilon = (row.amount - 2.0 * row.slack) * _DOWN
        if not epsilon > 0.5 * row.amount:
            raise ParameterError("the delta of the budget is too large beside its epsilon; give a smaller delta.")
        changed = n_columns * (2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0)
        lattice = LatticeLaplace(1, lattice_exponent(changed / max(1.0, epsilon), 1), changed, epsilon)
        # Theorem 2: noise of m steps or more has probability exp(-m / s) / (1 + exp(-1 / s)), s the scale in steps.
        scale = lattice.scale / lattice.step
        steps = math.ceil(scale * (-math.log(alone) - math.log1p(math.exp(-1.0 / scale))) * _UP) + 1
        threshold = 1.0 + max(steps, 1) * lattice.step
        return cls(n_columns, lattice, threshold, budget, neighbours, Event(budget, None, rows_per_person, neighbours))

    def release(self, counts: Sequence[Mapping[str, int]], entropy: Entropy) -> tuple[dict[str, float], ...]:
        """For each column the levels that reach the threshold, by name, with noisy numbers of rows.

        The event was charged before this call.

        Parameters
        ----------
        counts : for each column the number of rows of each level that some row has
        entropy : where random bits come from
        """
        if type(self) is not LevelsPlan or len(counts) != self.n_columns:
            raise ParameterError(ANOTHERS)
        one = int(1 / Fraction(self.lattice.step))
        least, released = int(Fraction(self.threshold) * one), []
        for of_column in counts:
            # Sorted by name: the order of the rows decides nothing.
            held = sorted(level for level, rows in of_column.items() if rows > 0)
            draws = zip(held, self.lattice.integers(len(held), entropy), strict=True)
            noisy = (of_column[level] * one + int(z) for level, z in draws)
            released.append({level: number / one for level, number in zip(held, noisy, strict=True) if number >= least})
        return tuple(released)

    def found_from(self, level: float) -> float:
        """In rows: a level of at least so many is released with at least this probability, above a half."""
        # Theorem 3: noise below -t has a probability of at most exp(-t / scale) / 2.
        return self.threshold - self.lattice.scale * math.log(2.0 * (1.0 - level))
