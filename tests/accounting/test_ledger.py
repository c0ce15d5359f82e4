"""The ledger, in memory and in a file: exact sums, currencies, batches, and refusals that charge nothing."""

from __future__ import annotations

import copy
import hashlib
import math
import multiprocessing
import pickle
import threading
from functools import partial
from types import SimpleNamespace

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld

import confide
from confide.accounting.ledger import Ledger
from confide.accounting.records import DETAILS
from confide.errors import BudgetExceeded, LedgerError, ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.objective_account import GaussianObjective
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.tables import Counts

COLUMNS = ["number", "time", "purpose", "epsilon", "delta", "rho", "rows_per_person", "cohort", *DETAILS]


@pytest.fixture(params=["memory", "file", "database"])
def new_ledger(request, tmp_path):
    """What makes a ledger, in memory, in a file or in a database."""
    if request.param == "memory":
        return Ledger
    return partial(Ledger, tmp_path / "study.db" if request.param == "file" else request.getfixturevalue("url"))


# Sums and limits


def test_charges_add_up_to_the_limit_exactly(new_ledger):
    """Ten charges of 0.1 fit under 1.0, and not one more."""
    ledger = new_ledger(limit=1.0)
    for i in range(10):
        ledger.charge(0.1, purpose=f"fit {i}")
    assert ledger.spent() == PureDP(1.0)
    assert ledger.remaining().epsilon == 0.0
    with pytest.raises(BudgetExceeded, match="Nothing was used or charged"):
        ledger.charge(1e-9)
    frame = ledger.entries()
    assert list(frame.columns) == COLUMNS
    assert frame["number"].tolist() == list(range(1, 11))
    assert frame["purpose"].tolist()[-1] == "fit 9"
    assert frame["epsilon"].tolist() == [0.1] * 10
    assert frame[["delta", "rho"]].isna().all(axis=None)


def test_a_new_ledger_is_empty(new_ledger):
    """All of its limit is left."""
    ledger = new_ledger(limit=ApproxDP(2.0, 1e-6), neighbours="add-or-remove-one")
    assert ledger.limit == ledger.remaining() == ApproxDP(2.0, 1e-6)
    assert ledger.spent() == ApproxDP.of_sum(0.0, 0.0)
    assert ledger.neighbours is Neighbours.ADD_OR_REMOVE_ONE
    assert ledger.accounting == "auto"
    assert list(ledger.entries().columns) == COLUMNS
    assert len(ledger.entries()) == 0


def test_times_are_in_utc_and_whole_seconds(new_ledger):
    """Finer ones would tell how long a fit took."""
    ledger = new_ledger(limit=1.0)
    ledger.charge(0.5)
    assert ledger.entries()["time"].str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00").all()


def test_any_purpose_is_kept_as_it_is(new_ledger):
    """Line feeds, quotes and NUL among them; what cannot be written becomes a question mark."""
    ledger = new_ledger(limit=10.0)
    purposes = ["", "a 'quoted' \"word\"; DROP TABLE records", "two\nlines", "\0 NUL", "Zoë \U0001f600"]
    for purpose in purposes:
        ledger.charge(1.0, purpose=purpose)
    ledger.charge(1.0, purpose="half a pair \ud800")
    assert ledger.entries()["purpose"].tolist() == [*purposes, "half a pair ?"]


def test_a_tiny_rest_can_be_asked_for(new_ledger):
    """Less is left than the smallest budget of a release."""
    ledger = new_ledger(limit=1.0)
    ledger.charge(0.9999999999)
    assert 0 < ledger.remaining().epsilon < 2e-10


def test_a_refused_charge_changes_nothing(new_ledger):
    """The refusal names what was asked, what is left and the limit."""
    ledger = new_ledger(limit=PureDP(1.0))
    ledger.charge(PureDP(0.6))
    head = ledger.head
    with pytest.raises(BudgetExceeded, match=r"asks for epsilon 0\.5; the ledger has epsilon 0\.4 left of epsilon 1\."):
        ledger.charge(PureDP(0.5))
    with pytest.raises(BudgetExceeded, match="asks for epsilon inf"):
        ledger.charge(math.inf)
    assert ledger.spent() == PureDP(0.6)
    assert ledger.head == head


@pytest.mark.parametrize("budget", [0, -1, math.nan, True, "0.1", None, object(), dp_accounting.NonPrivateDpEvent()])
def test_charges_that_are_no_budget_are_refused(new_ledger, budget):
    """They could not be summed."""
    with pytest.raises(ParameterError):
        new_ledger(limit=1.0).charge(budget)


