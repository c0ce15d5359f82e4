"""A charge whose release was interrupted is finished once, and never after anything of it was seen."""

from __future__ import annotations

import contextlib
import functools
import gc
import multiprocessing
import os
import pickle
import signal
import threading
import weakref

import numpy as np
import pandas as pd
import pytest

import confide
from confide import Ledger, LogisticRegression
from confide.accounting.attempts import Attempts
from confide.erm.row_bounds import BallBound
from confide.errors import LedgerError
from confide.estimators.parties import take_part
from confide.privacy.budgets import PureDP
from confide.training import charge as training_charge
from confide.training import fit as training_fit
from tests.accounting.many_processes import FORK
from tests.estimators.own_losses import Hyperbola, Pseudo

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning", "ignore::confide.BudgetWarning")


@pytest.fixture
def path(tmp_path):
    Ledger(tmp_path / "study.db", limit=2.0)
    return tmp_path / "study.db"


def fitted(ledger, *, n_rows=200, **parameters):
    """A fit at epsilon 0.5 of rows that are always the same."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(n_rows, 3))
    options = {"budget": 0.5, "classes": [0, 1], "ledger": ledger, **parameters}
    return LogisticRegression(**options).fit(rows, (rows[:, 0] > 0).astype(int))


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def dies_before(owner, name, monkeypatch):
    """From now on, who calls this function is killed."""
    monkeypatch.setattr(owner, name, die)


def dies_after(owner, name, monkeypatch):
    """From now on, who returns from this function is killed."""
    whole = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given, **options: die(whole(*given, **options)))


def killed(path, monkeypatch, kill, owner, name, work=fitted, **options):
    """A fit, or other work with a ledger, in a process of its own, which is killed at a step."""
    with monkeypatch.context() as patched:
        kill(owner, name, patched)
        child = FORK.Process(target=lambda: work(Ledger(path, **options)))
        child.start()
        child.join()
    assert child.exitcode == -signal.SIGKILL


STEPS = [
    (dies_after, Ledger, "charge"),
    (dies_before, training_fit, "released"),
    (dies_after, training_fit, "released"),
    (dies_before, Ledger, "end"),
]


@pytest.mark.parametrize(("kill", "owner", "name"), STEPS)
def test_a_fit_that_was_killed_before_its_release_is_finished_under_its_charge(path, monkeypatch, kill, owner, name):
    """Once: the model says that an attempt preceded, and what this rests on; a second time there is nothing to finish."""
    killed(path, monkeypatch, kill, owner, name)
    assert Ledger(path).unfinished() == [1]
    model = fitted(Ledger(path, finish=True))
    assert "An earlier attempt at this release, under the same charge, ended before" in model.guarantee_.statement()
    assert Ledger(path).spent() == PureDP(0.5)
    assert Ledger(path).verify() == 1
    assert Ledger(path).unfinished() == []
    with pytest.raises(LedgerError, match=r"nothing to be finished.*Nothing was used or charged"):
        fitted(Ledger(path, finish=True))


SCHEMA = confide.Schema(
    {"age": {"low": 0, "high": 100}, "sex": {"categories": ["F", "M"]}},
    target={"column": "ill", "negative": "no", "positive": "yes"},
)


@functools.cache
def table():
    draws = np.random.default_rng(0)
    frame = pd.DataFrame({"age": draws.uniform(0, 100, 600), "sex": draws.choice(["F", "M"], 600)})
    return frame.assign(ill=np.where(frame["age"] > 50.0, "yes", "no"))


@functools.cache
def model(kind=LogisticRegression):
    return kind(1.0, schema=SCHEMA).fit(table(), table()["ill"])


def evaluated(ledger, **other):
    return confide.evaluate(model(), table(), table()["ill"], **{"budget": 0.5, "ledger": ledger, "n_bins": 4, **other})


def rated_by_group(ledger, **other):
    return evaluated(ledger, **{"groups": "sex", **other})


def described(ledger, **other):
    return confide.describe(table(), SCHEMA, **{"budget": 0.5, "ledger": ledger, "columns": ["age", "sex"], **other})


def correlated(ledger, **other):
    schema = confide.Schema({name: {"low": 0, "high": 100} for name in ("age", "height")})
    options = {"budget": 0.5, "ledger": ledger, "correlations": True, **other}
    return confide.describe(table().assign(height=table()["age"]), schema, **options)


def bounded(ledger, **other):
    options = {"budget": 0.5, "ledger": ledger, "quantiles": (0.1, 0.9), **other}
    return confide.private_bounds(table(), {"age": (0, 200)}, **options)


def searched(ledger, **other):
    estimator, grid = LogisticRegression(schema=SCHEMA), {"alpha": [0.1, 1.0]}
    search = confide.PrivateSearchCV(estimator, grid, **{"budget": 0.5, "ledger": ledger, **other})
    return search.fit(table(), table()["ill"])


def with_atoms(ledger, **other):
    """A fit that finds atoms before its weights, under the same charge."""
    rng, places = np.random.default_rng(0), [str(place) for place in range(90)]
    rows = pd.DataFrame({"gain": np.where(rng.uniform(size=80_000) < 0.1, 77, rng.integers(0, 900, 80_000))})
    rows["place"], rows["ill"] = rng.choice(places, 80_000), np.where(rows["gain"] == 77, "yes", "no")
    columns = {"gain": {"low": 0, "high": 999, "scale": "log"}, "place": {"categories": places}}
    schema = confide.Schema(columns, {"column": "ill", "negative": "no", "positive": "yes"})
    model = confide.AdditiveClassifier(0.5, schema=schema, ledger=ledger, **other).fit(rows, rows["ill"])
    assert other or 77.0 in model.schema_.columns[0].atoms
    return model


OTHERS = [
    (with_atoms, {"atoms": False}),
    (evaluated, {"n_bins": 6}),
    (rated_by_group, {"groups": None}),
    (described, {"columns": ["sex", "age"]}),
    (correlated, {"correlations": False}),
    (bounded, {"quantiles": (0.05, 0.9)}),
    (searched, {"method": "exponential"}),
]


def statement_of(found):
    """What is said under a release."""
    guarantee = getattr(found, "guarantee_", None) or getattr(found, "guarantee", None)
    return str(found) if guarantee is None else guarantee.statement()


@pytest.mark.parametrize(("work", "change"), OTHERS)
@pytest.mark.parametrize(("kill", "owner", "name"), [STEPS[0], STEPS[3]])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_releases_that_were_killed_are_finished_under_their_charge(path, monkeypatch, work, change, kill, owner, name):
    """Once, for the very same release; the release says that an attempt preceded, as text and as JSON."""
    model()
    killed(path, monkeypatch, kill, owner, name, work)
    assert Ledger(path).unfinished() == [1]
    with pytest.raises(LedgerError, match="nothing to be finished"):
        work(Ledger(path, finish=True), **change)
    found = work(Ledger(path, finish=True))
    said = statement_of(found)
    assert "An earlier attempt at this release, under the same charge, ended before" in " ".join(said.split())
    if work in (evaluated, rated_by_group, described):
        assert found.to_dict()["interrupted"] == list(found.interrupted) != []
    if work is bounded:
        assert "# An earlier attempt at this release" in found.to_toml()
        column = confide.Schema.from_dict(found.schema.to_dict()).columns[0]
        assert column.released.attempts == 2
        later = LogisticRegression(1.0, schema=found.schema, classes=["no", "yes"]).fit(table()[["age"]], table()["ill"])
        assert "by attempt 2 under its charge. What ended each earlier one" in later.guarantee_.statement()
    assert Ledger(path).spent() == PureDP(0.5)
    assert (Ledger(path).verify(), Ledger(path).unfinished()) == (1, [])
    with pytest.raises(LedgerError, match="nothing to be finished"):
        work(Ledger(path, finish=True))
    fresh = work(Ledger(path))
    assert "earlier attempt" not in statement_of(fresh)
    assert (Ledger(path).verify(), Ledger(path).unfinished()) == (2, [])


@pytest.mark.parametrize("work", [fitted, *(work for work, _ in OTHERS)])
@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_control_c_after_the_mark_of_a_release_takes_nothing_away(monkeypatch, work, asks):
    """It waits until the call has what it returns, and has it then; whose handler asks for nothing gets it as ever."""
    model()
    ledger, end, handler, came = Ledger(limit=1.0), Ledger.end, signal.getsignal(signal.SIGINT), []

    def marked(ledger, charge, attempt):
        end(ledger, charge, attempt)
        os.kill(os.getpid(), signal.SIGINT)

    def note(number, frame):
        came.append(number)
        if asks:
            raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "end", marked)
    signal.signal(signal.SIGINT, note)
    try:
        if asks:
            with pytest.raises(KeyboardInterrupt) as stopped:
                work(ledger)
            found = stopped.value.released
        else:
            found = work(ledger)
        assert signal.getsignal(signal.SIGINT) is note
    finally:
        signal.signal(signal.SIGINT, handler)
    assert came == [signal.SIGINT]
    assert "differential" in statement_of(found) or "private" in statement_of(found)
    assert (ledger.verify(), ledger.unfinished()) == (1, [])


def test_control_c_that_waited_is_raised_though_the_ledger_fails_at_the_mark(monkeypatch):
    """After the ledger's error, which is its context; nothing was released, and the handler is the one before."""
    handler = signal.getsignal(signal.SIGINT)

    def failing(ledger, charge, attempt):
        os.kill(os.getpid(), signal.SIGINT)
        raise LedgerError("no space")

    monkeypatch.setattr(Ledger, "end", failing)
    with pytest.raises(KeyboardInterrupt) as stopped:
        LogisticRegression(0.5, classes=[0, 1], ledger=Ledger(limit=1.0)).fit(NUMBERS, LABELS)
    assert isinstance(stopped.value.__context__, LedgerError)
    assert not hasattr(stopped.value, "released")
    assert signal.getsignal(signal.SIGINT) is handler
    assert training_charge.STOPS.names == ()


