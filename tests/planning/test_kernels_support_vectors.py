"""How private a support vector machine can be: formulas against hand, simulation and the lower bounds' constructions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from confide import LinearSVC, ParameterError
from confide.planning.kernels import laplace_scale_for_accuracy, optimal_privacy, optimal_privacy_of_kernel


@pytest.mark.parametrize("n_features", [1, 10, 200])
def test_noise_of_this_scale_is_useful(n_features):
    """Over rows of entries up to 2 the largest change is 2 |noise|_1; a scale 4 times as large would not do."""
    scale = laplace_scale_for_accuracy(0.7, 0.1, n_features, largest_entry=2.0)
    sums = 2.0 * np.random.default_rng(0).laplace(scale=scale, size=(4000, n_features)).__abs__().sum(axis=1)
    assert np.mean(sums > 0.7) <= 0.1
    assert np.mean(4.0 * sums > 0.7) > 0.1


def test_the_upper_bound_is_the_epsilon_of_that_noise():
    """Sensitivity 2 L C k sqrt(F) / n in L1 over the scale, by hand; ten times the rows are ten times as private."""
    scale = 0.5 / (2.0 * 0.8 * (4 * math.log(2.0) + math.log(20.0)))
    found = optimal_privacy(1000, 4, 0.02, accuracy=0.5, failure=0.05, row_norm=1.5, largest_entry=0.8, lipschitz=2.0)
    assert found.upper == pytest.approx(2 * 2.0 * 50.0 * 1.5 * 2.0 / (1000 * scale))
    assert optimal_privacy(10_000, 4, 0.02, accuracy=0.5).upper == pytest.approx(
        optimal_privacy(1000, 4, 0.02, accuracy=0.5).upper / 10.0
    )


def exact_scalar(products, slope):
    """The minimiser t of t^2 / 2 + (slope / n) sum of max(0, 1 - t s), s the products of labels and rows, by its corners."""
    n, corners = len(products), sorted({1.0 / s for s in products if s != 0.0})
    middles = [corners[0] - 1.0, *((a + b) / 2.0 for a, b in itertools.pairwise(corners)), corners[-1] + 1.0]
    # Between two corners the minimum is where the slopes of the active rows are; else it is at a corner.
    candidates = corners + [slope / n * products[middle * products < 1.0].sum() for middle in middles]
    return min(candidates, key=lambda t: t * t / 2.0 + slope / n * np.maximum(0.0, 1.0 - t * products).sum())


def distance_of_neighbours(n_rows, slope, size, longest):
    """How far the exact machines of the docstring's pair are apart over rows up to `longest` in their direction."""
    products = np.full(n_rows, size)
    first = exact_scalar(products, slope)
    products[-1] = -size
    return longest * abs(first - exact_scalar(products, slope))


def edge_of(ask, low=1e-30, high=1e30):
    """The accuracy at which a lower bound ends, by bisection."""
    assert ask(low).lower > 0.0 == ask(high).lower
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if ask(middle).lower > 0.0 else (low, middle)
    return low


CASES = [
    # n, F, alpha, k, Phi, L: short rows, long rows, one column, many, a bound by entries, n = 1 and 2, flat and steep.
    (50, 1, 1.0, 1.0, 1.0, 1.0),
    (50, 1, 1.0, 0.1, 0.1, 1.0),
    (50, 1, 1e4, 1.0, 1.0, 1.0),
    (50, 1, 1e4, 1.0, 1.0, 0.01),
    (50, 1, 1e-3, 1.0, 1.0, 1.0),
    (7, 4, 0.3, 2.0, 0.25, 3.0),
    (7, 4, 0.3, 0.4, 2.0, 3.0),
    (1, 2, 0.5, 1.0, 1.0, 1.0),
    (2, 3, 0.5, 5.0, 1.0, 1.0),
]


