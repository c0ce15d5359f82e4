"""What commands refuse to write over, decided before a charge."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import confide
from confide import Ledger
from confide.datasets import SplitData, load_adult
from tests.cli.commands import FIT, fit, line_of, refused, run

pytestmark = pytest.mark.usefixtures("folder_with_ledger")


def refused_before_charge(*arguments):
    """The line of a command that fails before the charge: the ledger holds nothing, and no file is left behind."""
    before = sorted(path for path in Path().rglob("*") if "study.db" not in path.name)
    line = line_of(*arguments, code=2)
    assert Ledger("study.db").spent().epsilon == 0.0
    assert sorted(path for path in Path().rglob("*") if "study.db" not in path.name) == before
    return line


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
    assert words in refused_before_charge(*FIT, option, name)
    assert Path("there.html").read_text(encoding="utf-8") == "mine"


def test_no_output_is_an_input_or_the_other_output():
    """Not even with --force: data, schema, ledger, its log, and one path given twice."""
    for name in ("people.csv", "./people.toml", "study.db", "study.db-wal", "study.db-shm"):
        assert "would be lost" in refused_before_charge(*FIT, "--out", name, "--force")
    assert "would be lost" in refused_before_charge(*FIT, "--out", "one.html", "--report", "./one.html", "--force")
    assert Ledger("study.db").verify() == 0


def test_no_output_is_an_input_that_is_read_through_a_private_file():
    """A schema that says how cells are written has rows read through a copy, which is not what would be lost."""
    schema, rows = Path("people.toml").read_text(encoding="utf-8"), Path("people.csv").read_bytes()
    Path("people.toml").write_text(f'table = {{ encoding = "utf-8" }}\n{schema}', encoding="utf-8")
    for name in ("people.csv", "./people.csv", str(Path("people.csv").resolve())):
        assert "would be lost" in refused_before_charge(*FIT, "--out", name, "--force")
    assert Path("people.csv").read_bytes() == rows


def test_a_folder_that_may_not_be_written_is_refused_before_the_charge(monkeypatch):
    """A file is really created there and removed: permission bits tell too little."""
    make = os.open

    def fail(path, *arguments, **options):
        if Path(path).parent.name == "closed":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return make(path, *arguments, **options)

    monkeypatch.setattr(os, "open", fail)
    Path("closed").mkdir()
    assert "Read-only file system" in refused_before_charge(*FIT, "--out", "closed/model.json")
    assert "Read-only file system" in refused_before_charge(*FIT, "--report", "closed/page.html")


def test_a_file_without_write_permission_is_never_replaced():
    """Not even with --force, nor by the superuser."""
    for name, arguments in (("model.json", FIT), ("page.html", (*FIT, "--report", "page.html"))):
        Path(name).write_text("mine", encoding="utf-8")
        Path(name).chmod(0o444)
        assert "exists already" in refused_before_charge(*arguments)
        assert "no write permission" in refused_before_charge(*arguments, "--force")
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

    monkeypatch.setattr("confide.cli.output.write_csv", fail)
    line = line_of("predict", "model.json", "people.csv", "--out", "scored.csv", "--force", code=2)
    assert "No space left" in line
    assert Path("scored.csv").read_text(encoding="utf-8") == "mine"
    assert not list(Path().glob(".confide*"))


def test_outputs_never_replace_inputs(folder_with_ledger):
    """Refused before any work, like an output that could not be written."""
    before = Path("people.csv").read_bytes()
    for out, advice in [("people.csv", "would be lost"), ("./people.toml", "would be lost"), ("no/m.json", "folder")]:
        assert advice in refused("fit", "people.csv", "--schema", "people.toml", "--epsilon", 1, "--out", out)
    fit()
    assert "would be lost" in refused("predict", "model.json", "people.csv", "--out", "people.csv")
    assert "must end in" in refused("predict", "model.json", "people.csv", "--out", "model.json")
    assert "folder" in refused("predict", "model.json", "people.csv", "--out", "no/scored.csv")
    assert Path("people.csv").read_bytes() == before
