"""Tables of error and AUC in Markdown, and the lists of cells in which confide errs too often."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass, field

from benchmarks.peers.contenders import ADDITIVE, APPROXIMATE, NONE, PURE, STRAIGHT, Contender, contenders
from benchmarks.peers.problems import HELD_OUT
from benchmarks.peers.results import Results

ALLOWANCE = 0.002
"""A cell is lost where confide errs more often than the best of its peers by more than this."""
BESIDE_LINES, BESIDE_LINES_HELD_OUT = 0.001, 0.002
"""By how much AdditiveClassifier may err more often than straight lines; the second on data held out."""


@dataclass(frozen=True)
class Means:
    """Mean errors or AUCs ("errors" or "aucs") on one data set under one guarantee, NaN where a cell is not there."""

    data: str
    guarantee: str
    kind: str
    epsilons: tuple[float, ...]
    contenders: tuple[Contender, ...]
    by_name: dict[str, list[float]]

    @classmethod
    def of(
        cls, results: Results, data: str, guarantee: str, kind: str, epsilons: tuple[float, ...], those: list[Contender]
    ) -> Means:
        """Means of the contenders that have this guarantee."""
        having = tuple(one for one in those if one.guarantee == guarantee)
        by_name = {one.name: [results.mean(data, one, epsilon, kind) for epsilon in epsilons] for one in having}
        return cls(data, guarantee, kind, epsilons, having, by_name)

    def beside_peers(self) -> dict[tuple[str, int], float]:
        """By how much each of ours exceeds the best of its peers, by name and place, where both were run."""
        found = {}
        for ours in (name for name in (*STRAIGHT, ADDITIVE) if name in self.by_name):
            peers = [one.name for one in self.contenders if one.is_rival_of(ours)]
            found |= {(ours, place): excess for place, excess in self._beside(ours, peers).items()}
        return found

    def beside_lines(self) -> dict[int, float]:
        """By how much AdditiveClassifier exceeds the better one of our straight lines, by place, where both were run."""
        return self._beside(ADDITIVE, list(STRAIGHT))

    @property
    def allowed_beside_lines(self) -> float:
        """How much of that is allowed."""
        return BESIDE_LINES_HELD_OUT if self.data in HELD_OUT else BESIDE_LINES

    def _beside(self, ours: str, others: list[str]) -> dict[int, float]:
        found = {}
        for place, mean in enumerate(self.by_name[ours]):
            means = [self.by_name[name][place] for name in others if not math.isnan(self.by_name[name][place])]
            if means and not math.isnan(mean):
                found[place] = mean - min(means)
        return found

    def cell(self, place: int) -> str:
        """What a cell is called in the lists."""
        return f"{self.data}, {self.guarantee}, epsilon {self.epsilons[place]:g}"

    def table(self, results: Results, absent: dict[str, str], bold: Set[tuple[str, int]]) -> list[str]:
        """Lines of Markdown; contenders that are missing are named, with the reason."""
        what = {"errors": "error", "aucs": "AUC"}[self.kind]
        text = ["", _row([f"{self.data}: {what}, {self.guarantee}", *(f"{epsilon:g}" for epsilon in self.epsilons)])]
        text.append(_row(["---"] * (1 + len(self.epsilons))))
        for name, means in self.by_name.items():
            none = [results.no_figure(self.data, self.guarantee, name, epsilon) for epsilon in self.epsilons]
            none = ["missing"] * len(means) if name in absent else none
            shown_means = zip(none, means, strict=True)
            figures = [why if math.isnan(mean) else f"{mean:.4f}".removeprefix("0") for why, mean in shown_means]
            shown = [f"**{figure}**" if (name, place) in bold else figure for place, figure in enumerate(figures)]
            text.append(_row([f"{name} (missing: {absent[name]})" if name in absent else name, *shown]))
        return text


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table(results: Results, names: list[str], epsilons: tuple[float, ...], absent: dict[str, str], *, small: bool) -> str:
    """Errors and AUCs for each data set and guarantee. Errors of lost cells are bold, and the lists follow."""
    text: list[str] = []
    lost, bent = _Cells(), _Cells()
    those = contenders(small=small)
    for name in names:
        for guarantee in (PURE, APPROXIMATE):
            errors = Means.of(results, name, guarantee, "errors", epsilons, those)
            beside_peers, beside_lines = errors.beside_peers(), errors.beside_lines()
            text += errors.table(results, absent, {place for place, excess in beside_peers.items() if excess > ALLOWANCE})
            text += Means.of(results, name, guarantee, "aucs", epsilons, those).table(results, absent, set())
            for (ours, place), excess in beside_peers.items():
                note = _loss_alone(results, name, ours, errors.by_name[ours][place] - excess, those)
                lost.compare(f"{errors.cell(place)}, {ours}", excess, ALLOWANCE, note)
            for place, excess in beside_lines.items():
                bent.compare(errors.cell(place), excess, errors.allowed_beside_lines)
        text += ["", f"{name} without privacy, error (AUC): {_without_privacy(results, name, those)}"]
    # Straight lines are compared with peers on straight lines, and curves with all peers.
    text += lost.lines(f"Cells where confide errs more often than the best peer by more than {ALLOWANCE}")
    allowed = f"{BESIDE_LINES} ({BESIDE_LINES_HELD_OUT} on data held out)"
    text += bent.lines(
        f"Cells where AdditiveClassifier errs more often than the better straight line by more than {allowed}"
    )
    return "\n".join(text)


@dataclass
class _Cells:
    """Cells whose excess is more than allowed, and how many were compared."""

    found: list[str] = field(default_factory=list)
    compared: int = 0

    def compare(self, cell: str, excess: float, allowed: float, note: str = "") -> None:
        """Count a cell, and keep it with its note if it exceeds what is allowed."""
        self.compared += 1
        if excess > allowed:
            self.found.append(f"- {cell}: {excess:+.4f}{note}")

    def lines(self, title: str) -> list[str]:
        return ["", f"{title}: {len(self.found)} of {self.compared} compared", *self.found]


def _loss_alone(results: Results, data: str, ours: str, best_of_peers: float, those: list[Contender]) -> str:
    """How one of ours errs without privacy, beside the best peer with it; empty if it was not run. No budget mends that."""
    errors = [results.mean(data, one, math.inf, "errors") for one in those if one.name == ours and one.guarantee == NONE]
    error = errors[0] if errors else math.nan
    if math.isnan(error):
        return ""
    return f" (without privacy it errs by {error:.4f}: {error - best_of_peers:+.4f})".replace(" 0.", " .")


def _without_privacy(results: Results, data: str, those: list[Contender]) -> str:
    plain = [one for one in those if one.guarantee == NONE and results.cell(data, one, math.inf)]
    means = [(one.name, *(results.mean(data, one, math.inf, kind) for kind in ("errors", "aucs"))) for one in plain]
    return ", ".join(f"{name} {error:.4f} ({auc:.4f})" for name, error, auc in means)
