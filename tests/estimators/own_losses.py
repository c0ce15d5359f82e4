"""Losses as a user would write them, for tests of estimators that take one."""

from __future__ import annotations

import numpy as np


class Hyperbola:
    """(sqrt(1 + (1 - z)^2) + (1 - z)) / 2."""

    lipschitz, smoothness, monotone = 1.0, 0.5, True

    def value(self, margin):
        return 0.5 * (np.hypot(1.0, 1.0 - margin) + (1.0 - margin))

    def derivative(self, margin):
        return -0.5 * ((1.0 - margin) / np.hypot(1.0, 1.0 - margin) + 1.0)

    def second_derivative(self, margin):
        return 0.5 / np.hypot(1.0, 1.0 - margin) ** 3


class Pseudo:
    """h^2 (sqrt(1 + (r / h)^2) - 1)."""

    def __init__(self, h=0.1):
        self.h, self.lipschitz, self.smoothness = h, h, 1.0

    def value(self, score, target):
        return self.h**2 * (np.hypot(1.0, (score - target) / self.h) - 1.0)

    def derivative(self, score, target):
        return (score - target) / np.hypot(1.0, (score - target) / self.h)

    def second_derivative(self, score, target):
        return np.hypot(1.0, (score - target) / self.h) ** -3.0
