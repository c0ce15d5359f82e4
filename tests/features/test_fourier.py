"""Random Fourier features: the right kernels, rows of norm 1, and one map for one seed, wherever a row stands."""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction
from hashlib import shake_256
from itertools import product

import numpy as np
import pytest
from scipy import stats

from confide.errors import InputError, ParameterError
from confide.features import fourier
from confide.features.fourier import KERNELS, FourierMap

ULP = 2.0**-52

EXACT = {
    "rbf": lambda difference, s: math.exp(-(difference @ difference) / (2.0 * s**2)),
    "laplacian": lambda difference, s: math.exp(-np.abs(difference).sum() / s),
    "cauchy": lambda difference, s: float(np.prod(1.0 / (1.0 + difference**2 / s**2))),
}
DENSITIES = {"rbf": stats.norm, "laplacian": stats.cauchy, "cauchy": stats.laplace}
DIFFERENCES = np.array(
    [[0.3, 0.0, 0.0], [0.0, -1.0, 0.0], [0.4, 0.2, -0.5], [1.0, 1.0, 0.0], [-0.2, 1.5, 0.7], [2.0, -1.0, 1.0]]
)


def inner_products(maps, differences):
    """(maps, differences): inner products of the mapped rows x and x + difference, for rows x of all sizes."""
    rows = np.random.default_rng(3).normal(size=differences.shape) * np.geomspace(0.1, 10.0, len(differences))[:, None]
    return np.array([(m.transform(rows) * m.transform(rows + differences)).sum(axis=1) for m in maps])


def worst_deviation(kernel, exact, length_scale=1.0, n_seeds=64, **parameters):
    """Largest distance of the mean over seeds from the exact kernel, in standard errors of independent frequencies."""
    maps = [FourierMap(3, 256, kernel, length_scale, seed, **parameters) for seed in range(n_seeds)]
    values = np.array([exact(difference) for difference in DIFFERENCES])
    doubled = np.array([EXACT[kernel](2.0 * difference, length_scale) for difference in DIFFERENCES])
    spread = np.sqrt(np.maximum((1.0 + doubled) / 2.0 - values**2, 0.01) / (128 * n_seeds))
    return float(np.max(np.abs(inner_products(maps, DIFFERENCES).mean(axis=0) - values) / spread))


