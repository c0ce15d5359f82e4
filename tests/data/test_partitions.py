"""Sums over partitions elsewhere: added in a short tree, each partition once and the same, and nothing of them in logs."""

from __future__ import annotations

import math
import pickle
import traceback
from dataclasses import dataclass

import numpy as np
import pytest

from confide.data.arrays import TREE_ADDITIONS, sampled_positions, summation_depth
from confide.data.partitions import (
    FAN_IN,
    NumericReading,
    Outcome,
    PartitionedSource,
    Task,
    computed_by_cluster,
    sum_of_outcomes,
)
from confide.data.spark import _packed, _unpacked
from confide.data.streams import SIZE, Reading
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.features.encoder import Encoder
from confide.solvers.fallback import NewtonThenFallback
from tests.data.tables import SCHEMA, made_up

ROW_SUM = RowSum(LogisticLoss(), BallBound(1.0), 1.0, 2)


def numeric_parts(n_parts=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    return X, y, list(zip(np.array_split(X, n_parts), np.array_split(y, n_parts), strict=True))


def outcome_of(task, number, pair):
    return task.run(number, lambda refuse: iter([task.reading.piece(pair, refuse=refuse)]))


def run_on(parts):
    return lambda task: sum_of_outcomes([outcome_of(task, number, pair) for number, pair in enumerate(parts)])


@dataclass
class Depth:
    """Counts the additions behind it."""

    depth: int

    def __add__(self, other):
        return Depth(1 + max(self.depth, other.depth))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 64, 1000])
def test_the_tree_over_partitions_is_as_shallow_as_the_plan_allows(n):
    """Three additions a level of eight; the room in the summation depth is for 8^10 partitions, and not for 8^11."""
    level, levels = [Depth(0)] * n, 0
    while len(level) > 1:
        level = [sum_of_outcomes(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
        levels += 1
    assert level[0].depth <= 3 * levels
    assert levels <= math.ceil(math.log(n, FAN_IN) - 1e-9)
    assert 3 * 10 <= TREE_ADDITIONS < 3 * 11


def test_the_depth_of_a_partition_and_the_tree_is_within_that_of_all_rows():
    """Blocks, groups and groups of groups of one partition, and the tree: never more than what the certificate assumes."""
    for d in (3, 100, 2000):
        for n in (1, 63, 64, 127, 5000, 400_000):
            alone = summation_depth(n, d) - TREE_ADDITIONS  # of the largest partition
            for others in (0, 1, 65, 10**6):
                tree = 3 * math.ceil(math.log(1 + others, FAN_IN) - 1e-9)
                assert alone + tree <= summation_depth(n + others, d)


def test_sums_over_partitions_are_those_over_all_rows():
    """To rounding; the outcomes given are not changed by adding them up."""
    X, y, parts = numeric_parts()
    weights = np.random.default_rng(1).normal(size=(2, 4))
    reading = NumericReading(3, (0, 1), (1.0, 0.5))
    source, n_rows = PartitionedSource.checked(run_on(parts), reading)
    assert n_rows == 400
    totals = source.sum_over_rows(ROW_SUM, weights)
    whole = PartitionedSource.checked(run_on([(X, y)]), reading)[0].sum_over_rows(ROW_SUM, weights)
    for part in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(totals, part), getattr(whole, part), rtol=1e-12, atol=1e-12)
    outcomes = [outcome_of(Task(reading, ROW_SUM, weights), i, pair) for i, pair in enumerate(parts)]
    before = pickle.dumps(outcomes)
    sum_of_outcomes(outcomes)
    assert pickle.dumps(outcomes) == before


@pytest.mark.parametrize("fault", ["twice", "lost", "shorter", "number", "label", "order", "exchanged"])
@pytest.mark.parametrize("sampled", [False, True])
def test_a_partition_that_comes_twice_or_not_at_all_or_with_other_rows_is_refused(fault, sampled):
    """Every row counts once, and is in every pass what it was when it was checked; or nothing is released."""
    _, _, parts = numeric_parts()
    source = PartitionedSource.checked(run_on(parts), NumericReading(3, (0, 1)))[0]
    numbered = list(enumerate(parts))
    if fault == "twice":
        numbered.append(numbered[2])
    elif fault == "lost":
        del numbered[2]
    else:
        X, y = (part.copy() for part in parts[2])
        if fault == "shorter":
            X, y = X[1:], y[1:]
        elif fault == "number":
            X[-1, 1] = np.nextafter(X[-1, 1], 9.0)
        elif fault == "label":
            y[0] = 1 - y[0]
        elif fault == "order":
            X[[3, 7]], y[[3, 7]] = X[[7, 3]], y[[7, 3]]
        else:
            there, labels = parts[0]
            X[0], y[0] = there[0], labels[0]
            numbered[0] = (0, (np.vstack([parts[2][0][:1], there[1:]]), np.append(parts[2][1][0], labels[1:])))
        numbered[2] = (2, (X, y))

    def run(task):
        return sum_of_outcomes([outcome_of(task, number, pair) for number, pair in numbered])

    faulty = PartitionedSource(run, source.reading, source.partitions)
    with pytest.raises(ValueError, match="changed while it was read, so nothing is released"):
        faulty.sample(64) if sampled else faulty.sum_over_rows(ROW_SUM, np.zeros((1, 4)))


def test_workers_return_what_they_refuse_in_words_without_data():
    """Checks refuse as in memory; after them nothing is refused; what is unforeseen is named by its type alone."""
    X, y, parts = numeric_parts(2)
    parts[1][0][3, 1] = np.nan
    reading = NumericReading(3, (0, 1))
    with pytest.raises(ValueError, match="NaN or infinity"):
        PartitionedSource.checked(run_on(parts), reading)
    outcome = outcome_of(Task(reading, ROW_SUM, np.zeros((1, 4))), 1, parts[1])
    assert outcome.refusal is None
    assert np.isfinite(outcome.totals.hessian).all()
    with pytest.raises(ValueError, match="outside the declared classes"):
        PartitionedSource.checked(run_on([(X[:200], y[:200] + 1)]), reading)
    with pytest.raises(ValueError, match="one label or target for each row"):
        PartitionedSource.checked(run_on([(X[:200], y[:100])]), reading)
    with pytest.raises(ValueError, match="at least one"):
        PartitionedSource.checked(run_on([(X[:0], y[:0])]), reading)

    def failing(refuse):
        raise MemoryError("secret")
        yield

    outcome = Task(reading, ROW_SUM, np.zeros((1, 4))).run(0, failing)
    assert outcome.refusal == "a worker failed with MemoryError."
    source = PartitionedSource(lambda task: outcome, reading, outcome.partitions)
    with pytest.raises(ValueError, match=r"a worker failed with MemoryError\. Nothing is released"):
        source.sum_over_rows(ROW_SUM, np.zeros((1, 4)))


def test_what_travels_is_picklable_and_shows_nothing_in_logs():
    """Tasks and outcomes go to other processes, and their reprs into the logs of clusters."""
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))
    task = Task(
        reading, RowSum(LogisticLoss(), reading.encoder.row_bound, 1.0, 1), np.full((1, reading.n_features + 1), 0.25)
    )
    copy = pickle.loads(pickle.dumps(task))
    frame = made_up(50)
    outcomes = [one.run(0, lambda refuse, one=one: iter([one.reading.piece(frame, refuse=refuse)])) for one in (task, copy)]
    assert np.array_equal(outcomes[0].totals.gradient, outcomes[1].totals.gradient)
    assert repr(task) == "Task()"
    assert repr(outcomes[0]) == repr(Outcome((), None, None)) == "Outcome()"
    source = PartitionedSource(lambda task: outcomes[0], reading, ((0, 50, bytes(SIZE)),))
    assert repr(source) == "PartitionedSource()"
    assert outcomes[0].partitions == outcomes[1].partitions
    for fingerprint in (bytes(SIZE), bytes(range(SIZE)), bytes(range(SIZE))[::-1]):
        # Zeros at the end are a part of it.
        seen = ((3, 50, fingerprint), (70, 0, fingerprint))
        assert _unpacked(_packed(Outcome(seen, None, None))).partitions == seen


