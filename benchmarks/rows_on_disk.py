"""A fit on rows larger than memory: peak memory, passes, and its time over that of reading the file as often.

Needs Linux for the memory figures, and room on the disk: 200 bytes a row of 50 columns, and 400 more for the cache.

Run: OMP_NUM_THREADS=1 python benchmarks/rows_on_disk.py [--rows 1000000] [--columns 50] [--cache] [--dask | --duckdb]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from confide import LogisticRegression, Schema, open_rows
from confide.data.streams import StreamedSource

ROW_GROUP = 200_000


def schema_of(columns: int) -> Schema:
    """Numbers between -1 and 1, and a target."""
    described = {f"x{i}": {"low": -1, "high": 1} for i in range(columns)}
    return Schema(columns=described, target={"column": "y", "negative": 0, "positive": 1})


def write(path: Path, rows: int, columns: int) -> None:
    """Made-up rows, a row group at a time."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=columns).astype(np.float32)
    fields = [(f"x{i}", pa.float32()) for i in range(columns)] + [("y", pa.int8())]
    with parquet.ParquetWriter(path, pa.schema(fields), compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, ROW_GROUP):
            X = rng.random((columns, min(ROW_GROUP, rows - start)), dtype=np.float32) * 2 - 1
            y = (weights @ X + rng.logistic(size=X.shape[1]) > 0).astype(np.int8)
            writer.write_table(pa.table([*X, y], schema=pa.schema(fields)), row_group_size=ROW_GROUP)


def timed(work: Any) -> tuple[float, float]:
    """Seconds on the wall and of the processor."""
    start, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - processor


def reading(path: Path) -> None:
    """Read the file once into NumPy arrays and throw them away."""
    for batch in parquet.ParquetFile(path, pre_buffer=False).iter_batches(65_536):
        for column in batch.columns:
            column.to_numpy()


def memory(what: str) -> float:
    """Memory of this process in MB, as Linux counts it: VmRSS now, VmHWM at the peak."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1000


def on_this_machine(path: Path, schema: Schema, cache: Path | bool) -> None:
    passes: Counter[Any] = Counter()
    original = StreamedSource.sum_over_rows

    def counting(self: Any, row_sum: Any, weights: Any) -> Any:
        # What the compiled kernel sums on behalf of a solver has no order: these are gradients.
        passes[getattr(row_sum, "order", 1)] += 1
        return original(self, row_sum, weights)

    StreamedSource.sum_over_rows = counting  # type: ignore[method-assign]
    once, once_busy = min(timed(lambda: reading(path)) for _ in range(2))
    fit, fit_busy = timed(lambda: LogisticRegression(1.0).fit(open_rows(path, schema, cache=cache)))
    again, again_busy = min(timed(lambda: reading(path)) for _ in range(2))
    once, once_busy = min(once, again), min(once_busy, again_busy)
    n = 1 + sum(passes.values())
    print(f"{n} passes: 1 check, {passes[2]} with Hessian, {passes[1] + passes[0]} without")
    print(f"reading once: {once:.2f} s wall, {once_busy:.2f} s CPU (best of four, before and after the fit)")
    print(f"fit: {fit:.1f} s wall, {fit_busy:.1f} s CPU; a pass {fit / n:.2f} s wall, {fit_busy / n:.2f} s CPU")
    print(f"a pass over reading once: {fit / n / once:.2f} wall, {fit_busy / n / once_busy:.2f} CPU")
    print(f"peak memory {memory('VmHWM'):.0f} MB")


def on_dask(path: Path, schema: Schema) -> None:
    from dask.distributed import Client, LocalCluster

    def fitted(client: Any) -> float:
        start = time.perf_counter()
        LogisticRegression(1.0, random_state=0).fit(open_rows(path, schema, client=client))
        return time.perf_counter() - start

    seconds: dict[int, float] = {}
    for workers in (1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            seconds[workers] = fitted(client)
            print(f"Dask, {workers} worker{'s'[: workers != 1]}: {seconds[workers]:.1f} s")
    print(f"two workers over one: {seconds[1] / seconds[2]:.2f}")


def on_duckdb(path: Path, schema: Schema) -> None:
    """Peak memory of a fit to a relation, in this process, which should be new."""
    import duckdb

    relation = duckdb.connect().read_parquet(str(path))
    seconds, _ = timed(lambda: LogisticRegression(1.0).fit(open_rows(relation, schema)))
    print(f"a relation of DuckDB: {seconds:.1f} s, peak memory {memory('VmHWM'):.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--cache", action="store_true")
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--duckdb", action="store_true")
    arguments = parser.parse_args()
    schema = schema_of(arguments.columns)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder, "rows.parquet")
        write(path, arguments.rows, arguments.columns)
        print(f"{arguments.rows} x {arguments.columns} float32: {path.stat().st_size / 1e6:.0f} MB; {os.cpu_count()} cores")
        if arguments.dask:
            on_dask(path, schema)
        elif arguments.duckdb:
            on_duckdb(path, schema)
        else:
            on_this_machine(path, schema, arguments.folder if arguments.cache else False)


if __name__ == "__main__":
    main()