@pytest.mark.parametrize("length_scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_inner_products_have_the_kernel_as_their_mean(kernel, length_scale):
    """Over 64 maps of 128 frequencies they are within 4.5 standard errors."""
    assert worst_deviation(kernel, lambda difference: EXACT[kernel](difference, length_scale), length_scale) < 4.5


@pytest.mark.parametrize(
    ("kernel", "wrong"), [pair for pair in product(KERNELS, [*KERNELS, "twice", "half", "gamma"]) if pair[0] != pair[1]]
)
def test_a_wrong_density_is_rejected(kernel, wrong):
    """Another kernel's density, and length scales off by 2 or (gamma taken for 1 / s^2) by sqrt 2, are far away."""
    if wrong in KERNELS:
        assert worst_deviation(kernel, lambda difference: EXACT[wrong](difference, 1.0)) > 8.0
    else:
        scale = {"twice": 2.0, "half": 0.5, "gamma": math.sqrt(0.5)}[wrong]
        assert worst_deviation(kernel, lambda difference: EXACT[kernel](difference, scale)) > 8.0


def test_the_published_cauchy_kernel_is_rejected():
    """Printed with the numerator 2, it is 2^d at 0, which no rows of norm 1 can have."""

    def printed(difference):
        return float(np.prod(2.0 / (1.0 + difference**2)))

    assert printed(np.zeros(3)) == 8.0
    assert worst_deviation("cauchy", printed) > 50.0


@pytest.mark.parametrize("kernel", KERNELS)
def test_coordinates_follow_the_spectral_density(kernel):
    """Kolmogorov and Smirnov find nothing in 40,000 of them, and find a scale that is off by 5 percent."""
    coordinates = FourierMap(4, 20_000, kernel, 2.0).frequencies.ravel() * 2.0
    assert stats.kstest(coordinates, DENSITIES[kernel].cdf).pvalue > 0.01
    assert stats.kstest(1.05 * coordinates, DENSITIES[kernel].cdf).pvalue < 1e-4


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_error_falls_like_one_over_the_root_of_the_features(kernel):
    """Sixteen times the features, a quarter of the root mean square error, to within a fifth."""

    def error(n_features):
        maps = [FourierMap(3, n_features, kernel, seed=seed) for seed in range(100)]
        exact = [EXACT[kernel](difference, 1.0) for difference in DIFFERENCES]
        return math.sqrt(((inner_products(maps, DIFFERENCES) - exact) ** 2).mean())

    few, many = error(64), error(1024)
    assert few < 1.0 / math.sqrt(32)
    assert 3.2 < few / many < 4.8


@pytest.mark.parametrize("n_features", [2, 6, 256, 4096, 9000])
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_have_one_norm_up_to_a_few_ulp(kernel, n_features):
    """Just below 1, so that clipping changes and copies nothing. The largest and smallest doubles are no exception."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(300, 7)) * 10.0 ** rng.uniform(-320.0, 307.0, size=(300, 1))
    rows[0], rows[1], rows[2] = 0.0, np.finfo(float).max, -5e-324
    fourier_map = FourierMap(7, n_features, kernel)
    mapped = fourier_map.transform(rows)
    norm = 1.0 - max(2.0**-39, n_features * 2.0**-50)
    squares = [math.fsum(row**2) for row in mapped]
    assert np.abs(np.array(squares) - norm**2).max() <= 8 * ULP
    assert fourier_map.row_bound.l2_norm == 1.0
    assert fourier_map.row_bound.clip(mapped) is mapped
    np.testing.assert_allclose(mapped[0, : n_features // 2], norm / math.sqrt(n_features // 2), rtol=2 * ULP)
    assert not mapped[0, n_features // 2 :].any()


def test_columns_are_cosines_then_sines():
    """They agree with NumPy's to the precision that rows are read with."""
    fourier_map = FourierMap(5, 64)
    rows = np.random.default_rng(2).normal(size=(100, 5))
    angles = rows @ fourier_map.frequencies.T
    expected = np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(32)
    np.testing.assert_allclose(fourier_map.transform(rows), expected, atol=1e-9)


@pytest.mark.parametrize("n_inputs", [1, 3, 20, 1000])
def test_a_mapped_row_depends_on_that_row_alone(n_inputs):
    """Bit for bit the same alone, in any block, in any order, beside huge rows, and in another memory layout."""
    fourier_map = FourierMap(n_inputs, 250, "laplacian")
    rng = np.random.default_rng(n_inputs)
    rows = rng.normal(size=(700, n_inputs)) * rng.choice([1e-3, 1.0, 1e9, 1e200], size=(700, 1))
    mapped = fourier_map.transform(rows)
    order = rng.permutation(700)
    assert np.array_equal(fourier_map.transform(rows[order]), mapped[order])
    assert np.array_equal(fourier_map.transform(np.asfortranarray(rows)), mapped)
    assert np.array_equal(fourier_map.transform(np.delete(rows, 3, axis=0)), np.delete(mapped, 3, axis=0))
    for start, stop in [(0, 1), (1, 2), (5, 12), (100, 365), (699, 700)]:
        assert np.array_equal(fourier_map.transform(rows[start:stop]), mapped[start:stop])


@pytest.mark.parametrize("n_inputs", [1, 2, 3, 20, 129, 1025])
def test_products_of_rounded_rows_are_exact(n_inputs):
    """The reason for the sentence above: a product of matrices on their grids equals the one in fractions."""
    rng = np.random.default_rng(n_inputs)
    frequencies = fourier.on_grid(rng.standard_cauchy(size=(4, n_inputs)), 16)
    rows = rng.normal(size=(4, n_inputs)) * 10.0 ** rng.uniform(-115.0, 115.0, size=(4, 1))
    rows[0] = np.nextafter(2.0, 0.0)  # the largest that a row of its exponent can be, all of one sign
    frequencies[0] = 2.0
    rounded = fourier.on_grid(rows, 37 - (n_inputs - 1).bit_length())
    products = rounded @ frequencies.T
    for i in range(4):
        # The bound that the docstring of `transform` states.
        assert np.abs(rounded[i] - rows[i]).max() <= n_inputs * 2.0**-36 * np.abs(rows[i]).max()
        for j in range(4):
            exact = sum(Fraction(a) * Fraction(b) for a, b in zip(rounded[i], frequencies[j], strict=True))
            assert Fraction(products[i, j]) == exact


GOLDEN = {
    "rbf": [-0.3187255859375, 1.15008544921875, 1.046356201171875, 1.59765625, 0.613922119140625, -1.008453369140625],
    "laplacian": [-0.41436767578125, 2.4129638671875, 1.99822998046875, 5.723388671875, 0.8836669921875, -1.86572265625],
    "cauchy": [-0.28778076171875, 1.385833740234375, 1.219451904296875, 2.2061767578125, 0.6175537109375, -1.16082763671875],
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_seed_means_the_same_map_for_ever(kernel):
    """Frequencies of seed 7. If this fails, maps in files have changed: number the stream anew and keep the old one."""
    frequencies = FourierMap(3, 4, kernel, seed=7).frequencies
    np.testing.assert_allclose(frequencies.ravel(), GOLDEN[kernel], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_frequencies_can_be_recomputed_from_the_standard(kernel):
    """From SHAKE-256 and the inverse distribution functions of another library, up to the rounding to the grid."""
    digest = shake_256(b"confide random Fourier features, stream 1, seed 12").digest(8 * 50 * 3)
    words = [int.from_bytes(digest[i : i + 8], "little") for i in range(0, len(digest), 8)]
    # A sign, and a size whose chance of being exceeded is the tail: the value exceeded with half that chance.
    sizes = DENSITIES[kernel].isf(np.array([((word >> 12) + 0.5) / 2.0**53 for word in words]))
    expected = (np.array([-1.0 if word % 2 else 1.0 for word in words]) * sizes).reshape(50, 3) / 0.7
    actual = FourierMap(3, 100, kernel, 0.7, seed=12).frequencies
    assert (np.abs(actual - expected) <= 2.0**-16 * np.abs(expected).max(axis=1, keepdims=True)).all()


def test_maps_of_different_seeds_differ_and_larger_ones_begin_with_smaller_ones():
    """The frequencies of 64 features are the first of those of 640, orthogonal or not."""
    for orthogonal in (False, True):
        small, large = (FourierMap(5, n, seed=3, orthogonal=orthogonal).frequencies for n in (64, 640))
        np.testing.assert_allclose(large[:30], small[:30], atol=1e-4)  # the last block of a small map may be cut
        assert not np.isclose(FourierMap(5, 64, seed=4, orthogonal=orthogonal).frequencies, small).any()


def test_orthogonal_frequencies_are_what_their_name_says():
    """In each block directions are orthogonal to the rounding, and turned as little as Gram and Schmidt turn them."""
    plain, orthogonal = (FourierMap(8, 2 * 20, orthogonal=flag).frequencies for flag in (False, True))
    lengths = np.linalg.norm(plain, axis=1)
    np.testing.assert_allclose(np.linalg.norm(orthogonal, axis=1), lengths, rtol=1e-3)
    for block in (slice(0, 8), slice(8, 16), slice(16, 20)):
        products = orthogonal[block] @ orthogonal[block].T
        assert np.abs(products - np.diag(np.diag(products))).max() < 1e-3
        np.testing.assert_allclose(orthogonal[block][0], plain[block][0], atol=1e-3)
        assert (np.einsum("ij,ij->i", orthogonal[block], plain[block]) > 0.0).all()


def test_orthogonal_frequencies_are_normal_one_by_one():
    """Coordinates are normal and lengths are chi: lengths all equal to the root of the dimension would be seen."""
    frequencies = FourierMap(6, 2 * 6000, orthogonal=True).frequencies
    lengths = np.linalg.norm(frequencies, axis=1)
    assert stats.kstest(frequencies[:, 4], stats.norm.cdf).pvalue > 0.01
    assert stats.kstest(lengths, stats.chi(6).cdf).pvalue > 0.01
    assert stats.kstest(frequencies[:, 4] / lengths * math.sqrt(6), stats.norm.cdf).pvalue < 1e-4


def test_orthogonal_features_have_the_smaller_error():
    """Unbiased too, and with less than two thirds of the mean square error in eight dimensions."""
    assert worst_deviation("rbf", lambda difference: EXACT["rbf"](difference, 1.0), orthogonal=True) < 4.5
    differences = np.random.default_rng(0).normal(size=(20, 8)) * 0.4
    exact = np.array([EXACT["rbf"](difference, 1.0) for difference in differences])
    errors = [
        ((inner_products([FourierMap(8, 64, seed=s, orthogonal=flag) for s in range(100)], differences) - exact) ** 2).mean()
        for flag in (True, False)
    ]
    assert errors[0] < 0.67 * errors[1]


def test_maps_are_values():
    """Equal, hashable, frozen, and the same after a copy, a pickle and a JSON document, which holds no frequency."""
    fourier_map = FourierMap(3, 10, "rbf", 2, seed=np.int64(5), orthogonal=True)
    text = json.dumps(fourier_map.to_dict())
    for other in (
        copy.deepcopy(fourier_map),
        pickle.loads(pickle.dumps(fourier_map)),
        FourierMap.from_dict(json.loads(text)),
    ):
        assert other == fourier_map
        assert hash(other) == hash(fourier_map)
        assert np.array_equal(other.frequencies, fourier_map.frequencies)
    assert json.loads(text) == {
        "kind": "fourier",
        "stream": 1,
        "n_inputs": 3,
        "n_features": 10,
        "kernel": "rbf",
        "length_scale": 2.0,
        "seed": 5,
        "orthogonal": True,
    }
    assert fourier_map != FourierMap(3, 10, "rbf", 2, seed=5)
    with pytest.raises(ValueError, match="read-only"):
        fourier_map.frequencies[0, 0] = 0.0
    with pytest.raises(AttributeError):
        fourier_map.seed = 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_inputs": 0}, "columns of a row"),
        ({"n_inputs": 2.0}, "columns of a row"),
        ({"n_inputs": True}, "columns of a row"),
        ({"n_features": 7}, "even"),
        ({"n_features": 0}, "number of features"),
        ({"n_features": "many"}, "number of features"),
        ({"n_inputs": 2**20, "n_features": 2**20}, "too large"),
        ({"kernel": "gaussian"}, "'rbf', 'laplacian', 'cauchy'"),
        ({"kernel": ["rbf"]}, "kernel must be one of"),
        ({"length_scale": 0.0}, "length_scale"),
        ({"length_scale": math.nan}, "length_scale"),
        ({"length_scale": math.inf}, "length_scale"),
        ({"length_scale": True}, "length_scale"),
        ({"length_scale": "1"}, "length_scale"),
        ({"seed": None}, "seed"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"seed": np.random.default_rng(0)}, "seed"),
        ({"orthogonal": 1}, "orthogonal"),
        ({"kernel": "cauchy", "orthogonal": True}, "'rbf'"),
    ],
)
def test_parameters_outside_their_ranges_are_refused(changes, message):
    """The message names what is wrong."""
    with pytest.raises(ParameterError, match=message):
        FourierMap(**({"n_inputs": 3, "n_features": 8} | changes))


