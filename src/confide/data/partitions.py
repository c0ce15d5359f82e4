"""Sums over rows whose partitions live in several processes: each sends its totals, and totals are added in a tree.

What a worker runs is a pure function of its partition and of a `Task`. A cluster that runs one twice, because a worker was
lost or slow, takes one of the results. Each result says of which partitions it is, how many rows it counted, and a
fingerprint of those rows as they were decoded; the driver compares with what was checked before the charge. So every pass is
over the same rows, in the same partitions. In which partition a row lies, and where in it, decides how sums are rounded,
which every plan allows for, and which rows a solver has in its sample, which nobody trusts; nothing else. Noise, ledger and
certificate never leave the driver.

Workers return what they refuse, and never raise: a cluster writes errors to logs, beside what the function was called with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from confide.data.arrays import (
    ArrayBlocks,
    CopiedBlocks,
    CountedBlock,
    MemorySource,
    most_in_sample,
    rows_in_block,
    sample_stride,
    sampled_positions,
    sum_over_groups,
)
from confide.data.checked_source import CheckedPass, RowsWithDefaults
from confide.data.fingerprints import Fingerprint
from confide.data.on_disk import changed
from confide.data.passes import Pass
from confide.data.source import BlockwiseSum, SummableRows
from confide.data.streams import NumberTarget, Reading, counts_of, source_of
from confide.erm.row_sums import Totals
from confide.errors import FileError, InputError
from confide.features.column_names import listed
from confide.features.fourier import FourierMap
from confide.features.labels import (
    DIFFERENT_NUMBERS_OF_ROWS,
    NOT_FINITE,
    UNDECLARED_CLASS,
    class_positions,
    read_targets,
    targets_at,
)
from confide.features.schema import Schema
from confide.types import Array, Rows, Targets, Weights

_SHARE_OF_A_SAMPLE = 4
"""A sample travels, and is copied at each node of the tree: it has so much less room than in memory."""
FAN_IN = 8
"""Totals that are added at one node of the tree, in pairs: three additions a level, so 32 are enough for 8^10 partitions."""


@dataclass(frozen=True, slots=True)
class NumericPiece:
    """Some numeric rows and their labels as -1 and +1, or targets. It holds data."""

    rows: Rows
    labels: Targets

    used: ClassVar[frozenset[str]] = frozenset()

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All that it holds, in order."""
        return self.rows, self.labels