@pytest.mark.parametrize(
    ("owner", "name", "is_fitted"), [(training_charge, "_end", True), (training_fit, "released", False)]
)
def test_control_c_leaves_a_fitted_estimator_or_a_fit_that_can_be_finished(monkeypatch, owner, name, is_fitted):
    """After the mark the one, and before it the other."""
    ledger, whole = Ledger(limit=2.0), getattr(owner, name)
    estimator = LogisticRegression(0.5, classes=[0, 1], ledger=ledger)

    def stopped(*given):
        made = whole(*given)
        os.kill(os.getpid(), signal.SIGINT)
        return made

    monkeypatch.setattr(owner, name, stopped)
    with pytest.raises(KeyboardInterrupt) as error:
        estimator.fit(NUMBERS, LABELS)
    assert hasattr(estimator, "coef_") == is_fitted
    assert getattr(error.value, "released", None) is (estimator if is_fitted else None)
    assert ledger.unfinished() == ([] if is_fitted else [1])


@pytest.mark.parametrize("work", [work for work, _ in OTHERS])
def test_other_releases_with_a_seed_are_not_finished(path, monkeypatch, work):
    """Whoever knows the seed knows the noise of the first attempt."""
    model()
    killed(path, monkeypatch, *STEPS[0], functools.partial(work, random_state=1))
    assert Ledger(path).unfinished() == []


