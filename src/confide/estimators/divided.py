"""Rows divided by their position, under a public rule, and what a fit checks of them before its charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from confide.accounting.ledger import Batch, Ledger
from confide.errors import BudgetExceeded, ParameterError
from confide.privacy.noise import Entropy
from confide.types import Indices


def parts_of(sizes: Sequence[int], split_seed: int) -> list[Indices]:
    """Positions of the rows of each part, rising: a function of the sizes and the public seed alone."""
    n_rows = sum(sizes)
    order = np.frombuffer(Entropy.seeded(split_seed).read(8 * n_rows), dtype="<u8").argsort(kind="stable")
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


@dataclass(frozen=True, slots=True)
class GivenRows:
    """What `fit` was given, and parts of it by position."""

    X: Any
    y: Any
    facts: Mapping[str, Any]

    @classmethod
    def divisible(cls, X: Any, y: Any, facts: Mapping[str, Any]) -> Self:
        """Frames and lists are divided as they are, and so are arrays; else what only claims to be one becomes one."""
        X = X.tocsr() if issparse(X) else X if hasattr(X, "columns") else np.asarray(X)
        return cls(X, y if isinstance(y, (list, tuple)) or hasattr(y, "iloc") else np.asarray(y), facts)

    def at(self, positions: Indices) -> GivenRows:
        facts = {name: _taken(fact, positions) for name, fact in self.facts.items()}
        return GivenRows(_taken(self.X, positions), _taken(self.y, positions), facts)


def _taken(values: Any, positions: Indices) -> Any:
    """The entries at these positions of a list, an array, a sparse array, or a frame or series of any library."""
    import narwhals.stable.v1 as nw

    if isinstance(values, (list, tuple)):
        return [values[position] for position in positions]
    seen = nw.from_native(values, pass_through=True, allow_series=True)
    return values[positions] if seen is values else seen[positions].to_native()


def check_before_charge(model: Any, rows: GivenRows) -> None:
    """All that a fit checks before its charge, and no more: a batch of no releases stops it there."""
    try:
        clone(model).set_params(ledger=Batch(Ledger(limit=1.0), ())).fit(rows.X, rows.y, **rows.facts)
    except BudgetExceeded:
        return
    raise ParameterError("the estimator did not ask its ledger before it used rows, so its rows cannot be divided.")
