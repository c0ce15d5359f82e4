"""Tables of error and AUC in Markdown, and the lists of cells in which confide errs too often."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass

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

    def lost(self) -> dict[tuple[str, int], float]:
        """By how much each of ours exceeds the best of its peers, where by more than ALLOWANCE; by name and place."""
        found = {}
        for ours in (*STRAIGHT, ADDITIVE):
            peers = [one.name for one in self.contenders if one.is_rival_of(ours)]
            for place, mean in enumerate(self.by_name[ours]):
                if mean - self._least(peers, place) > ALLOWANCE:
                    found[ours, place] = mean - self._least(peers, place)
        return found

    def bent(self) -> dict[int, float]:
        """By how much AdditiveClassifier exceeds the better one of our straight lines, where by more than allowed."""
        allowed = BESIDE_LINES_HELD_OUT if self.data in HELD_OUT else BESIDE_LINES
        more = {place: mean - self._least(STRAIGHT, place) for place, mean in enumerate(self.by_name[ADDITIVE])}
        return {place: excess for place, excess in more.items() if excess > allowed}

    def _least(self, names: tuple[str, ...] | list[str], place: int) -> float:
        """NaN, which no comparison finds greater or less, if none of them is there."""
        return min((mean for name in names if not math.isnan(mean := self.by_name[name][place])), default=math.nan)

    def cell(self, place: int) -> str:
        """What a cell is called in the lists."""
        return f"{self.data}, {self.guarantee}, epsilon {self.epsilons[place]:g}"

    def table(self, absent: dict[str, str], bold: Set[tuple[str, int]]) -> list[str]:
        """Lines of Markdown; contenders that are missing are named, with the reason."""
        what = {"errors": "error", "aucs": "AUC"}[self.kind]
        text = ["", _row([f"{self.data}: {what}, {self.guarantee}", *(f"{epsilon:g}" for epsilon in self.epsilons)])]
        text.append(_row(["---"] * (1 + len(self.epsilons))))
        for name, means in self.by_name.items():
            none = "missing" if name in absent else "not run"
            figures = [none if math.isnan(mean) else f"{mean:.4f}".removeprefix("0") for mean in means]
            shown = [f"**{figure}**" if (name, place) in bold else figure for place, figure in enumerate(figures)]
            text.append(_row([f"{name} (missing: {absent[name]})" if name in absent else name, *shown]))
        return text


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table(results: Results, names: list[str], epsilons: tuple[float, ...], absent: dict[str, str], *, small: bool) -> str:
    """Errors and AUCs for each data set and guarantee. Errors of lost cells are bold, and the lists follow."""
    text: list[str] = []
    lost: list[str] = []
    bent: list[str] = []
    those = contenders(small=small)
    for name in names:
        for guarantee in (PURE, APPROXIMATE):
            errors = Means.of(results, name, guarantee, "errors", epsilons, those)
            text += errors.table(absent, errors.lost().keys())
            text += Means.of(results, name, guarantee, "aucs", epsilons, those).table(absent, set())
            lost += [f"- {errors.cell(place)}, {ours}: {more:+.4f}" for (ours, place), more in errors.lost().items()]
            bent += [f"- {errors.cell(place)}: {more:+.4f}" for place, more in errors.bent().items()]
        text += ["", f"{name} without privacy, error (AUC): {_without_privacy(results, name, those)}"]
    text += ["", f"Cells where confide errs more often than the best peer by more than {ALLOWANCE}: {_count(lost)}"]
    text += ["(LogisticRegression and LinearSVC beside peers on straight lines, AdditiveClassifier beside all.)", *lost]
    allowed = f"{BESIDE_LINES} ({BESIDE_LINES_HELD_OUT} on data held out)"
    beyond = f"Cells where AdditiveClassifier errs more often than the better straight line by more than {allowed}"
    text += ["", f"{beyond}: {_count(bent)}"]
    return "\n".join(text + bent)


def _count(cells: list[str]) -> str:
    return str(len(cells) or "none")


def _without_privacy(results: Results, data: str, those: list[Contender]) -> str:
    plain = [one for one in those if one.guarantee == NONE and results.cell(data, one, math.inf)]
    means = [(one.name, *(results.mean(data, one, math.inf, kind) for kind in ("errors", "aucs"))) for one in plain]
    return ", ".join(f"{name} {error:.4f} ({auc:.4f})" for name, error, auc in means)
