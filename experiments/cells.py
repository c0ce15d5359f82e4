"""Finished cells of an experiment in a JSON-lines file, so that a run continues where an earlier one ended.

A cell is one line of the file: a question, which is a dict of names and plain values, and what was measured for it. A cell
that is in the file is not computed again. The seed of a cell follows from its question, so a cell can be repeated by itself.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Cell = dict[str, Any]


def seed_of(asked: Cell) -> int:
    """A seed that depends on the question only."""
    return zlib.crc32(json.dumps(asked, sort_keys=True).encode())


def spread(values: Sequence[float]) -> list[float]:
    """Mean, standard deviation, and the quantiles of 10% and 90%."""
    found = (np.mean(values), np.std(values), *np.quantile(values, (0.1, 0.9)))
    return [round(float(value), 4) for value in found]


@dataclass(frozen=True)
class Cells:
    """The file of one experiment."""

    path: Path

    def finished(self) -> list[Cell]:
        """The finished cells. A last line without a line break was cut short by an interruption, and is dropped."""
        if not self.path.exists():
            return []
        whole, end, cut = self.path.read_text(encoding="utf-8").rpartition("\n")
        if cut:
            self.path.write_text(whole + end, encoding="utf-8")
        return [json.loads(line) for line in whole.splitlines()]

    def run(
        self, cells: Iterable[Cell], measure: Callable[[Cell], Cell], possible: Callable[[Cell], bool] = lambda _: True
    ) -> list[Cell]:
        """All cells, in order: finished ones, and the others, measured now. Cells that cannot be measured are left out."""
        wanted, finished = list(cells), self.finished()
        known = {json.dumps({name: line[name] for name in line["asked"]}, sort_keys=True): line for line in finished}
        found = []
        for place, asked in enumerate(wanted, start=1):
            line = known.get(json.dumps(asked, sort_keys=True))
            if line is None and not possible(asked):
                continue
            if line is None:
                start, busy = time.perf_counter(), time.process_time()
                line = asked | measure(asked) | {"asked": sorted(asked)}
                line["seconds"] = round(time.process_time() - busy, 1)
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                said = " ".join(f"{name}={value}" for name, value in asked.items())
                print(f"[{place}/{len(wanted)}] {said}  {time.perf_counter() - start:.1f} s", flush=True)
            found.append(line)
        if len(found) < len(wanted):
            print(f"{len(wanted) - len(found)} cells are left out: their data sets are not here, see CONFIDE_DATA_DIR")
        return found
