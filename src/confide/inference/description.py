"""What describes the rows of a table: counts, shares, means, deviations and quantiles, each with an interval.

Post-processing of noisy sums. Intervals are about the rows that were described: they account for the noise, and not for
sampling error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from confide.array_types import Array
from confide.blocks import Block, Shown, as_json, frame_of, heading, json_value, text, void_first
from confide.errors import ParameterError, is_list, is_number, wording
from confide.inference.rates import HIDDEN, LEAST_SIGNAL, UNKNOWN, Rate, quantile_of, within
from confide.known_words import listed
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import MOMENT_SCALE, ReleasedTables, Tables, common_total, deviation_of_moments

if TYPE_CHECKING:
    import pandas as pd


# Noisy tables of counts that agree with each other: no count is negative, and all totals are the same.
#
# Post-processing: everything here is a function of released numbers and of public facts.

_ROUNDS = 500
_CLOSE = 1e-9
_LEAST_CELL = 1e-3
"""In rows: what a cell of a cross table has at least before it is scaled to its margins, so that every margin can be met."""


def with_total(counts: Array, total: float) -> Array:
    """The nearest counts (k,) that are not negative and have this total, a number of at least 0.

    The projection onto a simplex: each count is lowered or raised by the same number, and none falls below 0.
    """
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    kept = np.flatnonzero(falling - excess > 0.0)
    # With a total of 0 no count is kept.
    level = excess[kept[-1]] if kept.size else falling[0]
    return np.asarray(np.maximum(counts - level, 0.0))


def with_margins(counts: Array, rows: Array, columns: Array) -> Array:
    """A cross table (r, c) whose margins are these; `rows` and `columns` are not negative and have one total.

    Iterative proportional fitting (Deming and Stephan 1940), from the counts without negative ones.
    """
    expected = np.maximum(counts, _LEAST_CELL)
    for _ in range(_ROUNDS):
        expected = expected * _shares(rows, expected.sum(axis=1))[:, None]
        expected = expected * _shares(columns, expected.sum(axis=0))[None, :]
        if np.abs(expected.sum(axis=1) - rows).max() <= _CLOSE * max(1.0, rows.sum()):
            break
    return np.asarray(expected)


def _shares(wanted: Array, sums: Array) -> Array:
    return np.divide(wanted, sums, out=np.zeros_like(wanted), where=sums > 0.0)


NOT_LISTED = "(not listed)"
"""The level of categories that the schema does not list and gives no level. Most often there is none."""


@dataclass(frozen=True, slots=True)
class DescribedCategory:
    """A column of categories.

    Attributes
    ----------
    name : str
    counts : dict of str to Rate
        Rows of each level, in the order of the schema, with "(other)", "(missing)" and "(not listed)" where they can occur.
    shares : dict of str to Rate
        The same as shares of all rows.
    """

    name: str
    counts: Mapping[str, Rate]
    shares: Mapping[str, Rate]

    def cells(self) -> list[tuple[str, str, str, str, str]]:
        """Level, rows, share in percent and its interval, as text. What is not listed is left out where it may be none."""
        shown = [(level, count) for level, count in self.counts.items() if level != NOT_LISTED or count.low]
        return [(level, shown_count(count), *_percent(self.shares[level])) for level, count in shown]


def shown_count(count: Rate) -> str:
    """A number of rows as text."""
    return HIDDEN if count.value is None else f"{count.value:,.0f}"


@dataclass(frozen=True, slots=True)
class DescribedNumber:
    """A column of numbers, in its own unit. Numbers outside the bounds of the column count as the nearest bound.

    Attributes
    ----------
    name : str
    mean, deviation : Rate
        Over the cells that are not missing.
    quantiles : dict of float to Rate
    missing : Rate or None
        The share of rows whose cell is missing; None where the schema allows none.
    histogram : tuple of float
        Rows of each bin, not negative.
    edges : tuple of float
        The ends of the bins, one more than there are bins.
    unit : str or None
        The unit of the mean, the deviation, the quantiles and the edges, if the schema names it.
    """

    name: str
    mean: Rate
    deviation: Rate
    quantiles: Mapping[float, Rate]
    missing: Rate | None
    histogram: tuple[float, ...]
    edges: tuple[float, ...]
    unit: str | None = None

    def cells(self) -> list[tuple[str, str, str, str, str]]:
        """Column, what the number is, the number and its interval, as text."""
        named = [("mean", self.mean), ("standard deviation", self.deviation)]
        named += [(f"quantile {q:g}", rate) for q, rate in self.quantiles.items()]
        unit = "" if self.unit is None else f" in {self.unit}"
        rows = [(self.name, what + unit, *rate.texts()) for what, rate in named]
        return rows if self.missing is None else [*rows, (self.name, "missing", *_percent(self.missing))]


@dataclass(frozen=True, slots=True)
class CrossTable:
    """Rows by the levels of two columns. Its margins are the counts of the columns.

    Attributes
    ----------
    names : the two columns
    levels : the levels of each of them
    counts : rows for each level of the first column, by level of the second
    """

    names: tuple[str, str]
    levels: tuple[tuple[str, ...], tuple[str, ...]]
    counts: tuple[tuple[Rate, ...], ...]

    def to_frame(self) -> pd.DataFrame:
        """The counts as a frame: a row for each level of the first column, a column for each level of the second."""
        values = [[cell.value for cell in row] for row in self.counts]
        frame = frame_of(values, index=list(self.levels[0]), columns=list(self.levels[1]))
        return frame.rename_axis(index=self.names[0], columns=self.names[1])


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Correlations and covariances of the columns of numbers in which no cell may be missing.

    Attributes
    ----------
    names : tuple of str
    covariance, correlation : arrays (k, k)
        Positive semi-definite: negative eigenvalues, which noise makes, were set to 0. Covariances are in the units of their
        columns. Numbers that the noise hides are there too; a column whose variance is hidden altogether has correlations
        of 0.
    correlations, covariances : dict of (str, str) to Rate
        One number for each pair of columns, with its interval.
    """

    names: tuple[str, ...]
    covariance: Array
    correlation: Array
    correlations: Mapping[tuple[str, str], Rate]
    covariances: Mapping[tuple[str, str], Rate]

    def to_frame(self) -> pd.DataFrame:
        """The matrix of correlations, with the columns by name; NaN for pairs that the noise hides."""
        frame = frame_of(self.correlation, index=list(self.names), columns=list(self.names))
        for one, other in (pair for pair, rate in self.correlations.items() if rate.value is None):
            frame.loc[one, other] = frame.loc[other, one] = math.nan
        return frame

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        pairs = [
            {"columns": list(pair), "correlation": json_value(rate), "covariance": json_value(self.covariances[pair])}
            for pair, rate in self.correlations.items()
        ]
        return as_json(self, "names covariance correlation pairs", pairs=pairs)


