"""Settings, rows and charges of small fits, made without an estimator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.estimators.logistic import LogisticRegression
from confide.intake.specification import RowSpecification
from confide.intake.targets import Classes
from confide.privacy.budgets import ApproxDP, Neighbours, PureDP
from confide.training.charge import rows_per_person
from confide.training.settings import ScoreLoss, Settings, SquaredError

RICH = ApproxDP(50.0, 1e-6)
"""A budget at which intervals on a few thousand rows can be trusted."""


def settings(**changes: Any) -> Settings:
    """Logistic regression at epsilon 1 on rows of norm 1, without an intercept, with some changes."""
    facts = {
        "minimised": ScoreLoss(LogisticLoss()),
        "budget": PureDP(1.0),
        "mechanism": "auto",
        "alpha": None,
        "row_bound": BallBound(1.0),
        "intercept": 0.0,
        "neighbours": Neighbours.REPLACE_ONE,
        "n_rows_bounds": None,
    }
    return Settings(**(facts | changes))


def least_squares(**changes: Any) -> Settings:
    """Least squares with targets up to 1."""
    return settings(minimised=SquaredError(1.0, with_square=False), mechanism="sufficient-statistics", **changes)


def specification() -> RowSpecification:
    """Numeric rows with labels 0 and 1."""
    return RowSpecification(
        columns_of=LogisticRegression(1.0),
        is_fit=True,
        encoder=None,
        target=Classes((0, 1)),
        row_bound=BallBound(1.0),
        rows_per_person=rows_per_person(1, None),
        fourier_map=lambda n_columns: None,
        accepts_sparse=False,
    )


def rows_and_labels(n_rows: int = 300, n_features: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows within the unit ball, and labels 0 and 1 by the first column."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(n_rows, n_features))
    return X, (X[:, 0] > 0.0).astype(int)


def source(n_rows: int = 300, n_features: int = 2) -> MemorySource:
    """The same rows with labels -1 and +1, as a source."""
    X, y = rows_and_labels(n_rows, n_features)
    return MemorySource(ArrayBlocks(X), (2 * y - 1).astype(np.int8))


def checked_rows(n_rows: int, n_features: int = 2, domain: tuple[Any, ...] = (0, 1)) -> Any:
    """What a plan reads of checked rows: their number, their columns and their classes."""
    return SimpleNamespace(n_rows=n_rows, domain=domain, source=SimpleNamespace(n_features=n_features))
