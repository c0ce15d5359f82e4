"""Records of a ledger: their canonical text, their chain, and records in memory."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

import pytest

import confide
from confide.accounting.events import Event
from confide.accounting.ledger_records import (
    Entry,
    Header,
    Note,
    Record,
    RecordsInMemory,
    _Turns,
    checked_details,
    following,
    is_note,
    one_at_a_time,
)
from confide.errors import LedgerError, ParameterError
from confide.privacy.budgets import ApproxDP, Neighbours, PureDP
from confide.privacy.gaussian import GaussianMechanism

HEADER = Header("0123", ApproxDP(2.0, 1e-6), Neighbours.REPLACE_ONE, "auto", 3)
ENTRY = Entry(1, "2026-01-01T00:00:00+00:00", "mean – age", "sum", (Event(PureDP(0.5), None, 3),))


@pytest.mark.parametrize(
    "entry", [ENTRY, Entry(2, "now", "", "renyi", (Event(ApproxDP(1.0, 1e-7), GaussianMechanism(0.1)), Event(PureDP(1.0))))]
)
def test_entries_read_what_they_write(entry):
    """The text is canonical: what is read writes the same text."""
    assert Entry.from_text(entry.text) == entry
    assert Entry.from_text(entry.text).text == entry.text


def test_notes_read_what_they_write_and_are_told_from_charges():
    """By a field that no charge has; a charge with details stays a charge."""
    note, detailed = Note(1, {"sha256": "ab"}), Entry(1, "now", "", "sum", (), {"user": "Ana"})
    assert Note.from_text(note.text) == note
    assert Entry.from_text(detailed.text) == detailed
    assert [is_note(text) for text in (note.text, detailed.text, ENTRY.text, HEADER.text)] == [True, False, False, False]


@pytest.mark.parametrize("rows", [3, None])
def test_headers_read_what_they_write(rows):
    """An older header that states no unit of protection stays one without it."""
    header = Header(HEADER.identity, HEADER.limit, HEADER.neighbours, HEADER.accounting, rows)
    assert Header.from_text(header.text) == header
    assert ("max_rows_per_person" in header.text) == (rows is not None)


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
        Note(1, {"accuracy": number}).text  # noqa: B018 - the text is made when it is asked for


@pytest.mark.parametrize("length", [0, 1000])
def test_a_detail_of_a_thousand_characters_is_kept(length):
    assert checked_details({"command": "x" * length}, ("command",)) == {"command": "x" * length}
    with pytest.raises(ParameterError, match="at most 1000 characters"):
        checked_details({"command": "x" * 1001}, ("command",))
