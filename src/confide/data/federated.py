"""Rows of several parties. Each party runs a process of its own, which sends sums over its rows and never a row.

What is protected: rows stay with their party, and the released model is private at its budget against everyone who sees it.
What is not protected: the coordinator sees the sums of each party exactly, at many weights, and a sum over few rows can
reveal a row. So the parties must trust the coordinator as a curator; it draws the noise and keeps the ledger. Each party
gets the weights of every pass, from which it can learn of the rows of others: so parties must trust each other too. The
coordinator trusts the parties that no row is held twice. Messages are not encrypted here; use connections that
encrypt them.

A connection is one of `multiprocessing.connection`, or any object with the same `send_bytes` and `recv_bytes`. Messages are
NumPy arrays without pickle, so neither side can run code on the other.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.lib import format as npy

from confide.array_types import Weights
from confide.data.arrays import CheckedPass, CheckedSource, RowMapChange
from confide.data.partitions import NO_MOMENTS, SUMS, AnyReading, OpenedRows, Outcome, refuse_persons, sum_of_outcomes
from confide.erm.linear_sums import SumOfRows, finds_scales
from confide.erm.losses import Loss
from confide.erm.row_bounds import Centred, before_moving, norm_with_intercept
from confide.erm.row_sums import RowSum, Totals
from confide.erm.source import BlockwiseSum, LentSource
from confide.erm.transformed_losses import asked
from confide.errors import InputError, ParameterError, checked_list, wording
from confide.features.schema import Schema
from confide.features.table import RowsPerPerson
from confide.threads import Pass

# Messages between parties: named arrays in NumPy's format, one after the other, read within bounds.
#
# A message may come from somebody who means harm. So nothing of it runs, its length is bounded before it is read, and no
# part of it is larger in memory than in the message.

MOST_BYTES_BESIDES_NUMBERS = 2**20
"""Length of names, headers and digests of a message: far more than any message of confide has."""
_BYTES_OF_A_NUMBER = 8
_MOST_ARRAYS = 100
"""Number of arrays of a message; those of confide have a few."""
_LEFT = "a party left, or sent what cannot be understood. Nothing is released; what was charged stays charged."


class Connection(Protocol):
    """One end of a connection between two processes."""

    def send_bytes(self, message: bytes, /) -> None:
        """Send one message."""

    def recv_bytes(self, maxlength: int | None = None, /) -> bytes:
        """Wait for one message."""


def packed(**arrays: Any) -> bytes:
    """A message of these arrays: first their names, and then each of them, as `numpy.save` writes arrays."""
    stream = io.BytesIO()
    for array in (np.array(list(arrays), dtype=str), *arrays.values()):
        np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def send(connection: Connection, message: bytes) -> None:
    """Send a message.

    Raises
    ------
    InputError
        If the other side left, or the connection was cut.
    """

    def sent() -> bool:
        connection.send_bytes(message)
        return True

    # A connection of the user's own may raise anything, and show sums in it.
    if asked(sent, None) is None:
        raise InputError(_LEFT)


def received(connection: Connection, *names: str, n_numbers: int, may_end: bool = True) -> Mapping[str, Any]:
    """The arrays of the next message, at least those of these names; none, if it is the empty message, which ends.

    Parameters
    ----------
    connection : where it comes from
    names : the arrays that must be there
    n_numbers : how many numbers it may hold
    may_end : whether it may be the empty message

    Raises
    ------
    InputError
        If the other side left, or the message is too long or cannot be understood.
    """
    longest = MOST_BYTES_BESIDES_NUMBERS + _BYTES_OF_A_NUMBER * n_numbers

    def unpacked() -> dict[str, Any]:
        message = connection.recv_bytes(longest)
        if len(message) > longest:  # a connection may overlook the limit
            raise ValueError
        return _unpacked(message)

    content: dict[str, Any] | None = asked(unpacked, None)
    if content is None or not (content.keys() >= set(names) or (may_end and not content)):
        raise InputError(_LEFT)
    return content


def _unpacked(message: bytes) -> dict[str, Any]:
    """The arrays of a message. Raises one of several errors if it is not one that `packed` makes."""
    stream = io.BytesIO(message)
    names = _array(stream)
    if names.dtype.kind != "U" or names.size > _MOST_ARRAYS:
        raise ValueError
    arrays = {name: _array(stream) for name in names.ravel().tolist()}
    if len(arrays) != names.size or stream.read(1):
        raise ValueError
    return arrays


def _array(stream: io.BytesIO) -> Any:
    """The next array. NumPy's own reader would reserve memory for any shape that a header claims."""
    if npy.read_magic(stream) != (1, 0):
        raise ValueError
    shape, in_columns, dtype = npy.read_array_header_1_0(stream)
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError
    content = stream.read(math.prod(shape) * dtype.itemsize)
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise ValueError
    # A copy, because sums are added up in place.
    return np.frombuffer(content, dtype).reshape(shape, order="F" if in_columns else "C").copy()


