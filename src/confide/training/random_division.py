"""Rows divided at random: which row lies in which part is drawn in secret, anew for every fit.

A table may be sorted by what it holds. Then one changed row can move all others, and every part of a division by position
could change. A uniform draw gives each row its part, and its place within the part, independently of the order:
proofs/selection.md, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from confide.errors import InputTypeError, ParameterError
from confide.features.labels import positions_of
from confide.features.schema import Schema
from confide.intake.given_rows import GivenRows
from confide.intake.specification import CheckedRows
from confide.privacy.noise import Entropy
from confide.released_models.scores import LinearModel, favoured
from confide.types import Indices


def divided(sizes: Sequence[int], entropy: Entropy) -> list[Indices]:
    """Positions of the rows of each part, in the order drawn: uniform among all divisions into parts of these sizes."""
    return np.split(entropy.permutation(sum(sizes)), np.cumsum(sizes)[:-1])


def refuse_undivided(given: GivenRows) -> None:
    """Refuse rows that cannot be divided here."""
    if not given.lies_here:
        raise InputTypeError(
            "the rows are divided here, and those of a cluster or of other parties stay where they are. Give rows in "
            "memory, or files opened without a client."
        )


def refuse_persons(schema: Schema | None, what: str) -> None:
    """Refuse a schema by which it is private how many rows there are to be divided.

    Parameters
    ----------
    schema : of the rows
    what : who needs to divide them, for the message: "a search needs", or "intervals from parts need"
    """
    if schema is not None and schema.person is not None:
        raise ParameterError(
            f"{what} a schema without a column of persons: how many rows are left of them is private, and the sizes "
            f"of the parts are public. Keep at most k rows of each person yourself, and give max_rows_per_person=k."
        )


def mistakes(model: LinearModel, rows: CheckedRows) -> int:
    """How many labels of the rows the model does not predict."""
    n_classes = len(rows.domain)
    return sum(
        int(np.count_nonzero(favoured(model.scores_alone(memory.blocks)) != positions_of(memory.labels, n_classes)))
        for memory in rows.source.in_memory()
    )
