"""How commands fail: one line, an exit code, and no data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from confide.cli.application import app
from confide.errors import BudgetExceeded, NotCertified
from confide.estimators.additive import AdditiveClassifier
from tests.cli.commands import SENTINEL, fit, refused


def test_an_unexpected_failure_is_one_line_without_its_message(folder, monkeypatch):
    """Exit code 4: only the type is named, for the message may hold data. CONFIDE_DEBUG=1 shows all."""

    def fail(*arguments):
        raise RuntimeError(SENTINEL)

    monkeypatch.setattr(AdditiveClassifier, "fit", fail)
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

    monkeypatch.setattr(AdditiveClassifier, "fit", fail)
    assert refused("fit", "people.csv", "--schema", "people.toml", "--epsilon", 1, "--format", "json", code=code) == (
        f"error: {error}\n"
    )


@pytest.mark.parametrize("name", ["Logistic", "logistc"])
def test_the_value_of_an_option_that_was_probably_meant_is_named(folder, name):
    """Of the options that list their values."""
    line = refused("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--model", name)
    assert f"'{name}' is not one of 'additive', 'logistic'" in line
    assert '(did you mean "logistic"?)' in line
    assert "Value error" not in line


def test_a_table_that_is_not_there_is_named_before_a_model_that_is(folder):
    """Also where the file of the model exists already."""
    Path("model.json").write_text("{}")
    assert "cannot read nofile.csv" in refused("fit", "nofile.csv", "--schema", "people.toml", "--epsilon", "1")


def test_an_interrupted_command_says_so_by_its_exit_code(folder, monkeypatch):
    """130, as shells have it, and no traceback."""

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(AdditiveClassifier, "fit", interrupt)
    assert "Traceback" not in fit(code=130).output


def test_warnings_of_other_packages_are_not_shown(folder, monkeypatch):
    """They may quote data."""
    import warnings

    plan = AdditiveClassifier.plan

    def warn(*arguments):
        warnings.warn(SENTINEL, UserWarning, stacklevel=1)
        return plan(*arguments)

    monkeypatch.setattr(AdditiveClassifier, "plan", warn)
    assert SENTINEL not in fit().output


OPTIONS_THAT_NAME_COLUMNS = [
    ("plan", "--rows", "999", "--epsilon", "1", "--monotone", "Age:up"),
    ("plan", "--rows", "999", "--epsilon", "1", "--knots", "Age:3"),
    ("plan", "--rows", "999", "--epsilon", "1", "--penalty", "Age:3"),
    ("plan", "--rows", "999", "--epsilon", "1", "--interactions", "Age:work"),
    ("plan", "--rows", "999", "--epsilon", "1", "--model", "logistic", "--interest", "Age"),
    ("describe", "people.csv", "--epsilon", "1", "--no-ledger", "--column", "Age"),
    ("describe", "people.csv", "--epsilon", "1", "--no-ledger", "--cross", "Age:work"),
]


@pytest.mark.parametrize("words", OPTIONS_THAT_NAME_COLUMNS, ids=lambda words: words[-2])
def test_an_option_that_names_a_column_in_another_case_is_asked_about_it(folder, words):
    """Whichever option it is."""
    assert '"Age" (did you mean "age"?)' in refused(*words, "--schema", "people.toml")


def test_an_unknown_option_is_followed_by_the_one_that_was_meant(folder):
    """Options and names given to `confide new`, and weights of labels that the schema does not have, are asked about."""
    assert 'no such option: --Shema (did you mean "--schema"?)' in refused("plan", "--Shema", "people.toml")
    assert '"Income" (did you mean "income"?)' in refused("new", "people.csv", "--target", "Income", "--out-dir", "new")
    weights = ("plan", "--schema", "people.toml", "--rows", "999", "--epsilon", "1", "--class-weight", "low:1,High:2")
    assert '"High" (did you mean "high"?)' in refused(*weights)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("fit", "people.csv", "--epsilon"), "--epsilon is missing; write --epsilon E. Privacy budget;"),
        (("ledger", "init", "study.db", "--epsilon"), "Example: confide ledger init study.db --epsilon 4 --delta 1e-6"),
        (("fit", "--n-rows-bounds", "9"), "write --n-rows-bounds LOW HIGH."),
        (("search", "--method"), "write --method <auto|permute-and-flip|exponential|repeated>."),
        (("fit", "people.csv", "--schema", "--epsilon", "0.2"), "the value of --schema is missing; write --schema FILE."),
        (("run", "study.toml", "--release", "--dry-run"), "the value of --release is missing; write --release NAME."),
        (("ledger", "init", "study.db", "--epsilon", "--delta", "1e-6"), "the value of --epsilon is missing"),
    ],
)
def test_an_option_without_its_value_is_not_unknown(folder, words, shown):
    """What is missing, how it is written and an example are said."""
    told = refused(*words)
    assert shown in told
    assert "no such option" not in told
    assert "such file" in refused("fit", "people.csv", "--force", "--schema=--out", "--epsilon", "1")
    assert "does not take a value. Try 'confide fit --help'." in refused("fit", "people.csv", "--force=1")


def test_keys_of_a_study_and_addresses_are_named_as_they_were_written(folder):
    """No option takes the place of a key, and an address keeps both slashes."""
    parts = "[study]\nname = 'a'\n[outputs]\nmodel = 'm.json'\n[ledger]\nfile = 'l.db'\n[budget]\nEpsilon = 1\n"
    Path("study.toml").write_text(parts + "[data]\nfile = 'people.csv'\nschema = 'people.toml'\n", encoding="utf-8")
    assert "n_rows_bounds, max_rows_per_person." in refused("run", "study.toml")
    assert "https://a.org/p.csv is an address" in refused("new", "https://a.org/p.csv")
    assert "s3://a/p.toml is an address" in refused("fit", "people.csv", "--schema", "s3://a/p.toml", "--epsilon", "1")
    assert "https://a.org/x.py is an address" in refused("audit", "https://a.org/x.py", "--epsilon", "1")
    assert "s3://a/b is an address" in refused("new", "people.csv", "--out-dir", "s3://a/b")
    cached = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--no-ledger", "--cache")
    assert "s3://a/b is an address" in refused(*cached, "s3://a/b")
    assert "--cache is not a folder that exists: nowhere." in refused(*cached, "nowhere")
    assert not Path("s3:").exists()
    study = Path("study.toml").read_text(encoding="utf-8").replace("Epsilon", "epsilon")
    for name in ("people.csv", "people.toml", "m.json", "l.db"):
        Path("study.toml").write_text(study.replace(name, f"s3://a/{name}"), encoding="utf-8")
        assert f"s3://a/{name} is an address" in refused("run", "study.toml")


def test_the_schema_in_the_url_of_a_ledger_is_no_option(folder):
    """Advice on such a URL keeps its key."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    assert "/database?schema=name" in refused("ledger", "init", "s3://a/l.db", "--epsilon", "1")
