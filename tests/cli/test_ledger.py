"""`confide ledger`, and `confide fit --ledger`."""

from __future__ import annotations

import contextlib
import csv
import json
import multiprocessing
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import confide
from confide import Ledger
from confide.cli.application import app
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from tests.cli.commands import refused, run, write_few_people


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with people.csv and people.toml, 80 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CONFIDE_DEBUG", raising=False)
    write_few_people()


def fit(*options, code=0):
    """Fit without the defaults that other tests share."""
    return run("fit", "people.csv", "--schema", "people.toml", *options, code=code)


@pytest.mark.parametrize(
    "command", [("ledger",), *(("ledger", name) for name in ("init", "show", "verify", "charge", "sublimit", "page"))]
)
def test_each_command_has_help_with_an_example(command):
    """The help fits 80 columns."""
    text = run(*command, "-h").stdout
    assert "Example:\n    confide ledger" in text
    assert max(map(len, text.splitlines())) <= 80
    if command == ("ledger",):
        assert run("ledger").stdout == text
        assert re.findall(r"^  (\w+) +[A-Z]", text.partition("Commands:\n")[2], re.MULTILINE) == [
            "init",
            "show",
            "verify",
            "charge",
            "sublimit",
            "page",
        ]


def test_help_needs_none_of_the_heavy_packages():
    """So that it appears at once."""
    script = "import sys, confide.cli; print(*sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(confide.__file__).parents[1])}
    command = [sys.executable, "-c", script]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.split()
    assert {"sqlite3", "pandas", "numpy", "rich", "confide.accounting.ledger"}.isdisjoint(loaded)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (("--epsilon", "4"), PureDP(4.0)),
        (("--epsilon", "4", "--delta", "1e-6"), ApproxDP(4.0, 1e-6)),
        (("--rho", "0.5"), ZCDP(0.5)),
    ],
)
def test_init_creates_a_ledger(options, limit):
    """With the limit that was asked for."""
    text = run("ledger", "init", "study.db", *options).stdout
    assert text.startswith("Created study.db.\n")
    assert str(limit) in " ".join(text.split())
    ledger = Ledger("study.db")
    assert ledger.limit == limit
    assert ledger.neighbours == "replace-one"


def test_init_fixes_relation_and_accounting():
    """Where they are given."""
    options = ("--neighbours", "add-or-remove-one", "--accounting", "renyi")
    run("ledger", "init", "study.db", "--epsilon", 1, "--delta", "1e-6", *options)
    ledger = Ledger("study.db")
    assert (ledger.neighbours, ledger.accounting) == ("add-or-remove-one", "renyi")


def test_init_fixes_the_persons_and_show_names_them():
    """One row a person unless told; rows of single charges are shown where they differ."""
    assert "for persons with at most 1 row." in " ".join(run("ledger", "init", "one.db", "--epsilon", 1).stdout.split())
    text = run("ledger", "init", "study.db", "--epsilon", 1, "--max-rows-per-person", 5).stdout
    assert "for persons with at most 5 rows." in " ".join(text.split())
    ledger = Ledger("study.db")
    assert ledger.max_rows_per_person == 5
    ledger.charge(0.25)
    text = run("ledger", "show", "study.db").stdout
    assert text.startswith("study.db: replace-one, persons with at most 5 rows, accounting sum\n")
    assert "rows_per_person" not in text
    assert json.loads(run("ledger", "show", "study.db", "--format", "json").stdout)["max_rows_per_person"] == 5
    assert "--max-rows-per-person 5" in fit("--ledger", "study.db", "--epsilon", 0.25, code=2).stderr
    fit("--ledger", "study.db", "--epsilon", 0.25, "--max-rows-per-person", 6, "--force-budget")
    assert "rows_per_person" in run("ledger", "show", "study.db").stdout
    assert "--max-rows-per-person" in refused("ledger", "init", "new.db", "--epsilon", 1, "--max-rows-per-person", 0)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ((), "either --epsilon"),
        (("--epsilon", "1", "--rho", "1"), "--epsilon and --rho both state the limit; give one of them"),
        (("--delta", "1e-6"), "either --epsilon"),
        (("--rho", "1", "--delta", "1e-6"), "either --epsilon"),
        (("--epsilon", "0"), "epsilon must be"),
        (("--epsilon", "inf"), "must be finite"),
        (("--epsilon", "nan"), "epsilon must be"),
        (("--epsilon", "1", "--delta", "2"), "delta must be"),
        (("--epsilon", "1", "--accounting", "best"), "'--accounting'"),
    ],
)
def test_init_refuses_what_is_no_limit(options, advice):
    """In one line, and creates nothing."""
    assert advice in refused("ledger", "init", "study.db", *options)
    assert not Path("study.db").exists()


