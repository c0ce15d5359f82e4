"""Test error against epsilon of confide at its defaults and of its peers at their best, at the same guarantee.

Pure privacy for neighbours that replace a row; (epsilon, 1e-5)-privacy for neighbours that add or remove one, where the
number of rows is private between public bounds. The hyperparameters of peers are chosen on the test rows, from a grid with
two fits each; the best two are fitted anew, and the best mean of those is shown. This flatters the peers: nobody
could choose so under privacy. For confide nothing is chosen.

Each cell is a line of a file of results; what is there is not computed again. A peer that cannot be imported is named, in
the table too.

Run: make bench-peers, or python -m benchmarks.peers.accuracy [--data adult] [--draws 10] [--results FILE] [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from benchmarks.peers import diffprivlib_model, gradient_descent, output_perturbation
from benchmarks.peers.problems import NAMES, Problem, problem, small_adult
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import confide

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0, 4.0)
DELTA = 1e-5
PURE, APPROXIMATE, NONE = "pure, replace-one", f"delta = {DELTA:g}, add-or-remove-one", "not private"
CONFIDE, SVC = "confide", "confide, LinearSVC"
ALLOWANCE = 0.002
"""A cell is lost where confide's error is higher than that of the best peer by more than this."""
DOCUMENTED = "diffprivlib, as documented: its stated epsilon is exceeded in places"


class Errors(Protocol):
    """Test errors of each of some settings, one for each draw."""

    def __call__(
        self, problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
    ) -> list[list[float]]: ...


@dataclass(frozen=True)
class Contender:
    """Somebody who trains: the grid of settings at an epsilon, errors of settings, and the module it needs, if optional."""

    name: str
    guarantee: str
    settings: Callable[[float], list[dict[str, Any]]]
    errors: Errors
    needs: str = ""

    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        if self.needs:
            try:
                import_module(self.needs)
            except ImportError as error:
                return str(error)
        return ""


@dataclass(frozen=True)
class Effort:
    """How much is tried."""

    draws: int
    tried: int = 2
    finalists: int = 2


def by_confide(estimator: type[Any]) -> Errors:
    """Fits to raw columns with everything at its default; noise is the operating system's, so the seed is not used."""

    def errors(
        problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
    ) -> list[list[float]]:
        del chosen, seed
        budget: Any = confide.ApproxDP(epsilon, delta) if delta else epsilon
        more: dict[str, Any] = {"neighbours": "add-or-remove-one", "n_rows_bounds": problem.n_rows_bounds} if delta else {}
        split, found = problem.split, []
        for _ in range(draws):
            model = estimator(budget, schema=split.schema, **more).fit(split.X_train, split.y_train)
            found.append(1.0 - float(model.score(split.X_test, split.y_test)))
        return [found]

    return errors


def by_scikit_learn(
    problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
) -> list[list[float]]:
    """Logistic regression without privacy, the same at each draw."""
    del epsilon, delta, seed
    train, test = problem.unit_rows("largest")
    found = []
    for setting in chosen:
        model = LogisticRegression(C=1.0 / setting["ridge"], fit_intercept=False, solver="newton-cholesky", max_iter=100)
        model.fit(train, problem.split.y_train)
        found.append(problem.error(test @ model.coef_.T).tolist() * draws)
    return found


def contenders(*, small: bool) -> list[Contender]:
    """All, in the order of the table."""

    def peer(way: str) -> Callable[[float], list[dict[str, Any]]]:
        return lambda epsilon: diffprivlib_model.settings(epsilon, way, small=small)

    def nothing(_: float) -> list[dict[str, Any]]:
        return [{}]

    def on_weights(_: float) -> list[dict[str, Any]]:
        return output_perturbation.settings(small=small)

    logistic, svc = by_confide(confide.LogisticRegression), by_confide(confide.LinearSVC)
    return [
        Contender(CONFIDE, PURE, nothing, logistic),
        Contender(SVC, PURE, nothing, svc),
        Contender("diffprivlib, as its proof needs it", PURE, peer("sound"), diffprivlib_model.errors, "diffprivlib"),
        Contender(DOCUMENTED, PURE, peer("any"), diffprivlib_model.errors, "diffprivlib"),
        Contender("scikit-learn, Laplace noise on weights", PURE, on_weights, output_perturbation.errors),
        Contender(CONFIDE, APPROXIMATE, nothing, logistic),
        Contender(SVC, APPROXIMATE, nothing, svc),
        Contender("DP-SGD", APPROXIMATE, lambda _: gradient_descent.settings(small=small), gradient_descent.errors),
        Contender("scikit-learn, Gaussian noise on weights", APPROXIMATE, on_weights, output_perturbation.errors),
        Contender(CONFIDE, NONE, nothing, logistic),
        Contender(SVC, NONE, nothing, svc),
        Contender("scikit-learn", NONE, lambda _: [{"ridge": 10.0**power} for power in range(-5, 2)], by_scikit_learn),
    ]  # fmt: skip


def versions(contender: Contender) -> dict[str, str]:
    """What a figure was made with."""
    names = ["confide", "numpy", "scikit-learn", *([contender.needs] if contender.needs else [])]
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


