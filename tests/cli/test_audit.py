"""`confide audit` in whole."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from confide.cli import app


def run(*words):
    return CliRunner().invoke(app, ["audit", *map(str, words)])


def test_a_model_is_audited():
    """By its options: not refuted, exit code 0."""
    done = run("--model", "svm", "--epsilon", 1, "--alpha", 1, "--releases", 60, "--confidence", 0.9999)
    assert done.exit_code == 0, done.output
    assert "not refuted" in done.output


def test_a_file_is_audited_with_a_picture_and_json(tmp_path):
    """A release without noise: refuted, exit code 3; the picture is written once."""
    pytest.importorskip("matplotlib").use("Agg")
    theirs, plot = tmp_path / "theirs.py", tmp_path / "audit.svg"
    theirs.write_text("import numpy as np\nfirst, second = 0.0, 1.0\ndef release(x): return np.array([x])\n")
    words = (theirs, "--epsilon", 1, "--releases", 100, "--plot", plot, "--format", "json")
    done = run(*words)
    assert done.exit_code == 3, done.output
    assert json.loads(done.output)["refuted"] is True
    assert plot.read_text(encoding="utf-8").startswith("<?xml")
    assert run(*words).exit_code == 2


def test_nothing_to_audit_is_refused():
    """Neither a release nor a budget; a file that does not exist."""
    assert run().exit_code == 2
    done = run("nowhere.py", "--epsilon", 1)
    assert done.exit_code == 2
    assert "nowhere.py" in done.output


def test_the_auditor_is_audited(monkeypatch):
    """The list of what is known, and exit code 3 where one is wrong."""
    from confide.audit import known_answers
    from tests.audit.test_attacks_results import result

    for expected, code in (("not refuted", 0), ("refuted", 3)):
        monkeypatch.setattr(
            known_answers, "own_checks", lambda expected=expected: (known_answers.OwnCheck("known", result(), expected),)
        )
        done = run("--check-auditor")
        assert done.exit_code == code, done.output
        assert "known: at least" in done.output
        assert run("--check-auditor", "--format", "json").exit_code == code