@pytest.mark.parametrize("rows", [np.zeros((4, 2)), np.zeros(3), np.zeros((1, 3, 1))])
def test_rows_of_another_width_are_refused(rows):
    """The message says which width was expected."""
    with pytest.raises(InputError, match="rows of 3 columns"):
        FourierMap(3, 8).transform(rows)


@pytest.mark.parametrize(
    "changes", [{"stream": 2}, {"kind": "nystroem"}, {"more": 1}, {"seed": "0"}, {"n_features": 5}, {"kernel": None}]
)
def test_descriptions_that_are_not_understood_are_refused(changes):
    """An unknown stream above all: its frequencies would be others."""
    described = FourierMap(3, 8).to_dict() | changes
    for value in (described, list(described), {key: described[key] for key in list(described)[1:]}):
        with pytest.raises(ParameterError):
            FourierMap.from_dict(value)


def test_no_rows_and_other_types_of_numbers_are_mapped():
    """The result is float64 and C-contiguous; the argument stays as it was, and no warning depends on the data."""
    fourier_map = FourierMap(2, 6)
    assert fourier_map.transform(np.zeros((0, 2))).shape == (0, 6)
    rows = np.array([[1, 2], [3, -4]])
    mapped = fourier_map.transform(rows)
    assert mapped.dtype == np.float64
    assert mapped.flags.c_contiguous
    for kind in (np.float32, np.int8, np.float64):
        original = rows.astype(kind)
        assert np.array_equal(fourier_map.transform(original), mapped)
        assert np.array_equal(original, rows)
    with np.errstate(all="raise"):
        fourier_map.transform(np.array([[1e308, -1e308], [5e-324, 0.0]]))


