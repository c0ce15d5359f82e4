"""Row sums and objectives: right, additive by row, blind to block sizes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from confide.data import arrays
from confide.data.arrays import ArrayBlocks, MemorySource, rows_in_block, rows_in_sparse_block, summation_depth
from confide.erm.class_losses import Softmax
from confide.erm.clipped_rows import ClippedRows
from confide.erm.coded_rows import CodedLayout, CodedRows
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import HuberHinge, LogisticLoss, SmoothHinge
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum, Totals
from confide.erm.target_losses import SquaredLoss

LOSSES = [LogisticLoss(), HuberHinge(0.5), SmoothHinge(0.5)]


def made_up(n=300, d=4, seed=0, dtype=np.float64):
    """Rows, most of them longer than 1, and labels."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(dtype), rng.choice([-1, 1], size=n).astype(np.int8)


def plain_totals(loss, bound, intercept, rows, labels, weights, counts=None):
    """The definition, row by row, in plain loops; `counts` are the weights of the rows."""
    counts = np.ones(len(labels)) if counts is None else counts
    clipped = bound.clip(np.array(rows, dtype=np.float64))
    if intercept:
        clipped = np.hstack([clipped, np.full((len(clipped), 1), intercept)])
    values, gradients, hessians = [], [], []
    for w in weights:
        z = labels * (clipped @ w)
        values.append(counts @ loss.value(z))
        gradients.append((counts * loss.derivative(z) * labels) @ clipped)
        curvatures = counts * loss.second_derivative(z)
        hessians.append(sum(h * np.outer(x, x) for h, x in zip(curvatures, clipped, strict=True)))
    return np.array(values), np.array(gradients), np.array(hessians)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("layout", ["C", "F", "float32", "strided", "sparse", "sparse float32"])
