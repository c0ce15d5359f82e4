"""Forecasts for numbers, counts and several classes beside fits of real tables, and where a fit is worth nothing.

For classes the deviation of numbers, the decay of signals and how the shares of classes fall (`planning/made_up_fits.py`)
were chosen on the tables CHOSEN_ON; the other tables of classes had no part in it. A cell is a table, an estimator, a budget
and a number of rows. Forecasts know the schema, the number of rows, the error without privacy, and for classes the share of
the most frequent one. With --wasted a cell shows the noise on a weight beside errors: from
`confide.expected_noise.WASTED` on, a model should be no better than a constant answer.

Run: CONFIDE_DATA_DIR=... python benchmarks/forecasts.py [--tables diamonds ...] [--models Ridge ...] [--budgets 1 ...]
[--sizes 3000 ...] [--wasted]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from public_data import folder

from confide import (
    AdditiveClassifier,
    AdditiveRegressor,
    ApproxDP,
    HuberRegressor,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    Schema,
)
from confide.expected_noise import noise_in_rows
from confide.planning.simulation import simulate

BUDGETS: dict[str, Any] = {
    "0.01": 0.01,
    "0.1": 0.1,
    "0.3": 0.3,
    "1": 1.0,
    "(0.3, 1e-6)": ApproxDP(0.3, 1e-6),
    "(1, 1e-6)": ApproxDP(1.0, 1e-6),
}
CHOSEN_ON = ("covertype3", "airports", "marital", "cut", "marital7", "contact", "months", "prices3")
SIZES, WASTED_SIZES = (3_000, 15_000), (20, 50, 200, 1_000, 15_000)
N_TEST, N_FITS = 4_000, 3
MODELS: dict[str, tuple[Any, ...]] = {
    "numbers": (Ridge, HuberRegressor, AdditiveRegressor),
    "counts": (PoissonRegressor,),
    "classes": (LogisticRegression, LinearSVC, AdditiveClassifier),
}


@dataclass(frozen=True)
class Table:
    """A table with its schema, and the share of its most frequent class."""

    name: str
    kind: str
    schema: Schema
    rows: pd.DataFrame
    share: float | None = None

    @property
    def target(self) -> str:
        """The column that is predicted."""
        assert self.schema.target is not None
        return self.schema.target.column


def listed(rows: pd.DataFrame, name: str) -> dict[str, Any]:
    """A column of categories."""
    return {"categories": sorted(rows[name].unique().tolist())}


def numbers(bounds: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Columns of numbers."""
    return {name: {"low": low, "high": high} for name, (low, high) in bounds.items()}


def tables() -> Iterator[Table]:
    """Prices, delays, visits to doctors, forests, ratings and other classes."""
    rows = pd.read_parquet(folder() / "diamonds.parquet")
    columns = {name: listed(rows, name) for name in ("cut", "color", "clarity")}
    columns |= numbers({"carat": (0, 5), "depth": (50, 75), "table": (50, 75)})
    yield Table("diamonds", "numbers", schema_of({"column": "price", "low": 0, "high": 20_000}, columns), rows)
    del columns["cut"]
    columns |= numbers({"price": (0, 20_000)})
    yield of_classes("cut", rows, "cut", columns)
    rows = pd.read_parquet(folder() / "flights.parquet")
    columns = {name: listed(rows, name) for name in ("month", "carrier", "origin")}
    columns |= numbers({"day": (1, 31), "hour": (5, 23), "distance": (80, 5000), "dep_delay": (-30, 300)})
    yield Table("flights", "numbers", schema_of({"column": "arr_delay", "low": -60, "high": 300}, columns), rows)
    del columns["origin"]
    columns |= numbers({"arr_delay": (-60, 300)})
    yield of_classes("airports", rows, "origin", columns)
    rows = pd.read_parquet(folder() / "randhie.parquet")
    bounds: dict[str, tuple[float, float]] = dict.fromkeys(
        ("black", "female", "physlm", "child", "hlthg", "hlthf", "hlthp"), (0, 1)
    )
    bounds |= {"coins": (0, 100), "xage": (0, 65), "educdec": (0, 25), "mhi": (0, 100), "disea": (0, 60)}
    bounds |= {"lpi": (0, 8), "linc": (0, 11), "lnum": (0, 3)}
    rows = rows[[*bounds, "mdvis"]].dropna()
    yield Table("randhie", "counts", schema_of({"column": "mdvis", "low": 0, "high": 20}, numbers(bounds)), rows)
    rows["visits"] = np.select([rows["mdvis"] == 0, rows["mdvis"] <= 3], ["none", "some"], "many")
    yield of_classes("visits3", rows, "visits", numbers(bounds))
    yield from tables_of_classes()


