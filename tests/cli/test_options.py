"""Options that describe a model."""

from __future__ import annotations

from pathlib import Path

import pytest

import confide
from confide.cli.options import ModelOptions
from tests.cli.commands import fit, refused, run, spent


def test_fit_passes_its_options_on(folder):
    """Alpha, mechanism, neighbours and bounds."""
    options = ("--alpha", "0.3", "--mechanism", "output", "--neighbours", "add-or-remove-one")
    fit(*options, "--n-rows-bounds", "150", "300")
    model = confide.load("model.json")
    assert (model.alpha, model.mechanism, model.n_rows_bounds) == (0.3, "output", (150, 300))
    assert model.guarantee_.neighbours is confide.Neighbours.ADD_OR_REMOVE_ONE


def test_intervals_that_are_not_to_be_had_are_refused(folder):
    """Too few rows, a share that is none, a kernel; nothing is written."""
    for options, words in (
        (("--intervals", "0.3"), "not be trustworthy"),
        (("--intervals", "much"), "auto or a number"),
        (("--intervals", "0"), "leave the option out"),
        (("--intervals", "2"), "--intervals must be"),
        (("--intervals", "0.3", "--model", "kernel-svm"), "mean nothing one by one"),
    ):
        message = fit(*options, code=2).stderr
        assert words in message.replace("\n", " ")
    assert not Path("model.json").exists()
    shown = run(
        "plan", "--rows", "50000", "--features", "4", "--epsilon", "1", "--intervals", "auto", "--model", "svm"
    ).stdout
    assert "expected interval" in shown


@pytest.mark.parametrize("option", [("--kernel", "rbf"), ("--length-scale", "1"), ("--n-features", "8")])
def test_options_of_kernels_are_refused_by_models_without(folder, option):
    """Rather than ignored."""
    assert f"{option[0]} is for --model kernel-svm alone" in refused(
        "fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", *option
    )


@pytest.mark.parametrize("option", [("--loss", "huber"), ("--knots", "6")])
def test_options_of_curves_are_refused_by_straight_lines(folder, option):
    """Rather than ignored."""
    options = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--model", "svm")
    assert f"{option[0]} is for --model additive alone" in refused(*options, *option)


@pytest.mark.parametrize("knots", ["six", "-1", "2.5", "1001", "", "1e2"])
def test_knots_are_a_whole_number_or_auto(folder_with_ledger, knots):
    """Refused before a charge, with the name of the option."""
    options = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--ledger", "study.db")
    assert "--knots must be auto or a whole number from 0" in refused(*options, f"--knots={knots}")
    assert spent() == 0.0


@pytest.mark.parametrize("text", ["age", "age:", "age:hours,", ":", "", "some"])
def test_interactions_are_words_or_columns_with_colons(folder_with_ledger, text):
    """One clear line, and nothing is charged."""
    options = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--ledger", "study.db")
    assert "--interactions must be auto, pairs, all, or columns" in refused(*options, f"--interactions={text}")
    assert spent() == 0.0


def test_interactions_reach_the_model(folder):
    """Named ones by their columns; pairs and what is unknown are shown or refused."""
    columns = confide.Schema.from_toml("people.toml").column_names
    shown = fit("--interactions", f"{columns[0]}:{columns[1]}").stdout
    model = confide.load("model.json")
    assert [interaction.columns for interaction in model.schema_.interact] == [columns[:2]]
    assert f"Interactions: {columns[0]} x {columns[1]}." in shown
    assert "all different" in fit("--interactions", f"{columns[0]}:{columns[0]}", "--force", code=2).stderr


def test_loss_and_knots_reach_the_model(folder):
    """And the file; a loss that does not suit the target is refused by its option."""
    fit("--loss", "logistic-hinge", "--knots", "2")
    model = confide.load("model.json")
    assert model.loss == "logistic_hinge"
    assert [column.knots for column in model.schema_.columns[:2]] == [2, 2]
    assert "--loss must be one of 'auto', 'logistic', 'logistic-hinge'" in fit("--loss", "huber", code=2).stderr


def test_options_that_were_not_given_leave_the_defaults_of_the_estimator():
    """Only the name of the model and the budget are needed."""
    for kind, expected in (("logistic", confide.LogisticRegression(1.0)), ("kernel-svm", confide.KernelSVC(1.0))):
        made = ModelOptions(kind=kind).estimator(confide.PureDP(1.0), None)
        assert made.get_params() == expected.get_params() | {"budget": confide.PureDP(1.0)}


def test_a_norm_of_rows_is_refused_for_kernels():
    """Random features always have norm 1."""
    with pytest.raises(confide.ParameterError, match="--row-norm"):
        ModelOptions(kind="kernel-svm", row_norm=2.0).estimator(confide.PureDP(1.0), None)
    assert ModelOptions(kind="svm", row_norm=2.0).estimator(confide.PureDP(1.0), None).row_norm == 2.0
