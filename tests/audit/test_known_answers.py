"""The audit of the auditor."""

from __future__ import annotations

from dataclasses import replace

from confide.audit.known_answers import OwnCheck, own_checks
from tests.audit.test_attacks_results import result


def test_every_known_answer_is_found(monkeypatch):
    """Of those that tell most: noise alone, exact noise, a planted bug, and noise in floating point. Fixed draws."""
    from confide.audit import known_answers as module
    from confide.privacy.noise import Entropy

    kept = (
        "noise alone",
        "noise alone, as JSON",
        "Laplace noise",
        "the same noise in every release",
        "noise in floating point",
    )
    cases = module._cases
    monkeypatch.setattr(module, "_cases", lambda _: {k: v for k, v in cases(Entropy.seeded(3)).items() if k in kept})
    found = own_checks(400)
    assert [check.name for check in found] == list(kept)
    assert all(check.holds for check in found), [str(check) for check in found]


def test_a_wrong_answer_is_told():
    """What must show nothing and shows something, and what must be refuted and is not."""
    shows = OwnCheck("noise alone", result(), "nothing")
    misses = OwnCheck("half the noise", result(), "refuted")
    assert not shows.holds
    assert not misses.holds
    assert "WRONG" in str(shows)
    assert replace(misses, expected="not refuted").holds
