"""Labels as positions of classes and as what a loss reads; targets as numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from confide.errors import InputError
from confide.features.cells import NumberTarget, class_positions, positions_of, read_labels, targets_at
from tests.features.tables import SECRET, SECRET_NUMBER, assert_silent

DOMAINS = {
    "integers": (np.array([3, 1, 2, 9]), (1, 2, 3), [2, 0, 1, -1]),
    "floats for integers": (np.array([0.0, 1.0, 0.5]), (0, 1), [0, 1, -1]),
    "booleans": (np.array([True, False]), (False, True), [1, 0]),
    "text": (np.array(["b", "a", "z"]), ("a", "b"), [1, 0, -1]),
    "objects": (np.array(["b", "a", "z"], dtype=object), ("a", "b"), [1, 0, -1]),
    "numbers for text": (np.array([1, 2]), ("1", "2"), [-1, -1]),
    "one class": (np.array([7, 7, 8]), (7,), [0, 0, -1]),
    "no labels": (np.array([], dtype=int), (0, 1), []),
}


@pytest.mark.parametrize(("labels", "domain", "positions"), DOMAINS.values(), ids=DOMAINS)
def test_each_label_has_the_position_of_its_class(labels, domain, positions):
    """Positions follow the order of the declaration, and -1 stands for a label that is none of the classes."""
    assert class_positions(labels, domain).tolist() == positions


def test_objects_are_compared_one_by_one():
    """A label of another type does not change the position of any other label."""
    labels = np.array([np.float32(0.1), 1, True, "1"], dtype=object)
    assert class_positions(labels, (np.float32(0.1), 1)).tolist() == [0, 1, 1, -1]
    changed = np.array([np.float32(0.1), 1, True, 0.25], dtype=object)
    assert class_positions(changed, (np.float32(0.1), 1)).tolist() == [0, 1, 1, -1]


@pytest.mark.parametrize("n_classes", [1, 2, 127, 128, 129, 1000])
def test_positions_of_many_classes_have_room(n_classes):
    """They are held in the smallest integers for the number of classes."""
    labels = np.arange(-1, n_classes + 1)
    positions = class_positions(labels, tuple(range(n_classes)))
    assert positions.tolist() == [-1, *range(n_classes), -1]
    assert positions.dtype == (np.int8 if n_classes <= 128 else np.int16)


@pytest.mark.parametrize("n_classes", [2, 3, 200])
def test_a_loss_reads_signs_of_two_classes_and_positions_of_more(n_classes):
    """The positions can be computed back from what the loss reads."""
    positions = class_positions(np.arange(n_classes), tuple(range(n_classes)))
    targets = targets_at(positions, n_classes)
    assert targets.tolist() == ([-1, 1] if n_classes == 2 else list(range(n_classes)))
    assert targets.dtype == (np.int8 if n_classes == 2 else np.intp)
    back = positions_of(targets, n_classes)
    assert back.tolist() == list(range(n_classes))
    assert back.dtype == np.intp


LABELS = {
    "pandas": (pd.Series(["no", "yes", "yes"]), "no", "yes"),
    "pandas objects": (pd.Series(["no", "yes", " yes"], dtype=object), "no", "yes"),
    "categorical": (pd.Series(["no", "yes", "yes"]).astype("category"), "no", "yes"),
    "Polars": (pl.Series(["no", "yes", "yes"]), "no", "yes"),
    "Polars Categorical": (pl.Series(["no", "yes", "yes"], dtype=pl.Categorical), "no", "yes"),
    "Arrow": (pa.array(["no", "yes", "yes"]), "no", "yes"),
    "Arrow in chunks": (pa.chunked_array([["no"], ["yes", "yes"]]).dictionary_encode(), "no", "yes"),
    "a list": (["no", "yes", "yes"], "no", "yes"),
    "text array": (np.array(["no", "yes", "yes"]), "no", "yes"),
    "object array": (np.array(["no", "yes", "yes"], dtype=object), "no", "yes"),
    "integers": (np.array([-1, 1, 1]), -1, 1),
    "floats for integers": (np.array([0.0, 1.0, 1.0]), 0, 1),
    "text for integers": (["0", "1.0", "1"], 0, 1),
    "booleans": (np.array([False, True, True]), False, True),
    "text for booleans": (["False", "TRUE", "true"], False, True),
    "positive below negative": ([2, 1, 1], 2, 1),
    "strided": (np.array([0, 7, 1, 7, 1, 7])[::2], 0, 1),
}


@pytest.mark.parametrize(("values", "negative", "positive"), LABELS.values(), ids=LABELS)
def test_labels_are_read_from_any_type(values, negative, positive):
    """One negative and two positive labels are read from every container."""
    labels = read_labels(values, negative, positive)
    assert labels.dtype == np.int8
    assert labels.tolist() == [-1, 1, 1]


REFUSED_LABELS = {
    "another label": (["no", SECRET], "neither 'no' nor 'yes'"),
    "another number": (np.array([SECRET_NUMBER, 1]), "neither"),
    "a missing label": (["no", None, SECRET], "missing"),
    "a label that is not a number": (np.array([SECRET_NUMBER, np.nan]), "missing"),
    "a masked label": (np.ma.array([SECRET_NUMBER, 1], mask=[False, True]), "missing"),
    "bytes": (np.array([SECRET.encode(), b"no"]), "convert"),
    "lists": ([[SECRET], ["no"]], "convert"),
    "two columns": (pd.DataFrame({"a": [SECRET], "b": [SECRET]}), "one column"),
    "one column of a Polars frame": (pl.DataFrame({"a": [SECRET]}), "one column"),
    "a matrix": (np.full((2, 1), SECRET_NUMBER), "one column"),
    "text": (SECRET, "one column"),
    "a mapping": ({SECRET: SECRET}, "one column"),
    "nothing": (None, "one column"),
    "no labels": ([], "there are none"),
}


@pytest.mark.parametrize(("values", "words"), REFUSED_LABELS.values(), ids=REFUSED_LABELS)
def test_labels_outside_the_domain_are_refused_without_naming_them(values, words):
    """The message may name the two declared labels, but no cell."""
    with pytest.raises(InputError, match=words) as refusal:
        read_labels(values, "no", "yes")
    assert_silent(refusal.value)


def test_labels_are_read_one_by_one():
    """A label of another type at the end does not change the others."""
    plain = read_labels([np.float32(0.1)] * 5 + [0.2], 0.1, 0.2)
    assert plain.tolist() == [-1] * 5 + [1]
    assert read_labels(np.array([np.float32(0.1)] * 5 + [0.2], dtype=object), 0.1, 0.2).tolist() == plain.tolist()


def test_labels_of_more_classes_are_their_positions():
    """Positions follow the order in which the classes are given, and the message names all classes."""
    assert read_labels(["b", "c", "a"], "a", "b", "c").tolist() == [1, 2, 0]
    with pytest.raises(InputError, match="none of 'a', 'b', 'c'") as refusal:
        read_labels(["b", SECRET], "a", "b", "c")
    assert_silent(refusal.value)


def test_after_the_charge_no_label_is_refused():
    """A missing or unknown label counts as the first class."""
    assert read_labels(["yes", None, SECRET], "no", "yes", refuse=False).tolist() == [1, -1, -1]
    assert read_labels(["c", None, SECRET], "a", "b", "c", refuse=False).tolist() == [2, 0, 0]


@pytest.mark.parametrize("values", [[1, 2.5, -3], np.array([1, 2.5, -3]), pd.Series(["1", "2.5", "-3"])])
def test_targets_are_numbers(values):
    """They become fresh doubles, however they are held."""
    targets = NumberTarget(counts=False).read(values)
    assert targets.tolist() == [1.0, 2.5, -3.0]
    assert targets.dtype == np.float64
    assert targets.flags.writeable


def test_targets_are_clipped_one_by_one_to_public_bounds():
    """Also after the charge, where a target that is not a number counts as 0 before it is clipped."""
    values = [-3.0, 2.5, 99.0]
    assert NumberTarget(counts=False, low=1, high=10).read(values).tolist() == [1.0, 2.5, 10.0]
    assert values == [-3.0, 2.5, 99.0]
    assert NumberTarget(counts=True, low=1, high=10).read([np.nan, 99.0], refuse=False).tolist() == [1.0, 10.0]
    # What is subtracted comes after the clipping, so it moves no number out of the shifted range.
    assert NumberTarget(counts=False, low=1, high=10, shift=5.5).read([np.nan, 99.0], refuse=False).tolist() == [-4.5, 4.5]


REFUSED_TARGETS = {
    "a missing one": ([SECRET_NUMBER, None], False, "missing or infinite"),
    "an infinite one": ([SECRET_NUMBER, np.inf], False, "missing or infinite"),
    "text": ([SECRET, 1], False, "not numbers"),
    "a negative count": ([-SECRET_NUMBER, 1], True, "negative"),
}


@pytest.mark.parametrize(("values", "counts", "words"), REFUSED_TARGETS.values(), ids=REFUSED_TARGETS)
def test_targets_that_cannot_be_used_are_refused_or_count_as_zero(values, counts, words):
    """Before the charge they are refused without being named. After it, a target that is not a finite number counts as 0."""
    with pytest.raises(InputError, match=words) as refusal:
        NumberTarget(counts=counts).read(values)
    assert_silent(refusal.value)
    assert np.isfinite(NumberTarget(counts=counts).read(values, refuse=False)).all()


@pytest.mark.parametrize(
    ("classes", "values"),
    [
        ((0, 1), [True, False, True]),
        ((0, 1), np.array([True, False, True])),
        ((0, 1), pd.Series([True, False, True])),
        ((0, 1), ["TRUE", "FALSE", "TRUE"]),
        ((False, True), [1, 0, 1]),
        ((False, True), ["1", "0", "1.0"]),
        ((False, True), [1.0, 0.0, True]),
    ],
)
def test_true_and_false_are_1_and_0(classes, values):
    """Whichever of them a schema declares, and in either order; for other labels they are not."""
    assert read_labels(values, *classes).tolist() == [1, -1, 1]
    assert read_labels(values, *classes[::-1]).tolist() == [-1, 1, -1]
    for others in ((-1, 1), (0, 1, 2), ("no", "yes")):
        with pytest.raises(InputError):
            read_labels([True, False], *others)
