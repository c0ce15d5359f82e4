"""Bounds of columns for those who have no codebook: private quantiles of the rows, between public outer bounds.

The ledger is charged once, before a row is used. The outcome is a schema, or a part of one, that says what its bounds cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from confide.accounting.ledger import Batch, Ledger
from confide.data.file_rows import ReadColumns, checked_columns
from confide.errors import ParameterError, SchemaError, is_list, is_number
from confide.expected_noise import sentence_of_waste
from confide.features.checks import BoundsRelease
from confide.features.columns import Column, NumberColumn, candidates_of, columns_of, shown_number, weights_of
from confide.features.schema import Schema
from confide.features.toml_form import toml_text
from confide.known_words import suggest_keywords_of
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.noise import Entropy
from confide.privacy.selection import QuantilesPlan, places, rows_off
from confide.training.charge import OwnRelease, keeps_released


@suggest_keywords_of
@dataclass(frozen=True, slots=True)
class PrivateBounds:
    """Bounds of columns that were released from rows. Public: made of released numbers and public facts.

    Attributes
    ----------
    described : tuple of NumberColumn
        The columns as they were before, with their outer bounds.
    shares : tuple of float
        The quantiles that were asked for. 0 and 1 stand for the outer bounds.
    chosen : tuple of tuples of float
        For each column the released quantiles, without those of 0 and 1.
    plan : QuantilesPlan
        The candidates, and what the release cost.
    release : BoundsRelease
        What a schema says of the release, apart from the outer bounds.
    around : Schema or None
        The schema that was given.
    interrupted : tuple of str
        What is assumed of interrupted attempts under the same charge; empty if there were none.
    """

    described: tuple[NumberColumn, ...]
    shares: tuple[float, ...]
    chosen: tuple[tuple[float, ...], ...]
    plan: QuantilesPlan
    release: BoundsRelease
    around: Schema | None
    interrupted: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[NumberColumn, ...]:
        """The columns with their released bounds; each says what the release cost."""
        released = zip(self.described, self.plan.candidates, self._values, strict=True)
        return tuple(_with_bounds(column, grid, values, self.release) for column, grid, values in released)

    @property
    def quantiles(self) -> dict[str, dict[float, float]]:
        """For each column the released numbers, by the quantile asked for."""
        released = zip(self.described, self._values, strict=True)
        return {column.name: dict(zip(self.shares, values, strict=True)) for column, values in released}

    @property
    def schema(self) -> Schema:
        """The schema that was given, with the released bounds in it; or a schema of these columns alone."""
        return _schema_with(self.columns, self.around)

    @property
    def void(self) -> str | None:
        """Why there is no guarantee; None if there is one."""
        return self.release.void

    @property
    def _values(self) -> tuple[tuple[float, ...], ...]:
        """The quantiles of each column, with the outer bounds where the quantiles 0 and 1 were asked for."""
        released = zip(self.described, self.chosen, strict=True)
        return tuple(
            (*((column.low,) * (self.shares[0] == 0.0)), *values, *((column.high,) * (self.shares[-1] == 1.0)))
            for column, values in released
        )

    def rows_off(self, level: float = 0.95) -> float:
        """How many rows off the released quantiles are at most, with this probability: a public fact.

        A number is so many rows off if so many would have to change for the quantile to lie between it and the next
        candidate. What lies between two neighbouring candidates is not counted here.
        """
        return rows_off(self.plan, level)

    @property
    def rows_needed(self) -> int:
        """In smaller tables a bound may well fall beyond all rows, where nothing holds it: a public fact.

        So many rows have `rows_off()` of them beyond the outermost quantile that was asked for.
        """
        outermost = min(min(q, 1 - q) for q in self.plan.quantiles)
        return math.ceil(self.rows_off() / float(outermost))

    def to_toml(self) -> str:
        """The schema as the text of a TOML file, below a comment that says which bounds were released and at which price."""
        names, (low, high) = ", ".join(self.release.columns), self.release.quantiles
        lines = [
            f"The bounds of these columns were released from rows: {names}.",
            f"They are the quantiles {low:g} and {high:g}. Together they cost {self.release.price}.",
            "Keep the key `released`: statements of models then name this release.",
            *self.interrupted,
        ]
        if self.void is not None:
            lines.insert(0, f"NOT PRIVATE. {self.void}")
        comment = "".join(f"# {' '.join(line.split())}\n" for line in lines)
        return f"{comment}\n{toml_text(self.schema.to_dict())}"

    def __str__(self) -> str:
        lines = [] if self.void is None else [f"NOT PRIVATE. {self.void}"]
        lines += [
            f"{column.name}: from {shown_number(column.low)} to {column.shown(column.high)}" for column in self.columns
        ]
        return "\n".join([*lines, f"All together: {self.plan.budget} ({self.plan.neighbours}).", *self.interrupted])


@keeps_released
def private_bounds(
    rows: Any,
    columns: Mapping[str, Any] | Iterable[str | NumberColumn] | None = None,
    *,
    budget: float | Budget | None = None,
    quantiles: Iterable[float] = (0.01, 0.99),
    schema: Schema | None = None,
    ledger: Ledger | Batch | None = None,
    neighbours: str | Neighbours = "replace-one",
    max_rows_per_person: int = 1,
    random_state: int | None = None,
) -> PrivateBounds:
    """Release quantiles of columns of numbers, to be the bounds of a schema where no codebook states them.

    Parameters
    ----------
    rows : frame, path, pattern or list of paths
        pandas or Polars frame, or Arrow table; or CSV, Parquet, Arrow or Feather files, which are read piece by piece.
    columns : mapping, or names; required
        For each column its public outer bounds, (low, high), or a description as in a schema: {"low": 0, "high": 1e7,
        "scale": "log", "missing": True}. With a schema, names suffice: its bounds are then the outer ones. The candidates
        are round numbers between the outer bounds, even on the column's scale; "log" suits long tails from 0 on, and "log10"
        incomes and other positive numbers.
    budget : float, PureDP, ApproxDP or ZCDP
        What all quantiles of all columns cost together; it must be given. A number is an epsilon. A delta helps where
        there are many quantiles.
    quantiles : two or more numbers, default (0.01, 0.99)
        From 0 to 1, in rising order. The first becomes low, and the last high. 0 keeps the outer low and 1 the outer high;
        they cost nothing, so (0, 0.99) suits a column whose low is known.
    schema : Schema or None
        The schema into which the bounds are written. Its column of persons is used. It must describe each of its columns
        already, with bounds that are public.
    ledger : Ledger, batch of one, or None
        Charged once, before a row is used.
    neighbours : {"replace-one", "add-or-remove-one"}, default "replace-one"
        Which data sets the guarantee calls neighbours. With "add-or-remove-one" the number of rows is private.
    max_rows_per_person : int, default 1
        A public cap on the rows of one person. If the schema names a column of persons, that many rows of each are kept,
        drawn at random. Otherwise the cap is an assumption.
    random_state : int or None
        For tests only: a seed makes the choices reproducible and the guarantee void.

    Returns
    -------
    PrivateBounds
        The bounds, and a schema with them.

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
    Missing cells count for no quantile; they are refused unless they are declared, with "missing": True.
    Where both quantiles are the same candidate, high is the next one.

    Guarantee: the released numbers are differentially private at the budget for the stated neighbour relation. What is
    fitted with them costs its own budget as well. Proof: confide/privacy/proofs/quantiles.md.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> found = confide.private_bounds(adult.X_train, {"age": (0, 150), "hours-per-week": (0, 168)}, budget=1.0)
    >>> found.schema.column_names
    ('age', 'hours-per-week')
    >>> low, high = found.columns[0].low, found.columns[0].high
    >>> 0 <= low < 25 and 60 < high <= 150
    True
    """
    if columns is None or budget is None:
        raise ParameterError(
            "private_bounds releases quantiles of columns between public outer bounds, so name the columns and give a "
            "price: private_bounds(rows, {'age': (0, 150)}, budget=0.2). Nothing was charged."
        )
    asked = OwnRelease.of("private bounds", budget, neighbours, max_rows_per_person, ledger, random_state)
    described = _described(columns, schema)
    shares, grids = _checked_quantiles(quantiles), tuple(map(candidates_of, described))
    inner = [Fraction(str(q)) for q in shares if 0.0 < q < 1.0]
    weights = tuple(map(weights_of, described))
    person = None if schema is None else schema.person
    read, n_given = checked_columns(rows, Schema(described, person=person), asked.persons)
    public = asked.public_number(n_given, schema)
    n_rows = math.inf if public is None else public
    plan = QuantilesPlan.of(grids, weights, inner, asked.budget, asked.neighbours, asked.most_rows, n_rows)
    void = asked.void("the bounds may reveal any row")
    release = _release(plan, shares, asked.most_rows, described, asked.charge.ledger, void)
    _refuse_unusable(described, grids, schema, release)
    waste = sentence_of_waste(rows_off(plan, 0.5) / max(n_rows, 1), "any candidate may become a bound")
    whom = (asked.budget, asked.neighbours, asked.most_rows, person, n_rows)
    asked = asked.decided_by(plan.event, described, grids, inner, *whom)
    release, interrupted = replace(release, attempts=asked.charge.attempt), asked.interrupted
    released = asked.charged(partial(_chosen, plan, read), plan.event, wasted=waste)
    return PrivateBounds(described, shares, released, plan, release, schema, interrupted)


def _described(columns: Any, schema: Schema | None) -> tuple[NumberColumn, ...]:
    """The columns with their outer bounds, and with what the schema says of them otherwise."""
    of_schema: dict[str, Column] = {} if schema is None else {column.name: column for column in schema.columns}
    if isinstance(columns, Mapping):
        given = {name: _one_described(name, outer, of_schema.get(name)) for name, outer in columns.items()}
        columns_found: tuple[Any, ...] = columns_of(given)
    elif is_list(columns):
        named = tuple(columns)
        columns_found = tuple(of_schema.get(name) if isinstance(name, str) else name for name in named)
        unknown = [name for name, column in zip(named, columns_found, strict=True) if column is None]
        if unknown:
            raise ParameterError(
                f'column "{unknown[0]}" has no outer bounds: give them as {{"{unknown[0]}": (low, high)}}, from public '
                f"knowledge alone."
            )
    else:
        raise ParameterError("columns must map names to outer bounds (low, high), or list names of columns of the schema.")
    if not columns_found or not all(getattr(column, "is_number", False) for column in columns_found):
        raise ParameterError("columns must name one or more columns of numbers; categories have no bounds.")
    for column in columns_found:
        if column.released is not None:
            raise _released_before(column.name)
    names = [column.name for column in columns_found]
    if len(set(names)) < len(names):
        raise ParameterError("columns must name each column once.")
    taken = {} if schema is None else {schema.person: "person"}
    for what in ("target", "weight"):
        taken[getattr(getattr(schema, what, None), "column", None)] = what
    for name in taken.keys() & names:
        raise ParameterError(f'column "{name}" is the {taken[name]} of the schema; bounds are for its other columns.')
    return columns_found


def _one_described(name: Any, outer: Any, known: Column | None) -> dict[str, Any]:
    """The description of one column as in a schema."""
    if isinstance(known, NumberColumn):
        described = known.to_dict()
        if described.pop("released", None) is not None:
            # These are no outer bounds: those are public, and stand in the call.
            del described["low"], described["high"]
            if isinstance(outer, Mapping) and not {"low", "high"} <= set(outer):
                raise _released_before(str(name))
    elif known is None:
        described = {}
    else:
        raise ParameterError("columns must name one or more columns of numbers; categories have no bounds.")
    if isinstance(outer, Mapping):
        return described | dict(outer)
    if not is_list(outer) or len(bounds := tuple(outer)) != 2:
        raise ParameterError(f'column "{name}": give its outer bounds as (low, high), from public knowledge alone.')
    return described | {"low": bounds[0], "high": bounds[1]}


def _released_before(name: str) -> ParameterError:
    """The error for bounds that came from rows: a second release would hide the price of the first."""
    return ParameterError(
        f'the bounds of column "{name}" were released from rows; give public outer bounds, as {{"{name}": (low, high)}}.'
    )


def _checked_quantiles(quantiles: Any) -> tuple[float, ...]:
    given = tuple(quantiles) if is_list(quantiles) else ()
    numbers = all(is_number(q) and 0.0 <= float(q) <= 1.0 for q in given)
    if len(given) < 2 or not numbers or list(given) != sorted(set(given)):
        raise ParameterError("quantiles must be two or more numbers from 0 to 1, in rising order.")
    if set(given) <= {0.0, 1.0}:
        raise ParameterError("quantiles must have a number strictly between 0 and 1: 0 and 1 are the outer bounds.")
    return tuple(map(float, given))


def _release(
    plan: QuantilesPlan,
    shares: tuple[float, ...],
    persons: int,
    described: tuple[NumberColumn, ...],
    ledger: Ledger | Batch | None,
    void: str | None,
) -> BoundsRelease:
    """What the schema will say of the release, apart from the outer bounds of each column."""
    price: dict[str, Any] = plan.budget.amounts
    return BoundsRelease(
        quantiles=(shares[0], shares[-1]),
        outer=(0.0, 0.0),
        columns=tuple(column.name for column in described),
        neighbours=str(plan.neighbours),
        max_rows_per_person=persons,
        ledger=None if ledger is None else ledger.identity,
        void=void,
        **price,
    )


def _refuse_unusable(
    described: tuple[NumberColumn, ...], grids: tuple[tuple[float, ...], ...], schema: Schema | None, release: BoundsRelease
) -> None:
    """Refuse, before the charge, a schema that some outcome would contradict."""
    narrowest = []
    for column, grid in zip(described, grids, strict=True):
        if (isinstance(column.knots, tuple) and column.knots) or column.atoms:
            raise ParameterError(
                f'column "{column.name}" has knots or atoms at fixed places, and its bounds are not known yet. Give a '
                f"number of knots, such as knots = 6, or none, and add atoms afterwards."
            )
        try:
            # Without knots any two candidates are bounds that a column can have.
            pairs = pairwise(grid) if column.knots else [min(pairwise(grid), key=lambda pair: pair[1] - pair[0])]
            made = [replace(column, low=low, high=high) for low, high in pairs]
        except SchemaError:
            raise ParameterError(
                f'column "{column.name}": its outer bounds are too close to each other for their size, or it has too many '
                f"knots. Choose wider outer bounds, or fewer knots."
            ) from None
        narrowest.append(min(made, key=lambda interval: interval.high - interval.low))
    _schema_with(tuple(_with_bounds(c, (c.low, c.high), (c.low, c.high), release) for c in narrowest), schema).to_toml()


def _chosen(plan: QuantilesPlan, read: ReadColumns, entropy: Entropy) -> tuple[tuple[float, ...], ...]:
    """Count the rows by their places among the candidates, and choose. Counts are integers, in whatever order rows come."""
    counts = [np.zeros(len(grid), dtype=np.int64) for grid in plan.candidates]
    for piece in read():
        for of_column, grid, values in zip(counts, plan.candidates, piece, strict=True):
            of_column += places(grid, values)
    return plan.release(counts, entropy)


def _with_bounds(
    column: NumberColumn, grid: tuple[float, ...], values: tuple[float, ...], release: BoundsRelease
) -> NumberColumn:
    """The column between the first and the last of its released quantiles."""
    low, high = values[0], values[-1]
    if low == high:
        place = grid.index(low)
        low, high = (low, grid[place + 1]) if place + 1 < len(grid) else (grid[place - 1], high)
    return replace(column, low=low, high=high, released=replace(release, outer=(column.low, column.high)))


def _schema_with(columns: tuple[NumberColumn, ...], schema: Schema | None) -> Schema:
    """The schema with these columns in place of those of the same names, and after its others where it has none."""
    if schema is None:
        return Schema(columns)
    new = {column.name: column for column in columns}
    kept = tuple(new.pop(column.name, column) for column in schema.columns)
    return replace(schema, columns=(*kept, *new.values()))
