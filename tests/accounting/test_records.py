"""Records of a ledger: their canonical text, their chain, and records in memory."""

from __future__ import annotations

import ctypes
import json
import math
import os
import sys
import threading
import time
from functools import reduce

import pytest

import confide
from confide.accounting.attempts import mark_text
from confide.accounting.records import (
    Entry,
    Header,
    Record,
    RecordsInMemory,
    _Turns,
    checked_details,
    following,
    note_text,
    one_at_a_time,
)
from confide.errors import LedgerError, ParameterError
from confide.privacy.budgets import ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

HEADER = Header("0123" * 8, ApproxDP(2.0, 1e-6), Neighbours.REPLACE_ONE, "auto", 3)
ENTRY = Entry(1, "2026-01-01T00:00:00+00:00", "mean – age", "sum", (Event(PureDP(0.5), None, 3),))


@pytest.mark.parametrize(
    "entry",
    [
        ENTRY,
        Entry(
            2,
            "2026-01-01T00:00:01+00:00",
            "",
            "renyi",
            (Event(ApproxDP(1.0, 1e-7), GaussianMechanism(0.1)), Event(PureDP(1.0))),
        ),
    ],
)
def test_entries_read_what_they_write(entry):
    """The text is canonical: what is read writes the same text."""
    assert Entry.from_text(entry.text) == entry
    assert Entry.from_text(entry.text).text == entry.text


def test_notes_and_marks_are_told_from_charges_by_a_field_that_no_charge_has():
    """A charge with details stays a charge."""
    detailed = Entry(1, ENTRY.time, "", "sum", ENTRY.events, {"user": "Ana"})
    assert Entry.from_text(detailed.text) == detailed
    texts = (note_text(1, {"sha256": "ab"}), mark_text(1, 2, ended=True), detailed.text, ENTRY.text, HEADER.text)
    assert [[name for name in ("note_on", "mark_on") if name in json.loads(text)] for text in texts] == [
        ["note_on"],
        ["mark_on"],
        *([], [], []),
    ]


def test_headers_read_what_they_write():
    header = Header(HEADER.identity, HEADER.limit, HEADER.neighbours, HEADER.accounting, 3)
    assert Header.from_text(header.text) == header


def chain(n):
    """A chain of n records."""
    records = [Record.after(None, HEADER.text)]
    for number in range(1, n):
        records.append(Record.after(records[-1], f"record {number}"))
    return records


def test_a_record_depends_on_all_before_it():
    """The same text after another beginning has another hash."""
    records, others = chain(3), [Record.after(None, "another header")]
    others.append(Record.after(others[0], records[1].text))
    assert [record.number for record in records] == [0, 1, 2]
    assert others[1].text == records[1].text
    assert others[1].hash != records[1].hash


def test_what_follows_a_record_is_read_if_the_chain_holds():
    """All records, or those after the last one that was read."""
    records = chain(4)
    tip = [(3, records[3].hash)]
    assert following("x", None, records, tip) == records
    assert following("x", records[1], records[1:], tip) == records[2:]


@pytest.mark.parametrize("damage", ["text", "hash", "end", "order", "older copy", "two tips"])
def test_a_broken_chain_is_refused(damage):
    """Each kind of damage is found, and the message says what to do."""
    records = chain(4)
    rows, tip, last = list(records), [(3, records[3].hash)], None
    match damage:
        case "text":
            rows[2] = rows[2]._replace(text="another text")
        case "hash":
            rows[1] = rows[1]._replace(hash="0" * 64)
        case "end":
            rows.pop()
        case "order":
            rows[1], rows[2] = rows[2], rows[1]
        case "older copy":
            last = Record.after(None, "another ledger")
        case "two tips":
            tip *= 2
    with pytest.raises(LedgerError, match="newest copy"):
        following("study.db", last, rows, tip)


def test_records_in_memory_give_what_was_appended():
    """They begin with the header."""
    kept = RecordsInMemory(HEADER.text)
    with kept.session(writing=True) as session:
        (header,) = session.records_after(None)
        session.append(Record.after(header, ENTRY.text))
    with kept.session(writing=False) as session:
        assert [record.text for record in session.records_after(header)] == [ENTRY.text]