def test_init_never_replaces_a_file():
    """Not even a ledger with the same limit, nor a link that leads nowhere."""
    run("ledger", "init", "study.db", "--epsilon", 1)
    Path("link.db").symlink_to("nowhere.db")
    for name in ("study.db", "people.csv", "link.db"):
        assert "exists already" in refused("ledger", "init", name, "--epsilon", 1)


def test_show_tells_limit_spent_remaining_and_charges():
    """With the columns that the charges have."""
    ledger = Ledger("study.db", limit=ApproxDP(4.0, 1e-6))
    assert "No charges yet" in run("ledger", "show", "study.db").stdout
    ledger.charge(0.5, purpose="mean age")
    ledger.charge(ApproxDP(0.25, 1e-7), purpose="a [red]fit[/red]\x1b[31m")
    text = run("ledger", "show", "study.db").stdout
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert rows["limit"] == ["4", "1e-06"]
    assert rows["spent"] == ["0.75", "1e-07"]
    assert rows["remaining"] == ["3.25", "9e-07"]
    assert rows["number"] == ["time", "purpose", "epsilon", "delta"]
    assert rows["1"][2:] == ["UTC", "mean", "age", "0.5"]
    assert "a [red]fit[/red]?[31m" in text
    assert "accounting sum" in text


def test_show_keeps_a_charge_on_one_line(monkeypatch):
    """However long its purpose, where nothing sets a width: lines can be searched. Words stand to the left."""
    monkeypatch.delenv("COLUMNS")
    purpose = "the third of several models of income by age, occupation and education, " * 3
    ledger = Ledger("study.db", limit=1.0)
    ledger.charge(0.25, purpose=purpose.strip())
    ledger.charge(0.5, purpose="short")
    lines = run("ledger", "show", "study.db").stdout.splitlines()
    long, short = (next(line for line in lines if line.startswith(number)) for number in ("1 ", "2 "))
    assert purpose.strip() in long
    assert long.index("the third") == short.index("short")
    assert long.rstrip().endswith("0.25")


