"""Options that describe a model."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import typer

import confide
from confide.cli.application import app
from confide.cli.option_values import OPTION_OF, classes_of_kinds
from confide.cli.options import _TABLE, MODEL_OPTIONS, OPTIONS, ModelOptions
from tests.cli.commands import PRICES, fit, refused, run, spent

WITHOUT_OPTION = {
    "bounds": "a command needs a schema, which has the bounds of each column",
    "classes": "the schema declares the labels of its target",
    "max_sample_weight": "the schema names the column of weights and its cap: weight = { column = ..., high = ... }",
    "mean_sample_weight": "the schema says the mean of the weights: weight = { column = ..., high = ..., mean = ... }",
    "estimator": "--model and its options describe it",
    "target_high": "the schema has the range of its target: target = { column = ..., low = ..., high = ... }",
    "exposure_range": "the target of the schema has the exposure: exposure = { column = ..., low = ..., high = ... }",
    "target_low": "the schema has the range of its target: target = { column = ..., low = ..., high = ... }",
}
"""Parameters that have no option, and the reason."""


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
        (("--intervals", "0.3", "--model", "erm"), "for all models but erm"),
    ):
        message = fit(*options, code=2).stderr
        assert words in message.replace("\n", " ")
    assert not Path("model.json").exists()
    shown = run(
        "plan", "--rows", "50000", "--features", "4", "--epsilon", "1", "--intervals", "auto", "--model", "svm", "--details"
    ).stdout
    assert "expected interval" in shown


@pytest.mark.parametrize("option", [("--kernel", "rbf"), ("--length-scale", "1"), ("--n-features", "8")])
def test_options_of_kernels_are_refused_by_models_without(folder, option):
    """Rather than ignored."""
    assert f"{option[0]} is for --model kernel-svm alone" in refused(
        "fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", *option
    )


@pytest.mark.parametrize("option", [("--monotone", "age:up"), ("--knots", "6")])
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
    assert "--interactions must be auto, none, pairs, all, or columns" in refused(*options, f"--interactions={text}")
    assert spent() == 0.0


def test_interactions_reach_the_model(folder):
    """Named ones by their columns; pairs and what is unknown are shown or refused."""
    columns = confide.Schema.from_toml("people.toml").column_names
    shown = fit("--interactions", f"{columns[0]}:{columns[1]}").stdout
    model = confide.load("model.json")
    assert [interaction.columns for interaction in model.schema_.interact] == [columns[:2]]
    assert f"Interactions: {columns[0]} x {columns[1]}." in shown
    assert "two or more different names" in fit("--interactions", f"{columns[0]}:{columns[0]}", "--force", code=2).stderr


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


def test_every_public_parameter_has_an_option_or_a_reason():
    """Of all estimators, and of the search. A new parameter needs an option, or a line in WITHOUT_OPTION."""
    found = [each for of_kind in classes_of_kinds().values() for each in of_kind]
    names = {name for each in (*found, confide.PrivateSearchCV) for name in inspect.signature(each).parameters}
    assert names <= set(OPTION_OF) | set(WITHOUT_OPTION)
    assert not set(OPTION_OF) & set(WITHOUT_OPTION)
    assert set(WITHOUT_OPTION) <= names


def options_of(command):
    """The names of the options of a command."""
    found = typer.main.get_command(app).commands[command].params
    return {name for parameter in found for name in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("command", ["fit", "plan", "search", "sample-size"])
def test_commands_have_the_options_that_the_table_names(command):
    """For every parameter of every model, as far as the command has a use for it."""
    found = [each for of_kind in classes_of_kinds().values() for each in of_kind]
    needed = {OPTION_OF[n] for each in found for n in inspect.signature(each).parameters if n in OPTION_OF}
    assert needed - options_of(command) == {OPTION_OF[name] for name in NO_USE[command]}


NO_USE = {
    "fit": ("row_norm",),  # a command that reads a table needs a schema, which bounds the rows
    "plan": ("ledger", "n_jobs", "random_state"),
    "search": ("row_norm", "intervals", "interest", "risk_differences", "n_jobs"),
    "sample-size": ("ledger", "n_jobs", "random_state", "alpha", "n_rows_bounds", "neighbours", "centre"),
}
"""Parameters that a command has no use for."""


def test_every_parameter_of_a_model_reaches_it(folder):
    """Each option by its value, on a model that has it."""
    schema = confide.Schema.from_toml("people.toml")
    given = {
        "additive": {
            "penalty": "age:smooth",
            "monotone": "age:up",
            "knots": "age:3",
            "class_weight": "high:5,low:1",
            "intercept_scaling": "0.5",
        },
        "svm": {"loss": "smooth-hinge", "smoothing": 0.25, "intercept": False, "jobs": 2, "seed": 3},
        "kernel-svm": {
            "orthogonal": True,
            "map_seed": 7,
            "kernel": "cauchy",
            "length_scale": 2.0,
            "n_features": 8,
            "feature_norm": "2.5",
        },
        "logistic": {"multiclass": "ovr", "centre": False, "alpha": "0.25", "intervals": "0.2"},
        "erm": {"loss": "huber-hinge"},
    }
    expected = {
        "additive": {
            "penalty": {"age": "smooth"},
            "monotone": {"age": "up"},
            "knots": {"age": 3},
            "class_weight": {"high": 5.0, "low": 1.0},
        },
        "svm": {"loss": "smooth_hinge", "smoothing": 0.25, "fit_intercept": False, "n_jobs": 2, "random_state": 3},
        "kernel-svm": {
            "orthogonal": True,
            "map_seed": 7,
            "kernel": "cauchy",
            "length_scale": 2.0,
            "n_features": 8,
            "feature_norm": 2.5,
        },
        "logistic": {"multiclass": "ovr", "centre": False, "alpha": 0.25, "inference_share": 0.2},
        "erm": {"loss": "huber_hinge"},
    }
    for kind, options in given.items():
        made = ModelOptions(kind=kind, **options).estimator(confide.PureDP(1.0), schema).get_params()
        assert {name: made[name] for name in expected[kind]} == expected[kind]
    alone = ModelOptions(kind="kernel-svm", feature_norm="none").estimator(confide.PureDP(1.0), schema)
    assert alone.get_params()["feature_norm"] is None
    Path("prices.toml").write_text(PRICES, encoding="utf-8")
    prices = confide.Schema.from_toml("prices.toml")
    for kind, loss in (("additive", "poisson"), ("huber", "clipped-squared"), ("erm", "poisson")):
        options = ModelOptions(kind=kind, loss=loss, threshold="2.5", target_bound=40.0)
        made = options.estimator(confide.PureDP(1.0), prices).get_params()
        assert (made["loss"], made["threshold"], made["target_bound"]) == (loss.replace("-", "_"), 2.5, 40.0)
    assert ModelOptions(kind="ridge", intervals="auto").estimator(confide.PureDP(1.0), prices).intervals is True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "logistic", "threshold": "1"}, "--threshold is for --model additive, huber, poisson and erm"),
        ({"kind": "additive", "threshold": "1"}, "--threshold does nothing for --model additive that predicts labels"),
        ({"kind": "additive", "target_bound": 1.0}, "--target-bound is for a target of numbers"),
        ({"kind": "svm", "smoothing": 0.5, "intervals": "half"}, "--intervals must be auto or a number"),
        ({"kind": "erm", "intervals": "0.5"}, "--intervals is for all models but erm"),
        ({"kind": "additive", "monotone": "age:sideways"}, "--monotone must name columns with up or down"),
        ({"kind": "additive", "monotone": "age"}, "--monotone must give a value for each name once"),
        ({"kind": "additive", "knots": "age:2,age:3"}, "--knots must give a value for each name once"),
        ({"kind": "svm", "class_weight": "high:much"}, "--class-weight must give a number for each label"),
        ({"kind": "kernel-svm", "penalty": "smooth"}, "--penalty is for --model additive"),
        ({"kind": "svm", "intercept_scaling": "nan"}, "--intercept-scaling must be auto or a positive number"),
    ],
)
def test_options_that_do_not_suit_a_model_are_refused(folder, options, words):
    """Rather than ignored, with the models that have them."""
    with pytest.raises(confide.ParameterError, match=re.escape(words)):
        ModelOptions(**options).estimator(confide.PureDP(1.0), confide.Schema.from_toml("people.toml"))


def test_a_norm_of_rows_is_refused_for_kernels():
    """The bound follows from their map."""
    with pytest.raises(confide.ParameterError, match="--row-norm"):
        ModelOptions(kind="kernel-svm", row_norm=2.0).estimator(confide.PureDP(1.0), None)
    assert ModelOptions(kind="svm", row_norm=2.0).estimator(confide.PureDP(1.0), None).row_norm == 2.0


def test_every_row_of_the_table_of_options_is_an_option_of_some_command():
    """And each option of a command is as its row says: a row that nobody takes would be read as documentation."""
    commands = dict(typer.main.get_command(app).commands)
    commands |= {f"ledger {name}": command for name, command in commands.pop("ledger").commands.items()}
    taken = {parameter.name: parameter for command in commands.values() for parameter in command.params}
    assert set(OPTIONS) <= set(taken)
    for name, command in commands.items():
        own = set(_TABLE[name]) - set(_TABLE.defaults()) - {"example", "exit code"}
        assert own <= {parameter.name for parameter in command.params}
    assert not set(_TABLE.defaults()) & set(MODEL_OPTIONS)
    for parameter in commands["fit"].params:
        usage, _, words = OPTIONS.get(parameter.name, "").partition("  ")
        if usage.startswith("--"):
            assert parameter.opts[0] == re.split("[ />]", usage)[0]
            assert parameter.help.startswith(words[:60])