NUMBERS = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 3))
LABELS = (NUMBERS[:, 0] > 0).astype(int)
BY_PERSON = {"max_rows_per_person": 2}


def people(person="p", weight=None):
    """A schema whose rows are those of persons, and may have weights."""
    weights = None if weight is None else {"column": weight, "high": 2.0}
    return confide.Schema(SCHEMA.columns, target=SCHEMA.target, person=person, weight=weights)


def of_people(**names):
    """A fit to a table that has persons and weights twice."""
    rows = table().assign(p=np.arange(600) % 350, q=np.arange(600) % 400, v=1.0, w=1.5)
    return lambda ledger: LogisticRegression(2.0, schema=people(**names), ledger=ledger, **BY_PERSON).fit(rows, rows["ill"])


def of_prior(weights):
    return lambda ledger: fitted(ledger, prior=(weights, 0.0))


def search_with_prior(weights):
    estimator, grid = LogisticRegression(classes=[0, 1], prior=(weights, 0.0)), {"alpha": [0.1, 1.0]}
    return lambda ledger: confide.PrivateSearchCV(estimator, grid, budget=0.5, ledger=ledger).fit(NUMBERS, LABELS)


def description_of_people(person):
    rows = table().assign(p=np.arange(600) % 350, q=np.arange(600) % 400)
    return lambda ledger: confide.describe(rows, people(person), budget=0.5, ledger=ledger, **BY_PERSON)


def bounds_of_people(person):
    rows = table().assign(p=np.arange(600) % 350, q=np.arange(600) % 400)
    return lambda ledger: confide.private_bounds(
        rows, {"age": (0, 200)}, schema=people(person), budget=0.5, ledger=ledger, **BY_PERSON
    )