_HIGHEST_ORDER = 2
_NAMES = ("number", "order", "weights", "agreed", "joint", "limit", "centre", "radius", "scales")
"""The arrays of a request. Its number comes back with the answer."""
_MORE_THAN_ROUNDING = 1.001
_MOST_PROBLEMS = 100
"""As many problems, one for each class, as a fit may have (intake/targets.py)."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
"""How Python shows an object that has no text of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class FederatedRows(OpenedRows):
    """Rows of several parties, for the `fit` of the coordinator. Each party runs `confide.take_part`.

    Parameters
    ----------
    schema : the public description of the columns, the same for all parties
    connections : one connection to each party

    Raises
    ------
    InputError
        By `fit`, if there is no party, a party holds no row, or one sends what was not asked for.

    Notes
    -----
    Guarantee: the released model is private as in a fit to all rows in one place. The sums that parties send are **not**
    private against the coordinator, who sees them exactly and at many weights. Nor are rows private against the other
    parties, who get the weights of every pass, several of them with the same noise.
    """

    schema: Schema
    connections: tuple[Connection, ...] = field(repr=False)

    gives_moments: ClassVar[bool] = False
    scores_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        listed = checked_list("connections", self.connections, "connections, one to each party")
        object.__setattr__(self, "connections", listed)

    def count(self) -> int:
        return rows_of_parties_are_not_counted()

    @contextmanager
    def checked(self, reading: AnyReading, rows_per_person: RowsPerPerson, n_threads: int = 1) -> Iterator[CheckedPass]:
        if self.schema is None:
            raise InputError("parties need a schema: without one they could read the same columns in different ways.")
        refuse_persons(self.schema)
        try:
            passing, n_rows, agreed = Pass("checking"), [], []
            for connection in self.connections:
                party = received(connection, "n_rows", "agreed", n_numbers=0, may_end=False)
                n_rows.append(_int(party["n_rows"]))
                agreed.append(frozenset(str(fact) for fact in party["agreed"].ravel()))
                passing.used(n_rows[-1])
            if not n_rows or min(n_rows) < 1:
                raise InputError("there must be at least one party, and every party must hold at least one row.")
            digests, fourier = frozenset.intersection(*agreed), reading.fourier
            source = FederatedSource(self.connections, reading.n_features, tuple(n_rows), digests, fourier)
            yield source, source.n_rows
        finally:
            for connection in self.connections:
                send_end(connection)


def rows_of_parties_are_not_counted() -> int:
    """Refuse to choose anything by the number of rows: no party knows the rows of the others, or the budget."""
    raise ParameterError(wording("nothing chosen over parties"))


