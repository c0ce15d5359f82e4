"""The command line, as people and scripts use it."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from typer.testing import CliRunner

import confide
from confide.cli import app
from confide.datasets import SplitData, load_adult
from confide.errors import BudgetExceeded, NotCertified
from confide.estimators.logistic import LogisticRegression
from confide.planning import simulate

COMMANDS = ["demo", "fit", "predict", "plan", "inspect", "report"]
SENTINEL = "SECRETVALUE"
SENTINEL_NUMBER = "987654321"

SCHEMA = """
target = { column = "income", negative = "low", positive = "high" }
[columns]
age = { low = 17, high = 90 }
"hours [x]" = { low = 0, high = 100, missing = true }
work = { categories = ["private", "state", "[red]none[/red]"], other = true }
"""


def rows_of(n_rows=200, *, reverse=False):
    """Made-up people whose income grows with age. Names, and the leading zeros of id, are not in the schema."""
    rng = np.random.default_rng(7)
    ages = rng.integers(17, 91, n_rows)
    return [
        {
            "id": f"{i:05d}",
            "name": f'Zoë "{i}", of Ärö',
            "age": str(age),
            "hours [x]": "" if i % 10 == 0 else f"{age % 60}.50",
            "work": ["private", "state", "elsewhere", "NA"][i % 4],
            "income": "high" if (age > 50) != reverse else "low",
        }
        for i, age in enumerate(ages)
    ]


def write_rows(path, rows):
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with people.csv and people.toml, 80 columns wide and without a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("CONFIDE_DEBUG", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    write_rows(Path("people.csv"), rows_of())
    Path("people.toml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def run(*arguments, code=0):
    """Run a command in this process and check its exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="confide")
    assert result.exit_code == code, result.output
    return result


def run_elsewhere(*arguments, **environment):
    """Run a command in a process of its own, as from a shell."""
    command = [sys.executable, "-m", "confide", *arguments]
    environment["PYTHONPATH"] = str(Path(confide.__file__).parents[1])
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, env=os.environ | environment
    )


def fit(*options, data="people.csv", code=0):
    return run("fit", data, "--schema", "people.toml", "--epsilon", "1", "--force", *options, code=code)


def refused(*arguments, code=2):
    """The one line of a command that fails. Nothing else is shown, and no value of the data."""
    result = run(*arguments, code=code)
    assert result.stdout == ""
    assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
    assert SENTINEL not in result.output
    assert SENTINEL_NUMBER not in result.output
    return result.stderr


# Help, version, usage


def test_help_lists_exactly_the_commands_that_work():
    """In the order of a first acquaintance; with the exit codes below."""
    text = run("--help").stdout
    listed = re.findall(r"^  (\w+) +[A-Z]", text.partition("Commands:\n")[2].partition("Exit codes")[0], re.MULTILINE)
    assert listed == [*COMMANDS, "ledger"]
    for line in (
        "0  done",
        "2  bad input or usage",
        "3  budget exceeded, or the guarantee is void",
        "4  internal error, or a failure after the budget was charged",
        "130  stopped by control-C",
    ):
        assert line in text


def test_help_is_what_a_bare_command_shows():
    """`confide`, `confide -h` and `confide --help` show the same, without failing."""
    assert run().stdout == run("-h").stdout == run("--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_an_example(command):
    """The example is a command of the same name, and the help fits 80 columns."""
    text = run(command, "-h").stdout
    assert f"Example:\n    confide {command}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_version_is_that_of_the_package():
    """In one line."""
    assert run("--version").stdout == f"confide {confide.__version__}\n"


def test_help_needs_none_of_the_heavy_packages():
    """So that it appears at once."""
    script = "import sys, confide.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "typer" in loaded
    assert {"numpy", "opendp", "pandas", "pyarrow", "rich", "scipy", "sklearn"}.isdisjoint(loaded)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("fitt",), "no such command 'fitt'. Did you mean 'fit'? Try 'confide --help'."),
        (("fit",), "Try 'confide fit --help'."),
        (("plan", "--rows", "10", "--features", "3"), "either --epsilon, with --delta or without, or --rho"),
        (("plan", "--rows", "0", "--features", "3", "--epsilon", "1"), "'--rows'"),
        (("plan", "--rows", "10", "--features", "3", "--epsilon", "one"), "'--epsilon'"),
        (("plan", "--rows", "10", "--features", "3", "--epsilon", "1", "--mechanism", "magic"), "'--mechanism'"),
        (("plan", "--features", "3", "--epsilon", "1"), "give either --rows or"),
        (("plan", "--rows", "10", "--epsilon", "1"), "give either --features or --schema"),
        (("plan", "--rows", "10", "--features", "3", "--epsilon", "1", "--alpha", "big"), "--alpha must be auto or"),
        (("plan", "--rows", "10", "--features", "3", "--epsilon", "1", "--alpha", "0"), "alpha must be"),
        (("plan", "--rows", "10", "--features", "3", "--epsilon", "1", "--row-norm", "-1"), "row norm"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(arguments, advice):
    """The line names the option and says where help is."""
    assert advice in refused(*arguments)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "-inf"])
@pytest.mark.parametrize(
    "command",
    [
        ("demo",),
        ("fit", "people.csv", "--schema", "people.toml"),
        ("plan", "--rows", "10", "--features", "3"),
    ],
)
def test_an_epsilon_that_is_no_budget_is_refused(folder, command, epsilon):
    """Zero, negative numbers and NaN, in each command that takes one; no file is written."""
    assert "--epsilon must be a positive number" in refused(*command, "--epsilon", epsilon)
    assert not Path("model.json").exists()


# plan


def test_plan_shows_cost_and_yield_and_reads_no_data():
    """What the library's own plan says."""
    text = run("plan", "--rows", 45000, "--features", 105, "--epsilon", "0.5").stdout
    assert str(LogisticRegression(0.5).plan(45000, 105)) in text
    assert "epsilon = 0.5" in text
    assert "expected distance" in text


