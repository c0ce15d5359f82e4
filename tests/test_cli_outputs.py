"""What commands write, what they refuse to write over, and what they say was charged; all of it decided before a charge."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import confide
from confide import Ledger, LogisticRegression
from confide.cli import app
from confide.datasets import SplitData, load_adult
from confide.errors import NotCertified

SCHEMA = """
target = { column = "income", negative = "low", positive = "high" }
[columns]
age = { low = 17, high = 90 }
"""
FIT = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "0.5", "--ledger", "study.db")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with people.csv, people.toml and a ledger of epsilon 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CONFIDE_DEBUG", raising=False)
    rows = [f"{17 + i % 70},{'high' if i % 70 > 30 else 'low'}" for i in range(140)]
    Path("people.csv").write_text("\n".join(["age,income", *rows, ""]), encoding="utf-8")
    Path("people.toml").write_text(SCHEMA, encoding="utf-8")
    Ledger("study.db", limit=2.0)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="confide")
    assert result.exit_code == code, result.output
    return result


def line_of(*arguments, code):
    """The one line of a command that fails."""
    result = run(*arguments, code=code)
    assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
    return result.stderr


def refused(*arguments):
    """The line of a command that fails before the charge: the ledger holds nothing, and no file is left behind."""
    before = sorted(path for path in Path().rglob("*") if "study.db" not in path.name)
    line = line_of(*arguments, code=2)
    assert Ledger("study.db").spent().epsilon == 0.0
    assert sorted(path for path in Path().rglob("*") if "study.db" not in path.name) == before
    return line


def full_disk(monkeypatch, *folders):
    """Writing fails in these folders, as on a full disk; files can still be created there."""
    write = Path.write_text

    def fail(path, *arguments, **options):
        if path.parent.resolve() in [Path(folder).resolve() for folder in folders]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fail)


def spent():
    return Ledger("study.db").spent().epsilon


# Refusals before the charge


@pytest.mark.parametrize("option", ["--out", "--report"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere/it.html", "folder does not exist"),
        ("folder.html", "is a folder"),
        ("people.csv/it.html", "cannot write"),
        ("circle.html", "cannot write"),
        ("pipe.html", "not an ordinary file"),
        (f"{'x' * 300}.html", "cannot write"),
        ("there.html", "exists already"),
        ("link.html", "exists already"),
        ("dangling.html", "exists already"),
        ("data.html", "would be lost"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_charge(option, name, words):
    """Whatever is wrong with it: folder, kind, name, a file that is there, an input by another name."""
    Path("folder.html").mkdir()
    Path("circle.html").symlink_to("circle.html")
    os.mkfifo("pipe.html")
    Path("there.html").write_text("mine", encoding="utf-8")
    Path("link.html").symlink_to("there.html")
    Path("dangling.html").symlink_to("nowhere.html")
    Path("data.html").hardlink_to("people.csv")
    assert words in refused(*FIT, option, name)
    assert Path("there.html").read_text(encoding="utf-8") == "mine"


def test_no_output_is_an_input_or_the_other_output():
    """Not even with --force: data, schema, ledger, its log, and one path given twice."""
    for name in ("people.csv", "./people.toml", "study.db", "study.db-wal", "study.db-shm"):
        assert "would be lost" in refused(*FIT, "--out", name, "--force")
    assert "would be lost" in refused(*FIT, "--out", "one.html", "--report", "./one.html", "--force")
    assert Ledger("study.db").verify() == 0


def test_a_folder_that_may_not_be_written_is_refused_before_the_charge(monkeypatch):
    """A file is really created there and removed: permission bits tell too little."""
    make = tempfile.mkstemp

    def fail(*arguments, **options):
        if Path(options.get("dir", "")).name == "closed":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return make(*arguments, **options)

    monkeypatch.setattr(tempfile, "mkstemp", fail)
    Path("closed").mkdir()
    assert "Read-only file system" in refused(*FIT, "--out", "closed/model.json")
    assert "Read-only file system" in refused(*FIT, "--report", "closed/page.html")


def test_a_file_without_write_permission_is_never_replaced():
    """Not even with --force, nor by the superuser."""
    for name, arguments in (("model.json", FIT), ("page.html", (*FIT, "--report", "page.html"))):
        Path(name).write_text("mine", encoding="utf-8")
        Path(name).chmod(0o444)
        assert "exists already" in refused(*arguments)
        assert "no write permission" in refused(*arguments, "--force")
        assert Path(name).read_text(encoding="utf-8") == "mine"
        Path(name).unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is played by the superuser alone")
def test_another_user_is_refused_before_the_charge():
    """In a folder, and over a file, that belong to somebody else."""
    with tempfile.TemporaryDirectory() as place:
        for name in ("people.csv", "people.toml", "study.db"):
            Path(place, name).write_bytes(Path(name).read_bytes())
            os.chown(Path(place, name), 65534, 65534)
        Path(place, "theirs").mkdir()
        Path(place, "model.json").write_text("theirs", encoding="utf-8")
        Path(place, "model.json").chmod(0o644)
        Path(place, "theirs").chmod(0o755)
        Path(place).chmod(0o777)
        for options, words in (
            (("--out", "theirs/model.json"), "Permission denied"),
            (("--force",), "no write permission"),
        ):
            # The other user may not read Python's own files, so all is imported by a first fit.
            script = (
                "import os, sys; from typer.testing import CliRunner; from confide.cli import app, main\n"
                f"CliRunner().invoke(app, {FIT[:6]!r} + ('--out', 'first.json', '--force'))\n"
                "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
                f"sys.argv = ['confide', *{FIT + options!r}]; main()"
            )
            environment = os.environ | {"PYTHONPATH": str(Path(confide.__file__).parents[1])}
            command = [sys.executable, "-c", script]
            done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
            assert Path(place, "first.json").exists()
            assert (done.returncode, words in done.stderr) == (2, True), done.stderr
        assert Ledger(Path(place, "study.db")).spent().epsilon == 0.0


@pytest.mark.parametrize("command", ["fit", "predict", "report", "demo"])
def test_every_command_replaces_a_file_with_force_alone(command, monkeypatch):
    """In one step, with the permissions of the old one; without it the file is as it was."""
    adult = load_adult()
    few = SplitData(adult.X_train[:300], adult.y_train[:300], adult.X_test[:300], adult.y_test[:300], adult.schema)
    monkeypatch.setattr("confide.datasets.load_adult", lambda: few)
    run(*FIT, "--out", "first.json")
    name = {"report": "it.html", "predict": "it.csv"}.get(command, "it.json")
    arguments = {
        "fit": FIT[:6],
        "predict": ("predict", "first.json", "people.csv"),
        "report": ("report", "first.json"),
        "demo": ("demo",),
    }[command]
    Path(name).write_text("mine", encoding="utf-8")
    Path(name).chmod(0o640)
    assert "exists already" in line_of(*arguments, "--out", name, code=2)
    assert Path(name).read_text(encoding="utf-8") == "mine"
    run(*arguments, "--out", name, "--force")
    assert Path(name).read_text(encoding="utf-8") != "mine"
    assert stat.S_IMODE(Path(name).stat().st_mode) == 0o640
    assert not list(Path().glob("*.part")) + list(Path().glob(".confide*"))


def test_predictions_that_cannot_be_finished_leave_the_old_file(monkeypatch):
    """One line, and no half of a table."""
    run(*FIT)
    Path("scored.csv").write_text("mine", encoding="utf-8")

    def fail(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("confide.cli.tables.write_csv", fail)
    line = line_of("predict", "model.json", "people.csv", "--out", "scored.csv", "--force", code=2)
    assert "No space left" in line
    assert Path("scored.csv").read_text(encoding="utf-8") == "mine"
    assert not list(Path().glob(".confide*"))


# Failures after the charge


def test_a_full_disk_says_what_was_charged_and_leaves_the_model_elsewhere(monkeypatch, folder):
    """Beside its place, else where the command runs, else in the temporary folder; exit code 4."""
    for name in ("out", "temporary"):
        Path(name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
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
    fit = LogisticRegression.fit

    def meanwhile(model, *arguments):
        Path("model.json").write_text("theirs", encoding="utf-8")
        return fit(model, *arguments)

    monkeypatch.setattr(LogisticRegression, "fit", meanwhile)
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

    monkeypatch.setattr("confide.estimators.linear.release_by", fail)
    line = line_of(*FIT, code=4)
    assert word in line
    assert line.endswith(" Charged epsilon = 0.5 to study.db. No model was written.\n")
    assert spent() == 0.5
    assert not Path("model.json").exists()


# Control-C


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "words", "cost"),
    [
        ("confide.cli.display.Screen.plan", "Nothing was charged. No model was written.", 0.0),
        ("confide.accounting.ledger.Ledger.charge", "A charge of epsilon = 0.5 to study.db may have been recorded", 0.0),
        ("confide.estimators.linear.release_by", "Charged epsilon = 0.5 to study.db. No model was written.", 0.5),
        ("confide.cli.charges.write_text", "Charged epsilon = 0.5 to study.db. No model was written.", 0.5),
        ("confide.cli.display.Screen.guarantee", "Charged epsilon = 0.5 to study.db. The model is in model.json.", 0.5),
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
    monkeypatch.setattr(LogisticRegression, "fit", interrupt)
    line = line_of(*FIT[:6], "--force", code=130)
    assert line == "error: stopped by control-C. No ledger was given, so nothing was charged. No model was written.\n"
    monkeypatch.setattr("confide.estimators.persistence.load", interrupt)
    assert line_of("inspect", "model.json", code=130) == "error: stopped by control-C. Nothing was charged.\n"


def test_a_real_signal_says_what_was_charged():
    """SIGINT to a process that has charged and trains."""
    script = (
        "import time, confide.estimators.fitting as fitting\n"
        "fitting.release_by = lambda *arguments: time.sleep(60)\n"
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


# Where the budget went


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
