"""Sums over rows whose partitions live in several processes. Each worker sends its totals, and a tree adds them up.

A worker runs a pure function of its partition and of a `Task`. If a cluster runs it twice, because a worker was lost or
slow, the cluster keeps one of the results. Each result names its partitions, their numbers of rows, and a fingerprint of the
decoded rows of each. The driver compares them with those of the check before the charge. So every pass is over the same
rows in the same partitions.

The partition of a row and its place there influence two things: how sums are rounded, for which every plan makes allowance,
and which rows a solver finds in its sample, which no guarantee depends on. Noise, ledger and certificate stay on the driver.

Workers return a refusal as a value and never raise, because a cluster writes errors to logs, together with the arguments of
the function that failed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array, Rows, Targets, Weights
from confide.data.arrays import (
    ArrayBlocks,
    CheckedPass,
    CheckedSource,
    Group,
    MemorySource,
    RowMapChange,
    most_in_sample,
    sample_stride,
    sampled_positions,
    sum_over_groups,
)
from confide.data.files import changed
from confide.data.streams import Fingerprint, Reading, memory_source, weights_by_class
from confide.erm.coded_rows import dense
from confide.erm.row_sums import Totals
from confide.erm.source import BlockwiseSum
from confide.errors import ConfideError, FileError, InputError, ParameterError, wording
from confide.features.canonical_labels import Label
from confide.features.cells import (
    DIFFERENT_NUMBERS_OF_ROWS,
    NOT_FINITE,
    UNDECLARED_CLASS,
    NumberTarget,
    class_positions,
    targets_at,
)
from confide.features.forms import RowMap
from confide.features.schema import Schema
from confide.features.table import RowsPerPerson
from confide.known_words import listed
from confide.threads import Pass, one_blas_thread

_SAMPLE_REDUCTION = 4
"""The sample of a cluster may take this many times less memory than a sample of rows in memory, because it travels to the
driver and each node of the tree copies it."""
Result = TypeVar("Result")
SUMS = ("value", "gradient", "hessian")
"""Names of the arrays of `Totals` where they travel."""
NO_ROWS = "the partitions have no rows; at least one row is needed."
FAN_IN = 8
"""How many outcomes one node of the tree adds up. It adds them in pairs, so the additions have depth 3 on each level, and
a depth of 32 suffices for 8^10 partitions."""


@dataclass(frozen=True, slots=True)
class LabelledArrays:
    """Some numeric rows with their labels (-1 and +1, or positions of classes) or targets. It holds data."""

    rows: Rows
    labels: Targets

    used: ClassVar[frozenset[str]] = frozenset()

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Both arrays, in a fixed order."""
        return self.rows, self.labels


@dataclass(frozen=True, slots=True)
class NumericReading:
    """How numeric rows with labels become blocks. It is to arrays what `Reading` is to tables with a schema.

    Parameters
    ----------
    n_inputs : number of columns
    domain : the labels; of two labels, the first becomes -1
    class_weights : the weight of a row of each class, or None if every row counts 1
    fourier : a public map that is applied to rows, or None
    numbers : the numbers that a regression predicts, or None if labels are predicted
    """

    n_inputs: int
    domain: tuple[Label, ...]
    class_weights: tuple[float, ...] | None = None
    fourier: RowMap | None = None
    numbers: NumberTarget | None = None

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""
        return self.n_inputs if self.fourier is None else self.fourier.n_features

    def piece(self, given: tuple[Any, Any], *, refuse: bool) -> LabelledArrays:
        """Rows and labels, with or without refusing entries that cannot be used."""
        rows, labels = (np.asarray(part) for part in given)
        rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
        if refuse and rows.shape != (labels.size, self.n_inputs):
            raise InputError(DIFFERENT_NUMBERS_OF_ROWS)
        # The smallest and the largest number are finite only if all numbers are. To find them is cheaper than to test each.
        usable = rows
        if not (np.isfinite(rows.min(initial=0.0)) and np.isfinite(rows.max(initial=0.0))):
            if refuse:
                raise InputError(NOT_FINITE)
            usable = np.where(np.isfinite(rows), rows, 0.0).astype(rows.dtype)
        if self.numbers is not None:
            return LabelledArrays(usable, self.numbers.read(labels, refuse=refuse))
        positions = class_positions(labels, self.domain)
        if refuse and (positions < 0).any():
            raise InputError(UNDECLARED_CLASS)
        # After the charge nothing is refused any more, so an unknown label counts as the first class.
        return LabelledArrays(usable, targets_at(np.maximum(positions, 0), len(self.domain)))

    def refuse_unused(self, used: frozenset[str]) -> None:
        """Refuse nothing: without a schema, nothing is declared about the columns."""

    def source(self, piece: LabelledArrays) -> MemorySource:
        """A source in memory of the rows of one piece."""
        row_weights = weights_by_class(piece.labels, self.class_weights)
        return memory_source(ArrayBlocks(piece.rows), piece.labels, row_weights, self.fourier)


