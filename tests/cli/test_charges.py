"""What commands say was charged, when they end and when they are stopped."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import confide
from confide.accounting.ledger import Ledger
from confide.accounting.records import current_user
from confide.cli.application import app
from confide.cli.charges import Charges
from confide.errors import LedgerError, NotCertified
from confide.estimators.additive import AdditiveClassifier
from tests.cli.commands import FIT, line_of, run, spent, write_few_people

pytestmark = pytest.mark.usefixtures("folder_with_ledger")


def full_disk(monkeypatch, *folders):
    """Writing fails in these folders, as on a full disk; files can still be created there."""
    write = Path.write_bytes

    def fail(path, *arguments, **options):
        if path.parent.resolve() in [Path(folder).resolve() for folder in folders]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_bytes", fail)


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


def test_a_full_disk_says_what_was_charged_and_leaves_the_model_elsewhere(monkeypatch, folder_with_ledger):
    """Beside its place, else where the command runs, else in the temporary folder; exit code 4."""
    for name in ("out", "temporary"):
        Path(name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder_with_ledger / "temporary"))
    closed = []
    for rescue in ("rescued-model.json", "temporary/rescued-model.json", "temporary/rescued-model-2.json"):
        closed.append("." if closed else "out")
        full_disk(monkeypatch, *closed)
        line = line_of(*FIT, "--out", "out/model.json", code=4)
        assert "No space left on device" in line
        assert "Charged epsilon = 0.5 to study.db." in line
        assert re.search(rf"The model is in \S*{rescue}: copy it", line)
        assert confide.load(rescue).guarantee_.budget == confide.PureDP(0.5)
        assert not Path("out/model.json").exists()
    assert spent() == 1.5


def test_a_name_that_is_taken_meanwhile_leaves_the_model_beside(monkeypatch):
    """The file of somebody else stays, and the model has another name."""
    fit = AdditiveClassifier.fit

    def meanwhile(model, *arguments):
        Path("model.json").write_text("theirs", encoding="utf-8")
        return fit(model, *arguments)

    monkeypatch.setattr(AdditiveClassifier, "fit", meanwhile)
    line = line_of(*FIT, code=4)
    assert "exists already" in line
    assert "Charged epsilon = 0.5 to study.db. The model is in rescued-model.json" in line
    assert Path("model.json").read_text(encoding="utf-8") == "theirs"
    assert confide.load("rescued-model.json").guarantee_.void is None


def test_a_model_that_no_folder_takes_is_shown(monkeypatch):
    """The release is public and its budget is spent: standard output holds the file."""
    full_disk(monkeypatch, ".", tempfile.gettempdir())
    result = run(*FIT, "--format", "json", code=4)
    assert "The model is on standard output" in result.stderr
    assert "Charged epsilon = 0.5 to study.db." in result.stderr
    monkeypatch.undo()
    Path("model.json").write_text(result.stdout, encoding="utf-8")
    assert confide.load("model.json").guarantee_.budget == confide.PureDP(0.5)


def test_a_report_that_cannot_be_written_says_that_the_model_was():
    """The model is where it was wanted; exit code 4."""
    Path("pages").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        full_disk(patch, "pages")
        line = line_of(*FIT, "--report", "pages/page.html", code=4)
    assert "cannot write pages/page.html" in line
    assert "Charged epsilon = 0.5 to study.db. The model is in model.json." in line
    assert confide.load("model.json").guarantee_.void is None


@pytest.mark.parametrize(
    ("error", "word"), [(NotCertified("not certified."), "not certified."), (MemoryError(), "MemoryError")]
)
def test_a_failure_after_the_charge_says_what_was_charged(monkeypatch, error, word):
    """Whatever failed; exit code 4, and no model."""

    def fail(*arguments):
        raise error

    monkeypatch.setattr("confide.training.fit.released", fail)
    line = line_of(*FIT, code=4)
    assert word in line
    assert line.endswith(" Charged epsilon = 0.5 to study.db. No model was written.\n")
    assert spent() == 0.5
    assert not Path("model.json").exists()


@pytest.mark.parametrize(
    ("place", "words", "cost"),
    [
        ("confide.cli.output.blocks_of_plan", "Nothing was charged. No model was written.", 0.0),
        ("confide.accounting.ledger.Ledger.charge", "A charge of epsilon = 0.5 to study.db may have been recorded", 0.0),
        ("confide.training.fit.released", "Charged epsilon = 0.5 to study.db. No model was written.", 0.5),
        ("confide.cli.charges.write_text", "Charged epsilon = 0.5 to study.db. The model is in rescued-model.json", 0.5),
        ("confide.cli.output.blocks_of_guarantee", "Charged epsilon = 0.5 to study.db. The model is in model.json.", 0.5),
    ],
)
def test_control_c_says_what_was_charged(monkeypatch, place, words, cost):
    """Before, during and after the charge, and after the file; exit code 130."""
    monkeypatch.setattr(place, interrupt)
    result = run(*FIT, code=130)
    assert result.stderr.startswith("error: stopped by control-C. ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert spent() == cost


def test_control_c_without_a_ledger_says_that_nothing_was_charged(monkeypatch):
    """In fit, and in a command that never charges."""
    run(*FIT)
    monkeypatch.setattr(AdditiveClassifier, "fit", interrupt)
    line = line_of(*FIT[:6], "--force", code=130)
    assert line == "error: stopped by control-C. No ledger was given, so nothing was charged. No model was written.\n"
    monkeypatch.setattr("confide.estimators.loading.load", interrupt)
    assert line_of("inspect", "model.json", code=130) == "error: stopped by control-C. Nothing was charged.\n"


def test_a_real_signal_says_what_was_charged():
    """SIGINT to a process that has charged and trains."""
    script = (
        "import time, confide.training.fit as fitting\n"
        "fitting.released = lambda *arguments: time.sleep(60)\n"
        f"import sys; sys.argv = ['confide', *{FIT!r}]\n"
        "from confide.cli import main; main()"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(confide.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, env=environment) as process:
        for _ in range(600):
            if spent() > 0.0:
                break
            time.sleep(0.1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, line = process.communicate(timeout=60)
    assert process.returncode == 130
    assert line == "error: stopped by control-C. Charged epsilon = 0.5 to study.db. No model was written.\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_mark_of_a_release_waits_until_the_model_is_written(number, monkeypatch):
    """Such a charge cannot be finished, so without its model the budget would be lost."""
    came, end = [], confide.Ledger.end

    def handler(number, frame):
        came.append(Path("model.json").exists())
        raise KeyboardInterrupt

    def stopped(ledger, charge, attempt):
        end(ledger, charge, attempt)
        os.kill(os.getpid(), number)

    before = signal.signal(number, handler)
    try:
        monkeypatch.setattr(confide.Ledger, "end", stopped)
        line = line_of(*FIT, code=130)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert came == [True]
    assert line == "error: stopped by control-C. Charged epsilon = 0.5 to study.db. The model is in model.json.\n"
    assert spent() == 0.5


OTHERS = {
    "evaluation": ("evaluate", "public.json", "people.csv", "--allow-hidden"),
    "description": ("describe", "people.csv", "--schema", "people.toml", "--force-budget"),
    "schema": ("bounds", "people.csv", "--column", "age:0:200", "--force-budget"),
}


@pytest.mark.parametrize("released", OTHERS)
def test_a_signal_after_the_mark_takes_effect_once_what_was_released_is_kept(released, monkeypatch):
    """It is not dropped: the command ends by it, and says where the evaluation, the description or the bounds are."""
    run("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--no-ledger", "--out", "public.json", "--force")
    end = Ledger.end

    def stopped(ledger, charge, attempt):
        end(ledger, charge, attempt)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Ledger, "end", stopped)
    result = run(*OTHERS[released], "--epsilon", "0.25", "--ledger", "study.db", code=130)
    place = {"evaluation": "above", "description": "in description.json", "schema": "in bounds.toml"}[released]
    line = f"error: stopped by control-C. Charged epsilon = 0.25 to study.db. The {released} is {place}."
    assert line in result.stderr
    assert ("accuracy" in result.stdout) if released == "evaluation" else Path(place.removeprefix("in ")).exists()


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "public.json", "people.csv", "--allow-hidden"),
        ("describe", "people.csv", "--schema", "people.toml", "--force-budget"),
        ("bounds", "people.csv", "--column", "age:0:200", "--force-budget"),
        ("search", "people.csv", "--schema", "people.toml", "--grid", "alpha=0.1,1", "--force-budget"),
    ],
    ids=lambda command: command[0],
)
@pytest.mark.filterwarnings("ignore")
def test_every_release_that_was_interrupted_is_finished_under_its_charge(monkeypatch, command):
    """The ledger shows it until then; a new charge is made only if it is not asked to finish."""
    run("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--no-ledger", "--out", "public.json", "--force")
    priced = (*command, "--epsilon", "0.25")
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "end", interrupt)
        assert "Charged epsilon = 0.25" in line_of(*priced, "--ledger", "study.db", code=130)
    shown = " ".join(run("ledger", "show", "study.db").stdout.split())
    assert "Nothing was released under the charges with these numbers" in shown
    assert json.loads(run("ledger", "show", "study.db", "--format", "json").stdout)["unfinished"] == [1]
    assert "give it with --ledger" in line_of(*priced, "--no-ledger", "--finish", code=2)
    found = " ".join(run(*priced, "--ledger", "study.db", "--finish").stdout.split())
    assert "Finished a charge of epsilon = 0.25 to study.db; nothing was charged anew" in found
    if command[0] != "search":
        assert "An earlier attempt at this release, under the same charge" in found
    assert spent() == 0.25
    assert "Not finished" not in run("ledger", "show", "study.db").stdout
    again = (*priced, "--ledger", "study.db", "--finish", *(() if command[0] == "evaluate" else ("--force",)))
    assert "nothing to be finished" in line_of(*again, code=2)


def test_a_run_that_is_stopped_again_does_not_say_that_it_finished_a_charge(monkeypatch):
    """It took the charge up, and another run can."""
    monkeypatch.setattr(Ledger, "end", interrupt)
    line_of(*FIT, code=130)
    stopped = line_of(*FIT, "--finish", code=130)
    assert "Took up a charge of epsilon = 0.5 to study.db; nothing was charged anew. No model was written." in stopped


def test_a_fit_ends_with_what_was_charged_and_what_is_left():
    """For people and for machines, with intervals too."""
    assert "Charged epsilon = 0.5 to study.db (epsilon = 1.5 left)." in run(*FIT).stdout
    document = json.loads(run(*FIT, "--force", "--format", "json").stdout)
    assert document["charge"] == {
        "ledger": "study.db",
        "charged": {"kind": "pure", "epsilon": 0.5},
        "remaining": {"kind": "pure", "epsilon": 1.0},
    }
    rows = [f"{17 + i % 70},{'high' if i % 70 > 30 else 'low'}" for i in range(9000)]
    Path("people.csv").write_text("\n".join(["age,income", *rows, ""]), encoding="utf-8")
    text = run(*FIT, "--epsilon", "0.75", "--intervals", "0.3", "--force").stdout
    assert "Charged epsilon = 0.75 to study.db (epsilon = 0.25 left)." in text
    assert spent() == 1.75


def test_a_fit_without_a_ledger_says_what_that_means():
    """In one sentence; null for machines. So does the demo."""
    assert "Charged to no ledger: nothing adds this release to others" in run(*FIT[:6]).stdout
    document = json.loads(run(*FIT[:6], "--force", "--format", "json").stdout)
    assert document["charge"] == {"ledger": None, "charged": None, "remaining": None}


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_infinite_epsilon_ends_with_3_after_the_model_is_written(form):
    """Its guarantee is void, as `confide inspect` says too; with a ledger nothing is written, for no limit admits it."""
    run(*FIT[:4], "--epsilon", "inf", "--format", form, code=3)
    assert confide.load("model.json").guarantee_.void is not None
    assert line_of(*FIT, "--epsilon", "inf", "--out", "other.json", "--format", form, code=3)
    assert not Path("other.json").exists()
    assert spent() == 0.0


def test_the_ledger_says_what_was_bought():
    """Purpose, release, user, file, and afterwards the checksum of that very file; amounts are those of the charge."""
    run(*FIT, "--purpose", "income by age", "--out", "income.json")
    (entry,) = confide.Ledger("study.db").entries().to_dict("records")
    assert (entry["purpose"], entry["release"], entry["model"]) == ("income by age", "AdditiveClassifier.fit", "income.json")
    assert entry["user"] == current_user() != ""
    assert entry["sha256"] == hashlib.sha256(Path("income.json").read_bytes()).hexdigest()
    assert spent() == 0.5
    shown = run("ledger", "show", "study.db").stdout
    assert f"sha256  {entry['sha256']}" in shown
    assert "charged by" in shown


def test_a_void_release_is_marked_beside_a_purpose_of_the_user():
    """Whoever reads the purposes alone sees it."""
    run(*FIT, "--purpose", "income by age", "--seed", "3", code=3)
    (entry,) = confide.Ledger("study.db").entries().to_dict("records")
    assert entry["purpose"] == "income by age (void: random_state was set)"
    assert entry["release"] == "AdditiveClassifier.fit (void: random_state was set)"


def test_details_are_there_before_the_release(monkeypatch):
    """A fit that fails after its charge leaves purpose and file in the ledger, and no checksum."""
    monkeypatch.setattr("confide.training.fit.released", interrupt)
    run(*FIT, "--purpose", "income by age", code=130)
    (entry,) = confide.Ledger("study.db").entries().to_dict("records")
    assert (entry["purpose"], entry["model"], entry["sha256"]) == ("income by age", "model.json", None)


def test_a_checksum_that_cannot_be_noted_changes_neither_charge_nor_model(monkeypatch):
    """It is said on standard error."""

    def fail(*arguments):
        raise LedgerError("the database is gone.")

    monkeypatch.setattr("confide.accounting.ledger.Ledger.note", fail)
    result = run(*FIT)
    assert "its checksum could not be noted" in result.stderr
    assert spent() == 0.5
    assert confide.load("model.json").guarantee_.void is None


def test_a_fit_ends_with_where_the_budget_went():
    """What was charged, what is left, and what it paid for."""
    text = " ".join(run(*FIT).stdout.split())
    assert "Charged epsilon = 0.5 to study.db (epsilon = 1.5 left). All of the budget goes to the weights." in text


def test_a_ledger_for_persons_with_fewer_rows_brings_a_warning(folder_with_ledger, capsys):
    """Before anything is charged, and only then."""
    Charges("study.db", rows=1)
    assert capsys.readouterr().err == ""
    Charges("study.db", rows=2)
    assert "open a ledger with --max-rows-per-person 2" in capsys.readouterr().err
    assert Ledger("study.db").spent().epsilon == 0.0
    two = run(
        "fit", "people.csv", "--schema", "people.toml", "--epsilon", 1, "--ledger", "study.db", "--max-rows-per-person", 2
    )
    assert "warning: study.db: The ledger counts what persons with at most 1 row pay" in two.stderr


SPENDING = {
    "fit": ("fit", "people.csv", "--schema", "people.toml"),
    "describe": ("describe", "people.csv", "--schema", "people.toml", "--column", "age"),
    "bounds": ("bounds", "people.csv", "--column", "age:0:150"),
    "search": ("search", "people.csv", "--schema", "people.toml", "--grid", "knots=2,4"),
    "evaluate": ("evaluate", "model.json", "people.csv"),
}


@pytest.mark.parametrize("command", list(SPENDING))
def test_a_release_without_a_ledger_is_warned_of_unless_it_is_meant(command):
    """In every command that spends; --no-ledger says that it is meant, and both options contradict each other."""
    write_few_people(2_000)
    if command == "evaluate":
        run(*SPENDING["fit"], "--epsilon", 2, "--no-ledger")
    asked = (*SPENDING[command], "--epsilon", 2, "--force")
    warned = run(*asked).stderr
    assert "warning: no ledger was given, so nothing records what this spent." in warned
    assert "confide ledger init study.db" in warned
    assert "no ledger was given" not in run(*asked, "--no-ledger").stderr
    assert "no ledger was given" not in run(*asked, "--ledger", "other.db", code=2).stderr
    assert "give either --ledger or --no-ledger" in line_of(*asked, "--ledger", "study.db", "--no-ledger", code=2)


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2)])
def test_in_a_terminal_a_release_without_a_ledger_is_asked_for(monkeypatch, answer, code):
    """No ends the command before anything is charged, and says what to do."""
    monkeypatch.setattr("confide.cli.charges.is_dialogue", lambda: True)
    result = CliRunner().invoke(app, [*SPENDING["fit"], "--epsilon", "2"], input=f"{answer}\n", prog_name="confide")
    assert result.exit_code == code
    assert "Go on without one?" in result.output
    assert Path("model.json").exists() == (answer == "y")
    assert ("give --no-ledger" in result.output) == (answer == "n")


@pytest.mark.parametrize("command", ["fit", "describe", "bounds", "search"])
@pytest.mark.parametrize(("n_rows", "epsilon"), [(20, 0.5), (2_000, 0.001)])
def test_a_budget_that_buys_nothing_is_refused_before_the_charge(command, n_rows, epsilon):
    """Of 20 rows or at a tiny epsilon, unless it is forced."""
    write_few_people(n_rows)
    asked = (*SPENDING[command], "--epsilon", epsilon, "--ledger", "study.db")
    said = line_of(*asked, code=2)
    assert "The noise hides what these rows say" in said
    assert "Nothing was charged. To charge it all the same, give --force-budget." in said
    assert spent() == 0.0
    run(*asked, "--force-budget")
    assert spent() == pytest.approx(epsilon)


def test_the_verdict_on_the_plan_is_shown_before_the_charge():
    """For people and for programs, without the forecast that would take longer than a fit."""
    assert "Verdict, from public facts alone" in run(*FIT).stdout
    found = json.loads(run(*FIT, "--force", "--format", "json").stdout)
    assert found["verdict"]["rows"] in ("enough", "few", "too few")
    assert found["verdict"]["expected_error"] is None