@pytest.mark.parametrize("limit", [ZCDP(1.0), ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("deviation", [math.inf, 1e300, 1e-300, np.float64(1e200), 0.0, math.nan])
def test_an_event_of_no_size_is_refused_and_leaves_the_ledger_readable(new_ledger, limit, deviation):
    """A record that could not be read again would close the ledger for good."""
    ledger = new_ledger(limit=limit)
    with pytest.raises(ParameterError, match="cannot be counted here"):
        ledger.charge(dp_accounting.GaussianDpEvent(deviation))
    ledger.charge(dp_accounting.GaussianDpEvent(np.float32(50.0)))
    assert ledger.verify() == 1


@pytest.mark.parametrize("time", ["yesterday", "2026-01-01T00:00:00+02:00"])
def test_a_charge_that_could_not_be_read_again_is_refused(new_ledger, time):
    """Whatever made it so, here a time that is none."""
    ledger = new_ledger(limit=1.0)
    ledger.dated_like = time
    with pytest.raises(ParameterError, match="no ledger holds"):
        ledger.charge(0.1)
    ledger.dated_like = None
    ledger.charge(0.1)
    assert ledger.verify() == 1


@pytest.mark.parametrize("limit", [math.inf, ZCDP(math.inf), ApproxDP(math.inf, 1e-6), 0, -1, "1", True])
def test_limits_that_limit_nothing_are_refused(new_ledger, limit):
    """They are no finite budget."""
    with pytest.raises(ParameterError):
        new_ledger(limit=limit)


def test_a_ledger_in_memory_needs_a_limit():
    """And a way of adding that exists."""
    with pytest.raises(ParameterError, match="limit"):
        Ledger()
    with pytest.raises(ParameterError, match="'renyi'"):
        Ledger(limit=1.0, accounting="best")


def test_a_limit_that_is_none_leaves_no_file(tmp_path):
    """It is refused before anything is written."""
    with pytest.raises(ParameterError):
        Ledger(tmp_path / "study.db", limit=math.inf)
    assert list(tmp_path.iterdir()) == []


def test_charges_of_another_relation_are_refused(new_ledger):
    """Replace-one and add-or-remove-one epsilons do not add."""
    ledger = new_ledger(limit=1.0)
    with pytest.raises(LedgerError, match="one ledger for each relation"):
        ledger.charge(0.1, neighbours="add-or-remove-one")
    with pytest.raises(LedgerError, match="one ledger for each relation"):
        ledger.plan([0.1]).charge(0.1, neighbours="add-or-remove-one")
    ledger.charge(0.1, neighbours="replace-one")
    assert ledger.spent() == PureDP(0.2)


# Currencies and ways of adding

GAUSSIAN = dp_accounting.GaussianDpEvent(20.0)


@pytest.mark.parametrize(
    ("limit", "charges", "accounting", "spent"),
    [
        (PureDP(1.0), [0.25, PureDP(0.5)], "sum", PureDP(0.75)),
        (ZCDP(1.0), [ZCDP(0.25), ZCDP(0.5)], "renyi", ZCDP(0.75)),
        (ApproxDP(1.0, 1e-6), [0.1, ApproxDP(0.2, 1e-7), ApproxDP(0.3, 2e-7)], "sum", ApproxDP(0.6, 3e-7)),
        (PureDP(2.0), [dp_accounting.LaplaceDpEvent(2.0)] * 2, "sum", PureDP(1.0)),
        (ZCDP(1.0), [dp_accounting.ZCDpEvent(0.25), dp_accounting.GaussianDpEvent(2.0)], "renyi", ZCDP(0.375)),
        (PureDP(2.0), [dp_accounting.NoOpDpEvent()], "sum", PureDP.of_sum(0.0)),
    ],
)
def test_each_currency_adds_up(new_ledger, limit, charges, accounting, spent):
    """In that of the limit, and nothing is lost on the way."""
    ledger = new_ledger(limit=limit)
    for charge in charges:
        ledger.charge(charge)
    assert ledger.accounting == accounting
    total = ledger.spent()
    assert type(total) is type(spent)
    for name in spent.ranges:
        assert getattr(total, name) == pytest.approx(getattr(spent, name), rel=1e-9)
        assert getattr(ledger.remaining(), name) == pytest.approx(getattr(limit, name) - getattr(total, name), rel=1e-9)


def test_a_pure_charge_costs_little_under_a_concentrated_limit(new_ledger):
    """epsilon tanh(epsilon / 2), not epsilon."""
    ledger = new_ledger(limit=ZCDP(1.0))
    ledger.charge(PureDP(0.1))
    assert ledger.spent().rho == pytest.approx(0.1 * math.tanh(0.05))


def test_the_first_charge_fixes_how_charges_add_up(new_ledger):
    """ZCDP charges add Rényi divergences from then on, others epsilons and deltas."""
    ledger = new_ledger(limit=ApproxDP(3.0, 1e-6))
    with pytest.raises(BudgetExceeded):
        ledger.charge(ZCDP(5.0))
    assert ledger.accounting == "auto"
    ledger.charge(ZCDP(0.01))
    assert ledger.accounting == "renyi"
    ledger.charge(0.1)
    assert ledger.accounting == "renyi"
    assert ledger.entries()[["epsilon", "rho"]].fillna(0.0).to_numpy().tolist() == [[0.0, 0.01], [0.1, 0.0]]


def test_pure_charges_under_renyi_accounting_never_cost_more_than_their_sum(new_ledger):
    """Nor any delta."""
    ledger = new_ledger(limit=ApproxDP(1.0, 1e-6), accounting="renyi")
    for _ in range(2):
        ledger.charge(0.5)
    assert ledger.spent() == ApproxDP.of_sum(1.0, 0.0)
    with pytest.raises(BudgetExceeded):
        ledger.charge(0.5)


@pytest.mark.parametrize(
    ("limit", "accounting", "charge", "advice"),
    [
        (PureDP(9.0), "auto", ZCDP(0.1), "ledger with an ApproxDP or ZCDP limit"),
        (PureDP(9.0), "auto", ApproxDP(0.1, 1e-7), "ledger with an ApproxDP or ZCDP limit"),
        (ZCDP(9.0), "auto", ApproxDP(0.1, 1e-7), "ledger with an ApproxDP limit"),
        (ApproxDP(9.0, 1e-6), "sum", ZCDP(0.1), "accounting='renyi'"),
    ],
)
def test_a_currency_that_a_ledger_does_not_count_is_refused_with_advice(new_ledger, limit, accounting, charge, advice):
    """No amount of it would fit, so lowering the budget is not what is advised."""
    ledger = new_ledger(limit=limit, accounting=accounting)
    with pytest.raises(LedgerError, match=advice) as refusal:
        ledger.charge(charge)
    assert not isinstance(refusal.value, BudgetExceeded)
    assert "Nothing was used or charged" in str(refusal.value)
    assert len(ledger.entries()) == 0


def test_an_approximate_charge_takes_from_a_hundredth_of_delta_under_renyi_accounting(new_ledger):
    """The refusal of a larger one says so."""
    ledger = new_ledger(limit=ApproxDP(9.0, 1e-6), accounting="renyi")
    ledger.charge(ApproxDP(0.1, 9e-9))
    with pytest.raises(BudgetExceeded, match="a hundredth of the limit's delta"):
        ledger.charge(ApproxDP(0.1, 9e-9))


def test_a_release_with_a_finer_account_is_counted_by_it(new_ledger):
    """Its approximate budget under a concentrated limit would not be."""
    event = Event(ApproxDP(0.5, 1e-6), GaussianMechanism(0.1))
    ledger = new_ledger(limit=ZCDP(1.0))
    ledger.charge(event)
    assert ledger.spent().rho == pytest.approx(0.005)


def test_a_plan_of_a_mechanism_is_charged_by_its_event(new_ledger):
    """So are events themselves."""

    class Plan:
        event = Event(PureDP(0.25))

    ledger = new_ledger(limit=1.0)
    ledger.charge(Plan())
    ledger.charge(Plan.event)
    assert ledger.spent() == PureDP(0.5)


# Batches


@pytest.mark.parametrize("sigma", [5.0, 20.0, 100.0, 1000.0])
def test_a_hundred_gaussian_releases_cost_what_their_joint_loss_costs(new_ledger, sigma):
    """Planned together: within 5% of dp_accounting's own answer. One by one, by Rényi divergences: within 11%."""
    event = dp_accounting.GaussianDpEvent(sigma)
    exact = pld.PLDAccountant().compose(dp_accounting.SelfComposedDpEvent(event, 100)).get_epsilon(1e-6)
    ledger = new_ledger(limit=ApproxDP(1.05 * exact, 1e-6))
    ledger.plan([event] * 100)
    assert exact <= ledger.spent().epsilon <= 1.05 * exact
    assert ledger.spent().delta <= 1e-6
    assert ledger.accounting == "sum"
    one_by_one = Ledger(limit=ApproxDP(1.11 * exact, 1e-6))
    for _ in range(100):
        one_by_one.charge(event)
    assert one_by_one.accounting == "renyi"
    assert exact <= one_by_one.spent().epsilon <= 1.11 * exact


def test_each_release_of_a_batch_is_made_once(new_ledger):
    """What was not planned, or is used up, is refused; the ledger is charged by the plan alone."""
    ledger = new_ledger(limit=1.0)
    batch = ledger.plan([0.25, PureDP(0.25), Event(PureDP(0.5))], purpose="three means")
    assert ledger.spent() == PureDP(1.0)
    assert ledger.entries()["purpose"].tolist() == ["three means"]
    assert ledger.entries()["epsilon"].tolist() == [1.0]
    assert batch.limit == ledger.limit
    assert batch.neighbours is ledger.neighbours
    for amount in (0.25, 0.5, 0.25):
        batch.charge(amount, purpose="mean", neighbours="replace-one")
    for amount in (0.25, 0.5, 0.125, ZCDP(0.1)):
        with pytest.raises(BudgetExceeded, match=r"ledger\.plan"):
            batch.charge(amount)
    assert "3 releases, 0 of them unused" in repr(batch)
    assert len(ledger.entries()) == 1


def test_a_batch_over_the_limit_is_not_made(new_ledger):
    """Nor is one of nothing, or one of no known joint cost."""
    ledger = new_ledger(limit=ApproxDP(1.0, 1e-6))
    for items in ([0.6, 0.6], [GAUSSIAN] * 1000, [math.inf], [ZCDP(100.0)]):
        with pytest.raises(BudgetExceeded):
            ledger.plan(items)
    for items in ([], [dp_accounting.NoOpDpEvent()], ["0.1"]):
        with pytest.raises(ParameterError):
            ledger.plan(items)
    assert len(ledger.entries()) == 0
    assert ledger.accounting == "auto"


def test_a_batch_takes_the_delta_that_is_asked_for_or_left(new_ledger):
    """Never more; without any left, pure releases can still be planned."""
    ledger = new_ledger(limit=ApproxDP(5.0, 1e-6))
    ledger.charge(ApproxDP(0.1, 2e-7))
    ledger.plan([GAUSSIAN] * 10, delta=1e-7)
    assert ledger.spent().delta == 3e-7
    ledger.plan([ZCDP(0.01)] * 3)
    assert ledger.remaining().delta == 0.0
    before = ledger.spent().epsilon
    ledger.plan([0.1, 0.2])
    assert ledger.spent().epsilon == pytest.approx(before + 0.3)
    with pytest.raises(LedgerError, match="if delta is left"):
        ledger.plan([GAUSSIAN])


def test_what_is_left_of_delta_is_rounded_down(new_ledger):
    """A number of 27 digits is left; the double that is asked for must not be above it."""
    ledger = new_ledger(limit=ApproxDP(5.0, 1e-6))
    ledger.charge(ApproxDP(0.1, 1.23456789012345e-17))
    ledger.plan([GAUSSIAN] * 3)
    assert 0.0 <= ledger.remaining().delta < 1e-21


def test_pure_releases_that_are_cheaper_alone_are_charged_alone(new_ledger):
    """They need no delta."""
    ledger = new_ledger(limit=ApproxDP(5.0, 1e-6))
    ledger.plan([0.5, 0.5])
    assert ledger.spent() == ApproxDP.of_sum(1.0, 0.0)


@pytest.mark.parametrize("limit", [PureDP(1.0), ZCDP(1.0)])
def test_a_delta_without_a_meaning_is_refused(new_ledger, limit):
    """Pure and concentrated limits have none."""
    with pytest.raises(ParameterError, match="delta"):
        new_ledger(limit=limit).plan([0.1], delta=1e-6)


@pytest.mark.parametrize("delta", [0.0, -1e-6, 0.6, math.nan, "1e-6"])
def test_a_delta_that_is_no_probability_is_refused(new_ledger, delta):
    """As anywhere."""
    with pytest.raises(ParameterError, match="delta"):
        new_ledger(limit=ApproxDP(1.0, 1e-6)).plan([0.1], delta=delta)


def test_threads_use_up_a_batch_once():
    """8 threads ask 40 times for one of 20 releases."""
    batch = Ledger(limit=1.0).plan([0.05] * 20)
    assert granted_to_threads(batch, 0.05, 5) == 20


def test_a_batch_stays_in_its_process():
    """Pickled, or in a forked child, it would make its releases twice."""
    batch = Ledger(limit=1.0).plan([0.1])
    with pytest.raises(LedgerError, match="n_jobs=1"):
        pickle.dumps(batch)
    assert copy.copy(batch) is copy.deepcopy([batch])[0] is batch
    assert outcome_in_a_fork(batch) == "LedgerError"


# Copies, threads and processes


def granted_to_threads(ledger, amount, times):
    granted = []

    def work():
        for _ in range(times):
            try:
                ledger.charge(amount)
                granted.append(1)
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(granted)


def charge_and_report(ledger, queue):
    try:
        ledger.charge(0.1)
        queue.put("charged")
    except LedgerError as error:
        queue.put(type(error).__name__)


def outcome_in_a_fork(ledger):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=charge_and_report, args=(ledger, queue))
    child.start()
    outcome = queue.get(timeout=30)
    child.join()
    queue.close()
    queue.join_thread()
    return outcome


def test_threads_cannot_overspend(new_ledger):
    """8 threads ask for 1.6 in all under a limit of 1: exactly 1 is granted."""
    ledger = new_ledger(limit=1.0)
    assert granted_to_threads(ledger, 0.01, 20) == 100
    assert ledger.spent() == PureDP(1.0)


def test_each_thread_knows_the_number_of_its_own_last_charge(new_ledger):
    """Whatever other threads charge meanwhile; a thread that charged nothing has none."""
    ledger = new_ledger(limit=1.0)
    ledger.charge(0.25, purpose="here")
    seen = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: (seen.append(ledger.last_charge), ledger.charge(0.125)))
        thread.start()
        thread.join()
    assert seen == [None, None]
    assert ledger.last_charge == 1
    ledger.charge(0.125)
    assert ledger.last_charge == 4