AnyReading: TypeAlias = Reading | NumericReading


def _kind_alone(value: object) -> str:
    """What clusters write to logs: nothing but the kind of a value."""
    return f"{type(value).__name__}()"


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """What is done with each partition: its rows are checked, summed over, counted, or sampled.

    Its repr shows nothing, because clusters write it to logs.

    Parameters
    ----------
    reading : how raw rows become blocks
    row_sum : the sum to be computed, or None
    weights : the (k, D) weights at which it is computed, or None
    stride : the sample takes one of every `stride` runs of rows; 0 for no sample
    of_piece : makes integers of the rows of a piece, which are added up; or None. Without it, a sum and a stride the rows
        are checked
    n_integers : how many integers it makes
    """

    reading: AnyReading
    row_sum: BlockwiseSum | None = None
    weights: Weights | None = None
    stride: int = 0
    of_piece: Callable[[MemorySource], NDArray[np.int64]] | None = None
    n_integers: int = 0

    __repr__ = _kind_alone

    def run(self, partition: int, pieces: Callable[[bool], Iterator[Any]]) -> Outcome:
        """The outcome for one partition.

        Parameters
        ----------
        partition : its number
        pieces : reads its pieces; the argument says whether cells that cannot be used are refused
        """
        n_rows, fingerprint, used = 0, Fingerprint(), frozenset[str]()

        def fingerprinted(refuse: bool) -> Iterator[Any]:
            nonlocal n_rows
            for piece in pieces(refuse):
                fingerprint.add(piece.arrays)
                yield piece
                n_rows += piece.labels.size

        def groups() -> Iterator[Group]:
            for piece in fingerprinted(False):
                yield from self.reading.source(piece).groups()

        def sampled() -> Iterator[Sample]:
            for piece in fingerprinted(False):
                wanted = sampled_positions(n_rows, n_rows + piece.labels.size, self.stride) - n_rows
                some = self.reading.source(piece).copied(wanted)
                counts = np.empty(0) if some.row_weights is None else some.row_weights
                yield dense(some.blocks.block(0, some.n_rows)), some.labels, counts

        refusal: str | None = None
        totals: Totals | None = None
        sample: Sample | None = None
        # Warnings would depend on the data. A worker has settings of its own, so those of the driver have no effect here.
        with np.errstate(all="ignore"), one_blas_thread():
            try:
                if self.stride:
                    parts = [np.concatenate(part) for part in zip(*sampled(), strict=True)]
                    sample = (parts[0], parts[1], parts[2]) if parts else None
                elif self.of_piece is not None:
                    counted = np.zeros(self.n_integers, dtype=np.int64)
                    for piece in fingerprinted(False):
                        counted += self.of_piece(self.reading.source(piece))
                    # Integers below 2^53, so the doubles in which they travel are exact.
                    totals = Totals(np.empty(0), counted.astype(np.float64), np.empty(0))
                elif self.row_sum is None or self.weights is None:
                    for piece in fingerprinted(True):
                        used |= piece.used
                else:
                    totals = sum_over_groups(self.row_sum, groups(), self.reading.n_features, self.weights)
            except ConfideError as error:
                refusal = str(error)
            except Exception as error:  # noqa: BLE001 - its message may hold data, and clusters log it
                refusal = f"a worker failed with {type(error).__name__}."
        return Outcome(((partition, n_rows, fingerprint.digest()),), totals, refusal, sample, used)