def tables_of_classes() -> Iterator[Table]:
    """Forests, ratings, and people of two surveys, with how they live, work and are related."""
    rows = pd.read_parquet(folder() / "covertype_sample.parquet")
    bounds: dict[str, tuple[float, float]] = {"Elevation": (1800, 4000), "Aspect": (0, 360), "Slope": (0, 60)}
    bounds |= {"Hillshade_9am": (0, 255), "Horizontal_Distance_To_Hydrology": (0, 1500)}
    bounds |= {"Horizontal_Distance_To_Roadways": (0, 7500)}
    bounds |= {name: (0, 1) for name in rows.columns if "Wilderness" in name}
    yield of_classes("covertype", rows, "Cover_Type", numbers(bounds))
    three = rows.assign(Cover_Type=np.select([rows["Cover_Type"] == 1, rows["Cover_Type"] == 2], [1, 2], 3))
    yield of_classes("covertype3", three, "Cover_Type", numbers(bounds))
    rows = pd.read_parquet(folder() / "clothing_reviews.parquet")
    names = ["Age", "Positive Feedback Count", "Recommended IND", "Division Name", "Department Name", "Class Name"]
    rows = rows[[*names, "Rating"]].dropna()
    rows["star"] = np.select([rows["Rating"] <= 3, rows["Rating"] == 4], ["low", "middle"], "top")
    columns = {name: listed(rows, name) for name in names[3:]}
    columns |= numbers({"Age": (18, 99), "Positive Feedback Count": (0, 50), "Recommended IND": (0, 1)})
    yield of_classes("clothing", rows, "star", columns)
    rows = pd.read_parquet(folder() / "bank_full.parquet")
    columns = {n: listed(rows, n) for n in ("job", "education", "housing", "loan", "default", "month", "contact")}
    columns |= numbers({"age": (18, 95), "balance": (-2_000, 20_000), "day": (1, 31), "campaign": (1, 20)})
    yield of_classes("marital", rows, "marital", columns)
    rows = pd.read_parquet(folder() / "adult_train.parquet").dropna()
    columns = {
        n: listed(rows, n) for n in ("workclass", "education", "occupation", "race", "sex", "income", "native-country")
    }
    columns |= numbers(
        {"age": (17, 90), "hours-per-week": (1, 99), "capital-gain": (0, 100_000), "capital-loss": (0, 4_500)}
    )
    yield of_classes("relationship", rows, "relationship", columns)
    del columns["native-country"]
    columns["relationship"] = listed(rows, "relationship")
    yield of_classes("marital7", rows, "marital-status", columns)
    del columns["workclass"]
    is_own = rows["workclass"].str.startswith("Self")
    rows["work"] = np.select([rows["workclass"] == "Private", is_own], ["private", "own"], "public")
    yield of_classes("work", rows, "work", columns)
    yield from more_tables_of_classes()


def more_tables_of_classes() -> Iterator[Table]:
    """A bank's customers and the months of its calls, prices, delays, disabilities, and attacks on a network."""
    rows = pd.read_parquet(folder() / "bank_full.parquet")
    common = {name: listed(rows, name) for name in ("job", "housing", "loan", "default", "month", "marital")}
    common |= numbers({"age": (18, 95), "balance": (-2_000, 20_000), "day": (1, 31), "campaign": (1, 20)})
    for name, other in (("contact", "education"), ("education", "contact")):
        yield of_classes(name, rows, name, common | {other: listed(rows, other)})
    rows = pd.read_parquet(folder() / "bank_additional_full.parquet")
    rows = rows[rows["month"].isin(["may", "jul", "aug", "jun", "nov", "apr"])]
    names = ("job", "education", "housing", "loan", "default", "contact", "marital", "day_of_week", "poutcome")
    columns = {name: listed(rows, name) for name in names}
    columns |= numbers({"age": (17, 98), "duration": (0, 2_000), "euribor3m": (0, 6), "nr.employed": (4_900, 5_300)})
    columns |= numbers({"emp.var.rate": (-4, 2), "cons.price.idx": (92, 95), "cons.conf.idx": (-51, -26)})
    yield of_classes("months", rows, "month", columns)
    rows = pd.read_parquet(folder() / "diamonds.parquet")
    rows["band"] = np.select([rows["price"] < 1_000, rows["price"] < 4_000], ["low", "middle"], "top")
    columns = {name: listed(rows, name) for name in ("cut", "color", "clarity")}
    columns |= numbers({"carat": (0, 5), "depth": (50, 75), "table": (50, 75)})
    yield of_classes("prices3", rows, "band", columns)
    rows = pd.read_parquet(folder() / "flights.parquet")
    rows["late"] = np.select([rows["arr_delay"] <= -5, rows["arr_delay"] <= 15], ["early", "in time"], "late")
    columns = {name: listed(rows, name) for name in ("month", "carrier", "origin")}
    columns |= numbers({"day": (1, 31), "hour": (5, 23), "distance": (80, 5000), "dep_delay": (-30, 300)})
    yield of_classes("delays3", rows, "late", columns)
    rows = pd.read_parquet(folder() / "nltcs.parquet")
    items = [f"item{i}" for i in range(1, 16)]
    rows["limits"] = rows[items[:4]].sum(axis=1).astype(int).clip(upper=3).astype(str)
    yield of_classes("limits", rows, "limits", numbers(dict.fromkeys(items[4:], (0, 1))))
    rows = pd.read_parquet(folder() / "kddcup99_10percent.parquet").sample(40_000, random_state=0)
    kinds = ("normal", "smurf", "neptune")
    rows["attack"] = np.select([rows["label"] == f"{kind}." for kind in kinds], kinds, "other")
    columns = {name: listed(rows, name) for name in ("protocol_type", "flag")}
    shares = ("serror_rate", "rerror_rate", "same_srv_rate", "diff_srv_rate", "dst_host_same_srv_rate", "logged_in")
    columns |= numbers(dict.fromkeys(shares, (0, 1)) | dict.fromkeys(("count", "srv_count"), (0, 511)))
    columns |= numbers(dict.fromkeys(("dst_host_count", "dst_host_srv_count"), (0, 255)) | {"duration": (0, 5_000)})
    yield of_classes("attacks", rows, "attack", columns)


