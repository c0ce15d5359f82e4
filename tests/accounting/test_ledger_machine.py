"""The ledger as a state machine: whatever is charged, refused, noted and opened again, it says what a simple model says."""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from confide.accounting.ledger import Ledger
from confide.errors import BudgetExceeded, LedgerError, ParameterError
from confide.privacy.budgets import ApproxDP, PureDP

LIMIT = Fraction(1)
EPSILONS = st.sampled_from(["0.1", "0.05", "0.3", "0.025", "0.9", "1.0"])
PURPOSES = st.sampled_from(["", "mean age", "fit", "\udc80"])
DETAILS = st.dictionaries(st.sampled_from(["model", "sha256"]), st.sampled_from(["a", "b"]), min_size=1)


class Charged:
    """What the model keeps of a charge."""

    def __init__(self, epsilon, purpose, details):
        self.epsilon, self.purpose, self.details = Fraction(epsilon), purpose.encode(errors="replace").decode(), details


class LedgerMachine(RuleBasedStateMachine):
    """A ledger in a file with a limit of 1, several objects that have it open, and a list of what was charged."""

    rows = 1

    @initialize(rows=st.sampled_from([1, 3]))
    def make(self, rows):
        """A new file."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "study.db"
        self.rows = rows
        self.open = [Ledger(self.path, limit=1.0, max_rows_per_person=rows)]
        self.charged, self.heads = [], [self.open[0].head]

    def teardown(self):
        """Leave nothing behind."""
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def one(self, which):
        """One of the objects that have the ledger open."""
        return self.open[which % len(self.open)]

    @property
    def left(self):
        """What the model has left."""
        return LIMIT - sum((each.epsilon for each in self.charged), Fraction(0))

    @rule(which=st.integers(0, 9), epsilon=EPSILONS, purpose=PURPOSES, details=st.one_of(st.just({}), DETAILS))
    def charge(self, which, epsilon, purpose, details):
        """It is admitted exactly if the model has as much left, and a refusal changes nothing."""
        ledger = self.one(which)
        if Fraction(epsilon) <= self.left:
            ledger.charge(float(epsilon), purpose=purpose, details=details)
            self.charged.append(Charged(epsilon, purpose, dict(details)))
            assert ledger.last_charge == len(self.charged)
            self.heads.append(ledger.head)
        else:
            with pytest.raises(BudgetExceeded, match="Nothing was used or charged"):
                ledger.charge(float(epsilon), purpose=purpose, details=details)

    @rule(which=st.integers(0, 9))
    def reach_the_limit(self, which):
        """All that is left can be spent, and then nothing more."""
        ledger = self.one(which)
        left = ledger.remaining().epsilon
        assert Fraction(left) <= self.left + Fraction(1, 10**12)
        if left >= PureDP.ranges["epsilon"][0]:
            ledger.charge(left, purpose="rest")
            self.charged.append(Charged(repr(left), "rest", {}))
            self.heads.append(ledger.head)
        with pytest.raises(BudgetExceeded):
            ledger.charge(0.025)

    @rule(which=st.integers(0, 9), epsilons=st.lists(EPSILONS, min_size=1, max_size=3))
    def plan(self, which, epsilons):
        """A batch is one charge of all its releases, each of which is made once."""
        ledger, cost = self.one(which), sum(map(Fraction, epsilons))
        if cost > self.left:
            with pytest.raises(BudgetExceeded):
                ledger.plan([float(each) for each in epsilons], purpose="batch")
            return
        batch = ledger.plan([float(each) for each in epsilons], purpose="batch")
        self.charged.append(Charged(cost, "batch", {}))
        self.heads.append(ledger.head)
        for each in epsilons:
            batch.charge(float(each))
        with pytest.raises(BudgetExceeded):
            batch.charge(float(epsilons[0]))

    @rule(which=st.integers(0, 9), epsilon=EPSILONS)
    def check(self, which, epsilon):
        """It says what a charge would say, and records nothing."""
        if Fraction(epsilon) <= self.left:
            self.one(which).check([float(epsilon)])
        else:
            with pytest.raises(BudgetExceeded):
                self.one(which).check([float(epsilon)])

    @rule(which=st.integers(0, 9), bad=st.sampled_from([0.0, -1.0, math.nan, math.inf, "much", ApproxDP(0.01, 1e-6)]))
    def charge_what_is_no_charge(self, which, bad):
        """No budget, too much, or another currency."""
        with pytest.raises((ParameterError, LedgerError, TypeError)):
            self.one(which).charge(bad)

    @rule(which=st.integers(0, 9))
    def charge_for_others(self, which):
        """For another relation, or for fewer rows of a person than the ledger counts."""
        with pytest.raises(LedgerError):
            self.one(which).charge(0.001, neighbours="add-or-remove-one")

    @precondition(lambda self: self.charged)
    @rule(which=st.integers(0, 9), number=st.integers(0, 99), details=DETAILS)
    def note(self, which, number, details):
        """A note adds what is not known of a charge, replaces nothing, and costs nothing."""
        known = self.charged[number % len(self.charged)].details
        if any(known.get(name, text) != text for name, text in details.items()):
            with pytest.raises(LedgerError, match="replaces nothing"):
                self.one(which).note(1 + number % len(self.charged), details)
        else:
            self.one(which).note(1 + number % len(self.charged), details)
            known.update(details)
            self.heads.append(self.one(which).head)

    @rule(which=st.integers(0, 9), more=st.integers(1, 5))
    def note_on_what_is_not_there(self, which, more):
        """There is no charge of this number, or no such detail."""
        for number in (len(self.charged) + more, 1 - more, True):
            with pytest.raises(LedgerError, match="no charge of this number"):
                self.one(which).note(number, {"model": "a"})
        with pytest.raises(ParameterError):
            self.one(which).note(1, {"purpose": "another"})

    @precondition(lambda self: len(self.open) < 4)
    @rule(as_first=st.booleans())
    def open_again(self, as_first):
        """By its path alone, or as when it was created."""
        self.open.append(Ledger(self.path, **({"limit": 1.0, "max_rows_per_person": self.rows} if as_first else {})))

    @precondition(lambda self: len(self.open) > 1)
    @rule()
    def close(self):
        """Objects are forgotten, and what they charged is not."""
        del self.open[0]

    @rule()
    def open_as_another(self):
        """Another limit, relation or unit is refused."""
        for other in ({"limit": 2.0}, {"neighbours": "add-or-remove-one"}, {"max_rows_per_person": self.rows + 1}):
            with pytest.raises(LedgerError):
                Ledger(self.path, **other)

    @invariant()
    def it_says_what_the_model_says(self):
        """Sums, entries, details and the chain, whichever object is asked; all earlier heads are part of the chain."""
        if not hasattr(self, "open"):
            return
        assert self.left >= 0
        for ledger in (self.open[0], self.open[-1]):
            assert ledger.spent().epsilon == float(LIMIT - self.left)
            assert all(ledger.verify(head) == len(self.charged) for head in (self.heads[0], self.heads[-1]))
            entries = ledger.entries()
            assert entries["number"].tolist() == list(range(1, len(self.charged) + 1))
            assert entries["purpose"].tolist() == [each.purpose for each in self.charged]
            for name in ("model", "sha256"):
                assert entries[name].tolist() == [each.details.get(name) for each in self.charged]


LedgerMachine.TestCase.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase
