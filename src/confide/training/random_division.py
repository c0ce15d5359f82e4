"""Random division of rows into parts. The division is drawn in secret, and anew for every fit.

A table may be sorted by its contents. Then one changed row can move all the others, and if rows were divided by position,
every part could change. A uniform draw gives each row its part, and its place within the part, independently of the order of
the table: proofs/selection.md, section 2.
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
    """Positions of the rows of each part, in the order in which they were drawn.

    The draw is uniform among all divisions into parts of these sizes.
    """
    return np.split(entropy.permutation(sum(sizes)), np.cumsum(sizes)[:-1])


def refuse_undivided(given: GivenRows) -> None:
    """Refuse rows that this process cannot divide."""
    if not given.lies_here:
        raise InputTypeError(
            "this needs rows that this process can divide, and those of a cluster or of other parties stay where they are. "
            "Give rows in memory, or files opened without a client."
        )


def refuse_persons(schema: Schema | None, what: str) -> None:
    """Refuse a schema with a column of persons: with it, the number of rows to be divided would be private.

    Parameters
    ----------
    schema : the schema of the rows, or None
    what : the beginning of the message: "a search needs", or "intervals from parts need"
    """
    if schema is not None and schema.person is not None:
        raise ParameterError(
            f"{what} a schema without a column of persons. The number of rows that are kept for all persons is private, and "
            f"the sizes of the parts must be public. Keep at most k rows of each person yourself, and give "
            f"max_rows_per_person=k."
        )


def mistakes(model: LinearModel, rows: CheckedRows) -> int:
    """The number of rows whose label the model predicts wrongly."""
    n_classes = len(rows.domain)
    return sum(
        int(np.count_nonzero(favoured(model.scores_alone(memory.blocks)) != positions_of(memory.labels, n_classes)))
        for memory in rows.source.in_memory()
    )