def of_classes(name: str, rows: pd.DataFrame, target: str, columns: dict[str, Any]) -> Table:
    """A table whose target has classes, with the share of the most frequent one to two digits."""
    shares = rows[target].value_counts(normalize=True)
    described = schema_of({"column": target, "classes": sorted(shares.index.tolist())}, columns)
    return Table(name, "classes", described, rows, round(float(shares.max()), 2))


def schema_of(target: dict[str, Any], columns: dict[str, Any]) -> Schema:
    """A schema with a target."""
    return Schema.from_dict({"target": target, "columns": columns})


def error_of(table: Table, model: Any, fresh: pd.DataFrame) -> float:
    """Mistakes, or what is left of the variance or of the deviance."""
    targets = fresh[table.target].to_numpy()
    if table.kind != "counts":
        return float(1.0 - model.score(fresh, targets))
    means = np.maximum(model.predict(fresh), 1e-9)

    def deviance(means: Any) -> float:
        logs = np.where(targets > 0, targets * np.log(np.maximum(targets, 1e-9) / means), 0.0)
        return float(np.sum(logs - (targets - means)))

    return deviance(means) / deviance(np.full(len(targets), targets.mean()))


def main() -> None:
    """Print one line a cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--budgets", nargs="*", choices=list(BUDGETS), default=list(BUDGETS))
    parser.add_argument("--sizes", nargs="*", type=int)
    parser.add_argument("--wasted", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    sizes = asked.sizes or (WASTED_SIZES if asked.wasted else SIZES)
    for table in tables():
        if asked.tables and table.name not in asked.tables:
            continue
        rows = table.rows.iloc[rng.permutation(len(table.rows))]
        fresh, rest = rows.iloc[:N_TEST], rows.iloc[N_TEST:]
        for kind in MODELS[table.kind]:
            if asked.models and kind.__name__ not in asked.models:
                continue
            part = rest.iloc[: max(sizes)]
            without = error_of(table, kind(math.inf, schema=table.schema).fit(part, part[table.target]), fresh)
            for (name, budget), n in (((each, BUDGETS[each]), n) for each in asked.budgets for n in sizes):
                errors = []
                for _ in range(N_FITS):
                    part = rest.iloc[rng.permutation(len(rest))[:n]]
                    errors.append(error_of(table, kind(budget, schema=table.schema).fit(part, part[table.target]), fresh))
                said = f"{table.name} {kind.__name__} {name} n={n}: without {without:.3f}, private {np.mean(errors):.3f}"
                plan = kind(budget, schema=table.schema).plan(n)
                if not asked.wasted:
                    found = simulate(kind(budget, schema=table.schema), n, error=without, positive_rate=table.share)
                    said += f", forecast {found.error:.3f} [{found.low:.3f}, {found.high:.3f}]"
                elif hasattr(plan, "product_deviation"):
                    said += f", noise on sums {plan.forecast.ratio:.3g}"
                else:
                    said += f", noise on a weight {noise_in_rows(plan) / math.sqrt(plan.problem.n_weights) / n:.3g}"
                print(said, flush=True)


if __name__ == "__main__":
    main()
