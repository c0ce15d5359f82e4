"""Seconds of the processor and peak memory of one fit of each contender, each in a process of its own.

A fit is all that is done for it: rows encoded or cut into parts, noise calibrated, a model trained, and scores of the test
rows. Peak memory is that of the whole process, with Python, its packages and the table of rows. The setting of a peer is the
one that the results show. `benchmarks.peers.accuracy` measures what is missing and prints the table.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from typing import Any

from benchmarks.peers.contenders import APPROXIMATE, DELTA, NONE, Contender, contenders
from benchmarks.peers.problems import problem
from benchmarks.peers.results import Results
from threadpoolctl import threadpool_limits

DATA, EPSILON = "adult", 1.0
"""What is fitted for the table."""


def measured(data: str, contender: Contender, setting: dict[str, Any]) -> dict[str, Any]:
    """One line of results, measured in a process of its own."""
    what = json.dumps([data, contender.guarantee, contender.name, setting])
    command = [sys.executable, "-m", "benchmarks.peers.costs", what]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this module
    cost: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return {"data": data, "guarantee": contender.guarantee, "contender": contender.name, **cost}


def _fit(data: str, guarantee: str, name: str, setting: dict[str, Any]) -> dict[str, float]:
    """Seconds and megabytes (of 10^6 bytes) of a fit in this process."""
    given = problem(data)
    (contender,) = (one for one in contenders(small=False) if (one.guarantee, one.name) == (guarantee, name))
    epsilon, delta = (math.inf if guarantee == NONE else EPSILON), (DELTA if guarantee == APPROXIMATE else 0.0)
    with threadpool_limits(1):
        begin = time.process_time()
        contender.outcomes(given, epsilon, delta, [setting], 1, 3)
        seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"fit_seconds": round(seconds, 2), "peak_megabytes": round(peak / 1e6)}


def measure_missing(results: Results, those: list[Contender]) -> None:
    """Costs that are not there yet, of contenders whose setting the results show."""
    for contender in those:
        cell = results.cell(DATA, contender, math.inf if contender.guarantee == NONE else EPSILON)
        if cell and results.cost(DATA, contender) is None:
            results.keep(measured(DATA, contender, cell["setting"]))


def table(results: Results, those: list[Contender]) -> str:
    """What a fit costs, in Markdown; contenders that were not measured are left out."""
    rows = [
        f"| {one.name} | {one.guarantee} | {cost['fit_seconds']:.1f} | {cost['peak_megabytes']:,} |"
        for one in those
        if (cost := results.cost(DATA, one))
    ]
    head = f"| {DATA}, epsilon {EPSILON:g}: one fit | guarantee | seconds | peak memory, MB |"
    return "\n".join(["", head, "| --- | --- | --- | --- |", *rows]) if rows else ""


if __name__ == "__main__":
    print(json.dumps(_fit(*json.loads(sys.argv[1]))))
