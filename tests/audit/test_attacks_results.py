"""The result of an attack, as text, as JSON and as a picture."""

from __future__ import annotations

import json

import pytest

from confide.audit.attacks import AuditResult, Separation
from confide.privacy.budgets import ApproxDP, PureDP

PURE = PureDP(1.0)


def result(low=0.5, high=0.3, budget=PURE, **changed):
    facts = {
        "name": "model", "budget": budget, "confidence": 0.99, "statistic": "likelihood ratio", "n_learned": 100,
        "n_counted": 100, "hits_first": 60, "hits_second": 20, "separation": Separation(low, high), "control": 0.0,
        "power": ((0.8, 0.4), (0.6, 0.93)), "false_alarms": (1.0, 0.2, 0.0), "detections": (1.0, 0.6, 0.0),
    }  # fmt: skip
    return AuditResult(**(facts | changed))


def test_a_claim_is_refuted_by_more_than_it_allows():
    """log(0.9 / 0.1) is 2.2, more than 1; log(0.5 / 0.3) is 0.5."""
    assert result(0.9, 0.1).refuted
    assert not result().refuted
    assert not result(0.6, 0.1, ApproxDP(1.0, 0.4)).refuted


def test_the_text_says_verdict_counts_control_and_power():
    """In whole sentences, and a control that shows something is told in capitals."""
    text = str(result())
    for part in (
        "not refuted. The claim is epsilon = 1",
        "0.511 (99% confidence)",
        "0.000, as it must",
        "Noise 40% smaller",
    ):
        assert part in text
    assert "60 from the first and 20 from the second" in text
    assert "with probability 0.40" in text
    assert "REFUTED" in str(result(0.9, 0.1))
    assert "do not trust this audit" in str(result(control=0.4))
    assert not result(control=0.4).is_sound
    assert "power is not known" in str(result(power=()))
    assert "take more of them" in str(result(power=((0.8, 0.0), (0.2, 0.1))))


def test_the_json_form_holds_the_curve_and_the_power():
    """And can be written."""
    found = json.loads(json.dumps(result().to_dict()))
    assert found["refuted"] is False
    assert found["delta_curve"][0] == [0.0, pytest.approx(0.2)]
    assert found["power"] == [[0.8, 0.4], [0.6, 0.93]]


def test_the_picture_has_the_claim_the_releases_and_the_event():
    """The dashed line is what the claim allows: at probability 0 pure privacy allows 0, and (1, 0.05) allows 0.05."""
    pytest.importorskip("matplotlib").use("Agg")
    for budget, allowed in ((PureDP(1.0), 0.0), (ApproxDP(1.0, 0.05), 0.05)):
        ax = result(budget=budget).plot()
        line = ax.lines[0].get_ydata()
        assert line[0] == pytest.approx(allowed, abs=1e-6)
        assert line[-1] == pytest.approx(1.0)
        assert len(ax.lines) == 3
        ax.figure.clear()
