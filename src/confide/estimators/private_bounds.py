"""Bounds and levels of columns for those who have no codebook: private quantiles, and levels that many rows have.

The ledger is charged once, before a row is used. The outcome is a schema, or a part of one, that says what its bounds cost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, Literal

from confide.accounting.ledger import Batch, Ledger
from confide.blocks import NAMES_RELEASE, Block, Shown, heading, table, text, void_first
from confide.data.file_rows import ReadColumns, checked_columns
from confide.errors import ParameterError, SchemaError, is_list, is_number, wording
from confide.expected_noise import sentence_of_waste
from confide.features.canonical_labels import NONE_FOUND, can_be_level, canonical_label
from confide.features.checks import BoundsRelease
from confide.features.columns import (
    PRIVATE,
    CategoryColumn,
    Column,
    NumberColumn,
    candidates_of,
    columns_of,
    weights_of,
)
from confide.features.schema import Schema, schema_with
from confide.features.toml_form import toml_text
from confide.inference.intervals import checked_level
from confide.intake.parameters import checked_schema, schema_at
from confide.known_words import suggest_keywords_of
from confide.privacy.budgets import Budget, Neighbours, share_of
from confide.privacy.events import Event
from confide.privacy.noise import Entropy
from confide.privacy.selection import QuantilesPlan, places, rows_off
from confide.privacy.tables import LevelsPlan
from confide.training.charge import OwnRelease, keeps_released


@suggest_keywords_of
@dataclass(frozen=True, slots=True)
class PrivateBounds(Shown):
    """Bounds and levels of columns that were released from rows. Public: made of released numbers and public facts.

    Attributes
    ----------
    described : tuple of columns
        The columns as they were before: numbers with their outer bounds, and categories without their levels.
    shares : tuple of float
        The quantiles that were asked for. 0 and 1 stand for the outer bounds.
    chosen : tuple of tuples of float
        For each column of numbers the released quantiles, without those of 0 and 1.
    plan : QuantilesPlan or None
        The candidates, and what their choice cost; None without a column of numbers.
    release : BoundsRelease
        What a schema says of the release, apart from the outer bounds.
    around : Schema or None
        The schema that was given.
    interrupted : tuple of str
        What is assumed of interrupted attempts under the same charge; empty if there were none.
    levels_plan : LevelsPlan or None
        Noise and threshold of the levels; None without a column of categories.
    levels : dict of dicts of float
        For each column of categories the released levels, by name, with noisy numbers of rows. Levels that are not here
        have few rows, and count as "(other)".
    """

    described: tuple[Column, ...]
    shares: tuple[float, ...]
    chosen: tuple[tuple[float, ...], ...]
    plan: QuantilesPlan | None
    release: BoundsRelease
    around: Schema | None
    interrupted: tuple[str, ...] = ()
    levels_plan: LevelsPlan | None = None
    levels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns with their released bounds or levels; each says what the release cost."""
        numbers = zip([] if self.plan is None else self.plan.candidates, self.quantiles.values(), strict=True)
        return tuple(
            _with_levels(column, self.levels[column.name], self.release, self.levels_plan)
            if isinstance(column, CategoryColumn)
            else _with_bounds(column, (of_column := next(numbers))[0], tuple(of_column[1].values()), self.release)
            for column in self.described
        )

    @property
    def quantiles(self) -> dict[str, dict[float, float]]:
        """For each column of numbers the released numbers, by the quantile asked for."""
        released = zip(_numbers(self.described), self.chosen, strict=True)
        ends = self.shares[0] == 0.0, self.shares[-1] == 1.0
        return {
            column.name: dict(zip(self.shares, (*(column.low,) * ends[0], *values, *(column.high,) * ends[1]), strict=True))
            for column, values in released
        }

    @property
    def schema(self) -> Schema:
        """The schema that was given, with what was released in it; or a schema of these columns alone."""
        return schema_with(self.columns, self.around)

    @property
    def void(self) -> str | None:
        """Why there is no guarantee; None if there is one."""
        return self.release.void

    def rows_off(self, level: float = 0.95) -> float:
        """How many rows off the released quantiles are at most, with this probability: a public fact.

        A number is so many rows off if so many would have to change for the quantile to lie between it and the next
        candidate. What lies between two neighbouring candidates is not counted here. 0 if there are no quantiles.
        """
        return 0.0 if self.plan is None else rows_off(self.plan, checked_level(level))

    @property
    def rows_needed(self) -> int:
        """In smaller tables a bound may well fall beyond all rows, where nothing holds it: a public fact.

        So many rows have `rows_off()` of them beyond the outermost quantile that was asked for.
        """
        return math.ceil(self.rows_off() / min(min(q, 1.0 - q) for q in self.shares if 0.0 < q < 1.0))

    @property
    def sentence_of_levels(self) -> str:
        """Which levels were found, from public facts alone; empty without a column of categories."""
        if self.levels_plan is None:
            return ""
        plan = self.levels_plan
        return wording("released levels", plan=plan, found=math.ceil(plan.found_from(0.95)))

    def to_toml(self) -> str:
        """The schema as the text of a TOML file, below a comment that says which bounds were released and at which price."""
        lines = []
        if self.plan is not None:
            low, high = self.release.quantiles
            names = ", ".join(column.name for column in _numbers(self.described))
            lines.append(f"The bounds of these columns were released from rows: {names}.")
            lines.append(f"They are the quantiles {low:g} and {high:g}.")
        if self.levels_plan is not None:
            lines.append(f"The levels of these columns were released from rows: {', '.join(self.levels)}.")
            lines.append(self.sentence_of_levels)
        lines += [f'No level of "{name}" was found; leave the column out.' for name in self.levels if not self.levels[name]]
        lines.append(f"Together they cost {self.release.price}.")
        lines += ["Keep the key `released`: statements of models then name this release.", *self.interrupted]
        comment = "".join(f"# {' '.join(sentence.split())}\n" for sentence in void_first(self.void, *lines))
        return f"{comment}\n{toml_text(self.schema.to_dict())}"

    def blocks(self) -> Iterator[Block]:
        """Bounds and levels, how far off they may be, and what they cost."""
        if self.plan is not None:
            low, high = [f"quantile {share:g}" for share in self.release.quantiles]
            pairs = zip(self.columns, self.described, strict=True)
            rows = [(own.name, *_ends(own), " to ".join(_ends(old))) for own, old in pairs if own.is_number]
            yield heading("Released bounds")
            yield table(("column", f"low ({low})", f"high ({high})", "outer bounds"), rows, optional=("outer bounds",))
            yield text(wording("how far bounds are off", off=self.rows_off(), needed=self.rows_needed))
        for name, found in self.levels.items():
            yield heading(f"Released levels of {name}")
            yield table(("level", "rows (noisy)"), [(level, f"{rows:,.0f}") for level, rows in found.items()])
            none = "No level has enough rows for this budget. Leave the column out."
            yield text(*[none] * (not found), self.sentence_of_levels)
        price = f"All together: differential privacy with {self.release.price}."
        yield text(*void_first(self.void, price, *self.interrupted, NAMES_RELEASE))


