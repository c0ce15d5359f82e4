"""Solvers do their worst to all that they are given; the release is what it would have been, or there is none."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from confide.data.arrays import ArrayBlocks, EncodedBlocks, MemorySource
from confide.erm.coded_rows import CodedRows
from confide.erm.losses import HuberHinge
from confide.erm.objective import Solution
from confide.erm.row_bounds import BallBound
from confide.errors import NotCertified
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.privacy.budgets import PureDP
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.problems import problem, source

MECHANISMS = {"objective": ObjectivePerturbation(), "output": OutputPerturbation()}
PLANS = {
    name: mechanism.plan(problem(200, 3, loss=HuberHinge(0.5), l2=60.0), PureDP(1.0))
    for name, mechanism in MECHANISMS.items()
}
SEED = 7


def rows():
    """Fresh rows, labels and counts that a solver may try to write to."""
    made = source(200, 3)
    return MemorySource(ArrayBlocks(made.blocks.rows.copy()), made.labels.copy(), np.full(200, 0.9))


class Hostile:
    """A solver that attacks the objective, solves what is left of it, and then spoils its answer."""

    def __init__(self, attack, spoil=lambda solution: solution):
        self.attack, self.spoil, self.given = attack, spoil, None

    def solve(self, objective, start, tolerance):
        """Attack and solve."""
        self.given = objective
        found = self.attack(objective, start, tolerance)
        if found is None:
            found = NewtonThenFallback().solve(objective, np.zeros_like(start), tolerance)
        return self.spoil(found)


def put(name, value):
    """Set a field of a frozen object."""

    def attack(objective, start, tolerance):
        object.__setattr__(objective, name, value(objective))

    return attack


def put_into(part, name, value):
    """Set a field of something that the objective leads to."""

    def attack(objective, start, tolerance):
        object.__setattr__(part(objective), name, value)

    return attack


def written(array_of, value=0.0):
    """Try to write to an array and to each array behind it, before and after making them writable."""

    def attack(objective, start, tolerance):
        array = array_of(objective)
        while isinstance(array, np.ndarray):
            for attempt in (lambda a: a.setflags(write=True), lambda a: a.__setitem__(..., value)):
                try:
                    attempt(array)
                except ValueError:
                    continue
            array = array.base

    return attack


class WritingSum:
    """A sum over rows that writes to the rows, labels and counts that it is shown."""

    def start(self, n_problems, n_features):
        """No totals."""
        return self

    def add(self, other):
        """Nothing to add."""

    def completed(self, totals):
        """Nothing to complete."""
        return totals

    def add_block(self, totals, *shown):
        """Write."""
        for array in (shown[0], shown[1], shown[3]):
            written(lambda _, array=array: array)(None, None, None)


def by_a_sum(objective, start, tolerance):
    objective.source.sum_over_rows(WritingSum(), start)


def by_a_loss(objective, start, tolerance):
    """A loss of the solver's own is shown labels, and writes to them."""

    class Loss(HuberHinge):
        def of_scores(self, scores, labels, order, stretch=1.0):
            written(lambda _: labels, -1)(None, None, None)
            return super().of_scores(scores, labels, order, stretch)

    replace(objective, loss=Loss(0.5)).evaluate(start, order=1)


class Order(int):
    """An order that is above 0 for whoever makes room for sums, and not for whoever adds to them."""

    asked = 0

    def __ge__(self, other):
        Order.asked += 1
        return Order.asked % 2 == 1


def with_a_false_order(objective, start, tolerance):
    """Empty sums look like gradients at the minimiser of ridge and noise alone."""
    lone = -objective.linear / objective.l2
    with suppress(IndexError):
        objective.evaluate(lone, Order(1))
    return Solution(lone, np.zeros(1))