def test_models_that_are_fitted_at_once_are_noted_on_their_own_charges(tmp_path, monkeypatch):
    """Each thread is charged before the first has fitted; the checksum of each file stands on the charge of its fit."""
    charged = threading.Barrier(2)
    release = ObjectivePerturbation.release

    def wait_and_release(self, *arguments, **options):
        charged.wait(60)
        return release(self, *arguments, **options)

    monkeypatch.setattr(ObjectivePerturbation, "release", wait_and_release)
    ledger = Ledger(tmp_path / "study.db", limit=4.0)
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2

    def fit_and_save(budget):
        model = confide.LogisticRegression(budget, classes=[0, 1], ledger=ledger).fit(X, y)
        model.save(tmp_path / f"{budget}.json")

    threads = [threading.Thread(target=fit_and_save, args=(budget,)) for budget in (0.5, 0.75)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    noted = dict(zip(ledger.entries()["epsilon"], ledger.entries()["sha256"], strict=True))
    assert noted == {
        budget: hashlib.sha256((tmp_path / f"{budget}.json").read_bytes()).hexdigest() for budget in (0.5, 0.75)
    }


def test_every_copy_is_the_ledger_itself(new_ledger):
    """copy, deepcopy and scikit-learn's clone, alone and inside an estimator."""
    from sklearn.base import clone

    from confide import LogisticRegression

    ledger = new_ledger(limit=1.0)
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"a": [ledger]})["a"][0] is ledger
    assert clone(ledger) is ledger
    assert clone(LogisticRegression(ledger=ledger)).ledger is ledger


