"""The format of a study: what it holds, and one line that names the key for all that is wrong."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from confide.errors import FileError, StudyError
from confide.studies.study import Study, days_of, period_of
from tests.studies.examples import EVALUATION, TEXT, study_of


def test_a_study_holds_what_its_file_says(tmp_path):
    """Defaults where the file is silent; paths are relative to the file."""
    study = study_of(tmp_path, TEXT + EVALUATION)
    assert (study.study.name, study.study.analyst, study.study.purpose) == ("Income of adults", "A. Name", None)
    assert study.budget.epsilon == 0.5
    assert study.budget.neighbours == "replace-one"
    assert study.evaluation.epsilon == 0.25
    assert study.model == {"kind": "logistic"}
    assert study.ledger_place == str(tmp_path / "study.db")
    assert study.located(study.data.file) == tmp_path / "people.csv"
    assert study.state_path == tmp_path / "study.state.json"


def test_a_ledger_may_be_a_database(tmp_path):
    text = TEXT.replace('[ledger]\nfile = "study.db"', '[ledger]\nurl = "postgresql://me@host/data"')
    assert study_of(tmp_path, text).ledger_place == "postgresql://me@host/data"


def test_bounds_on_rows_go_with_their_relation(tmp_path):
    text = TEXT.replace("epsilon = 0.5", 'rho = 0.05\nneighbours = "add-or-remove-one"\nn_rows_bounds = [100, 200]')
    assert study_of(tmp_path, text).budget.n_rows_bounds == (100, 200)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[budget]", "[budgets]", 'unknown table "budgets" (did you mean "budget"?)'),
        ("epsilon = 0.5", "epsilom = 0.5", '[budget]: unknown key "epsilom" (did you mean "epsilon"?)'),
        ("[budget]\nepsilon = 0.5", "", "the table [budget] is missing"),
        ("[outputs]", "[evaluation]\nfile = 'a.csv'\nepsilonn = 1\n[outputs]", '[evaluation]: unknown key "epsilonn"'),
        ("[outputs]", "[evaluation]\nfile = 'a.csv'\n[outputs]", "[evaluation] epsilon: give either epsilon"),
        ('name = "Income of adults"\n', "", "[study] name: is missing; add it."),
        ('schema = "people.toml"', "", "[data] schema: is missing"),
        ('model = "model.json"', "", "[outputs] model: is missing"),
        ('name = "Income of adults"', "name = 3", "[study] name: must be text that is not blank"),
        ('name = "Income of adults"', 'name = " "', "[study] name: must be text that is not blank"),
        ("epsilon = 0.5", "epsilon = true", "[budget] epsilon: must be a number"),
        ("epsilon = 0.5", "epsilon = inf", "[budget] epsilon: must be a positive number, and finite"),
        ("epsilon = 0.5", "epsilon = 0", "[budget] epsilon: must be a positive number"),
        ("epsilon = 0.5", "epsilon = 1\nrho = 1", "[budget] epsilon: give either epsilon"),
        ("epsilon = 0.5", "rho = 1\ndelta = 1e-6", "[budget] delta: goes with epsilon"),
        ("epsilon = 0.5", "epsilon = 1\nmax_rows_per_person = 0", "must be a whole number of at least 1"),
        ("epsilon = 0.5", 'epsilon = 1\nneighbours = "replace-on"', '(did you mean "replace-one"?)'),
        ("epsilon = 0.5", "epsilon = 1\nn_rows_bounds = [1, 2]", 'goes with neighbours = "add-or-remove-one"'),
        ("epsilon = 0.5", "epsilon = 1\nn_rows_bounds = [2, 1]", "two whole numbers in rising order"),
        ('file = "study.db"', "", "[ledger] file: give either"),
        ('file = "study.db"', 'file = "a.db"\nurl = "postgresql://h/d"', "[ledger] file: give either"),
        ('[model]\nkind = "logistic"', "model = 3", "model must be a table"),
        ('model = "model.json"', 'model = "people.csv"', "[data] file and [outputs] model are the same file"),
        ('model = "model.json"', 'model = "sub/../study.toml"', "[outputs] model and the study file are the same file"),
        ('report = "report.html"', 'report = "model.json"', "[outputs] model and [outputs] report are the same file"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path, old, new, message):
    assert old in TEXT
    text = TEXT.replace(old, new)
    if message.startswith("model must"):
        text = new + "\n" + TEXT.replace(old, "")
    with pytest.raises(StudyError, match=re.escape(message)) as refused:
        study_of(tmp_path, text)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "study.toml"))


def test_files_that_are_no_study_are_refused(tmp_path):
    """A table that was given by mistake is not quoted."""
    with pytest.raises(FileError, match="no such file"):
        Study.from_toml(tmp_path / "none.toml")
    (tmp_path / "a.toml").write_text("name,age\nSECRET,3\n")
    with pytest.raises(FileError, match="is not valid TOML") as refused:
        Study.from_toml(tmp_path / "a.toml")
    assert "SECRET" not in str(refused.value)


def test_an_evaluation_is_charged_to_its_own_ledger_if_it_names_one(tmp_path):
    """A file beside the study, or a URL; the study's ledger without one. It is no file that has another role."""
    assert study_of(tmp_path, TEXT + EVALUATION).ledger_place_of_evaluation == str(tmp_path / "study.db")
    for place, meant in (("own.db", str(tmp_path / "own.db")), ("postgresql://me@host/x", "postgresql://me@host/x")):
        assert study_of(tmp_path, f'{TEXT}{EVALUATION}ledger = "{place}"\n').ledger_place_of_evaluation == meant
    with pytest.raises(StudyError, match=r"\[ledger\] file and \[evaluation\] ledger are the same file"):
        study_of(tmp_path, f'{TEXT}{EVALUATION}ledger = "study.db"\n')


@pytest.mark.parametrize(
    ("every", "day", "name"),
    [
        ("day", "2026-12-01", "2026-12-01"),
        ("week", "2027-01-01", "2026-W53"),
        ("month", "2026-12-31", "2026-12"),
        ("quarter", "2026-12-31", "2026-Q4"),
        ("quarter", "2026-01-01", "2026-Q1"),
        ("year", "2026-12-31", "2026"),
    ],
)
def test_a_release_is_named_by_its_period(every, day, name):
    """A week by the year that ISO 8601 gives it."""
    assert period_of(every, datetime.fromisoformat(day)) == name
    assert days_of(every, name)


@pytest.mark.parametrize(
    ("every", "name"),
    [
        ("day", "2026-02-29"),
        ("week", "2025-W53"),
        ("month", "2026-13"),
        ("month", "2026-1"),
        ("quarter", "2026-Q5"),
        ("year", "0026"),
        ("year", "2026-12"),
    ],
)
def test_a_period_that_does_not_exist_has_no_name(every, name):
    """A leap year has its day, and a long year its week."""
    assert not days_of(every, name)
    assert days_of("day", "2028-02-29")
