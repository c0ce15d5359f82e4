"""Cohorts: a charge for one costs its persons alone. Laws of small adaptive releases are computed exactly."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import confide
from confide.accounting.filters import Amount, ConcentratedFilter, SumFilter, of_each, shown, with_charge
from confide.accounting.ledger import Ledger
from confide.accounting.records import Entry, Header
from confide.errors import BudgetExceeded, InputError, LedgerError, ParameterError, SchemaError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event

RELATION = "add-or-remove-one"
CHARGED = {"nov": 0.5, "dec": 0.25, None: 0.125}
"""Epsilons of randomised response, so that likelihoods are powers of one number."""
UNIT = Fraction(11, 10)
"""In place of exp(1/8), so that all laws are rational."""


def charge_of(budget, cohort=None):
    """A charge, as a ledger keeps it."""
    return Entry(1, "2026-01-01T00:00:00+00:00", "", "sum", (Event(budget),), cohort=cohort)


def answers(rows, cohort, steps, overlapping):
    """The law of one noisy bit, whether the cohort has a row of 1: to one of two answers, in the ratio UNIT^steps."""
    own = [bit for group, bit in rows if cohort in (None, group) or (overlapping and bit)]
    ratio = UNIT**steps
    likely = Fraction(ratio, 1 + ratio)
    return {True: likely, False: 1 - likely} if any(own) else {True: 1 - likely, False: likely}


def next_release(seen):
    """The cohort of the next release, chosen after what came out; None is everybody, and "end" none."""
    if len(seen) == 3:
        return "end"
    return ("nov", "dec", None)[(len(seen) + sum(seen)) % 3]


def law(rows, overlapping=False):
    """Each path of outcomes with its probability."""
    paths, done = {(): Fraction(1)}, {}
    while paths:
        seen, chance = paths.popitem()
        cohort = next_release(seen)
        if cohort == "end":
            done[seen] = chance
            continue
        for bit, likely in answers(rows, cohort, int(8 * CHARGED[cohort]), overlapping).items():
            paths[(*seen, bit)] = chance * likely
    return done


def totals_of(path):
    """What the ledger counts along a path."""
    totals = {}
    for seen in (path[:k] for k in range(len(path))):
        cohort = next_release(seen)
        totals = with_charge(SumFilter(PureDP(9.0)), totals, charge_of(PureDP(CHARGED[cohort]), cohort))
    return totals


ROWS = [("nov", 0), ("nov", 1), ("dec", 0), ("dec", 1), ("jan", 1), (None, 1)]
TABLES = [table for n in range(3) for table in combinations_with_replacement(ROWS, n)]


def steps_lost(overlapping=False):
    """For each path and all neighbours, how far the likelihood ratio exceeds what the ledger counts; and the ratios."""
    for table in TABLES:
        for row in ROWS:
            with_row, without = law((*table, row), overlapping), law(table, overlapping)
            for path, chance in with_row.items():
                allowed = UNIT ** int(8 * shown(max, SumFilter(PureDP(9.0)).spent, totals_of(path)).epsilon)
                yield max(chance / without[path], without[path] / chance), allowed


def test_no_neighbours_differ_by_more_than_the_ledger_counts_on_any_path():
    """On all tables of up to three rows; and some pair reaches what is counted, so a smaller count would be wrong."""
    pairs = list(steps_lost())
    assert all(ratio <= allowed for ratio, allowed in pairs)
    assert any(ratio == allowed > 1 for ratio, allowed in pairs)
    # Added up over all cohorts, a path costs more than any neighbours pay.
    path = max(law(()), key=lambda path: sum(CHARGED[next_release(path[:k])] for k in range(3)))
    assert shown(max, SumFilter(PureDP(9.0)).spent, totals_of(path)).epsilon < sum(
        CHARGED[next_release(path[:k])] for k in range(3)
    )


def test_cohorts_that_overlap_are_caught():
    """The planted fault: a release of one cohort also reads rows of others. Then some neighbours differ by more."""
    assert any(ratio > allowed for ratio, allowed in steps_lost(overlapping=True))


def test_rényi_divergences_stay_within_the_concentrated_total():
    """Exact divergences of the adaptive law, at several orders, where each release is charged as pure."""
    size = 8 * math.log(UNIT)
    budgets = {cohort: PureDP(epsilon * size) for cohort, epsilon in CHARGED.items()}
    filter_ = ConcentratedFilter(ZCDP(9.0))
    most = 0.0
    for path in law(()):
        totals = {}
        for k in range(3):
            cohort = next_release(path[:k])
            totals = with_charge(filter_, totals, charge_of(budgets[cohort], cohort))
        most = max(most, shown(max, filter_.spent, totals).rho)
    worst = 0.0
    for table in TABLES:
        for row in ROWS:
            for order in (1.01, 2.0, 8.0):
                p, q = law((*table, row)), law(table)
                for first, second in ((p, q), (q, p)):
                    moment = math.fsum(float(first[o]) ** order * float(second[o]) ** (1 - order) for o in first)
                    worst = max(worst, math.log(moment) / (order - 1) / order)
    assert 0.5 * most < worst <= most


def test_a_replacement_between_cohorts_costs_the_sum_of_both():
    """Two cohorts see one step each, and releases for everybody two: more than the total, and at most twice that."""
    most = 0
    for row, other in ((("nov", 1), ("dec", 0)), (("nov", 1), ("dec", 1))):
        p, q = law((row,)), law((other,))
        for path in p:
            ratio, total = (
                p[path] / q[path],
                UNIT ** int(8 * shown(max, SumFilter(PureDP(9.0)).spent, totals_of(path)).epsilon),
            )
            assert 1 / total**2 <= ratio <= total**2
            most = max(most, ratio / total)
    assert most > 1


# Totals


def test_totals_are_those_of_the_cohort_that_paid_most():
    """Each amount by itself; what is left is the least."""
    filter_ = SumFilter(ApproxDP(1.0, 1e-6))
    totals = {}
    for budget, cohort in (
        (ApproxDP(0.5, 1e-7), "a"),
        (ApproxDP(0.25, 5e-7), "b"),
        (ApproxDP(0.125, 1e-7), None),
        (ApproxDP(0.125, 1e-7), "a"),
    ):
        totals = with_charge(filter_, totals, charge_of(budget, cohort))
    assert shown(max, filter_.spent, totals) == ApproxDP(0.75, 6e-7)
    assert shown(min, filter_.remaining, totals) == ApproxDP(0.25, 4e-7)
    assert {cohort: float(total.epsilon) for cohort, total in of_each(totals).items()} == {
        None: 0.125,
        "a": 0.75,
        "b": 0.375,
    }
    assert of_each({}) == {None: Amount()}


@pytest.fixture(params=["memory", "file"])
def new_ledger(request, tmp_path):
    """What makes a ledger for cohorts."""
    made = Ledger if request.param == "memory" else partial(Ledger, tmp_path / "study.db")
    return partial(made, neighbours=RELATION, cohorts="month")


def test_a_charge_for_a_cohort_costs_its_persons_alone(new_ledger):
    """Twelve cohorts at the limit, and then nothing for one of them or for everybody, but for a further one."""
    ledger = new_ledger(limit=1.0)
    for month in range(12):
        ledger.charge(0.75, cohort=f"2026-{month + 1:02}")
    ledger.charge(0.25, purpose="all")
    assert ledger.spent() == PureDP(1.0)
    assert ledger.remaining().epsilon == 0.0
    for cohort in (None, "2026-05"):
        with pytest.raises(BudgetExceeded, match="epsilon 0 left of epsilon 1"):
            ledger.charge(0.01, cohort=cohort)
        with pytest.raises(BudgetExceeded):
            ledger.check([0.01], cohort=cohort)
    with pytest.raises(BudgetExceeded, match=r"epsilon 0\.75 left"):
        ledger.charge(0.76, cohort="2027-01")
    ledger.charge(0.75, cohort="2027-01")
    assert ledger.entries()["cohort"].tolist() == [*(f"2026-{month + 1:02}" for month in range(12)), None, "2027-01"]
    shown = str(list(ledger.blocks()))
    assert "nobody is in two" in shown
    assert "2027-01" in shown


def test_a_refusal_names_the_cohort_that_is_short_and_what_is_left_of_each_can_be_asked(new_ledger):
    """Of several that are short it names the one with the least; persons of no charged cohort have no name."""
    ledger = new_ledger(limit=1.0)
    with pytest.raises(BudgetExceeded, match=r"epsilon 1 left of epsilon 1\. "):
        ledger.charge(2.0)
    ledger.charge(0.5, cohort="nov")
    ledger.charge(0.75, cohort="02")
    ledger.charge(0.125)
    left = {cohort: ledger.remaining(cohort).epsilon for cohort in (None, "nov", "2", "002", "jan")}
    assert left == {None: 0.125, "nov": 0.375, "2": 0.125, "002": 0.125, "jan": 0.875}
    with pytest.raises(BudgetExceeded, match=r'epsilon 0\.375 left of epsilon 1 for the persons of the cohort "nov"'):
        ledger.charge(0.5, cohort="nov")
    with pytest.raises(BudgetExceeded, match=r'epsilon 0\.125 left of epsilon 1 for the persons of the cohort "2"'):
        ledger.charge(0.5)
    with pytest.raises(LedgerError, match="for everybody"):
        Ledger(limit=1.0).remaining("nov")
    with pytest.raises(ParameterError, match="cohort must be text"):
        ledger.remaining(" ")


def test_a_cohort_is_charged_as_one_however_its_label_is_written(new_ledger):
    """Its persons would pay the limit once for each spelling, and for each cohort that Python takes for the same value."""
    ledger = new_ledger(limit=1.0, neighbours=RELATION, cohorts="month")
    ledger.charge(0.75, cohort="01")
    for cohort in ("1", " 1", "1.0", "+1", 1, 1.0):
        with pytest.raises(BudgetExceeded):
            ledger.charge(0.75, cohort=cohort)
        with pytest.raises(BudgetExceeded):
            ledger.check([0.75], cohort=cohort)
    ledger.charge(0.75, cohort=True)
    for cohort in ("", " ", math.nan, ["1"]):
        with pytest.raises(ParameterError, match="cohort must be text that is not blank"):
            ledger.charge(0.1, cohort=cohort)
    assert ledger.entries()["cohort"].tolist() == ["1", "true"]
    assert not ledger._take(SimpleNamespace(number=3, text=replace(charge_of(PureDP(0.1), "01"), number=3).text))
    assert schema_of(("month", 1)) == schema_of(("month", " 01")) != schema_of(("month", True))


def test_a_rényi_ledger_counts_each_cohort_by_its_own_branch(new_ledger):
    """One by its epsilons, which no divergence admits, another by divergences: each is within the limit."""
    ledger = new_ledger(limit=ApproxDP(1.0, 1e-6), accounting="renyi")
    ledger.charge(1.0, cohort="pure")
    ledger.charge(ZCDP(0.01), cohort="concentrated")
    assert ledger.spent().epsilon == 1.0
    with pytest.raises(BudgetExceeded):
        ledger.charge(ZCDP(0.001))
    with pytest.raises(BudgetExceeded):
        ledger.charge(ZCDP(0.001), cohort="pure")
    ledger.charge(ZCDP(0.001), cohort="concentrated")


def test_a_batch_is_for_everybody_and_admits_cohorts(new_ledger):
    """It takes no more of delta than the cohort that paid most has left."""
    ledger = new_ledger(limit=ApproxDP(2.0, 1e-6))
    ledger.charge(ApproxDP(0.5, 9e-7), cohort="a")
    with pytest.raises(BudgetExceeded):
        ledger.plan([ApproxDP(0.5, 1e-7)] * 2, delta=2e-7)
    batch = ledger.plan([ApproxDP(0.5, 5e-8)] * 2)
    assert ledger.spent().delta <= 1e-6
    batch.charge(ApproxDP(0.5, 5e-8), cohort="b")


def test_a_batch_takes_the_delta_that_is_left_in_every_cohort(new_ledger):
    """It is for everybody, so that of the cohort with the least counts."""
    ledger = new_ledger(limit=ApproxDP(9.0, 1e-5), neighbours=RELATION, cohorts="month")
    ledger.charge(ApproxDP(0.1, 8e-6), cohort="dec")
    ledger.plan([confide.ZCDP(0.05)] * 3)
    assert ledger.spent().delta == pytest.approx(1e-5)


def test_sublimits_count_by_cohorts(new_ledger):
    """What the releases of one purpose cost a person, as the limit does."""
    ledger = new_ledger(limit=4.0)
    ledger.sublimit("study", 1.0)
    ledger.charge(0.75, purpose="study, release 1", cohort="a")
    ledger.charge(0.75, purpose="study, release 2", cohort="b")
    assert ledger.sublimits()["spent"].tolist() == [0.75]
    with pytest.raises(BudgetExceeded, match="purpose"):
        ledger.charge(0.5, purpose="study", cohort="b")


def test_a_file_keeps_its_cohorts(tmp_path):
    """Opened anew, it counts the same; another column, and a charge for a cohort of a ledger without, are refused."""
    place = tmp_path / "study.db"
    ledger = Ledger(place, limit=1.0, neighbours=RELATION, cohorts="month")
    ledger.charge(0.75, cohort="a")
    ledger.charge(0.5, cohort="b")
    again = Ledger(place)
    assert again.cohorts == "month"
    assert again.spent() == PureDP(0.75)
    with pytest.raises(LedgerError, match="month"):
        Ledger(place, cohorts="year")
    plain = Ledger(tmp_path / "plain.db", limit=1.0, neighbours=RELATION)
    assert plain.cohorts is None
    with pytest.raises(LedgerError, match="for everybody"):
        plain.charge(0.1, cohort="a")
    with pytest.raises(LedgerError, match="no cohorts"):
        Ledger(tmp_path / "plain.db", cohorts="month")


def test_records_without_cohorts_are_as_they_were():
    """A ledger that an older version wrote is read, and an entry for a cohort is none of such a ledger."""
    header = Header("0" * 32, PureDP(1.0), Neighbours.ADD_OR_REMOVE_ONE, "sum", 1)
    assert "cohorts" not in header.text
    assert Header.from_text(header.text) == header
    assert "cohort" not in charge_of(PureDP(0.5)).text
    with_cohort = charge_of(PureDP(0.5), "a")
    assert Entry.from_text(with_cohort.text) == with_cohort
    ledger = Ledger(limit=1.0, neighbours=RELATION)
    ledger._records.append(ledger._records.records_after(None)[-1].after(ledger._last, with_cohort.text))
    with pytest.raises(LedgerError, match="cannot be understood"):
        ledger.spent()


@pytest.mark.parametrize(
    "wrong", [{}, {"neighbours": RELATION, "max_rows_per_person": 2}, {"neighbours": RELATION, "cohorts": " "}]
)
def test_ledgers_whose_cohorts_prove_nothing_are_refused(wrong):
    """Replace-one, persons with several rows, and no column."""
    with pytest.raises(ParameterError, match="cohorts"):
        Ledger(limit=1.0, **({"cohorts": "month"} | wrong))


# Rows


def frame_of(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(18, 90, n), "month": rng.choice(["nov", "dec", None], n)})
    return frame, np.where(rng.random(n) < 1 / (1 + np.exp(-(frame["age"] - 50) / 10)), "yes", "no")


TARGET = {"column": "sick", "negative": "no", "positive": "yes"}
WHOM = {"neighbours": RELATION, "n_rows_bounds": (10, 1000)}


def schema_of(cohort=("month", "dec"), **more):
    return confide.Schema({"age": {"low": 18, "high": 90}}, TARGET, cohort=cohort, **more)


def fitted(frame, labels, ledger=None, schema=None, epsilon=1.0, seed=7):
    model = confide.LogisticRegression(epsilon, schema=schema or schema_of(), ledger=ledger, random_state=seed, **WHOM)
    return model.fit(frame, labels)


@pytest.mark.filterwarnings("ignore")
def test_rows_of_other_cohorts_change_no_bit_of_a_release(tmp_path):
    """They are left out, replaced and doubled; missing cells, numbers and text among them; in memory and in a file."""
    frame, labels = frame_of(400)
    own = (frame["month"] == "dec").to_numpy()
    first = fitted(frame, labels)
    alone = fitted(frame[own], labels[own])
    others = frame[~own].assign(age=90, month="x")
    many = fitted(pd.concat([others, frame[own], others]), np.concatenate([labels[~own], labels[own], labels[~own]]))
    path = tmp_path / "rows.csv"
    frame.assign(sick=labels).to_csv(path, index=False)
    rows = confide.open_rows(path, schema_of())
    in_file = confide.LogisticRegression(1.0, random_state=7, **WHOM).fit(rows)
    for one, other in pairwise((first, alone, many, in_file)):
        assert one.coef_.tolist() == other.coef_.tolist()
        assert one.intercept_.tolist() == other.intercept_.tolist()
    without = fitted(frame, labels, schema=schema_of(None))
    assert without.coef_.tolist() != first.coef_.tolist()
    assert '"dec" in the column "month"' in first.guarantee_.statement()
    # Rows to be predicted have no cohort.
    assert len(first.predict(frame[["age"]])) == 400


@pytest.mark.filterwarnings("ignore")
def test_what_is_left_out_does_not_count_as_rows(tmp_path):
    """The bounds on the number of rows are for the cohort, in memory and in a file."""
    frame, labels = frame_of(1100)
    fitted(frame, labels)  # more than 1,000 rows in all
    frame.assign(sick=labels).to_csv(tmp_path / "rows.csv", index=False)
    rows = confide.open_rows(tmp_path / "rows.csv", schema_of())
    model = confide.LogisticRegression(1.0, random_state=7, **WHOM).fit(rows)
    with pytest.raises(ParameterError, match="other rows came"):
        model.set_params(n_rows_bounds=(900, 2000)).fit(rows)
    with pytest.raises(InputError, match="no row has the value"):
        fitted(frame, labels, schema=schema_of(("month", "jan")))


@pytest.mark.filterwarnings("ignore")
def test_releases_are_charged_to_the_cohort_whose_rows_they_read():
    """A fit, an evaluation, a description and bounds; by another column, or without one, everybody pays."""
    frame, labels = frame_of(600)
    ledger = Ledger(limit=9.0, neighbours=RELATION, cohorts="month")
    prior = fitted(frame, labels, ledger, schema_of(("month", "nov")), seed=None)
    model = confide.LogisticRegression(1.0, schema=schema_of(), ledger=ledger, prior=prior, **WHOM).fit(frame, labels)
    asked = {"neighbours": RELATION, "ledger": ledger}
    confide.evaluate(model, frame, labels, budget=1.0, allow_hidden=True, **asked)
    confide.describe(frame.assign(sick=labels), schema=schema_of(), budget=1.0, **asked)
    confide.private_bounds(frame, {"age": (0, 120)}, schema=schema_of(), budget=1.0, **asked)
    by_age = confide.Schema({"month": {"categories": ["nov", "dec"], "other": True}}, TARGET, cohort=("age", 30))
    confide.describe(frame.assign(sick=labels), schema=by_age, budget=1.0, **asked)
    fitted(frame, labels, ledger, schema_of(None), seed=None)
    assert ledger.entries()["cohort"].tolist() == ["nov", "dec", "dec", "dec", "dec", None, None]
    assert ledger.spent() == PureDP(6.0)


def test_labels_are_not_learned_from_other_cohorts(tmp_path):
    """One that a person of another cohort has would show in the model, which that cohort does not pay for."""
    frame, labels = frame_of(400)
    ledger = Ledger(limit=1.0, neighbours=RELATION, cohorts="month")
    schema = confide.Schema({"age": {"low": 18, "high": 90}}, cohort=("month", "dec"))
    model = confide.LogisticRegression(1.0, schema=schema, ledger=ledger, **WHOM)
    with pytest.raises(ParameterError, match="taken from rows of other cohorts"):
        model.fit(frame, np.where(frame["month"] == "nov", "rare", labels))
    assert ledger.entries().empty
    model.set_params(classes=["no", "yes"]).fit(frame, labels).save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert confide.evaluate(loaded, frame, labels, budget=9.0, neighbours=RELATION).n_rows is None


def test_models_of_two_cohorts_are_not_compared_and_forms_that_prove_nothing_are_refused():
    """A comparison would read the rows of both and charge one."""
    frame, labels = frame_of(400)
    models = [fitted(frame, labels, schema=schema_of(cohort)) for cohort in (("month", "dec"), ("month", "nov"), None)]
    for other in models[1:]:
        with pytest.raises(ParameterError, match="cohort"):
            confide.evaluate(models[0], frame, labels, budget=1.0, other=other, neighbours=RELATION)
    with pytest.raises(SchemaError, match="leave out one of person and cohort"):
        schema_of(person="id")
    with pytest.raises(SchemaError, match="says which rows are used"):
        schema_of(("age", 30))
    for wrong in ({"column": "month"}, "month", ("month",), {"column": "month", "value": None}):
        with pytest.raises(SchemaError, match="cohort"):
            schema_of(wrong)
    with pytest.raises(ParameterError, match="add-or-remove-one"):
        confide.LogisticRegression(1.0, schema=schema_of()).fit(frame, labels)
    with pytest.raises(ParameterError, match="add-or-remove-one"):
        confide.describe(frame.assign(sick=labels), schema=schema_of(), budget=1.0)
