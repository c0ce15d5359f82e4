"""What a ledger had spent after each charge."""

from __future__ import annotations

from confide import ZCDP, ApproxDP, Ledger
from confide.accounting.batches import spending_of


def test_spending_adds_up_as_the_ledger_does():
    """After each charge, also where Rényi divergences add up; the last amount is what the ledger says it has spent."""
    for limit, budgets in ((ApproxDP(4.0, 1e-6), [0.5, ApproxDP(0.25, 1e-8)]), (ApproxDP(4.0, 1e-6), [ZCDP(0.01)] * 5)):
        ledger = Ledger(limit=limit)
        seen = []
        for number, budget in enumerate(budgets):
            ledger.charge(budget, purpose=f"charge {number}")
            seen.append(ledger.spent())
        assert [spent for _, spent in spending_of(ledger)] == seen
        assert [entry.purpose for entry, _ in spending_of(ledger)] == [f"charge {number}" for number in range(len(budgets))]
    assert spending_of(Ledger(limit=1.0)) == ()