@pytest.mark.parametrize("weighted", [False, True])
def test_totals_equal_their_definition_for_several_problems(loss, intercept, layout, weighted):
    """Value, gradient and Hessian of 3 problems at once, for every layout of X, with and without weights of rows."""
    rows, labels = made_up()
    rows[np.abs(rows) < 0.3] = 0.0
    counts = np.random.default_rng(6).uniform(0.0, 3.0, len(rows)) if weighted else None
    weights = np.random.default_rng(1).normal(size=(3, 4 + (intercept > 0)))
    expected = plain_totals(loss, BallBound(1.0), intercept, rows, labels, weights, counts)
    given = {
        "C": rows,
        "F": np.asfortranarray(rows),
        "float32": rows.astype(np.float32),
        "strided": np.repeat(rows, 2, axis=0)[::2],
        "sparse": scipy.sparse.csr_array(rows),
        "sparse float32": scipy.sparse.csr_array(rows.astype(np.float32)),
    }[layout]
    if "float32" in layout:
        expected = plain_totals(loss, BallBound(1.0), intercept, rows.astype(np.float32), labels, weights, counts)
    source = MemorySource(ArrayBlocks(given), labels, counts)
    totals = source.sum_over_rows(RowSum(loss, BallBound(1.0), intercept, 0, 3.0), weights)
    np.testing.assert_allclose(totals.value, expected[0], rtol=1e-12)
    totals = source.sum_over_rows(RowSum(loss, BallBound(1.0), intercept, 2, 3.0), weights)
    np.testing.assert_allclose(totals.gradient, expected[1], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(totals.hessian, expected[2], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_removing_a_row_changes_the_sum_by_exactly_that_clipped_rows_term(loss):
    """The property that matters most: sum with the row minus sum without it is the term of the clipped row."""
    rows, labels = made_up(n=40)
    rows[7] = [1e300, -1e300, 1e299, 0.0]
    weights = np.random.default_rng(2).normal(size=(2, 5))
    row_sum = RowSum(loss, BallBound(1.0), 1.0, 1)
    full = MemorySource(ArrayBlocks(rows), labels).sum_over_rows(row_sum, weights)
    keep = np.arange(40) != 7
    less = MemorySource(ArrayBlocks(rows[keep]), labels[keep]).sum_over_rows(row_sum, weights)
    _, term, _ = plain_totals(loss, BallBound(1.0), 1.0, rows[7:8], labels[7:8], weights)
    np.testing.assert_allclose(full.gradient - less.gradient, term, atol=1e-12)
    assert np.linalg.norm(full.gradient - less.gradient, axis=1).max() <= loss.constants.lipschitz * np.sqrt(2.0) + 1e-12


def test_block_size_does_not_change_the_sum(monkeypatch):
    """Blocks of 64 rows and one block for all agree to rounding."""
    rows, labels = made_up(n=1000)
    weights = np.ones((1, 4))
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2)
    whole = MemorySource(ArrayBlocks(rows), labels).sum_over_rows(row_sum, weights)
    monkeypatch.setattr(arrays, "_MOST_ROWS", 64)
    monkeypatch.setattr(arrays, "_BLOCKS_IN_GROUP", 3)
    parts = MemorySource(ArrayBlocks(rows), labels).sum_over_rows(row_sum, weights)
    np.testing.assert_allclose(whole.gradient, parts.gradient, rtol=1e-13)
    np.testing.assert_allclose(whole.hessian, parts.hessian, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_do_not_change_the_sum(monkeypatch, dtype):
    """Bit for bit, for one problem and for many, whose blocks are cut; of many groups, of few, and of one."""
    monkeypatch.setattr(arrays, "_MOST_ROWS", 200)
    monkeypatch.setattr(arrays, "_BLOCKS_IN_GROUP", 3)
    monkeypatch.setattr(arrays, "_GROUPS_IN_BUNDLE", 2)
    for n in (9011, 700, 599):
        rows, labels = made_up(n, dtype=dtype)
        for k in (1, 200):
            weights = np.random.default_rng(k).normal(size=(k, 5))
            for row_sum in (RowSum(LogisticLoss(), BallBound(1.0), 1.0, order) for order in (0, 1, 2)):
                one, *others = (
                    MemorySource(ArrayBlocks(rows), labels, None, n_threads).sum_over_rows(row_sum, weights)
                    for n_threads in (1, 2, 5)
                )
                for other in others:
                    for part in ("value", "gradient", "hessian"):
                        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


class LongestChain:
    """In the place of totals: how many additions are behind an entry of them, at most."""

    length = 0

    def add(self, other):
        """Of an entry of either, one addition more."""
        self.length = max(self.length, other.length) + 1


class ChainSum:
    """In the place of a sum over rows: a block is added with as many additions as it has rows."""

    largest = 0

    def start(self, n_problems, n_features):
        """No additions."""
        return LongestChain()

    def add_block(self, totals, rows, labels, weights, row_weights=None):
        """A sum of products has one addition less than rows, and one adds it to the totals."""
        self.largest = max(self.largest, rows.shape[0])
        totals.length = max(totals.length, rows.shape[0] - 1) + 1

    def completed(self, totals):
        """As they are."""
        return totals


@pytest.mark.parametrize(("n_rows", "d"), [(10**6, 100), (999_999, 100), (5 * 10**6, 20), (1000, 1), (50_000, 5000), (1, 3)])
@pytest.mark.parametrize("k", [1, 2, 64, 1000])
def test_no_chain_of_additions_is_longer_than_plans_allow_for(n_rows, d, k):
    """However many problems there are; and for one it is hardly shorter, so the depth is not too large either."""
    source = MemorySource(ArrayBlocks(np.broadcast_to(np.zeros(d), (n_rows, d))), np.broadcast_to(np.int8(1), n_rows))
    row_sum = ChainSum()
    longest = source.sum_over_rows(row_sum, np.zeros((k, d))).length
    assert longest <= arrays._depth(n_rows, rows_in_block(d)) <= summation_depth(n_rows, d)
    if k == 1:
        assert longest >= arrays._depth(n_rows, rows_in_block(d)) - 4
        assert row_sum.largest == min(n_rows, rows_in_block(d))
    if k == 1000 and n_rows > 1000:
        assert row_sum.largest < 256, "many problems make blocks smaller, so that their scores stay in the cache"


def test_the_users_array_is_never_written_to():
    """A read-only array with long rows goes through every order."""
    rows, labels = made_up()
    rows.setflags(write=False)
    sparse = scipy.sparse.csr_array(rows)
    for part in (sparse.data, sparse.indices, sparse.indptr):
        part.setflags(write=False)
    for blocks in (ArrayBlocks(rows), ArrayBlocks(sparse)):
        source = MemorySource(blocks, labels)
        for order in (0, 1, 2):
            source.sum_over_rows(RowSum(LogisticLoss(), BallBound(0.5), 1.0, order), np.ones((1, 5)))


def test_blocks_keep_the_type_of_what_they_were_given():
    """A dense block is a view, a sparse one holds the entries of its rows; float32 stays float32 until it is clipped."""
    rows = made_up(dtype=np.float32)[0]
    sparse = scipy.sparse.csr_array(rows)
    assert np.shares_memory(ArrayBlocks(rows).block(10, 20), rows)
    block = ArrayBlocks(sparse).block(10, 20)
    assert block.dtype == np.float32
    assert block.nnz == 40
    assert np.array_equal(block.toarray(), rows[10:20])


def test_a_weight_beyond_the_cap_counts_as_the_cap():
    """Whatever the source hands over: below 0 and what is no number count 0, what is larger counts as the largest."""
    rows, labels = made_up(n=6)
    weights = np.ones((1, 4))
    wild = np.array([-1.0, np.nan, np.inf, 5.0, 0.5, -np.inf])
    tame = np.array([0.0, 0.0, 2.0, 2.0, 0.5, 0.0])
    for order in (0, 2):
        row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, order, largest_weight=2.0)
        found, expected = (MemorySource(ArrayBlocks(rows), labels, w).sum_over_rows(row_sum, weights) for w in (wild, tame))
        assert np.array_equal(found.gradient, expected.gradient)
        assert np.array_equal(found.hessian, expected.hessian)
        assert np.array_equal(found.value, expected.value, equal_nan=order > 0)


def test_summation_depth_covers_the_blocks_and_grows_with_the_rows():
    """Block, group of 32 blocks, bundle of 8 groups, bundles, and room for a tree over partitions; monotone in n."""
    d = 100
    step = rows_in_block(d)
    assert summation_depth(10 * step, d) == step + 10 + 1 + 1 + 32
    assert summation_depth(10 * step + 1, d) == step + 11 + 1 + 1 + 32
    assert summation_depth(1000 * step, d) == step + 32 + 8 + 4 + 32
    assert summation_depth(5, d) == 8 + 32
    depths = [summation_depth(n, d) for n in range(1, 5000, 7)]
    assert depths == sorted(depths)
    # Sparse blocks of wide rows are longer, and the depth is for both.
    assert rows_in_sparse_block(20_000) == 8192
    assert rows_in_sparse_block(100) == rows_in_block(100)
    assert summation_depth(10**6, 20_000) == 8192 + 32 + 4 + 1 + 32
    # Of very many rows the shorter dense blocks have the longer chain: more bundles of them.
    dense, sparse = rows_in_block(1000), rows_in_sparse_block(1000)
    assert (dense, sparse) == (131, 500)
    assert summation_depth(10**8, 1000) == 131 + 32 + 8 + 2982 + 32
    for rows in (1, 10**5, 10**7, 10**8):
        assert summation_depth(rows, 1000) == max(arrays._depth(rows, dense), arrays._depth(rows, sparse)) + 32


def test_the_objective_adds_ridge_and_linear_term_in_the_sum_form():
    """F(w) = sum of losses + l2/2 |w|^2 + b.w, with matching gradient and Hessian, for 2 problems."""
    rows, labels = made_up(n=50)
    source = MemorySource(ArrayBlocks(rows), labels)
    linear = np.random.default_rng(3).normal(size=(2, 5))
    objective = Objective(source, LogisticLoss(), BallBound(1.0), 1.0, 3.0, linear)
    weights = np.random.default_rng(4).normal(size=(2, 5))
    values, gradients, hessians = plain_totals(LogisticLoss(), BallBound(1.0), 1.0, rows, labels, weights)
    value = objective.evaluate(weights, order=0).value
    np.testing.assert_allclose(value, values + 1.5 * (weights**2).sum(1) + (linear * weights).sum(1), rtol=1e-12)
    state = objective.evaluate(weights, order=2)
    np.testing.assert_allclose(state.gradient, gradients + 3.0 * weights + linear, atol=1e-11)
    np.testing.assert_allclose(state.hessian, hessians + 3.0 * np.eye(5), atol=1e-11)
    assert np.linalg.eigvalsh(state.hessian).max() <= objective.smoothness
    assert objective.smoothness == pytest.approx(3.0 + 50 * 0.25 * 2.0, rel=1e-9)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(("intercept", "width"), [(0.0, 4), (2.0**-40, 5)])
@pytest.mark.parametrize(("loss", "n_outputs"), [(LogisticLoss(), 1), (Softmax(3), 3)])
def test_totals_over_no_rows_have_the_shapes_that_the_order_asks_for(order, intercept, width, loss, n_outputs):
    """Zeros: k values, and k vectors and matrices of o D numbers, or of none where the order has no derivatives."""
    row_sum = RowSum(loss, BallBound(1.0), intercept, order)
    totals, n = row_sum.start(2, 4), n_outputs * width
    assert row_sum.n_weights(4) == n
    shapes = [part.shape for part in (totals.value, totals.gradient, totals.hessian)]
    assert shapes == [(2,), (2, n if order else 0), (2, n if order == 2 else 0, n if order == 2 else 0)]
    assert not any(part.any() for part in (totals.value, totals.gradient, totals.hessian))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_completed_totals_have_values_for_order_0_alone_and_symmetric_hessians(order):
    """Upper triangles are copied, diagonals stay, and what stood below them is not read."""
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, order)
    totals = row_sum.start(1, 2)
    totals.value[...] = 3.0
    if order == 2:
        totals.hessian[...] = [[[1.0, 2.0], [99.0, 4.0]]]
    completed = row_sum.completed(totals)
    assert completed is totals
    np.testing.assert_array_equal(completed.value, [3.0 if order == 0 else np.nan])
    assert completed.hessian.tolist() == ([[[1.0, 2.0], [2.0, 4.0]]] if order == 2 else [[]])