def test_plan_speaks_json():
    """One document: the plan's own, and what stands beside it."""
    options = ("--alpha", "0.1", "--mechanism", "output", "--row-norm", "2", "--format", "json")
    document = json.loads(run("plan", "--rows", 1000, "--features", 5, "--epsilon", 1, *options).stdout)
    beside = document.pop("beside")
    assert document == LogisticRegression(1.0, alpha=0.1, mechanism="output", row_norm=2.0).plan(1000, 5).to_dict()
    assert set(beside["mechanisms"]) == {"objective", "output", "output-laplace"}
    assert [budget["kind"] for budget in beside["equivalent_budgets"]] == ["pure", "approximate", "zcdp"]
    assert 0.0 < beside["utility"]["excess_objective"] <= beside["utility"]["excess_loss"]


def test_plan_forecasts_accuracy_from_two_guesses():
    """At one budget, and along a curve on which more budget never means less accuracy beyond chance."""
    options = ("--rows", 3000, "--features", 4, "--epsilon", 1, "--error", "0.1", "--positive-rate", "0.4")
    document = json.loads(run("plan", *options, "--format", "json").stdout)
    (forecast,) = document["forecast"]
    assert 0.0 < forecast["low"] < 0.1 <= forecast["error"] < forecast["high"] < 0.4
    assert forecast["coverage"] == 0.8
    curve = json.loads(run("plan", *options, "--curve", "--format", "json").stdout)["forecast"]
    assert [point["budget"]["epsilon"] for point in curve] == pytest.approx([0.1, 0.2, 0.5, 1, 2, 5, 10])
    assert forecast in curve
    errors = [point["error"] for point in curve]
    assert errors == pytest.approx(sorted(errors, reverse=True), abs=0.01)
    text = run("plan", *options, "--curve").stdout
    assert "Accuracy to be expected" in text
    assert f"{1 - forecast['error']:.4f}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_plan_compares_distances_from_the_same_weights_alone():
    """At the alpha of its plan: as the library says there. The other mechanisms of an automatic loss minimise another."""
    options = ("--rows", 45000, "--features", 20, "--epsilon", "0.5", "--format", "json")
    document = json.loads(run("plan", *options).stdout)
    given = LogisticRegression(0.5, alpha=document["alpha"], mechanism="output").plan(45_000, 20)
    own = LogisticRegression(0.5, mechanism="output").plan(45_000, 20)
    distances = document["beside"]["mechanisms"]
    assert distances["objective"] == pytest.approx(document["expected_distance"], rel=1e-6)
    assert distances["output"] == pytest.approx(given.expected_distance, rel=1e-6)
    assert distances["output"] != pytest.approx(own.expected_distance, rel=0.1)
    of_svm = json.loads(run("plan", *options, "--model", "svm").stdout)["beside"]["mechanisms"]
    assert isinstance(of_svm["objective"], float)
    assert "cannot be compared" in of_svm["output"]
    assert "Distance from" not in run("plan", *options[:-2], "--model", "svm").stdout


def test_plan_forecasts_the_other_mechanisms_as_they_would_be_run():
    """With --error alone: what `simulate` says of each at its own alpha."""
    options = ("--rows", 3000, "--features", 4, "--epsilon", 1)
    document = json.loads(run("plan", *options, "--error", "0.1", "--format", "json").stdout)
    reached = document["beside"]["mechanism_errors"]
    assert set(reached) == {"output", "output-laplace"}
    assert reached["output"] == simulate(LogisticRegression(1.0, mechanism="output"), 3000, 4, error=0.1).error
    assert f"- output {1.0 - reached['output']:.4f}" in run("plan", *options, "--error", "0.1").stdout
    assert "mechanism_errors" not in json.loads(run("plan", *options, "--format", "json").stdout)["beside"]


def test_plan_says_what_the_guarantee_says_of_a_large_delta():
    """From one over the number of rows on, in the same words."""
    said = "is not below one over the number of rows: it would allow a release that shows some rows outright"
    for delta, is_told in (("0.0011", True), ("0.0009", False)):
        text = run("plan", "--rows", 1000, "--features", 3, "--epsilon", 1, "--delta", delta).stdout
        assert (said in " ".join(text.split())) == is_told


def test_plan_refuses_guesses_that_contradict_each_other():
    """A model without privacy that is worse than none; a curve without a guess."""
    options = ("--rows", 3000, "--features", 4, "--epsilon", 1)
    assert "error must lie between 0 and 0.2" in refused("plan", *options, "--error", "0.3", "--positive-rate", "0.2")
    assert "--curve needs --error" in refused("plan", *options, "--curve")


def test_plan_counts_the_columns_of_a_schema(folder):
    """Three columns make eight encoded ones less the shared: one number, one with gaps, four levels."""
    document = json.loads(run("plan", "--rows", 1000, "--schema", "people.toml", "--epsilon", 1, "--format", "json").stdout)
    assert document["n_features"] == 1 + 2 + 4
    assert "either" in refused("plan", "--rows", 10, "--schema", "people.toml", "--features", 7, "--epsilon", 1)


def test_plan_keeps_a_private_number_of_rows_private():
    """It speaks of the bounds alone, and takes either them or the number."""
    private = ("--neighbours", "add-or-remove-one", "--n-rows-bounds", "1000", "2000")
    assert "between 1,000 and 2,000" in run("plan", "--features", 3, "--epsilon", 1, *private).stdout
    assert "either" in refused("plan", "--rows", 1500, "--features", 3, "--epsilon", 1, *private)


def test_plan_wraps_at_80_columns(folder):
    """Also where a line is long."""
    private = ("--neighbours", "add-or-remove-one", "--n-rows-bounds", "1000", "2000")
    text = run("plan", "--features", 3, "--epsilon", "0.0123456", *private).stdout
    assert max(map(len, text.splitlines())) <= 80


# report


