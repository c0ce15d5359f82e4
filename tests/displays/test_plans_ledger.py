"""The picture of a ledger."""

from __future__ import annotations

import pytest

from confide import ApproxDP, Ledger, LedgerDisplay

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")
plt.switch_backend("Agg")


def test_steps_are_what_was_spent_after_each_charge(tmp_path):
    """From a ledger or from its path; with numbers, days and purposes below."""
    ledger = Ledger(tmp_path / "study.db", limit=ApproxDP(2.0, 1e-6))
    for epsilon, purpose in ((0.5, "model"), (0.25, ""), (1.0, "evaluation")):
        ledger.charge(epsilon, purpose=purpose)
    display = LedgerDisplay.from_ledger(tmp_path / "study.db")
    (line,) = [line for line in display.ax_.get_lines() if len(line.get_xdata()) > 2]
    assert line.get_ydata().tolist() == [0.0, 0.5, 0.75, 1.75, 1.75]
    texts = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert [text.split("\n")[1] for text in texts] == ["model", "(no purpose)", "evaluation"]
    assert display.ax_.get_title(loc="left") == "3 charges; 0.25 of 2 left"
    assert display.ax_.get_ylabel() == "epsilon spent (delta up to 1e-06)"
    other = LedgerDisplay.from_ledger(ledger, ax=plt.subplots()[1])
    assert other.figure_ is other.ax_.figure
    plt.close("all")


def test_an_empty_ledger_and_one_with_many_charges_can_be_drawn():
    ledger = Ledger(limit=2.0)
    assert LedgerDisplay.from_ledger(ledger).ax_.get_title(loc="left") == "0 charges; 2 of 2 left"
    for _ in range(30):
        ledger.charge(0.01, purpose="a purpose whose name is so long that it is cut")
    display = LedgerDisplay.from_ledger(ledger)
    assert len(display.ax_.get_xticklabels()) <= 12
    assert display.ax_.get_xticklabels()[0].get_text().endswith("…")
    plt.close("all")
