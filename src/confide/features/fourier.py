"""Random Fourier features: rows of norm 1 whose inner products approximate a kernel, by public knowledge alone.

A kernel k(x, y) = g(x - y) with g(0) = 1 is the mean of cos(w . (x - y)) over frequencies w drawn from its spectral density.
With n_features / 2 such frequencies, a row x becomes the cosines and sines of all w . x, divided by the root of the number
of frequencies. The norm of the result is 1, and inner products differ from the kernel by about 1 / sqrt(n_features). A
linear model on such rows is a kernel model.

Public facts and a public seed determine a `FourierMap`. It is not noise: it protects nobody, and it may be published.

What is guaranteed:

- A mapped row is a function of the row alone, bit for bit, whatever other rows are in its block. So neighbouring data sets
  stay neighbours. Matrix products add in an order that depends on the place of a row in its block; therefore rows and
  frequencies are rounded to grids on which every product and every partial sum is exact.
- A seed gives the same frequencies for ever. Their bits come from SHAKE-256 (FIPS 202) and not from a generator that a
  library may change. Mathematical libraries differ in the last digits of the functions that are applied to these bits.
  Rounding to 16 bits hides this, except with a probability of some 10^-10 for each coordinate (more if directions are made
  orthogonal); then the difference is 2^-16 of the largest coordinate.
- Cosines may differ in the last digits from one machine to another, and norms of features in single precision lie within
  10^-7 of 1. This costs accuracy and not privacy, because rows are clipped again where they are summed.

Sources: Rahimi and Recht, Random Features for Large-Scale Kernel Machines (2007); Rubinstein, Bartlett, Huang and Taft,
Learning in a Large Function Space (2012), algorithm 3 (its table has misprints in the Cauchy kernel and its density); Yu et
al., Orthogonal Random Features (2016).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import shake_256
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from confide.array_types import Array, Rows
from confide.compiled.loading import is_plain
from confide.compiled.sums import kernel_of_angles
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND, BallBound, RowBound
from confide.errors import (
    InputError,
    ParameterError,
    SchemaError,
    checked_flag,
    checked_number,
    checked_whole,
    is_list,
    is_mapping,
    is_text,
    keep,
    wording,
)
from confide.features.columns import described_fields, shown_number
from confide.known_words import words_of

# For each kernel with length scale 1: the absolute value that a coordinate of a frequency exceeds with a given probability.
# Coordinates are independent, and both signs are equally likely.
_SIZES: dict[str, Callable[[Array], Array]] = {
    "rbf": lambda tail: -ndtri(0.5 * tail),  # standard normal
    "laplacian": lambda tail: 1.0 / np.tan(0.5 * math.pi * tail),  # standard Cauchy, whose variance is infinite
    "cauchy": lambda tail: -np.log(tail),  # Laplace of scale 1
}
KERNELS = tuple(_SIZES)

_STREAM = 1
"""Version of the rule that makes frequencies from a seed. A new rule needs a new number, because files hold only seeds."""
_LARGEST_SEED = 2**64 - 1
_MOST_COORDINATES = 2**24
_FREQUENCY_BITS = 16
"""Frequencies are rounded to this many bits.