class Shifting(np.ndarray):
    """An array that is at one place where it is compared or copied, and at another where it is multiplied."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(value) if isinstance(value, Shifting) else value for value in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __array_function__(self, function, types, args, kwargs):
        plain = [np.asarray(value) * 0.0 if isinstance(value, Shifting) else value for value in args]
        return function(*plain, **kwargs)

    def copy(self, order="C"):
        return np.asarray(self) + 1.0

    def reshape(self, *shape):
        return np.asarray(self).reshape(*shape) * 0.0


def at_shifting_weights(objective, start, tolerance):
    """Sums at one place would be kept as those at another."""
    there = (start + 5.0).view(Shifting)
    objective.evaluate(there, order=1)
    return Solution(start + 6.0, np.zeros(1))


def with_sums_of_its_own(objective, start, tolerance):
    """Made-up sums would make zero a minimiser."""
    sums = -objective.linear
    for name in ("_passes", "_kept"):
        if hasattr(objective, name):
            getattr(objective, name).append((start.copy(), sums))
    object.__setattr__(objective, "_sums", lambda *given, **named: objective)
    return Solution(start, np.zeros(1))


def writing_what_it_got(objective, start, tolerance):
    """Write over the sums that were handed out, and over the weights."""
    weights = start.copy()
    found = objective.evaluate(weights, order=2)
    for array in (found.gradient, found.hessian, found.value, weights):
        array[...] = -objective.linear if array is found.gradient else 0.0
    return Solution(weights, np.zeros(1))


ATTACKS = {
    "the noise is written over": written(lambda o: o.linear),
    "the noise is replaced": put("linear", lambda o: o.linear * 0.0),
    "the noise of a part is written over": written(lambda o: o.restrict(slice(None)).linear),
    "the ridge is replaced": put("l2", lambda o: 1e3),
    "the loss is replaced": put("loss", lambda o: HuberHinge(0.1)),
    "the loss is changed": put_into(lambda o: o.loss, "smoothing", 0.1),
    "the bound is replaced": put("row_bound", lambda o: BallBound(1e-6)),
    "the bound is changed": put_into(lambda o: o.row_bound, "norm", 1e-6),
    "the cap on weights is replaced": put("largest_weight", lambda o: 1e-6),
    "rows are written over": written(lambda o: o.source.blocks.rows),
    "rows are replaced": put_into(lambda o: o.source, "blocks", ArrayBlocks(np.zeros((200, 3)))),
    "an array of rows is replaced": put_into(lambda o: o.source.blocks, "rows", np.zeros((200, 3))),
    "a block is written over": written(lambda o: o.source.blocks.block(0, 200)),
    "labels are written over": written(lambda o: o.source.labels, -1),
    "labels are replaced": put_into(lambda o: o.source, "labels", -np.ones(200, dtype=np.int8)),
    "counts are written over": written(lambda o: o.source.row_weights),
    "the source is replaced": put("source", lambda o: MemorySource(ArrayBlocks(np.zeros((200, 3))), np.ones(200, np.int8))),
    "rows are written over by a sum": by_a_sum,
    "labels are written over by a loss": by_a_loss,
    "an order that is two": with_a_false_order,
    "weights that are at two places": at_shifting_weights,
    "sums are made up": with_sums_of_its_own,
    "sums that were given are written over": writing_what_it_got,
}


def released(name, solver, given):
    """A release from a fixed seed: that of an honest solver has the same noise."""
    return MECHANISMS[name].release(PLANS[name], given, solver, Entropy.seeded(SEED)).weights


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_solver_can_change_nothing_that_the_certificate_reads(mechanism, attack):
    """The release is within two radii and the grid of that of an honest solver, or there is none. Rows are unchanged."""
    given, untouched = rows(), rows()
    honest = released(mechanism, NewtonThenFallback(), rows())
    try:
        found = released(mechanism, Hostile(ATTACKS[attack]), given)
    except NotCertified:
        found = honest
    plan = PLANS[mechanism]
    assert np.linalg.norm(found - honest) <= 2.0 * plan.radius + 2.0 * 3**0.5 * plan.lattice.step
    for now, then in ((given.blocks.rows, untouched.blocks.rows), (given.labels, untouched.labels)):
        np.testing.assert_array_equal(now, then)
    np.testing.assert_array_equal(given.row_weights, untouched.row_weights)


ENCODER = Encoder(
    Schema(
        columns={
            "a": {"categories": list("abcdefghij")},
            "b": {"categories": list("klmnopqrst")},
            "x": {"low": 0, "high": 10, "knots": 4},
        }
    )
)
ENCODED_PLANS = {
    name: mechanism.plan(
        problem(200, ENCODER.n_features, loss=HuberHinge(0.5), row_bound=ENCODER.row_bound, l2=60.0), PureDP(1.0)
    )
    for name, mechanism in MECHANISMS.items()
}


def encoded_rows(encoder=ENCODER):
    """Coded rows of a schema. Most have the same levels, so columns in other places would be seen in the release."""
    rng, n = np.random.default_rng(0), 200
    frame = pd.DataFrame(
        {
            "a": rng.choice(list("abcdefghij"), n, p=[0.82, *[0.02] * 9]),
            "b": rng.choice(list("klmnopqrst"), n, p=[*[0.02] * 9, 0.82]),
            "x": rng.uniform(0, 10, n),
        }
    )
    labels = np.where(frame["a"] == "a", 1, -1).astype(np.int8)
    return MemorySource(EncodedBlocks(encoder, encoder.read(frame)), labels)


def block_shown_to_a_sum(objective):
    """The block that a sum of the solver's own sees."""
    shown = []

    class Showing(WritingSum):
        def add_block(self, totals, *given):
            shown.append(given[0])

    objective.source.sum_over_rows(Showing(), np.zeros((1, objective.source.n_features)))
    return shown[0]


