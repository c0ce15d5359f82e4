"""The best privacy that any support vector machine of a given accuracy can have.

Rubinstein, Bartlett, Huang and Taft, Learning in a Large Function Space: Privacy-Preserving Mechanisms for SVM Learning
(2012), with their errata. Their machine minimises |w|^2 / 2 + C mean loss, so C is 1 / alpha here. A release is
(a, f)-useful if, with probability at least 1 - f, its decision function is everywhere within a of that of the exact machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from confide.errors import ParameterError
from confide.planning.checked_arguments import check_failure, check_positive, check_whole

_MIN_LOG_THETA = -600.0
"""Below this value the number of features of theorem 13 would overflow."""


@dataclass(frozen=True, slots=True)
class PrivacyRange:
    """The range that holds the epsilon of the best mechanism with this accuracy.

    Attributes
    ----------
    lower : float
        No mechanism that is as accurate on every data set has a smaller epsilon. 0 if the theorem does not apply.
    upper : float
        Laplace noise on the weights has this epsilon.
    """

    lower: float
    upper: float


def laplace_scale_for_accuracy(accuracy: float, failure: float, n_features: int, largest_entry: float = 1.0) -> float:
    """The largest scale of independent Laplace noise on the weights that is (accuracy, failure)-useful.

    Theorem 11 with F log 2 in place of F: accuracy / (2 Phi (F log 2 + log(1 / f))), Phi the largest entry of a row.

    Parameters
    ----------
    accuracy : float
        Largest difference between the decision functions.
    failure : float, in (0, 1)
        f, the probability that it is exceeded.
    n_features : int
        F, the number of weights.
    largest_entry : float
        Phi.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If a number lies outside its range.
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
    """The range that holds the epsilon of the best private linear machine with this accuracy.

    The machine minimises |w|^2 / 2 + (C / n) sum of L max(0, 1 - y w . x), without an intercept, where C = 1 / alpha.
    Neighbours differ in one row, which is replaced with its label. Rows have norm at most k and entries at most Phi in
    absolute value. Decision functions are compared over all such rows.

    Upper: theorems 10 and 11, with the tight sensitivity 2 L C k / n and the factor sqrt(F) that corollary 19 lost,
    4 L k Phi C sqrt(F) (F log 2 + log(1 / f)) / (n a). It holds for any convex loss with slopes up to L.

    Lower: theorem 23, log((1 - f) / f) where a < (L C / n) B min(B, 1 / sqrt(L C)), B = min(k, Phi sqrt(F)); see the notes.

    Parameters
    ----------
    n_rows, n_features : int
    alpha : float
    accuracy : float
        Largest difference between the decision functions, over all rows within the bounds.
    failure : float
    row_norm : k, largest L2 norm of a row
    largest_entry : Phi, largest entry of a row
    lipschitz : L, slope of the hinge
        For another loss with slopes up to L, only the upper bound holds.

    Returns
    -------
    PrivacyRange

    Raises
    ------
    ParameterError
        If a number lies outside its range.

    Notes
    -----
    The paper proves its lower bound for one column and rows up to 1, by a pair of neighbours (lemma 22). This is such a pair
    for rows within other bounds. Let u be the direction of (1, ..., 1), in which rows are longest: B u is within both
    bounds, and no row x within them has |x . u| > B. All rows lie at -M u or M u, 0 < M <= B, labelled by their side; the
    last one is at M u, labelled 1 in one data set and -1 in the other.

    Weights are t u. While t M < 1, every hinge slopes at all rows, whatever their label, and the minimum is at
    t = (L C / n) sum of y x . u. That is t = L C M in one data set and L C M (n - 2) / n in the other (n = 1: -L C M), if
    L C M^2 <= 1. Over the rows B u the decision functions are 2 L C M B / n apart. The largest M is min(B, 1 / sqrt(L C)).

    If a is less than half that distance, no decision function is within a of both. So the outputs within a of the first
    have probability at least 1 - f on the first data set and at most f on the second, and exp(epsilon) f >= 1 - f.

    The paper's sqrt(C) / (2 n) is for k = Phi = F = L = 1. It is half of this bound for C >= 1. For C below 1 / 4 it is more
    than this one: its pair would need rows longer than 1.
    """
    check_whole(n_rows=n_rows, n_features=n_features)
    check_positive(alpha=alpha, accuracy=accuracy, row_norm=row_norm, largest_entry=largest_entry, lipschitz=lipschitz)
    check_failure(failure)
    slope = lipschitz / alpha
    scale = laplace_scale_for_accuracy(accuracy, failure, n_features, largest_entry)
    upper = 2.0 * slope * row_norm * math.sqrt(n_features) / (scale * int(n_rows))
    longest = min(row_norm, largest_entry * math.sqrt(n_features))
    half_distance = slope / n_rows * longest * min(longest, math.sqrt(alpha / lipschitz))
    return PrivacyRange(max(0.0, math.log((1.0 - failure) / failure)) if accuracy < half_distance else 0.0, upper)


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
    """The same range for the hinge and the kernel exp(-|x - y|^2 / (2 s^2)), approximated by random Fourier features.

    Rows lie in a ball of this diameter. Decision functions are compared over the ball.

    Upper: theorem 13 with the number of features that it asks for: 2^1.5 C sqrt(d) / (n scale), with the tight sensitivity
    and the scale of corollary 15. It grows as C^5 / (a^5 n), where the paper prints C / (a^3 n).

    Lower: theorem 26, log((1 - f)(N - 1) / f), for n > C, where N >= 2 data sets of lemma 25 fit into the ball (notes).

    Parameters
    ----------
    n_rows : int
    n_inputs : int
        Number of columns before the random features.
    alpha, accuracy, failure : float
        As in `optimal_privacy`.
    length_scale : s
    diameter : D, diameter of the ball in which rows lie

    Returns
    -------
    PrivacyRange

    Raises
    ------
    ParameterError
        If a number lies outside its range.

    Notes
    -----
    In each data set of lemma 25, n - 1 rows with label -1 lie at the centre and one row with label 1 at a point p of the
    sphere, |p| = D / 2. Any two of them are neighbours. With q = exp(-|p|^2 / (2 s^2)) the machine is
    b k(p, x) - A k(0, x), b <= C / n the dual variable of the one row. Its margin b - A q is below 1 as C < n, so b = C / n.
    A = min((n - 1) C / n, 1 + b q) is the same for all p. Hence machines of p and p' differ at p by
    (C / n) (1 - exp(-|p - p'|^2 / (2 s^2))).

    N points p that are evenly spread over a circle are D sin(pi / N) apart. All machines are more than 2 a apart if
    sin(pi / N)^2 > -(2 s^2 / D^2) log(1 - 2 n a / C), and N is the largest number for which this holds. One column has no
    circle: there the sphere is two points, N <= 2.

    The paper has D = 2, a < C / (4 n) and s < sqrt(1 / (2 log 2)), and its N = floor((2 / s) sqrt(2 / log 2)) is smaller: it
    bounds the sine by a chord.
    """
    check_whole(n_rows=n_rows, n_inputs=n_inputs)
    check_positive(alpha=alpha, accuracy=accuracy, length_scale=length_scale, diameter=diameter)
    check_failure(failure)
    c = 1.0 / alpha
    n_pairs = features_for_kernel(
        n_inputs, accuracy=accuracy, failure=failure, alpha=alpha, length_scale=length_scale, diameter=diameter
    )
    # Corollary 15 gives half the accuracy and half the probability of failure to the noise.
    scale = min(
        accuracy / (16.0 * math.log(2.0) * math.sqrt(n_pairs)),
        accuracy * math.sqrt(n_pairs) / (8.0 * math.log(2.0 / failure)),
    )
    upper = 2.0**1.5 * c * math.sqrt(n_pairs) / (scale * n_rows)
    databases = 1 if n_rows <= c else _databases_apart(2.0 * n_rows * accuracy * alpha, length_scale / diameter)
    if n_inputs == 1:
        databases = min(2, databases)
    lower = max(0.0, math.log((1.0 - failure) * (databases - 1) / failure)) if databases >= 2 else 0.0
    return PrivacyRange(lower, upper)