@dataclass(frozen=True, slots=True)
class NumericReading:
    """How numeric rows with labels become blocks: `Reading` without a schema.

    Parameters
    ----------
    n_inputs : number of columns
    domain : the labels; of two the one that becomes -1 first
    class_weights : what a row of each of them counts, or None where every row counts 1
    fourier : a public map that rows pass through, or None
    numbers : what is to be predicted in place of labels, or None
    """

    n_inputs: int
    domain: tuple[Any, ...]
    class_weights: tuple[float, ...] | None = None
    fourier: FourierMap | None = None
    numbers: NumberTarget | None = None

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""
        return self.n_inputs if self.fourier is None else self.fourier.n_features

    def piece(self, given: tuple[Any, Any], *, refuse: bool) -> NumericPiece:
        """Rows and labels, checked or let pass."""
        rows, labels = (np.asarray(part) for part in given)
        rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
        if refuse and rows.shape != (labels.size, self.n_inputs):
            raise InputError(DIFFERENT_NUMBERS_OF_ROWS)
        # The ends are finite where all numbers are, and cheaper to find than to ask each number.
        usable = rows
        if not (np.isfinite(rows.min(initial=0.0)) and np.isfinite(rows.max(initial=0.0))):
            if refuse:
                raise InputError(NOT_FINITE)
            usable = np.where(np.isfinite(rows), rows, 0.0).astype(rows.dtype)
        if self.numbers is not None:
            return NumericPiece(usable, read_targets(labels, counts=self.numbers.counts, refuse=refuse))
        positions = class_positions(labels, self.domain)
        if refuse and (positions < 0).any():
            raise InputError(UNDECLARED_CLASS)
        # After the charge an unknown label, which cannot be refused any more, counts as the first class.
        positions = np.maximum(positions, 0)
        return NumericPiece(usable, targets_at(positions, len(self.domain)))

    def refuse_unused(self, used: frozenset[str]) -> None:
        """Nothing is known of numeric columns that rows could contradict."""

    def source(self, piece: NumericPiece) -> MemorySource:
        """The rows of a piece, in memory."""
        counts = counts_of(piece.labels, self.class_weights)
        return source_of(ArrayBlocks(piece.rows), piece.labels, counts, self.fourier)


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """What is to be done with each partition: checked, summed over or sampled. Its repr shows nothing: it comes into logs.

    Parameters
    ----------
    reading : how raw rows become blocks
    row_sum : what is summed, None to check
    weights : (k, D) at which, None to check
    stride : every so many-th run of rows is wanted, 0 to check or sum
    """

    reading: Reading | NumericReading
    row_sum: BlockwiseSum | None = None
    weights: Weights | None = None
    stride: int = 0

    def __repr__(self) -> str:
        return "Task()"

    def run(self, part: int, pieces: Callable[[bool], Iterator[Any]]) -> Outcome:
        """The outcome for one partition, whose pieces are read refusing or not."""
        n_rows, fingerprint, used = 0, Fingerprint(), frozenset[str]()

        def seen(refuse: bool) -> Iterator[Any]:
            nonlocal n_rows
            for piece in pieces(refuse):
                fingerprint.add(piece.arrays)
                yield piece
                n_rows += piece.labels.size

        def groups() -> Iterator[Iterator[CountedBlock]]:
            for piece in seen(False):
                yield from self.reading.source(piece).groups()

        def sampled() -> Iterator[MemorySource]:
            for piece in seen(False):
                wanted = sampled_positions(n_rows, n_rows + piece.labels.size, self.stride) - n_rows
                yield self.reading.source(piece).copied(wanted)

        refusal, totals, sample = None, None, None
        # Warnings would depend on the data. The driver's settings do not reach here.
        with np.errstate(all="ignore"), threadpool_limits(limits=1, user_api="blas"):
            try:
                if self.stride:
                    sample = Sample.of(list(sampled()))
                elif self.row_sum is None or self.weights is None:
                    for piece in seen(True):
                        used |= piece.used
                else:
                    totals = sum_over_groups(self.row_sum, groups(), self.reading.n_features, self.weights)
            except (InputError, FileError) as error:
                refusal = str(error)
            except Exception as error:  # noqa: BLE001 - its message may hold data, and would go to the logs of a cluster
                refusal = f"a worker failed with {type(error).__name__}."
        return Outcome((Seen(part, n_rows, fingerprint.digest()),), totals, refusal, sample, used)


@dataclass(frozen=True, slots=True, repr=False)
class Sample:
    """Some encoded rows of partitions, their labels and what they count; nothing where all count 1. It holds data."""

    rows: Array
    labels: Targets
    counts: Array

    def __repr__(self) -> str:
        return "Sample()"

    @classmethod
    def of(cls, sources: Sequence[MemorySource]) -> Sample | None:
        """All rows of some sources, None for none of them."""
        if not sources:
            return None
        rows = [source.blocks.block(0, source.n_rows) for source in sources]
        counts = [np.empty(0) if source.row_weights is None else source.row_weights for source in sources]
        return cls(np.concatenate(rows), np.concatenate([source.labels for source in sources]), np.concatenate(counts))

    def __add__(self, other: Sample) -> Sample:
        return Sample(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.counts, other.counts]),
        )


@dataclass(frozen=True, slots=True, repr=False, order=True)
class Seen:
    """What a pass saw of one partition: its number, how many rows it has, and their fingerprint. Its repr shows nothing."""

    part: int
    n_rows: int
    fingerprint: bytes

    def __repr__(self) -> str:
        return "Seen()"


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """What partitions give. It holds data; its repr shows none.

    Parameters
    ----------
    seen : of each partition
    totals : sums over all their rows, not completed; None where they were checked or refused
    refusal : what is wrong, or None
    sample : some rows, where they were asked for
    used : the columns that their rows use, where they were checked
    """

    seen: tuple[Seen, ...]
    totals: Totals | None
    refusal: str | None
    sample: Sample | None = None
    used: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return "Outcome()"

    def __add__(self, other: Outcome) -> Outcome:
        totals = None
        if self.totals is not None and other.totals is not None:
            totals = Totals(*(a + b for a, b in zip(_sums(self.totals), _sums(other.totals), strict=True)))
        return Outcome(
            self.seen + other.seen,
            totals,
            self.refusal if other.refusal is None else other.refusal,
            other.sample if self.sample is None else self.sample if other.sample is None else self.sample + other.sample,
            self.used | other.used,
        )


def _sums(totals: Totals) -> tuple[Array, Array, Array]:
    return totals.value, totals.gradient, totals.hessian