def _ends(column: Any) -> tuple[str, ...]:
    return column.texts_of(column.bounds) if column.dates else (f"{column.low:.10g}", f"{column.high:.10g}")


@keeps_released
def private_bounds(
    rows: Any,
    columns: Mapping[str, Any] | Iterable[str | NumberColumn] | None = None,
    *,
    budget: float | Budget | None = None,
    quantiles: Iterable[float] = (0.01, 0.99),
    schema: Schema | None = None,
    ledger: Ledger | Batch | None = None,
    neighbours: Literal["replace-one", "add-or-remove-one"] | Neighbours = "replace-one",
    max_rows_per_person: int = 1,
    random_state: int | None = None,
) -> PrivateBounds:
    """Release bounds of columns of numbers and levels of columns of categories, for a schema that no codebook states.

    Parameters
    ----------
    rows : frame, path, pattern or list of paths
        pandas or Polars frame, or Arrow table; or CSV, Parquet, Arrow or Feather files, which are read piece by piece.
    columns : mapping, or names; required
        For each column its public outer bounds, (low, high), or a description as in a schema: {"low": 0, "high": 1e7,
        "scale": "log", "missing": True}. With a schema, names suffice: its bounds are then the outer ones. The candidates
        lie between the outer bounds, even on the column's scale, and round ones are likelier; "log" suits long tails from 0
        on, and "log10" incomes and other positive numbers. {"categories": "private"} asks for the levels of a column of
        categories that nobody can list: those that many rows have are released with noisy counts, and all others count as
        "(other)".
    budget : float, PureDP, ApproxDP or ZCDP
        What is released of all columns costs together; it must be given. A number is an epsilon. A delta helps where there
        are many quantiles; levels need one. Each column has an equal part where there are both numbers and categories.
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
    Missing cells count for no quantile and no level; those of numbers are refused unless they are declared, with "missing":
    True. Where both quantiles are the same candidate, high is the next one. Where no level was found, the schema has the one
    category "(none found)". Text of more than one line or 200 characters is no level.

    Guarantee: the released numbers are differentially private at the budget for the stated neighbour relation. What is
    fitted with them costs its own budget as well. Proof: confide/privacy/proofs/quantiles.md
    and levels.md.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> outer = {"age": (0, 150), "hours-per-week": (0, 168)}
    >>> found = confide.private_bounds(adult.X_train, outer, budget=1.0)
    >>> found.schema.column_names
    ('age', 'hours-per-week')
    >>> low, high = found.columns[0].low, found.columns[0].high
    >>> 0 <= low < 25 and 60 < high <= 150
    True
    """
    if columns is None or budget is None:
        raise ParameterError(wording("private bounds need a price"))
    schema = schema_at(schema)
    checked_schema(schema)
    asked = OwnRelease.of("private bounds", budget, neighbours, max_rows_per_person, ledger, random_state)
    described, shares = _described(columns, schema), _checked_quantiles(quantiles)
    numbers, unlisted = _numbers(described), [column.name for column in described if not column.is_number]
    grids, weights = tuple(map(candidates_of, numbers)), tuple(map(weights_of, numbers))
    inner = [Fraction(str(q)) for q in shares if 0.0 < q < 1.0]
    whom = (asked.neighbours, asked.most_rows)
    of_schema: Any = {} if schema is None else {name: getattr(schema, name) for name in ("person", "cohort", "table")}
    of_levels = len(unlisted) / len(described)
    levels_plan = LevelsPlan.of(len(unlisted), share_of(asked.budget, of_levels), *whom) if unlisted else None
    read, n_given = checked_columns(rows, Schema(described, **of_schema), asked.persons, unlisted)
    public = asked.public_number(n_given, schema)
    n_rows = math.inf if public is None else public
    plan, waste = None, None
    if numbers:
        plan = QuantilesPlan.of(grids, weights, inner, share_of(asked.budget, 1.0 - of_levels), *whom, n_rows)
        waste = sentence_of_waste(rows_off(plan, 0.5) / max(n_rows, 1), "any candidate may become a bound")
    elif levels_plan is not None:
        waste = sentence_of_waste(levels_plan.threshold / max(n_rows, 1), "no level may be found")
    alone = plan if levels_plan is None else None
    event = Event(asked.budget, None, asked.most_rows, asked.neighbours) if alone is None else alone.event
    names, ends = tuple(column.name for column in described), (shares[0], shares[-1])
    stated = {"levels": tuple(unlisted), **asked.stated("the bounds may reveal any row")}
    release = BoundsRelease(columns=names, quantiles=ends, outer=(0.0, 0.0), **stated)
    _refuse_unusable(described, grids, schema, release)
    facts = (described, grids, inner, asked.budget, *whom, of_schema.get("person"), of_schema.get("cohort"), n_rows)
    asked = asked.decided_by(event, *facts, schema=schema)
    release, interrupted = replace(release, attempts=asked.charge.attempt), asked.interrupted
    hidden = [{canonical_label(code) for code in column.missing_codes} for column in described]
    chosen, found = asked.charged(partial(_released, plan, levels_plan, hidden, read), event, wasted=waste)
    levels = dict(zip(unlisted, found, strict=True))
    return PrivateBounds(described, shares, chosen, plan, release, schema, interrupted, levels_plan, levels)