Record: TypeAlias = tuple[int, int, bytes]
"""What identifies the rows of one partition in one pass: its number, its number of rows and their fingerprint."""
Sample: TypeAlias = tuple[Array, Targets, Array]
"""Some encoded rows, with labels and weights of rows (empty if all rows count 1)."""


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The result of a task on one or several partitions. It holds data; its repr shows none.

    Parameters
    ----------
    partitions : the record of each partition
    totals : sums over all their rows, not yet completed; None if no sum was asked for or the rows were refused
    refusal : the reason for a refusal, or None
    sample : some rows, if a sample was asked for
    used : names of the columns that these rows use, if the rows were checked
    """

    partitions: tuple[Record, ...]
    totals: Totals | None
    refusal: str | None
    sample: Sample | None = None
    used: frozenset[str] = frozenset()

    __repr__ = _kind_alone

    def __add__(self, other: Outcome) -> Outcome:
        totals, sample = self.totals, self.sample or other.sample
        if totals is not None:
            totals = None if other.totals is None else Totals(*map(np.add, totals, other.totals))
        if self.sample is not None and other.sample is not None:
            together: Any = tuple(np.concatenate(parts) for parts in zip(self.sample, other.sample, strict=True))
            sample = together
        refusal = self.refusal if other.refusal is None else other.refusal
        return Outcome(self.partitions + other.partitions, totals, refusal, sample, self.used | other.used)


def sum_of_outcomes(outcomes: Sequence[Outcome]) -> Outcome:
    """All outcomes as one. Neighbours are added in pairs, then pairs of pairs, and so on. The arguments are not changed."""
    left = list(outcomes)
    while len(left) > 1:
        left = [left[i] + left[i + 1] if i + 1 < len(left) else left[i] for i in range(0, len(left), 2)]
    return left[0]


def computed_by_cluster(compute: Callable[[], Result]) -> Result:
    """The result of a computation on a cluster.

    An error of the cluster may quote cells, so the FileError that replaces it names the type of the error alone.
    """
    try:
        return compute()
    except Exception as error:  # noqa: BLE001 - see the docstring
        failure = type(error).__name__
    raise FileError(wording("cluster failed", failure=failure))


def refuse_persons(schema: Schema | None) -> None:
    """Refuse a schema with a column of persons or cohorts. Which rows count is decided by a process that reads all rows."""
    if schema is not None and schema.choosing is not None:
        raise InputError(wording("persons over partitions"))


def columns_to_read(columns: Iterable[str], schema: Schema, target: str | None = None) -> list[str]:
    """Names of the columns that a fit reads from a collection: those of the schema, weight, exposure and target.

    Parameters
    ----------
    columns : the columns of the collection
    schema : of the rows
    target : the column of numbers that a regression predicts, or None for the target of the schema

    Raises
    ------
    InputError
        If the collection lacks one of the columns, or has it twice.
    """
    present = list(columns)
    if target is None and schema.target is not None:
        target = schema.target.column
    names = [*schema.raw_names, *(one.column for one in schema.beside), *(() if target is None else (target,))]
    absent = [name for name in names if present.count(name) != 1]
    if absent:
        raise InputError(f"the frame lacks columns that the schema describes, or has them twice: {listed(absent)}.")
    return names


@dataclass(frozen=True, slots=True, repr=False)
class PartitionedSource(CheckedSource):
    """A `RowSource` over partitions in other processes.

    Parameters
    ----------
    run : runs a task on all partitions and returns the sum of their outcomes
    reading : how raw rows become blocks
    partitions : the record of each partition from the check, in ascending order
    """

    run: Callable[[Task], Outcome]
    reading: AnyReading
    partitions: tuple[Record, ...]

    __repr__ = _kind_alone

    @classmethod
    def checked(cls, run: Callable[[Task], Outcome], reading: AnyReading) -> CheckedPass:
        """Read all partitions once and check them.

        Raises
        ------
        InputError
            If a row cannot be used. The message shows no value of the row.
        """
        passing = Pass("checking")
        outcome = run(Task(reading))
        if outcome.refusal is not None:
            raise InputError(outcome.refusal)
        source = cls(run, reading, tuple(sorted(outcome.partitions)))
        if source.n_rows == 0:
            raise InputError(NO_ROWS)
        reading.refuse_unused(outcome.used)
        passing.used(source.n_rows)
        return source, source.n_rows

    @property
    def n_features(self) -> int:
        return self.reading.n_features

    @property
    def n_rows(self) -> int:
        return sum(n_rows for _, n_rows, _ in self.partitions)

    place: ClassVar[str] = "partitions"

    def sample(self, n_rows: int) -> MemorySource:
        """About `n_rows` of the rows, brought to the driver in one pass. For solvers, which are not trusted."""
        stride = sample_stride(self.n_rows, min(n_rows, most_in_sample(self.n_features) // _SAMPLE_REDUCTION))
        sample = self._outcome(Task(self.reading, stride=stride), "training", lambda outcome: outcome.sample)
        rows, labels, counts = sample
        return MemorySource(ArrayBlocks(rows, are_copies=True), labels, counts if counts.size else None)

    def remapped(self, change: RowMapChange) -> PartitionedSource:
        reading: Any = self.reading
        return replace(self, reading=reading.remapped(change))

    def with_atoms(self, atoms: tuple[tuple[float, ...], ...]) -> PartitionedSource:
        reading: Any = self.reading
        return replace(self, reading=replace(reading, atoms=atoms))

    def _outcome(self, task: Task, purpose: str, wanted: Callable[[Outcome], Result | None]) -> Result:
        """What is wanted of the outcome of a task over the same rows as in the check."""
        passing = Pass(purpose)
        outcome = self.run(task)
        if outcome.refusal is not None:
            raise FileError(f"{outcome.refusal} Nothing is released; what was charged stays charged.")
        # Every partition must occur once, with the same rows as in the check.
        if tuple(sorted(outcome.partitions)) != self.partitions or (made := wanted(outcome)) is None:
            raise changed("what the partitions hold")
        passing.used(self.n_rows)
        return made

    def sum_of_pieces(self, of_piece: Callable[[MemorySource], NDArray[np.int64]], n_integers: int) -> NDArray[np.int64]:
        task = Task(self.reading, of_piece=of_piece, n_integers=n_integers)
        return self._outcome(task, "scoring", lambda outcome: outcome.totals).gradient.astype(np.int64)

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        task = Task(self.reading, row_sum, weights)
        return row_sum.completed(self._outcome(task, "training", lambda outcome: outcome.totals))


# The interface of rows that lie outside of the memory of this process and bring their own labels or targets.

NO_MOMENTS = "the parties send no sums for intervals; set inference_share to 0 for their rows."


class OpenedRows(ABC):
    """Raw rows with their labels or targets, which lie in files, on a cluster or with other parties.

    Attributes
    ----------
    schema : the public description of the columns, with a target; None for numeric arrays
    target : the column of numbers that a regression predicts, or None for the target of the schema
    n_inputs : number of columns of numeric arrays
    lies_here : whether this process reads the rows itself; only then can it divide and score them
    scores_rows : whether a process of ours, here or on a cluster, reads the rows and can score them one by one
    gives_moments : whether the moments that intervals are made of can be summed over the rows
    """

    __slots__ = ()

    schema: Schema | None
    target: str | None = None
    n_inputs: int = 0
    lies_here: ClassVar[bool] = False
    scores_rows: ClassVar[bool] = True
    gives_moments: ClassVar[bool] = True

    def labels_present(self) -> Any:
        """Labels among which every distinct label occurs at least once. Needed where no schema declares the classes."""
        raise ParameterError("the classes of these rows are not known: give `classes`, or a schema with a target.")

    @abstractmethod
    def count(self) -> int:
        """The number of rows, for choices that depend on a public number of rows, before the rows are checked.

        Raises
        ------
        InputError, FileError
            If there are no rows, or they cannot be counted.
        ParameterError
            If these rows are not counted before the check. The message says what to give instead.
        """

    @abstractmethod
    def checked(
        self, reading: AnyReading, rows_per_person: RowsPerPerson, n_threads: int = 1
    ) -> AbstractContextManager[CheckedPass]:
        """Read all rows once and check them. On exit, everything that was stored for later passes is removed.

        Parameters
        ----------
        reading : how raw rows become blocks of numbers and labels
        rows_per_person : which rows of each person count
        n_threads : how many threads share the later passes, if this process reads the rows

        Raises
        ------
        InputError, FileError
            If a row cannot be used. The message shows no value of the row.
        """