BLOCKS = {"a block": lambda objective: objective.source.blocks.block(0, 200), "a block of a sum": block_shown_to_a_sum}


def with_a_layout(block_of, **changed):
    """Set fields of the layout that a block leads to."""

    def attack(objective, start, tolerance):
        layout = block_of(objective).layout
        for name, change in changed.items():
            object.__setattr__(layout, name, change(getattr(layout, name)))

    return attack


def spoilt(arrays):
    """Try to make arrays writable, and to write to them."""
    for array in arrays:
        for attempt in (lambda a: a.setflags(write=True), lambda a: a.__setitem__(..., 0)):
            with suppress(ValueError):
                attempt(array)


def with_a_spy_in_place_of_weights(block_of):
    """What takes the place of weights is shown the sparse matrix that holds the rows, and spoils where they begin."""

    def attack(objective, start, tolerance):
        shown = []

        class Spy:
            shape = (ENCODER.n_features, 1)

            def __getitem__(self, where):
                return self

            def __rmatmul__(self, matrix):
                shown.append(matrix)
                return np.zeros(3 * 200)

        block_of(objective).times(Spy())
        assert shown
        spoilt([shown[0].indptr])

    return attack


def with_a_layout_that_spies(block_of):
    """Rows of a class of the solver's own are compared with what is kept for rows of the schema, and spoil that."""

    def attack(objective, start, tolerance):
        block, shown = block_of(objective), []

        class Spy:
            def __ge__(self, limits):
                shown.append(limits)
                return np.ones(1, dtype=bool)

            __le__ = __ge__

        class Layout(type(block.layout)):
            def parts(self, stored):
                return Spy(), np.zeros((200, 1)), np.zeros((200, 1))

            def __eq__(self, other):
                return True

            def __hash__(self):
                return hash(block.layout)

        mine, layout = object.__new__(type(block)), Layout(ENCODER.n_features, block.layout.singles, block.layout.pairs)
        for name, value in (("layout", layout), ("columns", block.columns), ("entries", block.entries)):
            object.__setattr__(mine, name, value)
        assert objective.row_bound.clip(mine) is mine
        assert len(shown) == 2
        spoilt(shown)

    return attack


def with_a_lent_block_written_over(block_of):
    """Columns and entries, and the memory behind them."""

    def attack(objective, start, tolerance):
        block = block_of(objective)
        for name in ("columns", "entries"):
            written(lambda _, name=name: getattr(block, name))(None, None, None)

    return attack


