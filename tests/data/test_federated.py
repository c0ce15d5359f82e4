"""Several parties, each with its rows in a process of its own: sums travel, rows do not, and no pickle is read."""

from __future__ import annotations

import threading
from multiprocessing import Pipe, get_context

import numpy as np
import pytest

import confide
from confide.data.federated import FederatedRows, _packed
from confide.data.opened import open_rows
from confide.estimators.federated import take_part
from tests.data.tables import SCHEMA, made_up


def estimator(**more):
    return confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3, class_weight={"no": 1.0, "yes": 0.5}, **more)


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
    """Three processes of their own; what they send is sums, whose size does not grow with the rows."""
    frame = made_up()
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(3)]
    files, bounds = (None, str(tmp_path / "b.parquet"), None), (0, 400, 2000, 3000)
    processes = [
        context.Process(target=party, args=(theirs, files[i], bounds[i], bounds[i + 1]))
        for i, (_, theirs) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    connections = [Recording(ours) for ours, _ in pipes]
    model = estimator().fit(FederatedRows(SCHEMA, connections))
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    memory = estimator().fit(frame, frame["ill"])
    assert np.array_equal(model.coef_, memory.coef_)
    assert model.guarantee_ == memory.guarantee_
    width = memory.coef_.shape[1] + 1
    assert max(len(message) for connection in connections for message in connection.received) < 8 * (width**2 + width) + 2000


def in_a_thread(connection, model, frame):
    caught = []

    def work():
        try:
            take_part(connection, model, frame, frame["ill"])
        except ValueError as error:
            caught.append(str(error))
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread, caught


@pytest.mark.parametrize("other", [{"intercept_scaling": 2.0}, {"fit_intercept": False}, {"max_sample_weight": 2.0}])
def test_a_party_sends_no_other_sum_than_was_agreed(other):
    """Its own bound, intercept and cap on weights decide; the coordinator gets nothing else."""
    frame = made_up(200)
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, estimator(**other), frame)
    with pytest.raises(ValueError, match="a party left"):
        estimator().fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    assert caught
    assert "another sum than was agreed" in caught[0]


def test_an_automatic_loss_is_the_hinge_over_parties():
    """A party agrees to a loss without the budget and the number of rows that would decide."""
    frame = made_up()
    model = confide.LinearSVC(confide.ApproxDP(0.5, 1e-5), schema=SCHEMA, random_state=3)
    assert model.plan(len(frame)).problem.loss.name == "logistic_hinge"
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, confide.LinearSVC(schema=SCHEMA), frame)
    fitted = model.fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    assert caught == []
    hinge = confide.LinearSVC(confide.ApproxDP(0.5, 1e-5), loss="huber_hinge", schema=SCHEMA, random_state=3)
    assert np.array_equal(fitted.coef_, hinge.fit(frame, frame["ill"]).coef_)


def test_bad_rows_of_a_party_stop_the_fit_before_the_charge():
    """The party says what is wrong to its own people alone."""
    frame = made_up(200)
    frame.loc[7, "ill"] = "secret"
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, estimator(), frame)
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    with pytest.raises(ValueError, match="a party left, or sent what cannot be understood"):
        estimator(ledger=ledger).fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    assert "neither 'no' nor 'yes'" in caught[0]
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize(
    "message", [b"", b"no archive", _packed(n_rows=np.array(0)), _packed(n_rows=np.array("2")), _packed()]
)
def test_a_party_that_sends_something_else_is_refused(message):
    """Before anything is charged."""
    ours, theirs = Pipe()
    theirs.send_bytes(message)
    with pytest.raises(ValueError, match="party"):
        estimator().fit(FederatedRows(SCHEMA, [ours]))


def test_a_pickle_is_never_read():
    """An archive with an object in it: refused, not loaded."""
    ours, theirs = Pipe()
    theirs.send_bytes(_packed(n_rows=np.array([object()])))
    with pytest.raises(ValueError, match="cannot be understood"):
        estimator().fit(FederatedRows(SCHEMA, [ours]))


def test_parties_need_a_schema_without_persons():
    """One person may have rows at two parties."""
    ours, theirs = Pipe()
    persons = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="note")
    with pytest.raises(ValueError, match="several partitions"):
        confide.LogisticRegression(1.0).fit(FederatedRows(persons, [ours]))
    with pytest.raises(ValueError, match="parties need a schema"):
        take_part(theirs, confide.LogisticRegression(1.0), np.ones((2, 2)), [0, 1])
