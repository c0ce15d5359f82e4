"""Rows of Spark DataFrames. An optional part: `pip install confide[spark]`, and Java.

Spark's workers run Python with confide and the same version of NumPy; set PYSPARK_PYTHON to the interpreter.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.data.checked_source import CheckedPass
from confide.data.fingerprints import SIZE
from confide.data.opened_rows import OpenedRows
from confide.data.partitions import (
    FAN_IN,
    NumericReading,
    Outcome,
    PartitionedSource,
    Sample,
    Seen,
    Task,
    added,
    computed,
    names_in,
    refuse_persons,
)
from confide.data.streams import Reading
from confide.erm.row_sums import Totals
from confide.errors import InputTypeError
from confide.features.persons import RowsPerPerson
from confide.features.schema import Schema

_MOST_TO_THE_DRIVER = 64
"""Outcomes that the driver adds up itself; more are added by workers first."""
_COLUMNS = "number long, outcome binary"


@dataclass(frozen=True, slots=True, eq=False)
class SparkRows(OpenedRows):
    """The partitions of a Spark DataFrame; `open_rows` makes it.

    They are persisted for the time of the fit; Spark computes what it drops anew. A frame whose rows come out different when
    they are computed again, such as an unseeded sample, is refused then, and must be written to files first.

    Parameters
    ----------
    schema : the public description of their columns
    frame : with the columns of the schema
    target : the column of numbers to be predicted, or None for labels
    """

    schema: Schema
    frame: Any
    target: str | None = None

    def __repr__(self) -> str:
        return f"SparkRows({self.schema!r})"

    @contextmanager
    def checked(
        self, reading: Reading | NumericReading, rows_per_person: RowsPerPerson, n_threads: int = 1
    ) -> Iterator[CheckedPass]:
        from pyspark import StorageLevel

        refuse_persons(self.schema)
        if not isinstance(reading, Reading):
            raise InputTypeError("rows of Spark need a schema.")
        described = reading
        persisted = self.frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield PartitionedSource.checked(lambda task: _outcome(persisted, described, task), reading)
        finally:
            persisted.unpersist()


def rows_of_frame(frame: Any, schema: Schema, target: str | None) -> SparkRows:
    """The partitions of a Spark DataFrame."""
    if not hasattr(frame, "mapInArrow"):
        raise InputTypeError("rows of Spark must be a DataFrame.")
    quoted = ["`" + name.replace("`", "``") + "`" for name in names_in(frame.columns, schema, target)]
    return SparkRows(schema, frame.select(*quoted), target)


@dataclass(frozen=True, slots=True)
class _Batches:
    """The rows of one partition as Spark hands them over: once."""

    batches: Iterable[Any]

    def tables(self, names: Sequence[str], n_rows: int) -> Iterator[Any]:
        for batch in self.batches:
            yield batch.select(list(names))


def _outcome(frame: Any, reading: Reading, task: Task) -> Outcome:
    """The outcome over all partitions, added up in a tree. Spark takes one result of a partition, however often it ran."""

    def on_partition(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        number = int(context.partitionId())
        outcome = task.run(number, lambda refuse: reading.pieces(_Batches(batches), refuse=refuse))
        yield pa.RecordBatch.from_pydict({"number": pa.array([number], pa.int64()), "outcome": [_packed(outcome)]})

    def on_group(key: tuple[Any, ...], table: Any) -> Any:
        import pandas as pd

        ordered = table.sort_values("number")
        outcome = added([_unpacked(content) for content in ordered["outcome"]])
        return pd.DataFrame({"number": [int(key[0])], "outcome": [_packed(outcome)]})

    outcomes = frame.mapInArrow(on_partition, _COLUMNS)
    n_left = frame.rdd.getNumPartitions()
    while n_left > _MOST_TO_THE_DRIVER:
        group = (outcomes["number"] / FAN_IN).cast("long").alias("group")
        outcomes = outcomes.groupBy(group).applyInPandas(on_group, _COLUMNS)
        n_left = -(-n_left // FAN_IN)
    collected = sorted(computed(outcomes.collect), key=lambda row: int(row["number"]))
    return added([_unpacked(row["outcome"]) for row in collected])


def _packed(outcome: Outcome) -> bytes:
    """An outcome as an archive of NumPy arrays: no pickle."""
    totals = outcome.totals
    sums: dict[str, Any] = (
        {} if totals is None else {"value": totals.value, "gradient": totals.gradient, "hessian": totals.hessian}
    )
    if outcome.sample is not None:
        sums |= {"rows": outcome.sample.rows, "labels": outcome.sample.labels, "counts": outcome.sample.counts}
    if outcome.refusal is not None:
        sums["refusal"] = np.array(outcome.refusal)
    if outcome.used:
        sums["used"] = np.array(sorted(outcome.used))
    stream = io.BytesIO()
    seen = outcome.seen
    fingerprints = np.frombuffer(b"".join(each.fingerprint for each in seen), np.uint8).reshape(len(seen), SIZE)
    counts = np.array([(each.part, each.n_rows) for each in seen])
    np.savez(stream, seen=counts, fingerprints=fingerprints, **sums)
    return stream.getvalue()


def _unpacked(content: bytes) -> Outcome:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        totals = Totals(arrays["value"], arrays["gradient"], arrays["hessian"]) if "value" in arrays else None
        refusal = str(arrays["refusal"]) if "refusal" in arrays else None
        sample = Sample(arrays["rows"], arrays["labels"], arrays["counts"]) if "rows" in arrays else None
        pairs = zip(arrays["seen"].tolist(), arrays["fingerprints"], strict=True)
        seen = tuple(Seen(part, n_rows, fingerprint.tobytes()) for (part, n_rows), fingerprint in pairs)
        used = frozenset(arrays["used"].tolist()) if "used" in arrays else frozenset[str]()
        return Outcome(seen, totals, refusal, sample, used)
