"""The table of parameters, and what follows from it: signatures, checks and refusals."""

from __future__ import annotations

import inspect
import math
import re
from fractions import Fraction

import numpy as np
import pytest

import confide
from confide import parameters
from confide.errors import ParameterError
from confide.estimators import parameters as written
from confide.parameters import COMMAND_LINE, PARAMETERS, checked, checked_choice

INF = math.inf
OWN = [kind for kind in vars(written).values() if inspect.isclass(kind) and kind.__module__ == written.__name__]
GROUPS = {kind.__name__: kind for kind in OWN}
SIGNED = [row for row in PARAMETERS.values() if row.group in GROUPS]
READ = [
    ("alpha", "auto", "auto"), ("alpha", np.float32(0.5), 0.5), ("alpha", 1e12, 1e12), ("alpha", Fraction(1, 4), 0.25),
    ("max_rows_per_person", np.int8(3), 3), ("max_sample_weight", 1e-9, 1e-9), ("random_state", None, None),
    ("random_state", np.int64(0), 0), ("n_jobs", None, None), ("n_jobs", -2, -2), ("inference_share", "auto", "auto"),
    ("inference_share", 0, 0.0), ("inference_share", 0.9, 0.9), ("target_bound", INF, INF), ("intercept_scaling", 3, 3.0),
    ("fit_intercept", np.False_, False), ("risk_differences", True, True), ("centre", False, False), ("threshold", 2, 2.0),
    ("centre", "auto", "auto"), ("population_size", None, None), ("l1_ratio", 0, 0.0), ("multiclass", "softmax", "softmax"),
]  # fmt: skip
REFUSED = [
    *(("alpha", value) for value in (0, -1.0, float("nan"), 1.1e12, True, "best", 1j, None)),
    *(("max_rows_per_person", value) for value in (0, 10**6 + 1, 1.0, True, None)),
    *(("max_sample_weight", value) for value in (0, 1e10, 1e-10, INF, True)),
    *(("random_state", value) for value in (-1, 1.0, True, "0", np.random.default_rng(0))),
    *(("n_jobs", value) for value in (0, 1.0, True, "all")),
    *(("inference_share", value) for value in (-0.1, 0.91, True, None, "some")),
    *(("target_bound", value) for value in (0.0, 1e-100, 1e100, True, "1")),
    *(("threshold", value) for value in (0.0, INF, True, "1")),
    *(("intercept_scaling", value) for value in (0.0, INF, True, "auto", 2.0**-300, 2.0**300)),
    *(("l1_ratio", value) for value in (1.0, -1e-9, True)),
    *(("quantile", value) for value in (0.0009, 0.9991)),
    *(("cluster_effect", value) for value in (0.99, 1.1e6)),
    *(("population_size", value) for value in (0, 1.5, 10**15 + 1)),
    *(("mean_sample_weight", value) for value in (0.0, -1.0)),
    *((name, value) for name in ("centre", "match_mean", "atoms") for value in (True, None, "never", 0)),
    *((name, value) for name in ("fit_intercept", "risk_differences") for value in (1, "True", None)),
]


def test_the_written_signatures_are_those_of_the_table():
    """The same names in the same groups, the same defaults, and a type that has each kind of value."""
    names = {name: set(vars(kind).get("__annotations__", {})) for name, kind in GROUPS.items()}
    assert {group: {row.name for row in SIGNED if row.group == group} for group in GROUPS} == names
    assert {row.group for row in PARAMETERS.values()} == {"", COMMAND_LINE} | {group for group in GROUPS if names[group]}
    for row in SIGNED:
        default = GROUPS[row.group].__dataclass_fields__[row.name].default
        assert (default, type(default)) == (row.default, type(row.default))
        written_as = re.sub(r"Literal\[.*?\]", "str", GROUPS[row.group].__annotations__[row.name])
        types = set(re.sub(r"Opened\[(.*)\]", r"\1 | None", written_as).split(" | "))
        if row.must:
            least = {row.kind.__name__, *("None" if each is None else type(each).__name__ for each in row.also)}
            assert least <= types, row.name


def test_a_row_describes_itself_wherever_it_is_shared():
    """A default is a value of the row; what is in a group has a text, and an option has a help. No words are left over."""
    assert not parameters._SAID
    for row in PARAMETERS.values():
        assert bool(row.option) == bool(row.help)
        assert bool(row.text) == (row.group in GROUPS)
        if row.must and row.group:
            assert checked(row.name, row.default) == row.default


@pytest.mark.parametrize(("name", "given", "expected"), READ, ids=repr)
def test_a_parameter_is_read_in_the_type_that_the_rest_computes_with(name, given, expected):
    """Whatever kind of number came; the ends of the ranges are allowed."""
    found = checked(name, given)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(("name", "given"), REFUSED, ids=lambda value: repr(value).split("(PCG")[0][:30])
def test_a_parameter_outside_of_its_range_is_refused_by_its_name(name, given):
    """Just beyond each end, of another type, and True for 1; in one line that ends as the row says."""
    with pytest.raises(ParameterError, match=f"^{name} must be [^\n]+\\.$") as refused:
        checked(name, given)
    assert "{" not in str(refused.value)


def test_a_misspelled_word_is_asked_about():
    """Beside the words that will do."""
    assert "'auto' (did you mean \"auto\"?) or a positive number" in PARAMETERS["alpha"].refusal("atuo")
    assert checked_choice("loss", "huber", ("huber", "other")) == "huber"
    for wrong in ("Huber", None, ["huber"]):
        with pytest.raises(ParameterError, match="loss must be one of 'huber', 'other'"):
            checked_choice("loss", wrong, ("huber", "other"))


def test_every_model_checks_what_the_table_says():
    """Before a row is looked at, in the words of the row; of a model that lacks a parameter the table says nothing."""
    for row in SIGNED:
        if not row.must or row.name == "intercept_scaling":
            continue
        for name in ("LogisticRegression", "PoissonRegressor", "AdditiveRegressor"):
            kind = getattr(confide, name)
            if row.name in inspect.signature(kind).parameters:
                bounds = {"bounds": (-1, 1)} if "bounds" in inspect.signature(kind).parameters else {}
                facts = bounds | ({"target_bound": 1.0} if "target_bound" in inspect.signature(kind).parameters else {})
                with pytest.raises(ParameterError, match=f"^{row.name} must be"):
                    kind(1.0, **(facts | {row.name: "nothing"})).fit([[0.0], [1.0]] * 10, [0, 1] * 10)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_numbers_of_low_precision_are_compared_as_the_numbers_that_they_are(kind):
    """NumPy rounds the end of a range to the precision of the number: 0 is no positive number in any precision."""
    for name, value in (("alpha", 0.0), ("intercept_scaling", 0.0), ("intercept_scaling", math.inf), ("l1_ratio", 1.0)):
        with pytest.raises(ParameterError, match=name):
            checked(name, kind(value))
        assert checked(name, kind(0.5)) == 0.5
    with pytest.raises(ParameterError, match="length_scale"):
        confide.KernelSVC(1.0, length_scale=kind(0.0)).plan(1000, 2)


def test_a_number_that_is_too_large_for_a_float_is_refused_as_one():
    """In the words of the parameter, and not as an overflow."""
    for value in (10**400, Fraction(10**400, 3), Fraction(1, 10**400)):
        with pytest.raises(ParameterError, match="mean_sample_weight"):
            checked("mean_sample_weight", value)
