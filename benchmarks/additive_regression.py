"""Prices of diamonds and visits to a doctor: additive regressions with everything at its default but the bound on targets.

R^2 of prices, and the deviance of counts that is explained, on rows held out, beside the same models with straight lines
and without privacy. Replace-one, delta 1e-6.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.additive_regression [--draws 20]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.metrics import mean_poisson_deviance, r2_score
from threadpoolctl import threadpool_limits

from benchmarks.public_data import folder
from confide import AdditiveRegressor, ApproxDP, Schema

EPSILONS = (0.1, 0.5, 1.0, math.inf)


@dataclass(frozen=True)
class Regression:
    """Rows for training and test with their targets, the schema, and the public bound on targets."""

    name: str
    schema: Schema
    rows: pd.DataFrame
    targets: np.ndarray
    n_train: int
    target_bound: float
    loss: str

    def fitted(self, epsilon: float, **parameters: object) -> AdditiveRegressor:
        """A model of the training rows."""
        budget = ApproxDP(epsilon, 1e-6) if math.isfinite(epsilon) else epsilon
        model = AdditiveRegressor(budget, schema=self.schema, target_bound=self.target_bound, loss=self.loss, **parameters)
        return model.fit(self.rows[: self.n_train], self.targets[: self.n_train])

    def explained(self, model: AdditiveRegressor) -> float:
        """R^2, or the share of the Poisson deviance that the model explains, on the test rows."""
        held, predicted = self.targets[self.n_train :], model.predict(self.rows[self.n_train :])
        if self.loss != "poisson":
            return float(r2_score(held, predicted))
        constant = np.full(held.size, self.targets[: self.n_train].mean())
        return 1.0 - mean_poisson_deviance(held, np.maximum(predicted, 1e-9)) / mean_poisson_deviance(held, constant)


def _shuffled(file: str) -> pd.DataFrame:
    frame = pd.read_parquet(folder() / file)
    return frame.iloc[np.random.default_rng(0).permutation(len(frame))].reset_index(drop=True)


def diamonds() -> Regression:
    """Prices, with the bounds that a dealer would give. 40,000 of 53,940 rows are for training."""
    frame = _shuffled("diamonds.parquet")
    levels = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("DEFGHIJ"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    bounds = {"carat": (0.2, 5), "depth": (43, 95), "table": (43, 95), "x": (0, 12), "y": (0, 12), "z": (0, 8)}
    columns = {name: {"low": low, "high": high} for name, (low, high) in bounds.items()}
    columns |= {name: {"categories": those, "other": those[0]} for name, those in levels.items()}
    rows = frame[[*columns]].astype(dict.fromkeys(levels, str))
    return Regression("diamonds", Schema(columns), rows, frame["price"].to_numpy(float), 40_000, 20_000.0, "huber")


def visits() -> Regression:
    """Visits to a doctor in a year of the RAND experiment. 15,000 of 20,190 rows are for training."""
    frame = _shuffled("randhie.parquet")
    bounds = {
        "coins": (0, 100), "xage": (0, 65), "income": (0, 30_000), "educdec": (0, 25), "disea": (0, 60), "mhi": (0, 100),
        "ghindx": (0, 100), "female": (0, 1), "black": (0, 1), "physlm": (0, 1), "num": (1, 14), "child": (0, 1),
    }  # fmt: skip
    columns = {name: {"low": low, "high": high, "missing": True} for name, (low, high) in bounds.items()}
    return Regression("visits", Schema(columns), frame[[*columns]], frame["mdvis"].to_numpy(float), 15_000, 20.0, "poisson")


def flights() -> Regression:
    """Delays at arrival: they are delays at departure and a little more. Three quarters of the rows are for training."""
    frame = _shuffled("flights.parquet")
    bounds = {"day": (1, 31), "hour": (5, 23), "distance": (80, 5000), "dep_delay": (-30, 300)}
    columns: dict[str, dict[str, object]] = {name: {"low": low, "high": high} for name, (low, high) in bounds.items()}
    columns |= {name: {"categories": sorted(frame[name].unique().tolist())} for name in ("month", "carrier", "origin")}
    n_train = len(frame) * 3 // 4
    return Regression(
        "flights", Schema(columns), frame[[*columns]], frame["arr_delay"].to_numpy(float), n_train, 300.0, "huber"
    )


def bends() -> Regression:
    """Made-up rows of six columns, one of them straight, two bent and one bent a little. 6,000 are for training."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.0, 1.0, (10_000, 6))
    targets = np.sin(3.0 * rows[:, 0]) + 2.0 * np.abs(rows[:, 1]) + rows[:, 2] ** 2 + 0.5 * rows[:, 3] - 1.33
    targets += 0.25 * targets.std() * rng.normal(size=len(rows))
    frame = pd.DataFrame(rows, columns=[f"x{i}" for i in range(6)])
    return Regression("bends", Schema({name: {"low": -1, "high": 1} for name in frame}), frame, targets, 6_000, 4.0, "huber")


REGRESSIONS = {"diamonds": diamonds, "visits": visits, "flights": flights, "bends": bends}


def main() -> None:
    """Print a line for each data set and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--data", nargs="*", choices=REGRESSIONS, default=["diamonds", "visits"])
    options = parser.parse_args()
    with threadpool_limits(1):
        for name in options.data:
            given = REGRESSIONS[name]()
            for epsilon in EPSILONS:
                draws = options.draws if math.isfinite(epsilon) else 1
                found = {}
                for kind, parameters in (("default", {}), ("straight lines", {"knots": 0})):
                    values = [given.explained(given.fitted(epsilon, **parameters)) for _ in range(draws)]
                    found[kind] = f"{kind} {np.mean(values):.4f} +- {np.std(values) / math.sqrt(draws):.4f}"
                print(f"{name:9} epsilon {epsilon:<4g} " + "  ".join(found.values()), flush=True)


if __name__ == "__main__":
    main()
