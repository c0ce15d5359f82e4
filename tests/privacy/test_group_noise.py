"""Draws for linked groups follow their exact law."""

from __future__ import annotations

import numpy as np
from scipy import stats

from confide.privacy import group_noise, group_shapes
from confide.privacy.group_shapes import Linked
from confide.privacy.noise import Entropy

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
        sections = [np.concatenate(group_noise._section(source, shape)) for _ in range(8000)]
        return np.array(sections) * np.repeat(shape.scales, shape.sizes)

    expected = sections_by_rejection(shape, 8000)
    assert disagreement(points(), expected) > ACCEPT / 10
    monkeypatch.setattr(group_noise, "cell_weights", lambda levels: group_shapes.cell_counts(levels)[-1])
    assert disagreement(points(), expected) < REJECT