def test_fit_and_report_write_the_same_page(folder):
    """With the table of intervals; `report` makes it of the model file alone."""
    run("fit", "people.csv", "--schema", "people.toml", "--epsilon", "100", "--intervals", "0.3", "--report", "fit.html")
    run("report", "model.json", "--out", "again.html")
    page = Path("fit.html").read_text(encoding="utf-8")
    assert page == Path("again.html").read_text(encoding="utf-8")
    model = confide.load("model.json")
    assert model.summary().to_html() in page
    narrow = run("report", "model.json", "--out", "narrow.html", "--level", "0.5")
    assert "Wrote narrow.html" in narrow.stdout
    assert model.summary(0.5).to_html() in Path("narrow.html").read_text(encoding="utf-8")


def test_a_report_never_replaces_an_input_or_the_model(folder):
    """Refused before anything is charged."""
    fit()
    Path("model.html").write_text(Path("model.json").read_text(encoding="utf-8"), encoding="utf-8")
    assert "would be lost" in refused("report", "model.html", "--out", "model.html")
    assert "must end in" in refused("report", "model.json", "--out", "model.json")
    options = ("people.csv", "--schema", "people.toml", "--epsilon", "1")
    assert "would be lost" in refused("fit", *options, "--out", "one.html", "--report", "one.html")


# fit


def test_fit_shows_the_plan_the_guarantee_and_the_largest_weights(folder):
    """In this order; the file then holds a private model."""
    text = fit("--out", "release.json").stdout
    parts = ["Plan", "Guarantee", "This model was released under", "Released weights", "Wrote release.json"]
    assert sorted(parts, key=text.index) == parts
    assert max(map(len, text.splitlines())) <= 80
    model = confide.load("release.json")
    assert model.guarantee_.void is None
    assert model.guarantee_.budget == confide.PureDP(1.0)


def test_fit_passes_its_options_on(folder):
    """Alpha, mechanism, neighbours and bounds."""
    options = ("--alpha", "0.3", "--mechanism", "output", "--neighbours", "add-or-remove-one")
    fit(*options, "--n-rows-bounds", "150", "300")
    model = confide.load("model.json")
    assert (model.alpha, model.mechanism, model.n_rows_bounds) == (0.3, "output", (150, 300))
    assert model.guarantee_.neighbours is confide.Neighbours.ADD_OR_REMOVE_ONE


def test_fit_with_intervals_shows_them_and_keeps_them(folder):
    """A table on the screen and in JSON, again by inspect; the plan shows what the share buys."""
    write_rows(Path("people.csv"), rows_of(6000))
    text = fit("--intervals", "0.3", "--epsilon", "4").stdout
    assert "0.3 of the whole budget" in text
    assert "expected interval" in text
    assert re.search(r"^column +coef +sampling err +privacy err +total err +low +high +p$", text, re.MULTILINE)
    inspected = run("inspect", "model.json").stdout
    table = [line for line in inspected.splitlines() if re.match(r"(age|\(intercept\)) ", line)]
    assert len(table) == 2
    assert all(line in text for line in table)
    document = json.loads(run("inspect", "model.json", "--format", "json").stdout)
    assert document["intervals"] == confide.load("model.json").summary().to_dict()
    assert [row["name"] for row in document["intervals"]["coefficients"]] == [*document["weights"], "(intercept)"]
    assert [row["estimate"] for row in document["intervals"]["coefficients"]][:-1] == list(document["weights"].values())
    assert json.loads(fit("--format", "json").stdout)["intervals"] is None


def test_intervals_that_are_not_to_be_had_are_refused(folder):
    """Too few rows, a share that is none, a kernel; nothing is written."""
    for options, words in (
        (("--intervals", "0.3"), "not be trustworthy"),
        (("--intervals", "much"), "auto or a number"),
        (("--intervals", "2"), "inference_share must be"),
        (("--intervals", "0.3", "--model", "kernel-svm"), "mean nothing one by one"),
    ):
        message = fit(*options, code=2).stderr
        assert words in message.replace("\n", " ")
    assert not Path("model.json").exists()
    shown = run("plan", "--rows", "50000", "--features", "4", "--epsilon", "1", "--intervals", "auto").stdout
    assert "expected interval" in shown


def test_fit_reads_all_files_of_a_pattern(folder):
    """Two files are the rows of both, with and without a cache; a pattern that matches nothing is refused."""
    Path("parts").mkdir()
    rows = rows_of(400)
    write_rows(Path("parts/b.csv"), rows[250:])
    write_rows(Path("parts/a.csv"), rows[:250])
    Path("cache").mkdir()
    for options in ((), ("--cache", "cache")):
        text = fit(*options, data="parts/*.csv").stdout
        assert "The number of rows, 400, is public." in " ".join(text.split())
    assert list(Path("cache").iterdir()) == []
    assert "no file matches" in refused("fit", "parts/*.parquet", "--schema", "people.toml", "--epsilon", 1)


def test_progress_shows_the_pass_its_share_and_an_honest_speed(monkeypatch):
    """On a terminal, by a clock of the test: rows of this pass alone. Nothing where their number is private."""
    from confide.cli import display

    stream = io.StringIO()
    console = display.Console(file=stream, force_terminal=True, width=80)
    monkeypatch.setattr(display, "Console", lambda **options: console)
    now = 0.0
    with display.row_progress(1000, clock=lambda: now) as passing:
        for what, n_passes in (("checking", 1), ("training", 7)):
            for number in range(n_passes):
                passing(what, 0)
                now += 2.0
                # Half of the last pass; the others are told at once, as by a cluster.
                passing(what, 500 if number == 6 else 1000)
    with display.row_progress(None) as passing:
        assert passing is None
    shown = stream.getvalue()
    assert "training, pass 7" in shown
    assert "50%" in shown
    assert "250 rows/s" in shown
    assert set(re.findall(r"[0-9,]+ rows/s", shown)) <= {"250 rows/s", "500 rows/s"}


def test_fit_never_tells_a_private_number_of_rows(folder):
    """Neither on the screen nor in JSON nor in the file."""
    write_rows(Path("people.csv"), rows_of(187))
    private = ("--neighbours", "add-or-remove-one", "--n-rows-bounds", "150", "300")
    shown = fit(*private).output + fit(*private, "--format", "json").output
    numbers = re.findall(r"(?<![\d.])187(?!\d)", shown + Path("model.json").read_text(encoding="utf-8"))
    assert numbers == []


