"""Several parties, each with its rows in a process of its own: sums travel, rows do not, and no pickle is read."""

from __future__ import annotations

import io
from dataclasses import replace
from multiprocessing import Pipe, get_context
from threading import Thread

import numpy as np
import pytest

import confide
from confide.data.federated import (
    FederatedRows,
    FederatedSource,
    _refuse_what_rows_cannot_sum_to,
    _unpacked,
    digest_of_sum,
    packed,
    received,
)
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.estimators.parties import take_part
from confide.features.encoder import Encoder
from confide.intake.rows import open_rows
from tests.data.parties import estimator, in_a_thread
from tests.data.tables import SCHEMA, made_up


def party(connection, path, start, stop):
    """One process: reads its own file, in memory or not."""
    frame = made_up().iloc[start:stop]
    if path is None:
        take_part(connection, estimator(), frame, frame["ill"])
    else:
        frame.to_parquet(path)
        take_part(connection, estimator(), open_rows(path, SCHEMA))


class Recording:
    """A connection that keeps what passes."""

    def __init__(self, connection):
        self.connection, self.received = connection, []

    def send_bytes(self, message):
        self.connection.send_bytes(message)

    def recv_bytes(self, maxlength=None):
        self.received.append(self.connection.recv_bytes())
        return self.received[-1]


def test_a_fit_over_parties_is_the_fit_on_all_their_rows(tmp_path):
    """A process of its own and two threads; what they send is sums, whose size does not grow with the rows."""
    frame = made_up()
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(3)]
    files, bounds = (None, str(tmp_path / "b.parquet"), None), (0, 400, 2000, 3000)
    parties = [
        (context.Process if files[i] else Thread)(target=party, args=(theirs, files[i], bounds[i], bounds[i + 1]))
        for i, (_, theirs) in enumerate(pipes)
    ]
    for each in parties:
        each.start()
    connections = [Recording(ours) for ours, _ in pipes]
    model = estimator().fit(FederatedRows(SCHEMA, connections))
    for each in parties:
        each.join(60)
    assert parties[1].exitcode == 0
    assert not any(each.is_alive() for each in parties)
    memory = estimator().fit(frame, frame["ill"])
    assert np.array_equal(model.coef_, memory.coef_)
    assert set(memory.guarantee_.assumptions) < set(model.guarantee_.assumptions)
    assert "each party summed the same rows in every pass" in model.guarantee_.statement()
    width = memory.coef_.shape[1] + 1
    assert max(len(message) for connection in connections for message in connection.received) < 8 * (width**2 + width) + 2000


def request(row_sum, weights, joint=(0.5,), order=1, scales=()):
    agreed = np.array(digest_of_sum(row_sum))
    joints = np.array(joint, dtype=np.float64)
    rest = {"limit": np.zeros(0), "centre": np.zeros(0), "radius": np.zeros(()), "scales": np.array(scales)}
    return packed(number=np.array(7), order=np.array(order), weights=weights, agreed=agreed, joint=joints, **rest)


@pytest.mark.parametrize(
    "ask",
    [
        lambda row_sum, start: request(replace(row_sum, intercept=2.0), start),
        lambda row_sum, start: request(replace(row_sum, row_bound=BallBound(99.0)), start),
        lambda row_sum, start: request(replace(row_sum, largest_weight=2.0), start),
        lambda row_sum, start: request(replace(row_sum, loss=LogisticLoss()), start, joint=()),
        lambda row_sum, start: request(row_sum, start, order=3),
        lambda row_sum, start: request(row_sum, start, order=-1),
        lambda row_sum, start: request(row_sum, start[:, 1:]),
        lambda row_sum, start: request(row_sum, start[0]),
        lambda row_sum, start: request(row_sum, start.astype(np.float32)),
        lambda row_sum, start: request(row_sum, start, joint=()),
        lambda row_sum, start: request(row_sum, start, joint=(-1.0,)),
        lambda row_sum, start: request(row_sum, start, scales=(1.0,)),
    ],
)
def test_a_party_sends_no_other_sum_than_was_agreed(ask):
    """Whatever the coordinator asks for; but a hinge may have a joint of any width, and then it needs one."""
    frame = made_up(200)
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, confide.LinearSVC(loss="huber_hinge", schema=SCHEMA), frame)
    assert sorted(received(ours, n_numbers=0)) == ["agreed", "n_rows"]
    row_sum = RowSum(HuberHinge(0.5), Encoder(SCHEMA).row_bound, 1.0, 2)
    start = np.zeros((1, Encoder(SCHEMA).n_features + 1))
    ours.send_bytes(request(row_sum, start, joint=(0.125,)))
    sums = received(ours, n_numbers=10**4)
    assert sorted(sums) == ["gradient", "hessian", "number", "value"]
    assert sums["number"] == 7
    ours.send_bytes(ask(row_sum, start))
    assert received(ours, n_numbers=0) == {}
    with pytest.raises(EOFError):
        ours.recv_bytes()
    thread.join(60)
    assert len(caught) == 1
    assert "another sum than was agreed" in caught[0] or "smoothing must be" in caught[0]


