"""How much does a prior from a few public rows help, and which ridge suits it? Test error on real data sets.

With --prior public, the first rows of a random order are taken as public. A model without privacy is fitted to them, and is
the prior of a private fit to all other rows; neighbours add or remove a row. With --prior release, the prior is a release at
the same budget from half of the rows, and the fit is to the other half; neighbours replace a row. Fits have multiples of the
alpha that a fit without a prior has, and their own automatic alpha. Delta is 1e-5, and the data sets are those of
benchmarks/peers. Printed for each data set, number of public rows and budget: mean error of the prior alone, of the private
fit without a prior, and with it at each alpha.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.public_prior [--data adult bank covertype] [--public 300 1000] [--draws 5]
     [--prior release] [--epsilons .05 .1 .5 1] [--model logistic] [--factors 1 2 4 8 16]
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.peers.problems import HELD_OUT, NAMES, problem

import confide
from confide import ApproxDP, PublicPrior

MODELS: dict[str, Any] = {
    "logistic": confide.LogisticRegression,
    "svm": confide.LinearSVC,
    "additive": confide.AdditiveClassifier,
}


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    data: str
    n_public: int
    epsilon: float


def errors_of(setting: Setting, kind: str, factors: list[float], draws: int) -> dict[str, float]:
    """Mean test errors: of the prior, without it, and with it at each multiple of the alpha without it, and at its own."""
    data, budget = problem(setting.data), ApproxDP(setting.epsilon, 1e-5)
    split, found = data.split, defaultdict[str, list[float]](list)
    is_release = setting.n_public == 0
    relation = {} if is_release else {"neighbours": "add-or-remove-one", "n_rows_bounds": data.n_rows_bounds}
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(split.y_train))
        first, rest = np.split(order, [len(order) // 2 if is_release else setting.n_public])

        def error(model: Any, rows: Any) -> float:
            model.fit(split.X_train.iloc[rows], split.y_train[rows])
            return 1.0 - float(model.score(split.X_test, split.y_test))

        own: dict[str, Any] = {"budget": budget, "schema": split.schema, "classes": [-1, 1], **relation}
        if kind == "additive":
            # So that the curves of the prior and those of the fit have the same knots.
            own["schema"] = MODELS[kind](**own).chosen_schema(len(rest))
        before = MODELS[kind](**own | ({} if is_release else {"budget": float("inf")}))
        prior = before if is_release else PublicPrior(before)
        found["prior"].append(error(before, first))
        found["none"].append(error(MODELS[kind](**own), rest))
        alpha = MODELS[kind](**own).plan(None if relation else len(rest)).alpha
        for factor in factors:
            found[f"{factor:g}"].append(error(MODELS[kind](prior=prior, **own | {"alpha": factor * alpha}), rest))
        found["auto"].append(error(MODELS[kind](prior=prior, **own), rest))
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["adult", "bank", "covertype"], choices=NAMES + HELD_OUT)
    parser.add_argument("--prior", default="public", choices=["public", "release"])
    parser.add_argument("--public", nargs="+", type=int, default=[300, 1000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.05, 0.1, 0.5, 1.0])
    parser.add_argument("--factors", nargs="*", type=float, default=[1.0, 2.0, 4.0, 8.0, 16.0])
    parser.add_argument("--model", default="logistic", choices=list(MODELS))
    parser.add_argument("--draws", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{arguments.model}, {arguments.draws} draws; data, public rows (0: a release), epsilon, mean errors")
    for data in arguments.data:
        for n_public in arguments.public if arguments.prior == "public" else [0]:
            for epsilon in arguments.epsilons:
                found = errors_of(Setting(data, n_public, epsilon), arguments.model, arguments.factors, arguments.draws)
                numbers = "  ".join(f"{name} {error:.4f}" for name, error in found.items())
                print(f"{data:16s} {n_public:5d} {epsilon:5g}  {numbers}", flush=True)


if __name__ == "__main__":
    main()