def semi_definite(matrix: Array) -> tuple[Array, Array]:
    """The nearest symmetric matrix (k, k) without negative eigenvalues, and what it is with a diagonal of 1.

    A row and column whose number on the diagonal is 0 are 0 beside the diagonal in both.
    """
    values, vectors = np.linalg.eigh(matrix)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    nearest = 0.5 * (nearest + nearest.T)
    lengths = np.sqrt(np.maximum(np.diagonal(nearest), 0.0))
    scales = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > _CLOSE * lengths.max(initial=0.0))
    unit = np.clip(nearest * np.outer(scales, scales), -1.0, 1.0)
    np.fill_diagonal(unit, 1.0)
    return nearest, unit


@dataclass(frozen=True, slots=True, eq=False)
class Description(Shown):
    """A description of private rows. Public: made of one release of noisy sums and of public facts.

    Counts are not negative, the counts of each column have the total `n_rows`, and those of cross tables the counts of their
    columns as margins. A number whose interval would hold all that is possible is hidden: its value, low and high
    are None, and what it would have is part of these totals. Each interval holds its number of these very rows with
    probability `level`, by itself; it says
    nothing about a population from which the rows came.

    Attributes
    ----------
    plan : SumPlan[Tables]
        What the release cost, and its noise.
    released : ReleasedTables
        The noisy sums, of which everything else is made.
    tables : tuple of ColumnTable
        What the first of the released tables are.
    cross : tuple of pairs of int
        For each further table, the positions of its two columns among `tables`.
    wanted_quantiles : tuple of float
    level : float
        Of each interval by itself.
    public_n_rows : int or None
        The number of rows; None where it is private.
    void : str or None
        Why there is no guarantee; None if there is one.
    interrupted : tuple of str
        What is assumed of interrupted attempts under the same charge; empty if there were none.
    """

    plan: SumPlan[Tables]
    released: ReleasedTables
    tables: tuple[ColumnTable, ...]
    cross: tuple[tuple[int, int], ...]
    wanted_quantiles: tuple[float, ...]
    level: float
    public_n_rows: int | None
    void: str | None
    interrupted: tuple[str, ...] = ()

    @property
    def n_rows_is_public(self) -> bool:
        """Whether the number of rows is a public fact."""
        return self.public_n_rows is not None

    @property
    def n_rows(self) -> float:
        """The number of rows; an estimate where the number is private."""
        return common_total(self.released.counts) if self.public_n_rows is None else float(self.public_n_rows)

    @property
    def categories(self) -> tuple[DescribedCategory, ...]:
        """The columns of categories."""
        total, described = self.n_rows, []
        for table, counts in self._tables(lambda table: table.levels):
            pairs = zip(with_total(counts, total).tolist(), counts.tolist(), strict=True)
            rates = [self._count_and_share(value, raw, counts.size, total) for value, raw in pairs]
            of_levels = (dict(zip(table.levels, numbers, strict=True)) for numbers in zip(*rates, strict=True))
            described.append(DescribedCategory(table.name, *of_levels))
        return tuple(described)

    @property
    def numbers(self) -> tuple[DescribedNumber, ...]:
        """The columns of numbers."""
        pairs = zip(self._tables(lambda table: table.edges), self.released.moments, strict=True)
        return tuple(self._number(table, counts, moments, self.n_rows) for (table, counts), moments in pairs)

    @property
    def cross_tables(self) -> tuple[CrossTable, ...]:
        """The cross tables, in the order in which they were asked for."""
        if not self.cross:
            return ()
        total = self.n_rows
        margins = [with_total(counts, total) for _, counts in self._tables(lambda _: (True,))]
        crossed = []
        for pair, released in zip(self.cross, self.released.counts[len(self.tables) :], strict=True):
            first, second = map(self.tables.__getitem__, pair)
            rows, columns = (margins[place] for place in pair)
            counts = self._unbiased(released).reshape(len(rows), len(columns))
            pairs = zip(with_margins(counts, rows, columns).ravel().tolist(), counts.ravel().tolist(), strict=True)
            cells = (self._count_and_share(*pair, counts.size, float(rows.sum()))[0] for pair in pairs)
            made = tuple(tuple(islice(cells, len(columns))) for _ in rows)
            crossed.append(CrossTable((first.name, second.name), (first.levels, second.levels), made))
        return tuple(crossed)

    @property
    def correlations(self) -> Correlations | None:
        """Of the columns of numbers in which no cell may be missing; None if they were not asked for."""
        if not self.plan.query.n_crossed:
            return None
        of_numbers = zip((table for table in self.tables if table.edges), self.released.moments, strict=True)
        tables, moments = zip(*((table, both) for table, both in of_numbers if table.may_correlate), strict=True)
        # In units of half the range of each column.
        total, names = max(1.0, self.n_rows), tuple(table.name for table in tables)
        means, squares = np.clip(np.array(moments).T / total, [[-1.0], [0.0]], 1.0)
        above = np.triu_indices(len(names), 1)
        second = np.diag(squares)
        second[above] = second.T[above] = self.released.products / total
        raw = second - np.outer(means, means)
        covariance, correlation = semi_definite(raw)
        half_ranges = np.array([0.5 * (table.edges[-1] - table.edges[0]) for table in tables])
        rates, covariances = {}, {}
        for i, j in zip(*above, strict=True):
            pair, both = (names[i], names[j]), [i, j]
            ends, half = self._correlation(means[both], second[np.ix_(both, both)], total)
            value, of_both = float(correlation[i, j]), float(covariance[i, j])
            middle = float(raw[i, j]) if half else of_both
            rates[pair] = UNKNOWN if ends is None else within(value, *(ends if half else (value, value)), -1.0, 1.0)
            rate = within(of_both, middle - half, middle + half, -1.0, 1.0)
            covariances[pair] = rate.scaled(float(half_ranges[i] * half_ranges[j]))
        return Correlations(names, covariance * np.outer(half_ranges, half_ranges), correlation, rates, covariances)

    def _correlation(self, means: Array, second: Array, total: float) -> tuple[tuple[float, float] | None, float]:
        """The ends of the interval of a correlation, and half the interval of a covariance.

        Every r at which c - r w, with c the covariance and w the root of the product of the variances, is no larger than the
        noise makes it: the interval of Fieller, which keeps its level where variances are noisy. There is none where a
        variance is not known well enough to divide by.

        Parameters
        ----------
        means, second : of two columns, (2,) and (2, 2), in units of half their ranges
        total : the number of rows
        """
        covariance, variances = second[0, 1] - means[0] * means[1], np.diagonal(second) - means**2
        # How c moves with the noise of the product, the squares, the sums and the number of rows, in that order.
        of_total = 0.0 if self.n_rows_is_public else MOMENT_SCALE * math.sqrt(self._of_total)
        moves = np.array([1.0, 0.0, 0.0, *-means[::-1], of_total * (2.0 * means[0] * means[1] - second[0, 1])])
        half = self._of_moments_by(moves) / total
        doubts = deviation_of_moments(self.plan) / total * np.sqrt(1.0 + 4.0 * means**2)
        if (variances <= LEAST_SIGNAL * doubts).any():
            return None, half
        root = math.sqrt(variances[0] * variances[1])
        # And how w does: by half of it times the part by which each variance moves.
        shares = 0.5 * root / variances
        of_rows = of_total * float(shares @ (2.0 * means**2 - np.diagonal(second)))
        moves_of_root = np.array([0.0, *shares, *(-2.0 * shares * means), of_rows])
        together = moves - min(1.0, max(-1.0, covariance / root)) * moves_of_root
        times = self._of_moments_by(together) / total / math.hypot(*together)
        # (c - r w)^2 <= times^2 |moves - r moves_of_root|^2, a quadratic inequality in r.
        a = root**2 - times**2 * float(moves_of_root @ moves_of_root)
        b = covariance * root - times**2 * float(moves @ moves_of_root)
        c = covariance**2 - times**2 * float(moves @ moves)
        if a <= 0.0:
            return None, half
        apart = math.sqrt(max(0.0, b * b - a * c))
        return ((b - apart) / a, (b + apart) / a), half

    def _of_moments_by(self, weights: Array) -> float:
        """Half of the interval of a weighted sum of noises of moments."""
        squares = float(weights @ weights)
        kurtosis = self.plan.excess_kurtosis * float((weights**4).sum()) / squares**2 if squares else 0.0
        return deviation_of_moments(self.plan) * math.sqrt(squares) * quantile_of(self.level, kurtosis)

    def _unbiased(self, released: Array) -> Array:
        """The counts of one table; the error that the noise made in a public total is taken evenly from all cells."""
        return released + (self.n_rows - released.sum()) / released.size if self.n_rows_is_public else released

    def _tables(self, kind: Callable[[ColumnTable], tuple[object, ...]]) -> list[tuple[ColumnTable, Array]]:
        """The tables of the columns of a kind, each with its counts. The cross tables come after them."""
        pairs = zip(self.tables, self.released.counts, strict=False)
        return [(table, self._unbiased(counts)) for table, counts in pairs if kind(table)]

    def _count_and_share(self, value: float, raw: float, size: int, total: float) -> tuple[Rate, Rate]:
        """A count of a table of this size, and its share of all rows.

        Parameters
        ----------
        value, raw : the count, and what it was before tables were made to agree
        size : number of cells of its table
        total : the number of rows
        """
        half = self._half_width(np.eye(1, size)[0])
        if self.n_rows_is_public:
            count = within(value, raw - half, raw + half, 0.0, total)
            return count, UNKNOWN if total < 1.0 else count.scaled(1.0 / total)
        # A noisy number of rows bounds no count, and adds its own doubt to a share.
        if total < 1.0 or (half > 0.0 and raw - half <= 0.0 and raw + half >= total):
            return UNKNOWN, UNKNOWN
        of_total = self._of_total
        is_known = half == 0.0 or total >= LEAST_SIGNAL * self.plan.deviation * math.sqrt(of_total)
        share = value / total
        half_of_share = half * math.sqrt(1.0 + of_total * share * (share - 2.0 / size)) / total
        ends = raw / total - half_of_share, raw / total + half_of_share
        return within(value, raw - half, raw + half, 0.0, math.inf), within(share, *ends, 0.0, 1.0) if is_known else UNKNOWN

    @property
    def _of_total(self) -> float:
        """The variance of the number of rows in variances of a count, where it is private.

        The number is a mean of the totals of all tables, each with the weight of its variance.
        """
        return 1.0 / sum(1.0 / size for size in self.plan.query.sizes)

    def _half_width(self, weights: Array) -> float:
        """Half of the interval of a weighted sum of the counts (k,) of one table."""
        squares = float(weights @ weights)
        if self.n_rows_is_public:
            # The error of the total was taken evenly from all cells.
            squares -= float(weights.sum()) ** 2 / weights.size
        if self.plan.lattice is None or squares <= 0.0:
            return 0.0
        kurtosis = self.plan.excess_kurtosis * float((weights**4).sum()) / squares**2
        return float(self.plan.deviation) * math.sqrt(squares) * quantile_of(self.level, min(kurtosis, 3.0))

    def _of_moments(self, squares: float) -> float:
        """Half of the interval of a sum with noise of `squares` times the variance of a moment, two of them or more."""
        kurtosis = 0.5 * self.plan.excess_kurtosis
        return deviation_of_moments(self.plan) * math.sqrt(squares) * quantile_of(self.level, kurtosis)

    def _number(self, table: ColumnTable, counts: Array, moments: Array, total: float) -> DescribedNumber:
        bins = len(table.edges) - 1
        present = float(counts[:bins].sum()) if table.has_missing else total
        missing = None
        if table.has_missing:
            raw = float(counts[-1])
            _, missing = self._count_and_share(min(total, max(0.0, raw)), raw, counts.size, total)
        # Too few cells, or too much noise, to divide by.
        is_hidden = present < max(1.0, LEAST_SIGNAL * deviation_of_moments(self.plan))
        mean, deviation = (UNKNOWN, UNKNOWN) if is_hidden else self._mean_and_deviation(table, moments, present)
        values = {q: UNKNOWN if is_hidden else self._quantile_of(table, counts, q) for q in self.wanted_quantiles}
        rows = tuple(with_total(counts[:bins], max(0.0, min(present, total))).tolist())
        return DescribedNumber(table.name, mean, deviation, values, missing, rows, table.edges, table.unit)

    def _mean_and_deviation(self, table: ColumnTable, moments: Array, present: float) -> tuple[Rate, Rate]:
        """Of the cells that are not missing, in the unit of the column; by the delta method."""
        low, high = table.edges[0], table.edges[-1]
        half_range, middle = 0.5 * (high - low), 0.5 * (high + low)
        first, second = float(np.clip(moments[0] / present, -1.0, 1.0)), float(np.clip(moments[1] / present, 0.0, 1.0))
        # The number of cells is noisy where some may be missing.
        of_cells = np.array([*np.ones(len(table.edges) - 1), *np.zeros(int(table.has_missing))])
        cells = self._half_width(of_cells) / present if table.has_missing or not self.n_rows_is_public else 0.0
        half = math.hypot(self._of_moments(1.0) / present, first * cells)
        mean = within(first, first - half, first + half, -1.0, 1.0)
        variance = second - first**2
        doubt = math.hypot(self._of_moments(1.0 + 4.0 * first**2) / present, (second - 2.0 * first**2) * cells)
        squared = within(variance, variance - doubt, variance + doubt, 0.0, 1.0)
        return mean.scaled(half_range, middle), squared.mapped(math.sqrt).scaled(half_range)

    def _quantile_of(self, table: ColumnTable, counts: Array, q: float) -> Rate:
        """A quantile and the edges between which it lies, from the noisy numbers of cells below each edge.

        D_j is the number of cells below edge j, less q times that of all cells. Below the quantile D is negative, and from
        it on it is not. An edge is ruled out as lying below where D_j is negative beyond its noise, and above where it is
        positive so.
        """
        bins = len(table.edges) - 1
        below = np.tri(bins + 1, bins, -1)  # (edges, bins): which bins lie below an edge
        weights = np.hstack([below - q, np.zeros((bins + 1, int(table.has_missing)))])
        differences = weights @ counts
        halves = np.array([self._half_width(row) for row in weights])
        edges = np.array(table.edges)
        # At the outer edges all is known: no cell lies below the first, and every one below the last or on it.
        inner = np.arange(1, bins)
        lower = inner[differences[inner] + halves[inner] >= 0.0]
        upper = inner[differences[inner] - halves[inner] < 0.0]
        low = edges[lower[0] - 1] if lower.size else edges[-2]
        high = edges[upper[-1] + 1] if upper.size else edges[1]
        rising = with_total(counts[:bins], max(1.0, float(counts[:bins].sum()))).cumsum()
        value = float(np.interp(q * rising[-1], [0.0, *rising], edges))
        return UNKNOWN if low >= high else within(value, float(low), float(high), float(edges[0]), float(edges[-1]))

    def to_frame(self) -> pd.DataFrame:
        """One row for each number: column, statistic, level or quantile, value, low, high. NaN where the noise hides it."""
        lines: list[tuple[Any, ...]] = []
        for category in self.categories:
            for level, count in category.counts.items():
                lines += [(category.name, "count", level, count), (category.name, "share", level, category.shares[level])]
        for number in self.numbers:
            lines += [(number.name, "mean", "", number.mean), (number.name, "standard deviation", "", number.deviation)]
            lines += [(number.name, "quantile", f"{q:g}", rate) for q, rate in number.quantiles.items()]
            if number.missing is not None:
                lines.append((number.name, "share missing", "", number.missing))
        if found := self.correlations:
            for (name, other), rate in found.correlations.items():
                lines.append((name, "correlation", other, rate))
                lines.append((name, "covariance", other, found.covariances[name, other]))
        rows = [(*labels, rate.value, rate.low, rate.high) for *labels, rate in lines]
        names = ["column", "statistic", "of", "value", "low", "high"]
        return frame_of(rows, columns=names).astype(dict.fromkeys(names[3:], float))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            **as_json(self, "n_rows n_rows_is_public level"),
            "categories": {category.name: json_value(category.counts) for category in self.categories},
            "numbers": {
                number.name: ({} if number.unit is None else {"unit": number.unit})
                | {
                    "mean": number.mean.to_dict(),
                    "standard_deviation": number.deviation.to_dict(),
                    "quantiles": {f"{q:g}": rate.to_dict() for q, rate in number.quantiles.items()},
                    "share_missing": json_value(number.missing),
                    "histogram": {"edges": list(number.edges), "rows": list(number.histogram)},
                }
                for number in self.numbers
            },
            "cross_tables": [
                as_json(table, "columns levels counts", columns=list(table.names)) for table in self.cross_tables
            ],
            **({} if (found := self.correlations) is None else {"correlations": found.to_dict()}),
            **as_json(self.plan, "budget neighbours"),
            "noise_deviation": self.plan.deviation,
            **as_json(self, "void interrupted"),
        }

    def blocks(self) -> Iterator[Block]:
        """Numbers and levels with their intervals, cross tables, and what all of it cost."""
        number = f"{self.n_rows:,.0f} rows"
        rows = number if self.n_rows_is_public else f"about {number}, a noisy number"
        yield heading(f"Description of {rows}, with intervals at {self.level:g}")
        if self.numbers:
            cells = [row for number in self.numbers for row in number.cells()]
            yield Block("table", cells, ("column", "number", "value", "low", "high"), words=("number",))
        if found := self.correlations:
            yield heading("Correlations")
            pairs = [(*pair, *rate.texts(2)) for pair, rate in found.correlations.items()]
            yield Block("table", pairs, ("column", "with", "correlation", "low", "high"), words=("with",))
            if others := [table.name for table in self.tables if table.edges and not table.may_correlate]:
                yield text(wording("columns without correlations", names=listed(others)))
        for category in self.categories:
            yield heading(category.name)
            yield Block("table", category.cells(), ("level", "rows", "share", "low", "high"))
        for crossed in self.cross_tables:
            yield heading(f"{crossed.names[0]} by {crossed.names[1]}")
            lines = zip(crossed.levels[0], crossed.counts, strict=True)
            rows_of_levels = [(level, *map(shown_count, row)) for level, row in lines]
            yield Block("table", rows_of_levels, (crossed.names[0], *crossed.levels[1]))
        yield text(
            *void_first(self.void),
            f"All of it is one release, with {self.plan.budget} ({self.plan.neighbours}). Each count has noise of standard "
            f"deviation {self.plan.deviation:.3g}. Intervals are about these rows; they say nothing about a population.",
            *self.interrupted,
        )


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """A table of a release: the levels of one column by cell; or the bins of its numbers, and a cell for missing ones.

    Parameters
    ----------
    name : of the column
    levels : of a category; none for a number
    edges : ends of the bins of a number in the unit of the column, rising, from its low to its high
    has_missing : whether the last cell is that of missing numbers
    unit : of the numbers, if the schema names one
    """

    name: str
    levels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    has_missing: bool = False
    unit: str | None = None

    @property
    def may_correlate(self) -> bool:
        """Whether the column has a correlation with others: it is one of numbers, of which none may be missing."""
        return bool(self.edges) and not self.has_missing

    @property
    def n_cells(self) -> int:
        """How many cells the table has."""
        return len(self.levels) or len(self.edges) - 1 + self.has_missing


def _percent(rate: Rate) -> tuple[str, str, str]:
    """A share in percent, and its interval."""
    value, low, high = rate.scaled(100.0).texts(1, places_of_exact=1)
    return (value, low, high) if rate.value is None else (f"{value}%", f"{low}%", f"{high}%")


def checked_quantiles(quantiles: Any) -> tuple[float, ...]:
    """Quantiles strictly between 0 and 1, in rising order; there may be none."""
    given = tuple(quantiles) if is_list(quantiles) else (None,)
    if not all(is_number(q) and 0.0 < q < 1.0 for q in given) or list(given) != sorted(set(given)):
        raise ParameterError("quantiles must be numbers strictly between 0 and 1, in rising order, as (0.25, 0.5, 0.75).")
    return tuple(map(float, given))
