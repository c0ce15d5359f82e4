"""How Dask and Spark scale from one worker to two on this machine, and what a pass sends.

Each cluster runs in a process of its own, with workers of one thread each. Rows lie in a Parquet file. Dask's workers read
it in each pass; Spark keeps its rows in memory after the first pass. A pass ends when the driver has the sums of all rows.
"Sent" is what goes to a worker for each partition, pickled, and "received" what the driver gets: sums, and a record of each
partition.

Run: OMP_NUM_THREADS=1 python benchmarks/cluster_scaling.py [--rows 4000000] [--columns 50] [--clusters dask,spark]
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rows_on_disk import schema_of, timed, write

from confide import LogisticRegression, open_rows
from confide.data.partitions import PartitionedSource

WORKERS = (1, 2)


def with_passes_measured() -> list[dict[str, Any]]:
    """From now on, what each pass over partitions takes is appended to the list."""
    found: list[dict[str, Any]] = []
    original = PartitionedSource.checked.__func__  # type: ignore[attr-defined]

    def checked(cls: Any, run: Any, reading: Any) -> Any:
        def timed_run(task: Any) -> Any:
            results: list[Any] = []
            wall, busy = timed(lambda: results.append(run(task)))
            kind = "sample" if task.stride else "check" if task.row_sum is None else "gradient"
            sizes = {"sent": len(pickle.dumps(task)), "received": len(pickle.dumps(results[0]))}
            found.append({"kind": kind, "wall": wall, "driver": busy, **sizes})
            return results[0]

        return original(cls, timed_run, reading)

    PartitionedSource.checked = classmethod(checked)  # type: ignore[method-assign,assignment]
    return found


def fitted_by_dask(path: Path, columns: int, workers: int) -> None:
    from dask.distributed import Client, LocalCluster

    cluster: Any = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        _fit_twice(lambda: open_rows(path, schema_of(columns), client=client))


def fitted_by_spark(path: Path, columns: int, workers: int) -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "6g",
    }
    builder: Any = SparkSession.builder.master(f"local[{workers}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    frame = session.read.parquet(str(path))
    _fit_twice(lambda: open_rows(frame, schema_of(columns)))
    session.stop()


def _fit_twice(opened: Any) -> None:
    """The second fit is measured: before the first one, workers import what they need."""
    passes = with_passes_measured()
    for _ in range(2):
        passes.clear()
        begin = time.perf_counter()
        LogisticRegression(1.0, random_state=0).fit(opened())
        wall = time.perf_counter() - begin
    print(json.dumps({"fit": wall, "passes": passes}))


def _shown(name: str, workers: int, found: dict[str, Any], before: float | None) -> float:
    sums = [each for each in found["passes"] if each["kind"] == "gradient"]
    of_pass = statistics.median(each["wall"] for each in sums)
    gain = "" if before is None else f", {before / of_pass:.2f} times as fast as one worker"
    driver = 1e3 * statistics.median(each["driver"] for each in sums)
    print(
        f"{name}, {workers} worker{'s'[: workers != 1]}: fit {found['fit']:.2f} s, {len(found['passes'])} passes; "
        f"a pass for gradients {of_pass:.2f} s{gain}; the driver works {driver:.0f} ms of it, "
        f"sends {sums[0]['sent']} bytes a partition and receives {sums[0]['received']}",
        flush=True,
    )
    for each in found["passes"]:
        if each["kind"] != "gradient":
            print(f"  {each['kind']}: {each['wall']:.2f} s, received {each['received'] / 1e6:.2f} MB")
    return of_pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--clusters", default="dask,spark")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        name, path, workers = arguments.one
        {"dask": fitted_by_dask, "spark": fitted_by_spark}[name](Path(path), arguments.columns, int(workers))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder, "rows.parquet")
        write(path, arguments.rows, arguments.columns)
        print(f"{arguments.rows} x {arguments.columns} float32: {path.stat().st_size / 1e6:.0f} MB; {os.cpu_count()} cores")
        for name in arguments.clusters.split(","):
            before = None
            for workers in WORKERS:
                asked = ["--columns", str(arguments.columns), "--one", name, str(path), str(workers)]
                command = [sys.executable, __file__, *asked]
                said = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
                of_pass = _shown(name, workers, json.loads(said.splitlines()[-1]), before)
                before = before or of_pass


if __name__ == "__main__":
    main()
