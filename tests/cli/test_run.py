"""`confide run`: all of a study, what it shows, and that nothing is charged twice."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import confide
from confide.cli import study_run
from confide.errors import FileError
from confide.studies.progress import State
from tests.cli.commands import FEW_SCHEMA, SENTINEL, line_of, refused, run, spent
from tests.studies.examples import EVALUATION, TEXT

STUDY = TEXT.replace('"logistic"', '"logistic"\nalpha = 0.5')


@pytest.fixture
def study(folder_with_ledger):
    """A folder with rows, rows kept aside, a schema, a ledger of epsilon 2 and a study of 0.5 and 0.25."""
    Path("study.toml").write_text(STUDY + EVALUATION, encoding="utf-8")
    Path("held_out.csv").write_text(Path("people.csv").read_text(encoding="utf-8"), encoding="utf-8")
    return folder_with_ledger


def files():
    return sorted(path.name for path in Path().iterdir())


def test_a_study_is_fitted_evaluated_and_reported(study):
    """In this order, charged twice, with its marks in the ledger; the model is private and the page is there."""
    text = run("run", "study.toml").stdout
    parts = [
        "Study: Income of adults",
        "Plan",
        "Guarantee",
        "Done",
        "Rates on",
        "Wrote model.json",
        "Wrote report.html",
        "All of it",
    ]
    assert sorted(parts, key=text.index) == parts
    assert confide.load("model.json").guarantee_.void is None
    assert "<html" in Path("report.html").read_text(encoding="utf-8")
    purposes = confide.Ledger("study.db").entries()["purpose"].tolist()
    state = State.of(Path("study.state.json"))
    assert purposes == [f"Income of adults [study {each.fingerprint}]" for each in (state.fit, state.evaluation)]
    assert spent() == 0.75
    assert set(state.checksums) == {"study", "schema"}


def test_what_is_done_is_not_done_again(study):
    """The same command charges nothing, changes no file, and shows the rates that were released."""
    run("run", "study.toml")
    before = {name: Path(name).read_bytes() for name in files() if not name.startswith("study.db")}
    text = run("run", "study.toml").stdout
    assert "released by an earlier run" in text
    assert {name: Path(name).read_bytes() for name in before} == before
    assert spent() == 0.75
    rates = json.loads(run("run", "study.toml", "--format", "json").stdout)["evaluation"]
    assert f"{rates['accuracy']['value'] or 0:.3f}"[:4] in text or rates["accuracy"]["value"] is None


def test_what_came_to_the_table_later_is_named_and_may_be_released(study):
    """A new file under the pattern ends the command with exit code 2, until a release of its own has it too."""
    Path("months").mkdir()
    Path("months/01.csv").write_bytes(Path("people.csv").read_bytes())
    Path("study.toml").write_text(STUDY.replace("people.csv", "months/*.csv"), encoding="utf-8")
    assert "All of it is done" in run("run", "study.toml").stdout
    assert "All of it is done" in run("run", "study.toml").stdout
    before = Path("model.json").read_bytes()
    for month in ("02", "03", "04", "05"):
        Path(f"months/{month}.csv").write_bytes(Path("people.csv").read_bytes())
    said = run("run", "study.toml", code=2).stderr
    assert "02.csv, 03.csv, 04.csv and 1 more" in said
    assert "--release 2026-12" in said
    assert spent() == 0.5
    assert "All of it is done" in run("run", "study.toml", "--release", "2026-12").stdout
    assert "All of it is done" in run("run", "study.toml", "--release", "2026-12").stdout
    assert spent() == 1.0
    assert Path("model.json").read_bytes() == before
    for name in ("model.2026-12.json", "report.2026-12.html", "study.2026-12.state.json"):
        assert Path(name).exists()
    assert "Income of adults, release 2026-12 [study " in confide.Ledger("study.db").entries()["purpose"].tolist()[-1]
    for name in ("", "../2026", "a b", "x" * 41):
        assert "name of a release" in refused("run", "study.toml", "--release", name)


def test_a_dry_run_shows_the_plan_and_spends_nothing(study):
    """It writes no file; it refuses what a run would refuse."""
    before = files()
    text = run("run", "study.toml", "--dry-run").stdout
    for words in ("to do", "Plan", "epsilon = 0.5", "Expect noise of about", "Nothing was charged"):
        assert words in text
    document = json.loads(run("run", "study.toml", "--dry-run", "--format", "json").stdout)
    assert document["steps"] == {"fit": "to do", "evaluate": "to do", "report": "to do"}
    assert document["plan"]["budget"]["epsilon"] == 0.5
    assert files() == before
    assert spent() == 0.0


def test_a_dry_run_does_without_a_ledger_and_says_that_one_is_to_be_made(study):
    """For the fit, and for an evaluation that is charged elsewhere; the run itself is refused."""
    Path("study.db").unlink()
    said = " ".join(run("run", "study.toml", "--dry-run").stdout.split())
    assert said.count("There is no ledger") == 1
    assert "There is no ledger study.db yet" in said
    assert "confide ledger init study.db --epsilon LIMIT" in said
    assert "Plan" in said
    assert "Nothing was charged" in said
    assert "enough left" not in said
    assert not Path("study.db").exists()
    assert "confide ledger init" in refused("run", "study.toml")
    confide.Ledger("study.db", limit=2.0)
    Path("study.toml").write_text(STUDY + EVALUATION + 'ledger = "held_out.db"\n', encoding="utf-8")
    assert "There is no ledger held_out.db yet" in run("run", "study.toml", "--dry-run").stdout
    document = json.loads(run("run", "study.toml", "--dry-run", "--format", "json").stdout)
    assert document["absent_ledgers"] == ["held_out.db"]


def test_every_charge_of_a_study_names_its_model(study):
    """That of the fit, and that of the evaluation."""
    run("run", "study.toml")
    entries = json.loads(run("ledger", "show", "study.db", "--format", "json").stdout)["entries"]
    assert [entry["model"] for entry in entries] == ["model.json", "model.json"]


def test_the_ledger_must_have_enough_for_all_steps_before_the_first(study):
    """1.8 for the fit would fit, and not 0.25 more."""
    Path("study.toml").write_text(STUDY.replace("epsilon = 0.5", "epsilon = 1.8") + EVALUATION, encoding="utf-8")
    assert "Lower [budget] epsilon" in line_of("run", "study.toml", code=3)
    assert "the ledger has epsilon 2 left" in line_of("run", "study.toml", "--dry-run", code=3)
    assert spent() == 0.0
    assert not Path("study.state.json").exists()


def test_a_run_that_stopped_between_charge_and_model_says_so(study, monkeypatch):
    """What was charged is named, and not charged again unless it is asked for."""
    from confide.cli.charges import Charges

    write = Charges.write_model

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Charges, "write_model", stopped)
    assert "Charged epsilon = 0.5 to" in line_of("run", "study.toml", code=130)
    monkeypatch.setattr(Charges, "write_model", write)
    assert "What was charged cannot be had again" in refused("run", "study.toml")
    assert spent() == 0.5
    run("run", "study.toml", "--again")
    assert spent() == 1.25
    assert "All of it is done" in run("run", "study.toml").stdout


def test_a_run_that_stopped_before_its_release_is_finished_under_its_charge(study, monkeypatch):
    """The same command goes on, charges nothing anew for the fit, and the model says that an attempt preceded."""

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("confide.training.fit.released", stopped)
        run("run", "study.toml", code=130)
    assert "to finish, under the charge of the run that stopped" in run("run", "study.toml", "--dry-run").stdout
    assert "Finished a charge of epsilon = 0.5" in run("run", "study.toml").stdout
    assert spent() == 0.75
    assert "An earlier attempt" in confide.load("model.json").guarantee_.statement()
    assert "All of it is done" in run("run", "study.toml").stdout


def test_an_evaluation_that_stopped_before_its_release_is_finished_under_its_charge(study, monkeypatch):
    """As the fit is. The rates in the state and the report say that an attempt preceded."""

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("confide.estimators.evaluation._released", stopped)
        run("run", "study.toml", code=130)
    assert spent() == 0.75
    assert "to finish, under the charge of the run that stopped" in run("run", "study.toml", "--dry-run").stdout
    assert "Finished a charge of epsilon = 0.25" in run("run", "study.toml").stdout
    assert spent() == 0.75
    assert "An earlier attempt at this release" in Path("study.state.json").read_text()
    assert "An earlier attempt at this release" in Path("report.html").read_text()
    assert "All of it is done" in run("run", "study.toml").stdout


def test_a_run_that_stopped_after_the_model_goes_on(study, monkeypatch):
    """Before the ledger noted the checksum of the model, and before the evaluation."""

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("confide.cli.charges.note_checksum", stopped)
        assert "The model is in" in line_of("run", "study.toml", code=130)
    before = Path("model.json").read_bytes()
    run("run", "study.toml")
    assert Path("model.json").read_bytes() == before
    assert spent() == 0.75


def test_a_model_that_no_ledger_was_charged_for_is_not_taken(study, monkeypatch):
    """A run dies after its charge, and somebody puts a model of much greater epsilon in the place of its model."""
    from confide.cli.charges import Charges

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Charges, "write_model", stopped)
        run("run", "study.toml", code=130)
    run("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1000", "--out", "model.json")
    for options in ((), ("--again",), ("--dry-run",)):
        assert "this study did not write it" in refused("run", "study.toml", *options)
    assert spent() == 0.5
    Path("model.json").unlink()
    run("run", "study.toml", "--again")
    assert confide.load("model.json").guarantee_.budget.epsilon == 0.5


def test_a_second_run_at_the_same_time_charges_nothing(study):
    from confide.studies.progress import only_run
    from confide.studies.study import Study

    with only_run(Study.from_toml("study.toml")):
        assert "another run of this study is going on" in refused("run", "study.toml")
        run("run", "study.toml", "--dry-run")
    assert spent() == 0.0
    run("run", "study.toml")
    assert spent() == 0.75


@pytest.mark.parametrize("error", [FileError("cannot write."), KeyboardInterrupt()])
def test_rates_that_were_paid_for_are_kept_where_the_state_cannot_be_written(study, monkeypatch, error):
    """In a file of their own, which the message names."""
    noted = study_run.StudyRun._note

    def stopped(self, state):
        if state.evaluation is not None and state.evaluation.result is not None:
            raise error
        noted(self, state)

    with monkeypatch.context() as patched:
        patched.setattr(study_run.StudyRun, "_note", stopped)
        code = 4 if isinstance(error, FileError) else 130
        assert "The evaluation is in" in line_of("run", "study.toml", code=code)
    assert json.loads(Path("rescued-evaluation.json").read_text(encoding="utf-8"))["level"] == 0.95
    assert "rescued-evaluation.json" in refused("run", "study.toml")
    assert spent() == 0.75


def test_a_model_whose_checksum_cannot_be_noted_is_kept(study, monkeypatch):
    """It is paid for, so it is written under another name."""
    noted = study_run.StudyRun._note

    def stopped(self, state):
        if state.fit.sha256 is not None:
            raise FileError("cannot write.")
        noted(self, state)

    with monkeypatch.context() as patched:
        patched.setattr(study_run.StudyRun, "_note", stopped)
        assert "The model is in" in line_of("run", "study.toml", code=4)
    assert confide.load("rescued-model.json").guarantee_.budget.epsilon == 0.5
    assert not Path("model.json").exists()


@pytest.mark.parametrize("row", [f"40,{SENTINEL}", f"{SENTINEL},low"])
def test_rows_kept_aside_are_checked_before_the_fit_is_charged(study, row):
    """An unknown label, and a cell that is no number."""
    rows = Path("held_out.csv").read_text(encoding="utf-8")
    Path("held_out.csv").write_text(f"{rows}{row}\n", encoding="utf-8")
    assert SENTINEL not in refused("run", "study.toml")
    assert spent() == 0.0
    assert not Path("model.json").exists()


def test_a_study_that_changed_is_refused_with_what_changed(study):
    """Its budget, its schema; and its name may change, which makes the report anew."""
    run("run", "study.toml")
    Path("study.toml").write_text(STUDY.replace("epsilon = 0.5", "epsilon = 0.7") + EVALUATION, encoding="utf-8")
    assert "budget.epsilon was 0.5 and is 0.7" in refused("run", "study.toml")
    Path("study.toml").write_text(STUDY + EVALUATION, encoding="utf-8")
    Path("people.toml").write_text(FEW_SCHEMA.replace("90", "95"), encoding="utf-8")
    assert "schema.columns.age.high was 90 and is 95" in refused("run", "study.toml")
    Path("people.toml").write_text(FEW_SCHEMA, encoding="utf-8")
    Path("study.toml").write_text(STUDY.replace("Income of adults", "Another name") + EVALUATION, encoding="utf-8")
    assert "Wrote report.html" in run("run", "study.toml").stdout
    assert spent() == 0.75


def test_a_colleague_repeats_a_study_in_a_folder_of_their_own(study, tmp_path_factory, monkeypatch):
    """With the study, its schema, its data and another ledger; not with the state of the first."""
    run("run", "study.toml")
    other = tmp_path_factory.mktemp("colleague")
    for name in ("study.toml", "people.toml", "people.csv", "held_out.csv"):
        (other / name).write_bytes(Path(name).read_bytes())
    confide.Ledger(other / "study.db", limit=1.0)
    run("run", other / "study.toml")
    assert confide.Ledger(other / "study.db").spent().epsilon == 0.75
    assert State.of(other / "study.state.json").fit.fingerprint == State.of(Path("study.state.json")).fit.fingerprint
    (other / "study.state.json").write_bytes(Path("study.state.json").read_bytes())
    assert "charged to another ledger" in refused("run", other / "study.toml")


def test_a_model_in_the_way_is_not_replaced(study):
    Path("model.json").write_text("mine", encoding="utf-8")
    assert "exists already" in refused("run", "study.toml")
    assert Path("model.json").read_text(encoding="utf-8") == "mine"
    assert spent() == 0.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"logistic"', '"ridge"', "[model] kind ridge predicts numbers"),
        ("alpha = 0.5", "alpha = -1", "[model] alpha must be"),
        ("alpha = 0.5", 'interval = "auto"', 'did you mean "intervals"'),
        ("people.toml", "none.toml", "there is no such file"),
        ("people.csv", "none.csv", "cannot read"),
        ("held_out.csv", "none.csv", "cannot read"),
        ("study.db", "none.db", "none.db"),
    ],
)
def test_what_cannot_be_run_is_one_line_and_costs_nothing(study, old, new, message):
    text = STUDY + EVALUATION
    assert old in text
    Path("study.toml").write_text(text.replace(old, new), encoding="utf-8")
    assert message in refused("run", "study.toml")
    assert spent() == 0.0
    assert not Path("model.json").exists()


def test_an_evaluation_needs_two_labels(study):
    Path("people.toml").write_text(
        FEW_SCHEMA.replace('negative = "low", positive = "high"', 'classes = ["low", "mid", "high"]'), encoding="utf-8"
    )
    assert "[evaluation]: rates need a target of two labels" in refused("run", "study.toml")


def test_no_message_and_no_file_shows_a_cell(study):
    """A label that the schema does not know, in the rows and in those kept aside."""
    for name in ("held_out.csv", "people.csv"):
        Path(name).write_text(Path(name).read_text(encoding="utf-8") + f"40,{SENTINEL}\n", encoding="utf-8")
        result = run("run", "study.toml", code=2)
        assert SENTINEL not in result.output
        assert all(SENTINEL.encode() not in path.read_bytes() for path in Path().glob("*.json"))


def test_rates_that_the_noise_would_hide_are_refused_before_the_fit_is_charged(study):
    """The message says what would suffice and names the key that goes on."""
    Path("study.toml").write_text(STUDY + EVALUATION.replace("allow_hidden = true\n", ""), encoding="utf-8")
    message = refused("run", "study.toml")
    assert "study.toml: [evaluation]: there are 140 rows" in message
    assert "Give at least 290 rows or epsilon = 0.52" in message
    assert 'write "allow_hidden = true" there' in message
    assert confide.Ledger("study.db").spent().epsilon == 0.0
    Path("study.toml").write_text(STUDY + EVALUATION.replace("= true", "= 1"), encoding="utf-8")
    assert "must be true or false" in refused("run", "study.toml")


OF_ITS_OWN = EVALUATION + 'ledger = "held_out.db"\n'


def test_rows_kept_aside_may_have_a_ledger_of_their_own(study):
    """Each ledger holds exactly what its rows cost, and what is done is not done again."""
    Path("study.toml").write_text(STUDY.replace("study.db", "fit.db") + OF_ITS_OWN, encoding="utf-8")
    confide.Ledger("fit.db", limit=0.5)
    confide.Ledger("held_out.db", limit=0.25)
    text = run("run", "study.toml", "--dry-run").stdout
    assert "charged to held_out.db" in " ".join(text.split())
    run("run", "study.toml")
    run("run", "study.toml")
    assert [confide.Ledger(name).spent().epsilon for name in ("fit.db", "held_out.db", "study.db")] == [0.5, 0.25, 0.0]
    Path("study.toml").write_text(STUDY.replace("study.db", "fit.db") + EVALUATION, encoding="utf-8")
    assert "charged to another ledger" in refused("run", "study.toml")


def test_a_ledger_of_its_own_with_too_little_is_refused_before_the_fit(study):
    Path("study.toml").write_text(STUDY + OF_ITS_OWN, encoding="utf-8")
    assert "held_out.db" in refused("run", "study.toml")
    confide.Ledger("held_out.db", limit=0.1)
    assert "Lower [evaluation] epsilon" in line_of("run", "study.toml", code=3)
    assert spent() == 0.0


def test_one_ledger_without_room_for_both_names_the_way_out(study):
    Path("study.toml").write_text(STUDY.replace("study.db", "fit.db") + EVALUATION, encoding="utf-8")
    confide.Ledger("fit.db", limit=0.5)
    assert "a ledger of their own, as [evaluation] ledger" in line_of("run", "study.toml", code=3)


def test_each_ledger_for_persons_with_fewer_rows_is_named_once(study):
    """That of the fit and that of the evaluation, before anything is charged."""
    text = (STUDY + OF_ITS_OWN).replace("epsilon = 0.5", "epsilon = 0.5\nmax_rows_per_person = 3")
    Path("study.toml").write_text(text, encoding="utf-8")
    confide.Ledger("held_out.db", limit=0.25)
    shown = run("run", "study.toml", "--dry-run").stderr
    for name in ("study.db", "held_out.db"):
        assert shown.count(f"{name}: The ledger counts what persons with at most 1 row pay.") == 1


def test_the_rows_of_a_study_may_be_the_answer_to_a_query(study):
    """Asked anew for each release; a query that changed is a study that changed, and no password stands in the file."""
    sqlite3 = pytest.importorskip("sqlite3")
    pytest.importorskip("sqlalchemy", reason="the extra postgres is not installed")
    frame = pd.read_csv("people.csv", dtype=str, keep_default_na=False)
    with closing(sqlite3.connect("people.db")) as connection:
        frame.to_sql("people", connection, index=False)
    Path("rows.sql").write_text("SELECT * FROM people", encoding="utf-8")
    address = 'file = "sqlite:///people.db"\nquery = "rows.sql"'
    Path("study.toml").write_text(STUDY.replace('file = "people.csv"', address), encoding="utf-8")
    assert "All of it is done" in run("run", "study.toml").stdout
    with closing(sqlite3.connect("people.db")) as connection:
        frame.head(50).to_sql("people", connection, index=False, if_exists="append")
    assert "All of it is done" in run("run", "study.toml").stdout
    assert spent() == 0.5
    run("run", "study.toml", "--release", "2026-12")
    assert spent() == 1.0
    assert confide.load("model.2026-12.json").guarantee_.n_rows == (len(frame) + 50,) * 2
    Path("rows.sql").write_text("SELECT * FROM people LIMIT 100", encoding="utf-8")
    assert "data.query_sha256" in refused("run", "study.toml", "--release", "2026-12")
    secret = STUDY.replace('file = "people.csv"', f'file = "postgresql://me:{SENTINEL}@host/db"\nquery = "rows.sql"')
    Path("study.toml").write_text(secret, encoding="utf-8")
    assert "holds a password" in refused("run", "study.toml", "--release", "2027-01")


# A schedule: the release of a period, its sub-limit of the year, and the last release as a prior

SCHEDULE = '\n[schedule]\nevery = "month"\nbudget_per_year = 1.0\nprior = "last"\n'


@pytest.fixture
def scheduled(folder_with_ledger, monkeypatch):
    """A study that is released each month; what is given sets the day."""
    Path("study.toml").write_text(STUDY + SCHEDULE, encoding="utf-8")

    def on(day):
        moment = datetime.fromisoformat(f"{day}T12:00:00+00:00")
        monkeypatch.setattr("confide.studies.study.datetime", SimpleNamespace(now=lambda _: moment))
        for place in ("ledger", "batches"):
            monkeypatch.setattr(f"confide.accounting.{place}.now", lambda: f"{day}T12:00:00+00:00")

    return on


def test_a_schedule_names_the_release_by_its_month_and_takes_the_last_one_as_prior(scheduled):
    """Two months are two charges; the second model is pulled towards the first, and each month is done once."""
    scheduled("2026-11-02")
    assert "All of it is done" in run("run", "study.toml").stdout
    assert "All of it is done" in run("run", "study.toml").stdout
    scheduled("2026-12-01")
    run("run", "study.toml")
    run("run", "study.toml", "--release", "2026-12")
    assert [Path(f"model.2026-{month}.json").exists() for month in (10, 11, 12)] == [False, True, True]
    assert spent() == 1.0
    purposes = [text.partition(" [")[0] for text in confide.Ledger("study.db").entries()["purpose"]]
    assert purposes == ["Income of adults, release 2026-11", "Income of adults, release 2026-12"]
    statements = [confide.load(f"model.2026-{month}.json").guarantee_.statement() for month in (11, 12)]
    assert ["The ridge pulls the weights towards a public prior" in text for text in statements] == [False, True]
    assert "charged to the same ledger" in statements[1]


def test_a_late_release_changes_no_prior_of_a_release_that_was_charged(scheduled):
    """January was pulled towards November; December comes late, takes November too, and January can still be repeated."""
    Path("study.toml").write_text(Path("study.toml").read_text().replace("year = 1.0", "year = 1.5"), encoding="utf-8")
    for day in ("2026-11-02", "2027-01-02"):
        scheduled(day)
        run("run", "study.toml")
    run("run", "study.toml", "--release", "2026-12")
    assert "All of it is done" in run("run", "study.toml").stdout
    assert spent() == 1.5
    notes = {month: json.loads(Path(f"study.{month}.state.json").read_text()) for month in ("2026-12", "2027-01")}
    assert {note["fit"]["facts"]["model"]["prior"] for note in notes.values()} == {"model.2026-11.json"}
    scheduled("2027-02-02")
    run("run", "study.toml")
    february = json.loads(Path("study.2027-02.state.json").read_text())
    assert february["fit"]["facts"]["model"]["prior"] == "model.2027-01.json"


def test_a_release_that_was_noted_and_not_charged_takes_the_prior_of_now(scheduled):
    """It stopped before its charge, so the last release before it counts when it is made."""
    Path("study.toml").write_text(Path("study.toml").read_text().replace("year = 1.0", "year = 1.5"), encoding="utf-8")
    scheduled("2026-11-02")
    run("run", "study.toml")
    scheduled("2027-01-02")
    run("run", "study.toml")
    january = Path("study.2027-01.state.json")
    note = json.loads(january.read_text())
    note["fit"]["earlier"] += 1
    january.write_text(json.dumps(note))
    Path("model.2027-01.json").unlink()
    run("run", "study.toml", "--release", "2026-12")
    run("run", "study.toml", "--release", "2027-01", "--again")
    assert json.loads(january.read_text())["fit"]["facts"]["model"]["prior"] == "model.2026-12.json"


def test_a_budget_of_a_year_above_the_limit_of_the_ledger_is_refused_by_a_dry_run_too(scheduled):
    """In words of the study, with both amounts; nothing is written."""
    scheduled("2026-11-02")
    Path("study.toml").write_text(Path("study.toml").read_text().replace("year = 1.0", "year = 1e3"), encoding="utf-8")
    for more in ((), ("--dry-run",)):
        told = refused("run", "study.toml", *more)
        assert re.search(r"budget_per_year: is epsilon 1000, and the ledger has a limit of epsilon \d", told)
    assert len(confide.Ledger("study.db").sublimits()) == 0


@pytest.mark.parametrize("name", ["2026-13", "2026-00", "2026-1", "0026-12", "2026-W12"])
def test_a_release_of_a_month_that_does_not_exist_is_refused(scheduled, name):
    scheduled("2026-11-02")
    assert "a release is named by its month, such as 2026-11" in refused("run", "study.toml", "--release", name)


def test_the_budget_of_a_year_is_a_sublimit_of_the_ledger(scheduled):
    """A third release of .5 in the year is refused with exit code 3, and the next year begins anew."""
    for day in ("2026-01-05", "2026-02-05"):
        scheduled(day)
        run("run", "study.toml")
    scheduled("2026-03-05")
    told = run("run", "study.toml", code=3).stderr
    assert 'the purpose "Income of adults" has epsilon 0 left of epsilon 1' in told
    assert not Path("model.2026-03.json").exists()
    own = confide.Ledger("study.db").sublimits().to_dict("records")
    assert own == [{"purpose": "Income of adults", "per_year": True, "limit": 1.0, "spent": 1.0, "remaining": 0.0}]
    scheduled("2027-01-05")
    run("run", "study.toml")
    assert spent() == 1.5
    Path("study.toml").write_text(Path("study.toml").read_text().replace("year = 1.0", "year = 1.5"), encoding="utf-8")
    scheduled("2027-02-05")
    assert "another sub-limit for this study, of epsilon 1 a year" in refused("run", "study.toml")
    assert spent() == 1.5


def test_a_schedule_of_cohorts_charges_each_month_to_its_persons(scheduled):
    """Three releases, each of its own rows with rates on its own, cost nobody more than one; a plain ledger is refused."""
    scheduled("2027-01-05")
    text = Path("study.toml").read_text(encoding="utf-8").replace('every = "month"', 'every = "month"\ncohorts = "came"')
    text = text.replace("budget_per_year = 1.0\n", "").replace("epsilon = 0.5", "epsilon = 5.0")
    text = text.replace("[budget]\n", '[budget]\nneighbours = "add-or-remove-one"\nn_rows_bounds = [10, 1000000]\n')
    people = pd.read_csv("people.csv")
    months = ["2026-10", "2026-11", "2026-12"]
    people["came"] = [months[place % 3] for place in range(len(people))]
    for name in ("people.csv", "held_out.csv"):
        people.to_csv(name, index=False)
    Path("study.toml").write_text(text + EVALUATION, encoding="utf-8")
    assert "cohorts" in refused("run", "study.toml", "--release", "2026-10")
    Path("study.db").unlink()
    whom = ("--neighbours", "add-or-remove-one", "--cohorts", "came")
    run("ledger", "init", "study.db", "--epsilon", "5.25", *whom)
    for month in months:
        run("run", "study.toml", "--release", month)
        run("run", "study.toml", "--release", month)
    assert spent() == 5.25
    assert confide.Ledger("study.db").entries()["cohort"].tolist() == [m for m in months for _ in range(2)]
    assert confide.load("model.2026-12.json").schema.cohort == ("came", "2026-12")
    shown = run("ledger", "show", "study.db").stdout
    assert "nobody is in two" in shown
    run("ledger", "charge", "study.db", "--epsilon", "0.5", "--purpose", "by hand", "--cohort", "2027-01")
    assert json.loads(run("ledger", "show", "study.db", "--format", "json").stdout)["cohorts"] == "came"
    alone = "Nothing was charged to it alone"
    for name, is_new in (("came=2026-12", False), ("2026-12", False), ("2026-1", True)):
        assert (alone in run("ledger", "show", "study.db", "--cohort", name).stdout) == is_new
    # Without a name it is the period that is over, whose persons are all there: here one that was released.
    run("run", "study.toml")
    assert spent() == 5.25
    for day in ("2027-01-05", "2027-01-31"):
        scheduled(day)
        assert "release 2027-01 is not over" in refused("run", "study.toml", "--release", "2027-01")
    scheduled("2027-02-01")
    assert "no row has the value" in run("run", "study.toml", "--release", "2027-01", "--force-budget", code=2).stderr
    assert spent() == 5.25
    assert not Path("model.2027-01.json").exists()


def test_a_late_release_does_not_read_the_rows_of_later_days(scheduled, tmp_path):
    """A query that asks for the present is refused for another period than the present one. Names stand for its days."""
    sqlite3 = pytest.importorskip("sqlite3")
    pytest.importorskip("sqlalchemy", reason="the extra postgres is not installed")
    people = pd.read_csv("people.csv").assign(day="2026-11-15")
    later = people.assign(day="2026-12-01", age=90)
    with sqlite3.connect("rows.db") as connection:
        pd.concat([people, later]).to_sql("people", connection, index=False)
    text = Path("study.toml").read_text(encoding="utf-8")
    data = f'file = "sqlite:///{tmp_path / "rows.db"}"\nquery = "rows.sql"'
    Path("study.toml").write_text(text.replace('file = "people.csv"', data), encoding="utf-8")
    Path("rows.sql").write_text("SELECT * FROM people WHERE day < date('now') -- of :nothing", encoding="utf-8")
    scheduled("2026-12-02")
    told = refused("run", "study.toml", "--release", "2026-11")
    assert "asks for the present time" in told
    assert ":end, the day after its last" in told
    assert spent() == 0.0
    run("run", "study.toml", "--dry-run")
    Path("rows.sql").write_text("SELECT * FROM people WHERE day >= :begin AND day < date('now')", encoding="utf-8")
    assert "asks for the present time" in refused("run", "study.toml", "--release", "2026-11")
    asked = "SELECT * FROM people WHERE day >= :begin AND day < :end AND substr(day, 1, 7) = :release -- not now()"
    Path("rows.sql").write_text(asked, encoding="utf-8")
    run("run", "study.toml", "--release", "2026-11", "--force-budget")
    assert confide.load("model.2026-11.json").guarantee_.n_rows == (len(people), len(people))
    assert "no rows" in refused("run", "study.toml", "--release", "2026-10")


def test_databases_have_many_words_for_the_present():
    from confide.studies.study import _PRESENT, _without_text

    def asks(query):
        return _PRESENT.search(_without_text(query)) is not None

    for present in (
        "now ()", "now/**/()", "clock_timestamp()", "statement_timestamp()", "get_current_timestamp()", "LOCALTIME",
        "date()", "time()", "unixepoch( )", "unixepoch('subsec')", "strftime('%s')", "timeofday()", "sysutcdatetime()",
        "'today'", "' now '::timestamp",
    ):  # fmt: skip
        for before in ("day < ", "note <> '--' and day < ", "note <> 'it''s /*' and day < ", "/* -- */ day < "):
            assert asks(before + present), before + present
    assert not asks("SELECT to_timestamp(day), date(day), unix_timestamp(day) FROM people WHERE known < 5")
    assert not asks("SELECT strftime('%Y', day) FROM people WHERE note = 'call now()' -- not now()\n/* now() */")


def test_a_cohort_of_the_schema_is_that_of_the_release_or_refused(scheduled):
    """It was silently replaced by the release, so that a schema said one thing and a model another."""
    scheduled("2027-01-05")
    schema = Path("people.toml").read_text(encoding="utf-8")
    text = Path("study.toml").read_text(encoding="utf-8").replace('every = "month"', 'every = "month"\ncohorts = "came"')
    text = text.replace("budget_per_year = 1.0\n", "")
    text = text.replace("[budget]\n", '[budget]\nneighbours = "add-or-remove-one"\nn_rows_bounds = [10, 1000000]\n')
    Path("study.toml").write_text(text, encoding="utf-8")
    pd.read_csv("people.csv").assign(came="2026-12").to_csv("people.csv", index=False)
    Path("people.toml").write_text('cohort = { column = "came", value = "2026-12" }\n' + schema, encoding="utf-8")
    Path("study.db").unlink()
    told = run(
        "ledger", "init", "study.db", "--epsilon", "2", "--neighbours", "add-or-remove-one", "--cohorts", "came"
    ).stdout
    assert "The limit holds for each person" in " ".join(told.split())
    assert 'cohort: is "2026-12" in the column "came", and the release is for "2026-11"' in refused(
        "run", "study.toml", "--release", "2026-11"
    )
    assert spent() == 0.0
    run("run", "study.toml", "--release", "2026-12", "--force-budget")
    Path("people.toml").write_text(schema, encoding="utf-8")
    told = run("run", "study.toml", "--release", "2026-11", "--force-budget", code=2).stderr
    assert 'column "came": no row has the value "2026-11"' in told
    assert "months as 2026-12. Nothing was charged" in told
    shown = run("ledger", "show", "study.db", "--cohort", "2026-12").stdout
    assert 'Left for the persons of the cohort "2026-12": pure differential privacy with epsilon = 1.5' in " ".join(
        shown.split()
    )
    left = json.loads(run("ledger", "show", "study.db", "--cohort", "2026-11", "--format", "json").stdout)
    assert left["remaining_of_cohort"]["epsilon"] == 2.0


def test_a_dry_run_of_a_schedule_writes_nothing(scheduled):
    scheduled("2026-11-02")
    before = Path("study.db").read_bytes()
    assert "Nothing was charged" in run("run", "study.toml", "--dry-run").stdout
    assert len(confide.Ledger("study.db").sublimits()) == 0
    assert Path("study.db").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"month"', '"fortnight"'), r"\[schedule\] every: must be one of day, week, month, quarter, year"),
        (('every = "month"\n', ""), r"\[schedule\] every: is missing"),
        (("= 1.0", "= 0.25"), "budget_per_year: must be at least what one release costs"),
        (('prior = "last"', 'prior = "first"'), r'\[schedule\] prior: must be "last"'),
        (("[schedule]", 'prior = "model.json"\n[schedule]'), r'\[schedule\] prior: must be "last"'),
    ],
)
def test_a_schedule_that_cannot_be_kept_is_refused(scheduled, change, message):
    scheduled("2026-11-02")
    outputs = '\n[outputs]\nmodel = "model.json"\n'
    text = STUDY.partition("[model]")[0] + outputs + '\n[model]\nkind = "logistic"\n' + SCHEDULE
    Path("study.toml").write_text(text.replace(*change), encoding="utf-8")
    assert re.search(message, refused("run", "study.toml"))
    assert spent() == 0.0
