"""Cosines and sines by the kernel: right, and those of an angle alone, wherever it stands."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.compiled import sums
from confide.compiled.loading import is_plain
from confide.compiled.sums import kernel_of_angles
from confide.features.fourier import CurvesAndFeatures, FourierMap


@pytest.fixture(params=["", "plain"], autouse=True)
def instructions(request, monkeypatch, compiled):
    """By the instructions of this processor, and by those that every processor has."""
    monkeypatch.setenv("CONFIDE_COMPILED", request.param)


def turned(kernel, angles, dtype=np.float64, scale=1.0):
    made = np.full((len(angles), 2 * angles.shape[1]), np.nan, dtype)
    kernel.turned(angles, scale, made, is_plain())
    return made


def angles_of_all_sizes(n_rows, n_angles, seed=0):
    """Angles of all sizes, also close to multiples of half pi and to the size that is left to the C library."""
    rng = np.random.default_rng(seed)
    angles = rng.normal(size=(n_rows, n_angles)) * 10.0 ** rng.uniform(-20.0, 8.0, (n_rows, n_angles))
    quarters = 0.5 * math.pi * rng.integers(-300_000, 300_000, (n_rows, n_angles))
    edge = np.nextafter(524288.0, rng.choice([0.0, 1e9], (n_rows, n_angles)))
    return np.choose(rng.integers(0, 4, (n_rows, n_angles)), [angles, quarters, edge, rng.normal(size=angles.shape)])


def test_they_are_those_of_the_c_library(compiled):
    """Within one unit in the last place of 1; and of each angle the squares add up to 1."""
    angles = angles_of_all_sizes(20, 1001)
    cosines, sines = np.hsplit(turned(compiled, angles), 2)
    assert np.abs(cosines - np.vectorize(math.cos)(angles)).max() <= 2.0**-52
    assert np.abs(sines - np.vectorize(math.sin)(angles)).max() <= 2.0**-52
    assert np.abs(cosines**2 + sines**2 - 1.0).max() <= 2.0**-51
    np.testing.assert_array_equal(turned(compiled, np.zeros((1, 3)), scale=0.7), [[0.7, 0.7, 0.7, 0.0, 0.0, 0.0]])


def test_extreme_angles_are_turned_as_by_the_c_library(compiled):
    """Huge ones are finite; what is no number stays none, and changes nothing beside it."""
    angles = np.array([[2.0**450, -(2.0**1000), 5e-324, -0.0, np.nan, np.inf, 1.0]])
    expected = [*map(math.cos, (2.0**450, 2.0**1000)), 1.0, 1.0, np.nan, np.nan, math.cos(1.0)]
    np.testing.assert_allclose(turned(compiled, angles)[0, :7], expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_angles", [1, 2, 3, 4, 5, 255, 256, 257, 515])
def test_an_angle_alone_decides_its_numbers(compiled, n_angles, dtype):
    """To the bit, in any row and column, beside any other angles: so neighbouring data sets stay neighbours."""
    angles = angles_of_all_sizes(6, n_angles, n_angles)
    made, order = turned(compiled, angles, dtype), np.random.default_rng(1).permutation(6 * n_angles)
    moved = turned(compiled, angles.ravel()[order].reshape(6, -1), dtype)
    for some, others in zip(np.hsplit(made, 2), np.hsplit(moved, 2), strict=True):
        np.testing.assert_array_equal(some.ravel()[order], others.ravel())
    for row, column in ((0, 0), (5, n_angles - 1), (2, n_angles // 2)):
        alone = turned(compiled, angles[row : row + 1, column : column + 1].copy(), dtype)
        np.testing.assert_array_equal(alone[0], made[row, [column, n_angles + column]])
    np.testing.assert_allclose(made, turned(compiled, angles), rtol=0.0, atol=1e-7 if dtype is np.float32 else 0.0)


@pytest.mark.parametrize("shape", [(0, 3, 8), (1, 1, 1), (3, 5, 16), (7, 20, 37), (40, 66, 900)])
def test_angles_are_products_of_matrices(compiled, shape):
    """To the bit where no sum is rounded; rows of zeros, and signs of zeros, among them."""
    rng, (n, d, m) = np.random.default_rng(2), shape
    rows, inputs = rng.integers(-9, 10, (n, d)) * rng.integers(0, 2, (n, d)) * 1.0, rng.integers(-99, 99, (d, m)) * 1.0
    made = np.full((n, m), np.nan)
    compiled.angles(-rows, inputs, made, is_plain())
    np.testing.assert_array_equal(made, -rows @ inputs)
    assert not np.signbit(made[made == 0.0]).any()


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_with_many_zeros_are_mapped_as_they_are_without_the_kernels_products(monkeypatch, order):
    """In any order of memory, and beside rows without zeros, which are multiplied by NumPy."""
    rng, fourier = np.random.default_rng(3), FourierMap(30, 514)
    few = np.asarray(np.where(rng.random((400, 30)) < 0.2, rng.normal(size=(400, 30)), 0.0), order=order)
    made = fourier.transform(few)
    np.testing.assert_array_equal(fourier.transform(np.vstack([rng.normal(size=(400, 30)), few]))[400:], made)
    monkeypatch.setattr("confide.features.fourier._NONZERO_SHARE", 10**9)
    np.testing.assert_array_equal(fourier.transform(few), made)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (0, np.ones((3, 4))),
        (0, np.ones((3, 5), np.float32)),
        (0, np.asfortranarray(np.ones((3, 5)))),
        (1, np.ones((5, 8))),
        (1, np.ones(35)),
        (2, np.ones((4, 7))),
        (2, np.broadcast_to(np.ones(7), (3, 7))),
    ],
)
def test_matrices_of_angles_that_do_not_fit_are_refused(compiled, place, wrong):
    right = [np.ones((3, 5)), np.ones((5, 7)), np.ones((3, 7)), False]
    compiled.angles(*right)
    right[place] = wrong
    with pytest.raises((ValueError, BufferError)):
        compiled.angles(*right)


def test_nothing_else_is_written_to(compiled):
    """Rows may be parts of wider ones."""
    angles = angles_of_all_sizes(4, 7)
    wide = np.full((4, 20), 9.0, np.float32)
    compiled.turned(angles, 0.5, wide[:, 3:17], is_plain())
    assert (wide[:, [0, 1, 2, 17, 18, 19]] == 9.0).all()
    np.testing.assert_array_equal(wide[:, 3:17], turned(compiled, angles, np.float32, 0.5))


def test_arrays_that_do_not_fit_are_refused(compiled):
    """Nothing is written beyond an array, or to numbers of another kind."""
    angles = np.zeros((3, 5))
    for given, out in (
        (angles, np.zeros((3, 9))),
        (angles, np.zeros((2, 10))),
        (angles, np.zeros((3, 10), np.int64)),
        (angles, np.zeros((3, 20))[:, ::2]),
        (angles, np.zeros(30)),
        (angles.astype(np.float32), np.zeros((3, 10))),
        (angles.ravel(), np.zeros((3, 10))),
    ):
        with pytest.raises(ValueError, match="the kernel needs a matrix of angles"):
            compiled.turned(given, 1.0, out, is_plain())
    with pytest.raises((ValueError, BufferError)):
        compiled.turned(np.zeros((5, 6))[:, ::2], 1.0, np.zeros((5, 6)), is_plain())
    fixed = np.zeros((3, 10))
    fixed.setflags(write=False)
    with pytest.raises((ValueError, BufferError)):
        compiled.turned(angles, 1.0, fixed, is_plain())


def test_features_are_those_of_numpy(compiled, monkeypatch):
    """In double precision to a few units in the last place, and in single precision too."""
    rows = np.random.default_rng(4).uniform(-1.0, 1.0, (300, 7))
    features = FourierMap(7, 130, length_scale=0.3, seed=2, orthogonal=True)
    appended = CurvesAndFeatures(features, 3.5, 2.0)
    by_kernel = features.transform(rows), appended.transform(rows)
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    by_numpy = features.transform(rows), appended.transform(rows)
    np.testing.assert_allclose(by_kernel[0], by_numpy[0], rtol=0.0, atol=4e-16)
    np.testing.assert_array_equal(by_kernel[1][:, :7], by_numpy[1][:, :7])
    np.testing.assert_allclose(by_kernel[1][:, 7:], by_numpy[1][:, 7:], rtol=0.0, atol=1e-7 * 3.5 / np.sqrt(65.0))


class _Wrong:
    """A kernel that makes one mistake."""

    def __init__(self, kernel, change):
        self._kernel, self._change = kernel, change

    def turned(self, angles, scale, out, plain):
        self._change(lambda *given: self._kernel.turned(*given, plain), angles, scale, out)


def _last_differs(turn, angles, scale, out):
    turn(angles, scale, out)
    if angles.shape[1] > 1:
        out[:, -1] *= 1.0 + 2.0**-22


def _writes_beyond(turn, angles, scale, out):
    turn(angles, scale, out)
    if out.base is not None:
        out.base[:, -1] = 1.0


MISTAKES = {
    "another scale": lambda turn, angles, scale, out: turn(angles, 1.001 * scale, out),
    "twice the angle": lambda turn, angles, scale, out: turn(2.0 * angles, scale, out),
    "an angle elsewhere has other numbers": _last_differs,
    "it writes beside its rows": _writes_beyond,
    "nothing": lambda turn, angles, scale, out: None,
    "it fails": lambda turn, angles, scale, out: turn(angles, scale, out[:, 1:]),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_kernel_that_turns_wrongly_is_not_used(monkeypatch, compiled, mistake):
    """NumPy makes the features in its place, and a warning says so, once."""
    sums.tried.cache_clear()
    monkeypatch.setattr(sums, "kernel", lambda: _Wrong(compiled, mistake))
    with pytest.warns(RuntimeWarning, match=r"computes wrongly .* so random features are made by NumPy"):
        assert kernel_of_angles() is None
    sums.tried.cache_clear()


def test_a_kernel_of_an_earlier_version_is_not_used(monkeypatch, compiled):
    """It has no such function."""
    sums.tried.cache_clear()
    monkeypatch.setattr(sums, "kernel", object)
    with pytest.warns(RuntimeWarning, match="random features are made by NumPy"):
        assert kernel_of_angles() is None
    sums.tried.cache_clear()
    monkeypatch.undo()
    assert kernel_of_angles() is compiled
