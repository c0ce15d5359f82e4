"""Labels and targets are read as a loss needs them, or refused without a value."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import confide
from confide import InputError, Ledger, LogisticRegression, ParameterError, Ridge, Schema
from confide.intake.targets import MOST_CLASSES, Classes, Numbers, declared_domain, number_column, numbers_of
from tests.intake.refusals import GOOD_X, GOOD_Y, SECRET, SECRET_TEXT, refusal

INF = float("inf")


BAD_Y = {
    "missing": (None, "y"),
    "too short": (GOOD_Y[:-1], "inconsistent"),
    "two columns": (np.zeros((50, 2)), "1d"),
    "nan": (np.where(GOOD_Y, np.nan, 0.0), "NaN"),
    "none": (np.array([None, SECRET_TEXT] * 25, dtype=object), "missing"),
    "complex": (GOOD_Y * 1j * SECRET, "Complex"),
    "continuous": (GOOD_X[:, 0] * SECRET, "continuous"),
    "one unusual class": (np.full(50, SECRET), "classes"),
    "masked": (np.ma.masked_array(GOOD_Y, mask=GOOD_Y == 1), "masked"),
    "mixed": (np.array([SECRET_TEXT, 1] * 25, dtype=object), "one type"),
    "missing beside text": ([SECRET_TEXT, float("nan")] * 25, "missing"),
    "mixed list": ([SECRET_TEXT, 1] * 25, "one type"),
    "pandas NA": (pd.array([SECRET_TEXT, pd.NA] * 25, dtype="string"), "missing"),
    "dates": (np.array(["2001-01-01", "NaT"] * 25, dtype="datetime64[D]"), "text"),
    "bytes": (np.array([b"a", b"b"] * 25), "text"),
    "ragged": ([[1], [1, 2]] * 25, "one type"),
}


@pytest.mark.parametrize("name", BAD_Y)
def test_bad_labels_are_refused(name):
    """Missing, continuous, too many, or of the wrong shape."""
    y, expected = BAD_Y[name]
    assert expected in refusal(LogisticRegression(1.0), GOOD_X, y)


def test_labels_outside_the_declared_classes_are_refused():
    """With `classes` and with a schema's target."""
    assert "outside" in refusal(LogisticRegression(1.0, classes=["a", "b"]), GOOD_X, np.full(50, SECRET_TEXT))
    schema = Schema(columns={"x": {"low": 0, "high": 1}}, target={"column": "y", "negative": "a", "positive": "b"})
    frame = pd.DataFrame({"x": np.zeros(50)})
    assert "labels" in refusal(LogisticRegression(1.0, schema=schema), frame, [SECRET_TEXT] * 50)


def test_one_label_never_changes_what_the_others_mean():
    """2^53 and 2^53 + 1 stay apart when a float joins them; a half-precision label leaves its neighbours alone."""
    a = 2**53
    plain = Classes((a, a + 1)).read([a, a + 1, a, a + 1], 4).values
    joined = Classes((a, a + 1)).read([a, a + 1, a, float(a)], 4).values
    assert plain.tolist() == [-1, 1, -1, 1]
    assert joined.tolist() == [-1, 1, -1, -1]


