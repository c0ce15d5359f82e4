"""Rows that are lent to solvers are the same numbers at the same place, and cannot be written to."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import fields
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, EncodedBlocks, MappedBlocks, MemorySource
from confide.data.streams import KeptSample, LabelledCodes, Reading, StreamedSource
from confide.erm.coded_rows import CodedLayout, CodedRows, dense
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.source import LentSource, SummableRows, _Reading, made_for_a_solver, unwritable
from confide.features.encoder import Encoder
from confide.features.fourier import CurvesAndFeatures, FourierMap
from confide.features.schema import Schema

N, RNG = 300, np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(N, 4)), RNG.choice([-1, 1], size=N).astype(np.int8)
COUNTS = RNG.uniform(size=N)
ENCODER = Encoder(Schema(columns={"age": {"low": 0, "high": 100, "knots": [30]}, "kind": {"categories": ["a", "b", "c"]}}))
FRAME = pd.DataFrame({"age": RNG.uniform(0, 100, N), "kind": RNG.choice(["a", "b", "c"], N)})
CODES = ENCODER.read(FRAME)


def streamed():
    """A stream whose one piece is kept in memory, where a write to it would hurt most."""
    piece, kept = LabelledCodes(CODES, LABELS), KeptSample(10**6)
    kept.add(piece)
    return StreamedSource(lambda: iter([piece]), Reading(ENCODER, (-1, 1)), N, kept)


class Foreign(SummableRows):
    """A source of somebody else, which has its two numbers and its sums, and inherits the rest."""

    n_rows, n_features = N, 4

    def __init__(self):
        self.behind = MemorySource(ArrayBlocks(ROWS), LABELS)

    def sum_over_rows(self, row_sum, weights):
        """Sum over the rows behind it."""
        return self.behind.sum_over_rows(row_sum, weights)


APPENDING = CurvesAndFeatures(FourierMap(4, 6), 1.0, 1.0)
SOURCES = {
    "dense": lambda: MemorySource(ArrayBlocks(ROWS), LABELS, COUNTS),
    "single, strided": lambda: MemorySource(ArrayBlocks(np.asfortranarray(ROWS.astype(np.float32))[::2]), LABELS[::2]),
    "sparse": lambda: MemorySource(ArrayBlocks(scipy.sparse.csr_array(np.where(ROWS > 0, ROWS, 0.0))), LABELS, COUNTS),
    "copied": lambda: MemorySource(ArrayBlocks(ROWS, rows_in_block=64, are_copies=True), LABELS, COUNTS),
    "encoded": lambda: MemorySource(EncodedBlocks(ENCODER, CODES), LABELS),
    "mapped": lambda: MemorySource(MappedBlocks(ArrayBlocks(ROWS), FourierMap(4, 6)), LABELS),
    "kept": lambda: MemorySource(MappedBlocks(ArrayBlocks(ROWS), APPENDING, keeps=True), LABELS),
    "streamed": streamed,
    "foreign": Foreign,
}  # fmt: skip


def reached(*given):
    """Everything that attributes, items, elements and functions without parameters lead to, but no module and no class."""
    seen, left = {}, list(given)
    while left:
        value = left.pop()
        plain = isinstance(value, (type, ModuleType, BuiltinFunctionType, str, bytes, int, float, complex, np.dtype))
        if plain or value is None or id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, FunctionType):
            left += [value.__defaults__, value.__kwdefaults__, value.__dict__]
            code = value.__code__
            # Each function is called once: what a call makes may have such a function of its own.
            if id(code) not in seen and not (code.co_argcount or code.co_kwonlyargcount or code.co_flags & 12):
                seen[id(code)] = code
                left.append(value())
        elif isinstance(value, MethodType):
            left += [value.__self__, value.__func__]
        elif isinstance(value, partial):
            left += [value.func, value.args, value.keywords]
        elif isinstance(value, np.ndarray):
            left += [value.base]
        elif isinstance(value, memoryview):
            left += [value.obj]
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, (tuple, list, set, frozenset)):
            left += value
        elif not isinstance(value, np.generic):
            slots = [name for kind in type(value).__mro__ for name in np.atleast_1d(getattr(kind, "__slots__", ()))]
            left += [getattr(value, str(name), None) for name in (*slots, *getattr(value, "__dict__", ()))]
    return list(seen.values())


class Keeping:
    """A sum over rows that keeps each block that it is shown."""

    def __init__(self, of):
        self.of, self.shown = of, []

    def __getattr__(self, name):
        return getattr(self.of, name)

    def add_block(self, totals, *given):
        """Keep the block."""
        self.shown.append(given)
        self.of.add_block(totals, *given)


def blocks_of(face):
    """All blocks that a lent source gives: to a sum, and by its own blocks if it has such."""
    keeping = Keeping(RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1))
    face.sum_over_rows(keeping, np.ones((1, face.n_features)))
    blocks = getattr(face, "blocks", None)
    made = [] if blocks is None else [blocks.block(0, 5), blocks.taken(np.array([5, 2])).block(0, 2)]
    sources = [face, face.sample(64)]
    as_stored = [source.as_stored(shortened) for source in sources if source is not None for shortened in (False, True)]
    return [keeping.shown, made, sources, as_stored]


@pytest.mark.parametrize("name", SOURCES)
def test_no_attribute_of_what_a_solver_is_given_leads_to_what_the_certificate_reads(name):
    """No writable array shares memory with the rows, labels, counts or noise; no object is shared that could be changed.

    The walk has power: it finds the noise of the objective itself, and writable rows or codes in the source itself.
    """
    source = SOURCES[name]()
    objective = Objective(source, LogisticLoss(), BallBound(1.0), 0.0, 2.0, np.ones((1, source.n_features)))
    face = objective.lent()
    own = [ROWS, LABELS, COUNTS, objective.linear, *reached(source, objective)]
    arrays = [value for value in own if isinstance(value, np.ndarray)]
    mutable = [value for value in own if not isinstance(value, (tuple, FunctionType, MethodType))]
    assert any(array is objective.linear for array in arrays)
    assert len(arrays) > 4
    blocks = blocks_of(face.source)
    found = reached(
        face, face.evaluate, face.restrict(np.arange(1)), face.evaluate(np.ones((1, source.n_features)), 2), blocks
    )
    if name in ("encoded", "streamed"):
        assert any(isinstance(value, CodedRows) for value in found)
        # The walk has power: it finds the layout by which the encoder makes all blocks, and those of lent blocks.
        assert any(value is ENCODER._coded._layout for value in own)
        assert any(isinstance(value, CodedLayout) and value == ENCODER._coded._layout for value in found)
    shared = {id(value) for value in found} & {id(value) for value in mutable}
    assert not [type(value) for value in mutable if id(value) in shared and type(value).__module__ != "builtins"]
    for array in (value for value in found if isinstance(value, np.ndarray)):
        if not any(np.shares_memory(array, mine) for mine in arrays):
            continue
        assert not array.flags.writeable
        assert memoryview(array).readonly
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - {"streamed", "foreign"}))
def test_what_is_copied_for_a_solver_is_no_view_whatever_positions_it_asks_for(name):
    """A slice or an ellipsis of an array is a view. Such positions are refused, or nothing can be written to what comes."""
    source, row_sum = SOURCES[name](), RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1)
    weights = np.linspace(-1.0, 1.0, source.n_features)[None]
    expected, n_given = source.sum_over_rows(row_sum, weights).gradient, 0
    for positions in (np.arange(5), slice(0, 5), Ellipsis, (slice(0, 5),), np.ones(N, bool)):
        with suppress(TypeError, ValueError, AttributeError, IndexError):
            made = source.lent().blocks.as_copies(positions)
            rows = made.rows if isinstance(made, ArrayBlocks) else made.block(0, 5).entries
            array = rows.data if scipy.sparse.issparse(rows) else rows
            n_given += 1
            array[...] = 7.0
    assert n_given > 0
    np.testing.assert_array_equal(source.sum_over_rows(row_sum, weights).gradient, expected)


class Turning:
    """Four, but one at some use as an index."""

    def __init__(self, use):
        self.numbers = iter([4] * use + [1])

    def __index__(self):
        return next(self.numbers, 4)

    def __lt__(self, other):
        return True


@pytest.mark.parametrize("use", range(10))
def test_rows_are_kept_as_they_are_whatever_a_solver_asks_for_first(use):
    """What it asks for may be another number at each use, and a row would be kept in the place of others."""
    source, again = SOURCES["kept"](), SOURCES["kept"]()
    source.lent().blocks.block(0, Turning(use))
    np.testing.assert_array_equal(source.blocks.block(0, N), again.blocks.block(0, N))


class Writing:
    """A sum over rows that tries to write to each block that it is shown."""

    def __init__(self, of, made_anew):
        self.of, self.made_anew, self.refused = of, made_anew, 0

    def __getattr__(self, name):
        return getattr(self.of, name)

    def add_block(self, totals, rows, labels, weights, row_weights=None):
        """Try each way to write to an array's memory, and count how often that failed."""
        parts = [rows.columns, rows.entries] if isinstance(rows, CodedRows) else [rows]
        arrays = [rows.data, rows.indices] if scipy.sparse.issparse(rows) else [] if self.made_anew else parts
        for array in (*arrays, labels, *(() if row_weights is None else (row_weights,))):
            for attempt in (
                lambda a: a.__setitem__(..., 0),
                lambda a: a.setflags(write=True),
                lambda a: a.base[...].fill(0),
            ):
                with pytest.raises((ValueError, TypeError)):
                    attempt(array)
                self.refused += 1
        self.of.add_block(totals, rows, labels, weights, row_weights)