def _databases_apart(share: float, relative_scale: float) -> int:
    """The number of data sets of lemma 25 whose machines are all more than this share of C / n apart.

    The relative scale is s / D.
    """
    if share >= 1.0:
        return 1
    sine = relative_scale * math.sqrt(-2.0 * math.log1p(-share))
    return math.ceil(math.pi / math.asin(sine)) - 1 if 0.0 < sine < 1.0 else 1


def features_for_kernel(
    n_inputs: int, *, accuracy: float, failure: float, alpha: float, length_scale: float = 1.0, diameter: float = 1.0
) -> int:
    """The number of pairs of random features in theorem 13, for the hinge and the kernel exp(-|x - y|^2 / (2 s^2)).

    4 (d + 2) / t log(2^9 (p D)^2 / (f t)), t = min(1, a^4 / (2^4 C^4 (1 + sqrt 6)^4)), p^2 = d / s^2 the second moment of
    the frequencies and D the diameter. The theorem holds for all data, so usual data need far fewer.

    Parameters
    ----------
    n_inputs : int
        d, the number of columns before the random features.
    accuracy : float
        a, the largest difference between the decision functions.
    failure : float, in (0, 1)
        f, the probability that it is exceeded.
    alpha : float
        1 / C, the ridge of the mean objective.
    length_scale : float
        s, in the unit of the columns.
    diameter : float
        D of the ball in which rows lie, in the same unit.

    Returns
    -------
    int

    Raises
    ------
    ParameterError
        If a number lies outside its range.
    """
    check_whole(n_inputs=n_inputs)
    check_positive(accuracy=accuracy, alpha=alpha, length_scale=length_scale, diameter=diameter)
    check_failure(failure)
    log_theta = 4.0 * min(0.0, math.log(accuracy) + math.log(alpha) - math.log(2.0 * (1.0 + math.sqrt(6.0))))
    if log_theta < _MIN_LOG_THETA:
        raise ParameterError(
            "the theorem asks for more features than a number can hold. Give a larger accuracy, which is the allowed error, "
            "or a larger alpha."
        )
    log_spread = math.log(n_inputs) + 2.0 * (math.log(diameter) - math.log(length_scale))
    logarithm = 9.0 * math.log(2.0) + log_spread - math.log(failure) - log_theta
    return max(1, math.ceil(4.0 * (n_inputs + 2) * math.exp(-log_theta) * logarithm))
