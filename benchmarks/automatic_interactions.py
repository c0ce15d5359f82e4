"""Which interactions should an additive model have? Test error without any, with pairs and with all, and what "auto" takes.

Each cell is a data set, a guarantee and an epsilon: those of benchmarks/peers, and further data. A line shows the mean error
for interactions=(), "pairs", "all" and "auto", which may find that columns do not act together; what "auto" plans; and by
how much its error is above the least of the three. For a regression, one minus R^2 stands in place of the error.

With --costs, what features cost: seconds of processor time of a fit with the default and of one with curves alone, in turn,
in one process with one thread. A line is a JSON object with the medians.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.automatic_interactions [--data adult covertype] [--draws 3]
     [--epsilons 0.5 1 2 4] [--guarantees pure approximate] [--costs]
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import confide
from benchmarks.additive_regression import flights
from benchmarks.peers import problems
from benchmarks.public_data import folder, load
from confide import Schema

CHOICES: tuple[Any, ...] = ((), "pairs", "all")
DELTA = 1e-5


@dataclass(frozen=True)
class Table:
    """One data set, and the estimator for it with what it needs to know."""

    schema: Schema
    X_train: pd.DataFrame
    y_train: Any
    X_test: pd.DataFrame
    y_test: Any
    estimator: Callable[..., Any] = confide.AdditiveClassifier

    @property
    def n_rows_bounds(self) -> tuple[int, int]:
        """Round figures about the number of rows."""
        return int(0.92 * len(self.y_train)), int(1.23 * len(self.y_train))


def _of_problem(name: str) -> Callable[[], Table]:
    def table() -> Table:
        split = problems.problem(name).split
        return Table(split.schema, split.X_train, split.y_train, split.X_test, split.y_test)

    return table


def _numbers_of(name: str) -> Callable[[], Table]:
    """The columns of numbers alone."""

    def table() -> Table:
        split = problems.problem(name).split
        columns = [column for column in split.schema.columns if column.is_number]
        names = [column.name for column in columns]
        return Table(Schema(columns), split.X_train[names], split.y_train, split.X_test[names], split.y_test)

    return table


def _of_split(name: str, n_rows: int) -> Callable[[], Table]:
    def table() -> Table:
        split = load(name)
        return Table(split.schema, split.X_train[:n_rows], split.y_train[:n_rows], split.X_test, split.y_test)

    return table


def _diamonds(*, expensive: bool) -> Table:
    """The price of a diamond, or whether it is above 2,500."""
    frame = pd.read_parquet(folder() / "diamonds.parquet")
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))]
    columns: dict[str, Any] = {
        "carat": {"low": 0, "high": 5, "scale": "linear"}, "depth": {"low": 40, "high": 80},
        "table": {"low": 40, "high": 100}, "x": {"low": 0, "high": 12}, "y": {"low": 0, "high": 12},
        "z": {"low": 0, "high": 8}, "cut": {"categories": ["Fair", "Good", "Very Good", "Premium", "Ideal"]},
        "color": {"categories": list("DEFGHIJ")},
        "clarity": {"categories": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]},
    }  # fmt: skip
    price, rows = frame["price"].to_numpy(float), frame[list(columns)]
    target = np.where(price > 2500, 1, -1) if expensive else price
    estimator = confide.AdditiveClassifier if expensive else _regressor
    return Table(Schema(columns), rows[:40_000], target[:40_000], rows[40_000:], target[40_000:], estimator)


def _numbers_of_flights() -> Table:
    given, columns = flights(), ["day", "hour", "distance", "dep_delay"]
    schema = Schema(columns=[column for column in given.schema.columns if column.name in columns])
    (X_train, X_test), (y_train, y_test) = (
        (given.rows[columns][part] for part in (slice(None, given.n_train), slice(given.n_train, None))),
        (given.targets[: given.n_train], given.targets[given.n_train :]),
    )

    def regressor(*args: Any, **parameters: Any) -> Any:
        return confide.AdditiveRegressor(*args, target_bound=300, **parameters)

    return Table(schema, X_train, y_train, X_test, y_test, regressor)


def _regressor(*args: Any, **parameters: Any) -> Any:
    return confide.AdditiveRegressor(*args, target_bound=20_000, **parameters)


def _made_up(score: Callable[[Any], Any], noise: float) -> Table:
    """Ten independent normal columns, and two classes told by the sign of a score of them plus normal noise."""
    rng = np.random.default_rng(5)
    columns = rng.normal(size=(60_000, 10))
    classes = np.where(score(columns) + noise * rng.normal(size=len(columns)) > 0.0, 1, -1)
    rows = pd.DataFrame(columns.clip(-4.0, 4.0), columns=list("abcdefghij"))
    schema = Schema({name: {"low": -4, "high": 4} for name in rows})
    return Table(schema, rows[:40_000], classes[:40_000], rows[40_000:], classes[40_000:])


TABLES: dict[str, Callable[[], Table]] = {
    **{name: _of_problem(name) for name in problems.NAMES},
    "bank-additional": _of_split("bank-additional", 10**6),
    "nltcs": _of_split("nltcs", 10**6),
    "adult, numbers alone": _numbers_of("adult"),
    "bank, numbers alone": _numbers_of("bank"),
    "kddcup99, 41 columns": _of_split("kddcup99", 56_000),
    "skin, 5,000 rows": _of_split("skin", 5_000),
    "diamonds, expensive or not": lambda: _diamonds(expensive=True),
    "diamonds, price": lambda: _diamonds(expensive=False),
    "flights, numbers alone": _numbers_of_flights,
    "made up, lines": lambda: _made_up(lambda x: x.sum(axis=1) / 3.0, 0.7),
    "made up, squares": lambda: _made_up(lambda x: (x**2).sum(axis=1) - 9.34, 0.0),
    "made up, steps": lambda: _made_up(lambda x: np.sign(x[:, :3] - [0.0, 0.5, -0.5]) @ [1.0, 0.8, 0.6], 0.7),
    "made up, product": lambda: _made_up(lambda x: x[:, 0] * x[:, 1] + x[:, 2], 0.5),
}


def models(table: Table, guarantee: str, epsilon: float) -> dict[Any, Any]:
    """An estimator for each choice, and for "auto"."""
    more: dict[str, Any] = {"schema": table.schema}
    budget: Any = epsilon
    if guarantee == "approximate":
        budget = confide.ApproxDP(epsilon, DELTA)
        more |= {"neighbours": "add-or-remove-one", "n_rows_bounds": table.n_rows_bounds}
    return {choice: table.estimator(budget, interactions=choice, **more) for choice in (*CHOICES, "auto")}


def mean_error(model: Any, table: Table, draws: int) -> float:
    """The mean test error of some fits; infinite where the table has too many pairs."""
    try:
        model.chosen_schema(len(table.y_train))
    except confide.ParameterError:
        return math.inf
    fits = (model.fit(table.X_train, table.y_train) for _ in range(draws))
    return float(np.mean([1.0 - fit.score(table.X_test, table.y_test) for fit in fits]))


def costs(name: str, table: Table, epsilon: float, draws: int) -> dict[str, Any]:
    """Medians of seconds of processor time, and how many times as long the default takes. The first fit of each is apart."""
    made = models(table, "approximate", epsilon)
    seconds: dict[str, list[float]] = {"curves": [], "default": []}
    for _ in range(draws + 1):
        for kind, model in (("curves", made[()]), ("default", made["auto"])):
            began = time.process_time()
            model.fit(table.X_train, table.y_train)
            seconds[kind].append(time.process_time() - began)
    first, medians = ({kind: own[0] for kind, own in seconds.items()}, {k: np.median(own[1:]) for k, own in seconds.items()})
    features = made["auto"].chosen_schema(len(table.y_train)).random_features
    return {
        "data": name, "epsilon": epsilon, "rows": len(table.y_train), "features": 0 if features is None else features.number,
        **{kind: round(float(own), 3) for kind, own in medians.items()}, "first": round(first["default"], 2),
        "times": round(float(medians["default"] / medians["curves"]), 2), "fits": draws,
    }  # fmt: skip


def main() -> None:
    """Print one line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--guarantees", nargs="+", choices=["pure", "approximate"], default=["pure", "approximate"])
    parser.add_argument("--costs", action="store_true", help="what random features cost, in place of errors")
    given = parser.parse_args()
    if given.costs:
        warnings.simplefilter("ignore")
        with threadpool_limits(1):
            for name, epsilon in ((name, epsilon) for name in given.data for epsilon in given.epsilons):
                print(json.dumps(costs(name, TABLES[name](), epsilon, given.draws)), flush=True)
        return
    columns = ("none", "pairs", "all", "auto")
    print(f"{'data':27} {'guarantee':12} {'epsilon':>7} {' '.join(f'{name:>7}' for name in columns)}  plan  above the least")
    for name in given.data:
        table = TABLES[name]()
        for guarantee in given.guarantees:
            for epsilon in given.epsilons:
                made = models(table, guarantee, epsilon)
                errors = {}
                for choice in (*CHOICES, "auto"):
                    errors[choice] = mean_error(made[choice], table, given.draws)
                features = made["auto"].chosen_schema(len(table.y_train)).random_features
                auto: Any = () if features is None else "all"
                shown = " ".join(f"{errors[choice]:7.4f}" for choice in (*CHOICES, "auto"))
                above = errors["auto"] - min(errors[choice] for choice in CHOICES)
                print(f"{name:27} {guarantee:12} {epsilon:7g} {shown}  {auto or 'none':5} {above:7.4f}", flush=True)


if __name__ == "__main__":
    main()
