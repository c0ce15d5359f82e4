"""What the scores of a released model say: a class, probabilities of classes, or a number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp

from confide.types import Array

KINDS = ("logistic", "softmax", "one-vs-rest", "none", "identity", "exponential")


@dataclass(frozen=True, slots=True)
class Link:
    """How scores become predictions.

    Attributes
    ----------
    kind : one of `KINDS`
        - "logistic": one score, whose logistic function is the probability of the second class
        - "softmax": a score for each class, its log-probability up to a number that is the same for all
        - "one-vs-rest": a score for each class, whose probabilities are divided by their sum
        - "none": classes without probabilities
        - "identity", "exponential": of a regression, the prediction for a score
    margin : 0; or of the logistic hinge log(1 + exp(m - z)), the margin m. The probability for a score z is then
        p = (1 + e^(z - m)) / (2 + e^(z - m) + e^(-z - m)), which is the logistic function if m is 0
    """

    kind: str
    margin: float = 0.0

    @property
    def has_probabilities(self) -> bool:
        """Whether classes have probabilities."""
        return self.kind in ("logistic", "softmax", "one-vs-rest")

    def log_probabilities(self, scores: Array) -> Array:
        """The logarithm of the probability of each class, (n, k), from scores (n,) of two classes or (n, k) of k."""
        if self.kind == "softmax":
            return np.asarray(log_softmax(scores, axis=1))
        favour = self.log_favour(scores)
        if self.kind == "one-vs-rest":
            return np.asarray(favour - logsumexp(favour, axis=1, keepdims=True))
        return np.column_stack([self.log_favour(-scores), favour])

    def log_favour(self, scores: Array) -> Any:
        """For each score by itself log((1 + e^(z - m)) / (2 + e^(z - m) + e^(-z - m))), without overflow."""
        if self.margin == 0.0:
            return log_expit(scores)
        favour = np.logaddexp(0.0, scores - self.margin)
        return np.asarray(favour - np.logaddexp(favour, np.logaddexp(0.0, -scores - self.margin)))

    def scores_at(self, probabilities: Array) -> Array:
        """The scores of two classes at which the second has these probabilities, above 0 and below 1.

        With u = e^z and a = e^-m, the formula for p is a (1 - p) u^2 - (2 p - 1) u - a p = 0.
        """
        a, lean = math.exp(-self.margin), 2.0 * probabilities - 1.0
        root = np.sqrt(lean**2 + 4.0 * a**2 * probabilities * (1.0 - probabilities))
        # Of the two forms of the solution, each is exact where the other subtracts nearly equal numbers.
        above = np.log((lean + root) / (2.0 * a * (1.0 - probabilities)))
        below = np.log(2.0 * a * probabilities / (root - lean))
        return np.where(lean >= 0.0, above, below)