def test_totals_are_added_part_by_part():
    """In place, and the other ones stay."""
    first, other = (Totals(np.full(1, x), np.full((1, 2), 2.0 * x), np.full((1, 2, 2), 3.0 * x)) for x in (1.0, 10.0))
    first.add(other)
    assert (first.value.tolist(), first.gradient.tolist()) == ([11.0], [[22.0, 22.0]])
    assert first.hessian.tolist() == [[[33.0, 33.0], [33.0, 33.0]]]
    assert (other.value.tolist(), other.gradient.tolist(), other.hessian.sum()) == ([10.0], [[20.0, 20.0]], 120.0)


@pytest.mark.parametrize("largest_weight", [0.25, 1.0, 4.0])
def test_rows_without_weights_count_1_or_the_largest_weight(largest_weight):
    """Whichever is less: one row of score 0, whose logistic loss is log 2, slope -1/2 and curvature 1/4."""
    counts = min(1.0, largest_weight)
    for order in (0, 1, 2):
        row_sum = RowSum(LogisticLoss(), BallBound(8.0), 0.5, order, largest_weight)
        totals = row_sum.start(1, 1)
        row_sum.add_block(totals, np.array([[4.0]]), np.ones(1, np.int8), np.zeros((1, 2)))
        if order == 0:
            assert totals.value == pytest.approx([counts * np.log(2.0)], rel=1e-15, abs=0.0)
        else:
            assert totals.gradient.tolist() == [[-2.0 * counts, -0.25 * counts]]
        if order == 2:
            np.testing.assert_allclose(
                np.triu(totals.hessian[0]), counts * np.array([[4.0, 0.5], [0.0, 0.0625]]), rtol=1e-15
            )


