"""The charge: all that may fail stands before it, it is made before a release, and it stays when a release fails."""

from __future__ import annotations

import gc
import traceback
import warnings
import weakref

import numpy as np
import pytest

from confide.accounting.ledger import Ledger
from confide.errors import BudgetExceeded, LedgerError, NotCertified, PrivacyWarning
from confide.privacy.budgets import Neighbours, PureDP
from confide.privacy.events import Event
from confide.privacy.lattice import LatticeGaussian
from confide.training.charge import Charge, before_charge, charge_and_release, entropy_of, rows_per_person

EVENT = Event(PureDP(1.0), neighbours=Neighbours.REPLACE_ONE)
HONEST = LatticeGaussian(3, -10, 1.0, 2.0)


class Boastful(LatticeGaussian):
    """Claims a smaller rho than its noise has."""

    @property
    def rho(self):
        return LatticeGaussian.rho.fget(self) * 0.999


def purposes(ledger):
    """What the ledger notes of each charge."""
    return ledger.entries()["purpose"].tolist()


def test_the_charge_is_made_before_the_release():
    """The release finds its own charge in the ledger."""
    ledger = Ledger(limit=2.0)
    found = charge_and_release(lambda entropy: purposes(ledger), EVENT, Neighbours.REPLACE_ONE, Charge(ledger, None, "fit"))
    assert found == ["fit"]
    assert ledger.spent() == PureDP(1.0)


def test_a_refused_charge_releases_nothing():
    """The function that reads rows is not called."""
    released = []
    with pytest.raises(BudgetExceeded):
        charge_and_release(released.append, EVENT, Neighbours.REPLACE_ONE, Charge(Ledger(limit=0.5), None, "fit"))
    assert released == []


@pytest.mark.parametrize(("on_purpose", "shown"), [(False, "failed with ZeroDivisionError"), (True, "^a refusal$")])
def test_a_release_that_fails_stays_charged_and_shows_nothing_of_the_rows(on_purpose, shown):
    """Neither in its own words nor in those of an error that was handled on the way."""
    ledger = Ledger(limit=2.0)

    def failing(entropy):
        try:
            raise ZeroDivisionError("row 7")
        except ZeroDivisionError as error:
            if on_purpose:
                raise NotCertified("a refusal") from error
            raise

    with pytest.raises(NotCertified, match=shown) as caught:
        charge_and_release(failing, EVENT, Neighbours.REPLACE_ONE, Charge(ledger, None, "fit"))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert "row 7" not in "".join(traceback.format_exception(caught.value))
    assert "failing" not in functions_of(caught.value)
    assert ledger.spent() == PureDP(1.0)


def functions_of(error):
    """The functions whose frames, with all that they hold, are reached from an error."""
    return [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]


class Panic(BaseException):
    """No `Exception`, as those of libraries that are written in Rust."""


@pytest.mark.parametrize(
    "stops", [Panic("row 7"), SystemExit("row 7"), GeneratorExit("row 7"), MemoryError("row 7")], ids=repr
)
def test_whatever_ends_a_release_by_itself_is_a_failure_that_is_marked(stops):
    """Its words are not shown, and nobody takes the charge up, since that it failed was seen."""
    ledger = Ledger(limit=2.0)

    def failing(entropy):
        raise stops

    with pytest.raises(NotCertified, match=f"failed with {type(stops).__name__}") as caught:
        charge_and_release(failing, EVENT, Neighbours.REPLACE_ONE, Charge(ledger, None, "fit", intent="ab"))
    assert "row 7" not in "".join(traceback.format_exception(caught.value))
    assert ledger.unfinished() == []


def test_an_interrupt_passes_alone_and_marks_nothing():
    """Neither its words, nor what was handled when it came, nor a frame of the release can be read from it."""
    ledger = Ledger(limit=2.0)

    def interrupted(entropy):
        try:
            raise ValueError("row 7")
        except ValueError:
            raise KeyboardInterrupt("row 7")  # noqa: B904 - what was handled is what the test is about

    with pytest.raises(KeyboardInterrupt) as caught:
        charge_and_release(interrupted, EVENT, Neighbours.REPLACE_ONE, Charge(ledger, None, "fit", intent="ab"))
    assert (caught.value.args, caught.value.__cause__, caught.value.__context__) == ((), None, None)
    assert "interrupted" not in functions_of(caught.value)
    assert ledger.unfinished() == [1]


