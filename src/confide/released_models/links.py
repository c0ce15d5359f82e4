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

    def mean(self, scores: Array) -> Array:
        """What scores (n,) or (n, k) stand for where each has a meaning by itself; it never falls as a score rises.

        The probability of the second of two classes, the mean of a regression, or the score itself.
        """
        if self.kind == "logistic":
            return np.asarray(np.exp(self.log_favour(scores)))
        if self.kind != "exponential":
            return scores
        # A warning of overflow would say something about the rows. The largest double takes the place of infinity.
        with np.errstate(over="ignore"):
            return np.fmin(np.exp(scores), np.finfo(np.float64).max)

    def log_odds(self, scores: Array) -> tuple[Array, Array]:
        """The log-odds of each of several classes against all others, and their derivatives.

        Parameters
        ----------
        scores : (n, k)

        Returns
        -------
        log_odds : (n, k)
        derivatives : (n, k, k), of the log-odds of class i in the score of class j at place (i, j) of a row
        """
        one, n_classes = np.eye(scores.shape[1]), scores.shape[1]
        if self.kind == "softmax":
            favour, slopes = scores, np.ones_like(scores)
        else:
            favour = np.asarray(self.log_favour(scores))
            step = 2.0**-14
            slopes = (self.log_favour(scores + step) - self.log_favour(scores - step)) / (2.0 * step)
        others = np.where(one == 1.0, -np.inf, favour[:, None, :])
        sums = logsumexp(others, axis=2)
        shares = np.exp(others - sums[:, :, None])
        return favour - sums, (one - shares) * slopes.reshape(-1, 1, n_classes)

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