def test_pickling_a_ledger_in_memory_is_refused_with_advice():
    """A copy in another process would spend the same budget again."""
    with pytest.raises(LedgerError, match=r"Ledger\(path, limit=\.\.\.\).*n_jobs=1"):
        pickle.dumps(Ledger(limit=1.0))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_cannot_charge_a_ledger_in_memory():
    """Its charge would be lost to the parent."""
    ledger = Ledger(limit=1.0)
    assert outcome_in_a_fork(ledger) == "LedgerError"
    assert ledger.spent().epsilon == 0.0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_other_threads_charge_leaves_no_lock_behind(tmp_path):
    """Neither in the child nor in the parent."""
    ledger = Ledger(tmp_path / "study.db", limit=1000.0)
    threads = [threading.Thread(target=lambda: [ledger.charge(1.0) for _ in range(40)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    outcomes = [outcome_in_a_fork(ledger) for _ in range(10)]
    for thread in threads:
        thread.join()
    assert outcomes == ["charged"] * 10
    assert ledger.spent() == PureDP(121.0)


def test_a_ledger_shows_what_it_is(tmp_path):
    """Place, limit, relation and persons; not what is spent, which would need the file."""
    shown = "limit epsilon 2, replace-one, max_rows_per_person=1>"
    assert repr(Ledger(limit=2.0)) == f"<Ledger in memory: {shown}"
    path = tmp_path / "study.db"
    ledger = Ledger(path, limit=2.0, max_rows_per_person=5)
    assert repr(ledger) == f"<Ledger '{path}': {shown.replace('=1', '=5')}"


# What a plan says of neighbours


def plan_of(kind, neighbours="replace-one", rows=1):
    """A plan of each kind that a ledger is charged."""
    facts = {"neighbours": neighbours, "max_rows_per_person": rows}
    if neighbours != "replace-one":
        facts["n_rows_bounds"] = (10**6, 2 * 10**6)
    match kind:
        case "weights":
            return confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), **facts).plan(10**6, 3)
        case "weights and moments":
            return confide.LogisticRegression(1.0, inference_share=0.3, **facts).plan(10**6, 3)
        case "moments":
            return plan_of("weights and moments", neighbours, rows).intervals.moments
        case "sums":
            return confide.Ridge(1.0, target_bound=1.0, **facts).plan(10**6, 3)
        case "counts":
            return SumPlan.of(Counts(8, Neighbours.parse(neighbours), rows), PureDP(1.0))
        case _:
            model = confide.LogisticRegression(classes=[0, 1], max_rows_per_person=rows)
            return confide.PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, budget=1.0, method=kind).plan(1000, 3)


