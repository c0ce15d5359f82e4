"""Costs and counts that vary much: which threshold to take, and how fits do beside scikit-learn and statsmodels.

    python -m benchmarks.costs --part threshold      # shares of the steepest slope, for the row "costs" of `AIMS`
    python -m benchmarks.costs --part peers          # the deviance explained on held-out rows, and the mean of predictions

For each data set it prints the share of the deviance of held-out rows that a model explains, and the mean of its predictions
over that of the targets within their declared range, on the rows that it learned from. A line of `--part peers` goes into
results/costs.jsonl.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from sklearn.linear_model import GammaRegressor, TweedieRegressor
from threadpoolctl import threadpool_limits

from benchmarks.additive_regression import _shuffled, diamonds, visits
from benchmarks.public_data import load
from confide import AdditiveRegressor, ApproxDP, PureDP, Schema
from confide.erm.target_losses import MeanLoss
from confide.features.encoder import Encoder

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
BUDGETS: dict[str, Any] = {
    "pure 1": PureDP(1.0), "pure 4": PureDP(4.0), "1, 1e-6": ApproxDP(1.0, 1e-6), "4, 1e-6": ApproxDP(4.0, 1e-6),
    "not private": math.inf,
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """Rows and targets for training and test, with the exposure of each row or None, and the loss."""

    columns: Schema
    rows: tuple[pd.DataFrame, pd.DataFrame]
    targets: tuple[np.ndarray, np.ndarray]
    low: float
    high: float
    loss: dict[str, Any]
    years: tuple[np.ndarray, np.ndarray] | None = None

    def model(self, budget: Any, **parameters: Any) -> AdditiveRegressor:
        """A fitted model; the targets and exposures are given as arrays."""
        bounds = {} if self.years is None else {"exposure_range": (0.05, 1.0)}
        made = AdditiveRegressor(
            budget, schema=self.columns, target_low=self.low, target_high=self.high, **self.loss, **bounds, **parameters
        )
        return made.fit(self.rows[0], self.targets[0], **({} if self.years is None else {"exposure": self.years[0]}))

    def exposures(self, part: int) -> np.ndarray:
        """The exposures of the rows to learn from (0) or of those held out (1)."""
        return np.ones(len(self.targets[part])) if self.years is None else np.clip(self.years[part], 0.05, 1.0)

    def within(self, part: int) -> np.ndarray:
        """The targets within their declared range."""
        return np.clip(self.targets[part], self.low, self.high)

    def figures(self, rates: Callable[[pd.DataFrame], np.ndarray]) -> tuple[float, float]:
        """The share of the deviance explained on held-out rows, and the mean of predictions over that of the targets."""
        kind = self.loss["loss"]
        powers = {"gamma": 2.0, "tweedie": self.loss.get("power", 1.5)}
        dispersion = self.loss.get("dispersion", 1.0) if kind == "negative_binomial" else 0.0
        whole = MeanLoss(self.high, 2.0**300, power=powers.get(kind, 1.0), dispersion=dispersion, least=self.low)
        means, targets = [rates(self.rows[part]) * self.exposures(part) for part in (0, 1)], self.within(1)
        usual = self.within(0).sum() / self.exposures(0).sum() * self.exposures(1)
        lost = [
            whole.of_scores(np.log(each)[:, None], targets, 0).value.sum() for each in (np.maximum(means[1], 1e-9), usual)
        ]
        return 1.0 - float(lost[0] / lost[1]), float(means[0].mean() / self.within(0).mean())


def _of_visits(column: str, high: float, **loss: Any) -> Task:
    known, frame = visits(), _shuffled("randhie.parquet")
    targets, years, cut = frame[column].to_numpy(float), frame["time"].to_numpy(float), known.n_train
    pairs = [(each[:cut], each[cut:]) for each in (known.rows, targets, years)]
    return Task(known.schema, pairs[0], pairs[1], 0.0, high, loss, pairs[2])


def _price() -> Task:
    known, frame = diamonds(), _shuffled("diamonds.parquet")
    targets, cut = frame["price"].to_numpy(float), known.n_train
    pairs: list[Any] = [(each[:cut], each[cut:]) for each in (known.rows, targets)]
    return Task(known.schema, pairs[0], pairs[1], 300.0, 20_000.0, {"loss": "gamma"})


def _of_bank(column: str, low: float, high: float, **loss: Any) -> Task:
    split = load("bank")
    schema = Schema(columns=[each for each in split.schema.columns if each.name not in (column, "pdays")])
    targets = [rows[column].to_numpy(float) for rows in (split.X_train, split.X_test)]
    return Task(schema, (split.X_train, split.X_test), (targets[0], targets[1]), low, high, loss)


TASKS: dict[str, Callable[[], Task]] = {
    "price, gamma": _price,
    "seconds of calls, gamma": lambda: _of_bank("duration", 10.0, 3_000.0, loss="gamma"),
    "outpatient dollars, Tweedie 1.5": lambda: _of_visits("outpdol", 1_000.0, loss="tweedie"),
    "medical dollars, Tweedie 1.7": lambda: _of_visits("meddol", 5_000.0, loss="tweedie", power=1.7),
    "visits, negative binomial 1": lambda: _of_visits("mdvis", 40.0, loss="negative_binomial"),
    "earlier calls, negative binomial 4": lambda: _of_bank("previous", 0.0, 20.0, loss="negative_binomial", dispersion=4.0),
}


def thresholds(name: str, task: Task, draws: int) -> None:
    """Print what is explained at each share of the steepest slope, beside "auto"."""
    made = AdditiveRegressor(
        schema=task.columns, target_low=task.low, target_high=task.high, **task.loss,
        **({} if task.years is None else {"exposure_range": (0.05, 1.0)}),
    )  # fmt: skip
    last: Any = made._loss(made._target(None)).thresholds[-1]
    for setting, budget in BUDGETS.items():
        said = []
        for share in ("auto", *SHARES):
            given = share if share == "auto" else share * last.threshold
            fits = [task.model(budget, threshold=given) for _ in range(1 if budget == math.inf else draws)]
            explained, means = zip(*(task.figures(fit.predict) for fit in fits), strict=True)
            said.append(f"{share} {np.mean(explained):.3f} ({np.mean(means):.2f})")
        print(f"{name:36} {setting:11}", "  ".join(said), flush=True)


def beside_peers(name: str, task: Task, draws: int) -> dict[str, Any]:
    """What is explained, and the mean, with and without privacy, and by two peers on the same encoded rows."""
    line: dict[str, Any] = {"data": name, "rows": len(task.targets[0])}
    for setting, budget in BUDGETS.items():
        fits = [task.model(budget) for _ in range(1 if budget == math.inf else draws)]
        explained, means = zip(*(task.figures(fit.predict) for fit in fits), strict=True)
        line[setting] = f"{np.mean(explained):.3f} / {np.mean(means):.3f} +- {np.std(means):.3f}"
    encoder = Encoder(fits[0].schema_)
    rows, years, targets = encoder.transform(task.rows[0]), task.exposures(0), task.within(0)
    kind = task.loss["loss"]
    if kind != "negative_binomial":
        power = 2.0 if kind == "gamma" else task.loss.get("power", 1.5)
        peer = (
            GammaRegressor(alpha=1.0 / len(rows), max_iter=10_000)
            if kind == "gamma"
            else TweedieRegressor(power=power, link="log", alpha=1.0 / len(rows), max_iter=10_000)
        )
        # scikit-learn takes rates, with exposures^(2 - p) as weights.
        peer.fit(rows, targets / years, sample_weight=years ** (2.0 - power))
        line["scikit-learn"] = "{:.3f} / {:.3f}".format(*task.figures(lambda frame: peer.predict(encoder.transform(frame))))
    log = sm.families.links.Log()
    family = {
        "gamma": lambda: sm.families.Gamma(log),
        "tweedie": lambda: sm.families.Tweedie(log, var_power=task.loss.get("power", 1.5)),
        "negative_binomial": lambda: sm.families.NegativeBinomial(log, alpha=task.loss.get("dispersion", 1.0)),
    }[kind]()
    found = sm.GLM(targets, sm.add_constant(rows), family=family, offset=np.log(years)).fit()
    line["statsmodels"] = "{:.3f} / {:.3f}".format(
        *task.figures(lambda frame: found.predict(sm.add_constant(encoder.transform(frame), has_constant="add")))
    )
    return line


def main() -> None:
    """Print a line for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--data", nargs="*", choices=TASKS, default=list(TASKS))
    parser.add_argument("--part", choices=["threshold", "peers"], default="peers")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.data:
            task = TASKS[name]()
            if options.part == "threshold":
                thresholds(name, task, options.draws)
            else:
                print(json.dumps(beside_peers(name, task, options.draws)), flush=True)


if __name__ == "__main__":
    main()
