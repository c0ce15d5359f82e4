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