KINDS = ["weights", "weights and moments", "moments", "sums", "counts", "permute-and-flip", "exponential", "repeated"]


@pytest.mark.parametrize("part", [lambda plan: plan, lambda plan: plan.event])
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_of_the_other_relation_is_refused(new_ledger, kind, part):
    """By charge, plan and batch, of whatever kind, and by its event alone; nothing is charged."""
    other = "add-or-remove-one"
    if kind in KINDS[-3:]:  # searches are for replace-one alone
        plan, ledger = part(plan_of(kind)), new_ledger(limit=ApproxDP(5.0, 1e-5), neighbours=other)
    else:
        plan, ledger = part(plan_of(kind, other)), new_ledger(limit=ApproxDP(5.0, 1e-5))
    batch = ledger.plan([PureDP(0.1)])
    for charge in (ledger.charge, lambda plan: ledger.plan([PureDP(0.1), plan]), batch.charge):
        with pytest.raises(LedgerError, match="one ledger for each relation"):
            charge(plan)
    with pytest.raises(LedgerError, match="one ledger for each relation"):
        ledger.charge(plan, neighbours=ledger.neighbours)
    assert len(ledger.entries()) == 1


def test_an_event_by_hand_is_of_the_relation_of_its_curve(new_ledger):
    """Where it says no other; one without a curve that speaks of neighbours is of the ledger's relation."""
    ledger = new_ledger(limit=ApproxDP(5.0, 1e-5))
    for relation in Neighbours:
        event = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.01, math.inf, 0.01, relation))
        if relation is ledger.neighbours:
            ledger.charge(event)
        else:
            with pytest.raises(LedgerError, match="one ledger for each relation"):
                ledger.charge(event)
    ledger.charge(Event(PureDP(0.1)))
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_is_charged_and_batched_by_what_it_says(new_ledger, kind):
    """Of its own relation, and for as many rows of a person as it protects."""
    ledger = new_ledger(limit=ApproxDP(9.0, 1e-5), max_rows_per_person=3)
    plan = plan_of(kind, rows=3)
    ledger.charge(plan)
    ledger.plan([plan]).charge(plan)
    assert ledger.entries()["rows_per_person"].tolist() == [3, 3]
    with pytest.raises(LedgerError, match="max_rows_per_person=3"):
        ledger.charge(plan_of(kind, rows=2))
    assert len(ledger.entries()) == 2


def test_an_infinite_budget_is_refused_as_too_much():
    """Whatever the ledger's persons: the reason is the budget."""
    ledger = Ledger(limit=1.0, max_rows_per_person=4)
    for model in (confide.LogisticRegression(math.inf), confide.Ridge(math.inf, target_bound=1.0)):
        with pytest.raises(BudgetExceeded):
            ledger.charge(model.set_params(max_rows_per_person=4).plan(1000, 3))
    with pytest.raises(BudgetExceeded):
        ledger.charge(SumPlan.of(Counts(8, Neighbours.REPLACE_ONE, 4), PureDP(math.inf)))


# For whom a limit speaks


def test_charges_for_fewer_rows_of_a_person_are_refused(new_ledger):
    """A person with five rows pays five times what a release for single rows costs; one for more rows costs no more."""
    ledger = new_ledger(limit=1.0, max_rows_per_person=5)
    assert ledger.max_rows_per_person == 5
    ledger.charge(Event(PureDP(0.25), None, 5))
    ledger.charge(Event(PureDP(0.25), None, 6))
    for charge in (ledger.charge, lambda event: ledger.plan([event])):
        for rows in (1, 4):
            with pytest.raises(LedgerError, match=f"max_rows_per_person=5; .* more for a charge that protects {rows}\\."):
                charge(Event(PureDP(0.125), None, rows))
    with pytest.raises(LedgerError, match="protects 1"):
        ledger.plan([Event(PureDP(0.125), None, 9), Event(PureDP(0.125), None, 1)])
    assert ledger.spent() == PureDP(0.5)
    assert ledger.entries()["rows_per_person"].tolist() == [5, 6]