@dataclass(frozen=True, slots=True, eq=False)
class FederatedSource(CheckedSource):
    """A `RowSource` over the rows of all parties.

    Parameters
    ----------
    connections : one connection to each party
    n_features : number of columns of a row
    n_rows_of_parties : number of rows of each party
    agreed : digests of the sums that all parties agree to, see `digest_of_sum`
    fourier : the public map that is applied to rows, or None
    scales : the scales of columns in random features, where they were found since the rows were checked
    """

    connections: tuple[Connection, ...] = field(repr=False)
    n_features: int = field()  # without `field`, the property of the protocol would become the default value
    n_rows_of_parties: tuple[int, ...]
    agreed: frozenset[str]
    fourier: Any = None
    scales: tuple[float, ...] = ()
    _one_at_a_time: Lock = field(repr=False, default_factory=Lock)
    _numbers: Iterator[int] = field(repr=False, default_factory=itertools.count)

    @property
    def n_rows(self) -> int:
        return sum(self.n_rows_of_parties)

    place: ClassVar[str] = "parties"

    def refuse_sums(self, row_sums: Callable[[], Sequence[RowSum]], *, with_moments: bool) -> None:
        if with_moments:
            raise ParameterError(NO_MOMENTS)
        asked = row_sums()
        if not asked:
            raise InputError("parties send sums of a loss alone. Use a classifier with a loss, such as LogisticRegression.")
        if any(_ADDRESS.search(repr(row_sum)) for row_sum in asked):
            raise InputError(wording("loss shows its place in memory"))
        if not self.agreed.issuperset(map(digest_of_sum, asked)):
            raise InputError(wording("party agrees to other sums"))

    def remapped(self, change: RowMapChange) -> FederatedSource:
        # Parties make the map again from its scales, and take none for sums of encoded rows.
        made: Any = None if change is None else change(self.fourier)
        if made is None:
            return replace(self, n_features=self.fourier.n_inputs)
        return replace(self, fourier=made, scales=made.features.scales)

    def lent(self) -> LentSource:
        # A party never hands out rows, so there is no memory to protect, and the wrapper `lent` is not needed.
        def sum_over_rows(row_sum: BlockwiseSum, weights: Weights) -> Totals:
            return self.sum_over_rows(row_sum, weights)

        return LentSource(self.n_features, self.n_rows, sum_over_rows, lambda _: None, lambda: None, lambda _: None)

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        if not isinstance(row_sum, RowSum):
            raise InputError("parties send no other sums than those of a loss.")
        # An answer says to which request it belongs, and there is one request at a time.
        with self._one_at_a_time:
            passing = Pass("training")
            # Every party gets the request before the first answer is read, so that all work at the same time.
            loss, bound = row_sum.loss.constants, row_sum.row_bound
            moved = (bound.centre, bound.radius) if isinstance(bound, Centred) else ((), 0.0)
            asked = next(self._numbers)
            request = packed(
                number=np.array(asked),
                order=np.array(row_sum.order),
                weights=weights,
                agreed=np.array(digest_of_sum(row_sum)),
                joint=np.array([] if loss.joint is None else [loss.joint]),
                limit=np.array([] if loss.slope_limit is None else [loss.slope_limit]),
                centre=np.array(moved[0]),
                radius=np.array(moved[1]),
                scales=np.array(self.scales),
            )
            for connection in self.connections:
                send(connection, request)
            start = row_sum.start(weights.shape[0], self.n_features)
            n_numbers = sum(part.size for part in start)
            outcomes = []
            for party, connection in enumerate(self.connections):
                answer = received(connection, "number", *SUMS, n_numbers=n_numbers, may_end=False)
                if _int(answer["number"]) != asked:
                    raise InputError(wording("party answered another request"))
                totals = Totals(*(answer[name] for name in SUMS))
                _refuse_what_rows_cannot_sum_to(totals, start, row_sum, self.n_rows_of_parties[party])
                outcomes.append(Outcome((), totals, None))
                passing.used(self.n_rows_of_parties[party])
            total = sum_of_outcomes(outcomes).totals
            assert total is not None  # noqa: S101 - every outcome has totals
            return total


def _refuse_what_rows_cannot_sum_to(totals: Totals, start: Totals, row_sum: RowSum, n_rows: int) -> None:
    """Refuse sums that no `n_rows` rows within the bounds have, whatever they are. Honest sums are never refused.

    The gradient of the loss of one row is no longer than the slope of the loss times the norm of a clipped row, intercept
    included, times the largest weight of a row. The guarantee rests on gradients; Hessians only help solvers.
    """
    pairs = zip(totals, start, strict=True)
    if any(sent.shape != expected.shape or sent.dtype != np.float64 for sent, expected in pairs):
        raise InputError(wording("sums of another shape"))
    norm = norm_with_intercept(row_sum.row_bound, row_sum.intercept)
    longest = row_sum.loss.constants.lipschitz * norm * row_sum.largest_weight
    derived = totals.value if row_sum.order == 0 else totals.gradient  # with derivatives, no value is summed
    finite = np.isfinite(derived).all() and np.isfinite(totals.hessian).all()
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(totals.gradient, axis=1)
    if not finite or lengths.max(initial=0.0) > _MORE_THAN_ROUNDING * longest * n_rows:
        raise InputError(wording("party sent impossible sums"))


def answer(connection: Connection, source: CheckedSource, row_sums: Sequence[RowSum]) -> None:
    """Answer the coordinator with sums over this party's rows until it ends. The party clips its rows by its own bounds.

    Parameters
    ----------
    connection : to the coordinator
    source : the rows of this party
    row_sums : the sums that this party agrees to, at order 2

    Raises
    ------
    InputError
        If the coordinator asks for a sum that is not among them, or left.
    """
    agreed = {digest_of_sum(row_sum): row_sum for row_sum in row_sums}
    send(connection, packed(n_rows=np.array(source.n_rows), agreed=np.array(list(agreed))))
    widest = max((row_sum.n_weights(source.n_features) for row_sum in row_sums), default=0)
    while True:
        request = received(connection, *_NAMES, n_numbers=_MOST_PROBLEMS * widest + 2 * source.n_features)
        if not request:
            return
        row_sum = _requested_sum(agreed, request)
        weights, rows = request["weights"], source
        if row_sum is not None and (request["scales"].size or finds_scales(row_sum)):
            rows = _remapped(source, row_sum, tuple(request["scales"].tolist()))
        width = None if row_sum is None else row_sum.n_weights(rows.n_features)
        understood = weights.dtype == np.float64 and weights.ndim == 2 and 1 <= len(weights) <= _MOST_PROBLEMS
        if row_sum is None or not understood or weights.shape[1] != width:
            raise InputError(wording("another sum than agreed"))
        totals = rows.sum_over_rows(row_sum, weights)
        send(connection, packed(number=np.array(_int(request["number"])), **dict(zip(SUMS, totals, strict=True))))


