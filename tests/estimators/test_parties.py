"""One party of a fit: it checks its own rows, agrees to its own parameters alone, and says nothing of its rows."""

from __future__ import annotations

import io
import threading
from multiprocessing import Pipe

import numpy as np
import pytest

import confide
from confide import LogisticRegression, Schema
from confide.data.federated import FederatedRows, packed
from confide.estimators.parties import take_part
from confide.intake.rows import open_rows
from tests.data.parties import estimator, in_a_thread
from tests.data.tables import SCHEMA, made_up

OTHERS = [{"intercept_scaling": 2.0}, {"fit_intercept": False}, {"max_sample_weight": 2.0}]


@pytest.mark.parametrize("other", OTHERS)
def test_parties_with_other_parameters_are_refused_before_the_charge(other):
    """Its own bound, intercept and cap on weights decide what a party agrees to. It ends in peace."""
    frame = made_up(200)
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, estimator(**other), frame)
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    with pytest.raises(ValueError, match="a party agrees to other sums than this fit asks for"):
        estimator(ledger=ledger).fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    assert caught == []
    assert len(ledger.entries()) == 0


def test_parties_may_hold_numbers_to_be_predicted():
    """Their schema names the column and its bounds, to which each party clips; the fit is that of all rows in memory."""
    frame, target = made_up(), {"column": "years", "low": 0, "high": 50}
    years = frame["age"].clip(0, 100) / 3.0 + np.arange(len(frame)) % 30
    schema = Schema(columns=SCHEMA.columns, target=target)
    assert (years > 50).any()
    model = confide.HuberRegressor(5.0, schema=schema, random_state=3)
    ours, theirs = Pipe()
    thread = threading.Thread(target=take_part, args=(theirs, confide.HuberRegressor(schema=schema), frame, years))
    thread.start()
    model.fit(FederatedRows(schema, [ours]))
    thread.join(60)
    assert "declared range, 0 to 50" in model.guarantee_.statement()
    np.testing.assert_allclose(model.coef_, model.fit(frame, years).coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("budget", "name"),
    [
        (confide.PureDP(50.0), "huber_hinge"),
        (confide.PureDP(0.3), "logistic_hinge"),
        (confide.ApproxDP(0.5, 1e-5), "logistic_hinge"),
    ],
)
def test_an_automatic_loss_over_parties_is_that_of_the_plan(budget, name):
    """And of rows in memory. So a batch of planned releases covers it; the party knows no budget."""
    frame = made_up()
    model = confide.LinearSVC(budget, schema=SCHEMA, random_state=3)
    plan = model.plan(len(frame))
    assert plan.problem.loss.constants.name == name
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, confide.LinearSVC(schema=SCHEMA), frame)
    model.ledger = confide.Ledger(limit=budget).plan([plan])
    model.fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    assert caught == []
    weights, model.ledger = model.coef_, None
    assert np.array_equal(weights, model.fit(frame, frame["ill"]).coef_)


@pytest.mark.parametrize("mechanism", ["gradient", "output"])
def test_parties_agree_to_a_centre_of_their_rows(mechanism):
    """The model is that of the same rows in memory; a party that wants none is not asked for it."""
    frame = made_up(600)
    facts = {"schema": SCHEMA, "random_state": 3, "mechanism": mechanism}
    budget = confide.ZCDP(0.05)
    model = LogisticRegression(budget, **facts)
    assert model.plan(600).centring is not None
    pipes = [Pipe() for _ in range(2)]
    parts = [in_a_thread(theirs, LogisticRegression(**facts), frame[i::2]) for i, (_, theirs) in enumerate(pipes)]
    weights = model.fit(FederatedRows(SCHEMA, [ours for ours, _ in pipes])).coef_
    for thread, caught in parts:
        thread.join(60)
        assert caught == []
    np.testing.assert_allclose(weights, model.fit(frame, frame["ill"]).coef_, rtol=1e-6)
    ours, theirs = Pipe()
    thread, _ = in_a_thread(theirs, LogisticRegression(centre=False, **facts), frame)
    with pytest.raises(ValueError, match="a party agrees to other sums than this fit asks for"):
        model.fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)


def test_parties_agree_to_a_middle_that_is_known_without_rows():
    """Rows are moved by it, and their constant is smaller; the model is that of the same rows in memory."""
    frame, facts = made_up(), {"schema": SCHEMA, "mechanism": "objective", "random_state": 3}
    model = confide.LinearSVC(confide.ZCDP(0.5), **facts)
    plan = model.plan(len(frame))
    assert plan.problem.is_centred
    assert plan.centring is None
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, confide.LinearSVC(**facts), frame)
    weights = model.fit(FederatedRows(SCHEMA, [ours])).coef_
    thread.join(60)
    assert caught == []
    np.testing.assert_allclose(weights, model.fit(frame, frame["ill"]).coef_, rtol=1e-6)


