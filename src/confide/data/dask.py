"""Rows of Dask collections, and of files that the workers of a Dask cluster read. Needs the optional dependency `dask`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.data.arrays import CheckedPass
from confide.data.file_rows import FileRows
from confide.data.files import BATCH_ROWS, FilePart
from confide.data.partitions import (
    FAN_IN,
    NO_ROWS,
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
from confide.errors import InputError, InputTypeError, ParameterError
from confide.features.schema import Schema
from confide.features.table import RowsPerPerson


@dataclass(frozen=True, slots=True, eq=False)
class DaskRows(OpenedRows):
    """Rows in partitions that Dask computes, as `open_rows` returns them.

    Unless the collection is persisted, Dask computes the partitions again in each pass. A partition with other rows than in
    the check is refused.

    Parameters
    ----------
    schema : the public description of the columns, or None for numeric arrays
    parts : for each partition, what Dask computes it from
    n_inputs : number of columns of numeric arrays
    labels : the labels of numeric arrays, a Dask array
    client : dask.distributed.Client, or None for Dask's default scheduler
    target : the column of numbers that a regression predicts, or None for that of the schema; ignored for numeric arrays
    """

    schema: Schema | None
    parts: tuple[Any, ...]
    n_inputs: int = 0
    labels: Any = None
    client: Any = None
    target: str | None = None

    def __repr__(self) -> str:
        return f"DaskRows({len(self.parts)} partition{'s'[: len(self.parts) != 1]})"

    def labels_present(self) -> Any:
        """The distinct labels of numeric arrays."""
        from dask.delayed import delayed

        distinct = [delayed(np.unique, pure=True)(part) for part in self.labels.to_delayed().ravel()]
        return np.unique(np.concatenate(self._computed(delayed(list)(distinct))))

    def count(self) -> int:
        from dask.delayed import delayed

        name = "" if self.schema is None else self.schema.raw_names[0]
        counts = self._computed(delayed(list)([delayed(_n_rows, pure=True)(part, name) for part in self.parts]))
        if sum(counts) == 0:
            raise InputError(NO_ROWS)
        return int(sum(counts))

    @contextmanager
    def checked(self, reading: AnyReading, rows_per_person: RowsPerPerson, n_threads: int = 1) -> Iterator[CheckedPass]:
        refuse_persons(self.schema)
        yield PartitionedSource.checked(self._outcome, reading)

    def _outcome(self, task: Task) -> Outcome:
        """The outcome of a task over all partitions.

        All calls are pure, so a call that is repeated has the same key, and Dask counts its result once.
        """
        from dask.delayed import delayed

        sent_task = delayed(task, pure=True)
        level = [delayed(outcome_of, pure=True)(sent_task, number, part) for number, part in enumerate(self.parts)]
        while len(level) > 1:
            groups = (level[first : first + FAN_IN] for first in range(0, len(level), FAN_IN))
            level = [delayed(sum_of_outcomes, pure=True)(group) for group in groups]
        return self._computed(level[0])  # type: ignore[no-any-return]

    def _computed(self, result: Any) -> Any:
        return computed_by_cluster(lambda: result.compute() if self.client is None else self.client.compute(result).result())


def rows_of_frame(frame: Any, schema: Schema, client: Any, target: str | None) -> DaskRows:
    """The partitions of a Dask DataFrame."""
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise InputTypeError("with a schema, rows from Dask must be a Dask DataFrame.")
    names = columns_to_read(frame.columns, schema, target)
    return DaskRows(schema, tuple(frame[names].to_delayed()), client=client, target=target)


def rows_of_arrays(rows: Any, labels: Any, client: Any) -> DaskRows:
    """The chunks of two Dask arrays: numeric rows (n, d) and labels (n,)."""
    if any(not hasattr(array, "to_delayed") for array in (rows, labels)) or rows.ndim != 2 or labels.ndim != 1:
        raise InputTypeError("without a schema, rows and labels must be Dask arrays, (rows, features) and (rows,).")
    if rows.dtype.kind not in "fiub" or labels.dtype.kind not in "fiubUT":
        raise InputTypeError("rows must be real numbers, and labels numbers, booleans or text.")
    if any(np.isnan(size) for array in (rows, labels) for size in array.shape):
        raise ParameterError("the sizes of some chunks are unknown; call compute_chunk_sizes() on both arrays first.")
    if rows.shape[0] != labels.shape[0]:
        raise InputError("the numbers of rows and labels differ; give one label for each row.")
    whole = rows.rechunk({1: -1})
    pairs = zip(whole.to_delayed().ravel(), labels.rechunk((whole.chunks[0],)).to_delayed().ravel(), strict=True)
    return DaskRows(None, tuple(pairs), n_inputs=int(rows.shape[1]), labels=labels, client=client)


def rows_of_files(files: FileRows, client: Any) -> DaskRows:
    """The row groups of files, which the workers read. All workers must find the files under the same paths."""
    if not hasattr(client, "compute"):
        raise ParameterError("client must be a dask.distributed.Client.")
    if files.cache is not None or files.progress is not None:
        raise ParameterError("files that workers read take neither cache nor progress; leave both out.")
    for part in files.parts:
        part.check()
    parts = [(part, part.n_groups()) for part in files.parts]
    pieces = ((part, (group, group + 1) if n > 1 else None) for part, n in parts for group in range(n))
    groups = (FilePart(part.stamp, part.kinds, of_part) for part, of_part in pieces)
    return DaskRows(files.schema, tuple(groups), client=client, target=files.target)


def _n_rows(part: Any, name: str) -> int:
    """The number of rows of a partition: a frame, a pair of arrays, or a part of a file, of which one column is read."""
    if isinstance(part, FilePart):
        return sum(int(table.num_rows) for table in part.tables([name], BATCH_ROWS))
    return len(part[1]) if isinstance(part, tuple) else len(part)


def outcome_of(task: Task, number: int, part: Any) -> Outcome:
    """The outcome of a task for one partition: a frame, a pair of arrays, or a part of a file."""

    def pieces(refuse: bool) -> Iterator[Any]:
        reading: Any = task.reading
        if isinstance(part, FilePart):
            part.stamp.check()
            yield from reading.pieces(part.tables, refuse=refuse)
            part.stamp.check()
        elif _n_rows(part, ""):
            yield reading.piece(part, refuse=refuse)

    return task.run(number, pieces)
