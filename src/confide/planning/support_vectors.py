"""How private a support vector machine of a given accuracy can be at all.

Rubinstein, Bartlett, Huang and Taft, Learning in a Large Function Space: Privacy-Preserving Mechanisms for SVM Learning
(2012), with their errata. Their machine minimises |w|^2 / 2 + C mean loss: C is one over alpha here. A release is
(a, f)-useful if its decision function is within a of the exact machine's everywhere, with probability at least 1 - f.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from confide.planning.asked import check_failure, check_positive, check_whole


@dataclass(frozen=True, slots=True)
class PrivacyRange:
    """Between which epsilons the best mechanism of this accuracy lies.

    Attributes
    ----------
    lower : float
        No mechanism that is as accurate on every data set has a smaller epsilon; 0 where nothing is known.
    upper : float
        Laplace noise on the weights reaches it.
    """

    lower: float
    upper: float


def laplace_scale_for_accuracy(accuracy: float, failure: float, n_features: int, largest_entry: float = 1.0) -> float:
    """The largest scale of independent Laplace noise on the weights that is (accuracy, failure)-useful.

    Theorem 11 with F log 2 in place of F: accuracy / (2 Phi (F log 2 + log(1 / f))), Phi the largest entry of a row.
    """
    check_whole(n_features=n_features)
    check_positive(accuracy=accuracy, largest_entry=largest_entry)
    check_failure(failure)
    return accuracy / (2.0 * largest_entry * (n_features * math.log(2.0) - math.log(failure)))


def optimal_privacy(
    n_rows: int,
    n_features: int,
    alpha: float,
    *,
    accuracy: float,
    failure: float = 0.05,
    row_norm: float = 1.0,
    largest_entry: float = 1.0,
    lipschitz: float = 1.0,
) -> PrivacyRange:
    """Between which epsilons the best private linear machine lies.

    Upper: theorems 10 and 11, with the tight sensitivity 2 L C k / n and the factor sqrt(F) that corollary 19 lost,
    4 L k Phi C sqrt(F) (F log 2 + log(1 / f)) / (n a). Lower: theorem 23, log((1 - f) / f) where a < sqrt(C) / (2 n).

    Parameters
    ----------
    n_rows, n_features : int
    alpha : float
    accuracy : float
        Largest distance between the decision functions, over all rows within the bounds.
    failure : float
    row_norm : k, largest L2 norm of a row
    largest_entry : Phi, largest entry of a row
    lipschitz : L of the loss

    Returns
    -------
    PrivacyRange
    """
    check_whole(n_rows=n_rows, n_features=n_features)
    check_positive(alpha=alpha, accuracy=accuracy, row_norm=row_norm, largest_entry=largest_entry, lipschitz=lipschitz)
    check_failure(failure)
    c = 1.0 / alpha
    scale = laplace_scale_for_accuracy(accuracy, failure, n_features, largest_entry)
    upper = 2.0 * lipschitz * c * row_norm * math.sqrt(n_features) / (scale * int(n_rows))
    reached = accuracy < math.sqrt(c) / (2.0 * n_rows)
    return PrivacyRange(max(0.0, math.log((1.0 - failure) / failure)) if reached else 0.0, upper)


def optimal_privacy_of_kernel(
    n_rows: int,
    n_inputs: int,
    alpha: float,
    *,
    accuracy: float,
    failure: float = 0.05,
    length_scale: float = 1.0,
    diameter: float = 1.0,
) -> PrivacyRange:
    """The same for the hinge and the kernel exp(-|x - y|^2 / (2 s^2)), by random Fourier features.

    Upper: theorem 13 for as many features as it asks for, 2^1.5 C sqrt(d) / (n scale) with the tight sensitivity and the
    scale of corollary 15; it grows as C^5 / (a^5 n), where the paper prints C / (a^3 n). Lower: theorem 26,
    log((1 - f)(N - 1) / f), N = floor((2 / s) sqrt(2 / log 2)), for a < C / (4 n), s < sqrt(1 / (2 log 2)) and n > C.

    Parameters
    ----------
    n_rows : int
    n_inputs : int
        Columns before the features.
    alpha, accuracy, failure :
        As in `optimal_privacy`.
    length_scale : s
    diameter : float
        Of the set in which rows lie.
    """
    check_whole(n_rows=n_rows, n_inputs=n_inputs)
    check_positive(alpha=alpha, accuracy=accuracy, length_scale=length_scale, diameter=diameter)
    check_failure(failure)
    c = 1.0 / alpha
    n_pairs = features_for_kernel(
        n_inputs, accuracy=accuracy, failure=failure, alpha=alpha, length_scale=length_scale, diameter=diameter
    )
    # Corollary 15: half the accuracy and half the failure are the noise's.
    scale = min(
        accuracy / (16.0 * math.log(2.0) * math.sqrt(n_pairs)),
        accuracy * math.sqrt(n_pairs) / (8.0 * math.log(2.0 / failure)),
    )
    upper = 2.0**1.5 * c * math.sqrt(n_pairs) / (scale * n_rows)
    lower = 0.0
    if length_scale < math.sqrt(0.5 / math.log(2.0)) and n_rows > c and accuracy < c / (4.0 * n_rows):
        databases = math.floor(2.0 / length_scale * math.sqrt(2.0 / math.log(2.0)))
        lower = max(0.0, math.log((1.0 - failure) * (databases - 1) / failure))
    return PrivacyRange(lower, upper)


def features_for_kernel(
    n_inputs: int, *, accuracy: float, failure: float, alpha: float, length_scale: float = 1.0, diameter: float = 1.0
) -> int:
    """Pairs of random features that theorem 13 asks for, for the hinge and the kernel exp(-|x - y|^2 / (2 s^2)).

    4 (d + 2) / t log(2^9 (p D)^2 / (f t)), t = min(1, a^4 / (2^4 C^4 (1 + sqrt 6)^4)), p^2 = d / s^2 the second moment of
    the frequencies and D the diameter. It holds for all data, so it is far more than data of the usual kind need.
    """
    check_whole(n_inputs=n_inputs)
    check_positive(accuracy=accuracy, alpha=alpha, length_scale=length_scale, diameter=diameter)
    check_failure(failure)
    theta = min(1.0, (accuracy * alpha / (2.0 * (1.0 + math.sqrt(6.0)))) ** 4)
    spread = n_inputs / length_scale**2 * diameter**2
    return max(1, math.ceil(4.0 * (n_inputs + 2) / theta * math.log(2.0**9 * spread / (failure * theta))))
