"""What a prior of declared signs gains on small tables, and what it loses with wrong ones.

The signs below were written down before any fit, from common knowledge. Each model is fitted to random parts of a table, the
same rows with and without signs: as they are, with 3 in 10 of them turned by chance, and all turned. "up" stands for several
sizes, as multiples of the one in models/prior.py.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.declared_effects [--data adult ...] [--rows 500 2000] [--draws 24]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from benchmarks.additive_regression import REGRESSIONS
from benchmarks.automatic_knots import data
from confide import AdditiveClassifier, AdditiveRegressor, ApproxDP, LinearSVC, LogisticRegression
from confide.estimators import linear_classifier, regression
from confide.models import prior

SIGNS: dict[str, dict[str, str]] = {
    "adult": {
        "up": "age education-num capital-gain capital-loss hours-per-week sex=Male marital-status=Married-civ-spouse "
        "relationship=Husband relationship=Wife education=Doctorate education=Masters education=Prof-school "
        "education=Bachelors occupation=Exec-managerial occupation=Prof-specialty",
        "down": "marital-status=Never-married relationship=Own-child education=7th-8th education=9th education=10th "
        "education=11th education=12th occupation=Handlers-cleaners occupation=Other-service "
        "occupation=Priv-house-serv occupation=Farming-fishing",
    },
    "bank": {
        "up": "duration previous balance poutcome=success contact=cellular job=retired job=student marital=single",
        "down": "campaign housing=yes loan=yes default=yes contact=unknown",
    },
    "nltcs": {"up": " ".join(f"item{i}" for i in range(1, 16)), "down": ""},
    "clothing": {"up": "Rating", "down": ""},
    "diamonds": {
        "up": "carat x y z clarity=IF clarity=VVS1 clarity=VVS2 color=D color=E cut=Ideal cut=Premium",
        "down": "clarity=I1 clarity=SI2 color=I color=J cut=Fair",
    },
    "flights": {"up": "dep_delay", "down": ""},
    "visits": {"up": "income disea educdec female physlm xage", "down": "coins mhi black num ghindx"},
}
SIZES = (0.25, 0.5, 1.0, 2.0)


def signs_of(name: str, rng: np.random.Generator, share: float) -> dict[str, str]:
    """The signs of a table, a share of them turned."""
    other = {"up": "down", "down": "up"}
    named = [(entry, word) for word, entries in SIGNS[name].items() for entry in entries.split()]
    return {entry: other[word] if rng.random() < share else word for entry, word in named}


def set_size(size: float) -> None:
    """Let "up" stand for a multiple of its size."""
    for place in (linear_classifier, regression):
        for constant in {"USUAL_EFFECT", "USUAL_EFFECT_ON_COUNTS", "USUAL_SHARE"} & {*vars(place)}:
            setattr(place, constant, size * getattr(prior, constant))


def error(given: Any, kind: Any, part: Any, signs: dict[str, str] | None) -> float:
    """The error on test rows, or the share that is not explained, of one fit to a part of the rows."""
    budget = ApproxDP(1.0, 1e-5)
    if kind is AdditiveRegressor:
        model = kind(budget, schema=given.schema, target_bound=given.target_bound, loss=given.loss, prior=signs)
        return 1.0 - float(given.explained(model.fit(given.rows.iloc[part], given.targets[part])))
    model = kind(budget, schema=given.schema, classes=[-1, 1], prior=signs)
    model.fit(given.X_train.iloc[part], given.y_train[part])
    return 1.0 - float(model.score(given.X_test[:6000], given.y_test[:6000]))


def shown(name: str, given: Any, kind: Any, n_rows: int, draws: int) -> None:
    """Print the mean errors of one model on one table, and what signs add to them."""
    cases = {f"{size:g} x": (0.0, size) for size in SIZES} | {"3 in 10 turned": (0.3, 1.0), "turned": (1.0, 1.0)}
    n_train, found = given.n_train if kind is AdditiveRegressor else len(given.y_train), dict[str, list[float]]()
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        part = rng.permutation(n_train)[:n_rows]
        found.setdefault("no signs", []).append(error(given, kind, part, None))
        for case, (share, size) in cases.items():
            set_size(size)
            found.setdefault(case, []).append(error(given, kind, part, signs_of(name, rng, share)))
    print(f"{name} {kind.__name__} {n_rows}:", end="")
    for case, errors in found.items():
        more = np.array(errors) - np.array(found["no signs"])
        print(f"  {case} {np.mean(errors):.4f} ({more.mean():+.4f} +- {more.std() / draws**0.5:.4f})", end="")
    print(flush=True)


def main() -> None:
    """Print a line for each table, model and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", choices=list(SIGNS), default=list(SIGNS))
    parser.add_argument("--rows", nargs="*", type=int, default=[500, 2000])
    parser.add_argument("--draws", type=int, default=24)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.data:
        given = REGRESSIONS[name]() if name in REGRESSIONS else data(name).split
        kinds = (AdditiveRegressor,) if name in REGRESSIONS else (AdditiveClassifier, LogisticRegression, LinearSVC)
        for kind in kinds:
            for n_rows in options.rows:
                shown(name, given, kind, n_rows, options.draws)


if __name__ == "__main__":
    main()