@pytest.mark.parametrize("message", [b"", b"no archive", packed(n_rows=np.array(0)), packed(n_rows=np.array("2")), packed()])
def test_a_party_that_sends_something_else_is_refused(message):
    """Before anything is charged."""
    ours, theirs = Pipe()
    theirs.send_bytes(message)
    with pytest.raises(ValueError, match="party"):
        estimator().fit(FederatedRows(SCHEMA, [ours]))


class Lying:
    """A connection that changes messages from the third on: the second are the first sums that a fit asks for."""

    def __init__(self, connection, change, first=3):
        self.connection, self.change, self.first, self.n_received = connection, change, first, 0
        self.held = []

    def send_bytes(self, message):
        self.connection.send_bytes(message)

    def recv_bytes(self, maxlength=None):
        self.n_received += 1
        if self.held:
            return self.held.pop()
        message = self.connection.recv_bytes()
        if self.n_received < self.first:
            return message
        arrays = _unpacked(message)
        return self.change(self, message, arrays) if arrays else message


def twice(connection, message, arrays):
    """An answer that comes once more in place of the next one."""
    connection.held.append(message)
    return message


def with_other(name, change):
    return lambda _, message, arrays: packed(**arrays | {name: change(arrays[name])})


LIES = {
    "an answer twice": (twice, "answered another request than the last one"),
    "an answer to another request": (with_other("number", lambda number: number - 1), "answered another request"),
    "a gradient that is no number": (with_other("gradient", lambda sums: sums * np.nan), "no rows have"),
    "an infinite gradient": (with_other("gradient", lambda sums: sums + np.inf), "no rows have"),
    "a gradient beyond all bounds": (with_other("gradient", lambda sums: sums + 1e300), "no rows have"),
    "a gradient of too many rows": (with_other("gradient", lambda sums: sums + 1e4), "no rows have"),
    "a Hessian that is no number": (with_other("hessian", lambda sums: sums * np.nan), "no rows have"),
    "sums of another shape": (with_other("gradient", lambda sums: sums[:, 1:]), "sums of another shape"),
    "words": (lambda *_: b"no archive", "cannot be understood"),
    "nothing": (lambda *_: packed(), "a party left"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_party_that_lies_or_leaves_amid_a_fit_stops_it(lie):
    """In words that say what came. Nothing is released, the charge stands, and the other parties are let go."""
    frame, (change, words) = made_up(300), LIES[lie]
    pipes = [Pipe() for _ in range(2)]
    parts = [in_a_thread(theirs, estimator(), frame[i::2]) for i, (_, theirs) in enumerate(pipes)]
    ledger = confide.Ledger(limit=5.0)
    model = estimator(ledger=ledger)
    with pytest.raises(confide.InputError, match=words):
        model.fit(FederatedRows(SCHEMA, [pipes[0][0], Lying(pipes[1][0], change)]))
    assert not hasattr(model, "coef_")
    assert len(ledger.entries()) == 1
    for thread, caught in parts:
        thread.join(60)
        assert not thread.is_alive()
        assert caught == []


@pytest.mark.parametrize(("claimed", "charges"), [(0, 0), (-5, 0), (3, 1)])
def test_a_party_that_lies_about_its_number_of_rows_stops_the_fit(claimed, charges):
    """None, before the charge. Fewer than its sums show, afterwards: three rows cannot have the sums of 300."""
    frame = made_up(300)
    ours, theirs = Pipe()
    thread, _ = in_a_thread(theirs, estimator(), frame)
    ledger = confide.Ledger(limit=5.0)

    def claim(connection, message, arrays):
        return packed(**arrays | {"n_rows": np.array(claimed)}) if "n_rows" in arrays else message

    with pytest.raises(confide.InputError, match=r"at least one row|no rows have"):
        estimator(ledger=ledger).fit(FederatedRows(SCHEMA, [Lying(ours, claim, first=1)]))
    thread.join(60)
    assert len(ledger.entries()) == charges


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_the_longest_sums_that_rows_can_have_are_let_pass_and_no_longer_ones(weight):
    """Equal rows at the bound with the steepest slope: their sums are those of 40 rows, and too long for 39."""
    row_sum = RowSum(LogisticLoss(), BallBound(3.0), 1.0, 2, weight)
    totals, start = row_sum.start(1, 2), row_sum.start(1, 2)
    rows, weights = np.tile([30.0, 40.0], (40, 1)), np.array([[50.0, 50.0, 50.0]])
    row_sum.add_block(totals, rows, np.full(40, -1.0), weights, np.full(40, 2.0))
    _refuse_what_rows_cannot_sum_to(totals, start, row_sum, 40)
    with pytest.raises(confide.InputError, match="no rows have"):
        _refuse_what_rows_cannot_sum_to(totals, start, row_sum, 39)


@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_party_whose_process_is_killed_amid_a_fit_stops_it(after, tmp_path):
    """After the first sums, or later: the connection ends, nothing is released, the charge stands, and others are let go."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=party, args=(theirs, None, 0, 300))
    process.start()
    theirs.close()

    def kill(connection, message, arrays):
        process.kill()
        process.join()
        return message

    ledger = confide.Ledger(tmp_path / "ledger.db", limit=5.0)
    with pytest.raises(confide.InputError, match="a party left"):
        estimator(ledger=ledger).fit(FederatedRows(SCHEMA, [Lying(ours, kill, first=1 + after)]))
    assert len(ledger.entries()) == 1


def test_a_pickle_is_never_read():
    """A message with an object in it: refused, not loaded."""
    ours, theirs = Pipe()
    stream = io.BytesIO()
    np.save(stream, np.array([object()]), allow_pickle=True)
    theirs.send_bytes(stream.getvalue())
    with pytest.raises(ValueError, match="cannot be understood"):
        estimator().fit(FederatedRows(SCHEMA, [ours]))


def test_parties_without_a_schema_or_a_loss_are_refused_before_a_charge():
    """Sums of squares are not asked of parties, and without a schema they could read the same columns differently."""
    ledger = confide.Ledger(limit=5.0)
    for model in (confide.LogisticRegression(1.0, ledger=ledger), confide.Ridge(1.0, target_bound=1.0, ledger=ledger)):
        with pytest.raises(confide.ConfideError):
            model.fit(FederatedRows(None, ()))
    source = FederatedSource((), 2, (), frozenset())
    with pytest.raises(confide.InputError, match="sums of a loss alone"):
        source.refuse_sums(lambda: (), with_moments=False)
    assert len(ledger.entries()) == 0


class Unnamed(HuberHinge):
    """A loss that shows its place in memory alone."""

    __repr__ = object.__repr__


def test_a_loss_without_a_text_of_its_own_is_refused_before_a_charge():
    """Parties compare the text of a loss. That of another object would differ, or mean nothing."""
    source = FederatedSource((), 2, (), frozenset())
    with pytest.raises(confide.InputError, match="Make it a dataclass"):
        source.refuse_sums(lambda: [RowSum(Unnamed(0.5), BallBound(1.0), 1.0, 1)], with_moments=False)


def test_a_coordinator_that_leaves_ends_its_parties_in_words():
    """Before the first message, and while sums are made."""
    frame = made_up(200)
    for n_messages in (0, 1):
        ours, theirs = Pipe()
        if n_messages == 0:
            ours.close()
        thread, caught = in_a_thread(theirs, estimator(), frame)
        if n_messages == 1:
            ours.recv_bytes()
            ours.close()
        thread.join(60)
        assert not thread.is_alive()
        (told,) = caught
        assert "a party left" in told