def test_fit_shows_the_same_for_any_rows_but_for_the_weights(folder):
    """Two tables with nothing in common but their size give the same lines, weights taken out."""

    def without_weights(text):
        return re.sub(r"^\S.* [+-]\d+\.\d{4}$", "", text, flags=re.MULTILINE)

    first = without_weights(fit().stdout)
    write_rows(Path("people.csv"), rows_of(reverse=True)[::-1])
    assert without_weights(fit().stdout) == first
    assert not re.search(r"accuracy|score|iteration|second|converged", first.replace("Scores computed", ""))


def test_fit_speaks_json(folder):
    """One document: where the model is, the plan, the guarantee and the released weights."""
    document = json.loads(fit("--format", "json").stdout)
    model = confide.load("model.json")
    assert document["model"] == "model.json"
    assert document["private"] is True
    assert document["plan"]["n_rows_bounds"] == [200, 200]
    assert document["guarantee"] == model.guarantee_.to_dict()
    assert document["statement"] == model.guarantee_.statement()
    assert list(document["weights"]) == list(model.coefficient_names_)


def test_weights_are_turned_towards_the_positive_class(folder):
    """Sorted classes are high and low, so the model's own weights speak of low; what is shown speaks of high."""
    document = json.loads(fit("--format", "json").stdout)
    model = confide.load("model.json")
    assert list(model.classes_) == ["high", "low"]
    assert document["weights_speak_of"] == "high"
    assert list(document["weights"].values()) == (-model.coef_[0]).tolist()
    assert document["intercept"] == -model.intercept_[0]
    assert 'in log-odds of income = "high"' in run("inspect", "model.json").stdout


def test_a_kernel_machine_is_fitted_shown_and_scores(folder):
    """With the kernel of its options, by the file that was written."""
    options = ("--model", "kernel-svm", "--kernel", "laplacian", "--length-scale", "0.5", "--n-features", "16")
    fit(*options, "--epsilon", "5")
    model = confide.load("model.json")
    assert (model.kernel, model.length_scale, model.n_features) == ("laplacian", 0.5, 16)
    assert "KernelSVC" in run("inspect", "model.json").stdout
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    scores = [float(row["score"]) for row in read_rows(Path("scored.csv"))]
    table = pd.read_csv("people.csv", dtype={"work": str}, keep_default_na=False, na_values=[""])
    assert scores == pytest.approx(-model.decision_function(table))  # "high" is the first of the sorted classes
    planned = ("plan", "--model", "kernel-svm", "--n-features", "16", "--schema", "people.toml", "--rows", "200")
    document = json.loads(run(*planned, "--epsilon", "5", "--format", "json").stdout)
    assert document["n_features"] == 16


@pytest.mark.parametrize("option", [("--kernel", "rbf"), ("--length-scale", "1"), ("--n-features", "8")])
def test_options_of_kernels_are_refused_by_models_without(folder, option):
    """Rather than ignored."""
    assert f"{option[0]} is for --model kernel-svm alone" in refused(
        "fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", *option
    )


def test_fit_and_plan_take_a_concentrated_budget(folder):
    """--rho in place of --epsilon; both, or neither, are refused before the data are read."""
    run("fit", "people.csv", "--schema", "people.toml", "--rho", "0.5")
    assert confide.load("model.json").guarantee_.budget == confide.ZCDP(0.5)
    document = json.loads(run("plan", "--rows", "99", "--features", "3", "--rho", "0.5", "--format", "json").stdout)
    assert document["budget"] == {"kind": "zcdp", "rho": 0.5}
    for options in ((), ("--rho", "1", "--epsilon", "1"), ("--rho", "1", "--delta", "1e-6"), ("--delta", "1e-6")):
        assert "give a budget: either --epsilon" in refused("fit", "nowhere.csv", "--schema", "people.toml", *options)


def test_a_file_without_a_line_of_names_is_refused_with_advice(folder):
    """And its first row is not quoted."""
    Path("bare.csv").write_text(f"{SENTINEL_NUMBER},40.5,private,high\n30,20,state,low\n", encoding="utf-8")
    message = refused("fit", "bare.csv", "--schema", "people.toml", "--epsilon", "1")
    assert "first line looks like a row: put a line with the names of the columns above it" in message


def test_names_are_never_taken_for_markup(folder):
    """Brackets in a column's name or a category appear as they are."""
    fit()
    text = run("inspect", "model.json").stdout
    assert "hours [x]" in text
    assert "work=[red]none[/red]" in text


def test_an_infinite_epsilon_is_loud_about_it(folder):
    """It must be asked for by name; the model is written and marked."""
    result = fit("--epsilon", "inf", code=3)
    assert "\nNOT PRIVATE." in result.stdout
    assert confide.load("model.json").guarantee_.void


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow"])
def test_binary_tables_train_and_score_like_csv(folder, suffix):
    """The same rows give the same model without noise, and the same predictions."""
    frame = pd.read_csv("people.csv", keep_default_na=False, dtype={"id": str})
    frame["hours [x]"] = pd.to_numeric(frame["hours [x]"])
    table = pa.Table.from_pandas(frame)
    path = f"people.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)
    options = ("--epsilon", "inf", "--format", "json")
    from_csv = json.loads(fit(*options, "--out", "a.json", code=3).stdout)
    from_table = json.loads(fit(*options, "--out", "b.json", data=path, code=3).stdout)
    assert from_csv["weights"] == from_table["weights"]
    run("predict", "a.json", "people.csv", "--out", "a.csv")
    run("predict", "a.json", path, "--out", f"b.{suffix}")
    scored = parquet.read_table(f"b.{suffix}") if suffix == "parquet" else feather.read_table(f"b.{suffix}")
    assert scored.column_names == [*table.column_names, "prediction", "probability"]
    assert scored["probability"].to_pylist() == [float(row["probability"]) for row in read_rows(Path("a.csv"))]