def interrupted(work, monkeypatch, rows_per_person=1):
    """A ledger in memory with the charge of this work, which was interrupted; it finishes."""
    ledger = Ledger(limit=5.0, max_rows_per_person=rows_per_person)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "end", stop)
        with contextlib.suppress(KeyboardInterrupt):
            work(ledger)
    ledger.finish = True
    return ledger


ALIKE = {
    "a prior": (of_prior([0.5, 0.0, 0.0]), of_prior([0.0, 0.5, 0.0])),
    "a search with a prior": (search_with_prior([0.5, 0.0, 0.0]), search_with_prior([0.0, 0.5, 0.0])),
    "persons": (of_people(person="p"), of_people(person="q")),
    "weights": (of_people(weight="v"), of_people(weight="w")),
    "a description of persons": (description_of_people("p"), description_of_people("q")),
    "bounds of persons": (bounds_of_people("p"), bounds_of_people("q")),
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_release_that_only_looks_alike_is_not_made_under_the_charge(monkeypatch, name):
    """Where the text of what decides it is the same but for a name of a column, or a weight of a prior."""
    work, other = ALIKE[name]
    ledger = interrupted(work, monkeypatch, 2 if "person" in name or name == "weights" else 1)
    with pytest.raises(LedgerError, match="nothing to be finished"):
        other(ledger)
    work(ledger)
    assert (ledger.unfinished(), ledger.verify()) == ([], 1)


def test_another_number_of_threads_finishes_a_fit(monkeypatch):
    """No release depends on it."""
    ledger = interrupted(lambda ledger: fitted(ledger, n_jobs=1), monkeypatch)
    assert fitted(ledger, n_jobs=2).guarantee_.circumstances.attempts == 2


def with_own_penalty(ledger):
    own = confide.StronglyConvex(lambda w: 0.5 * float(w @ w), lambda w: w, 1.0, 1.1)
    return fitted(ledger, penalty=own)


class OwnBound(BallBound):
    """A ball, whose rows somebody else's code clips."""


def with_own_bound(ledger):
    return confide.LogisticRegression(0.5, row_norm=OwnBound(1.0), classes=[0, 1], ledger=ledger).fit(NUMBERS, LABELS)


def with_own_loss(ledger):
    return confide.ERMClassifier(0.5, loss=Hyperbola(), classes=[0, 1], ledger=ledger).fit(NUMBERS, LABELS)


def with_own_loss_of_numbers(ledger):
    own = confide.ERMRegressor(0.5, loss=Pseudo(), target_bound=1.0, ledger=ledger)
    return own.fit(NUMBERS, NUMBERS[:, 0])


def search_with_own_loss(ledger):
    own = confide.ERMClassifier(loss=Hyperbola(), classes=[0, 1])
    return confide.PrivateSearchCV(own, {"alpha": [0.5, 1.0]}, budget=0.5, ledger=ledger).fit(NUMBERS, LABELS)


@pytest.mark.parametrize(
    "work", [with_own_penalty, with_own_bound, with_own_loss, with_own_loss_of_numbers, search_with_own_loss]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_that_functions_of_the_users_decide_is_not_finished(monkeypatch, work):
    """Other functions may have the same name and constants."""
    ledger = interrupted(work, monkeypatch)
    assert (ledger.verify(), ledger.unfinished()) == (1, [])
    with pytest.raises(LedgerError, match="functions of your own"):
        work(ledger)


def test_a_fit_that_was_killed_after_its_release_was_marked_is_not_finished(path, monkeypatch):
    """Somebody may have seen it."""
    killed(path, monkeypatch, dies_after, Ledger, "end")
    assert Ledger(path).unfinished() == []
    with pytest.raises(LedgerError, match="nothing to be finished"):
        fitted(Ledger(path, finish=True))
    assert Ledger(path).spent() == PureDP(0.5)


def test_a_fit_that_is_killed_again_while_it_is_finished_is_finished_by_a_third(path, monkeypatch):
    """As long as nothing was released; the model says how many attempts preceded."""
    killed(path, monkeypatch, *STEPS[1])
    killed(path, monkeypatch, *STEPS[3], finish=True)
    model = fitted(Ledger(path, finish=True))
    assert "2 earlier attempts at this release" in model.guarantee_.statement()
    assert model.guarantee_.circumstances.attempts == 3
    assert Ledger(path).spent() == PureDP(0.5)


def test_of_two_runs_under_one_charge_one_releases(path, monkeypatch):
    """A run that was believed dead goes on: the one that took its charge up releases, and what it made is dropped."""
    release, models, coefficients = training_fit.released, [], []

    def slow(*given):
        monkeypatch.setattr(training_fit, "released", release)
        models.append(fitted(Ledger(path, finish=True)))
        made = release(*given)
        coefficients.append(weakref.ref(made[0].coef))
        return made

    monkeypatch.setattr(training_fit, "released", slow)
    late = "was taken up by another attempt while this one went on, so nothing of this one"
    with pytest.raises(LedgerError, match=late) as refusal:
        fitted(Ledger(path))
    gc.collect()
    assert refusal.value.__traceback__ is not None
    assert [coef() for coef in coefficients] == [None]
    assert len(models) == 1
    assert Ledger(path).spent() == PureDP(0.5)
    assert Ledger(path).unfinished() == []


def test_a_fit_that_failed_by_an_error_is_not_finished(path, monkeypatch):
    """That it failed is seen, and may depend on the rows."""

    def fail(*_):
        raise confide.NotCertified("no certificate")

    with monkeypatch.context() as patched:
        patched.setattr(training_fit, "released", fail)
        with pytest.raises(confide.NotCertified):
            fitted(Ledger(path))
    assert Ledger(path).unfinished() == []


def test_nobody_sees_that_a_fit_failed_whose_end_cannot_be_marked(path, monkeypatch):
    """It ends as a fit does that did not fail, so it may be finished: what is seen does not depend on the rows."""
    release, seen = training_fit.released, []

    def unmarked(fails, *given):
        made = release(*given)
        os.link(path, path.with_name("other.db"))
        if fails:
            raise ValueError("secret")
        return made

    for fails in (False, True):
        with monkeypatch.context() as patched:
            patched.setattr(training_fit, "released", functools.partial(unmarked, fails))
            with pytest.raises(LedgerError) as refusal:
                fitted(Ledger(path))
        path.with_name("other.db").unlink()
        seen.append((str(refusal.value), refusal.value.__context__, refusal.value.__suppress_context__))
    assert seen[0][0] == seen[1][0]
    assert seen[1][1] is None
    assert Ledger(path).unfinished() == [1, 2]


@pytest.mark.parametrize("stops", [OSError("disk"), MemoryError(), KeyboardInterrupt()], ids=repr)
def test_what_stops_the_mark_of_a_failed_fit_tells_nothing_of_its_error(path, monkeypatch, stops):
    """Not even as the error that was handled meanwhile, which Python shows above the other."""

    def fail(*_):
        raise ValueError("secret")

    def stopped(*_):
        raise stops

    monkeypatch.setattr(training_fit, "released", fail)
    monkeypatch.setattr(Ledger, "end", stopped)
    with pytest.raises(type(stops)) as seen:
        fitted(Ledger(path))
    assert seen.value.__context__ is None
    assert Ledger(path).unfinished() == [1]


def test_an_end_says_why_there_is_nothing_to_end(path):
    """No such charge, or attempt; one for nothing that can be finished; one that was taken up, or has released."""
    ledger = Ledger(path)
    ledger.charge(0.5)
    ledger.charge(0.5, details={"intent": "release"})
    for charge, attempt in ((7, 1), (0, 1), (1, 1), (2, 0), (2, 2)):
        with pytest.raises(LedgerError, match="has no such attempt"):
            ledger.end(charge, attempt)
    Ledger(path, finish=True).charge(0.5, details={"intent": "release"})
    late = "charge 2 has released, or was taken up by another attempt"
    with pytest.raises(LedgerError, match=late):
        ledger.end(2, 1)
    ledger.end(2, 2)
    for attempt in (1, 2):
        with pytest.raises(LedgerError, match=late):
            ledger.end(2, attempt)


@pytest.mark.parametrize(("charge", "attempt"), [(1, True), (1, 1.0), (1.0, 1), (True, 1), (1, np.int64(1)), ("1", 1)])
def test_no_mark_is_written_that_could_not_be_read_again(path, charge, attempt):
    ledger = Ledger(path)
    ledger.charge(0.5, details={"intent": "release"})
    with pytest.raises(LedgerError):
        ledger.end(charge, attempt)
    assert Ledger(path).unfinished() == [1]


def test_a_fit_in_memory_that_was_stopped_by_hand_is_finished(monkeypatch):
    """The ledger lives as long as its process, so control-C is what may interrupt a fit."""

    def stop(*_):
        raise KeyboardInterrupt

    ledger = Ledger(limit=1.0)
    with monkeypatch.context() as patched:
        patched.setattr(training_fit, "released", stop)
        with pytest.raises(KeyboardInterrupt):
            fitted(ledger)
    ledger.finish = True
    assert fitted(ledger).guarantee_.circumstances.attempts == 2
    assert ledger.spent() == PureDP(0.5)


@pytest.mark.parametrize("other", [{"budget": 0.25}, {"alpha": 0.125}, {"n_rows": 201}])
def test_nothing_else_is_released_under_the_charge(path, monkeypatch, other):
    """Another budget, another parameter, or another table; nor with noise that somebody knows."""
    killed(path, monkeypatch, *STEPS[1])
    with pytest.raises(LedgerError, match="data, schema, parameters or version differ"):
        fitted(Ledger(path, finish=True), **other)
    assert Ledger(path).unfinished() == [1]
    for work in (
        lambda ledger: ledger.charge(0.5),
        lambda ledger: ledger.plan([PureDP(0.25)] * 2),
        lambda ledger: fitted(ledger, random_state=0),
    ):
        with pytest.raises(
            LedgerError, match="a batch, a charge by hand, and a release that a seed or functions of your own"
        ):
            work(Ledger(path, finish=True))
    assert (Ledger(path).verify(), Ledger(path).unfinished()) == (1, [1])


def test_a_fit_over_the_rows_of_parties_is_not_finished(monkeypatch):
    """Parties get the weights of each pass: they saw the first attempt, and a second would be another draw."""

    def over_parties(ledger):
        ours, theirs = multiprocessing.Pipe()
        thread = threading.Thread(
            target=take_part, args=(theirs, LogisticRegression(schema=SCHEMA), table(), table()["ill"])
        )
        thread.start()
        try:
            return LogisticRegression(0.5, schema=SCHEMA, ledger=ledger).fit(confide.FederatedRows(SCHEMA, [ours]))
        finally:
            ours.close()
            thread.join(60)

    ledger = interrupted(over_parties, monkeypatch)
    with pytest.raises(LedgerError, match="parties have seen a part of theirs"):
        over_parties(ledger)
    assert (ledger.verify(), ledger.unfinished()) == (1, [])


def test_a_charge_by_hand_or_from_a_seed_cannot_be_finished(path):
    """The one has no fit, and of the other everybody may know the noise."""
    ledger = Ledger(path)
    ledger.charge(0.5)
    with pytest.warns(confide.PrivacyWarning):
        fitted(ledger, random_state=0)
    assert ledger.unfinished() == []


def test_a_ledger_that_finishes_stays_one_when_it_is_pickled(path):
    """Otherwise a worker would charge anew."""
    assert pickle.loads(pickle.dumps(Ledger(path, finish=True))).finish
    assert not pickle.loads(pickle.dumps(Ledger(path))).finish


def test_the_end_is_marked_before_anything_is_returned(monkeypatch):
    """Whatever the release made: if the mark cannot be written, nothing is seen."""
    ledger, order = Ledger(limit=1.0), []
    monkeypatch.setattr(ledger, "end", lambda *_: order.append("marked"))
    made = training_charge.charge_and_release(
        lambda _: order.append("made") or "model",
        confide.privacy.events.Event(PureDP(0.5)),
        ledger.neighbours,
        training_charge.Charge(ledger, None, "fit", intent="ab"),
    )
    assert (made, order) == ("model", ["made", "marked"])


@pytest.mark.parametrize(
    ("marks", "admitted"),
    [
        ([(1, 1, True)], True),
        ([(1, 2, False), (1, 2, True)], True),
        ([(1, 2, False), (1, 3, False), (1, 3, True)], True),
        ([(1, 2, True)], False),
        ([(1, 1, False)], False),
        ([(1, 3, False)], False),
        ([(2, 1, True)], False),
        ([(1, 1, True), (1, 1, True)], False),
        ([(1, 1, True), (1, 2, False)], False),
        ([(1, 2, False), (1, 1, True)], False),
    ],
)
def test_marks_come_in_order(marks, admitted):
    """Each attempt begins after the one before, the last one alone ends, and nothing comes after the end."""
    attempts = Attempts()
    attempts.begin(1)
    assert all(attempts.take(*mark) for mark in marks) is admitted