def test_a_budget_by_hand_is_for_the_persons_of_the_ledger(new_ledger):
    """So are events of dp_accounting, and what a batch makes of several."""
    ledger = new_ledger(limit=ApproxDP(5.0, 1e-5), max_rows_per_person=5)
    ledger.charge(0.25)
    ledger.charge(dp_accounting.LaplaceDpEvent(4.0))
    batch = ledger.plan([ApproxDP(0.1, 1e-7)] * 20, delta=4e-6)
    batch.charge(ApproxDP(0.1, 1e-7))
    with pytest.raises(BudgetExceeded, match="no release left"):
        batch.charge(Event(ApproxDP(0.1, 1e-7)))
    assert batch.max_rows_per_person == 5
    assert ledger.entries()["rows_per_person"].tolist() == [5, 5, 5]
    ledger.plan([Event(ApproxDP(0.1, 1e-7), None, rows) for rows in (7, 6, 8)] * 7, delta=4e-6)
    assert ledger.entries()["rows_per_person"].tolist()[-1] == 6


@pytest.mark.parametrize("rows", [0, -1, 1.5, 2.0, True, "2", None, 10**9 + 1, 10**30])
def test_persons_that_are_no_number_are_refused(new_ledger, rows):
    """Nothing is created."""
    with pytest.raises(ParameterError, match="max_rows_per_person must be a whole number of at least 1"):
        new_ledger(limit=1.0, max_rows_per_person=rows)
    assert new_ledger(limit=1.0, max_rows_per_person=np.int64(2)).max_rows_per_person == 2