@pytest.mark.parametrize("name", SOURCES)
def test_a_sum_of_a_solvers_own_cannot_write_to_its_blocks(name):
    """Blocks that were not made for the sum refuse, as labels and weights do. Sums are those of the source, to the bit."""
    source = SOURCES[name]()
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2)
    weights = np.linspace(-1.0, 1.0, source.n_features)[None]
    expected, writing = source.sum_over_rows(row_sum, weights), Writing(row_sum, name in ("encoded", "mapped"))
    totals = source.lent().sum_over_rows(writing, weights)
    assert writing.refused >= (3 if writing.made_anew else 6)
    np.testing.assert_array_equal(totals.gradient, expected.gradient)
    np.testing.assert_array_equal(totals.hessian, expected.hessian)


@pytest.mark.parametrize("name", SOURCES)
def test_lent_rows_have_the_methods_of_their_source(name):
    """A sample is a copy. A source that has no sample, or no rows in single precision, lends none."""
    source = SOURCES[name]()
    face = source.lent()
    assert (face.n_rows, face.n_features) == (source.n_rows, source.n_features)
    if name == "foreign":
        assert face.sample(64) is None
        assert face.in_single_precision() is None
        return
    ours, theirs = source.sample(64), face.sample(64)
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2)
    weights = np.zeros((1, source.n_features))
    np.testing.assert_array_equal(
        ours.sum_over_rows(row_sum, weights).hessian, theirs.sum_over_rows(row_sum, weights).hessian
    )
    if getattr(theirs.blocks, "rows", None) is not None:
        assert not np.shares_memory(theirs.blocks.rows.data, ROWS)
    else:
        codes = theirs.blocks.as_stored(False).rows.codes
        assert not any(np.shares_memory(ours, own) for ours in codes for own in CODES.columns)
    single = source.in_single_precision()
    assert (single is None) == (face.in_single_precision() is None)
    if single is not None:
        found = face.in_single_precision().sum_over_rows(row_sum, weights).hessian
        np.testing.assert_array_equal(found, single.sum_over_rows(row_sum, weights).hessian)


