"""Draws for linked groups follow their exact law."""

from __future__ import annotations

import numpy as np
from scipy import stats

from confide.privacy import noise, shapes
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Linked

# Two-sided tests at a fixed seed: a p-value above this accepts, below it rejects. 2,000 draws tell a scale 30% off with
# p below 1e-9 in every dimension tested.
ACCEPT, REJECT, DRAWS = 1e-3, 1e-8, 2000


def sections_by_rejection(shape, n, seed=2):
    """Uniform in the unit ball within V: the intercept and all levels but the first of linked groups are free."""
    source, points = np.random.default_rng(seed), []
    while sum(map(len, points)) < n:
        parts, constant = [], source.uniform(-1, 1, (400_000, 1))
        for size, linked in zip(shape.sizes[:-1], shape.linked[:-1], strict=True):
            free = source.uniform(-1, 1, (len(constant), size - linked))
            parts.append(np.hstack([constant - free.sum(axis=1, keepdims=True), free]) if linked else free)
        inside = np.all([np.abs(part).sum(axis=1) <= 1.0 for part in parts], axis=0)
        points.append(np.hstack([*parts, constant])[inside])
    return np.vstack(points)[:n] * np.repeat(shape.scales, shape.sizes)


def disagreement(first, second):
    """Smallest p-value of Kolmogorov-Smirnov tests on coordinates, sums and products."""
    features = []
    for x in (first, second):
        weighted = x @ np.arange(1.0, x.shape[1] + 1)
        features.append(np.column_stack([x, x[:, :1] * x[:, 1:], np.abs(x).sum(axis=1), weighted]))
    return min(stats.ks_2samp(a, b).pvalue for a, b in zip(features[0].T, features[1].T, strict=True))


def test_linked_draws_agree_with_rejection_sampling(monkeypatch):
    """U of 8,000 draws against 8,000 by rejection, seven coordinates; cell weights without J! (N - J)! are found."""
    shape = Linked((4, 2, 1), (1.0, 2.0, 0.5), (True, True, False))

    def points():
        source = Entropy.seeded(6)
        sections = [np.concatenate(noise._section(source, shape)) for _ in range(8000)]
        return np.array(sections) * np.repeat(shape.scales, shape.sizes)

    expected = sections_by_rejection(shape, 8000)
    assert disagreement(points(), expected) > ACCEPT / 10
    monkeypatch.setattr(noise, "cell_weights", lambda levels: shapes.cell_counts(levels)[-1])
    assert disagreement(points(), expected) < REJECT


class Given:
    """Draws that are told."""

    def __init__(self, numbers):
        self.numbers, self.asked = list(numbers), []

    def exponential(self, n):
        """The next numbers."""
        found, self.numbers = self.numbers[:n], self.numbers[n:]
        return np.array(found)

    def below(self, n):
        """The next number."""
        self.asked.append(n)
        return self.numbers.pop(0)


def test_choices_have_exactly_the_chances_of_their_weights():
    """Of all 10 numbers below the sum of the weights, 3 choose the first, none the second, and so on."""
    weights, entropy = [3, 0, 5, 2], Given(range(10))
    assert [noise.drawn_by(entropy, weights) for _ in range(10)] == [0] * 3 + [2] * 5 + [3] * 2
    assert set(entropy.asked) == {10}


def test_points_of_a_simplex_are_shares_of_their_sum():
    np.testing.assert_allclose(noise._simplex(Given([1.0, 2.0, 5.0]), 3), [0.125, 0.25, 0.625])


def test_points_of_a_section_lie_in_the_ball_and_in_the_space_of_the_rows():
    """Linked groups add up to the constant, and no group has an L1 norm above 1; free groups between them."""
    shape, source = Linked((4, 2, 3, 1), (1.0, 2.0, 1.0, 0.5), (True, False, True, False)), Entropy.seeded(1)
    for _ in range(50):
        first, free, last, constant = noise._section(source, shape)
        assert [len(part) for part in (first, free, last, constant)] == [4, 2, 3, 1]
        np.testing.assert_allclose([first.sum(), last.sum()], constant[0], atol=1e-12)
        assert max(np.abs(part).sum() for part in (first, free, last, constant)) <= 1.0 + 1e-12


def test_contrasts_lie_in_their_ball():
    """They add up to 0, and their distances from the median to at most 1."""
    source = Entropy.seeded(1)
    for size in (2, 3, 4, 7):
        for _ in range(20):
            point = noise._contrasts(source, size)
            assert abs(point.sum()) < 1e-12
            assert np.abs(point - np.median(point)).sum() <= 1.0 + 1e-12