@pytest.mark.parametrize(("n", "width", "alpha", "row_norm", "entry", "lipschitz"), CASES)
def test_the_lower_bound_holds_up_to_half_the_distance_of_two_neighbours(n, width, alpha, row_norm, entry, lipschitz):
    """Exact machines of the pair, solved by their corners, are twice the edge apart; no other size of rows has more."""
    facts = {"row_norm": row_norm, "largest_entry": entry, "lipschitz": lipschitz}
    edge = edge_of(lambda accuracy: optimal_privacy(n, width, alpha, accuracy=accuracy, **facts))
    longest = min(row_norm, entry * math.sqrt(width))
    sizes = [*np.linspace(0.01, 1.0, 100) * longest, min(longest, math.sqrt(alpha / lipschitz))]
    apart = [distance_of_neighbours(n, lipschitz / alpha, size, longest) for size in sizes]
    assert max(apart) == pytest.approx(2.0 * edge, rel=1e-6)
    below = optimal_privacy(n, width, alpha, accuracy=0.999 * edge, failure=0.05, **facts)
    assert below.lower == pytest.approx(math.log(19.0))
    # The rows of the pair are within both bounds, and none within them is longer in that direction.
    direction = np.ones(width) / math.sqrt(width)
    rng = np.random.default_rng(n)
    others = rng.normal(size=(1000, width))
    others *= np.minimum(row_norm / np.linalg.norm(others, axis=1), entry / np.abs(others).max(axis=1))[:, None]
    assert np.abs(longest * direction).max() <= entry * (1 + 1e-12)
    assert np.abs(others @ direction).max() <= longest * (1 + 1e-12)


def test_machines_of_the_library_are_those_of_the_pair():
    """In three columns `LinearSVC` without privacy finds the weights of the docstring, along the diagonal."""
    n, alpha, width = 20, 2.0, 3
    longest = min(0.8, 0.5 * math.sqrt(width))
    rows = np.tile(longest / math.sqrt(width) * np.ones(width), (n, 1))
    rows[::2] *= -1.0
    labels = (rows[:, 0] > 0.0).astype(int)
    found = []
    for last in (1, 0):
        labels[-1] = last
        model = LinearSVC(math.inf, loss="hinge", alpha=alpha, row_norm=1.0, fit_intercept=False, classes=[0, 1])
        found.append(model.fit(rows, labels).coef_[0])
    assert np.allclose(found[0], longest / alpha / math.sqrt(width), atol=1e-6)
    distance = longest * np.linalg.norm(found[0] - found[1])
    ask = {"row_norm": 0.8, "largest_entry": 0.5}
    assert edge_of(lambda a: optimal_privacy(n, width, alpha, accuracy=a, **ask)) == pytest.approx(distance / 2.0, rel=1e-4)


def test_no_lower_bound_is_above_the_upper_one():
    """Over thousands of points that are spread over many powers of ten, half of them near where the lower bound ends."""
    rng = np.random.default_rng(22)

    def spread(low, high):
        return float(10.0 ** rng.uniform(low, high))

    spoken = 0
    for number in range(6000):
        n, width, alpha, failure = int(spread(0, 9)), int(spread(0, 4)), spread(-8, 8), spread(-9, -0.001)
        row_norm, entry, lipschitz, accuracy = spread(-4, 4), spread(-4, 4), spread(-4, 4), spread(-12, 6)
        if number % 2:
            accuracy = spread(-3, 1) * lipschitz / (alpha * n) * min(row_norm, entry) ** 2
        found = optimal_privacy(
            n, width, alpha,
            accuracy=accuracy, failure=failure, row_norm=row_norm, largest_entry=entry, lipschitz=lipschitz,
        )  # fmt: skip
        spoken += found.lower > 0.0
        assert 0.0 <= found.lower < found.upper
    assert 2000 < spoken < 5000
    spoken = 0
    for number in range(6000):
        n, width, alpha, failure = int(spread(0, 9)), int(spread(0, 3)), spread(-6, 6), spread(-9, -0.001)
        accuracy = spread(-6, 0.5) / (alpha * n) if number % 2 else spread(-8, 3)
        facts = {"length_scale": spread(-3, 2), "diameter": spread(-3, 3)}
        found = optimal_privacy_of_kernel(n, width, alpha, accuracy=accuracy, failure=failure, **facts)
        spoken += found.lower > 0.0
        assert 0.0 <= found.lower < found.upper
    assert 1000 < spoken < 5000


def test_the_cases_that_once_crossed():
    """Short rows, a strong ridge and a flat hinge: their lower bound was far above what noise on the weights reaches."""
    short = optimal_privacy(1000, 1, 1.0, accuracy=0.0004995, row_norm=0.1, largest_entry=0.1)
    strong = optimal_privacy(1000, 1, 1e4, accuracy=4.9e-6)
    flat = optimal_privacy(1000, 1, 1.0, accuracy=0.0004995, lipschitz=0.01)
    assert short.lower == strong.lower == flat.lower == 0.0
    assert short.upper == pytest.approx(0.2954, rel=1e-3)