def _numbers(columns: Iterable[Column]) -> tuple[NumberColumn, ...]:
    """The columns of numbers."""
    return tuple(column for column in columns if isinstance(column, NumberColumn))


def _described(columns: Any, schema: Schema | None) -> tuple[Column, ...]:
    """The columns with their outer bounds or without levels, and with what the schema says of them otherwise."""
    of_schema: dict[str, Column] = {} if schema is None else {column.name: column for column in schema.columns}
    if isinstance(columns, Mapping):
        given = {name: _one_described(name, outer, of_schema.get(name)) for name, outer in columns.items()}
        columns_found: tuple[Any, ...] = columns_of(given)
    elif is_list(columns):
        named = tuple(columns)
        columns_found = tuple(of_schema.get(name) if isinstance(name, str) else name for name in named)
        unknown = [name for name, column in zip(named, columns_found, strict=True) if column is None]
        if unknown:
            pair = f'{{"{unknown[0]}": (low, high)}}'
            raise ParameterError(f'column "{unknown[0]}" has no outer bounds: give them as {pair}, from public knowledge.')
    else:
        raise ParameterError("columns must map names to outer bounds (low, high), or list names of columns of the schema.")
    if not columns_found or not all(_is_looked_for(column) for column in columns_found):
        raise ParameterError(_NO_BOUNDS)
    for column in columns_found:
        if column.released is not None:
            raise _released_before(column.name)
    names = [column.name for column in columns_found]
    if len(set(names)) < len(names):
        raise ParameterError("columns must name each column once.")
    taken = {} if schema is None else {schema.person: "person", schema.cohort and schema.cohort[0]: "cohort"}
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
        raise ParameterError(_NO_BOUNDS)
    if isinstance(outer, Mapping):
        if outer.get("categories") != PRIVATE:
            return described | dict(outer)
        if described or outer.get("other", True) is not True:
            raise ParameterError(f'column "{name}": levels not found always count as "(other)"; leave out the rest.')
        return dict(outer) | {"categories": [NONE_FOUND], "other": True}
    if not is_list(outer) or len(bounds := tuple(outer)) != 2:
        raise ParameterError(f'column "{name}": give its outer bounds as (low, high), from public knowledge alone.')
    return described | {"low": bounds[0], "high": bounds[1]}


