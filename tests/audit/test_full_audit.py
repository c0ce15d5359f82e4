"""The full audit and the gallery, as programs."""

from __future__ import annotations

import collections
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.audit import run
from benchmarks.audit.cases import cases
from benchmarks.violations import run as gallery
from benchmarks.violations.releases import VIOLATIONS
from benchmarks.violations.run import attacked

from confide.erm.row_bounds import BallBound


@pytest.fixture
def every_case(tmp_path):
    return list(cases(tmp_path))


def test_every_estimator_mechanism_currency_relation_and_kind_of_rows_is_there(every_case):
    """More than 300 combinations, each once."""
    assert len({case.name for case in every_case}) == len(every_case) > 300
    for name in ("AdditiveClassifier", "AdditiveRegressor", "KernelSVC", "PrivateSearchCV", "describe"):
        assert {case.currency for case in every_case if case.estimator == name} == {"pure", "approximate", "concentrated"}


def test_a_right_combination_is_right_and_a_planted_bug_makes_it_wrong(every_case, monkeypatch):
    """Rows that are not clipped lie at the bound here, so they are made longer."""
    (case,) = [each for each in every_case if each.name == "LinearSVC, output, pure, replace, ball"]
    outcome = run.audited(case, 0)
    assert outcome.status == "right"
    assert 0.5 < outcome.distance <= 1.0
    pair = case.pairs()[0]
    sides = {side: (5.0 * getattr(pair, side)[0], getattr(pair, side)[1]) for side in ("first", "second")}
    long = replace(case, pairs=lambda: [replace(pair, **sides)])
    assert run.audited(long, 0).status == "right"
    monkeypatch.setattr(BallBound, "clip", lambda self, rows, scratch=None: np.asarray(rows, dtype=np.float64))
    wrong = run.audited(long, 0)
    assert wrong.status == "wrong"
    assert "TOO FAR" in wrong.problem
    assert "**WRONG**" in "\n".join(run.table([outcome, wrong]))


def test_what_is_not_offered_is_told(every_case):
    """Pure privacy by noisy gradients."""
    (case,) = [each for each in every_case if each.name == "LinearSVC, gradient, pure, replace, ball"]
    assert run.audited(case, 0).status == "not offered"


@pytest.mark.parametrize("words", ["bolt-on", "not clipped", "without noise"])
def test_violations_are_refuted(words):
    """Three that need no other library, at a confidence at which chance decides nothing."""
    (violation,) = [each for each in VIOLATIONS if words in each.name]
    assert attacked(replace(violation, n_releases=200), 0.99999).refuted


def test_a_release_whose_library_is_missing_is_named_and_not_called_right(monkeypatch):
    """As where Opacus is not installed."""

    def release(X, y):
        raise ModuleNotFoundError("No module named 'opacus'")

    (honest,) = [each for each in VIOLATIONS if each.name == "Opacus 1.6.0, DP-SGD"]
    monkeypatch.setattr(gallery, "VIOLATIONS", [replace(honest, release=release, n_releases=40)])
    (row,) = gallery.lines([])[2:]
    assert row.startswith("| Opacus 1.6.0, DP-SGD | none | (2.53, 0.01) | not run: ModuleNotFoundError")
    assert "refuted" not in row


def test_the_gallery_has_many_faults_and_its_page_shows_each():
    """Each is refuted in the committed table, and what keeps its promise is not."""
    text = run.PAGE.parents[1].joinpath("violations", "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    verdicts = collections.Counter("**refuted**" in line for line in rows)
    for violation in VIOLATIONS:
        assert violation.name in text
    assert verdicts[True] == sum(violation.fault != "none" for violation in VIOLATIONS)
    assert sum("| not refuted |" in line for line in rows) == sum(violation.fault == "none" for violation in VIOLATIONS)