def gram(first, second, length_scale, kernel="rbf"):
    """Values of a kernel."""
    apart = first[:, None] - second[None]
    if kernel == "laplacian":
        return np.exp(-np.abs(apart).sum(axis=2) / length_scale)
    if kernel == "cauchy":
        return np.prod(1.0 / (1.0 + apart**2 / length_scale**2), axis=2)
    return np.exp(-(apart**2).sum(axis=2) / (2.0 * length_scale**2))


def kernel_machine(points, labels, c, length_scale, kernel="rbf"):
    """Dual variables times labels of the exact machine without intercept, by coordinate ascent."""
    signed = gram(points, points, length_scale, kernel) * np.outer(labels, labels)
    dual, box = np.zeros(len(points)), c / len(points)
    before = None
    while before is None or np.abs(dual - before).max() > 1e-10 * box:
        before = dual.copy()
        for place in range(len(points)):
            dual[place] = np.clip(dual[place] + 1.0 - signed[place] @ dual, 0.0, box)
    margins = signed @ dual
    primal = dual @ margins / 2.0 + box * np.maximum(0.0, 1.0 - margins).sum()
    assert primal - (dual.sum() - dual @ margins / 2.0) < 1e-6 * max(1.0, c)
    return dual * labels


@pytest.mark.parametrize(
    ("n", "c", "length_scale", "diameter", "share"),
    [
        (8, 1.0, 0.3, 2.0, 0.5),
        (10, 3.0, 0.5, 2.0, 0.5),
        (6, 5.0, 0.2, 2.0, 0.1),
        (8, 7.9, 1.5, 9.0, 0.8),
        (5, 0.1, 0.1, 1.0, 0.3),
    ],
)
def test_the_kernels_lower_bound_counts_data_sets_whose_machines_are_apart(n, c, length_scale, diameter, share):
    """All exact machines around the circle are more than twice the accuracy apart; one more would be too many.

    `share` is twice the accuracy over C / n. A circle of half or twice the size does not give the number.
    """
    accuracy = 0.5 * share * c / n
    found = optimal_privacy_of_kernel(
        n, 2, 1.0 / c, accuracy=accuracy, failure=0.05, length_scale=length_scale, diameter=diameter
    )
    count = round(math.exp(found.lower) * 0.05 / 0.95) + 1
    assert count >= 3

    def least_distance(count, size):
        angles = 2.0 * np.pi * np.arange(count) / count
        corners = size / 2.0 * np.column_stack([np.cos(angles), np.sin(angles)])
        scores = []
        for corner in corners:
            points, labels = np.zeros((n, 2)), -np.ones(n)
            points[-1], labels[-1] = corner, 1.0
            scores.append(gram(corners, points, length_scale) @ kernel_machine(points, labels, c, length_scale))
        # Of two machines at the corners of both, as in the docstring.
        return min(abs(scores[0][0] - score[0]) for score in scores[1:])

    assert least_distance(count, diameter) > 2.0 * accuracy >= least_distance(count + 1, diameter)
    assert not least_distance(count, diameter / 2.0) > 2.0 * accuracy >= least_distance(count + 1, diameter / 2.0)


@pytest.mark.parametrize(
    ("kernel", "width"), [("laplacian", 3), ("cauchy", 3), ("laplacian", 1), ("cauchy", 1), ("cauchy", 2)]
)
@pytest.mark.parametrize("diameter", [0.8, 4.0])
def test_other_kernels_count_the_ends_of_axes(kernel, width, diameter):
    """Exact machines of all 2 d ends; just below the least distance all of them count, just above fewer do."""
    n, c, scale = 6, 2.0, 0.7
    ends = np.vstack([np.eye(width), -np.eye(width)]) * diameter / 2.0
    scores = []
    for end in ends:
        points, labels = np.zeros((n, width)), -np.ones(n)
        points[-1], labels[-1] = end, 1.0
        scores.append(gram(ends, points, scale, kernel) @ kernel_machine(points, labels, c, scale, kernel))
    least = min(np.abs(a - b).max() for a, b in itertools.combinations(scores, 2))

    def count(accuracy):
        facts = {"length_scale": scale, "diameter": diameter, "kernel": kernel}
        return optimal_privacy_of_kernel(n, width, 1.0 / c, accuracy=accuracy, failure=0.05, **facts).lower

    assert count(0.499 * least) == pytest.approx(math.log(19.0 * (2 * width - 1)))
    assert count(0.501 * least) < count(0.499 * least)