Rounding errors have mean zero, so they change the kernel only by about 2^-32 of what a change of its scale would.
"""
_LARGER_THAN_NORMAL = 8.5
"""No normal coordinate is as large, since its probability would be below 2^-53."""
_NUMBERS_IN_BLOCK, _NONZERO_SHARE = 2**17, 2
"""So many numbers are mapped at once. Where fewer than one entry of so many is not 0, the kernel multiplies these alone."""
_LARGEST_ENTRY, _SMALLEST_EXPONENT = 2.0**400, -400
_LARGEST_NORM = 2.0**20
_SCALE = partial(checked_number, low=2.0**-20, high=_LARGEST_NORM, shown="2^-20 to 2^20")


@dataclass(frozen=True, slots=True)
class FourierMap:
    """Random features of a translation-invariant kernel, of norm 1.

    Parameters
    ----------
    n_inputs : number of columns of a row, at least 1
    n_features : number of columns of a mapped row, an even number: cosines first, then the sines of the same angles. A
        larger map with the same seed begins with the frequencies of a smaller one. n_inputs times n_features may be up to
        2^25
    kernel : with D the difference of two rows and s the length scale,

        - "rbf": exp(-|D|^2 / (2 s^2)), with the L2 norm
        - "laplacian": exp(-|D|_1 / s), with the L1 norm
        - "cauchy": the product of 1 / (1 + D_j^2 / s^2) over the columns j
    length_scale : s, between 2^-300 and 2^300
    seed : public whole number from 0 to 2^64 - 1
    orthogonal : only for "rbf": make the directions of every n_inputs frequencies orthogonal, which gives a smaller error
    scales : one number for each column, which multiplies its frequencies: a column with a scale of 2 has half the length
        scale. Each lies between 2^-20 and 2^20. Empty where all columns have the same length scale
    reach : how many columns of a schema a feature is a function of: so many are drawn for each frequency, which is 0
        elsewhere. Chances are in proportion to squared scales, which then do nothing else. 0: all columns
    origins : with a reach, for each column of a row the number of the column of the schema that it encodes. Frequencies stay
        as they are if the last columns of an origin are left out
    places : one number for each column, from 0, which never falls and rises by at most 1 from column to column: where its
        frequency lies among those that are drawn for each place 0, 1, ..., in between by linear interpolation. So columns
        that are hats of a curve are seen as fewer hats. Empty where each column has a frequency of its own

    Attributes
    ----------
    frequencies : array (n_features / 2, n_inputs), read-only

    Raises
    ------
    ParameterError
        If a parameter is outside its range.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> mapped = FourierMap(n_inputs=2, n_features=4096).transform(rows)
    >>> bool(abs(mapped[0] @ mapped[1] - np.exp(-0.5)) < 0.05)
    True
    """

    n_inputs: int
    n_features: int
    kernel: str = "rbf"
    length_scale: float = 1.0
    seed: int = 0
    orthogonal: bool = False
    scales: tuple[float, ...] = ()
    reach: int = 0
    origins: tuple[int, ...] = ()
    places: tuple[float, ...] = ()
    frequencies: Array = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        keep(
            self,
            "",
            scales=partial(_checked_list, check=_SCALE),
            n_inputs=lambda _, n: checked_whole("the number of columns of a row", n, 1, _MOST_COORDINATES),
            n_features=lambda _, n: checked_whole("the number of features", n, 2, 2 * _MOST_COORDINATES),
            length_scale=lambda _, s: checked_number("length_scale", s, SMALLEST_BOUND, LARGEST_BOUND, "2^-300 to 2^300"),
            seed=lambda _, seed: checked_whole("the seed of a public map", seed, 0, _LARGEST_SEED),
            orthogonal=checked_flag,
            reach=partial(checked_whole, low=0, high=_MOST_COORDINATES),
            origins=partial(_checked_list, check=partial(checked_whole, low=0, high=_MOST_COORDINATES)),
            places=partial(_checked_list, check=partial(checked_number, low=0.0, high=_MOST_COORDINATES, shown="0 to 2^24")),
        )
        if self.n_features % 2:
            raise ParameterError("the number of features must be even: each frequency gives a cosine and a sine.")
        if self.n_inputs * (self.n_features // 2) > _MOST_COORDINATES:
            raise ParameterError("the map is too large: columns of a row times number of features may be up to 2^25.")
        if not is_text(self.kernel) or self.kernel not in KERNELS:
            raise ParameterError(f"kernel must be one of {words_of(KERNELS, self.kernel)}.")
        if self.orthogonal and self.kernel != "rbf":
            raise ParameterError(wording("orthogonal features"))
        if self.scales and len(self.scales) != self.n_inputs:
            raise ParameterError(f"there are {len(self.scales)} scales; rows have {self.n_inputs} columns; give as many.")
        steps = np.diff((0.0, *self.places))
        if len(self.places) not in (0, self.n_inputs) or not ((steps >= 0.0) & (steps <= 1.0)).all():
            raise ParameterError("places are a number for each column of a row: from 0, in rising steps of at most 1.")
        is_other = self.orthogonal or self.kernel != "rbf" or self.places != ()
        if len(self.origins) != (self.n_inputs if self.reach else 0) or (self.reach and is_other):
            raise ParameterError(
                "a reach needs an origin for each column, the kernel 'rbf', no orthogonal features, and no places."
            )
        object.__setattr__(self, "frequencies", self._draw())

    def _draw(self) -> Array:
        n_frequencies, n_drawn = self.n_features // 2, math.ceil(self.places[-1]) + 1 if self.places else self.n_inputs
        drawn = None if self.reach else public_numbers(self.kernel, self.seed, n_frequencies * n_drawn)
        frequencies = self._of_few(n_frequencies) if drawn is None else drawn.reshape(n_frequencies, n_drawn)
        if self.orthogonal:
            blocks = range(0, n_frequencies, n_drawn)
            frequencies = np.concatenate([_orthogonalised(frequencies[i : i + n_drawn]) for i in blocks])
        if self.places:
            part, below = np.modf(self.places)
            near = below.astype(int)
            frequencies = (1.0 - part) * frequencies[:, near] + part * frequencies[:, np.minimum(near + 1, n_drawn - 1)]
        if self.scales and not self.reach:
            frequencies = frequencies * self.scales
        frequencies = on_grid(frequencies / self.length_scale, _FREQUENCY_BITS)[:, : self.n_inputs]
        frequencies.setflags(write=False)
        return frequencies

    def _of_few(self, count: int) -> Array:
        """Frequencies that are 0 but in the columns that are drawn for each: those which come first of all in a race.

        Each column of a row has a stream of its own, so that those which are left out change nothing in the others.
        """
        times, made, seen = dict[int, Array](), [], Counter[int]()
        for origin, scale in zip(self.origins, self.scales or repeat(1.0), strict=False):
            if origin not in times:  # exponential times, at a rate of the squared scale
                times[origin] = np.abs(public_numbers("cauchy", self.seed, count, f", column {origin}")) / scale**2
            made.append(public_numbers(self.kernel, self.seed, count, f", column {origin}, part {seen[origin]}"))
            seen[origin] += 1
        last = np.sort(list(times.values()), axis=0)[min(self.reach, len(times)) - 1]
        drawn = [own * (times[origin] <= last) for origin, own in zip(self.origins, made, strict=True)]
        # What is larger than all of them gives them one grid, whichever are left out.
        return np.array([*drawn, np.full(count, _LARGER_THAN_NORMAL)]).T

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of a mapped row: "cos0", "cos1", ..., "sin0", "sin1", ..."""
        return tuple(f"{function}{i}" for function in ("cos", "sin") for i in range(self.n_features // 2))

    @property
    def row_bound(self) -> BallBound:
        """The bound of mapped rows, the ball of radius 1. Mapped rows lie in it; they are clipped all the same."""
        return BallBound(1.0)

    def __str__(self) -> str:
        directions = ", orthogonal" if self.orthogonal else ""
        apart = " over a scale for each column" if self.scales and not self.reach else ""
        few = f", each of {self.reach} columns that are drawn" if self.reach else ""
        return (
            f"{self.n_features:,} random features of the kernel {self.kernel!r} with length scale {self.length_scale:g}"
            f"{apart}{few} (public seed {self.seed}{directions})"
        )

    def may_have(self, row_bound: RowBound) -> bool:
        """Whether a fit to mapped rows may have this bound: it is `row_bound`, to which all mapped rows are equally near."""
        return row_bound == self.row_bound

    def names_for(self, inputs: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns of a mapped row. They do not depend on the names of the columns of a row."""
        del inputs
        return self.names

    def transform(self, rows: Rows) -> Array:
        """Map rows.

        Parameters
        ----------
        rows : array (m, n_inputs) of finite numbers. Numbers beyond 2^400 count as 2^400. Numbers are rounded, by at most
            n_inputs 2^-36 of the largest in their row (or of 2^-400, if that is larger)

        Returns
        -------
        array (m, n_features), float64, fresh and C-contiguous

        Raises
        ------
        InputError
            If rows do not have n_inputs columns.
        """
        rows = np.asarray(rows)
        mapped = np.empty((*rows.shape[:1], self.n_features))
        self.write(rows, mapped)
        return mapped

    def write(self, rows: Rows, mapped: NDArray[np.floating], factor: float = 1.0) -> None:
        """Write the mapped rows, times a factor, to an array (m, n_features) of float64 or float32; see `transform`."""
        if rows.ndim != 2 or rows.shape[1] != self.n_inputs:
            raise InputError(f"the map takes rows of {self.n_inputs} columns; give a two-dimensional array of that width.")
        # One block at a time, so that it stays in the cache. No warnings, because they would depend on data.
        with np.errstate(all="ignore"):
            step, inputs = max(1, _NUMBERS_IN_BLOCK // self.n_features), np.ascontiguousarray(self.frequencies.T)
            bits = 53 - _FREQUENCY_BITS - (self.n_inputs - 1).bit_length()
            rows = on_grid(np.clip(rows.astype(np.float64, order="C"), -_LARGEST_ENTRY, _LARGEST_ENTRY), bits)
            for start in range(0, len(rows), step):
                self._fill(mapped[start : start + step], rows[start : start + step], inputs, factor)

    def _fill(self, mapped: NDArray[np.floating], rows: Array, inputs: Array, factor: float) -> None:
        scale = factor * (_norm(self.n_features) / math.sqrt(self.n_features // 2))
        angles, module = np.empty((len(rows), self.n_features // 2)), kernel_of_angles()
        # Without rounding error, whether all entries are multiplied or those that are not 0.
        if module is not None and _NONZERO_SHARE * np.count_nonzero(rows) < rows.size:
            module.angles(rows, inputs, angles, is_plain())
        else:
            np.matmul(rows, inputs, out=angles)
        if module is not None:
            module.turned(angles, scale, mapped, is_plain())
            return
        cosines, sines = np.hsplit(mapped, 2)
        # With t the tangent of half an angle and w = 2 / (1 + t^2), the cosine of the angle is w - 1 and its sine is t w.
        # This needs one function instead of two, and the squares add up to 1 whatever the error of t is.
        np.tan(0.5 * angles, out=angles)
        weights = np.divide(2.0 * scale, 1.0 + angles * angles)
        np.multiply(angles, weights, out=sines, casting="same_kind")
        np.subtract(weights, scale, out=cosines, casting="same_kind")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, read by `from_dict`. It holds the seed and not the frequencies."""
        own = {name: getattr(self, name) for name in _PARAMETERS} | described_fields(self, *_LATER)
        return {"kind": "fourier", "stream": _STREAM} | own

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> FourierMap:
        """Read what `to_dict` writes.

        Raises
        ------
        ParameterError
            If parts are missing, unknown or outside their ranges.
        """
        known = {"kind", "stream", *_PARAMETERS}
        if not is_mapping(value) or not known <= set(value) <= known | {*_LATER}:
            raise ParameterError(f"a Fourier map is described by exactly these keys: {', '.join(sorted(known))}.")
        if value["kind"] != "fourier" or value["stream"] != _STREAM:
            raise ParameterError("the map is of a kind that this version of confide does not understand.")
        return cls(**{name: value[name] for name in value.keys() - {"kind", "stream"}})


_LATER = ("scales", "reach", "origins", "places")
"""What is written only where it says something."""
_PARAMETERS = tuple(part.name for part in fields(FourierMap) if part.init and part.name not in _LATER)


def _checked_list(
    what: str, value: object, check: Callable[..., Any], refusal: type[ParameterError] = ParameterError
) -> tuple[Any, ...]:
    """A number for each column, each of which is checked."""
    if not is_list(value):
        raise refusal(f"{what} must be a list with a number for each column.")
    return tuple(check(f"each of {what}", one, refusal=refusal) for one in value)


def _norm(n_features: int) -> float:
    """The norm of mapped rows: a little below 1, so that `BallBound(1.0)` leaves them as they are."""
    return 1.0 - max(2.0**-39, n_features * 2.0**-50)


def public_numbers(kernel: str, seed: int, count: int, part: str = "") -> Array:
    """The first `count` coordinates that a seed gives for a part of the frequencies, each from a word of 64 bits."""
    label = f"confide random Fourier features, stream {_STREAM}, seed {seed}{part}"
    words = np.frombuffer(shake_256(label.encode()).digest(8 * count), dtype="<u8")
    tails = ((words >> 12).astype(np.float64) + 0.5) * 2.0**-52  # without rounding error, and neither 0 nor 1
    return np.where(words & 1, -1.0, 1.0) * _SIZES[kernel](tails)


def _orthogonalised(frequencies: Array) -> Array:
    """At most n_inputs normal frequencies, each turned until it is orthogonal to those before it. Their lengths stay.

    Let G = Q R with diag(R) > 0, for a square matrix G of independent normal columns. Then Q is uniformly distributed and
    independent of R, because for every orthogonal U, the matrix U G has the distribution of G and is factored into U Q and
    R. The columns of G have the lengths of the columns of R, so these lengths are independent of the directions Q. They are
    also independent of each other, because the columns of G are, and follow chi distributions with n_inputs degrees of
    freedom. That is what Yu et al. require, and no further draws are needed.
    """
    directions, triangle = np.linalg.qr(frequencies.T)
    lengths = np.sqrt(np.einsum("ij,ij->i", frequencies, frequencies))
    directions *= np.copysign(lengths, np.diag(triangle))
    return np.ascontiguousarray(directions.T)


def on_grid(rows: Array, bits: int) -> Array:
    """Each row, rounded to multiples of 2^-bits of the power of two above its largest entry.

    Consider two such rows, one with b bits and one with 53 - b - c bits, and a sum of d <= 2^c products of their entries.
    The sum and all its partial sums are multiples of the product of the two grid steps, and at most 2^53 times that product.
    So the sum is exact in any order of additions, with or without fused multiply-add.
    """
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    # Doubles near an anchor are as far apart as the points of the grid, so adding and subtracting it rounds to the grid.
    anchors = np.ldexp(1.5, 52 - bits + np.maximum(exponents, _SMALLEST_EXPONENT))
    return np.asarray((rows + anchors) - anchors)


# Encoded rows with random Fourier features of the same rows beside them, by public knowledge alone.
#
# The weights of the encoded columns are the effects of single columns. The weights of the features are a function of all
# columns together, so a linear model of both is an additive model with interactions of every order. The features are
# multiplied by a number g, which says how much of a row they are: a row x becomes (x, g f(x)), where f(x) has norm 1.
#
# If |x| <= r, then |(x, g f(x))|^2 <= r^2 + g^2. Rows are clipped to such a ball where they are summed, so the bound holds
# whatever finite numbers are computed here. They are finite, because the encoder makes finite rows of every cell.

_KEYS = ("kind", "features", "feature_norm", "row_norm")


@dataclass(frozen=True, slots=True)
class CurvesAndFeatures:
    """Appends random Fourier features to rows.

    Parameters
    ----------
    features : the map whose features are appended
    feature_norm : g, the L2 norm of the appended features
    row_norm : the largest L2 norm of a row before the features are appended

    Raises
    ------
    ParameterError
        If a number is outside its range, which is from 2^-20 to 2^20.

    Examples
    --------
    >>> appending = CurvesAndFeatures(FourierMap(1, 4), feature_norm=2.0, row_norm=1.0)
    >>> appending.transform(np.array([[0.0]])).round(3)
    array([[0.   , 1.414, 1.414, 0.   , 0.   ]], dtype=float32)
    """

    features: FourierMap
    feature_norm: float
    row_norm: float

    def __post_init__(self) -> None:
        if not isinstance(self.features, FourierMap):
            raise ParameterError("the features that are appended to rows must be a FourierMap.")
        keep(self, "", feature_norm=_SCALE, row_norm=_SCALE)

    def __str__(self) -> str:
        return f"their columns and, times {self.feature_norm:g}, {self.features}"

    @property
    def n_inputs(self) -> int:
        """Number of columns of a row before the features are appended."""
        return self.features.n_inputs

    @property
    def n_features(self) -> int:
        """Number of columns of a row with its features."""
        return self.features.n_inputs + self.features.n_features

    @property
    def row_bound(self) -> BallBound:
        """A ball that holds every row with its features."""
        return self.bound_for(self.row_norm)

    def scaled(self, scales: tuple[float, ...]) -> CurvesAndFeatures:
        """The same map with these scales of the columns. Rows keep their bound, and features their norm."""
        return replace(self, features=replace(self.features, scales=scales))

    def bound_for(self, norm: float) -> BallBound:
        """A ball that holds every row with its features whose norm was at most this before they were appended."""
        # Rounded upwards, so that rows at the bound are not clipped for the rounding of doubles alone.
        return BallBound(math.hypot(norm, self.feature_norm) * (1.0 + 2.0**-30))

    def may_have(self, row_bound: RowBound) -> bool:
        """Whether a fit to mapped rows may have this bound: where noise is large, rows are clipped to a smaller ball."""
        return isinstance(row_bound, BallBound) and row_bound.norm <= self.row_bound.norm

    def names_for(self, inputs: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns of a row with its features, from the names of the columns before."""
        return (*inputs, *self.features.names)

    def transform(self, rows: Rows) -> NDArray[Any]:
        """Append the features to rows.

        Parameters
        ----------
        rows : array (m, n_inputs) of finite numbers

        Returns
        -------
        array (m, n_features), float32, fresh and C-contiguous: first the columns of the rows, then the features. Each row
        is a function of the row alone, bit for bit. In single precision, rows can be kept for many passes

        Raises
        ------
        InputError
            If rows do not have n_inputs columns.
        """
        rows = np.asarray(rows)
        mapped = np.empty((*rows.shape[:1], self.n_features), np.float32)
        self.write(rows, mapped)
        return mapped

    def write(self, rows: Rows, mapped: NDArray[np.float32]) -> None:
        """Write what `transform` returns to an array of that shape and type."""
        self.features.write(rows, mapped[:, self.n_inputs :], self.feature_norm)
        np.clip(rows, -_LARGEST_NORM, _LARGEST_NORM, out=mapped[:, : self.n_inputs], casting="same_kind")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, read by `from_dict`."""
        norms = {name: getattr(self, name) for name in ("feature_norm", "row_norm")}
        return {"kind": "curves and features", "features": self.features.to_dict()} | norms

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> CurvesAndFeatures:
        """Read what `to_dict` writes.

        Raises
        ------
        ParameterError
            If parts are missing, unknown or outside their ranges.
        """
        if not is_mapping(value) or set(value) != set(_KEYS) or value["kind"] != "curves and features":
            raise ParameterError(f"rows with features are described by exactly these keys: {', '.join(sorted(_KEYS))}.")
        return cls(FourierMap.from_dict(value["features"]), value["feature_norm"], value["row_norm"])


# Products of coarse cells of two columns, from which follows whether columns act together.

CELLS = 4
"""The number of coarse cells of a column."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductsOfPairs:
    """Maps an encoded row to the products of its places in coarse cells of two columns, for all pairs of some columns.

    Parameters
    ----------
    cells : array (D + 1, 4 k), 0, 1, 1/2 and -1/2: how much each entry of a row, and a constant 1, count in the four cells
        of each of k columns
    units : array (D,), by which entries are divided before

    Attributes
    ----------
    n_features : number of products, CELLS^2 k (k - 1) / 2
    row_bound : a ball that holds every row of products: those of a pair add up to 1 at most
    """

    cells: Array
    units: Array
    n_features: int = field(init=False)
    row_bound: BallBound = field(init=False)
    _factors: tuple[NDArray[np.intp], NDArray[np.intp]] = field(init=False, repr=False)
    """For each product the places that it multiplies."""

    def __post_init__(self) -> None:
        first, second = np.triu_indices(self.cells.shape[1] // CELLS, 1)
        one, other = np.divmod(np.arange(CELLS**2), CELLS)
        factors = ((CELLS * first[:, None] + one).ravel(), (CELLS * second[:, None] + other).ravel())
        made = {"_factors": factors, "n_features": len(factors[0]), "row_bound": bound_of_pairs(len(first))}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def transform(self, rows: Rows) -> Array:
        """The products (m, n_features) of rows (m, D), in the order of the pairs. Each is a function of its row alone.

        Entries are rounded to a grid on which sums of them are exact, whatever their order.
        """
        bits = 51 - len(self.units).bit_length()
        places = on_grid(np.clip(rows / self.units, -1.0, 1.0), bits) @ self.cells[:-1] + self.cells[-1]
        return np.asarray(places.take(self._factors[0], axis=1) * places.take(self._factors[1], axis=1))


def bound_of_pairs(n_pairs: int) -> BallBound:
    """The bound on the products of so many pairs of columns."""
    return BallBound(math.sqrt(n_pairs) * (1.0 + 2.0**-30))


def has_found_scales(fourier: object, known: object) -> bool:
    """Whether a map has scales, and is without them the map `known`, which has none."""
    if not (isinstance(fourier, CurvesAndFeatures) and isinstance(known, CurvesAndFeatures)) or known.features.scales:
        return False
    return bool(fourier.features.scales) and fourier == known.scaled(fourier.features.scales)


# Random features that a schema asks for: a function of all columns together, beside the effects of single columns.

_MOST_FEATURES = 2**16


@dataclass(frozen=True, slots=True)
class RandomFeatures:
    """Random Fourier features of the encoded row, which models append to it.

    Parameters
    ----------
    number : how many, an even number
    length_scale : distance between two encoded rows over which the function of all columns changes; two rows that differ in
        one category are sqrt(2) apart
    norm : the L2 norm of the features of a row. The encoded columns of a row have at most the root of their number of
        groups; with a larger norm more of the model is a function of all columns together, and less a sum of effects
    seed : the public seed of the features
    scales : one number for each column of the schema, in its order, for the atoms of each that has some, and for each
        interaction, between 2^-20 and 2^20: a column with a scale of 2 has half the length scale. Without them all columns
        have the same length scale, but where a fit may find scales with a part of its budget
    columns : how many columns of the schema each feature is a function of, drawn with chances in proportion to the squared
        scales; 0 for all columns
    knots : how many even knots of a number features of all columns see, where its curve has more; 0 for those of its curve
    if_found : whether a fit leaves them out unless a part of its budget finds that columns act together

    Raises
    ------
    SchemaError
        If a value is outside its range.
    """

    number: int
    length_scale: float
    norm: float = 1.0
    seed: int = 0
    scales: tuple[float, ...] = ()
    columns: int = 0
    knots: int = 0
    if_found: bool = False

    def __post_init__(self) -> None:
        number = partial(checked_whole, low=2, high=_MOST_FEATURES, refusal=SchemaError)
        seed = partial(checked_whole, low=0, high=_LARGEST_SEED, refusal=SchemaError)
        size = partial(checked_number, low=2.0**-10, high=2.0**10, shown="2^-10 to 2^10", refusal=SchemaError)
        scales = partial(_checked_list, check=_SCALE, refusal=SchemaError)
        few = partial(checked_whole, low=0, high=_MOST_FEATURES, refusal=SchemaError)
        keep(self, "random_features: ", number=number, length_scale=size, norm=size, seed=seed, scales=scales, columns=few)
        keep(self, "random_features: ", knots=few, if_found=partial(checked_flag, refusal=SchemaError))
        if self.number % 2:
            raise SchemaError("random_features: number must be even, because each frequency gives a cosine and a sine.")

    def appended_to(self, bound: GroupBound, names: Sequence[str], hats: Sequence[int] = ()) -> CurvesAndFeatures:
        """The map that appends the features to rows of these groups of columns, each with the name of what it encodes.

        `hats` says for each of the first groups how many of its first columns are hats of a curve.

        Raises
        ------
        SchemaError
            If there are too many columns for so many features, or not as many scales as groups.
        """
        if self.scales and len(self.scales) != len(bound.sizes):
            raise SchemaError(wording("number of scales", given=len(self.scales), needed=len(bound.sizes)))
        try:
            scales, known = of_columns(self.scales, bound), list(dict.fromkeys(names))
            origins = of_columns([*map(known.index, names)], bound) if self.columns else ()
            seen = self.places_of(bound.sizes, hats)
            kind = (self.number, "rbf", self.length_scale, self.seed, not self.columns, scales, self.columns, origins, seen)
            features = FourierMap(sum(bound.sizes), *kind)
        except ParameterError as error:
            raise SchemaError(f"random_features: {error}") from None
        return CurvesAndFeatures(features, self.norm, bound.l2_norm)

    def places_of(self, sizes: Sequence[int], hats: Sequence[int]) -> tuple[float, ...]:
        """The `places` of a `FourierMap` for these groups of columns. They are empty where no curve has more knots."""
        places, start, intervals = list[float](), 0, self.knots + 1
        for size, own in zip(sizes, chain(hats, repeat(0)), strict=False):
            less = own - 1 - intervals if own - 1 > intervals > 1 else 0
            places += [start + (k * intervals / (own - 1) if less and k < own else k - less) for k in range(size)]
            start += size - less
        return tuple(places) if start < len(places) else ()

    def to_dict(self) -> dict[str, Any]:
        """The form that a schema in JSON or TOML has."""
        return described_fields(self, "number", "length_scale", "norm", "seed", "scales", "columns", "knots", "if_found")

    def __str__(self) -> str:
        apart = " over a scale for each column" if self.scales and not self.columns else ""
        columns = f"{self.columns} drawn columns each" if self.columns else "all columns"
        length = shown_number(self.length_scale)
        said = f"{self.number} random features of {columns}, length scale {length}{apart}, norm {shown_number(self.norm)}"
        return f"{said}, which a fit keeps if it finds that columns act together" if self.if_found else said


def of_columns(scales: Sequence[Any], bound: GroupBound) -> tuple[Any, ...]:
    """The scale of each encoded column, from those of the groups of columns; none where there are none."""
    return tuple(chain.from_iterable(repeat(scale, size) for scale, size in zip(scales, bound.sizes, strict=False)))