def _remapped(source: Any, row_sum: RowSum, scales: tuple[float, ...]) -> Any:
    """The rows without their map, for the sums by which scales are found, and otherwise with these scales."""
    if finds_scales(row_sum):
        return source.remapped(lambda _: None)
    return source.remapped(lambda features: features.scaled(scales))


def _requested_sum(agreed: Mapping[str, RowSum], request: Mapping[str, Any]) -> RowSum | None:
    """The sum that the coordinator asks for, or None if this party did not agree to it."""
    row_sum, order, joint = agreed.get(str(request["agreed"])), _int(request["order"]), request["joint"]
    centre, radius, limit = request["centre"], request["radius"], request["limit"]
    if row_sum is None or not 0 <= order <= row_sum.order:
        return None
    # A party that agrees to the sums by which scales are found agrees to all scales: rows keep their bound with them.
    if request["scales"].ndim != 1 or (request["scales"].size and not any(map(finds_scales, agreed.values()))):
        return None
    expected = ((joint, _has_joint(row_sum.loss)), (limit, row_sum.loss.constants.slope_limit is not None))
    for numbers, is_there in expected:
        if numbers.dtype != np.float64 or numbers.shape != (int(is_there),) or not all(0.0 < x < np.inf for x in numbers):
            return None
    if centre.size:
        # A party that agrees to the sum of its rows agrees to every centre, since centres are made of such sums and noise.
        # Rows that were moved obey the same bound, whatever the centre is, and the bound refuses what is none.
        of_rows = [other.row_bound for other in agreed.values() if other.loss == SumOfRows()]
        if row_sum.row_bound not in of_rows or centre.dtype != np.float64 or centre.ndim != 1 or radius.shape != ():
            return None
        row_sum = replace(row_sum, row_bound=Centred(row_sum.row_bound, tuple(centre.tolist()), float(radius)))
    loss: Any = row_sum.loss.with_joint(float(joint[0])) if joint.size else row_sum.loss
    if limit.size:
        loss = replace(loss, limit=float(limit[0]))
    return replace(row_sum, order=order, loss=loss)


def digest_of_sum(row_sum: RowSum) -> str:
    """A digest of loss, bound on rows, intercept and cap on weights. Both sides compare it, to see that they mean one sum.

    It leaves out the width of the joint of a hinge: solvers use wider joints on the way, a plan may take a narrower one, and
    the bound on slopes, which the sensitivity rests on, is the same for every width. It leaves out the limit of clipped
    slopes, which the coordinator decides: it is trusted with sums of slopes that are not clipped, too. It leaves out a
    centre of the rows, because none is known when sums are agreed.
    """
    loss: Any = row_sum.loss.with_joint(1.0) if _has_joint(row_sum.loss) else row_sum.loss
    if loss.constants.slope_limit is not None:
        loss = replace(loss, limit=1.0)
    bound = before_moving(row_sum.row_bound)
    return hashlib.sha256(repr(replace(row_sum, loss=loss, row_bound=bound, order=_HIGHEST_ORDER)).encode()).hexdigest()


def _has_joint(loss: Loss) -> bool:
    """Whether the loss has a joint, or kinks, such as those of the hinge, in place of which every plan puts joints."""
    bounds = loss.constants
    return bounds.has_kinks or (bounds.is_declared and bounds.slope_limit is not None) or bounds.joint is not None


def send_end(connection: Connection) -> None:
    """Tell the other side that no more messages will come, so that it stops waiting."""
    with suppress(OSError, AttributeError):  # the other side has closed the connection, or it is none
        connection.send_bytes(packed())


def _int(array: Any) -> int:
    if array.shape != () or array.dtype.kind != "i":
        raise InputError("a party sent what cannot be understood; all sides must run the same version of confide.")
    return int(array)