def test_a_fit_is_for_the_persons_of_its_ledger():
    """One for fewer rows is refused before a row is used; one for more says for whom the limit speaks."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    ledger = Ledger(limit=4.0, max_rows_per_person=3)
    with pytest.raises(LedgerError, match="max_rows_per_person=3"):
        confide.LogisticRegression(1.0, classes=[0, 1], ledger=ledger).fit(X, y)
    equal, more = (
        confide.LogisticRegression(1.0, classes=[0, 1], max_rows_per_person=k, ledger=ledger).fit(X, y) for k in (3, 4)
    )
    assert "ledger with the limit: pure differential privacy with epsilon = 4;" in equal.guarantee_.statement()
    assert "epsilon = 4 for persons with at most 3 rows;" in more.guarantee_.statement()
    assert ledger.spent() == PureDP(2.0)


def test_a_batch_for_persons_is_not_used_up_by_fits_for_rows(new_ledger):
    """What protects three rows together and what protects one are not equal."""
    ledger = new_ledger(limit=PureDP(5.0))
    plans = [confide.LogisticRegression(1.0, max_rows_per_person=k).plan(100, 3) for k in (1, 3)]
    batch = ledger.plan(plans[1:])
    assert ledger.entries()["rows_per_person"].tolist() == [3]
    with pytest.raises(BudgetExceeded, match="no release left"):
        batch.charge(plans[0])
    batch.charge(plans[1])


@pytest.mark.parametrize("rows", [0, -1, 3.5, True, math.inf, math.nan, "2"])
def test_an_event_for_an_impossible_number_of_rows_is_refused(rows):
    """When it is made, before any ledger sees it; NumPy's whole numbers become Python's."""
    with pytest.raises(confide.ParameterError, match="whole number"):
        Event(PureDP(0.1), None, rows)
    assert type(Event(PureDP(0.1), None, np.int64(2)).rows_per_person) is int


# Details and notes


def test_details_and_notes_say_what_was_bought_and_cost_nothing(new_ledger):
    """Amounts, numbers of charges and the limit are as without them."""
    ledger = new_ledger(limit=1.0)
    ledger.charge(0.25, purpose="income", details={"user": "Ana", "model": "m.json", "release": "half a pair \ud800"})
    assert ledger.last_charge == 1
    before = ledger.head
    ledger.note(1, {"sha256": "cd"})
    ledger.note(1, {"sha256": "cd", "model": "m.json"})
    assert ledger.head != before
    ledger.charge(0.75)
    assert ledger.last_charge == 2
    frame = ledger.entries()
    assert frame["number"].tolist() == [1, 2]
    assert frame.loc[0, list(DETAILS)].tolist() == ["half a pair ?", "Ana", "m.json", "cd"]
    assert frame.loc[1, list(DETAILS)].isna().all()
    assert (ledger.spent(), ledger.verify(), ledger.verify(before)) == (PureDP(1.0), 2, 2)
    with pytest.raises(BudgetExceeded):
        ledger.charge(1e-9)


@pytest.mark.parametrize("details", [{"colour": "red"}, {"user": 7}, {"user": "x" * 1001}, ["user"]])
def test_details_of_another_kind_are_refused_before_a_charge(new_ledger, details):
    """A closed list of names, and texts."""
    ledger = new_ledger(limit=1.0)
    with pytest.raises(ParameterError, match="detail"):
        ledger.charge(0.5, details=details)
    assert (ledger.verify(), ledger.last_charge) == (0, None)


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ({"release": "fit"}, ParameterError),
        ({"user": "Eve"}, ParameterError),
        ({"model": "other.json"}, LedgerError),
        ({"sha256": "cd"}, LedgerError),
        ({"sha256": "cd", "model": "m.json"}, LedgerError),
    ],
)
def test_a_note_replaces_nothing(new_ledger, details, error):
    """What a charge says of its release stays, and so does the first checksum."""
    ledger = new_ledger(limit=1.0)
    ledger.charge(0.25, details={"release": "fit (void: random_state was set)", "user": "Ana", "model": "m.json"})
    ledger.note(1, {"sha256": "ab"})
    head = ledger.head
    with pytest.raises(error, match="a note"):
        ledger.note(1, details)
    assert ledger.head == head
    known = ["fit (void: random_state was set)", "Ana", "m.json", "ab"]
    assert ledger.entries().loc[0, list(DETAILS)].tolist() == known


def test_a_record_written_after_a_release_says_nothing_of_when(monkeypatch):
    """However long the release took, the records are the same to the bit; the time of a charge stands in the charge."""

    def records(noted_at):
        monkeypatch.setattr("confide.accounting.ledger.uuid.uuid4", lambda: SimpleNamespace(hex="0123" * 8))
        monkeypatch.setattr("confide.accounting.ledger.now", lambda: "2026-01-01T00:00:00+00:00")
        ledger = Ledger(limit=1.0)
        ledger.charge(0.25)
        monkeypatch.setattr("confide.accounting.ledger.now", lambda: noted_at)
        ledger.note(1, {"sha256": "ab"})
        with ledger._up_to_date() as session:
            return session.records_after(None)

    soon, late = records("2026-01-01T00:00:01+00:00"), records("2026-01-01T05:00:00+00:00")
    assert soon == late
    assert "2026-01-01T00:00:00" in soon[1].text
    assert len(soon) == 3


@pytest.mark.parametrize("charge", [0, 2, -1, True, "1"])
def test_a_note_is_on_a_charge_that_is_there(new_ledger, charge):
    """Otherwise nothing is written."""
    ledger = new_ledger(limit=1.0)
    ledger.charge(0.5)
    head = ledger.head
    with pytest.raises(LedgerError, match="no charge of this number"):
        ledger.note(charge, {"sha256": "ab"})
    assert ledger.head == head


@pytest.mark.parametrize(
    ("limit", "accounting", "charge"),
    [
        (ApproxDP(1.0, 1e-6), "sum", ApproxDP(2.0, 1e-7)),
        (ApproxDP(1.0, 1e-6), "renyi", Event(ApproxDP(9.0, 1e-7), GaussianMechanism(9.0))),
        (ApproxDP(1.0, 1e-6), "renyi", PureDP(9.0)),
    ],
)
def test_a_refusal_speaks_of_the_share_of_delta_only_where_there_is_one(limit, accounting, charge):
    """Sums have no such share, and charges with a curve of their own do not need it."""
    with pytest.raises(BudgetExceeded) as refusal:
        Ledger(limit=limit, accounting=accounting).charge(charge)
    assert "a hundredth" not in str(refusal.value)


def test_a_charge_holds_the_records_for_writing(monkeypatch):
    """Two charges at once would otherwise both read a total that has room for one. Reading asks for no such right."""
    ledger, asked = Ledger(limit=1.0), []
    whole = ledger._records.session

    def session(*, writing):
        asked.append(writing)
        return whole(writing=writing)

    monkeypatch.setattr(ledger._records, "session", session)
    ledger.charge(0.25)
    assert asked[-1] is True
    asked.clear()
    assert ledger.spent() == PureDP(0.25)
    assert True not in asked


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"limit": 3.0}, "has the limit"),
        ({"neighbours": "add-or-remove-one"}, "one ledger for each relation"),
        ({"max_rows_per_person": 3}, "is for max_rows_per_person=2, not 3"),
        ({"accounting": "renyi"}, "accounting='sum', not 'renyi'"),
    ],
)
def test_what_a_ledger_was_made_for_is_fixed_once(tmp_path, others, words):
    """Who opens it for something else is told so."""
    made = {"limit": ApproxDP(2.0, 1e-6), "max_rows_per_person": 2, "accounting": "sum"}
    path = tmp_path / "study.db"
    Ledger(path, **made)
    assert Ledger(path, **made).limit == made["limit"]
    with pytest.raises(LedgerError, match=words):
        Ledger(path, **others)


def test_a_batch_of_nothing_is_refused():
    """Whether it has no items or items that cost nothing."""
    for items in ([], [dp_accounting.NoOpDpEvent()]):
        with pytest.raises(ParameterError, match="at least one release"):
            Ledger(limit=ApproxDP(2.0, 1e-6)).plan(items)


def test_a_batch_with_one_release_without_privacy_has_no_joint_loss():
    """It is refused as too much."""
    with pytest.raises(BudgetExceeded):
        Ledger(limit=ApproxDP(2.0, 1e-6)).plan([PureDP(math.inf), PureDP(0.1)])


def test_one_charge_without_a_curve_lets_a_refusal_speak_of_the_share_of_delta():
    """Whatever else is asked for."""
    with pytest.raises(BudgetExceeded, match="a hundredth"):
        Ledger(limit=ApproxDP(1.0, 1e-6), accounting="renyi").plan([ApproxDP(0.1, 1e-7), ZCDP(0.001)])


def test_a_check_of_nothing_finds_nothing_and_one_of_too_much_raises():
    """No record is made."""
    ledger = Ledger(limit=1.0)
    ledger.check([])
    ledger.check([PureDP(0.5)])
    with pytest.raises(BudgetExceeded):
        ledger.check([PureDP(0.5), PureDP(0.6)])
    assert ledger.spent() == PureDP.of_sum(0.0)


class Stops(list):
    """Interrupts whoever has added something to it."""

    def append(self, each):
        super().append(each)
        raise KeyboardInterrupt


def test_an_interrupt_while_a_charge_is_counted_loses_no_ledger_in_memory():
    """The charge counts, and so do those that follow."""
    ledger = Ledger(limit=1.0)
    ledger.charge(0.25)
    ledger._entries = Stops(ledger._entries)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(0.25)
    ledger.charge(0.125)
    assert ledger.spent() == PureDP(0.625)
    assert ledger.verify() == 3
    with pytest.raises(BudgetExceeded):
        ledger.charge(0.5)


def test_a_record_that_cannot_be_understood_after_it_was_written_is_not_called_uncharged(monkeypatch):
    """It stands in the ledger, and counts for whoever can read it."""
    ledger = Ledger(limit=1.0)
    monkeypatch.setattr(Ledger, "_take", lambda self, record: False)
    with pytest.raises(LedgerError, match="What its records charge stays charged") as refused:
        ledger.charge(0.25)
    assert "Nothing was" not in str(refused.value)


# Sub-limits: what charges of one purpose may cost together


def test_charges_of_a_purpose_stay_within_its_sublimit(new_ledger):
    """Also those whose purpose goes on after it; other purposes count under the limit alone."""
    ledger = new_ledger(limit=4.0)
    ledger.sublimit("Waiting times", 1.0)
    ledger.charge(0.75, purpose="Waiting times, release 1 [study ab]")
    for purpose in (
        "Waiting times",
        "Waiting times, release 2",
        "Waiting times: a",
        "Waiting times [x",
        "Waiting times (b)",
    ):
        with pytest.raises(BudgetExceeded, match=r'the purpose "Waiting times" has epsilon 0.25 left of epsilon 1\.'):
            ledger.charge(0.5, purpose=purpose)
        with pytest.raises(BudgetExceeded):
            ledger.check([0.25, 0.25], purpose)
    ledger.check([0.25], "Waiting times")
    ledger.check([0.5], "Waiting timesheets")
    assert ledger.spent() == PureDP(0.75)
    ledger.charge(0.25, purpose="Waiting times, release 2")
    ledger.charge(2.0, purpose="Waiting timesheets")
    ledger.charge(0.5, purpose="about Waiting times")
    assert ledger.sublimits().values.tolist() == [["Waiting times", False, 1.0, 1.0, 0.0]]
    with pytest.raises(BudgetExceeded, match=r"the ledger has epsilon 0\.5 left"):
        ledger.charge(0.75, purpose="anything")


def test_a_sublimit_replaces_the_one_before_and_reserves_nothing(new_ledger):
    """Below what is spent nothing is left; the limit of the ledger stays as it is."""
    ledger = new_ledger(limit=2.0)
    ledger.sublimit("a", 2.0)
    ledger.charge(1.5, purpose="a")
    ledger.sublimit("a", 0.5)
    assert ledger.sublimits()["remaining"].tolist() == [0.0]
    with pytest.raises(BudgetExceeded, match='the purpose "a"'):
        ledger.charge(0.25, purpose="a")
    ledger.sublimit("a", 1.75)
    ledger.charge(0.25, purpose="a")
    assert ledger.remaining() == PureDP(0.25)
    assert (ledger.verify(), len(ledger.entries())) == (2, 2)


def test_a_sublimit_of_each_year_begins_anew(new_ledger):
    """By the time of the charge, in UTC."""
    ledger = new_ledger(limit=4.0)
    ledger.sublimit("a", 1.0, per_year=True)
    ledger.dated_like = "2026-12-31T23:59:59+00:00"
    ledger.charge(1.0, purpose="a")
    with pytest.raises(BudgetExceeded):
        ledger.charge(0.25, purpose="a")
    ledger.dated_like = "2027-01-01T00:00:00+00:00"
    ledger.charge(0.75, purpose="a")
    with pytest.raises(BudgetExceeded, match=r"0\.25 left of epsilon 1"):
        ledger.charge(0.5, purpose="a")
    assert ledger.spent() == PureDP(1.75)


@pytest.mark.parametrize(
    ("limit", "accounting", "charge"),
    [(ZCDP(1.0), "auto", ZCDP(0.25)), (ApproxDP(4.0, 1e-5), "sum", ApproxDP(0.25, 1e-7))],
)
def test_a_sublimit_is_in_the_currency_of_the_limit(limit, accounting, charge):
    """With its delta."""
    ledger = Ledger(limit=limit, accounting=accounting)
    ledger.sublimit("a", 0.5)
    ledger.charge(charge, purpose="a")
    ledger.charge(charge, purpose="a")
    with pytest.raises(BudgetExceeded, match='the purpose "a"'):
        ledger.charge(charge, purpose="a")
    ledger.charge(charge, purpose="b")


def test_under_renyi_accounting_a_sublimit_counts_as_a_limit_does():
    """As many releases fit as in a ledger with that limit."""

    def fit_in(ledger, purpose):
        for count in range(1000):
            try:
                ledger.charge(ZCDP(0.001), purpose=purpose)
            except BudgetExceeded:
                return count
        return None

    ledger = Ledger(limit=ApproxDP(4.0, 1e-5), accounting="renyi")
    ledger.sublimit("a", 1.0)
    count = fit_in(ledger, "a")
    assert count == fit_in(Ledger(limit=ApproxDP(1.0, 1e-5), accounting="renyi"), "a")
    assert count > 10


@pytest.mark.parametrize(
    ("purpose", "amount"),
    [("", 1.0), ("  ", 1.0), ("a", 0.0), ("a", -1.0), ("a", 4.5), ("a", math.nan), ("a" * 20_000, 1.0)],
)
def test_a_sublimit_that_means_nothing_is_refused(new_ledger, purpose, amount):
    ledger = new_ledger(limit=4.0)
    with pytest.raises(ParameterError):
        ledger.sublimit(purpose, amount)
    assert len(ledger.sublimits()) == 0
    assert ledger.verify() == 0


def test_sublimits_are_seen_by_all_who_share_the_ledger(tmp_path):
    """Also by an object that was opened before."""
    first = Ledger(tmp_path / "study.db", limit=4.0)
    Ledger(tmp_path / "study.db").sublimit("a", 1.0)
    with pytest.raises(BudgetExceeded, match='the purpose "a"'):
        first.charge(2.0, purpose="a")
    assert "Sub-limits" in str(first)
    assert pickle.loads(pickle.dumps(first)).sublimits()["limit"].tolist() == [1.0]