def test_what_a_lower_bound_needs_is_said():
    """And nothing where it holds."""
    assert optimal_privacy(50, 1, 1.0, accuracy=1e-4).missing == ""
    assert "at least" in str(optimal_privacy(50, 1, 1.0, accuracy=1e-4))
    assert "no lower bound is proven" in str(optimal_privacy(50, 1, 1.0, accuracy=1.0))
    assert "accuracy below" in optimal_privacy(50, 1, 1.0, accuracy=1.0).missing
    assert "probability of failure" in optimal_privacy(50, 1, 1.0, accuracy=1e-4, failure=0.6).missing
    assert "more than C = 100 rows" in optimal_privacy_of_kernel(50, 1, 0.01, accuracy=1e-4).missing
    assert "lemma 25" in optimal_privacy_of_kernel(50, 1, 1.0, accuracy=1.0).missing


def test_the_kernels_lower_bound_keeps_to_its_geometry():
    """One column has no circle but two ends; a small ball no two points that are apart; n <= C nothing at all."""
    near = {"accuracy": 1e-5, "failure": 0.05}
    line = optimal_privacy_of_kernel(1000, 1, 1.0, length_scale=0.1, diameter=2.0, **near)
    assert line.lower == pytest.approx(math.log(19.0))
    assert optimal_privacy_of_kernel(1000, 2, 1.0, length_scale=0.1, diameter=2.0, **near).lower > math.log(19.0 * 50)
    # Two ends are apart by D: 1 - exp(-D^2 / (2 s^2)) against 2 n a / C.
    edge = math.sqrt(-2.0 * math.log1p(-0.02))
    for width in (1, 2):
        asked = {"length_scale": 1.0, **near}
        assert optimal_privacy_of_kernel(1000, width, 1.0, diameter=0.99 * edge, **asked).lower == 0.0
        assert optimal_privacy_of_kernel(1000, width, 1.0, diameter=1.01 * edge, **asked).lower == pytest.approx(
            math.log(19)
        )
    assert optimal_privacy_of_kernel(1000, 2, 1e-3, length_scale=0.1, diameter=2.0, accuracy=0.1).lower == 0.0
    assert optimal_privacy_of_kernel(1000, 2, 1.01e-3, length_scale=0.1, diameter=2.0, accuracy=0.1).lower > 0.0


def test_the_kernels_bound_grows_with_the_fifth_power_of_accuracy():
    """The corrected exponent: a tenth of the error costs 10^5 times the epsilon and a little more."""
    wide, narrow = (optimal_privacy_of_kernel(10**6, 2, 1.0, accuracy=accuracy).upper for accuracy in (0.1, 0.01))
    assert 1e5 < narrow / wide < 2e5


@pytest.mark.parametrize("given", [{"accuracy": 0.0}, {"accuracy": -1.0}, {"failure": 0.0}, {"failure": 1.0}])
def test_numbers_outside_their_ranges_are_refused(given):
    """With the name of what is wrong."""
    asked = {"accuracy": 0.5, "failure": 0.05} | given
    with pytest.raises(ParameterError, match=next(iter(given))):
        optimal_privacy(100, 2, 0.1, **asked)
    with pytest.raises(ParameterError, match=next(iter(given))):
        optimal_privacy_of_kernel(100, 2, 0.1, **asked)


@pytest.mark.parametrize("value", ["100", None, 1.5, True, 0])
def test_counts_that_are_no_whole_numbers_are_refused(value):
    """Rows and columns alike, as by plans."""
    for ask in (optimal_privacy, optimal_privacy_of_kernel):
        with pytest.raises(ParameterError, match="n_rows must be a whole number"):
            ask(value, 2, 0.1, accuracy=0.5)
        with pytest.raises(ParameterError, match="must be a whole number"):
            ask(100, value, 0.1, accuracy=0.5)