def waiting(turns, told, name):
    """A thread that waits for its turn and then tells its name."""

    def wait():
        with turns:
            told.append(name)

    thread = threading.Thread(target=wait)
    thread.start()
    while not turns._next.locked():
        time.sleep(0.001)
    return thread


def test_a_thread_that_asks_again_at_once_is_not_served_before_one_that_waits():
    """Twenty times: the thread that had the lock gets it again after the other."""
    turns, told = _Turns(), []
    for _ in range(20):
        with turns:
            other = waiting(turns, told, "other")
        with turns:
            told.append("again")
        other.join()
    assert told == ["other", "again"] * 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_starts_without_the_threads_that_waited():
    """One thread has the lock and another waits behind it: in the child the lock is free, and here it is still held."""
    one_at_a_time.acquire()
    other = waiting(one_at_a_time, [], "other")
    child = os.fork()
    if child == 0:
        is_free = not one_at_a_time._next.locked() and not one_at_a_time._is_owned()
        os._exit(0 if is_free and one_at_a_time.acquire(blocking=False) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert other.is_alive()
    one_at_a_time.release()
    other.join()


class Interrupt(BaseException):
    """What may come between any two steps of a thread, as KeyboardInterrupt does in the main thread."""


@pytest.fixture
def quick_switches():
    """Threads give way after 0.1 ms, so that interrupts come soon and at many steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def is_free(turns):
    """Whether another thread than those that were interrupted gets its turn."""
    return not turns._next.locked() and turns.acquire(timeout=5) and turns.release() is None


@pytest.mark.usefixtures("quick_switches")
def test_no_interrupt_leaves_the_lock_held():
    """100 times, at whatever step a thread is that takes turn after turn: nobody waits for ever afterwards."""
    turns, ready, stopped, left_held = _Turns(), threading.Event(), threading.Event(), []

    def take_turns():
        try:
            ready.set()
            while True:
                with turns:
                    pass
        except Interrupt:
            stopped.set()

    interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc
    for _ in range(100):
        ready.clear()
        stopped.clear()
        thread = threading.Thread(target=take_turns)
        thread.start()
        ready.wait()
        interrupt(ctypes.c_ulong(thread.ident), ctypes.py_object(Interrupt))
        thread.join()
        assert stopped.is_set()
        if not is_free(turns):
            left_held.append(turns)
            break
    assert left_held == []


@pytest.mark.parametrize("at_the_end", [False, True])
def test_an_interrupt_of_a_thread_that_waits_begins_no_turn(at_the_end):
    """It is raised, whether it comes before the lock is taken or just after, and the lock is free."""

    class Interrupted:
        def __enter__(self):
            if not at_the_end:
                raise Interrupt

        def __exit__(self, *raised):
            if at_the_end:
                assert turns._is_owned()
                raise Interrupt

    turns, done = _Turns(), []
    turns._next = Interrupted()
    with pytest.raises(Interrupt), turns:
        done.append("a turn")
    assert done == []
    assert not turns._is_owned()


def test_a_thread_that_has_a_turn_is_refused_another():
    """A charge within a charge would be granted on a remainder that the outer one has read already."""
    ledger = confide.Ledger(limit=1.0)
    with one_at_a_time, pytest.raises(LedgerError, match=r"still in use by this thread.*Nothing was used or charged"):
        ledger.charge(0.5)
    ledger.charge(1.0)
    assert ledger.spent() == PureDP(1.0)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_no_record_holds_what_is_no_number(number):
    """JSON has no word for it, so other programs could not read the ledger."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        note_text(1, {"accuracy": number})


@pytest.mark.parametrize("length", [0, 1000])
def test_a_detail_of_a_thousand_characters_is_kept(length):
    assert checked_details({"command": "x" * length}, ("command",)) == {"command": "x" * length}
    with pytest.raises(ParameterError, match="at most 1000 characters"):
        checked_details({"command": "x" * 1001}, ("command",))


def fields_in(facts, path=()):
    """The path to each field of a JSON value, also within objects and lists."""
    for name, value in facts.items() if isinstance(facts, dict) else enumerate(facts):
        yield (*path, name)
        if isinstance(value, dict | list):
            yield from fields_in(value, (*path, name))


def with_field(facts, path, value):
    """A copy of a JSON value in which one field is another."""
    changed = json.loads(json.dumps(facts))
    holder = reduce(lambda found, name: found[name], path[:-1], changed)
    holder[path[-1]] = value
    return changed


def opens(texts):
    """Whether a ledger reads a chain of these texts, whose hashes are right."""
    ledger, records = confide.Ledger(limit=1.0), []
    for text in texts:
        records.append(Record.after(records[-1] if records else None, text))
    ledger._records._records, ledger._last = records, None
    try:
        ledger.verify()
    except LedgerError:
        return False
    return True


FREE_TEXTS = {"purpose", "release", "user", "model", "sha256", "intent"}
MAY_BE_INFINITE = {"kappa", "bend", "mu", "curvature", "seal_mu", "beside_mu", "evenness", "even_bend"}
WRONG = (None, True, False, 0, 1, -1, 2.5, -2.5, math.nan, "", "x", "inf", "\ud800", [], {}, [1], {"a": 1}, 10**400)


def may_be_right(name, before, value):
    """Whether a value may stand in a field of a record, where another one stood before."""
    if isinstance(value, str):
        return value != "\ud800" and (name in FREE_TEXTS or (value == "inf" and name in MAY_BE_INFINITE))
    if isinstance(before, float) or before == "inf":
        is_number = type(value) in (int, float) and value < 10**300
        return is_number and (value > 0 or (value == 0 and name in MAY_BE_INFINITE - {"mu"}))
    if isinstance(before, bool) or value == {}:
        return isinstance(value, bool) or name == "details"
    return (
        isinstance(before, int)
        and type(value) is int
        and value >= 1
        and (name not in {"mark_on", "attempt"} or value == before)
    )


def test_each_field_of_each_record_has_its_type_and_its_range():
    """Each is changed in turn, to a value of another type or outside of its range, and all hashes are made anew."""
    limit, relation = ApproxDP(30.0, 1e-5), Neighbours.REPLACE_ONE
    curves = (
        GaussianMechanism(0.125),
        PureMechanism(0.75),
        GaussianObjective(0.125, 0.5, math.inf, 0.0625, relation, n_outputs=3, monotone=True),
    )
    events = tuple(Event(ApproxDP(1.5, 1e-6), curve, 3) for curve in curves)
    details = {"release": "fit", "user": "Ana", "model": "m.json", "intent": "cd"}
    texts = (
        Header("0123" * 8, limit, relation, "renyi", 3).text,
        Entry(1, "2026-01-01T00:00:00+00:00", "mean", "renyi", events, details).text,
        note_text(1, {"sha256": "ab"}),
        mark_text(1, 2, ended=False),
        mark_text(1, 2, ended=True),
    )
    assert opens(texts)
    admitted, tried = [], 0
    for number, text in enumerate(texts):
        facts = json.loads(text)
        for path in fields_in(facts):
            before = reduce(lambda found, name: found[name], path, facts)
            for value in WRONG:
                if may_be_right(path[-1], before, value):
                    continue
                changed = json.dumps(with_field(facts, path, value), sort_keys=True, separators=(",", ":"))
                tried += 1
                if opens([*texts[:number], changed, *texts[number + 1 :]]):
                    admitted.append((path, value))
    assert admitted == []
    assert tried > 700


def test_a_purpose_has_a_length():
    """A ledger shows it wherever it is read; one character more is refused, and nothing is charged."""
    ledger = confide.Ledger(limit=1.0)
    ledger.charge(0.25, purpose="x" * 10_000)
    with pytest.raises(ParameterError, match=r"at most 10000 characters.*has 10001.*Nothing was used"):
        ledger.charge(0.25, purpose="x" * 10_001)
    with pytest.raises(ParameterError, match="at most 10000 characters"):
        ledger.plan([0.25], purpose="x" * 10_001)
    assert ledger.spent() == PureDP(0.25)
