"""A study step by step: what is left, and what is noted when."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import confide
from confide.cli.fitting import PreparedFit
from confide.cli.study_run import StudyRun
from confide.errors import BudgetExceeded
from confide.studies.progress import Standing, State
from confide.studies.study import Study
from tests.cli.commands import spent
from tests.studies.examples import EVALUATION, TEXT


@pytest.fixture
def study(folder_with_ledger):
    Path("study.toml").write_text(TEXT.replace('"logistic"', '"logistic"\nalpha = 0.5') + EVALUATION, encoding="utf-8")
    Path("held_out.csv").write_bytes(Path("people.csv").read_bytes())
    return folder_with_ledger


def started(*, again=False):
    return StudyRun.of(Study.from_toml("study.toml"), again=again)


def test_each_charge_is_noted_before_and_after(study, monkeypatch):
    """The state names a step before its charge, and its result when that is there."""
    run = started()
    assert [(name, how) for name, how, _ in run.left()] == [(name, Standing.TO_DO) for name in ("fit", "evaluate", "report")]
    plan = run.planned()
    assert plan.event.budget.epsilon == 0.5
    assert State.of(Path("study.state.json")) == State()
    seen, release = [], PreparedFit.release

    def watched(prepared, plan, noted):
        seen.append(State.of(Path("study.state.json")).fit)
        release(prepared, plan, noted)

    monkeypatch.setattr(PreparedFit, "release", watched)
    model = run.fitted()
    assert seen[0].sha256 is None
    assert State.of(Path("study.state.json")).fit.sha256 is not None
    assert spent() == 0.5
    found = run.evaluated(model)
    assert State.of(Path("study.state.json")).evaluation.result == found.to_dict()
    assert "epsilon = 0.25" in run.paid
    assert run.reported(model) == Path("report.html")
    assert [how for _, how, _ in started().left()] == [Standing.DONE] * 3
    again = started()
    assert again.planned() is None
    assert again.evaluated(again.fitted()) is None
    assert again.reported(again.fitted()) is None
    assert spent() == 0.75


def test_a_run_that_was_killed_before_its_last_note_is_noted_by_the_next(study, monkeypatch):
    """The model is in its place then, and the ledger lacks its checksum; a third run notes nothing again."""
    run = started()
    run.planned()
    with monkeypatch.context() as patch:
        patch.setattr("confide.cli.charges.note_checksum", lambda *_: None)
        run.fitted()
    ledger = confide.Ledger("study.db")
    assert ledger.entries()["sha256"].isna().all()
    for _ in range(2):
        again = started()
        again.planned()
        again.fitted()
        noted = ledger.head
        assert ledger.entries()["sha256"].tolist() == [State.of(Path("study.state.json")).fit.sha256]
    again.fitted()
    assert ledger.head == noted
    assert spent() == 0.5


def test_the_ledger_does_not_tell_how_long_the_fit_took(study, monkeypatch):
    """The evaluation follows the fit at once, so its charge is given the time of the fit's charge."""
    seconds = itertools.count()
    monkeypatch.setattr("confide.accounting.ledger.now", lambda: f"2026-01-01T00:00:{next(seconds):02d}+00:00")
    run = started()
    run.planned()
    run.evaluated(run.fitted())
    times = confide.Ledger("study.db").entries()["time"].tolist()
    assert times == [times[0]] * 2


def test_all_charges_must_fit_before_the_first(study):
    Path("study.toml").write_text(
        Path("study.toml").read_text().replace("epsilon = 0.25", "epsilon = 1.6"), encoding="utf-8"
    )
    with pytest.raises(BudgetExceeded, match="the ledger has epsilon 2 left"):
        started().planned()
    assert spent() == 0.0
