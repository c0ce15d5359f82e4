"""What all evaluations from several tables have in common: rates of all rows and of groups, as text, as JSON, as frames."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from confide.array_types import Array
from confide.blocks import Block, Shown, as_json, frame_of, heading, json_value, table, text
from confide.errors import ParameterError, is_text
from confide.evaluations.tables import ClassTables, Layout, NumberTables
from confide.inference.forecast import rounded, rows_to_be_known
from confide.inference.intervals import level_of_each
from confide.inference.rates import NoisyTable, Rate, difference_of, digits_of, facts_of_release, guarantee_in_words
from confide.known_words import suggestion
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Tables

if TYPE_CHECKING:
    import pandas as pd


NOT_LISTED = "(not listed)"
"""The group of rows whose category the schema does not list and gives no level. Most often there is none."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of an evaluation.

    Attributes
    ----------
    column : str or None
        The column whose levels they are; None if there is one group, of all rows.
    names : tuple of str
    """

    column: str | None = None
    names: tuple[str, ...] = ("all rows",)


ShownTable = tuple[str, list[tuple[str, ...]]]
"""A table for people: its title, and its lines, the headings first."""


@dataclass(frozen=True, slots=True, eq=False)
class TablesEvaluation(Shown, ABC):
    """An evaluation that was released as several tables at once. Public: made of noisy tables and of public facts.

    Attributes
    ----------
    tables : tuple of NoisyTable
        The noisy numbers of rows.
    plan : SumPlan[Tables]
        What the tables cost, and their noise.
    level : float
        Of each interval by itself.
    groups : Groups
    n_rows : int or None
        None where it is private: of persons with a column in the schema, it is after rows beyond the cap were dropped.
    void : str or None
        Why there is no guarantee; None if there is one.
    model_checksums : tuple of str
        SHA-256 of the file of each model, as `save` writes it.
    charged_to : str or None
        Identity of the ledger that was charged; None if none was.
    interrupted : tuple of str
        What is assumed of interrupted attempts under the same charge; empty if there were none.
    """

    tables: tuple[NoisyTable, ...]
    plan: SumPlan[Tables]
    level: float
    groups: Groups
    n_rows: int | None
    void: str | None
    model_checksums: tuple[str, ...] = field(default=(), kw_only=True)
    charged_to: str | None = field(default=None, kw_only=True)
    interrupted: tuple[str, ...] = field(default=(), kw_only=True)

    kind: ClassVar[str]
    """What was evaluated, in a few words."""

    @abstractmethod
    def rates_of(self, groups: Array) -> dict[str, Rate]:
        """The rates of the rows of some groups, which are marked by 1, by name."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What else `to_dict` writes."""

    def further_tables(self) -> list[ShownTable]:
        """What else is shown, beside the rates."""
        return []

    @property
    def rates(self) -> dict[str, Rate]:
        """The rates of all rows, by name."""
        return self.rates_of(np.ones(len(self.groups.names)))

    @property
    def by_group(self) -> dict[str, dict[str, Rate]]:
        """For each group its rates by name; empty if no column of groups was given.

        Each interval has its level by itself. Groups are disjoint, so all of this costs no more than the rates of all rows.
        """
        if self.groups.column is None:
            return {}
        rows = np.eye(len(self.groups.names))
        return {name: self.rates_of(row) for name, row in zip(self.groups.names, rows, strict=True)}

    @property
    def group_differences(self) -> dict[str, dict[str, Rate]]:
        """For each further group of which something is known, how much larger its rates are than those of the first such.

        The group of rows that are not listed is none of them: most often there is no such row.
        """
        known = {name: rates for name, rates in self.by_group.items() if name != NOT_LISTED and _any_known(rates)}
        first = next(iter(known.values()), {})
        later = list(known.items())[1:]
        return {name: {rate: difference_of(own, first[rate]) for rate, own in rates.items()} for name, rates in later}

    def difference(self, rate: str, first: str, second: str) -> Rate:
        """How much larger a rate is in the first group than in the second, with an interval.

        Parameters
        ----------
        rate : str
            One of the names in `rates`.
        first, second : str
            Two different groups.

        Raises
        ------
        ParameterError
            If there is no such rate or group.
        """
        groups = self.by_group
        if not all(is_text(group) and group in groups for group in (first, second)) or first == second:
            raise ParameterError(f"first and second must be two different groups out of {', '.join(groups) or 'none'}.")
        if not is_text(rate) or rate not in groups[first]:
            raise ParameterError(f"rate must be one of {', '.join(groups[first])}{suggestion(rate, groups[first])}.")
        return difference_of(groups[first][rate], groups[second][rate])

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "kind": self.kind,
            **facts_of_release(self),
            "n_rows": self.n_rows,
            "count_deviation": self.plan.deviation,
            "rates": json_value(self.rates),
            "group_column": self.groups.column,
            **as_json(self, "by_group group_differences"),
            **self.facts(),
            "tables": [table.counts.tolist() for table in self.tables],
        }

    def to_frame(self) -> pd.DataFrame:
        """The rates as a pandas frame: value, low and high, by group (if there are groups) and name of the rate."""
        blocks = {"all rows": self.rates} | self.by_group
        lines = [{"rows": of, "rate": name} | rate.to_dict() for of, rates in blocks.items() for name, rate in rates.items()]
        return frame_of(lines).set_index(["rows", "rate"]).astype(float)

    def shown_tables(self) -> list[ShownTable]:
        """All of it as tables for people."""
        tables = [shown(f"{self.heading}, with intervals at {self.level:g}", "rate", self.rates)]
        groups = self.by_group
        known = {name: rates for name, rates in groups.items() if _any_known(rates)}
        for name, rates in known.items():
            tables.append(shown(f"Rows with {self.groups.column} = {name}", "rate", rates))
        first = next((name for name in known if name != NOT_LISTED), "")
        for name, differences in self.group_differences.items():
            tables.append(shown(f"Differences: {self.groups.column} = {name} less {first}", "rate", differences))
        if hidden := [name for name in groups if name not in known]:
            tables.append(("Groups with too few rows beside the noise", [(str(self.groups.column),), *zip(hidden)]))
        return tables + self.further_tables()

    @property
    def heading(self) -> str:
        """What was measured, on how many rows."""
        rows = "private rows" if self.n_rows is None else f"{self.n_rows:,} private rows"
        return f"{self.kind[0].upper()}{self.kind[1:]}, on {rows}"

    guarantee_in_words = guarantee_in_words

    def noise_in_words(self) -> str:
        """Of how many counts it is made, with what noise."""
        counts = f"{self.plan.query.size} counts in {len(self.tables)} table{'s'[: len(self.tables) != 1]}"
        return f"It is made of {counts}, each with noise of standard deviation {self.plan.deviation:.4g}."

    def blocks(self) -> Iterator[Block]:
        """The tables, and under which budget they were released."""
        for title, (columns, *rows) in self.shown_tables():
            yield heading(title)
            yield table(columns, rows)
        yield text(self.noise_in_words(), self.guarantee_in_words())


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedEvaluation(TablesEvaluation):
    """An evaluation of one model, whose last table may hold its calibration: rows by bins of what was predicted.

    Attributes
    ----------
    layout : ClassTables or NumberTables
        Which tables were released.
    """

    layout: ClassTables | NumberTables
    _why_no_calibration: ClassVar[str] = "n_bins is 0"

    @property
    def edges(self) -> tuple[float, ...]:
        """The ends of the bins of `calibration`, which have equal widths."""
        return tuple(np.linspace(*self.layout.range_of_bins, self.layout.n_bins + 1).tolist())

    @property
    def calibration(self) -> tuple[Rate, ...]:
        """For each bin of what was predicted the share of its rows that are predicted right, or the mean of the target.

        For a calibrated model it lies within the bin.
        """
        return self._calibrated(self.level)

    @property
    def calibration_band(self) -> tuple[Rate, ...]:
        """The same with intervals that all hold together with probability `level`: a band."""
        return self._calibrated(level_of_each(self.level, self.layout.n_bins))

    def _calibrated(self, level: float) -> tuple[Rate, ...]:
        if not self.layout.n_bins:
            raise ParameterError(f"no calibration was released: {self._why_no_calibration}.")
        table = replace(self.tables[-1], level=level)
        return tuple(self._in_bin(table, row) for row in np.eye(self.layout.n_bins))

    @abstractmethod
    def _in_bin(self, table: NoisyTable, row: Array) -> Rate:
        """The rate of the bin that is marked by 1."""

    def calibration_facts(self, name: str) -> dict[str, Any]:
        """The calibration as JSON values; `name` is that of the rates."""
        if not self.layout.n_bins:
            return {"calibration": None}
        return {"calibration": json_value({"edges": self.edges, name: self.calibration, "band": self.calibration_band})}

    def calibration_tables(self, title: str, predicted: str, rate: str, number: str) -> list[ShownTable]:
        """The table of the calibration, if there is one; `number` is the format of the ends of bins."""
        if not self.layout.n_bins:
            return []
        ends = (f"{low:{number}} to {high:{number}}" for low, high in pairwise(self.edges))
        bins = zip(ends, self.calibration, self.calibration_band, strict=True)
        rows = [(of_bin, *digits_of(alone), *digits_of(band)[1:]) for of_bin, alone, band in bins]
        return [(f"Calibration: {title}", [(predicted, rate, "low", "high", "band low", "band high"), *rows])]