class Made:
    """What a release makes."""


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("stops", [LedgerError("no space"), KeyboardInterrupt()], ids=repr)
def test_an_attempt_whose_end_is_refused_drops_what_it_made(monkeypatch, stops, fails):
    """Whoever holds the error cannot read it from a frame."""
    ledger, held = Ledger(limit=2.0), []

    def release(entropy):
        made = Made()
        held.append(weakref.ref(made))
        if fails:
            raise NotCertified("no certificate")
        return made

    def refuse(*_):
        raise stops

    monkeypatch.setattr(Ledger, "end", refuse)
    with pytest.raises(type(stops)) as caught:
        charge_and_release(release, EVENT, Neighbours.REPLACE_ONE, Charge(ledger, None, "fit", intent="ab"))
    gc.collect()
    assert caught.value is stops
    assert held[0]() is None
    assert ledger.unfinished() == [1]


def test_a_release_ends_its_own_charge_whatever_is_charged_meanwhile():
    """Code of the user's runs during a release, and may charge the same ledger in the same thread."""
    ledger = Ledger(limit=2.0)

    def charging(entropy):
        ledger.charge(0.5, details={"intent": "by hand"})

    charge_and_release(charging, EVENT, Neighbours.REPLACE_ONE, Charge(ledger, None, "fit", intent="ab"))
    assert ledger.unfinished() == [2]


def test_whoever_looks_for_a_fault_may_see_the_error(monkeypatch):
    """With made-up rows, as on the command line."""
    monkeypatch.setenv("CONFIDE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        charge_and_release(lambda _: 1 / 0, EVENT, Neighbours.REPLACE_ONE, Charge(None, None, "fit"))


def test_a_release_from_a_seed_is_noted_as_void():
    """Whoever reads the ledger sees that its limit does not cover this release."""
    ledger = Ledger(limit=2.0)
    is_secret = charge_and_release(
        lambda entropy: entropy.is_secret, EVENT, Neighbours.REPLACE_ONE, Charge(ledger, 7, "fit")
    )
    assert not is_secret
    assert purposes(ledger) == ["fit (void: random_state was set)"]


def test_another_neighbour_relation_than_the_ledgers_is_refused():
    """A limit under one relation does not speak of the other."""
    ledger = Ledger(limit=2.0, neighbours="add-or-remove-one")
    with pytest.raises(LedgerError, match="Use one ledger for each relation"):
        charge_and_release(lambda entropy: None, EVENT, Neighbours.REPLACE_ONE, Charge(ledger, None, "fit"))
    assert len(ledger.entries()) == 0


def test_no_floating_point_warning_leaves_a_release():
    """It would depend on the rows. Without a ledger nothing is charged, and the release is made all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = charge_and_release(
            lambda entropy: np.float64(1e308) * np.array([1e308]), EVENT, Neighbours.REPLACE_ONE, Charge(None, None, "fit")
        )
    assert found == np.inf


NOWHERE = Charge(None, None, "fit")


def test_noise_that_opendp_does_not_confirm_is_refused_before_the_charge():
    """Wherever it stands among the noises of a release; the unusual budget is not warned of, since nothing happens."""
    before_charge(NOWHERE, PureDP(1.0), [None, HONEST])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NotCertified, match="Nothing was used or charged"):
            before_charge(NOWHERE, PureDP(1.0), [HONEST, Boastful(3, -10, 1.0, 2.0)], ("unusual",))


def test_an_unusual_budget_is_warned_of_before_the_charge():
    """One warning for each sentence."""
    with pytest.warns(PrivacyWarning) as found:
        before_charge(NOWHERE, PureDP(1.0), [], ("first", "second"))
    assert [str(warning.message) for warning in found] == ["first", "second"]


def test_randomness_is_secret_unless_there_is_a_seed():
    """Equal seeds draw equal permutations; without a seed the operating system is asked."""
    assert entropy_of(None).is_secret
    assert not entropy_of(3).is_secret
    assert np.array_equal(entropy_of(3).permutation(50), entropy_of(3).permutation(50))
    assert not np.array_equal(entropy_of(3).permutation(50), entropy_of(4).permutation(50))


def test_so_many_rows_of_each_person_are_drawn():
    """Of 10 persons with 5 rows each, 2 rows of each are kept; other seeds keep other rows."""
    persons = np.repeat(np.arange(10), 5)
    kept = rows_per_person(2, 0).drawn(persons)
    assert np.array_equal(np.bincount(persons[kept]), np.full(10, 2))
    assert not np.array_equal(kept, rows_per_person(2, 1).drawn(persons))
