"""Finished cells of an experiment in a JSON-lines file, so that a run goes on where an earlier one ended.

A cell is what was asked, a dict of names and plain values, and what was measured for it, on one line of the file. A cell
that stands there is not computed again. The seed of a cell follows from what was asked, so a cell can be repeated by itself.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Cell = dict[str, Any]

RESULTS = Path(__file__).resolve().parent / "results"
QUICK = Path(__file__).resolve().parents[1] / "build" / "experiments"


def seed_of(asked: Cell) -> int:
    """A seed that depends on what was asked alone."""
    return zlib.crc32(json.dumps(asked, sort_keys=True).encode())


@dataclass(frozen=True)
class Cells:
    """The file of one experiment."""

    path: Path

    def finished(self) -> list[Cell]:
        """What is there. A last line without an end was cut short by an interruption, and is dropped."""
        if not self.path.exists():
            return []
        whole, end, cut = self.path.read_text(encoding="utf-8").rpartition("\n")
        if cut:
            self.path.write_text(whole + end, encoding="utf-8")
        return [json.loads(line) for line in whole.splitlines()]

    def run(self, cells: Iterable[Cell], measure: Callable[[Cell], Cell]) -> list[Cell]:
        """All cells, in order: those that are there, and the others, measured now."""
        wanted, finished = list(cells), self.finished()
        known = {json.dumps({name: line[name] for name in line["asked"]}, sort_keys=True): line for line in finished}
        found = []
        for place, asked in enumerate(wanted, start=1):
            line = known.get(json.dumps(asked, sort_keys=True))
            if line is None:
                start = time.perf_counter()
                line = asked | measure(asked) | {"asked": sorted(asked)}
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                said = " ".join(f"{name}={value}" for name, value in asked.items())
                print(f"[{place}/{len(wanted)}] {said}  {time.perf_counter() - start:.1f} s", flush=True)
            found.append(line)
        return found


@dataclass(frozen=True)
class Options:
    """What every experiment is told."""

    name: str
    quick: bool
    out: Path

    @property
    def cells(self) -> Cells:
        """The file of finished cells."""
        return Cells(self.out / f"{self.name}.jsonl")

    def write(self, text: str, figure: Callable[[Path], None]) -> None:
        """The tables, headed by the command that made them, and the figure beside them."""
        command = f"python experiments/{self.name}.py" + (" --quick" if self.quick else "")
        page = f"Made by `{command}`.\n\n{text.strip()}\n"
        (self.out / f"{self.name}.md").write_text(page, encoding="utf-8")
        print(f"\n{page}")
        try:
            figure(self.out / f"{self.name}.svg")
        except ModuleNotFoundError as missing:
            print(f"no figure: {missing.name} is missing; pip install 'confide[plot]'")


def options(script: str, doc: str | None) -> Options:
    """Read the command line of one script."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a version of seconds, of the same code on few cells")
    parser.add_argument("--out", type=Path, help="folder of results; build/experiments for --quick, else experiments/results")
    given = parser.parse_args()
    return Options(Path(script).stem, given.quick, given.out or (QUICK if given.quick else RESULTS))


def aligned(head: list[str], rows: list[list[str]]) -> str:
    """A table in plain text: the first column to the left, the others to the right."""
    widths = [max(len(line[place]) for line in [head, *rows]) for place in range(len(head))]
    lines = []
    for line in [head, *rows]:
        cells = [f"{text:>{width}}" for text, width in zip(line, widths, strict=True)]
        cells[0] = f"{line[0]:<{widths[0]}}"
        lines.append("  ".join(cells).rstrip())
    return "```\n" + "\n".join(lines) + "\n```"
