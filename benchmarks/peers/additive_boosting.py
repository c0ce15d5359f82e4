"""DP-EBM, the private additive model of interpret-core (Nori, Caruana, Bu, Shen, Kulkarni, 2021), with public knowledge.

The library's DPExplainableBoostingClassifier chooses the bins of each column from a noisy histogram. Then it boosts: each
step takes one column, splits its bins at random, and adds a noisy sum of residuals for each part. Here the library is told
everything that is public: which columns are numbers, and their bounds (`feature_types`, `privacy_bounds`). A number is given
in its own unit, or stretched to [-1, 1] by the scale of its column (linear or log). A category is given as the level that
the schema makes of it, so that no cell is missing; the library refuses missing cells.

Its guarantee is (epsilon, delta) for neighbours that add or remove one row. A row changes one count of each histogram by 1,
and one sum of residuals in each step by at most 1; the noise is made for these sensitivities. A tenth of epsilon and half of
delta go into the bins, the rest into boosting. Each of the two parts is composed exactly, as Gaussian mechanisms
(`composition="gdp"`). Three facts are taken as public without being accounted for: the exact number of rows, which decides
how heavy a bin must be; the two classes; and which levels of a category occur, of which the model shows those whose noisy
count is large enough. The share of each class is not used: all scores begin at 0. Noise is drawn in double precision.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.peers.outcomes import Outcome
from benchmarks.peers.problems import Problem

from confide import Schema
from confide.array_types import Array
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.encoder import Encoder

DEFAULT_STEPS = (300, 0.01)
"""Rounds of boosting, and the rate of learning, that the library takes unless told otherwise."""
OTHER_STEPS = ((10, 1.0), (30, 0.3), (30, 1.0), (100, 0.1), (100, 0.3), (100, 1.0), (300, 0.1), (300, 0.3), (300, 1.0))


def settings(*, tuned: bool) -> list[dict[str, Any]]:
    """Both scales of numbers, with rounds and rate at their defaults, or with a grid of others."""
    return [
        {"scale": scale, "max_rounds": rounds, "learning_rate": rate}
        for scale, (rounds, rate) in itertools.product(("unit", "column"), OTHER_STEPS if tuned else [DEFAULT_STEPS])
    ]


def frame(schema: Schema, rows: pd.DataFrame, scale: str) -> pd.DataFrame:
    """The columns that the schema describes: numbers clipped to their bounds, on a scale, and categories as text."""
    columns = {}
    for column in schema.columns:
        if isinstance(column, CategoryColumn):
            columns[column.name] = _levels(column, rows)
        else:
            numbers = np.clip(rows[column.name].to_numpy(dtype=float), column.low, column.high)
            columns[column.name] = column.stretched(numbers) if scale == "column" else numbers
    return pd.DataFrame(columns, index=rows.index)


def _levels(column: CategoryColumn, rows: pd.DataFrame) -> Array:
    """Each level as a text of its own, as the schema counts unlisted and missing cells."""
    encoded = Encoder(Schema(columns=[column])).transform(rows)
    # A category of two levels has one encoded column, of -1 and 1; others have a column for each level. No level is all 0.
    several = np.where(encoded.any(axis=1), encoded.argmax(axis=1), -1)
    levels = several if encoded.shape[1] > 1 else encoded[:, 0]
    return np.array([f"level {level:g}" for level in levels], dtype=object)


def public_knowledge(schema: Schema, scale: str) -> dict[str, Any]:
    """What the library is told of the columns."""
    numbers = [column for column in schema.columns if isinstance(column, NumberColumn)]
    return {
        "feature_types": ["continuous" if column in numbers else "nominal" for column in schema.columns],
        "privacy_bounds": {
            column.name: (-1.0, 1.0) if scale == "column" else (column.low, column.high) for column in numbers
        },
    }  # fmt: skip


def outcomes(
    problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
) -> list[list[Outcome]]:
    """Outcomes of each setting, one for each draw. The noise is the library's own, not drawn by the seed."""
    from interpret.privacy import DPExplainableBoostingClassifier

    del seed
    split, schema = problem.split, problem.split.schema
    found = []
    for setting in chosen:
        scale, rounds, rate = setting["scale"], setting["max_rounds"], setting["learning_rate"]
        train, test = (frame(schema, rows, scale) for rows in (split.X_train, split.X_test))
        known = public_knowledge(schema, scale)
        scores = []
        for _ in range(draws):
            model = DPExplainableBoostingClassifier(
                epsilon=epsilon, delta=delta, max_rounds=rounds, learning_rate=rate, n_jobs=1, **known
            )
            model.fit(train, split.y_train)
            scores.append(np.asarray(model.decision_function(test)))
        found.append(problem.outcomes(np.stack(scores, axis=1)))
    return found