def made_up(n=2000, d=5, seed=0, noise=0.1):
    """Rows of norm about 1, some longer, and targets mostly within 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, np.clip(X, -1, 1) @ np.linspace(1.0, -0.5, d) * 0.5 + 0.2 + noise * rng.normal(size=n)


GOOD_TARGETS = made_up(n=50)[1]


BAD_TARGETS = {
    "missing": (None, "y"),
    "too short": (GOOD_TARGETS[:-1], "inconsistent"),
    "two columns": (np.zeros((50, 2)), "1d"),
    "nan": (np.where(np.arange(50) == 3, np.nan, SECRET), "NaN"),
    "infinity": (np.where(np.arange(50) == 3, np.inf, SECRET), "infinity"),
    "complex": (GOOD_TARGETS * 1j * SECRET, "Complex"),
    "complex object": (np.array([SECRET * 1j] * 50, dtype=object), "Complex"),
    "text": (np.full(50, "987654321"), "text"),
    "text objects": (np.array(["x987654321"] * 50, dtype=object), "real numbers"),
    "none among objects": (np.array([None, SECRET] * 25, dtype=object), "."),
    "dates": (np.full(50, np.datetime64("2001-01-01")), "dates"),
    "masked": (np.ma.masked_array(GOOD_TARGETS, mask=GOOD_TARGETS > 0), "mask"),
    "ragged": ([[1], [1, 2]] * 25, "1d"),
    "too large": (np.array([10**400] * 50, dtype=object), "real numbers"),
}


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_bad_targets_are_refused(name):
    """In one line without a value of them, before any charge."""
    y, expected = BAD_TARGETS[name]
    ledger = Ledger(limit=10.0)
    with pytest.raises(InputError) as failure:
        Ridge(ledger=ledger, target_bound=1.0).fit(made_up(n=50)[0], y)
    assert expected in str(failure.value)
    assert "987654321" not in str(failure.value)
    assert ledger.spent().epsilon == 0.0


@pytest.mark.parametrize("kind", [list, np.float32, np.int64, bool, object, pd.Series, pl.Series])
def test_targets_may_be_any_real_numbers(kind):
    """Lists, arrays of any real type, series; the same weights without noise."""
    X, y = made_up(n=300)
    y = np.rint(y).clip(0, 1)
    given = list(y) if kind is list else kind(y) if kind in (pd.Series, pl.Series) else y.astype(kind)
    np.testing.assert_allclose(
        Ridge(INF, target_bound=1.0).fit(X, given).coef_, Ridge(INF, target_bound=1.0).fit(X, y).coef_, atol=1e-12
    )


# The module's own functions


@pytest.mark.parametrize(
    ("labels", "domain"),
    [
        ([0, 1, 1], (0, 1)),
        ([1, 1], (0, 1)),
        ([-1, -1], (-1, 1)),
        ([True, False], (False, True)),
        (np.array([1.0, 0.0]), (0.0, 1.0)),
        (["b", "a", "b"], ("a", "b")),
        ([3, 1, 2], (1, 2, 3)),
    ],
    ids=str,
)
def test_classes_that_are_not_declared_are_the_usual_pair_or_the_labels_present(labels, domain):
    """The usual pairs wherever the labels fit one, in the labels' own type; other labels in sorted order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.PrivacyWarning)
        found = Classes(None).read(labels, len(labels))
    assert found.domain == domain
    assert [type(label) for label in found.domain] == [type(label) for label in domain]
    assert "not declared" in found.sentence


def test_labels_become_signs_or_positions():
    """-1 and +1 of two classes, positions of three; and a schema's labels are known however a file wrote them."""
    assert Classes(("a", "b")).read(["b", "a"], 2).values.tolist() == [1, -1]
    assert Classes((1, 5, 9)).read([9, 1, 5], 3).values.tolist() == [2, 0, 1]
    as_text = Classes((0, 1), matched_as_text=True)
    for written in ([0, 1], [0.0, 1.0], ["0", " 1"]):
        assert as_text.read(written, 2).values.tolist() == [-1, 1]
    with pytest.raises(InputError, match="outside the declared"):
        Classes((0, 1)).read(["0", "1"], 2)


def test_only_labels_that_are_not_declared_and_not_usual_are_warned_of():
    """They were learned from y; the warning holds no label."""
    with pytest.warns(confide.PrivacyWarning, match="learned from y") as told:
        Classes(None).read([SECRET_TEXT, "other"], 2)
    assert SECRET_TEXT not in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Classes((SECRET_TEXT, "other")).read([SECRET_TEXT, "other"], 2)
        Classes(None).read([0, 1], 2)
        Classes(None).read([-1.0, 1.0], 2)


@pytest.mark.parametrize("kind", [Classes((0, 1)), Classes(None), Numbers()], ids=["declared", "present", "numbers"])
def test_there_is_one_label_or_number_for_each_row(kind):
    """Fewer, more, none at all; and neither number is in the message."""
    for y in ([0, 1, 1], [0] * 49, None):
        with pytest.raises(InputError) as refused:
            kind.read(y, 41)
        assert not {"41", "49", "3"} & set(str(refused.value).replace(".", " ").split())
    assert kind.read([0, 1], 2).values.shape == (2,)


@pytest.mark.parametrize("y", [[1.5, SECRET, 2.5], [SECRET, SECRET], [0, SECRET_TEXT]], ids=["fractions", "alike", "mixed"])
def test_no_refusal_of_labels_shows_one(y):
    """Whatever is wrong with them."""
    for kind in (Classes((0, 1)), Classes(None)):
        with pytest.raises(confide.ConfideError) as refused:
            kind.read(y, len(y))
        assert "98765" not in str(refused.value)
        assert SECRET_TEXT not in str(refused.value)


def test_so_many_labels_and_no_more_make_classes():
    """A hundred are read, and a hundred and one are refused."""
    with pytest.warns(confide.PrivacyWarning):
        assert len(Classes(None).read(np.arange(MOST_CLASSES), MOST_CLASSES).domain) == MOST_CLASSES
    with pytest.raises(InputError, match="more than 100"):
        Classes(None).read(np.arange(MOST_CLASSES + 1), MOST_CLASSES + 1)


