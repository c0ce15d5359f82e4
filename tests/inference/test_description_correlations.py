"""Correlations of a description: coverage of each interval in a simulation, and matrices without negative eigenvalues."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.inference.description import ColumnTable, Description, semi_definite
from confide.privacy.budgets import ZCDP, Neighbours, PureDP
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Tables, counted, moments_of, products_of

N, NAMES = 4000, ("a", "b", "c")
HALF_RANGES = np.array([10.0, 0.5, 200.0])
TABLES = (
    ColumnTable("sex", ("f", "m")),
    *(ColumnTable(name, (), (0.0, half, 2.0 * half)) for name, half in zip(NAMES, HALF_RANGES, strict=True)),
    ColumnTable("gaps", (), (0.0, 1.0, 2.0), has_missing=True),
)
SIZES, ABOVE = (2, 2, 2, 2, 3), np.triu_indices(3, 1)


@pytest.fixture(scope="module")
def values():
    """Three columns (3, n) in units of half their ranges: two go together, the third has its mass at one end."""
    rng = np.random.default_rng(0)
    first, second = rng.uniform(-1.0, 1.0, (2, N))
    return np.array([first, 0.8 * first + 0.2 * second, np.clip(rng.exponential(0.5, N) - 0.9 + 0.2 * first, -1.0, 1.0)])


def description(values, budget, neighbours=Neighbours.REPLACE_ONE, seed=0, level=0.9):
    """One release and what it says. A fourth column, in which cells may be missing, is correlated with none."""
    plan = SumPlan.of(Tables(SIZES, 4, neighbours, 1, 3), budget)
    n_rows = values.shape[1]
    tables = [counted(np.arange(n_rows) % 2, size) for size in SIZES]
    moments = np.concatenate([*map(moments_of, values), [0, 0], products_of(values)])
    released = plan.release((tables, moments), Entropy.seeded(seed))
    public = n_rows if neighbours is Neighbours.REPLACE_ONE else None
    return Description(plan, released, TABLES, (), (0.5,), level, public, None)


def truths(values):
    """Correlations and covariances, in the units of the columns."""
    in_units = HALF_RANGES[:, None] * values
    return np.corrcoef(in_units), np.cov(in_units, bias=True)


@pytest.mark.parametrize("neighbours", list(Neighbours), ids=str)
@pytest.mark.parametrize("budget", [PureDP(1.0), PureDP(0.3), ZCDP(0.02)], ids=str)
def test_intervals_hold_what_is_true_of_the_rows(values, budget, neighbours):
    """200 releases at level 0.9: 85% of the intervals that are shown hold, and 97% at most."""
    (correlations, covariances), held, shown = truths(values), [], 0
    for seed in range(200):
        found = description(values, budget, neighbours, seed).correlations
        rates = zip(found.correlations.values(), found.covariances.values(), strict=True)
        for (one, two), i, j in zip(rates, *ABOVE, strict=True):
            shown += one.value is not None
            pairs = ((one, correlations[i, j]), (two, covariances[i, j]))
            held.append([rate.value is None or rate.low <= true <= rate.high for rate, true in pairs])
    assert shown >= (540 if budget != PureDP(0.3) else 150)
    shares = np.reshape(held, (200, 3, 2)).mean(axis=0)
    assert shares.min() >= 0.85, shares
    if shown == 600:
        assert shares.max() <= 0.97, shares


@pytest.mark.parametrize("budget", [PureDP(8.0), ZCDP(0.3)], ids=str)
def test_covariances_hold_where_a_private_number_of_rows_is_the_largest_doubt(budget):
    """Tables of 64 bins tell little of it, and means near a bound need it most: 300 releases at level 0.9."""
    first, second = np.random.default_rng(3).uniform(0.0, 0.4, (2, N))
    columns = 1.0 - np.array([first, 0.6 * first + 0.4 * second])
    edges = tuple(np.linspace(-1.0, 1.0, 65).tolist())
    tables = (ColumnTable("a", (), edges), ColumnTable("b", (), edges))
    plan = SumPlan.of(Tables((64, 64), 2, Neighbours.ADD_OR_REMOVE_ONE, 1, 2), budget)
    rows = [np.histogram(column, edges)[0] for column in columns], [*map(moments_of, columns), products_of(columns)]
    true, held = float(np.cov(columns, bias=True)[0, 1]), []
    for seed in range(300):
        released = plan.release((rows[0], np.concatenate(rows[1])), Entropy.seeded(seed))
        found = Description(plan, released, tables, (), (), 0.9, None, None).correlations
        rate = found.covariances["a", "b"]
        held.append(rate.value is None or rate.low <= true <= rate.high)
    assert 0.83 <= np.mean(held) <= 0.96


@pytest.mark.parametrize("seed", range(8))
def test_matrices_have_no_negative_eigenvalue(values, seed):
    """Where noise makes some, as a correlation of nearly 1 and few rows do; and each diagonal is 1."""
    found = description(values[:, :400], PureDP(1.0), seed=seed).correlations
    for matrix in (found.correlation, found.covariance / np.outer(HALF_RANGES, HALF_RANGES)):
        assert np.linalg.eigvalsh(matrix).min() >= -1e-12
        assert (matrix == matrix.T).all()
    assert (np.diagonal(found.correlation) == 1.0).all()
    assert np.abs(found.correlation).max() == 1.0
    for (one, two), rate in found.correlations.items():
        if rate.value is not None:
            assert rate.value == found.to_frame().loc[one, two]
            assert -1.0 <= rate.low <= rate.value <= rate.high <= 1.0


def test_the_nearest_matrix_is_taken():
    """By its eigenvalues, worked out here: 3 and -1 become 3 and 0. A column without variance has no correlation."""
    nearest, unit = semi_definite(np.array([[1.0, 2.0], [2.0, 1.0]]))
    np.testing.assert_allclose(nearest, [[1.5, 1.5], [1.5, 1.5]])
    np.testing.assert_allclose(unit, np.ones((2, 2)))
    nearest, unit = semi_definite(np.array([[4.0, 0.0], [0.0, -1.0]]))
    np.testing.assert_allclose(nearest, [[4.0, 0.0], [0.0, 0.0]], atol=1e-15)
    np.testing.assert_array_equal(unit, np.eye(2))
    given = np.array([[4.0, -1.0], [-1.0, 1.0]])
    np.testing.assert_allclose(semi_definite(given)[0], given)
    np.testing.assert_allclose(semi_definite(given)[1], [[1.0, -0.5], [-0.5, 1.0]])


def test_what_the_noise_hides_is_not_shown(values):
    """No correlation of a column whose variance is not known well enough to divide by."""
    found = description(values, PureDP(0.01))
    assert all(rate.value is None for rate in found.correlations.correlations.values())
    assert "hidden by the noise" in str(found)
    # One column does not move; the correlation of the two others is known.
    still = values.copy()
    still[2] = -0.9
    found = description(still, PureDP(8.0)).correlations
    assert [rate.value is None for rate in found.correlations.values()] == [False, True, True]
    assert found.covariances["a", "c"].low < 0.0 < found.covariances["a", "c"].high


def test_without_noise_they_are_those_of_numpy(values):
    """With intervals of no width; and a column that does not move has no correlation."""
    found, (correlations, covariances) = description(values, PureDP(math.inf)).correlations, truths(values)
    np.testing.assert_allclose(found.correlation, correlations, atol=1e-5)
    np.testing.assert_allclose(found.covariance, covariances, rtol=1e-4)
    for rate, i, j in zip(found.correlations.values(), *ABOVE, strict=True):
        assert rate.low == rate.value == rate.high == found.correlation[i, j]
    still = values.copy()
    still[2] = 0.5
    assert description(still, PureDP(math.inf)).correlations.correlations["b", "c"].value is None


def test_intervals_are_as_wide_as_the_noise_makes_them():
    """Written out for centred columns of variance 1 without correlation: 1.645 deviations of a product, over the rows."""
    values = np.array([[-1.0, -1.0, 1.0, 1.0] * 1000, [-1.0, 1.0, -1.0, 1.0] * 1000, [1.0, -1.0, -1.0, 1.0] * 1000])
    found = description(values, ZCDP(0.1)).correlations
    # Five tables, four columns of moments, and two products that change by 2, all in units of half a product.
    noise = 2.0 * math.sqrt(5 * 2.0 + 4 * 1.0 + 2 * 1.0) / math.sqrt(0.2)
    for rates, scales in ((found.correlations, [1.0] * 3), (found.covariances, [5.0, 2000.0, 100.0])):
        for rate, scale in zip(rates.values(), scales, strict=True):
            assert 0.5 * (rate.high - rate.low) == pytest.approx(scale * 1.645 * noise / 4000, rel=0.02)


def test_document_frame_and_page_hold_each_pair_once(values):
    """In the order of the columns; without correlations none of them says a word of it."""
    found = description(values, PureDP(1.0))
    frame = found.to_frame().set_index(["column", "statistic", "of"])
    assert frame.loc[("a", "correlation", "b"), "low"] == found.correlations.correlations["a", "b"].low
    assert frame.loc[("b", "covariance", "c"), "value"] == found.correlations.covariances["b", "c"].value
    document = found.to_dict()["correlations"]
    assert document["names"] == ["a", "b", "c"]
    assert [pair["columns"] for pair in document["pairs"]] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert document["pairs"][0]["correlation"] == found.correlations.correlations["a", "b"].to_dict()
    assert np.shape(document["covariance"]) == (3, 3)
    assert "Correlations" in str(found)
    plan = SumPlan.of(Tables((2,), 0, Neighbours.REPLACE_ONE), PureDP(1.0))
    released = plan.release(([np.array([3, 4])], np.zeros(0, dtype=int)), Entropy.seeded(0))
    without = Description(plan, released, TABLES[:1], (), (), 0.9, 7, None)
    assert without.correlations is None
    assert "correlations" not in without.to_dict()
    assert "Correlations" not in str(without)


def test_what_has_no_correlation_is_said(values):
    """Pairs that the noise hides are not numbers in the frame, and columns with missing cells are named."""
    found = description(values, PureDP(0.05))
    rates = found.correlations.correlations
    assert any(rate.value is None for rate in rates.values())
    frame = found.correlations.to_frame()
    for (one, other), rate in rates.items():
        assert math.isnan(frame.loc[one, other]) == math.isnan(frame.loc[other, one]) == (rate.value is None)
    assert (np.diag(frame) == 1.0).all()
    assert 'Not among them, since their cells may be missing: "gaps".' in " ".join(str(found).split())
