"""What simulations of many cells have in common: cells that a file already holds are not measured again."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Facts = dict[str, Any]


def cell(kind: str, d: int, n: int, epsilon: float, currency: str, neighbours: str) -> Facts:
    """The facts of one cell, by name."""
    return {"kind": kind, "d": d, "n": n, "epsilon": epsilon, "currency": currency, "neighbours": neighbours}


def start_of_line(line: Facts) -> str:
    """The facts of one cell as a table shows them, but for the relation between neighbours."""
    return f"{line['kind']:11s} {line['d']:3d} {line['n']:6d} {line['epsilon']:5g}  {line['currency']:11s}"


def options(description: str | None, out: str) -> argparse.ArgumentParser:
    """The options that all of them have: repetitions, the file, and whether to show it and stop."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument("--table", action="store_true", help="show the file and stop")
    return parser


def measured_once(given: argparse.Namespace, cells: Iterable[Facts], measured: Callable[..., Facts]) -> list[Facts]:
    """The lines of the file, in which each cell has its own after it was measured."""
    lines: list[Facts] = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    for facts in () if given.table else cells:
        asked = facts | {"repetitions": given.repetitions}
        if any(asked.items() <= line.items() for line in lines):
            continue
        lines.append(asked | measured(**facts, repetitions=given.repetitions))
        with given.out.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    return lines