ENCODED_ATTACKS = {
    "intervals are exchanged": lambda of: with_a_layout(of, singles=lambda singles: singles[::-1]),
    "intervals lie far away": lambda of: with_a_layout(of, singles=lambda singles: ((10**8, 10**8 + 9),) * len(singles)),
    "all fields are replaced": lambda of: with_a_layout(
        of, n_features=lambda _: 3, singles=lambda _: (), pairs=lambda _: (), width=lambda _: 7, key=lambda _: b""
    ),
    "where rows begin is written over": with_a_spy_in_place_of_weights,
    "limits of entries are written over": with_a_layout_that_spies,
    "a lent block is written over": with_a_lent_block_written_over,
}  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("block_of", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("attack", ENCODED_ATTACKS)
def test_coded_rows_lead_a_solver_to_nothing_that_the_certificate_reads(mechanism, block_of, attack):
    """The release is that of an honest solver, within two radii and the grid; rows and their clipping are as before."""
    encoder = Encoder(ENCODER.schema)
    plan, given = ENCODED_PLANS[mechanism], encoded_rows(encoder)
    rows = given.blocks.block(0, 200)
    above = CodedRows(rows.layout, rows.columns, 2.0 * rows.entries)
    before, clipped = rows.dense(), encoder.row_bound.clip(above)
    assert isinstance(clipped, np.ndarray)
    honest = MECHANISMS[mechanism].release(plan, encoded_rows(encoder), NewtonThenFallback(), Entropy.seeded(SEED)).weights
    made = ENCODED_ATTACKS[attack](block_of)
    attacked = []

    def attack_first(*given):
        made(*given)
        attacked.append(given)

    try:
        found = MECHANISMS[mechanism].release(plan, given, Hostile(attack_first), Entropy.seeded(SEED)).weights
    except NotCertified:
        found = honest
    assert attacked
    assert np.linalg.norm(found - honest) <= 2.0 * plan.radius + 2.0 * encoder.n_features**0.5 * plan.lattice.step
    np.testing.assert_array_equal(given.blocks.block(0, 200).dense(), before)
    np.testing.assert_array_equal(encoder.row_bound.clip(above), clipped)
    np.testing.assert_allclose(rows.times(np.eye(encoder.n_features)), before, rtol=0, atol=0)


class Twice:
    """A solution whose weights change when they are asked for again."""

    def __init__(self, solution):
        self.solution, self.asked = solution, 0

    @property
    def weights(self):
        """The minimiser, then others."""
        self.asked += 1
        return self.solution.weights + (self.asked - 1)


class Kept:
    """Weights that claim to have been copied, and that change each time they are asked for."""

    def __init__(self, weights):
        self.weights, self.asked = weights.copy(), 0

    def __array__(self, dtype=None, copy=None):
        self.asked += 1
        self.weights += self.asked - 1
        return self.weights


class Moving(np.ndarray):
    """Weights that are other numbers in each sum, product or list."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return np.asarray(self) * 0.0 + 9.0

    def tolist(self):
        return [[9.0, 9.0, 9.0]]

    def copy(self, order="C"):
        return self


def raising(solution):
    class Raising:
        @property
        def weights(self):
            raise RuntimeError(str(solution.weights))

    return Raising()


HARMLESS = {
    "weights that are others when asked again": Twice,
    "weights that claim to be a copy": lambda s: replace(s, weights=Kept(s.weights)),
    "an array with ways of its own": lambda s: replace(s, weights=s.weights.view(Moving)),
    "one row without its problem": lambda s: replace(s, weights=s.weights[0]),
    "a list": lambda s: replace(s, weights=s.weights.tolist()),
    "texts": lambda s: replace(s, weights=[[repr(float(value)) for value in s.weights[0]]]),
    "objects": lambda s: replace(s, weights=s.weights.astype(object)),
    "a read-only view": lambda s: replace(s, weights=np.broadcast_to(s.weights, (1, 3))),
}
USELESS = {
    "nothing": lambda s: None,
    "no weights": lambda s: replace(s, weights=None),
    "too many": lambda s: replace(s, weights=np.vstack([s.weights, s.weights])),
    "too few": lambda s: replace(s, weights=s.weights[:, :2]),
    "none": lambda s: replace(s, weights=np.zeros((0, 3))),
    "words": lambda s: replace(s, weights=[["a", "b", "c"]]),
    "not numbers": lambda s: replace(s, weights=s.weights * np.nan),
    "an exception that tells": raising,
    "its type": lambda s: type(s),
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("answer", HARMLESS)
def test_weights_are_copied_once_before_anybody_looks_at_them(mechanism, answer):
    """Whatever they become later, the release is of what was certified: that of the honest solver, to the bit."""
    found = released(mechanism, Hostile(lambda *given: None, HARMLESS[answer]), rows())
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, released(mechanism, NewtonThenFallback(), rows()))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("answer", USELESS)
def test_an_answer_that_is_none_is_refused_in_the_certificates_words(mechanism, answer):
    """NotCertified is raised. Its message and causes hold nothing of the answer."""
    with np.errstate(all="ignore"), pytest.raises(NotCertified) as failure:
        released(mechanism, Hostile(lambda *given: None, USELESS[answer]), rows())
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    assert not any(character.isdigit() for character in str(failure.value))


def test_what_a_solver_kept_is_not_what_leaves():
    """The solver changes nothing by writing to its answer after the certificate, and while noise is drawn."""
    answers = []

    def remember(solution):
        answers.append(solution.weights)
        return solution

    stream = Entropy.seeded(SEED)

    def read(n):
        for weights in answers:
            weights[...] = 1e3
        return stream.read(n)

    for name, mechanism in MECHANISMS.items():
        answers.clear()
        solver = Hostile(lambda *given: None, remember)
        stream = Entropy.seeded(SEED)
        found = mechanism.release(PLANS[name], rows(), solver, Entropy(read, is_secret=False)).weights
        np.testing.assert_array_equal(found, released(name, NewtonThenFallback(), rows()))
        np.testing.assert_array_equal(answers[0], np.full((1, 3), 1e3))


def test_the_certificate_makes_no_pass_of_its_own_after_an_honest_solver():
    """The sums of the solver's last pass are remembered where the solver cannot change them."""
    passes = []

    class Counting(MemorySource):
        def sum_over_rows(self, row_sum, weights):
            passes.append(weights.copy())
            return super().sum_over_rows(row_sum, weights)

    given, ends = rows(), []
    counting = Counting(given.blocks, given.labels, given.row_weights)
    solver = Hostile(lambda *_: None, lambda solution: ends.append(len(passes)) or solution)
    released("objective", solver, counting)
    assert ends == [len(passes)]
    assert len(passes) > 1
