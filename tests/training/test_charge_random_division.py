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
from confide.intake.targets import Classes, Numbers
from confide.models.model import Link
from confide.models.scores import LinearModel
from confide.privacy.noise import Entropy
from confide.training.charge import ErrorsOfNumbers, divided, mistakes, refuse_persons, refuse_undivided
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


BALL = BallBound(1.0)
WEIGHTS = LinearModel(np.array([[1.0, 0.3]]), np.array([0.1]), BALL)
SQUARES = ErrorsOfNumbers(Link("identity"), -1.0, 1.0, 0.5, None)
SUMS = {
    "squares": SQUARES,
    "squares of the whole range": replace(SQUARES, clip=2.0),
    "counts": ErrorsOfNumbers(Link("exponential"), 0.0, 2.0, 0.5, None),
    "a median": replace(SQUARES, quantile=0.5),
    "a high quantile": replace(SQUARES, quantile=0.9),
}


def errors(own, X, targets, model=WEIGHTS):
    """The sum of errors over these rows, as a number."""
    numbers = replace(specification(), target=Numbers(low=own.low, high=own.high))
    with checked_input(X, targets).checked([numbers]) as (rows,):
        return own.of(model, rows)


@pytest.mark.parametrize("name", SUMS)
def test_errors_of_numbers_are_those_of_their_definition(name):
    """By NumPy, row by row: clipped predictions, and squares or the loss of the quantile, over that of the clip."""
    X, _ = rows_and_labels()
    own, targets = SUMS[name], np.random.default_rng(0).uniform(-1.0, 2.0, len(X))
    scores = X @ [1.0, 0.3] + 0.1
    predicted = np.clip(np.exp(scores) if name == "counts" else scores, own.low, own.high)
    residuals, q = np.clip(targets, own.low, own.high) - predicted, own.quantile
    loss = residuals**2 if q is None else np.where(residuals > 0, q, q - 1.0) * residuals
    largest = own.clip**2 if q is None else own.clip * max(q, 1.0 - q)
    assert own.unit == pytest.approx(largest)
    assert float(errors(own, X, targets)) == pytest.approx(np.minimum(loss / largest, 1.0).sum(), abs=len(X) * 2.0**-20)


@pytest.mark.parametrize("name", SUMS)
def test_one_row_changes_a_sum_of_errors_by_at_most_one_and_nearly_reaches_it(name):
    """Whatever is in its place. Without the clip, or with half the unit, it would be more: the noise is made for 1."""
    rng, own = np.random.default_rng(1), SUMS[name]
    X, targets = rng.uniform(-1.0, 1.0, (20, 2)), np.full(20, own.high)
    largest = 0.0
    for size in (0.1, 1.0, 1e3):
        pairs = [(size * rng.normal(size=2), target) for target in (own.low, 0.5, own.high)]
        others = [errors(own, np.vstack([X[1:], row]), np.append(targets[1:], target)) for row, target in pairs]
        without = errors(own, X[1:], targets[1:])
        assert all(0 <= other - without <= 1 for other in others)
        largest = max(largest, *(float(other - without) for other in others))
        for extreme in (-1e300, 1e300):
            huge = replace(WEIGHTS, coef=np.array([[extreme, extreme]]))
            assert 0 <= errors(own, X, targets, huge) <= len(X)
    assert largest > 0.5 if name == "squares of the whole range" else largest > 0.99


def test_a_sum_of_errors_has_no_order_and_no_other_row_in_it():
    """To the bit: each row is rounded by itself, and whole numbers are added."""
    X, targets = np.random.default_rng(2).uniform(-1.0, 1.0, (300, 2)), np.random.default_rng(3).uniform(-1.0, 1.0, 300)
    order = np.random.default_rng(4).permutation(300)
    assert errors(SQUARES, X, targets) == errors(SQUARES, X[order], targets[order])
    assert errors(SQUARES, X, targets) == sum(errors(SQUARES, X[[i]], targets[[i]]) for i in range(300))


def test_the_test_of_one_row_would_notice_a_missing_clip(monkeypatch):
    """A planted fault: errors as they are. One row then changes the sum by 400."""
    row, target, own = np.zeros((1, 2)), np.array([-1.0]), replace(SQUARES, clip=0.1)
    far = replace(WEIGHTS, intercept=np.array([5.0]))
    assert errors(own, row, target, far) == 1
    monkeypatch.setattr(np, "fmin", lambda numbers, _: numbers)
    assert float(errors(own, row, target, far)) == pytest.approx(400.0)
