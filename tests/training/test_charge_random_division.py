"""Rows divided at random: parts of the sizes asked for, uniform among all divisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from confide.data.federated import FederatedRows
from confide.erm.row_bounds import BallBound
from confide.errors import InputTypeError, ParameterError
from confide.features.schema import Schema
from confide.intake.rows import checked_input
from confide.intake.targets import Classes
from confide.models.scores import LinearModel
from confide.privacy.noise import Entropy
from confide.training.charge import divided, mistakes, refuse_persons, refuse_undivided
from tests.data.tables import SCHEMA
from tests.training.examples import rows_and_labels, specification


def test_the_split_is_drawn_for_every_fit():
    """Every position in one part, of the size asked for; uniform: each of 24 orders of 4 rows as often, by chi-square."""
    sizes = (7, 6, 6, 5)
    parts = divided(sizes, Entropy.fresh())
    assert [len(part) for part in parts] == list(sizes)
    assert sorted(np.concatenate(parts)) == list(range(24))
    assert not np.array_equal(np.concatenate(parts), np.concatenate(divided(sizes, Entropy.fresh())))
    entropy = Entropy.seeded(2)
    orders = Counter(tuple(np.concatenate(divided((1, 2, 1), entropy)).tolist()) for _ in range(4800))
    assert len(orders) == 24
    assert chisquare(list(orders.values())).pvalue > 1e-3


@pytest.mark.parametrize("sizes", [(5,), (3, 3), (1, 4, 2)])
def test_the_parts_are_all_rows_each_once_in_parts_of_the_sizes_asked_for(sizes):
    """Whatever is drawn."""
    for seed in range(5):
        parts = divided(sizes, Entropy.seeded(seed))
        assert [part.size for part in parts] == list(sizes)
        assert sorted(np.concatenate(parts).tolist()) == list(range(sum(sizes)))


def test_every_row_lies_in_every_part_as_often():
    """A division of 6 rows into parts of 1, 2 and 3, drawn 6,000 times: by chi-square, and a fixed order would fail."""
    entropy, counts = Entropy.seeded(0), np.zeros((3, 6))
    for _ in range(6000):
        for place, part in enumerate(divided((1, 2, 3), entropy)):
            counts[place, part] += 1
    for place, size in enumerate((1, 2, 3)):
        assert chisquare(counts[place], [6000 * size / 6] * 6).pvalue > 1e-3


def test_rows_of_a_cluster_or_of_parties_are_not_divided():
    """They stay where they are; what this process reads is divided."""
    refuse_undivided(checked_input(*rows_and_labels()))
    with pytest.raises(InputTypeError, match="stay where they are"):
        refuse_undivided(checked_input(FederatedRows(SCHEMA, ()), None))


def test_a_private_number_of_rows_is_not_divided_into_public_sizes():
    """A column of persons makes the number private; the message says who asked, and what to do instead."""
    with_persons = Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="person")
    refuse_persons(SCHEMA, "a search needs")
    refuse_persons(None, "a search needs")
    with pytest.raises(ParameterError, match=r"a search needs .*max_rows_per_person=k"):
        refuse_persons(with_persons, "a search needs")


def test_mistakes_are_labels_that_the_model_does_not_predict():
    """Counted by NumPy, for two classes and for three."""
    X, y = rows_and_labels()
    two = LinearModel(np.array([[1.0, 0.3]]), np.array([0.1]), BallBound(1.0))
    with checked_input(X, y).checked([specification()]) as (rows,):
        assert mistakes(two, rows) == np.count_nonzero((X @ [1.0, 0.3] + 0.1 > 0.0) != y) > 0
    classes = np.arange(300) % 3
    three = LinearModel(np.random.default_rng(1).normal(size=(3, 2)), np.zeros(3), BallBound(1.0))
    with checked_input(X, classes).checked([replace(specification(), target=Classes((0, 1, 2)))]) as (rows,):
        assert mistakes(three, rows) == np.count_nonzero((X @ three.coef.T).argmax(axis=1) != classes) > 0