@pytest.mark.parametrize(
    "bound", [BallBound(1.0), GroupBound((1, 49), (0.5, 2.0)), BallBound(np.inf)], ids=["ball", "groups", "none"]
)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_long_rows_have_the_totals_of_their_definition_under_any_bound(bound, k, intercept):
    """Rows of 50 numbers, beyond `LONG_ROW`, whose scores are made otherwise where no bound has read them."""
    rows, labels = made_up(n=30, d=50)
    rows, weights = rows / 4.0, np.random.default_rng(7).normal(size=(k, 50 + (intercept > 0)))
    expected = plain_totals(LogisticLoss(), bound, intercept, rows, labels, weights)
    for order in (0, 2):
        row_sum = RowSum(LogisticLoss(), bound, intercept, order)
        totals = row_sum.start(k, 50)
        row_sum.add_block(totals, rows, labels, weights)
        totals = row_sum.completed(totals)
        names = ("value",) if order == 0 else ("gradient", "hessian")
        for name in names:
            wanted = expected[("value", "gradient", "hessian").index(name)]
            np.testing.assert_allclose(getattr(totals, name), wanted, rtol=1e-11, atol=1e-11)


def test_the_stretch_of_a_row_by_hand():
    """The bound over the length: 10 / 5, and with an intercept of 12 sqrt(244) / 13; a row of zeros has no limit."""
    rows = np.array([[3.0, 4.0], [0.0, 0.0]])
    for form in (rows, scipy.sparse.csr_array(rows)):
        assert RowSum(LogisticLoss(), BallBound(10.0), 0.0, 1).stretch(form).tolist() == [[2.0], [np.inf]]
        with_intercept = RowSum(LogisticLoss(), BallBound(10.0), 12.0, 1).stretch(form)
        np.testing.assert_allclose(with_intercept, np.sqrt(244.0) / np.array([[13.0], [12.0]]), rtol=1e-14)


