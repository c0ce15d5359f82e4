"""The only entrance for rows: whatever a user passes as X and y becomes `GivenRows`, which gives checked rows.

Everything here happens before a budget is charged, so its only outcome may be to accept or to refuse. A refusal shows no
value from the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from confide.cautions import warn
from confide.data.arrays import MemorySource
from confide.data.checked_source import CheckedSource
from confide.data.file_rows import ArrayRows, StampedSource
from confide.data.mapped import MappedBlocks
from confide.data.on_disk import Stamp
from confide.data.opened_rows import NO_MOMENTS, OpenedRows
from confide.data.partitions import NumericReading
from confide.data.streams import Reading
from confide.data.threads import begun
from confide.errors import AccuracyWarning, InputError, ParameterError
from confide.features.encoder import Encoder
from confide.features.labels import DIFFERENT_NUMBERS_OF_ROWS, targets_at
from confide.features.raw_table import column_of
from confide.features.row_weight import RowWeight
from confide.features.schema import Schema
from confide.intake.arrays import MemoryTable, names_of_columns, table_of
from confide.intake.row_weights import row_weights_of, weight_array
from confide.intake.specification import CheckedRows, Columns, RowSpecification, coefficient_names
from confide.intake.targets import ReadTargets
from confide.types import Array

_ANOTHER_INDEX = (
    "has another index than X, and rows are matched by their position: if one of the two was sorted or filtered by itself, "
    "what belongs to one row is taken for another. Give it in the order of X, as with .loc[X.index]; or without its index, "
    ".to_numpy(), if the order is right."
)


class GivenRows(Protocol):
    """Rows of any kind, as a user gave them."""

    @property
    def lies_here(self) -> bool:
        """Whether this process reads the rows itself, so that it can divide and score them."""

    @property
    def scores_rows(self) -> bool:
        """Whether some process of this fit, here or on a cluster, can score the rows one by one."""

    def schema_for(self, schema: Schema | None) -> Schema | None:
        """The schema by which the rows are read, if this is the estimator's schema. Refuses two different schemas."""

    def is_described_by(self, schema: Schema | None) -> bool:
        """Whether the rows are read alike by this schema. Knots and interactions do not matter for that."""

    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of numbers: those of a frame, and x0, x1, ... for an array."""

    def n_rows_given(self) -> int:
        """How many rows were given, for choices that depend on a public number of rows. The rows are not checked yet."""

    def checked(self, specifications: Sequence[RowSpecification]) -> AbstractContextManager[tuple[CheckedRows, ...]]:
        """Check the rows for each of several fits. Temporary files are removed when the context ends.

        Raises
        ------
        InputError, ParameterError, FileError
            If the rows cannot be used. The message shows no value from them.
        """


def rows_given(X: Any, y: Any, sample_weight: Any = None) -> GivenRows:
    """The rows that a user passed to `fit`, to a search or to an evaluation. This reads no row."""
    if not isinstance(X, OpenedRows | ArrayRows):
        return _RowsInMemory(X, y, sample_weight)
    if y is not None:
        raise ParameterError("rows from open_rows bring their labels or targets, and y was given too; leave y out.")
    if isinstance(X, ArrayRows):
        return _RowsInMemory(X.rows, X.labels, sample_weight, X.stamps)
    if sample_weight is not None:
        raise InputError(
            "sample_weight is for rows in memory, and these rows come from open_rows. Leave it out, and name the column of "
            "weights in the schema: weight = { column = ..., high = ... }."
        )
    return _RowsElsewhere(X)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _RowsInMemory:
    """Arrays, sparse matrices and frames. They are read once, for any number of fits."""

    X: Any
    y: Any
    sample_weight: Any
    stamps: tuple[Stamp, ...] = ()

    @property
    def lies_here(self) -> bool:
        return True

    @property
    def scores_rows(self) -> bool:
        return True

    def schema_for(self, schema: Schema | None) -> Schema | None:
        return schema

    def is_described_by(self, schema: Schema | None) -> bool:
        return True

    def column_names(self) -> tuple[str, ...]:
        return names_of_columns(self.X)

    def n_rows_given(self) -> int:
        # What has no rows is refused when it is read, with a message of its own.
        return max(1, _length(self.X))

    @contextmanager
    def checked(self, specifications: Sequence[RowSpecification]) -> Iterator[tuple[CheckedRows, ...]]:
        first = specifications[0]
        self._tell_of_another_order()
        # Fits that encode rows alike share one table.
        tables: dict[Encoder | None, MemoryTable] = {}

        def read_tables() -> int:
            for each in specifications:
                if each.encoder not in tables:
                    tables[each.encoder] = table_of(self.X, each)
            return tables[first.encoder].n_rows_given

        if first.target.is_silent:
            with begun(lambda: first.target.read(self.y, None), first.n_threads) as targets_read:
                # What is wrong with the columns is said first.
                n_rows, targets = read_tables(), targets_read()
            # With the rows that were read: what X says of its length may be something else.
            if len(targets.values) != n_rows:
                raise InputError(DIFFERENT_NUMBERS_OF_ROWS)
        else:
            targets = first.target.read(self.y, read_tables())
        own_weights = self._own_weights(first.weight)
        yield tuple(self._as_taken_by(each, tables[each.encoder], targets, own_weights) for each in specifications)

    def _tell_of_another_order(self) -> None:
        """Warn where labels or weights have another index than the rows, because they are matched by position."""
        index = _index_of(self.X)
        for name, given in (("y", self.y), ("sample_weight", self.sample_weight)):
            own = _index_of(given)
            if index is not None and own is not None and len(own) == len(index) and not index.equals(own):
                warn((f"{name} {_ANOTHER_INDEX}",), AccuracyWarning)

    def _own_weights(self, weight: RowWeight | None) -> Array | None:
        """The weights of all rows given, from the argument or from the column that a schema names; None if all count 1."""
        if weight is None:
            return None if self.sample_weight is None else weight_array(self.sample_weight)
        if self.sample_weight is not None:
            raise ParameterError(
                f'the schema names the column "{weight.column}" as the weight of rows, and sample_weight was given too; '
                f"leave sample_weight out."
            )
        weights = weight.read(column_of(self.X, weight.column), refuse=True)
        if not weights.any():
            raise weight.refusal_of_zeros()
        return weights

    def _as_taken_by(
        self, specification: RowSpecification, table: MemoryTable, targets: ReadTargets, own_weights: Array | None
    ) -> CheckedRows:
        """The rows as one fit uses them: mapped and weighted."""
        # Clip no rows: a bound that does not fit the columns refuses them here, before anything is charged.
        specification.row_bound.clip(table.blocks.block(0, 0))
        fourier, row_map = specification.map_of(table.blocks.n_features)
        blocks = table.blocks if row_map is None else MappedBlocks(table.blocks, row_map)
        largest, class_weight = specification.largest_sample_weight, specification.class_weight
        weights = row_weights_of(own_weights, largest, targets.values, targets.domain, class_weight)
        values = targets.values
        if table.kept is not None:
            values, weights = values[table.kept], None if weights is None else weights[table.kept]
        memory = MemorySource(blocks, values, weights, specification.n_threads)
        source: CheckedSource = StampedSource(memory, self.stamps) if self.stamps else memory
        encoder, columns = specification.encoder, table.columns
        return CheckedRows(
            source=source,
            n_rows=table.n_rows_given,
            domain=targets.domain,
            target_sentence=targets.sentence,
            has_weights=own_weights is not None,
            columns=columns,
            coefficient_names=coefficient_names(columns, encoder, fourier),
            encoder=encoder,
            fourier=fourier,
            labels_declared=targets.declared,
        )


def _index_of(given: Any) -> Any:
    """The index of a frame or a Series of pandas; None for anything else."""
    index = getattr(given, "index", None)
    return index if hasattr(index, "equals") else None


def _length(X: Any) -> int:
    """The number of rows of an array or a frame; 0 if it has none."""
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and shape and isinstance(shape[0], int):
        return shape[0]
    with suppress(TypeError):
        return len(X)
    if not hasattr(X, "__arrow_c_stream__"):
        return 0
    import pyarrow as pa

    with suppress(Exception):  # what gives no stream of rows is refused when it is read
        return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(X))
    return 0


@dataclass(frozen=True, slots=True, eq=False)
class _RowsElsewhere:
    """Rows in files, on a cluster or at other parties. They are checked in a separate pass for each fit."""

    rows: OpenedRows

    @property
    def lies_here(self) -> bool:
        return self.rows.lies_here

    @property
    def scores_rows(self) -> bool:
        return self.rows.scores_rows

    def schema_for(self, schema: Schema | None) -> Schema | None:
        if schema is not None and schema != self.rows.schema:
            raise ParameterError(
                "the rows were opened with another schema than the estimator's, or with none. Give the schema to open_rows "
                "only, or give the same schema to both."
            )
        return self.rows.schema

    def is_described_by(self, schema: Schema | None) -> bool:
        own = self.rows.schema
        return schema == own if schema is None or own is None else schema.without_curves() == own.without_curves()

    def column_names(self) -> tuple[str, ...]:
        raise ParameterError("bounds are for arrays and frames in memory. Give open_rows a schema, and leave bounds out.")

    def n_rows_given(self) -> int:
        return self.rows.count()

    @contextmanager
    def checked(self, specifications: Sequence[RowSpecification]) -> Iterator[tuple[CheckedRows, ...]]:
        with ExitStack() as until_released:
            yield tuple(until_released.enter_context(self._as_taken_by(each)) for each in specifications)

    @contextmanager
    def _as_taken_by(self, specification: RowSpecification) -> Iterator[CheckedRows]:
        if specification.with_moments and not self.rows.gives_moments:
            raise ParameterError(NO_MOMENTS)
        target, encoder = specification.target.of_opened(self.rows), specification.encoder
        each_class = targets_at(np.arange(len(target.domain)), len(target.domain))
        largest, class_weight = specification.largest_sample_weight, specification.class_weight
        weighs = specification.weight is not None
        of_classes = row_weights_of(None, 1.0 if weighs else largest, each_class, target.domain, class_weight)
        counts = None if of_classes is None else tuple(of_classes.tolist())
        fourier, row_map = specification.map_of(self.rows.n_inputs if encoder is None else encoder.n_features)
        reading: Reading | NumericReading
        if encoder is None:
            reading = NumericReading(self.rows.n_inputs, target.domain, counts, row_map, target.numbers)
            columns = Columns(self.rows.n_inputs, None)
        else:
            reading = Reading(encoder, target.domain, counts, row_map, target.numbers, weighs)
            columns = Columns.of_schema(encoder)
        with self.rows.checked(reading, specification.rows_per_person, specification.n_threads) as checked:
            yield CheckedRows(
                source=checked.source,
                n_rows=checked.n_rows,
                domain=target.domain,
                target_sentence=target.sentence,
                has_weights=weighs,
                columns=columns,
                coefficient_names=coefficient_names(columns, encoder, fourier),
                encoder=encoder,
                fourier=fourier,
                labels_declared=target.declared,
            )