def test_a_ledger_that_may_not_be_written_can_be_shown(monkeypatch):
    """By a user without permission to write file or folder; nothing is created, and a charge is refused with advice."""
    Ledger("study.db", limit=1.0).charge(0.25, purpose="mean")
    before = Path("study.db").read_bytes()
    monkeypatch.setattr(
        os, "access", lambda path, mode, **options: mode != os.W_OK
    )  # the superuser may write whatever it says
    assert "mean" in run("ledger", "show", "study.db").stdout
    assert run("ledger", "verify", "study.db").exit_code == 0
    assert Path("study.db").read_bytes() == before
    assert not list(Path().glob("study.db-*"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only the superuser can become another user")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("left", [(), ("-wal", "-shm"), ("-wal",)])
@pytest.mark.parametrize(("mode_of_file", "mode_of_folder"), [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
def test_another_user_who_may_only_read_is_shown_every_charge(left, mode_of_file, mode_of_folder):
    """Also those that a crash left in the log, with its index or without; nothing is left behind."""
    with tempfile.TemporaryDirectory() as name:
        folder, own = Path(name) / "shared", Path(name) / "study.db"
        folder.mkdir()
        ledger = Ledger(own, limit=1.0)
        with contextlib.closing(sqlite3.connect(own)) as connection:
            connection.execute("SELECT * FROM tip").fetchall()  # the last to close moves the log into the file
            if not left:
                connection.close()
            ledger.charge(0.25, purpose="mean")
            for ending in ("", *left):
                shutil.copy(f"{own}{ending}", folder)
        Path(name).chmod(0o755)
        files = sorted(folder.iterdir())
        for file in files:
            file.chmod(mode_of_file)
        folder.chmod(mode_of_folder)
        run("ledger", "show", own)  # imports what another user may not be able to read

        def show(queue):
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            shown = CliRunner().invoke(app, ["ledger", "show", str(folder / "study.db")])
            queue.put((shown.exit_code, shown.output))

        fork = multiprocessing.get_context("fork")
        queue = fork.Queue()
        child = fork.Process(target=show, args=(queue,))
        child.start()
        code, text = queue.get(timeout=60)
        child.join()
        assert code == 0, text
        assert re.search(r"^spent +0\.25$", text, re.MULTILINE)
        assert "mean" in text
        assert sorted(folder.iterdir()) == files
        folder.chmod(0o700)


def test_a_ledger_that_others_write_meanwhile_is_not_shown(monkeypatch):
    """Read without locks, its change is seen afterwards, and the reader is told to try again."""
    Ledger("study.db", limit=1.0).charge(0.25, purpose="mean")
    monkeypatch.setattr(os, "access", lambda path, mode, **options: mode != os.W_OK)
    take = Ledger._take

    def take_while_others_write(self, record):
        os.utime("study.db", ns=(1, record.number))
        return take(self, record)

    monkeypatch.setattr(Ledger, "_take", take_while_others_write)
    assert "Try again" in refused("ledger", "show", "study.db")


def test_show_speaks_json():
    """One document; numbers that are absent are null."""
    ledger = Ledger("study.db", limit=ZCDP(1.0))
    ledger.charge(ZCDP(0.25), purpose="fit")
    document = json.loads(run("ledger", "show", "study.db", "--format", "json").stdout)
    assert document["limit"] == {"kind": "zcdp", "rho": 1.0}
    assert document["spent"] == {"kind": "zcdp", "rho": 0.25}
    assert document["remaining"] == {"kind": "zcdp", "rho": 0.75}
    assert document["head"] == ledger.head
    (entry,) = document["entries"]
    assert entry.pop("time").endswith("+00:00")
    facts = {
        "number": 1,
        "purpose": "fit",
        "epsilon": None,
        "delta": None,
        "rho": 0.25,
        "rows_per_person": 1,
        "cohort": None,
    }
    assert entry == facts | dict.fromkeys(("release", "user", "model", "sha256"))


@pytest.mark.parametrize("command", ["show", "verify"])
def test_what_is_no_ledger_is_refused(command):
    """Exit code 2, and nothing is created."""
    assert "is missing" in refused("ledger", command, "study.db")
    assert "is not a ledger of confide" in refused("ledger", command, "people.csv")
    assert not Path("study.db").exists()


def test_verify_shows_the_head_and_knows_earlier_ones():
    """Exit code 0; a head that is not in the chain gives 2."""
    ledger = Ledger("study.db", limit=1.0)
    ledger.charge(0.25)
    earlier = ledger.head
    ledger.charge(0.25)
    text = run("ledger", "verify", "study.db").stdout
    assert text == f"study.db: the chain is whole; charges: 2\nhead: {ledger.head}\n"
    assert "the given head among them" in run("ledger", "verify", "study.db", "--head", f" {earlier.upper()}").stdout
    assert "newer copy" in refused("ledger", "verify", "study.db", "--head", "0" * 64)
    document = json.loads(run("ledger", "verify", "study.db", "--format", "json").stdout)
    assert document == {"ledger": "study.db", "charges": 2, "head": ledger.head}


def test_verify_finds_damage():
    """Exit code 2."""
    Ledger("study.db", limit=1.0).charge(0.25, purpose="fit")
    whole = Path("study.db").read_bytes()
    Path("study.db").write_bytes(whole.replace(b'"purpose":"fit"', b'"purpose":"fat"'))
    assert "damaged" in refused("ledger", "verify", "study.db")


def test_fit_charges_the_ledger_until_it_is_used_up():
    """Exit code 3 where too little is left; then no model is written."""
    run("ledger", "init", "study.db", "--epsilon", "1.5")
    fit("--epsilon", 1, "--ledger", "study.db")
    assert Ledger("study.db").spent() == PureDP(1.0)
    Path("model.json").unlink()
    line = fit("--epsilon", 1, "--ledger", "study.db", code=3).stderr
    assert "asks for epsilon 1; the ledger has epsilon 0.5 left" in line
    assert not Path("model.json").exists()
    assert Ledger("study.db").entries()["purpose"].tolist() == ["AdditiveClassifier.fit"]


def test_fit_only_opens_a_ledger_and_never_writes_over_it():
    """A missing one is refused before the data are read."""
    line = refused("fit", "people.csv", "--schema", "people.toml", "--epsilon", 1, "--ledger", "study.db")
    assert "confide ledger init" in line
    assert not Path("study.db").exists()
    run("ledger", "init", "study.db", "--epsilon", "1")
    options = ("people.csv", "--schema", "people.toml", "--epsilon", 1, "--ledger", "study.db")
    assert "would be lost" in refused("fit", *options, "--out", "study.db")
    result = run("fit", *options, "--neighbours", "add-or-remove-one", "--n-rows-bounds", 100, 200, code=2)
    assert "one ledger for each relation" in result.stderr
    assert Ledger("study.db").verify() == 0


def test_a_charge_by_hand_is_for_what_is_released_elsewhere():
    """With its purpose; refused beyond the limit and in a currency that does not fit, in words of options."""
    run("ledger", "init", "study.db", "--epsilon", 1, "--delta", "1e-6", "--accounting", "sum")
    shown = run("ledger", "charge", "study.db", "--epsilon", "0.25", "--purpose", "mean age").stdout
    assert shown == "Charged epsilon = 0.25 to study.db (epsilon = 0.75, delta = 1e-06 left).\n"
    document = json.loads(
        run(
            *("ledger", "charge", "study.db", "--epsilon", "0.25", "--delta", "1e-7", "--purpose", "median"),
            *("--format", "json"),
        ).stdout
    )
    assert document["number"] == 2
    assert document["remaining"] == {"kind": "approximate", "epsilon": 0.5, "delta": 9e-07}
    assert Ledger("study.db").entries()["release"].tolist() == ["charged by hand"] * 2
    charge = ("ledger", "charge", "study.db", "--purpose", "more")
    assert "Lower --epsilon or --rho; a limit is fixed once." in refused(*charge, "--epsilon", 9, code=3)
    assert "made with --accounting renyi" in refused(*charge, "--rho", "0.1")
    assert "counts replace-one" in refused(*charge, "--epsilon", "0.1", "--neighbours", "add-or-remove-one")
    assert "--purpose" in refused("ledger", "charge", "study.db", "--epsilon", "0.1")
    assert Ledger("study.db").verify() == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon", 1), "charges of --epsilon without --delta, and no others"),
        (("--epsilon", 1, "--delta", "1e-6"), "The first charge decides for good how charges add up"),
        (
            ("--epsilon", 1, "--delta", "1e-6", "--accounting", "sum"),
            "so do their deltas. A charge of --rho is refused.",
        ),
        (("--epsilon", 1, "--delta", "1e-6", "--accounting", "renyi"), "Rényi divergences of all charges add up"),
        (("--rho", 1), "Rényi divergences of all charges add up"),
    ],
)
def test_init_explains_how_charges_add_up(options, words):
    """In two sentences."""
    assert words in " ".join(run("ledger", "init", "study.db", *options).stdout.split())


@pytest.mark.parametrize(("answer", "accounting"), [("renyi", "renyi"), ("", "sum"), ("both", None)])
def test_init_asks_in_a_terminal(monkeypatch, answer, accounting):
    """Where there is a choice and none was made; another answer creates nothing."""
    monkeypatch.setattr("confide.cli.ledger.is_dialogue", lambda: True)
    arguments = ["ledger", "init", "study.db", "--epsilon", "1", "--delta", "1e-6"]
    result = CliRunner().invoke(app, arguments, input=f"{answer}\n", prog_name="confide")
    assert "How shall charges add up?" in result.stdout
    if accounting is None:
        assert (result.exit_code, Path("study.db").exists()) == (2, False)
        assert "must be sum or renyi" in result.stderr
    else:
        assert Ledger("study.db").accounting == accounting
    assert "How shall" not in run("ledger", "init", "pure.db", "--epsilon", 1).stdout


def test_no_advice_contradicts_a_rule():
    """What a refusal proposes is possible: what is said to be left can be charged."""
    for accounting in ("sum", "renyi"):
        ledger = Ledger(f"{accounting}.db", limit=ApproxDP(1.0, 1e-6), accounting=accounting)
        ledger.charge(0.25)
        left = ledger.remaining()
        line = refused("ledger", "charge", f"{accounting}.db", "--epsilon", 9, "--purpose", "x", code=3)
        assert f"epsilon {left.epsilon:g}" in line
        run("ledger", "charge", f"{accounting}.db", "--epsilon", 0.99 * left.epsilon, "--purpose", "x")


def test_a_sublimit_is_made_shown_and_kept():
    """In text and JSON; a charge beyond it is refused with exit code 3, and the charges are there as CSV."""
    run("ledger", "init", "study.db", "--epsilon", "4")
    shown = run("ledger", "sublimit", "study.db", "--purpose", "Waiting times", "--epsilon", "1", "--per-year").stdout
    assert re.search(r"^Waiting times  each year +1 +0 +1$", shown, re.MULTILINE)
    run("ledger", "charge", "study.db", "--purpose", "Waiting times, release 1", "--epsilon", "0.75")
    told = run("ledger", "charge", "study.db", "--purpose", "Waiting times", "--epsilon", "0.5", code=3).stderr
    assert 'the purpose "Waiting times" has epsilon 0.25 left of epsilon 1' in told
    (own,) = json.loads(run("ledger", "show", "study.db", "--format", "json").stdout)["sublimits"]
    assert own == {"purpose": "Waiting times", "per_year": True, "limit": 1.0, "spent": 0.75, "remaining": 0.25}
    lines = run("ledger", "show", "study.db", "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("number,time,purpose,epsilon,delta,rho,rows_per_person")
    assert '"Waiting times, release 1",0.75,,,1,,charged by hand' in lines[1]
    assert len(lines) == 2
    run("ledger", "charge", "study.db", "--purpose", '=cmd("x")', "--epsilon", "0.5")
    *_, last = csv.DictReader(run("ledger", "show", "study.db", "--format", "csv").stdout.splitlines())
    assert last["purpose"] == """'=cmd("x")"""  # no formula for a spreadsheet
    assert last["epsilon"] == "0.5"
    for wrong in (("--rho", "1"), ("--epsilon", "1", "--rho", "1"), ()):
        assert "is in epsilon" in refused("ledger", "sublimit", "study.db", "--purpose", "a", *wrong)
    assert "at most the limit" in refused("ledger", "sublimit", "study.db", "--purpose", "a", "--epsilon", "5")


def test_a_page_has_all_that_the_ledger_says_and_replaces_nothing():
    """For those who may not open the ledger. What stands in a purpose is text there."""
    run("ledger", "init", "study.db", "--epsilon", "4")
    run("ledger", "sublimit", "study.db", "--purpose", "Waiting times", "--epsilon", "1", "--per-year")
    run("ledger", "charge", "study.db", "--purpose", "<script>alert(1)</script>", "--epsilon", "1")
    assert run("ledger", "page", "study.db").stdout == "Wrote ledger.html\n"
    page = Path("ledger.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    for part in ("Ledger study.db", "25 % of the limit is spent", "Sub-limits", "each year", Ledger("study.db").head):
        assert part in page
    assert not re.search("https?://", page)
    assert "exists" in refused("ledger", "page", "study.db")
    assert "ledger.html" in run("ledger", "page", "study.db", "--force").stdout
    Path("other.html").symlink_to("study.db")
    assert "would be lost" in refused("ledger", "page", "study.db", "--out", "other.html", "--force")
    assert "must end in" in refused("ledger", "page", "study.db", "--out", "study.txt")
    assert Ledger("study.db").verify() == 1