def _any_known(rates: Mapping[str, Rate]) -> bool:
    """Whether the noise hides not all of these rates."""
    return any(rate.value is not None for rate in rates.values())


def shown(title: str, what: str, rates: Mapping[str, Rate]) -> ShownTable:
    """A table of rates with their intervals, by name."""
    return title, [(what, "value", "low", "high"), *((name, *digits_of(rate)) for name, rate in rates.items())]


# How precise rates from tables will be: said before they are charged, from public facts alone.


def expected_of_tables(plan: SumPlan[Tables], layout: Layout, groups: Groups, n_rows: int | None, level: float) -> str:
    """What to expect of the rates, in sentences; empty where there is no noise.

    Parameters
    ----------
    plan, layout, groups : of the evaluation
    n_rows : the number of rows, or None if it is private
    level : of the intervals
    """
    if not plan.budget.is_private:
        return ""
    said = [f"Expect noise of about {plan.deviation:.3g} rows in each of {plan.query.size} counts."]
    needed = rows_to_be_known(plan.deviation, plan.query.sizes[0])
    if n_rows is None:
        said.append(f"All rates are hidden below about {rounded(needed)} rows.")
    elif n_rows <= needed:
        said.append("All rates will be hidden: there are too few rows for this budget.")
    else:
        name, margin = noise_of_main_rate(plan, layout, n_rows, level)
        said.append(f"The noise alone moves {name} by about +-{margin:.2g}, besides what the sample does.")
    if groups.column is not None:
        of_group = rows_to_be_known(plan.deviation, plan.query.sizes[0] // len(groups.names))
        said.append(f"The rates of a group are hidden below about {rounded(of_group)} rows in it.")
    return " ".join(said)


def noise_of_main_rate(plan: SumPlan[Tables], layout: Layout, n_rows: int, level: float) -> tuple[str, float]:
    """The rate that is named first, and half the length of its interval if the noise were its only error."""
    shape = layout.shapes[0]
    name, weights, unit = layout.main_rate
    table = NoisyTable(np.zeros(shape), plan.deviation, True, level)
    all_weights = np.broadcast_to(weights, shape)
    z = float(ndtri(0.5 + 0.5 * level))
    return name, z * unit * math.sqrt(max(0.0, table.product_of_noise(all_weights, all_weights))) / n_rows