def support_vector_scores(gram, labels, cost, points):
    """Scores at the points, f = sum_i a_i y_i k(., x_i), of the SVM without offset: its dual, one coordinate at a time."""
    signed = labels[:, None] * labels * gram
    duals = np.zeros(labels.size)
    for _ in range(1000):
        for i in range(labels.size):
            duals[i] = min(cost, max(0.0, duals[i] + (1.0 - signed[i] @ duals) / signed[i, i]))
    slack = 1.0 - signed @ duals
    assert ((np.abs(slack) < 1e-9) | ((duals == 0.0) & (slack < 0.0)) | ((duals == cost) & (slack > 0.0))).all()
    return points @ (duals * labels)


@pytest.mark.parametrize(
    ("sigma", "C", "n", "n_databases", "least"),
    [(0.3, 1.0, 8, 11, 0.1036), (0.5, 3.0, 10, 6, 0.2594), (0.2, 5.0, 6, 16, 0.7091)],
)
def test_machines_on_the_databases_of_the_lower_bound_differ_as_much_in_the_mapped_space(sigma, C, n, n_databases, least):
    """Lemma 25 of Rubinstein et al.: one positive row on a circle, n - 1 negative ones at its centre.

    Machines of any two of the databases differ by at least C / 2n somewhere, so no private learner of the kernel can be
    exact; minimisers over mapped rows come as far apart, within their error.
    """
    assert math.floor(2.0 / sigma * math.sqrt(2.0 / math.log(2.0))) == n_databases
    turns = 2.0 * math.pi * np.arange(n_databases) / n_databases
    circle = np.column_stack([np.cos(turns), np.sin(turns)])
    labels = np.array([-1.0] * (n - 1) + [1.0])
    everywhere = np.vstack([np.zeros(2), circle])
    exact_kernel = np.array([[EXACT["rbf"](a - b, sigma) for b in everywhere] for a in everywhere])
    mapped = FourierMap(2, 8192, "rbf", sigma, orthogonal=True).transform(everywhere)
    closest = []
    for kernel in (exact_kernel, mapped @ mapped.T):
        scores = []
        for i in range(n_databases):
            rows = [0] * (n - 1) + [1 + i]
            scores.append(support_vector_scores(kernel[np.ix_(rows, rows)], labels, C / n, kernel[:, rows]))
        distances = [np.abs(a - b).max() for i, a in enumerate(scores) for b in scores[:i]]
        closest.append(min(distances))
    assert closest[0] == pytest.approx(least, abs=1e-4)
    assert closest[0] >= C / (2 * n)
    assert closest[1] == pytest.approx(closest[0], abs=0.1 * C / n)


def test_scales_make_a_kernel_whose_length_differs_by_column():
    """The kernel at two columns apart; the norm stays, files keep them, and files without them are read."""
    fourier_map = FourierMap(2, 8192, length_scale=2.0, scales=(4.0, 0.5))
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    mapped = fourier_map.transform(rows)
    expected = [math.exp(-((4.0 / 2.0) ** 2) / 2.0), math.exp(-((0.5 / 2.0) ** 2) / 2.0)]
    np.testing.assert_allclose(mapped[1:] @ mapped[0], expected, atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1.0, rtol=1e-8)
    assert FourierMap.from_dict(fourier_map.to_dict()) == fourier_map
    assert "scales" not in FourierMap(2, 4).to_dict()
    for wrong in ((1.0,), (1.0, 2.0, 3.0), (1.0, 0.0), (1.0, math.nan), "12", 3.0):
        with pytest.raises(ParameterError, match="scale"):
            FourierMap(2, 4, scales=wrong)