def test_types_come_from_the_schema_and_not_from_the_rows(folder):
    """A category may look like a number, and a number may be missing; neither changes what another row means."""
    Path("people.toml").write_text(
        'target = { column = "y", negative = 0, positive = 1 }\n[columns]\n'
        'code = { categories = ["01", "2", "x"] }\nsize = { low = 0, high = 9, missing = true }\n',
        encoding="utf-8",
    )
    cells = [("1", "2.5", "1"), ("2", "NA", "0"), ("01", "", "1.0"), ("x", "8", "0")]
    Path("people.csv").write_text("code,size,y\n" + "".join(",".join(row) + "\n" for row in cells), encoding="utf-8")
    fit("--epsilon", "inf", "--out", "a.json", code=3)
    frame = pd.DataFrame({"code": ["1", "2", "1", "x"], "size": [2.5, None, None, 8.0]})
    expected = LogisticRegression(float("inf"), schema=confide.Schema.from_toml("people.toml")).fit(frame, [1, 0, 1, 0])
    assert np.array_equal(confide.load("a.json").coef_, expected.coef_)


def spoil(**cells):
    """people.csv with some cells of one row replaced."""
    rows = rows_of()
    rows[17] |= {key.replace("hours", "hours [x]"): value for key, value in cells.items()}
    write_rows(Path("people.csv"), rows)


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        ({"age": SENTINEL}, 'column "age" holds cells that are not numbers'),
        ({"hours": f"{SENTINEL_NUMBER} h"}, 'column "hours [x]" holds cells that are not numbers'),
        ({"age": ""}, 'column "age": holds missing values'),
        ({"age": "inf"}, 'column "age": holds infinite numbers'),
        ({"income": SENTINEL}, "the labels: some are neither"),
        ({"income": SENTINEL_NUMBER}, "the labels: some are neither"),
        ({"income": ""}, "the labels: some are missing"),
    ],
)
def test_a_bad_cell_is_refused_without_being_shown(folder, cells, advice):
    """One line names the column, exit code 2, and no model is written."""
    spoil(**cells)
    message = refused("fit", "people.csv", "--schema", "people.toml", "--epsilon", 1, "--format", "json")
    assert advice in message
    assert not Path("model.json").exists()
    # As a person sees it: the plan may come before.
    result = fit(code=2)
    assert advice in result.stderr
    assert SENTINEL not in result.output
    assert SENTINEL_NUMBER not in result.output


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (f"age,hours [x],work,income\n40,1,private,low,{SENTINEL}\n", "more or fewer cells"),
        (f"age,hours [x],work,income\n40,{SENTINEL}\n", "more or fewer cells"),
        (f'age,hours [x],work,income\n40,1,"{SENTINEL},low\n', 'a quote (") is not closed'),
        (f'age,hours [x],work,income\n40,1,"{SENTINEL},low\n41,2,b,low\n42,3,"c,low\n', 'a quote (") is not closed'),
        (f"age;hours [x];work;income\n40;1;{SENTINEL};low\n", "commas between them"),
        (f"{SENTINEL_NUMBER},1,{SENTINEL},low\n", 'lacks the columns "age", "hours [x]", "work", "income"'),
        (f"age,work,income\n40,{SENTINEL},low\n", 'lacks the columns "hours [x]"'),
        (f"age,hours [x],work,income,age\n40,1,{SENTINEL},low,2\n", 'more than one column of the name "age"'),
        ("age,hours [x],work,income\n", "no rows"),
        ("", "is empty"),
        (f"age,hours [x],work,income\n40,1,{SENTINEL}\xff,low\n".encode("latin-1"), "UTF-8"),
        ("age,income\n".encode("utf-16"), "text in UTF-8"),
        (b"\x00", "lacks the columns"),
        (f"age,hours [x],work,income\n{SENTINEL_NUMBER * 60},1,a,low\n", "holds infinite numbers"),
    ],
)
def test_a_bad_csv_file_is_refused_without_being_shown(folder, content, advice):
    """One line says what to correct, exit code 2."""
    Path("people.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    options = ("--schema", "people.toml", "--epsilon", 1, "--format", "json")
    assert advice in refused("fit", "people.csv", *options)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_bad_binary_file_is_refused_without_being_shown(folder, suffix):
    """A file that is no table, one without a column, and one whose column is no number."""
    path = Path(f"people.{suffix}")
    options = ("--schema", "people.toml", "--epsilon", 1, "--format", "json")
    path.write_text(SENTINEL, encoding="utf-8")
    assert "damaged" in refused("fit", path, *options)
    write = parquet.write_table if suffix == "parquet" else feather.write_feather
    columns = {"age": [SENTINEL], "hours [x]": [1.0], "work": ["state"], "income": ["low"]}
    write(pa.table({name: cells for name, cells in columns.items() if name != "work"}), str(path))
    assert 'lacks the columns "work"' in refused("fit", path, *options)
    write(pa.table(columns), str(path))
    assert 'column "age": holds cells that are not numbers' in refused("fit", path, *options)


def test_files_that_cannot_be_read_are_named(folder):
    """Missing ones, folders, kinds that are not tables, and a schema that is no schema."""
    assert "nowhere.csv: No such file" in refused("fit", "nowhere.csv", "--schema", "people.toml", "--epsilon", 1)
    Path("folder.csv").mkdir()
    assert "folder.csv" in refused("fit", "folder.csv", "--schema", "people.toml", "--epsilon", 1)
    assert 'must end in ".csv"' in refused("fit", "people.xlsx", "--schema", "people.toml", "--epsilon", 1)
    assert "nowhere.toml" in refused("fit", "people.csv", "--schema", "nowhere.toml", "--epsilon", 1)
    spoil(work=SENTINEL)
    assert "not valid TOML" in refused("fit", "people.csv", "--schema", "people.csv", "--epsilon", 1)


def test_a_schema_without_a_target_cannot_train(folder):
    """The message shows the line to add."""
    Path("people.toml").write_text(SCHEMA.partition("[columns]")[2].join(["[columns]", ""]), encoding="utf-8")
    assert "names no target; add a line such as target = {" in refused(
        "fit", "people.csv", "--schema", "people.toml", "--epsilon", 1
    )


def test_outputs_never_replace_inputs(folder):
    """Refused before any work, like an output that could not be written."""
    before = Path("people.csv").read_bytes()
    for out, advice in [("people.csv", "would be lost"), ("./people.toml", "would be lost"), ("no/m.json", "folder")]:
        assert advice in refused("fit", "people.csv", "--schema", "people.toml", "--epsilon", 1, "--out", out)
    fit()
    assert "would be lost" in refused("predict", "model.json", "people.csv", "--out", "people.csv")
    assert "must end in" in refused("predict", "model.json", "people.csv", "--out", "model.json")
    assert "folder" in refused("predict", "model.json", "people.csv", "--out", "no/scored.csv")
    assert Path("people.csv").read_bytes() == before


# predict


def test_predict_adds_two_columns_and_keeps_the_rest(folder):
    """Rows, their order and the text of every cell are kept; the target is not needed."""
    fit()
    rows = [{key: value for key, value in row.items() if key != "income"} for row in rows_of()]
    write_rows(Path("new.csv"), rows)
    result = run("predict", "model.json", "new.csv", "--out", "scored.csv", "--force")
    assert result.stdout == 'Wrote scored.csv: prediction, and probability of income = "high".\n'
    scored = read_rows(Path("scored.csv"))
    assert list(scored[0]) == [*rows[0], "prediction", "probability"]
    assert [{key: row[key] for key in rows[0]} for row in scored] == rows
    assert {row["prediction"] for row in scored} <= {"low", "high"}


def test_predict_agrees_with_the_library(folder):
    """The file written by fit, loaded in Python, gives the same labels and probabilities, digit by digit."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    scored = read_rows(Path("scored.csv"))
    model = confide.load("model.json")
    frame = pd.DataFrame(rows_of())
    assert [row["prediction"] for row in scored] == model.predict(frame).tolist()
    positive = list(model.classes_).index("high")
    assert [float(row["probability"]) for row in scored] == model.predict_proba(frame)[:, positive].tolist()
    assert all((row["prediction"] == "high") == (float(row["probability"]) > 0.5) for row in scored)


def test_predict_writes_to_standard_output(folder):
    """The table alone; there JSON has no place."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    shown = run("predict", "model.json", "people.csv", "--out", "-")
    assert shown.stderr == ""
    assert shown.stdout == Path("scored.csv").read_text(encoding="utf-8")
    assert "--format json" in refused("predict", "model.json", "people.csv", "--out", "-", "--format", "json")


def test_predict_speaks_json(folder):
    """Where the table is, and whose probability it holds."""
    fit()
    result = run("predict", "model.json", "people.csv", "--out", "scored.csv", "--format", "json")
    assert json.loads(result.stdout) == {
        "out": "scored.csv",
        "rows": 200,
        "target": "income",
        "probability_of": "high",
    }


def test_predict_refuses_to_name_two_columns_alike(folder):
    """A table that was scored before has the names already."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    assert "rename" in refused("predict", "model.json", "scored.csv", "--out", "again.csv")


def test_predict_shows_no_cell_either(folder):
    """A bad number and a missing column are refused in one line."""
    fit()
    spoil(age=SENTINEL)
    assert 'column "age"' in refused("predict", "model.json", "people.csv", "--out", "scored.csv")
    Path("people.csv").write_text(f"age,work\n1,{SENTINEL}\n", encoding="utf-8")
    assert 'lacks the columns "hours [x]"' in refused("predict", "model.json", "people.csv", "--out", "scored.csv")
    assert not Path("scored.csv").exists()


def test_predict_warns_of_a_model_without_privacy(folder):
    """On standard error, so that the table stays clean."""
    fit("--epsilon", "inf", code=3)
    result = run("predict", "model.json", "people.csv", "--out", "-")
    assert result.stderr.startswith("warning: this model is NOT PRIVATE.")
    assert "NOT PRIVATE" not in result.stdout


def test_a_model_without_a_schema_finds_its_columns_by_name(folder):
    """Trained on a frame in Python, it reads the numbers of the columns it knows."""
    frame = pd.DataFrame({"age": [0.1, 0.2, 0.9, 0.8], "size": [0.0, 0.1, 0.3, 0.5]})
    model = LogisticRegression(5.0).fit(frame, [0, 0, 1, 1])
    model.save("model.json")
    Path("new.csv").write_text("size,note,age\n0.1,a,0.2\n0.5,b,0.7\n", encoding="utf-8")
    run("predict", "model.json", "new.csv", "--out", "scored.csv", "--force")
    scored = read_rows(Path("scored.csv"))
    expected = model.predict_proba(pd.DataFrame({"age": [0.2, 0.7], "size": [0.1, 0.5]}))[:, 1]
    assert [float(row["probability"]) for row in scored] == expected.tolist()
    assert [row["note"] for row in scored] == ["a", "b"]
    Path("new.csv").write_text(f"size,age\n0.1,{SENTINEL}\n", encoding="utf-8")
    assert 'column "age"' in refused("predict", "model.json", "new.csv", "--out", "scored.csv", "--force")
    Path("new.csv").write_text("size,age\n0.1,\n", encoding="utf-8")
    assert "NaN" in refused("predict", "model.json", "new.csv", "--out", "scored.csv", "--force")


def test_a_model_without_names_says_why_it_cannot_score_a_file(folder):
    """An array has no names of columns to look for."""
    LogisticRegression(5.0).fit(np.array([[0.1], [0.9]]), [0, 1]).save("model.json")
    message = refused("predict", "model.json", "people.csv", "--out", "scored.csv")
    assert "without names of columns" in message


# inspect


def test_inspect_shows_statement_and_weights_of_a_private_model(folder):
    """Exit code 0, every coefficient, within 80 columns."""
    fit()
    text = run("inspect", "model.json").stdout
    model = confide.load("model.json")
    assert " ".join(model.guarantee_.statement().split()) in " ".join(text.split())
    assert all(f"\n{name} " in text for name in model.coefficient_names_)
    assert max(map(len, text.splitlines())) <= 80


def test_inspect_gives_3_for_a_void_guarantee(folder):
    """Whether without noise or with a seed; for people and for machines."""
    fit("--epsilon", "inf", code=3)
    assert "NOT PRIVATE." in run("inspect", "model.json", code=3).stdout
    LogisticRegression(1.0, random_state=1).fit(np.array([[0.1], [0.9]]), [0, 1]).save("seeded.json")
    document = json.loads(run("inspect", "seeded.json", "--format", "json", code=3).stdout)
    assert document["private"] is False
    assert "seed" in document["guarantee"]["void"]


def test_inspect_speaks_json(folder):
    """The same as fit said, but for the plan and the charge."""
    said = json.loads(fit("--format", "json").stdout)
    del said["plan"], said["charge"]
    assert json.loads(run("inspect", "model.json", "--format", "json").stdout) == said


def test_a_file_that_is_no_model_is_refused(folder):
    """Missing, damaged or of another kind."""
    assert "cannot read nowhere.json" in refused("inspect", "nowhere.json")
    spoil(work=SENTINEL)
    assert "not a model file" in refused("inspect", "people.csv")
    fit()
    text = Path("model.json").read_text(encoding="utf-8")
    Path("model.json").write_text(text.replace('"alpha"', '"alfa"'), encoding="utf-8")
    assert "damaged" in refused("inspect", "model.json")


def test_nothing_in_a_model_file_steers_the_terminal(folder):
    """Escape sequences in names are shown as question marks."""
    frame = pd.DataFrame({"age\x1b[31m": [0.1, 0.9]})
    LogisticRegression(1.0, classes=["\x1b[2Ja", "b"]).fit(frame, ["b", "\x1b[2Ja"]).save("model.json")
    result = run("inspect", "model.json")
    assert "\x1b" not in result.output
    assert "age?[31m" in result.stdout


# failures


def test_an_unexpected_failure_is_one_line_without_its_message(folder, monkeypatch):
    """Exit code 4: only the type is named, for the message may hold data. CONFIDE_DEBUG=1 shows all."""

    def fail(*arguments):
        raise RuntimeError(SENTINEL)

    monkeypatch.setattr(LogisticRegression, "fit", fail)
    result = fit("--format", "json", code=4)
    assert re.fullmatch("error: unexpected RuntimeError; [^\n]+\n", result.stderr)
    assert SENTINEL not in result.output
    monkeypatch.setenv("CONFIDE_DEBUG", "1")
    result = CliRunner().invoke(app, ["fit", "people.csv", "--schema", "people.toml", "--epsilon", "1"])
    assert isinstance(result.exception, RuntimeError)


@pytest.mark.parametrize(
    ("error", "code"), [(BudgetExceeded("too little is left."), 3), (NotCertified("not certified."), 4)]
)
def test_each_kind_of_refusal_has_its_exit_code(folder, monkeypatch, error, code):
    """Over the budget is 3; a minimiser without its certificate is a defect of ours, 4. Both say why."""

    def fail(*arguments):
        raise error

    monkeypatch.setattr(LogisticRegression, "fit", fail)
    assert refused("fit", "people.csv", "--schema", "people.toml", "--epsilon", 1, "--format", "json", code=code) == (
        f"error: {error}\n"
    )


def test_an_interrupted_command_says_so_by_its_exit_code(folder, monkeypatch):
    """130, as shells have it, and no traceback."""

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(LogisticRegression, "fit", interrupt)
    assert "Traceback" not in fit(code=130).output


def test_warnings_of_other_packages_are_not_shown(folder, monkeypatch):
    """They may quote data."""
    import warnings

    plan = LogisticRegression.plan

    def warn(*arguments):
        warnings.warn(SENTINEL, UserWarning, stacklevel=1)
        return plan(*arguments)

    monkeypatch.setattr(LogisticRegression, "plan", warn)
    assert SENTINEL not in fit().output


# From a shell


def test_the_whole_way_from_a_shell(folder):
    """Fit, inspect and predict in processes of their own: no colours, nothing on standard error.

    Where a terminal knows few letters, the others are shown as escapes; a table on standard output stays UTF-8.
    """
    Path("people.toml").write_text(SCHEMA.replace('"state"', '"Ärö"'), encoding="utf-8")
    fitted = run_elsewhere("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--out", "model.json")
    inspected = run_elsewhere("inspect", "model.json", PYTHONIOENCODING="ascii")
    scored = run_elsewhere("predict", "model.json", "people.csv", "--out", "-", PYTHONIOENCODING="ascii")
    for done in (fitted, inspected, scored):
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
    assert "work=Ärö" in fitted.stdout
    assert "work=\\xc4r\\xf6" in inspected.stdout
    assert [row["name"] for row in csv.DictReader(io.StringIO(scored.stdout))] == [row["name"] for row in rows_of()]


def test_a_failure_from_a_shell_is_one_line_too(folder):
    """With its exit code, and without the cell that caused it."""
    spoil(age=SENTINEL)
    done = run_elsewhere("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1")
    assert done.returncode == 2
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
    assert SENTINEL not in done.stdout + done.stderr
    usage = run_elsewhere("fit")
    assert usage.returncode == 2
    assert usage.stderr.count("\n") == 1


# demo


@pytest.fixture(scope="module")
def adult_demo(tmp_path_factory):
    """What `confide demo` shows, and the model it writes."""
    out = tmp_path_factory.mktemp("demo") / "model.json"
    return run("demo", "--out", out).stdout, out


def test_the_demo_shows_a_plan_a_guarantee_and_what_they_cost(adult_demo):
    """Plan, statement, a table of three accuracies, the file, and two commands to try."""
    text, out = adult_demo
    for part in ("Plan", "epsilon = 1 (replace-one)", "Guarantee", "It holds if:", "These data are public"):
        assert part in text
    accuracy = {line[:10]: float(re.search(r"([\d.]+)%", line)[1]) for line in text.splitlines() if re.search(r"\d%", line)}
    released, without_privacy, majority = accuracy.values()
    assert list(accuracy) == ["private, e", "without pr", 'always "<=']
    assert without_privacy > 84
    assert majority < released <= without_privacy + 1
    assert f"Wrote {out}." in text
    assert f"\n  confide inspect {out}\n" in text


def test_the_demo_writes_a_private_model(adult_demo):
    """It predicts in Python as well as the demo says."""
    text, out = adult_demo
    adult = load_adult()
    model = confide.load(out)
    assert model.guarantee_.void is None
    assert f"{model.score(adult.X_test, adult.y_test):.1%}" in text


def test_the_commands_that_the_demo_names_work(adult_demo):
    """Each line that begins with confide."""
    text, _ = adult_demo
    (command,) = re.findall(r"^  confide (plan .+)$", text, re.MULTILINE)
    assert "expected distance" in run(*command.split()).stdout
    assert "Released weights" in run("inspect", adult_demo[1]).stdout


def small_adult():
    adult = load_adult()
    return SplitData(adult.X_train[:500], adult.y_train[:500], adult.X_test[:500], adult.y_test[:500], adult.schema)


def test_the_demo_never_replaces_a_file_unasked(folder, monkeypatch):
    """Exit code 2 before any work, and the file is as it was; --force replaces it."""
    monkeypatch.setattr("confide.datasets.load_adult", small_adult)
    for options, name in (((), "model.json"), (("--out", "other.json"), "other.json")):
        Path(name).write_text("mine", encoding="utf-8")
        assert f"{name} exists already" in refused("demo", *options)
        assert Path(name).read_text(encoding="utf-8") == "mine"
    run("demo", "--force")
    assert confide.load("model.json").guarantee_.budget.epsilon == 1.0


def test_the_demo_speaks_json(folder, monkeypatch):
    """One document, with the accuracies as numbers."""
    monkeypatch.setattr("confide.datasets.load_adult", small_adult)
    document = json.loads(run("demo", "--epsilon", "4", "--format", "json").stdout)
    assert document["guarantee"]["budget"] == {"kind": "pure", "epsilon": 4.0}
    assert set(document["test_accuracy"]) == {"released", "without_privacy", "majority_class"}
    assert document["next"][0] == "confide inspect model.json"
    assert confide.load(document["model"]).guarantee_.budget == confide.PureDP(4.0)


def test_the_demo_with_an_infinite_epsilon_is_not_called_private(folder, monkeypatch):
    """Nobody should mistake it."""
    monkeypatch.setattr("confide.datasets.load_adult", small_adult)
    text = run("demo", "--epsilon", "inf", code=3).stdout
    assert "\nNOT PRIVATE." in text
    assert "the model written, NOT PRIVATE" in text


def test_the_table_that_demo_ships_can_be_exported_and_trained_from_a_file(folder, monkeypatch):
    """The README's way: a CSV file and a schema on disk give a private model."""
    adult = small_adult()
    adult.X_train.assign(income=adult.y_train).to_csv("adult.csv", index=False)
    Path("adult.toml").write_text(adult.schema.to_toml(), encoding="utf-8")
    run("fit", "adult.csv", "--schema", "adult.toml", "--epsilon", 1, "--out", "model.json")
    run("predict", "model.json", "adult.csv", "--out", "scored.csv")
    model = confide.load("model.json")
    assert [row["prediction"] for row in read_rows(Path("scored.csv"))] == model.predict(adult.X_train).tolist()
    stream = io.StringIO(Path("scored.csv").read_text(encoding="utf-8"))
    assert pd.read_csv(stream)["age"].tolist() == adult.X_train["age"].tolist()


def write_kinds():
    """The rows of people.csv with three classes, and their schema."""
    described = SCHEMA.replace(SCHEMA.splitlines()[1], 'target = { column = "species", classes = ["x", "y", "z"] }')
    assert "classes" in described
    Path("kinds.toml").write_text(described, encoding="utf-8")
    rows = pd.read_csv("people.csv")
    rows["species"] = np.array(["x", "y", "z"])[np.arange(len(rows)) % 3]
    rows.to_csv("kinds.csv", index=False)
    return rows


def test_three_classes_have_intervals(folder):
    """In the plan, on the screen, in JSON, on the page and again by inspect: each column of each class."""
    write_rows(Path("people.csv"), rows_of(6000))
    write_kinds()
    options = ("--epsilon", "8", "--intervals", "0.3", "--out", "kinds.json", "--report", "kinds.html")
    text = run("fit", "kinds.csv", "--schema", "kinds.toml", *options).output
    assert "Coefficients by class, with intervals of 0.95" in text
    assert "0.3 of the whole budget" in text
    assert "less their mean over classes" in text.replace("\n", " ")
    model = confide.load("kinds.json")
    names = [f"{label}: {name}" for label in "xyz" for name in (*model.coefficient_names_, "(intercept)")]
    assert [name for name in names if re.search(rf"^{re.escape(name)} +-?\d", text, re.MULTILINE)] == names
    document = json.loads(run("inspect", "kinds.json", "--format", "json").stdout)
    assert [row["name"] for row in document["intervals"]["coefficients"]] == names
    page = Path("kinds.html").read_text(encoding="utf-8")
    assert model.summary().to_html() in page
    assert all(f">{name}</text>" in page for name in names)


def test_three_classes_are_fitted_shown_and_predicted(folder):
    """The schema names the classes; weights by class, and the probability of the predicted one."""
    rows = write_kinds()
    shown = run("fit", "kinds.csv", "--schema", "kinds.toml", "--epsilon", "1", "--out", "kinds.json").output
    assert "Released weights, by class" in shown or "largest of" in shown
    assert "z: (intercept)" in shown
    document = json.loads(run("inspect", "kinds.json", "--format", "json").output)
    assert list(document["weights"]) == list(document["intercept"]) == ["x", "y", "z"]
    assert document["weights_speak_of"] is None
    assert "probability of the predicted species" in run("predict", "kinds.json", "kinds.csv", "--out", "out.csv").output
    out, model = pd.read_csv("out.csv"), confide.load("kinds.json")
    np.testing.assert_allclose(out["probability"], model.predict_proba(rows).max(axis=1), rtol=1e-12)
    assert (out["prediction"] == model.predict(rows)).all()
