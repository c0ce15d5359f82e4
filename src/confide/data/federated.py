"""Rows that several parties hold, each in a process of its own, which send sums over their rows and no row.

What it protects: rows stay where they are, and the released model is private at its budget against whoever sees it. What it
does not: the coordinator sees the sums of each party, exactly and at many weights, and a sum over few rows can tell a row.
So the parties must trust the coordinator as a curator; it draws the noise, and keeps the ledger. It trusts them to hold no
row twice. What travels is not encrypted: use connections that are.

A connection is one of `multiprocessing.connection`, or has `send_bytes` and `recv_bytes` as those have. Messages are
archives of NumPy arrays: no pickle, so neither side can run code at the other.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np

from confide.data.opened import CheckedRows
from confide.data.partitions import Outcome, added, refuse_persons
from confide.data.source import RowSource
from confide.data.streams import Reading
from confide.erm.row_sums import RowSum, SumOverRows, Totals
from confide.errors import InputError
from confide.features.schema import Schema
from confide.types import Weights

_HIGHEST_ORDER = 2


class Connection(Protocol):
    """One end of a way between two processes."""

    def send_bytes(self, message: bytes, /) -> None:
        """Send one message."""

    def recv_bytes(self, maxlength: int | None = None, /) -> bytes:
        """Wait for one message."""


@dataclass(frozen=True, slots=True, eq=False)
class FederatedRows:
    """Rows of several parties, for the coordinator's `fit`. Each party runs `confide.estimators.federated.take_part`.

    Parameters
    ----------
    schema : the public description of the columns, the same for all
    connections : one to each party
    """

    schema: Schema
    connections: tuple[Connection, ...] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "connections", tuple(self.connections))

    @contextmanager
    def checked(self, reading: Reading, rows_per_person: int) -> Iterator[CheckedRows]:
        refuse_persons(self.schema)
        try:
            n_rows = [_int(_received(connection, "n_rows")["n_rows"]) for connection in self.connections]
            if not n_rows or min(n_rows) < 1:
                raise InputError("every party must hold at least one row, and there must be at least one party.")
            yield CheckedRows(FederatedSource(self.connections, reading.n_features, sum(n_rows)), sum(n_rows))
        finally:
            for connection in self.connections:
                _end(connection)


@dataclass(frozen=True, slots=True, eq=False)
class FederatedSource:
    """A `RowSource` over the rows of all parties."""

    connections: tuple[Connection, ...] = field(repr=False)
    n_features: int
    n_rows: int
    _one_at_a_time: Lock = field(init=False, repr=False, default_factory=Lock)

    def sum_over_rows(self, row_sum: SumOverRows, weights: Weights) -> Totals:
        if not isinstance(row_sum, RowSum):
            raise InputError("parties send sums of a loss alone.")
        # An answer does not say which question it belongs to.
        with self._one_at_a_time:
            return self._asked(row_sum, weights)

    def _asked(self, row_sum: RowSum, weights: Weights) -> Totals:
        # All parties work at the same time.
        request = _packed(order=np.array(row_sum.order), weights=weights, agreed=np.array(agreement(row_sum)))
        for connection in self.connections:
            connection.send_bytes(request)
        start = row_sum.start(weights.shape[0], self.n_features)
        outcomes = []
        for number, connection in enumerate(self.connections):
            answer = _received(connection, "value", "gradient", "hessian")
            totals = Totals(answer["value"], answer["gradient"], answer["hessian"])
            pairs = zip(
                (totals.value, totals.gradient, totals.hessian), (start.value, start.gradient, start.hessian), strict=True
            )
            if any(sent.shape != due.shape or sent.dtype != np.float64 for sent, due in pairs):
                raise InputError(
                    "a party sent sums of another shape; all must run the same version with the same parameters."
                )
            outcomes.append(Outcome((number,), (0,), totals, None))
        total = added(outcomes).totals
        assert total is not None  # noqa: S101 - every outcome has totals
        return total


def answer(connection: Connection, source: RowSource, row_sum: RowSum) -> None:
    """A party's part: sums over its own rows, clipped as it decides itself, until the coordinator ends.

    Parameters
    ----------
    connection : to the coordinator
    source : the party's rows
    row_sum : what was agreed to be summed, at order 2

    Raises
    ------
    InputError
        If the coordinator asks for another sum than was agreed.
    """
    connection.send_bytes(_packed(n_rows=np.array(source.n_rows)))
    n_weights = row_sum.n_weights(source.n_features)
    while True:
        request = _received(connection)
        if not request:
            return
        order, weights = _int(request["order"]), request["weights"]
        asked = replace(row_sum, order=order)
        fits = weights.ndim == 2 and weights.shape[1] == n_weights and weights.dtype == np.float64
        if not (0 <= order <= _HIGHEST_ORDER and fits and str(request["agreed"]) == agreement(asked)):
            raise InputError(
                "the coordinator asks for another sum than was agreed: both sides need the same version and the same "
                "parameters."
            )
        totals = source.sum_over_rows(asked, weights)
        connection.send_bytes(_packed(value=totals.value, gradient=totals.gradient, hessian=totals.hessian))


def agreement(row_sum: RowSum) -> str:
    """By which both sides see that they speak of the same sum: loss, bound on rows, intercept, order, cap on weights."""
    return hashlib.sha256(repr(row_sum).encode()).hexdigest()


def _end(connection: Connection) -> None:
    with suppress(OSError):  # the party has left
        connection.send_bytes(_packed())


def _packed(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _received(connection: Connection, *names: str) -> Mapping[str, Any]:
    """The arrays of one message. Without names, any message of a request or the one that ends."""
    content: dict[str, Any] = {}
    try:
        with np.load(io.BytesIO(connection.recv_bytes()), allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
        understood = all(name in content for name in names)
    except (EOFError, OSError, ValueError, BadZipFile):
        understood = False
    if not understood:
        raise InputError("a party left, or sent what cannot be understood; nothing is released, and a charge stays.")
    return content


def _int(array: Any) -> int:
    if array.shape != () or array.dtype.kind != "i":
        raise InputError("a party sent what cannot be understood.")
    return int(array)