def test_an_error_of_a_cluster_is_named_by_its_type_alone():
    """The partitions are computed by code of the user, whose messages may quote cells."""

    def failing():
        raise LookupError("secret")

    with pytest.raises(ValueError, match="the cluster failed with LookupError, so nothing is released") as caught:
        computed_by_cluster(failing)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None
    assert computed_by_cluster(lambda: 3) == 3


@pytest.mark.parametrize("class_weights", [None, (0.5, 2.0)])
def test_a_sample_of_partitions_replaces_hessians_of_all_rows(class_weights):
    """Every so many-th run of each partition, with labels and weights; then a fit sums gradients alone, in fewer passes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 3))
    y = (X[:, 0] + rng.logistic(size=40_000) > 0).astype(int)
    parts = list(zip(np.array_split(X, 5), np.array_split(y, 5), strict=True))
    tasks = []

    def run(task):
        tasks.append(task)
        return run_on(parts)(task)

    source = PartitionedSource.checked(run, NumericReading(3, (0, 1), class_weights))[0]
    sample = source.sample(2500)
    positions = np.concatenate([first + sampled_positions(0, 8000, 16) for first in range(0, 40_000, 8000)])
    assert np.array_equal(sample.blocks.rows, X[positions])
    assert np.array_equal(sample.labels, 2 * y[positions] - 1)
    if class_weights is None:
        assert sample.row_weights is None
    else:
        assert np.array_equal(sample.row_weights, np.array(class_weights)[y[positions]])
    tasks.clear()
    objective = Objective(source, LogisticLoss(), BallBound(1.0), 1.0, 4.0, np.zeros((1, 4)), 2.0)
    solution = NewtonThenFallback().solve(objective, np.zeros((1, 4)), 1e-6)
    assert solution.gradient_norm[0] <= 1e-6
    assert [task.stride > 0 for task in tasks].count(True) == 1
    assert {task.row_sum.order for task in tasks if task.row_sum is not None} == {1}
    assert len(tasks) <= 12
    packed = _unpacked(_packed(run_on(parts)(Task(source.reading, stride=64))))
    assert np.array_equal(packed.sample[0], source.sample(625).blocks.rows)
