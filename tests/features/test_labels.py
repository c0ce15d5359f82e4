"""Labels as positions of classes and as what a loss reads."""

from __future__ import annotations

import numpy as np
import pytest

from confide.features.labels import class_positions, positions_of, targets_at

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
    """In the order of the declaration; -1 for a label that is none of the classes."""
    assert class_positions(labels, domain).tolist() == positions


def test_objects_are_compared_one_by_one():
    """A label of another type leaves the position of every other label as it was."""
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
    """And the positions come back from what it reads."""
    positions = class_positions(np.arange(n_classes), tuple(range(n_classes)))
    targets = targets_at(positions, n_classes)
    assert targets.tolist() == ([-1, 1] if n_classes == 2 else list(range(n_classes)))
    assert targets.dtype == (np.int8 if n_classes == 2 else np.intp)
    back = positions_of(targets, n_classes)
    assert back.tolist() == list(range(n_classes))
    assert back.dtype == np.intp