_NO_BOUNDS = wording("columns without bounds", private=PRIVATE)


def _is_looked_for(column: object) -> bool:
    """Whether a column is one of numbers, or of categories whose levels are to be found."""
    is_number = isinstance(column, NumberColumn) and not column.ordered
    return is_number or (isinstance(column, CategoryColumn) and column.categories == (NONE_FOUND,))


def _released_before(name: str) -> ParameterError:
    """The error for bounds that came from rows: a second release would hide the price of the first."""
    return ParameterError(f'column "{name}" has bounds released from rows; give public ones: {{"{name}": (low, high)}}.')


def _checked_quantiles(quantiles: Any) -> tuple[float, ...]:
    given = tuple(quantiles) if is_list(quantiles) else ()
    numbers = all(is_number(q) and 0.0 <= float(q) <= 1.0 for q in given)
    if len(given) < 2 or not numbers or list(given) != sorted(set(given)):
        raise ParameterError("quantiles must be two or more numbers from 0 to 1, in rising order.")
    if set(given) <= {0.0, 1.0}:
        raise ParameterError("quantiles must have a number strictly between 0 and 1: 0 and 1 are the outer bounds.")
    return tuple(map(float, given))


def _refuse_unusable(
    described: tuple[Column, ...], grids: tuple[tuple[float, ...], ...], schema: Schema | None, release: BoundsRelease
) -> None:
    """Refuse, before the charge, a schema that some outcome would contradict. A category has one level then, or more."""
    narrowest = []
    for column, grid in zip(_numbers(described), grids, strict=True):
        if (isinstance(column.knots, tuple) and column.knots) or column.atoms:
            raise ParameterError(wording("bounds of a column with fixed knots", name=column.name))
        try:
            # Without knots any two candidates are bounds that a column can have.
            pairs = pairwise(grid) if column.knots else [min(pairwise(grid), key=lambda pair: pair[1] - pair[0])]
            made = [replace(column, low=low, high=high) for low, high in pairs]
        except SchemaError:
            raise ParameterError(wording("outer bounds too close", name=column.name)) from None
        narrowest.append(min(made, key=lambda interval: interval.high - interval.low))
    found = [_with_bounds(c, (c.low, c.high), (c.low, c.high), release) for c in narrowest]
    schema_with((*found, *(column for column in described if not column.is_number)), schema).to_toml()


def _released(
    plan: QuantilesPlan | None, levels_plan: LevelsPlan | None, hidden: list[Any], read: ReadColumns, entropy: Entropy
) -> tuple[tuple[tuple[float, ...], ...], tuple[dict[str, float], ...]]:
    """Count the rows by candidate and by level, and release. Counts are integers, in whatever order rows come.

    Parameters
    ----------
    hidden : for each column the labels that stand for missing cells
    """
    counts: list[Any] = [None] * len(hidden)
    for piece in read():
        grids = iter(() if plan is None else plan.candidates)
        for i, values in enumerate(piece):
            held = Counter(values.tolist()) if values.dtype == object else places(next(grids), values)
            counts[i] = held if counts[i] is None else counts[i] + held
    numbers = [held for held in counts if not isinstance(held, Counter)]
    pairs = ((held, codes) for held, codes in zip(counts, hidden, strict=True) if isinstance(held, Counter))
    of_labels = [{name: n for name, n in own.items() if can_be_level(name) and name not in codes} for own, codes in pairs]
    chosen = () if plan is None else plan.release(numbers, entropy)
    return chosen, () if levels_plan is None else levels_plan.release(of_labels, entropy)


def _with_bounds(
    column: NumberColumn, grid: tuple[float, ...], values: tuple[float, ...], release: BoundsRelease
) -> NumberColumn:
    """The column between the first and the last of its released quantiles."""
    low, high = values[0], values[-1]
    if low == high:
        place = grid.index(low)
        low, high = (low, grid[place + 1]) if place + 1 < len(grid) else (grid[place - 1], high)
    return replace(column, low=low, high=high, released=replace(release, outer=(column.low, column.high)))


def _with_levels(column: CategoryColumn, found: Mapping[str, float], release: BoundsRelease, plan: Any) -> CategoryColumn:
    """The column with its released levels, by name; with one that no row has where none was found."""
    of_levels = replace(release, quantiles=(), outer=(), threshold=plan.threshold)
    return replace(column, categories=tuple(found) or column.categories, released=of_levels)