def added(outcomes: Sequence[Outcome]) -> Outcome:
    """All outcomes as one, added in pairs of neighbours, pairs of pairs and so on. The given ones stay as they are."""
    left = list(outcomes)
    while len(left) > 1:
        left = [left[i] + left[i + 1] if i + 1 < len(left) else left[i] for i in range(0, len(left), 2)]
    return left[0]


Result = TypeVar("Result")


def computed(compute: Callable[[], Result]) -> Result:
    """What a cluster computes. Its own errors, which may quote cells, are named by their type alone."""
    try:
        return compute()
    except Exception as error:  # noqa: BLE001 - see above
        failure = type(error).__name__
    raise FileError(
        f"the cluster failed with {failure}, so nothing is released; what was charged stays charged. Compute the partitions "
        f"without confide to see why, and see that all workers have confide."
    )


def refuse_persons(schema: Schema | None) -> None:
    """Rows beyond a person's share can only be told where all rows are seen."""
    if schema is not None and schema.person is not None:
        raise InputError(
            "the rows of one person may lie in several partitions, so a schema with a person needs rows in memory or files "
            "read without a cluster; or leave the person out of the schema and declare max_rows_per_person."
        )


def names_in(columns: Iterable[str], schema: Schema, target: str | None = None) -> list[str]:
    """The columns of a schema and its target, or a column of numbers in its place, if a collection has each of them once."""
    present = list(columns)
    if target is None and schema.target is not None:
        target = schema.target.column
    names = [*schema.column_names, *(() if target is None else (target,))]
    absent = [name for name in names if present.count(name) != 1]
    if absent:
        raise InputError(f"the frame lacks columns that the schema describes, or has them twice: {listed(absent)}.")
    return names


@dataclass(frozen=True, slots=True)
class PartitionedSource(RowsWithDefaults, SummableRows):
    """A `RowSource` over partitions elsewhere.

    Parameters
    ----------
    run : gives the outcome of a task over all partitions, added up
    reading : how raw rows become blocks
    seen : each partition as it was when it was checked, in order
    """

    run: Callable[[Task], Outcome]
    reading: Reading | NumericReading
    seen: tuple[Seen, ...]

    @classmethod
    def checked(cls, run: Callable[[Task], Outcome], reading: Reading | NumericReading) -> CheckedPass:
        """All partitions read once and checked.

        Raises
        ------
        InputError
            If a row cannot be used; without any value from it.
        """
        passing = Pass("checking")
        outcome = run(Task(reading))
        if outcome.refusal is not None:
            raise InputError(outcome.refusal)
        source = cls(run, reading, tuple(sorted(outcome.seen)))
        if source.n_rows == 0:
            raise InputError("the partitions have no rows; at least one is needed.")
        reading.refuse_unused(outcome.used)
        passing.used(source.n_rows)
        return CheckedPass(source, source.n_rows)

    @property
    def n_features(self) -> int:
        return self.reading.n_features

    @property
    def n_rows(self) -> int:
        return sum(seen.n_rows for seen in self.seen)

    @property
    def assumption(self) -> str:
        return (
            "Every row lay in exactly one partition, and each partition came out the same whenever it was computed; one "
            "that differed between two passes would have been refused, and that none was is not protected."
        )

    def sample(self, n_rows: int) -> MemorySource:
        """About so many of the rows, brought here in a pass of its own. For solvers, which are not trusted."""
        most = most_in_sample(self.n_features) // _SHARE_OF_A_SAMPLE
        outcome = self._outcome(Task(self.reading, stride=sample_stride(self.n_rows, min(n_rows, most))))
        sample = outcome.sample
        if sample is None:
            raise changed("what the partitions hold")
        counts = sample.counts if sample.counts.size else None
        return MemorySource(CopiedBlocks(sample.rows, rows_in_block(self.n_features)), sample.labels, counts)

    def _outcome(self, task: Task) -> Outcome:
        passing = Pass("training")
        outcome = self.run(task)
        if outcome.refusal is not None:
            raise FileError(f"{outcome.refusal} Nothing is released; what was charged stays charged.")
        # Each partition once, and with the rows that it had.
        if tuple(sorted(outcome.seen)) != self.seen:
            raise changed("what the partitions hold")
        passing.used(self.n_rows)
        return outcome

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        outcome = self._outcome(Task(self.reading, row_sum, weights))
        if outcome.totals is None:
            raise changed("what the partitions hold")
        return row_sum.completed(outcome.totals)
