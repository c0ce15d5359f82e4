"""Boosted trees of scikit-learn on synthetic rows, which OpenDP's AIM draws from a private model.

AIM (McKenna, Mullins, Sheldon and Miklau, 2022; `opendp.extras.mbi`) measures counts of each column with half of its
budget. Then it chooses, again and again, a pair of columns that its graphical model fits badly, measures their table, and
fits the model anew. Rows drawn from the model cost nothing more, and boosted trees learn from them as from any others.

A number is cut into equal parts of its column's scale, on the schema's bounds, and all levels are listed, so that the
library has nothing to find out about columns and its delta is 0. Its guarantee is zero-concentrated, for neighbours that add
or remove a row; rho is the largest that dp-accounting converts to the (epsilon, delta) asked for. That conversion is looser
than the exact one of Gaussian noise, which would allow a sixth more. Noise is the library's own: discrete, and not seeded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.peers.outcomes import Outcome
from benchmarks.peers.problems import Codes, Problem
from dp_accounting import ZCDpEvent
from dp_accounting.rdp import RdpAccountant
from sklearn.ensemble import HistGradientBoostingClassifier

from confide.array_types import Array

PARTS = 16
"""Equal parts of a number's scale."""
MOST_ROUNDS = 30
"""Rounds of choosing a table and measuring it. Each fits the model anew, and the library's 16 a column take too long."""
LABEL = "label"
BOOSTING = ((100, 0.1, 31), (100, 0.05, 8), (300, 0.03, 4))
"""Rounds, rate and leaves of boosted trees: the library's defaults first."""


def concentrated(epsilon: float, delta: float) -> float:
    """The largest rho of zero-concentrated privacy that is converted to (epsilon, delta)."""
    low, high = 0.0, epsilon
    for _ in range(50):
        middle = (low + high) / 2.0
        accountant = RdpAccountant()
        accountant.compose(ZCDpEvent(middle))
        low, high = (middle, high) if accountant.get_epsilon(delta) <= epsilon else (low, middle)
    return low


def columns(codes: Codes) -> dict[str, int]:
    """How many codes each column has, the label last. Names are places, so that no name means something to the library."""
    return {f"column {place}": size for place, size in enumerate(codes.sizes)} | {LABEL: 2}


def private_table(codes: Codes, labels: Array, rho: float) -> Any:
    """The library's table of all columns: what it measured of pairs, with rho-private noise, and the model of that."""
    import opendp.prelude as dp
    import polars as pl
    from opendp.extras.mbi import AIM

    dp.enable_features("contrib")
    sizes = columns(codes)
    cells = np.column_stack([codes.train, labels > 0]).astype(np.int64)
    rows = pl.DataFrame({name: cells[:, place] for place, name in enumerate(sizes)})
    context = dp.Context.compositor(
        data=rows.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
    )
    # Cuts at every whole number: the parts are the codes, and no column has values to be discovered.
    cuts = {name: list(range(size - 1)) for name, size in sizes.items()}
    algorithm = AIM(queries=2, rounds=MOST_ROUNDS)
    return context.query().contingency_table(cuts=cuts, algorithm=algorithm).release()


def drawn(codes: Codes, table: Any) -> tuple[Array, Array]:
    """Rows of codes and labels of -1 and 1 from the model, about as many as there are rows."""
    cells = table.synthesize().select(list(columns(codes))).to_numpy()
    return cells[:, :-1], np.where(cells[:, -1] > 0, 1, -1)


def settings(*, small: bool) -> list[dict[str, Any]]:
    """Settings of boosted trees."""
    return [{"rounds": rounds, "rate": rate, "leaves": leaves} for rounds, rate, leaves in BOOSTING[: 1 if small else None]]


def outcomes(
    problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
) -> list[list[Outcome]]:
    """Outcomes of each setting, one for each draw; all of them share the synthetic rows."""
    codes, rho = problem.codes(PARTS), concentrated(epsilon, delta)
    found: list[list[Outcome]] = [[] for _ in chosen]
    for _ in range(draws):
        rows, labels = drawn(codes, private_table(codes, problem.split.y_train, rho))
        for place, one in enumerate(chosen):
            model = HistGradientBoostingClassifier(
                max_iter=one["rounds"], learning_rate=one["rate"], max_leaf_nodes=one["leaves"],
                categorical_features=codes.levels, early_stopping=False, random_state=seed,
            ).fit(rows, labels)  # fmt: skip
            found[place] += problem.outcomes(model.decision_function(codes.test)[:, None])
    return found