def test_lent_memory_is_that_of_the_array_and_is_kept_alive():
    """No copy is made, and what was lent may outlive the name of its owner."""
    array = np.arange(12.0).reshape(3, 4)[:, ::2]
    view = unwritable(array)
    assert np.shares_memory(view, array)
    assert (view.strides, view.dtype) == (array.strides, array.dtype)
    expected = array.copy()
    del array
    np.testing.assert_array_equal(view, expected)
    assert unwritable(None) is None


@pytest.mark.parametrize("lend", [unwritable, made_for_a_solver])
def test_coded_rows_are_lent_with_a_layout_of_their_own(lend):
    """Its fields are those of the encoder's, which nothing can change in place. What is set on it is seen by nobody."""
    rows = ENCODER.block(CODES, 0, N)
    lent = lend(rows)
    assert type(lent) is CodedRows
    assert lent.layout == rows.layout
    assert lent.layout is not rows.layout
    assert np.array_equal(lent.dense(), rows.dense())
    for each in fields(CodedLayout):
        value = getattr(lent.layout, each.name)
        assert value == getattr(rows.layout, each.name)
        assert all(type(part) in (int, tuple, bytes) for part in parts_of(value))
        object.__setattr__(lent.layout, each.name, None)
    assert np.array_equal(ENCODER.block(CODES, 0, N).dense(), rows.dense())
    assert made_for_a_solver(ROWS) is ROWS


def parts_of(value):
    """A value and, if it is a tuple, all in it."""
    return [value, *(part for each in value for part in parts_of(each))] if isinstance(value, tuple) else [value]


def test_a_sum_that_is_lent_blocks_can_be_sent_to_workers():
    """It is pickled with the sum of the solver."""
    reading = pickle.loads(pickle.dumps(_Reading(RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1))))
    assert reading.row_sum.order == 1
    assert isinstance(Foreign().lent(), LentSource)


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_lent_can_be_lent_on(name):
    """Sums stay the same. Rows taken from lent blocks are right, and lead to no encoder and no map of their owner."""
    source = SOURCES[name]()
    twice = source.lent().lent()
    row_sum, weights = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1), np.ones((1, source.n_features))
    expected = source.sum_over_rows(row_sum, weights).gradient
    # The compiled kernel makes no sums for a foreign source that was lent: they are the same to rounding.
    np.testing.assert_allclose(twice.sum_over_rows(row_sum, weights).gradient, expected, rtol=1e-13)
    if isinstance(source, MemorySource):
        which = np.array([5, 2])
        ours, theirs = (blocks.taken(which).block(0, 2) for blocks in (source.blocks, twice.blocks))
        np.testing.assert_array_equal(
            *(rows.toarray() if scipy.sparse.issparse(rows) else dense(rows) for rows in (ours, theirs))
        )
        assert not any(isinstance(value, (Encoder, FourierMap)) for value in reached(twice.blocks.taken(which)))
        assert twice.blocks.lent().n_rows == source.n_rows