@pytest.mark.parametrize("parameters", [{"loss": "hinge"}, {"loss": "huber_hinge", "smoothing": 0.1}])
def test_hinges_with_narrow_joints_are_fitted_over_parties(parameters):
    """Solvers go by way of wider joints, and the plan of the hinge has one of its own."""
    frame = made_up(500)
    model = confide.LinearSVC(2.0, schema=SCHEMA, random_state=3, **parameters)
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, confide.LinearSVC(schema=SCHEMA, **parameters), frame)
    weights = model.fit(FederatedRows(SCHEMA, [ours])).coef_
    thread.join(60)
    assert caught == []
    assert np.array_equal(weights, model.fit(frame, frame["ill"]).coef_)


def test_a_party_whose_rows_change_stops_the_fit(tmp_path):
    """Its own check of each pass sees it, so that all sums are of the same rows. The charge stands."""
    path = tmp_path / "t.parquet"
    made_up(200).to_parquet(path)
    ours, theirs = Pipe()
    caught = []

    def work():
        try:
            take_part(theirs, estimator(), open_rows(path, SCHEMA))
        except ValueError as error:
            caught.append(str(error))
        finally:
            theirs.close()

    thread = threading.Thread(target=work)
    thread.start()
    ledger = confide.Ledger(limit=confide.PureDP(5.0))

    def change_in_training(what, n_rows):
        if what == "training" and n_rows == 0:
            made_up(201).iloc[1:].to_parquet(path)

    with pytest.raises(ValueError, match="a party left"), confide.progress(change_in_training):
        estimator(ledger=ledger).fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    assert "changed while it was read" in caught[0]
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("closes", [True, False])
def test_bad_rows_of_a_party_stop_the_fit_before_the_charge(closes):
    """The party says what is wrong to its own people alone; nobody waits for one whose process goes on."""
    frame = made_up(200)
    frame.loc[7, "ill"] = "secret"
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, estimator(), frame, closes=closes)
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    with pytest.raises(ValueError, match="a party left, or sent what cannot be understood"):
        estimator(ledger=ledger).fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    assert "neither 'no' nor 'yes'" in caught[0]
    assert len(ledger.entries()) == 0


def test_parties_need_a_schema_without_persons():
    """One person may have rows at two parties."""
    ours, theirs = Pipe()
    persons = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="note")
    with pytest.raises(ValueError, match="several partitions"):
        confide.LogisticRegression(1.0).fit(FederatedRows(persons, [ours]))
    with pytest.raises(ValueError, match="parties need a schema"):
        take_part(theirs, confide.LogisticRegression(1.0), np.ones((2, 2)), [0, 1])


class Ended:
    """A connection on which the other side ends at once, and that notes what is sent."""

    def __init__(self):
        self.sent = []

    def send_bytes(self, message):
        self.sent.append(message)

    def recv_bytes(self, maxlength=None):
        return packed()


PERSONS = Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="note")
REFUSED = {
    "no schema": (LogisticRegression(), "parties need a schema"),
    "persons": (LogisticRegression(schema=PERSONS), "several partitions"),
    "a wrong parameter": (estimator(alpha=-1.0), "alpha must be"),
    "labels outside": (LogisticRegression(schema=SCHEMA), "neither 'no' nor 'yes'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_party_that_refuses_sends_one_empty_word_and_no_sum(name):
    """So the coordinator does not wait, and learns nothing; the party's own people read what is wrong."""
    model, words = REFUSED[name]
    connection, frame = Ended(), made_up(20)
    with pytest.raises(ValueError, match=words):
        take_part(connection, model, frame, ["secret"] * 20)
    (sent,) = connection.sent
    assert np.load(io.BytesIO(sent)).tolist() == []


def test_a_party_is_charged_nothing():
    """Budget and ledger are the coordinator's. A party says what it agrees to, and ends where nothing is asked."""
    ledger = confide.Ledger(limit=1.0)
    connection, frame = Ended(), made_up(20)
    take_part(connection, estimator(ledger=ledger), frame, frame["ill"])
    assert sorted(np.load(io.BytesIO(connection.sent[0])).tolist()) == ["agreed", "n_rows"]
    assert len(ledger.entries()) == 0
