"""What pictures of private counts have in common."""

from __future__ import annotations

import pytest

from confide import CalibrationDisplay, Ledger, LogisticRegression, ParameterError, RocDisplay
from tests.inference.test_rates import population

pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed").switch_backend("Agg")


@pytest.mark.parametrize("display", [CalibrationDisplay, RocDisplay])
def test_without_rows_or_a_price_the_message_says_what_to_call(display):
    """Both ways to the picture are named, and nothing is charged."""
    model = LogisticRegression(float("inf"), classes=[0, 1]).fit(*population(200, 0))
    ledger = Ledger(limit=1.0)
    for given in ((), population(100, 1)):
        with pytest.raises(ParameterError, match=rf"{display.__name__}.from_estimator\(model, X, y, budget=") as caught:
            display.from_estimator(model, *given, ledger=ledger)
        assert f"{display.__name__}.from_counts(evaluation)" in str(caught.value)
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize("display", [CalibrationDisplay, RocDisplay])
def test_only_released_counts_are_drawn(display):
    with pytest.raises(ParameterError, match="needs what confide"):
        display.from_counts(LogisticRegression())
