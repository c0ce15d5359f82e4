"""Cells of the comparison, and costs of fits, kept as lines of a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers.contenders import Contender


class Results:
    """Cells, each a line of a file once it is whole; a file that is missing is begun. Without a path nothing is kept.

    Lines without AUC, which older versions wrote, are passed over, so their cells are computed again. A line with
    "fit_seconds" is what a fit of a contender costs, and one with "unfinished" says in words why a cell has no figure.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        records = list(map(json.loads, lines))
        self.cells = [record for record in records if "aucs" in record]
        self.costs = [record for record in records if "fit_seconds" in record]
        self.unfinished = [record for record in records if "unfinished" in record]

    def cell(self, data: str, contender: Contender, epsilon: float) -> dict[str, Any] | None:
        """What is there, if it is."""
        wanted = (data, contender.guarantee, contender.name, json_number(epsilon))
        for cell in self.cells:
            if (cell["data"], cell["guarantee"], cell["contender"], cell["epsilon"]) == wanted:
                return cell
        return None

    def no_figure(self, data: str, guarantee: str, name: str, epsilon: float) -> str:
        """Why a cell has no figure."""
        wanted = (data, guarantee, name, json_number(epsilon))
        for record in self.unfinished:
            if (record["data"], record["guarantee"], record["contender"], record["epsilon"]) == wanted:
                return str(record["unfinished"])
        return "not run"

    def cost(self, data: str, contender: Contender) -> dict[str, Any] | None:
        """What a fit costs, if it was measured."""
        wanted = (data, contender.guarantee, contender.name)
        found = (cost for cost in self.costs if (cost["data"], cost["guarantee"], cost["contender"]) == wanted)
        return next(found, None)

    def mean(self, data: str, contender: Contender, epsilon: float, kind: str) -> float:
        """The mean of the "errors" or of the "aucs" of a cell; NaN if it is not there."""
        cell = self.cell(data, contender, epsilon)
        return float(np.mean(cell[kind])) if cell else math.nan

    def keep(self, cell: dict[str, Any]) -> None:
        """Add a cell or a cost, in the file too."""
        (self.costs if "fit_seconds" in cell else self.cells).append(cell)
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(cell) + "\n")


def json_number(epsilon: float) -> float | str:
    """An epsilon as JSON has it, which knows no infinity."""
    return epsilon if math.isfinite(epsilon) else "inf"
