"""What an evaluation decides before a row is used, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide import LinearSVC, ParameterError, Schema
from confide.estimators.evaluation import planned_evaluation, specifications
from confide.evaluations.tables import ClassPairTables, ClassTables, NumberPairTables, NumberTables
from confide.features.columns import CategoryColumn
from confide.features.table import RowsPerPerson
from confide.privacy.budgets import ZCDP, Neighbours, PureDP
from confide.privacy.noise import Entropy
from confide.privacy.tables import Counts
from tests.evaluations.examples import classifier, regressor, three_classes
from tests.inference.test_rates import population


def two_classes(**more):
    return confide.LogisticRegression(math.inf, classes=[0, 1], **more).fit(*population(500, 0))


def planned(model, **more):
    return planned_evaluation(model, PureDP(1.0), **more)


def test_each_kind_of_model_has_its_tables():
    assert isinstance(planned(two_classes()).plan.query, Counts)
    assert planned(two_classes()).n_cells == 40
    assert isinstance(planned(two_classes(), clip=1.0).layout, ClassTables)
    assert isinstance(planned(classifier()).layout, ClassTables)
    assert isinstance(planned(regressor()).layout, NumberTables)
    assert isinstance(planned(two_classes(), other=two_classes()).layout, ClassPairTables)
    assert isinstance(planned(regressor(), other=regressor()).layout, NumberPairTables)
    assert planned(regressor(), clip=9.0).layout.clip == 2.0


KINDS = {
    "two classes": (two_classes, {}, 1),
    "a clipped loss": (two_classes, {"clip": 1.0}, 3),
    "three classes": (classifier, {}, 3),
    "numbers": (regressor, {}, 2),
    "two classifiers": (classifier, {"other": classifier}, 2),
    "two regressors": (regressor, {"other": regressor}, 2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("persons", [1, 3])
def test_the_noise_is_for_all_tables_the_relation_and_the_rows_of_a_person(kind, neighbours, persons):
    """A row that comes or goes moves a unit of each table, one that is replaced two, and k rows of a person k times that."""
    make, more, n_tables = KINDS[kind]
    more = {name: value() if callable(value) else value for name, value in more.items()}
    of_tables = n_tables * (2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0)
    facts = {"neighbours": neighbours, "rows_per_person": persons} | more
    pure, concentrated = (planned_evaluation(make(), budget, **facts).plan for budget in (PureDP(0.5), ZCDP(0.02)))
    for plan, deviation in (
        (pure, math.sqrt(2.0) * persons * of_tables / 0.5),
        (concentrated, persons * math.sqrt(of_tables) / 0.2),
    ):
        assert plan.deviation == pytest.approx(deviation, rel=0.01)
        assert (plan.event.rows_per_person, plan.event.neighbours, plan.neighbours) == (persons, neighbours, neighbours)


@pytest.mark.parametrize(
    ("make", "wrong", "words"),
    [
        (classifier, {"n_bins": 1}, "n_bins must be a whole number"),
        (classifier, {"clip": -1.0}, "clip must be a positive number"),
        (classifier, {"clip": True}, "clip must be a positive number"),
        (classifier, {"groups": "sex"}, "fitted with a schema"),
        (classifier, {"other": regressor()}, "two classifiers or two regressors"),
        (classifier, {"other": two_classes()}, "same classes"),
        (classifier, {"other": classifier(), "n_bins": 4}, "has no bins"),
        (two_classes, {"n_bins": 3}, "even whole number"),
        (regressor, {"other": confide.Ridge(math.inf, target_bound=2.0).fit([[0.1], [0.2]], [1, 2])}, "the same range"),
        (lambda: LinearSVC(math.inf, classes=[0, 1]).fit(*population(500, 0)), {"clip": 1.0}, "no probabilities"),
    ],
)
def test_what_cannot_be_honoured_is_refused(make, wrong, words):
    with pytest.raises(ParameterError, match=words):
        planned(make(), **wrong)


def test_groups_must_be_a_column_of_categories_that_is_not_the_target():
    schema = Schema(
        columns={"u": {"low": -1, "high": 1}, "sex": {"categories": ["f", "m"], "missing": True}},
        target={"column": "y", "negative": 0, "positive": 1},
        person="who",
    )
    frame = pd.DataFrame({"u": [0.1, 0.2], "sex": ["f", "m"], "who": [1, 2]})
    model = confide.LogisticRegression(math.inf, schema=schema).fit(frame, [0, 1])
    assert planned(model, groups="sex").groups.names == ("f", "m", "(missing)", "(not listed)")
    outside = CategoryColumn("region", ("north", "south"), other=True)
    assert planned(model, groups=outside).groups.names == ("north", "south", "(other)")
    for wrong in (
        "u",
        "nothing",
        3,
        CategoryColumn("who", ("a",)),
        CategoryColumn("y", ("a",)),
        CategoryColumn("sex", ("x",)),
    ):
        with pytest.raises(ParameterError, match=r"groups|schema describes this column"):
            planned(model, groups=wrong)
    for taken in ("(not listed)", "(missing)", "all rows"):
        with pytest.raises(ParameterError, match="another name"):
            planned(model, groups=CategoryColumn("region", ("north", taken), missing=True))


def test_two_readings_draw_the_same_rows_of_a_person():
    """Otherwise the models would score different rows."""
    X, y = three_classes(60, 1)
    wide = confide.KernelSVC(math.inf, classes=[0, 1, 2], n_features=8).fit(X, y)
    pair = planned(LinearSVC(math.inf, classes=[0, 1, 2]).fit(X, y), other=wide)
    assert pair.reads_twice
    first, second = specifications(pair, RowsPerPerson(1, Entropy.fresh().permutation))
    persons = np.arange(60) // 3
    assert (first.rows_per_person.drawn(persons) == second.rows_per_person.drawn(persons)).all()
    assert not planned(classifier(), other=classifier(alpha=0.3)).reads_twice
