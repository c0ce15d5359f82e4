"""The table [model] of a study as options of `confide fit`."""

from __future__ import annotations

import re

import pytest

from confide.cli.options import MODEL_OPTIONS, ModelOptions
from confide.cli.study_run import OF_BUDGET, in_words_of_keys, options_of
from confide.errors import ParameterError, StudyError
from tests.studies.examples import TEXT, study_of


def options(tmp_path, lines):
    return options_of(study_of(tmp_path, TEXT.replace('kind = "logistic"', lines)))


def test_keys_are_the_options_with_underscores(tmp_path):
    """Numbers and lists as TOML writes them are the texts of the command line; files are found beside the study."""
    lines = """
kind = "additive"
loss = "logistic-hinge"
knots = 6
interactions = [["age", "hours"], ["age", "sex"]]
monotone = { age = "up" }
penalty = { age = "smooth", hours = 4 }
alpha = 0.125
centre = false
intervals = 0.3
target_bound = 2
prior = "before.json"
"""
    found = options(tmp_path, lines)
    assert found == ModelOptions(
        kind="additive", loss="logistic-hinge", knots="6", interactions="age:hours,age:sex", monotone="age:up",
        penalty="age:smooth,hours:4",
        alpha="0.125", centre=False, intervals="0.3", target_bound=2.0, prior=tmp_path / "before.json",
    )  # fmt: skip
    assert options(tmp_path, "") == ModelOptions()


def test_the_budget_says_whom_it_protects(tmp_path):
    text = TEXT.replace(
        "epsilon = 0.5", 'rho = 1\nneighbours = "add-or-remove-one"\nn_rows_bounds = [1, 9]\nmax_rows_per_person = 3'
    )
    found = options_of(study_of(tmp_path, text))
    assert (found.neighbours, found.n_rows_bounds, found.max_rows_per_person) == ("add-or-remove-one", (1, 9), 3)
    assert set(OF_BUDGET) <= set(MODEL_OPTIONS)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('kind = "aditive"', "[model] kind: must be one of additive, logistic"),
        ('kind = "aditive"', '(did you mean "additive"?)'),
        ("knotz = 3", '[model]: unknown key "knotz" (did you mean "knots"?)'),
        ("neighbours = 3", "[model] neighbours: belongs in [budget]"),
        ("centre = 1", "[model] centre: must be true or false"),
        ("n_features = 1.5", "[model] n_features: must be a whole number"),
        ("n_features = true", "[model] n_features: must be a whole number"),
        ('length_scale = "a"', "[model] length_scale: must be a number"),
        ("prior = 3", "[model] prior: must be the path of a file"),
        ("alpha = true", "[model] alpha: must be text, a number"),
        ('interactions = [["a:b", "c"]]', "[model] interactions: names a column or a label with a colon"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, lines, message):
    with pytest.raises(StudyError, match=re.escape(message)):
        options(tmp_path, lines)


def test_refusals_name_keys_in_place_of_options(tmp_path):
    study = study_of(tmp_path)
    said = in_words_of_keys(study, ParameterError("--alpha must be auto; --n-rows-bounds too, or --model svm."))
    assert str(said).endswith("[model] alpha must be auto; [budget] n_rows_bounds too, or [model] kind svm.")
    assert "[model] length_scale" in str(in_words_of_keys(study, ParameterError("length_scale must be positive.")))