class Results:
    """Cells, each a line of a file once it is whole; a file that is missing is begun. Without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.cells = [json.loads(line) for line in lines]

    def cell(self, data: str, contender: Contender, epsilon: float) -> dict[str, Any] | None:
        """What is there, if it is."""
        wanted = (data, contender.guarantee, contender.name, _number(epsilon))
        for cell in self.cells:
            if (cell["data"], cell["guarantee"], cell["contender"], cell["epsilon"]) == wanted:
                return cell
        return None

    def keep(self, cell: dict[str, Any]) -> None:
        self.cells.append(cell)
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(cell) + "\n")


def _number(epsilon: float) -> float | str:
    return epsilon if math.isfinite(epsilon) else "inf"  # JSON has no infinity


def computed(problem: Problem, contender: Contender, epsilon: float, effort: Effort) -> dict[str, Any]:
    """One cell: the grid with a few fits each, then the best ones anew."""
    begin = time.process_time()
    delta = DELTA if contender.guarantee == APPROXIMATE else 0.0
    draws = effort.draws if contender.guarantee != NONE else 1
    settings = contender.settings(epsilon)
    finalists = settings
    if len(settings) > 1:
        tried = contender.errors(problem, epsilon, delta, settings, min(effort.tried, draws), 1)
        order = np.argsort([np.mean(errors) for errors in tried], kind="stable")
        finalists = [settings[place] for place in order[: effort.finalists]]
    errors = contender.errors(problem, epsilon, delta, finalists, draws, 2)
    best = int(np.argmin([np.mean(one) for one in errors]))
    return {
        "data": problem.name, "guarantee": contender.guarantee, "contender": contender.name, "epsilon": _number(epsilon),
        "errors": [round(error, 6) for error in errors[best]], "setting": finalists[best], "settings": len(settings),
        "seconds": round(time.process_time() - begin, 2), "date": datetime.now(UTC).date().isoformat(),
        "versions": versions(contender),
    }  # fmt: skip


def table(results: Results, names: list[str], epsilons: tuple[float, ...], absent: dict[str, str], *, small: bool) -> str:
    """Markdown: a block for each data set and guarantee; what confide loses is bold, what is missing is named."""
    text, lost = [], []
    for name in names:
        for guarantee in (PURE, APPROXIMATE):
            those = [contender for contender in contenders(small=small) if contender.guarantee == guarantee]
            means = {}
            for contender in those:
                cells = [results.cell(name, contender, epsilon) for epsilon in epsilons]
                means[contender.name] = [np.mean(cell["errors"]) if cell else math.nan for cell in cells]
            text += ["", f"| {name}: {guarantee} | " + " | ".join(f"{epsilon:g}" for epsilon in epsilons) + " |"]
            text += ["| --- |" + " --- |" * len(epsilons)]
            for contender in those:
                shown = []
                for place, mean in enumerate(means[contender.name]):
                    rivals = [
                        means[rival][place] for rival in means
                        if rival not in (CONFIDE, SVC) and not math.isnan(means[rival][place])
                    ]  # fmt: skip
                    worse = contender.name in (CONFIDE, SVC) and rivals and mean > min(rivals) + ALLOWANCE
                    none = "missing" if contender.name in absent else "not run"
                    figure = none if math.isnan(mean) else f"{mean:.4f}".lstrip("0")
                    shown.append(f"**{figure}**" if worse else figure)
                    if worse:
                        lost.append(
                            f"{name}, {guarantee}, epsilon {epsilons[place]:g}, {contender.name}: {mean - min(rivals):+.4f}"
                        )
                why = f" (missing: {absent[contender.name]})" if contender.name in absent else ""
                text.append(f"| {contender.name}{why} | " + " | ".join(shown) + " |")
        plain = [(c, results.cell(name, c, math.inf)) for c in contenders(small=small) if c.guarantee == NONE]
        shown = [f"{contender.name} {np.mean(cell['errors']):.4f}" for contender, cell in plain if cell]
        text += ["", f"{name} without privacy: " + ", ".join(shown)]
    text += ["", f"Cells where confide is worse than the best peer by more than {ALLOWANCE}: {len(lost) or 'none'}"]
    return "\n".join(text + [f"- {one}" for one in lost])


def main(arguments: list[str] | None = None) -> None:
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", choices=NAMES, default=list(NAMES))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_name("results.jsonl"))
    parser.add_argument("--quick", action="store_true", help="a few seconds on a part of Adult; keeps nothing")
    options = parser.parse_args(arguments)
    quick = options.quick
    effort = Effort(2, 1, 1) if quick else Effort(options.draws)
    epsilons = (1.0,) if quick else EPSILONS
    results = Results(None if quick else options.results)
    absent = {one.name: why for one in contenders(small=quick) if (why := one.missing())}
    for name, why in absent.items():
        print(f"{name} is missing below: {why}")
    names = []
    with threadpool_limits(1):
        for given in [small_adult()] if quick else map(problem, options.data):
            names.append(given.name)
            for contender in contenders(small=quick):
                for epsilon in (math.inf,) if contender.guarantee == NONE else epsilons:
                    if contender.name not in absent and results.cell(given.name, contender, epsilon) is None:
                        cell = computed(given, contender, epsilon, effort)
                        results.keep(cell)
                        print(
                            f"{given.name}, {contender.guarantee}, {contender.name}, epsilon {epsilon:g}: "
                            f"{np.mean(cell['errors']):.4f} {cell['setting'] or ''} {cell['seconds']:.1f} s", flush=True,
                        )  # fmt: skip
    print(table(results, names, epsilons, absent, small=quick))


if __name__ == "__main__":
    main()
