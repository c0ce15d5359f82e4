"""What is left to do of a study: every way in which a run can have stopped."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from confide.errors import StudyError
from confide.studies.progress import (
    LedgerFacts,
    Standing,
    State,
    Step,
    checksum_of,
    purpose_mark,
    refuse_charged_meanwhile,
    report_standing,
    source_of_report,
    step_of_evaluation,
    step_of_fit,
)
from confide.studies.study import fingerprint
from tests.studies.examples import EVALUATION, TEXT, study_of

FACTS = {"budget": {"epsilon": 0.5}}
OTHER = {"budget": {"epsilon": 0.7}}
CHARGE = f"Income {purpose_mark(fingerprint(FACTS))}"


def ledger(*purposes, identity="one", unfinished=()):
    return LedgerFacts(identity, "study.db", purposes, unfinished)


def fit_of(study, state, *purposes, facts=FACTS, again=False, identity="one"):
    return step_of_fit(study, state, facts, ledger(*purposes, identity=identity), again=again)


@pytest.fixture
def study(tmp_path):
    return study_of(tmp_path, TEXT + EVALUATION)


@pytest.fixture
def begun(study):
    """The state just before the charge."""
    return State(fit=fit_of(study, State()).begun)


@pytest.fixture
def done(study, begun):
    """The state once the model is there."""
    out = study.located("model.json")
    out.write_text("model")
    return begun.with_result("fit", sha256=checksum_of(out))


def test_a_new_study_is_to_do(study):
    step = fit_of(study, State(), "another charge")
    assert step.standing is Standing.TO_DO
    assert step.begun.earlier == 0
    assert step.mark == purpose_mark(fingerprint(FACTS))


def test_a_stop_before_the_charge_leaves_all_to_do(study, begun):
    assert fit_of(study, begun).standing is Standing.TO_DO
    assert fit_of(study, begun, facts=OTHER).standing is Standing.TO_DO


def test_a_stop_between_charge_and_model_is_said_plainly(study, begun):
    """It is refused until somebody says that it is charged anew, however often it is run."""
    with pytest.raises(StudyError, match="was charged, and the run stopped before it wrote its model") as refused:
        fit_of(study, begun, CHARGE)
    assert "What was charged cannot be had again." in str(refused.value)
    assert "--again" in str(refused.value)
    step = fit_of(study, begun, CHARGE, again=True)
    assert step.standing is Standing.AGAIN
    assert step.begun.earlier == 1
    stopped = replace(begun, fit=step.begun)
    with pytest.raises(StudyError, match="--again"):
        fit_of(study, stopped, CHARGE)
    with pytest.raises(StudyError, match="stopped before it wrote its model"):
        fit_of(study, stopped, CHARGE, CHARGE)


def test_a_model_whose_checksum_was_not_noted_is_not_taken(study, begun):
    """The checksum is noted before the model is written, so somebody else put this file there."""
    study.located("model.json").write_text("model")
    for again in (False, True):
        with pytest.raises(StudyError, match=r"this study did not write it.*Move that file away"):
            fit_of(study, begun, CHARGE, again=again)


def test_a_stop_between_checksum_and_model_is_charged_anew_only_when_asked(study, done):
    """The model never came; a model saved elsewhere may still be put there."""
    out = study.located("model.json")
    out.unlink()
    with pytest.raises(StudyError, match=r"its model is not there.*put it back"):
        fit_of(study, done, CHARGE)
    out.write_text("model")
    assert fit_of(study, done, CHARGE).standing is Standing.DONE


def test_a_charge_made_meanwhile_is_found(study):
    """By a copy of the study in another folder."""
    step = fit_of(study, State(), "another charge")
    refuse_charged_meanwhile(study, step, ["another charge", "one more"])
    with pytest.raises(StudyError, match="another run charged the ledger"):
        refuse_charged_meanwhile(study, step, ["another charge", CHARGE])


def test_a_study_that_is_done_stays_done(study, done):
    assert fit_of(study, done, CHARGE).standing is Standing.DONE
    assert fit_of(study, done, CHARGE, again=True).standing is Standing.DONE


def test_another_model_in_its_place_is_refused(study, done):
    study.located("model.json").write_text("other")
    for again in (False, True):
        with pytest.raises(StudyError, match="is not the model that this study wrote"):
            fit_of(study, done, CHARGE, again=again)


def test_a_model_that_is_gone_is_charged_anew_only_when_asked(study, done):
    study.located("model.json").unlink()
    with pytest.raises(StudyError, match="its model is not there"):
        fit_of(study, done, CHARGE)
    assert fit_of(study, done, CHARGE, again=True).standing is Standing.AGAIN


def test_a_changed_study_is_refused_with_what_changed(study, done):
    with pytest.raises(StudyError, match=re.escape("budget.epsilon was 0.5 and is 0.7")):
        fit_of(study, done, CHARGE, facts=OTHER)
    with pytest.raises(StudyError, match="exists already"):
        fit_of(study, done, CHARGE, facts=OTHER, again=True)
    study.located("model.json").unlink()
    assert fit_of(study, done, CHARGE, facts=OTHER, again=True).standing is Standing.AGAIN


def test_a_file_that_is_no_model_of_the_study_is_in_the_way(study):
    study.located("model.json").write_text("mine")
    with pytest.raises(StudyError, match="exists already, and nothing says that this study wrote it"):
        fit_of(study, State())


def test_the_ledger_remembers_where_the_state_is_gone(study):
    with pytest.raises(StudyError, match="holds a charge for this very study"):
        fit_of(study, State(), CHARGE)
    assert fit_of(study, State(), CHARGE, again=True).standing is Standing.AGAIN


def test_a_state_of_another_ledger_is_refused(study, done):
    with pytest.raises(StudyError, match="charged to another ledger"):
        fit_of(study, done, CHARGE, identity="two")


def test_an_evaluation_goes_the_same_way(study):
    """To do, charged without rates, to finish, done, changed."""

    def step(state, *purposes, facts=FACTS, again=False, unfinished=()):
        known = ledger(*purposes, unfinished=unfinished)
        return step_of_evaluation(study, state, facts, known, fit_is_done=True, again=again)

    first = step(State())
    assert first.standing is Standing.TO_DO
    state = State(evaluation=first.begun)
    assert step(state).standing is Standing.TO_DO
    with pytest.raises(StudyError, match="stopped before its rates were noted"):
        step(state, CHARGE)
    assert step(state, CHARGE, again=True).standing is Standing.AGAIN
    assert step(state, CHARGE, unfinished=(CHARGE,)) == Step(Standing.FINISH, state.evaluation)
    assert step(state, CHARGE, unfinished=(CHARGE,), again=True).standing is Standing.AGAIN
    finished = state.with_result("evaluation", result={"accuracy": 0.5})
    assert step(finished, CHARGE).standing is Standing.DONE
    with pytest.raises(StudyError, match="changed since its evaluation was charged"):
        step(finished, CHARGE, facts=OTHER)
    assert step(finished, CHARGE, facts=OTHER, again=True).standing is Standing.AGAIN
    with pytest.raises(StudyError, match="another ledger"):
        step_of_evaluation(study, finished, FACTS, ledger(identity="two"), fit_is_done=True, again=False)
    anew = step_of_evaluation(study, finished, FACTS, ledger(CHARGE), fit_is_done=False, again=False)
    assert (anew.standing, anew.begun.earlier) == (Standing.TO_DO, 1)


def test_a_report_is_made_anew_where_it_is_the_studys_own(study):
    out = study.located("report.html")
    assert report_standing(study, State(), "a") is Standing.TO_DO
    out.write_text("page")
    with pytest.raises(StudyError, match="this study did not write it"):
        report_standing(study, State(), "a")
    own = State(report={"sha256": checksum_of(out), "made_from": "a"})
    assert report_standing(study, own, "a") is Standing.DONE
    assert report_standing(study, own, "b") is Standing.TO_DO


def test_a_report_is_made_from_model_names_and_rates(study, done):
    """Each of them changes what stands for all; what the report looks like does not."""
    first = source_of_report(study, done)
    assert source_of_report(study, replace(done, report={"sha256": "a"})) == first
    rated = replace(done, evaluation=replace(done.fit, result={"accuracy": 0.5}))
    renamed = replace(study, study=replace(study.study, name="Another"))
    seen = {first, source_of_report(study, rated), source_of_report(renamed, done)}
    study.located("model.json").write_text("other")
    assert len(seen | {source_of_report(study, done)}) == 4
