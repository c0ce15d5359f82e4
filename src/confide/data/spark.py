"""Rows of Spark DataFrames. Needs the optional dependency, `pip install '.[spark]'`, and Java.

Spark's workers need a Python interpreter with confide and with the same version of NumPy as the driver. The environment
variable PYSPARK_PYTHON names that interpreter.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from confide.data.arrays import CheckedPass
from confide.data.partitions import (
    FAN_IN,
    NO_ROWS,
    SUMS,
    AnyReading,
    OpenedRows,
    Outcome,
    PartitionedSource,
    Task,
    columns_to_read,
    computed_by_cluster,
    refuse_persons,
    sum_of_outcomes,
)
from confide.data.streams import SIZE, Reading
from confide.erm.row_sums import Totals
from confide.errors import InputError, InputTypeError
from confide.features.schema import Schema
from confide.features.table import RowsPerPerson

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_OUTCOMES_TO_DRIVER = 64
"""At most this many outcomes go to the driver. If there are more, workers first add them up in groups of `FAN_IN`."""
_OUTCOME_COLUMNS = "number long, outcome binary"
"""Spark's schema of outcomes: the number of a partition or group, and its packed outcome."""


_SAMPLED = ("rows", "labels", "counts")
"""Names of the arrays of a sample in a packed outcome."""


@dataclass(frozen=True, slots=True, eq=False)
class SparkRows(OpenedRows):
    """The partitions of a Spark DataFrame, as `open_rows` returns them.

    The partitions are persisted during the fit. If Spark drops one, it computes that partition again. A partition that then
    has other rows, for instance in a sample without a seed, is refused; such a frame must be written to files first.

    Parameters
    ----------
    schema : the public description of the columns
    frame : the DataFrame, with the columns of the schema
    target : the column of numbers that a regression predicts, or None for the target of the schema
    """

    schema: Schema
    frame: DataFrame
    target: str | None = None

    def __repr__(self) -> str:
        return f"SparkRows({self.schema!r})"

    def count(self) -> int:
        n_rows = int(computed_by_cluster(self.frame.count))
        if n_rows == 0:
            raise InputError(NO_ROWS)
        return n_rows

    @contextmanager
    def checked(self, reading: AnyReading, rows_per_person: RowsPerPerson, n_threads: int = 1) -> Iterator[CheckedPass]:
        from pyspark import StorageLevel

        refuse_persons(self.schema)
        if not isinstance(reading, Reading):
            raise InputTypeError("rows from Spark need a schema; give one to open_rows.")
        reading_with_schema = reading
        persisted = self.frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield PartitionedSource.checked(lambda task: _outcome(persisted, reading_with_schema, task), reading)
        finally:
            persisted.unpersist()


def rows_of_frame(frame: Any, schema: Schema, target: str | None) -> SparkRows:
    """The partitions of a Spark DataFrame."""
    if not hasattr(frame, "mapInArrow"):
        raise InputTypeError("rows from Spark must be a Spark DataFrame.")
    quoted = ["`" + name.replace("`", "``") + "`" for name in columns_to_read(frame.columns, schema, target)]
    return SparkRows(schema, frame.select(*quoted), target)


def _tables(batches: Iterator[Any]) -> Callable[[Sequence[str], int], Iterator[Any]]:
    """The rows of one partition by their columns. Spark hands over an iterator, so they can be read once only."""
    return lambda names, _: (batch.select(list(names)) for batch in batches)


def _outcome(frame: Any, reading: Reading, task: Task) -> Outcome:
    """The outcome of a task over all partitions, added up in a tree.

    Spark takes one result of each partition, however often the partition was computed.
    """

    def on_partition(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        number = int(context.partitionId())
        outcome = task.run(number, lambda refuse: reading.pieces(_tables(batches), refuse=refuse))
        yield pa.RecordBatch.from_pydict({"number": pa.array([number], pa.int64()), "outcome": [_packed(outcome)]})

    def on_group(key: tuple[Any, ...], table: Any) -> Any:
        import pandas as pd

        outcome = sum_of_outcomes([_unpacked(content) for content in table.sort_values("number")["outcome"]])
        return pd.DataFrame({"number": [int(key[0])], "outcome": [_packed(outcome)]})

    outcomes = frame.mapInArrow(on_partition, _OUTCOME_COLUMNS)
    n_left = frame.rdd.getNumPartitions()
    while n_left > _MOST_OUTCOMES_TO_DRIVER:
        group = (outcomes["number"] / FAN_IN).cast("long").alias("group")
        outcomes = outcomes.groupBy(group).applyInPandas(on_group, _OUTCOME_COLUMNS)
        n_left = -(-n_left // FAN_IN)
    collected = sorted(computed_by_cluster(outcomes.collect), key=lambda row: int(row["number"]))
    return sum_of_outcomes([_unpacked(row["outcome"]) for row in collected])


def _packed(outcome: Outcome) -> bytes:
    """An outcome as an archive of NumPy arrays, without pickle."""
    sums: dict[str, Any] = dict(zip(SUMS, outcome.totals or (), strict=False))
    sums |= zip(_SAMPLED, outcome.sample or (), strict=False)
    if outcome.refusal is not None:
        sums["refusal"] = np.array(outcome.refusal)
    if outcome.used:
        sums["used"] = np.array(sorted(outcome.used))
    stream = io.BytesIO()
    records = outcome.partitions
    fingerprints = np.frombuffer(b"".join(fingerprint for *_, fingerprint in records), np.uint8).reshape(len(records), SIZE)
    sizes = np.array([(number, n_rows) for number, n_rows, _ in records])
    np.savez(stream, partitions=sizes, fingerprints=fingerprints, **sums)
    return stream.getvalue()


def _unpacked(content: bytes) -> Outcome:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        totals = Totals(*(arrays[name] for name in SUMS)) if "value" in arrays else None
        refusal = str(arrays["refusal"]) if "refusal" in arrays else None
        sample = (arrays["rows"], arrays["labels"], arrays["counts"]) if "rows" in arrays else None
        pairs = zip(arrays["partitions"].tolist(), arrays["fingerprints"], strict=True)
        records = tuple((number, n_rows, fingerprint.tobytes()) for (number, n_rows), fingerprint in pairs)
        used = frozenset(arrays["used"].tolist()) if "used" in arrays else frozenset[str]()
        return Outcome(records, totals, refusal, sample, used)
