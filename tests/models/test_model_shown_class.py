"""The class that weights and probabilities speak of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from confide import LogisticRegression, ParameterError, Ridge, Schema
from confide.estimators.linear_model import released_model
from confide.models.model import ShownClass, weights_by_class

X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 2))
INF = float("inf")


def of_labels(labels):
    """A model without a schema, of labels like these."""
    y = np.array(labels)[np.arange(60) % len(labels)]
    return released_model(LogisticRegression(INF, classes=labels).fit(X, y))


def of_schema(negative, positive):
    """A model whose schema says which label is the positive one."""
    schema = Schema(
        columns={"x": {"low": -1, "high": 1}}, target={"column": "ill", "negative": negative, "positive": positive}
    )
    frame = pd.DataFrame({"x": X[:, 0]})
    return released_model(LogisticRegression(INF, schema=schema).fit(frame, np.where(X[:, 0] > 0.1, positive, negative)))


def test_without_a_schema_it_is_the_second_class():
    """Of sorted labels; a label of text stands in quotation marks, a number does not."""
    assert ShownClass.of(of_labels([0, 1])) == ShownClass(1, None, 1)
    assert ShownClass.of(of_labels([0, 1])).sign == 1.0
    assert str(ShownClass.of(of_labels([0, 1]))) == "class 1"
    assert str(ShownClass.of(of_labels(["a", "b"]))) == 'class "b"'


@pytest.mark.parametrize(
    ("negative", "positive", "position", "sign"), [("no", "yes", 1, 1.0), ("well", "ill", 0, -1.0), (0, 1, 1, 1.0)]
)
def test_with_a_schema_it_is_the_positive_class_wherever_that_sorts(negative, positive, position, sign):
    """Where it sorts first, weights are turned."""
    shown = ShownClass.of(of_schema(negative, positive))
    assert (shown.label, shown.column, shown.position, shown.sign) == (positive, "ill", position, sign)
    assert str(shown) == ("ill = 1" if positive == 1 else f'ill = "{positive}"')


def test_a_positive_label_is_known_however_it_was_written():
    """A schema's "0" is the label 0 of the model, and of a number."""
    model = of_schema("1", "0")
    assert ShownClass.of(model).position == 0
    assert ShownClass.of(replace(model, domain=(0, 1))) == ShownClass(0, "ill", 0)
    assert ShownClass.of(replace(of_schema("0", "1"), domain=(0.0, 1.0))) == ShownClass(1.0, "ill", 1)


def test_of_three_classes_it_is_the_one_predicted_for_the_row():
    """There is no label and no position then."""
    shown = ShownClass.of(of_labels(["a", "b", "c"]))
    assert (shown.label, shown.column, shown.position, shown.sign) == (None, None, None, 1.0)
    assert str(shown) == "the predicted class"
    assert str(ShownClass(None, "species", None)) == "the predicted species"


def test_a_regressor_has_none():
    """It is read in Python."""
    model = released_model(Ridge(INF, target_bound=1.0).fit(X, X[:, 0]))
    with pytest.raises(ParameterError, match=r"confide\.load"):
        ShownClass.of(model)


def test_weights_of_two_classes_are_turned_towards_the_one_shown():
    """Positive where the column speaks for the positive class, although the model's own weights speak against it."""
    model = of_schema("well", "ill")
    ((label, (weights, intercept)),) = weights_by_class(model).items()
    assert label == "ill"
    assert model.scoring.coef[0, 0] < 0.0 < weights["x"]
    assert weights == {"x": -model.scoring.coef[0, 0]}
    assert intercept == -model.scoring.intercept[0]


def test_each_of_three_classes_has_its_weights():
    """By the names of the columns, in the order of the classes."""
    model = of_labels(["a", "b", "c"])
    found = weights_by_class(model)
    assert list(found) == ["a", "b", "c"]
    for place, (weights, intercept) in enumerate(found.values()):
        assert list(weights) == ["x0", "x1"]
        assert list(weights.values()) == model.scoring.coef[place].tolist()
        assert intercept == model.scoring.intercept[place]


def test_values_and_ends_of_rows_are_those_of_the_class_that_is_shown():
    """Turned for the first class, as they are for the second, and of the likeliest of several."""
    ends, scores = np.array([[0.1, 0.3], [0.5, 0.9]]), np.array([-1.0, 2.0])
    probabilities = np.array([[0.8, 0.2], [0.3, 0.7]])
    first, second, several = (ShownClass(None, None, place) for place in (0, 1, None))
    assert first.of_rows(scores).tolist() == [1.0, -2.0]
    assert first.of_rows(probabilities).tolist() == [0.8, 0.3]
    np.testing.assert_allclose(first.ends_of_rows(ends, probabilities), [[0.7, 0.9], [0.1, 0.5]])
    np.testing.assert_allclose(first.ends_of_rows(ends, scores), [[-0.3, -0.1], [-0.9, -0.5]])
    assert second.of_rows(probabilities).tolist() == [0.2, 0.7]
    assert np.array_equal(second.ends_of_rows(ends, probabilities), ends)
    of_classes = np.array([[[0.1, 0.2], [0.6, 0.9]], [[0.5, 0.8], [0.1, 0.2]]])
    values = np.array([[0.2, 0.8], [0.7, 0.3]])
    assert several.of_rows(values).tolist() == [0.8, 0.7]
    assert several.ends_of_rows(of_classes, values).tolist() == [[0.6, 0.9], [0.5, 0.8]]
