"""A description of private rows: counts, shares, means, quantiles and cross tables, in one release and one charge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from confide.accounting.ledger import Batch, Ledger
from confide.data.file_rows import ReadColumns, checked_columns
from confide.errors import ParameterError, checked_flag, is_list, wording
from confide.estimators.evaluation import levels_shown, refuse_many_cells
from confide.expected_noise import sentence_of_waste
from confide.features.columns import CategoryColumn, Column, NumberColumn
from confide.features.schema import Schema
from confide.inference.description import ColumnTable, Description, checked_quantiles
from confide.inference.intervals import checked_level
from confide.inference.rates import LEAST_SIGNAL
from confide.intake.parameters import schema_at
from confide.known_words import listed_unknown
from confide.parameters import checked
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import ReleasedTables, Tables, counted, moments_of, products_of
from confide.training.charge import OwnRelease, keeps_released

_ROWS_AT_ONCE = 2**16
N_BINS = 64
"""Bins of a column of numbers, even on its scale. Within a bin, 1.6% of the range, a quantile is interpolated. More bins add
noise to the number of rows below an edge (benchmarks/description.py)."""


@keeps_released
def describe(
    rows: Any,
    schema: Schema,
    *,
    budget: float | Budget,
    columns: Iterable[str] | None = None,
    cross_tables: Iterable[tuple[str, str]] = (),
    quantiles: Sequence[float] = (0.25, 0.5, 0.75),
    correlations: bool = False,
    level: float = 0.95,
    ledger: Ledger | Batch | None = None,
    neighbours: Literal["replace-one", "add-or-remove-one"] | Neighbours = "replace-one",
    max_rows_per_person: int = 1,
    random_state: int | None = None,
) -> Description:
    """Describe private rows: counts, means, standard deviations, quantiles, cross tables and correlations, with intervals.

    This is the table with which a paper opens. All of it is one release with exact noise, and one charge. Fewer columns and
    fewer cross tables have less noise at the same budget.

    Parameters
    ----------
    rows : frame, path, pattern or list of paths
        pandas or Polars frame, or Arrow table, with the target if it is described; or CSV, Parquet, Arrow or Feather files,
        which are read piece by piece.
    schema : Schema
        The public description of the columns. Its target is described like a column.
    budget : float, PureDP, ApproxDP or ZCDP
        What the description costs. A number is the epsilon of pure differential privacy. With more than a few columns a
        delta, or a rho, makes the noise much smaller.
    columns : names, or None
        The columns to describe, the target among them if it is wanted. None describes all columns and the target.
    cross_tables : pairs of names
        Pairs of columns of categories whose rows are counted by the levels of both.
    quantiles : numbers, default (0.25, 0.5, 0.75)
        Strictly between 0 and 1, in rising order; () for none. They cost nothing beside the histogram of a column.
    correlations : bool, default False
        Whether to release correlations and covariances of all pairs of described columns of numbers in which no cell may be
        missing. They make the noise of everything else larger.
    level : float, default 0.95
        Confidence level of each interval, strictly between 0 and 1.
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
    Description
        Rates with intervals; `to_frame()` and `to_dict()` give them as a table and as JSON.

    Raises
    ------
    ParameterError, SchemaError
        If the arguments cannot be used. Nothing was charged.
    InputError, FileError
        If the columns do not hold what the schema says. Nothing was charged.
    BudgetExceeded
        If the ledger has too little left. Nothing was charged, and no row was used.

    Notes
    -----
    Counts of one column add up to the number of rows, none is negative, and the margins of a cross table are the counts of
    its columns. Intervals are about these rows, not about a population. Means and quantiles are in the unit of the column,
    of numbers clipped to its bounds.

    Guarantee: the description is differentially private at the budget for the stated neighbour relation. Proof:
    confide/privacy/proofs/tables.md.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> columns = ["age", "sex"]
    >>> found = confide.describe(adult.X_train, adult.schema, budget=1.0, columns=columns)
    >>> age = next(number for number in found.numbers if number.name == "age")
    >>> 35 < age.mean.value < 42
    True
    """
    asked = OwnRelease.of("describe", budget, neighbours, max_rows_per_person, ledger, random_state)
    schema = schema_at(schema)
    described, cross = _layout(schema, columns, cross_tables)
    tables = tuple(map(_table_of, described))
    query = _query(tables, cross, correlations, asked.neighbours, asked.most_rows)
    lines = [NumberColumn(column.name, column.low, column.high) if column.is_number else None for column in described]
    shares, confidence = checked_quantiles(quantiles), checked_level(level)
    crossed = [query.n_crossed > 0 and table.may_correlate for table in tables]
    plan = SumPlan.of(query, asked.budget)
    void = asked.void("the counts may reveal any row")
    whom: dict[str, Any] = {"person": schema.person, "cohort": schema.cohort}
    read, n_given = checked_columns(rows, Schema(described, **whom, table=schema.table), asked.persons)
    n_rows = asked.public_number(n_given, schema)
    # The interval of a share then has all numbers from 0 to 1, and too few rows are known to divide a sum by.
    hidden = 0.0 if n_rows is None else LEAST_SIGNAL * plan.deviation / max(n_rows, 1)
    waste = sentence_of_waste(hidden, "it hides every share and every mean")
    facts = (plan.budget, asked.neighbours, asked.most_rows, *whom.values(), n_rows)
    asked = asked.decided_by(plan.event, described, cross, query.sizes, query.n_crossed, *facts, schema=schema)
    interrupted = asked.interrupted
    release = partial(_sums, plan, list(zip(tables, lines, crossed, strict=True)), cross, read)
    released = asked.charged(release, plan.event, [plan.lattice], waste)
    return Description(plan, released, tables, cross, shares, confidence, n_rows, void, interrupted)


def plan_of_description(
    schema: Schema,
    budget: Budget,
    *,
    columns: Iterable[str] | None = None,
    cross_tables: Iterable[tuple[str, str]] = (),
    correlations: bool = False,
    neighbours: str = "replace-one",
    max_rows_per_person: int = 1,
) -> SumPlan[Tables]:
    """The plan that `describe` makes of the same arguments, from public facts alone."""
    described, cross = _layout(schema_at(schema), columns, cross_tables)
    persons = checked("max_rows_per_person", max_rows_per_person)
    tables = tuple(map(_table_of, described))
    return SumPlan.of(_query(tables, cross, correlations, Neighbours.parse(neighbours), persons), budget)


def _layout(schema: Any, columns: Any, cross_tables: Any) -> tuple[tuple[Column, ...], tuple[tuple[int, int], ...]]:
    """The columns that are described, and pairs of their positions, whose cross tables come behind the tables of columns."""
    if not isinstance(schema, Schema):
        raise ParameterError("schema must be a Schema: the public description of the columns.")
    known: dict[str, Column] = {column.name: column for column in schema.columns}
    for column in schema.columns:
        if column.is_number and column.ordered:
            gaps = column.missing_codes or column.missing
            known[column.name] = CategoryColumn(column.name, column.ordered, missing=gaps, column=column.raw_name)
    target = schema.target
    if target is not None and target.bounds is not None:
        known[target.column] = NumberColumn(target.column, *target.bounds, unit=target.unit)
    elif target is not None:
        known[target.column] = CategoryColumn(target.column, target.labels)
    names: list[Any] = list(known) if columns is None else list(columns) if is_list(columns) else [None]
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("columns must list names of columns of the schema, or its target.")
    if unknown := [name for name in names if name not in known]:
        raise ParameterError(wording("columns to describe", unknown=listed_unknown(unknown[:1], known)))
    if not names or len(set(names)) < len(names):
        raise ParameterError("columns must name at least one column, and each once.")
    chosen = tuple(known[name] for name in names)
    if not is_list(cross_tables):
        raise ParameterError('cross_tables must list pairs of columns, such as [("sex", "education")].')
    cross = tuple(_pair(pair, chosen, names) for pair in cross_tables)
    if len({frozenset(pair) for pair in cross}) < len(cross):
        raise ParameterError("cross_tables must name each pair of columns once.")
    return chosen, cross


def _query(
    tables: tuple[ColumnTable, ...],
    cross: tuple[tuple[int, int], ...],
    correlations: bool,
    neighbours: Neighbours,
    persons: int,
) -> Tables:
    """The numbers of cells of all tables, how many columns are numbers, and how many of them are correlated."""
    n_crossed = sum(table.may_correlate for table in tables) if checked_flag("correlations", correlations) else 0
    if correlations and n_crossed < 2:
        raise ParameterError(wording("columns to correlate"))
    single = [table.n_cells for table in tables]
    sizes = (*single, *(single[first] * single[second] for first, second in cross))
    query = Tables(sizes, sum(bool(table.edges) for table in tables), neighbours, persons, n_crossed)
    refuse_many_cells((query.size,), "describe fewer columns or cross tables")
    return query


def _pair(pair: Any, chosen: tuple[Column, ...], names: list[str]) -> tuple[int, int]:
    positions = [names.index(name) for name in pair if name in names] if is_list(pair) else []
    if len(positions) != 2 or len(list(pair)) != 2 or positions[0] == positions[1]:
        raise ParameterError("each of cross_tables must name two different columns among those that are described.")
    for place in positions:
        if chosen[place].is_number:
            raise ParameterError(f'column "{chosen[place].name}" is a number; cross tables count rows by categories.')
    return positions[0], positions[1]


def _table_of(column: Column) -> ColumnTable:
    if column.is_number:
        even = NumberColumn(column.name, column.low, column.high, column.scale, knots=N_BINS - 1)
        unit = "days since 1970-01-01" if column.dates else column.unit
        return ColumnTable(column.name, (), even.knots_with_bounds, bool(column.missing), unit)
    return ColumnTable(column.name, levels_shown(column))


def _sums(
    plan: SumPlan[Tables],
    columns: list[tuple[ColumnTable, NumberColumn | None, bool]],
    cross: tuple[tuple[int, int], ...],
    read: ReadColumns,
    entropy: Entropy,
) -> ReleasedTables:
    """Add up what each row has in each table, as integers, in whatever order rows come; and release the sums."""
    counts = [np.zeros(size, dtype=np.int64) for size in plan.query.sizes]
    moments = np.zeros(2 * plan.query.n_moments + plan.query.n_products, dtype=np.int64)
    # Sums of integers are the same however rows are cut, and what is made of few rows at once needs little memory.
    parts = ((piece, range(0, len(piece[0]), _ROWS_AT_ONCE)) for piece in read())
    for piece, start in ((piece, start) for piece, starts in parts for start in starts):
        # Numbers are in units of half the range of their column, whatever its scale.
        cells, numbers, crossed = [], [], []
        for (table, line, is_crossed), whole in zip(columns, piece, strict=True):
            values = whole[start : start + _ROWS_AT_ONCE]
            cells.append(_cells(table, values))
            if line is not None:
                numbers.append(line.stretched(values.astype(np.float64)))
                crossed += [numbers[-1]] * is_crossed
        products = [products_of(np.array(crossed))] if crossed else []
        moments += np.concatenate([np.zeros(0, dtype=np.int64), *map(moments_of, numbers), *products])
        pairs = [cells[first] * plan.query.sizes[second] + cells[second] for first, second in cross]
        for totals, of_rows in zip(counts, (*cells, *pairs), strict=True):
            totals += counted(of_rows, totals.size)
    return plan.release((counts, moments), entropy)  # type: ignore[no-any-return]


def _cells(table: ColumnTable, values: Any) -> NDArray[np.int64]:
    """The cell of each row (n,) in the table of one column: a function of its own cell and of public facts."""
    if table.levels:
        # A category without a level has a negative one, and the last cell is there for it.
        return np.where(values < 0, len(table.levels) - 1, values).astype(np.int64)
    numbers = values.astype(np.float64)
    bins = len(table.edges) - 1
    positions = np.clip(np.searchsorted(np.array(table.edges), numbers, side="right") - 1, 0, bins - 1)
    return np.where(np.isnan(numbers), bins if table.has_missing else 0, positions).astype(np.int64)