def test_a_row_counts_1_at_most_unless_a_sum_says_otherwise():
    """The largest weight is 1 where none is given."""
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1)
    assert row_sum.largest_weight == 1.0
    totals = row_sum.start(1, 1)
    row_sum.add_block(totals, np.full((3, 1), 0.5), np.ones(3, np.int8), np.zeros((1, 1)), np.array([0.5, 5.0, np.nan]))
    assert totals.gradient.tolist() == [[-0.25 * 1.5]]


class Recorded:
    """In the place of sums that are made in one pass: remembers what it was asked for."""

    def __init__(self):
        self.asked = []

    def add_to(self, gradient, labels, weights, row_weights):
        """Add 1 to each entry."""
        self.asked.append((labels.tolist(), weights.tolist(), row_weights))
        gradient += 1.0


def test_sums_in_one_pass_are_for_one_problem_alone():
    """They add to its gradient; two problems at once have the sums of the rows."""
    row_sum, fused = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1), Recorded()
    rows, labels = np.array([[0.5], [0.25]]), np.array([1, 1], np.int8)
    block = ClippedRows(row_sum, rows, 1.0, fused.add_to)
    one, two = row_sum.start(1, 1), row_sum.start(2, 1)
    row_sum.add_block(one, block, labels, np.array([[3.0]]))
    assert one.gradient.tolist() == [[1.0]]
    assert fused.asked == [([1, 1], [3.0], None)]
    row_sum.add_block(two, block, labels, np.zeros((2, 1)))
    assert two.gradient.tolist() == [[-0.375]] * 2
    assert len(fused.asked) == 1


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("k", [1, 33])
def test_coded_rows_have_the_totals_of_dense_ones(order, k):
    """For few scores and for more than `MANY_SCORES`, with Hessians and without."""
    layout = CodedLayout(3, singles=((0, 2),), pairs=())
    rows = CodedRows(layout, np.array([0, 1, 1], np.int32), np.array([0.5, -0.25, 4.0]))
    row_sum, weights = RowSum(LogisticLoss(), BallBound(2.0), 0.5, order), np.linspace(-1.0, 1.0, 4 * k).reshape(k, 4)
    coded, plain = row_sum.start(k, 3), row_sum.start(k, 3)
    for totals, form in ((coded, rows), (plain, rows.dense())):
        row_sum.add_block(totals, form, np.array([1, -1, 1], np.int8), weights)
    for name in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(coded, name), getattr(plain, name), rtol=1e-14, atol=1e-15)


def test_a_short_row_has_a_higher_limit_where_losses_are_clipped_by_length():
    """A row of half the bound has twice the limit of its slope; without such a loss its length is of no concern."""
    rows, targets = np.array([[1.0], [0.5]]), np.zeros(2)
    for by_length, expected in ((True, 0.25 * 1.0 + 0.5 * 0.5), (False, 0.25 * 1.0 + 0.25 * 0.5)):
        row_sum = RowSum(SquaredLoss(1.0, 0.25, by_length=by_length), BallBound(1.0), 0.0, 1)
        totals = row_sum.start(1, 1)
        row_sum.add_block(totals, rows, targets, np.full((1, 1), 8.0))
        assert totals.gradient[0, 0] == pytest.approx(expected, rel=1e-11)
