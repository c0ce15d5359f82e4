"""Atoms of columns for those who have no codebook: numbers that many rows share, found by private counts of the rows.

The ledger is charged once, before a row is used. The outcome is a schema that says what its atoms cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from confide.accounting.ledger import Batch, Ledger
from confide.array_types import Array
from confide.blocks import NAMES_RELEASE, Block, Shown, heading, table, text, void_first
from confide.data.file_rows import ReadColumns, checked_columns
from confide.errors import ParameterError, is_list
from confide.expected_noise import sentence_of_waste
from confide.features.atoms import ENOUGH, MOST_CELLS, atoms_of, cells_of, has_cells, n_cells
from confide.features.checks import AtomsRelease
from confide.features.columns import NumberColumn
from confide.features.schema import Schema, schema_with
from confide.features.toml_form import toml_below
from confide.intake.parameters import schema_at
from confide.known_words import listed_unknown, suggest_keywords_of
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import ReleasedTables, Tables, common_total, counted
from confide.training.charge import OwnRelease, keeps_released


@suggest_keywords_of
@dataclass(frozen=True, slots=True, eq=False)
class PrivateAtoms(Shown):
    """Atoms of columns that were found by a release. Public: made of released numbers and public facts.

    Attributes
    ----------
    looked_at : tuple of NumberColumn
        The columns that were looked at, without atoms.
    atoms : tuple of tuples of float
        For each column the numbers that were found.
    counts : tuple of tuples of float
        For each column the noisy number of rows at each of its atoms.
    plan : SumPlan of Tables
        How the rows were counted, with which noise, and what it cost.
    release : AtomsRelease
        What a schema says of the release.
    around : Schema
        The schema that was given.
    interrupted : tuple of str
        What is assumed of interrupted attempts under the same charge; empty if there were none.
    """

    looked_at: tuple[NumberColumn, ...]
    atoms: tuple[tuple[float, ...], ...]
    counts: tuple[tuple[float, ...], ...]
    plan: SumPlan[Tables]
    release: AtomsRelease
    around: Schema
    interrupted: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[NumberColumn, ...]:
        """The columns with their atoms. Those with some say what the release cost."""
        # A schema without atoms keeps no trace of the search: nothing in it came from rows.
        return tuple(
            replace(column, atoms=own, released_atoms=self.release) if own else column
            for column, own in zip(self.looked_at, self.atoms, strict=True)
        )

    @property
    def schema(self) -> Schema:
        """The schema that was given, with the atoms in it."""
        return schema_with(self.columns, self.around)

    @property
    def void(self) -> str | None:
        """Why there is no guarantee; None if there is one."""
        return self.release.void

    def to_toml(self) -> str:
        """The schema as the text of a TOML file, below a comment that says which atoms were found and at which price."""
        lines = [
            f"The atoms of these columns were looked for in rows: {', '.join(self.release.columns)}.",
            f"Together they cost {self.release.price}.",
            "Keep the key `released_atoms`: statements of models then name this release."
            if any(self.atoms)
            else "None was found, so nothing of this release is in the schema.",
            *self.interrupted,
        ]
        return toml_below(void_first(self.void, *lines), self.schema.to_dict())

    def blocks(self) -> Iterator[Block]:
        """The atoms with their noisy numbers of rows, and what they cost."""
        rows = [
            (column.name, column.shown(atom), f"{count:,.0f}")
            for column, counts in zip(self.columns, self.counts, strict=True)
            for atom, count in zip(column.atoms, counts, strict=True)
        ]
        none = "No number stands out of the noise. A larger budget or fewer columns help."
        yield heading("Released atoms")
        yield table(("column", "atom", "rows, about"), rows) if rows else text(none)
        yield text(
            f"The standard deviation of the noise on a number of rows is {self.plan.deviation:,.1f}.",
            *void_first(self.void, f"All together: {self.plan.budget} ({self.plan.neighbours}).", *self.interrupted),
            *[NAMES_RELEASE] * bool(rows),
        )


@keeps_released
def private_atoms(
    rows: Any,
    schema: Schema,
    columns: Iterable[str] | None = None,
    *,
    budget: float | Budget | None = None,
    ledger: Ledger | Batch | None = None,
    neighbours: str | Neighbours = "replace-one",
    max_rows_per_person: int = 1,
    random_state: int | None = None,
) -> PrivateAtoms:
    """Find numbers that many rows share, to be the atoms of a schema where nothing public names them.

    Amounts, codes and durations have such numbers: legal limits, whole thousands, 999. All rows are counted by their exact
    number, with noise, and a number is an atom if far more rows have it than have the numbers around it.

    Parameters
    ----------
    rows : frame, path, pattern or list of paths
        pandas or Polars frame, or Arrow table; or CSV, Parquet, Arrow or Feather files, which are read piece by piece.
    schema : Schema
        The public description of the columns, into which the atoms are written. Its column of persons is used; its weights
        are not: every row counts once.
    columns : names, or None
        Columns of numbers without atoms, each between bounds with whole numbers between them, about a million in all. None
        takes those with a logarithmic scale: on columns such as ages, atoms cost more than they tell.
    budget : float, PureDP, ApproxDP or ZCDP
        What the counts of all columns cost together; it must be given. A number is an epsilon. A delta, or a rho, buys more
        where there are several columns. About a tenth of what a fit costs is enough for most tables.
    ledger : Ledger, batch of one, or None
        Charged once, before a row is used.
    neighbours : {"replace-one", "add-or-remove-one"}, default "replace-one"
        Which data sets the guarantee calls neighbours. With "add-or-remove-one" the number of rows is private.
    max_rows_per_person : int, default 1
        A public cap on the rows of one person. If the schema names a column of persons, that many rows of each are kept,
        drawn at random. Otherwise the cap is an assumption.
    random_state : int or None
        For tests only: a seed makes the noise reproducible and the guarantee void.

    Returns
    -------
    PrivateAtoms
        The atoms, and a schema with them.

    Raises
    ------
    ParameterError, SchemaError
        If the arguments cannot be used. Nothing was charged.
    InputError, FileError
        If the columns do not hold numbers as described. Nothing was charged.
    BudgetExceeded
        If the ledger has too little left. Nothing was charged, and no row was used.

    Notes
    -----
    Numbers outside of the bounds count as the nearer bound. Missing cells and numbers that are not whole are no atoms.

    Guarantee: the released counts are differentially private at the budget for the stated neighbour relation, and the atoms
    are made of them alone. What is fitted with them costs its own budget as well. Proof: confide/privacy/proofs/tables.md.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> found = confide.private_atoms(adult.X_train, adult.schema, budget=confide.ApproxDP(1.0, 1e-6))
    >>> 15024 in found.schema.columns_by_name["capital-gain"].atoms
    True
    """
    if budget is None:
        raise ParameterError("give the budget: what it may cost to look for atoms, such as budget=0.2. Nothing was charged.")
    schema = schema_at(schema)
    asked = OwnRelease.of("private atoms", budget, neighbours, max_rows_per_person, ledger, random_state)
    chosen = _chosen_columns(schema, columns)
    sizes = tuple(map(n_cells, chosen))
    # Tails decide which cells stand out of the noise, and those of Laplace noise are long.
    laws = ("laplace",) if asked.budget.is_pure else ("gaussian",)
    plan = SumPlan.of(Tables(sizes, 0, asked.neighbours, asked.most_rows), asked.budget, laws)
    names = tuple(column.name for column in chosen)
    release = AtomsRelease(columns=names, **asked.stated("the atoms may reveal any row"))
    read, n_given = checked_columns(rows, Schema(chosen, person=schema.person, table=schema.table), asked.persons)
    n_rows = asked.public_number(n_given, schema)
    enough = math.inf if n_rows is None else ENOUGH * max(n_rows, 1)
    waste = sentence_of_waste(3.0 * plan.deviation / enough, "it hides numbers that fewer than 6 in 1,000 rows share")
    whom = (plan.budget, asked.neighbours, asked.most_rows, schema.person, n_rows)
    asked = asked.decided_by(plan.event, chosen, sizes, *whom)
    release, interrupted = replace(release, attempts=asked.charge.attempt), asked.interrupted
    counts = asked.charged(partial(_counts, plan, chosen, read), plan.event, [plan.lattice], waste)
    return _found(plan, chosen, counts, n_rows, release, schema, interrupted)


def _found(
    plan: SumPlan[Tables],
    columns: tuple[NumberColumn, ...],
    counts: tuple[Array, ...],
    n_rows: int | None,
    release: AtomsRelease,
    schema: Schema,
    interrupted: tuple[str, ...],
) -> PrivateAtoms:
    """What follows from the released counts and from public facts alone."""
    total = common_total(counts) if n_rows is None else float(n_rows)
    atoms = atoms_of(columns, counts, plan.deviation, total, plan.law)
    at_atoms = [
        tuple(table[cells_of(column, np.array(own))].tolist())
        for column, own, table in zip(columns, atoms, counts, strict=True)
    ]
    return PrivateAtoms(columns, atoms, tuple(at_atoms), plan, release, schema, interrupted)


def _chosen_columns(schema: Any, names: Any) -> tuple[NumberColumn, ...]:
    """The columns in which atoms are looked for."""
    if not isinstance(schema, Schema):
        raise ParameterError("schema must be a Schema: the public description of the columns.")
    numbers = {column.name: column for column in schema.columns if column.is_number and not column.ordered}
    if names is None:
        chosen = [column for column in numbers.values() if column.is_log and has_cells(column) and not column.atoms]
        if not chosen:
            raise ParameterError(
                "the schema has no column with a logarithmic scale and whole numbers between its bounds, which are the "
                "columns with atoms worth finding. Name columns to look for atoms in others. Nothing was charged."
            )
    else:
        given: list[Any] = list(names) if is_list(names) else [None]
        if not given or len(set(given)) < len(given) or not all(isinstance(name, str) for name in given):
            raise ParameterError("columns must list names of columns of numbers of the schema, each once.")
        if unknown := [name for name in given if name not in numbers]:
            raise ParameterError(f"columns must list columns of numbers; {listed_unknown(unknown[:1], numbers)} is none.")
        chosen = [numbers[name] for name in given]
        for column in chosen:
            if column.atoms:
                raise ParameterError(f'column "{column.name}" has atoms already; leave it out, or its atoms.')
            if not has_cells(column):
                raise ParameterError(
                    f'column "{column.name}": between {" and ".join(column.texts_of(column.bounds))} there must '
                    f"be whole numbers, at most {MOST_CELLS:,}, for each is counted. Leave it out, or change its bounds."
                )
    if (total := sum(map(n_cells, chosen))) > MOST_CELLS:
        raise ParameterError(f"the columns have {total:,} numbers to count, more than {MOST_CELLS:,}; name fewer columns.")
    return tuple(chosen)


def _counts(
    plan: SumPlan[Tables], columns: tuple[NumberColumn, ...], read: ReadColumns, entropy: Entropy
) -> tuple[Array, ...]:
    """Count the rows by cell, in whatever order they come; and release the counts."""
    counts = [np.zeros(size, dtype=np.int64) for size in plan.query.sizes]
    for piece in read():
        for totals, column, numbers in zip(counts, columns, piece, strict=True):
            cells: Any = cells_of(column, numbers)  # type: ignore[arg-type]  # all of these columns are numbers
            totals += counted(cells, totals.size)
    released: ReleasedTables = plan.release((counts, np.zeros((0, 2), dtype=np.int64)), entropy)
    return released.counts