@pytest.mark.parametrize("classes", [[0], [1, 1], "ab", 3, [[0, 1]], [[0], [1, 2]], range(101), [None, 1]], ids=str)
def test_a_declaration_that_is_none_is_refused(classes):
    """Fewer than 2 labels, more than 100, repeated ones, text taken for a list, and what is no list."""
    with pytest.raises(ParameterError, match="classes must be a list of 2 to 100"):
        declared_domain(classes, None)


def test_a_declared_domain_is_sorted_and_comes_from_one_place():
    """The parameter, or the schema's target; both together are refused, neither is None."""
    schema = Schema(columns={"x": {"low": 0, "high": 1}}, target={"column": "y", "negative": "z", "positive": "a"})
    without = Schema(columns={"x": {"low": 0, "high": 1}})
    assert declared_domain(["b", "c", "a"], None) == ("a", "b", "c")
    assert declared_domain(None, schema) == ("a", "z")
    assert declared_domain([1, 0], without) == (0, 1)
    assert declared_domain(None, None) is declared_domain(None, without) is None
    with pytest.raises(ParameterError, match="already declares the labels of its target"):
        declared_domain(["a", "z"], schema)
    assert Classes.declared(None, schema) == Classes(("a", "z"), matched_as_text=True)
    assert Classes.declared([1, 0], without) == Classes((0, 1), matched_as_text=False)


def test_numbers_are_read_as_doubles_and_counts_are_not_negative():
    """With the sentence of the estimator and no classes; a zero is a count."""
    found = Numbers(sentence="clipped").read(np.array([1, -2], dtype=np.int8), 2)
    assert found.values.dtype == np.float64
    assert (found.values.tolist(), found.domain, found.sentence) == ([1.0, -2.0], (), "clipped")
    assert Numbers(are_counts=True).read([0.0, 3.0], 2).values.tolist() == [0.0, 3.0]
    with pytest.raises(InputError, match="it holds negative numbers") as refused:
        Numbers(are_counts=True).read([0.0, -SECRET], 2)
    assert "98765" not in str(refused.value)
    assert numbers_of([True, False], 2).tolist() == [1.0, 0.0]
    clipped = Numbers(True, low=1.0, high=2.5)
    assert clipped.read([0.0, 2.0, 3.0], 3).values.tolist() == [1.0, 2.0, 2.5]
    asked = clipped.of_opened(Opened(target="visits")).numbers
    assert asked.read([0.0, 2.0, 3.0], refuse=True).tolist() == [1.0, 2.0, 2.5]


class Opened:
    """What a kind of target asks of opened rows."""

    def __init__(self, schema=None, target=None, labels=None):
        self.schema, self.target, self.labels = schema, target, labels

    def labels_present(self):
        return self.labels


def test_opened_rows_say_how_their_targets_are_read():
    """Declared classes, classes present, and the column of numbers; each with its sentence."""
    schema = Schema(columns={"x": {"low": 0, "high": 1}}, target={"column": "y", "negative": "a", "positive": "b"})
    declared = Classes.declared(None, schema).of_opened(Opened(schema))
    assert (declared.domain, declared.numbers) == (("a", "b"), None)
    assert "were declared" in declared.sentence
    present = Classes(None).of_opened(Opened(labels=np.array([0, 1])))
    assert (present.domain, present.numbers) == ((0, 1), None)
    assert "were not declared" in present.sentence
    numbers = Numbers(True, "counts").of_opened(Opened(schema, target="visits"))
    assert (numbers.domain, numbers.sentence) == ((), "counts")
    assert (numbers.numbers.column, numbers.numbers.counts) == ("visits", True)
    assert Numbers().of_opened(Opened()).numbers.column == ""


def test_a_classifier_takes_no_numbers_and_a_regressor_no_labels():
    """Of opened rows; each message says how to open them."""
    schema = Schema(columns={"x": {"low": 0, "high": 1}}, target={"column": "y", "negative": "a", "positive": "b"})
    with pytest.raises(ParameterError, match="open the rows without `target`"):
        Classes(("a", "b")).of_opened(Opened(schema, target="visits"))
    with pytest.raises(ParameterError, match=r"open_rows\(\.\.\., target=column\)"):
        Numbers().of_opened(Opened(schema))
    of_numbers = Schema(columns={"x": {"low": 0, "high": 1}}, target={"column": "y", "low": 2, "high": 5})
    for ask in (declared_domain, Classes.declared):
        with pytest.raises(ParameterError, match='"y", is a column of numbers, and a classifier predicts labels'):
            ask(None, of_numbers)
    assert number_column(of_numbers) == "y"
    assert number_column(schema) is number_column(None) is None
    assert Numbers().of_opened(Opened(of_numbers)).numbers.column == "y"
