"""Test error and AUC against epsilon of confide at its defaults and of its peers at their best, at the same guarantee.

Pure privacy for neighbours that replace a row; (epsilon, 1e-5)-privacy for neighbours that add or remove one, where the
number of rows is private between public bounds. The hyperparameters of peers are chosen on the test rows, from a grid with
two fits each (one each where the grid is slow); the two (three) with the least error are fitted anew, and the one with the
least mean error is shown, with its error and its AUC. This flatters the peers: nobody could choose so under privacy. For
confide nothing is chosen.

Each cell is a line of a file of results; what is there is not computed again. A peer that cannot be imported is named, in
the table too. The last table has the seconds and the peak memory of a fit.

Run: make bench-peers, or python -m benchmarks.peers.accuracy [--data adult nltcs] [--contenders DP-EBM] [--draws 10]
[--epsilons 1 4] [--results FILE] [--quick]
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers import costs
from benchmarks.peers.contenders import APPROXIMATE, DELTA, NONE, Contender, contenders
from benchmarks.peers.outcomes import Outcome
from benchmarks.peers.problems import HELD_OUT, NAMES, Problem, problem, small_adult
from benchmarks.peers.results import Results, json_number
from benchmarks.peers.tables import table
from threadpoolctl import threadpool_limits

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Effort:
    """Fits that are averaged, and whether the grid gets as few as possible: one for each setting, and one finalist."""

    draws: int
    least: bool = False


def versions(contender: Contender) -> dict[str, str]:
    """What a figure was made with."""
    names = ["confide", "numpy", "scikit-learn", *([contender.package] if contender.package else [])]
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def computed(problem: Problem, contender: Contender, epsilon: float, effort: Effort) -> dict[str, Any]:
    """One cell: the grid with a few fits each, then the best ones anew."""
    begin = time.process_time()
    delta = DELTA if contender.guarantee == APPROXIMATE else 0.0
    draws = effort.draws if contender.guarantee != NONE else 1
    settings = contender.settings(epsilon)
    n_finalists = 1 if effort.least else contender.finalists
    finalists = settings
    if len(settings) > n_finalists:
        tried = contender.outcomes(problem, epsilon, delta, settings, 1 if effort.least else contender.tried, 1)
        order = np.argsort([_mean_error(some) for some in tried], kind="stable")
        finalists = [settings[place] for place in order[:n_finalists]]
    outcomes = contender.outcomes(problem, epsilon, delta, finalists, draws, 2)
    best = int(np.argmin([_mean_error(some) for some in outcomes]))
    return {
        "data": problem.name, "guarantee": contender.guarantee, "contender": contender.name, "epsilon": json_number(epsilon),
        "errors": [round(one.error, 6) for one in outcomes[best]], "aucs": [round(one.auc, 6) for one in outcomes[best]],
        "setting": finalists[best], "settings": len(settings), "seconds": round(time.process_time() - begin, 2),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions(contender),
    }  # fmt: skip


def _mean_error(outcomes: list[Outcome]) -> float:
    return float(np.mean([one.error for one in outcomes]))


def main(arguments: list[str] | None = None) -> None:
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", nargs="+", choices=(*NAMES, *HELD_OUT), default=list(NAMES), metavar="NAME",
        help=f"some of {', '.join(NAMES)}, or of those held out: {', '.join(HELD_OUT)}",
    )  # fmt: skip
    parser.add_argument(
        "--contenders", nargs="+", default=[""], metavar="WORD", help="those whose name holds one of the words"
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS, metavar="EPSILON")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_name("results.jsonl"))
    parser.add_argument("--quick", action="store_true", help="a few seconds on a part of Adult; keeps nothing")
    options = parser.parse_args(arguments)
    quick = options.quick
    effort = Effort(2, least=True) if quick else Effort(options.draws)
    epsilons = (1.0,) if quick else tuple(options.epsilons)
    results = Results(None if quick else options.results)
    absent = {one.name: why for one in contenders(small=quick) if (why := one.missing())}
    for name, why in absent.items():
        print(f"{name} is missing below: {why}")
    wanted = [one for one in contenders(small=quick) if any(word in one.name for word in options.contenders)]
    names = []
    with threadpool_limits(1):
        for given in [small_adult()] if quick else map(problem, options.data):
            names.append(given.name)
            for contender in wanted:
                for epsilon in (math.inf,) if contender.guarantee == NONE else epsilons:
                    if contender.name not in absent and results.cell(given.name, contender, epsilon) is None:
                        cell = computed(given, contender, epsilon, effort)
                        results.keep(cell)
                        print(
                            f"{given.name}, {contender.guarantee}, {contender.name}, epsilon {epsilon:g}: error "
                            f"{np.mean(cell['errors']):.4f}, AUC {np.mean(cell['aucs']):.4f} {cell['setting'] or ''} "
                            f"{cell['seconds']:.1f} s", flush=True,
                        )  # fmt: skip
    if not quick:
        costs.measure_missing(results, [one for one in wanted if one.name not in absent])
    print(table(results, names, epsilons, absent, small=quick))
    print(costs.table(results, contenders(small=quick)))


if __name__ == "__main__":
    main()
