"""The best privacy that any support vector machine of a given accuracy can have.

Rubinstein, Bartlett, Huang and Taft, Learning in a Large Function Space: Privacy-Preserving Mechanisms for SVM Learning
(2012), with their errata. Their machine minimises |w|^2 / 2 + C mean loss, so C is 1 / alpha here. A release is
(a, f)-useful if, with probability at least 1 - f, its decision function is everywhere within a of that of the exact machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from confide.planning.checked_arguments import check_failure, check_positive, check_whole
from confide.planning.kernel_features import features_for_kernel, laplace_scale_for_kernel


@dataclass(frozen=True, slots=True)
class PrivacyRange:
    """The range that holds the epsilon of the best mechanism with this accuracy.

    Attributes
    ----------
    lower : float
        No mechanism that is as accurate on every data set has a smaller epsilon. 0 if the theorem does not apply.
    upper : float
        Laplace noise on the weights has this epsilon.
    missing : str
        What the theorem of the lower bound needs and does not have here; empty where it applies.
    """

    lower: float
    upper: float
    missing: str = ""


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
    far = f"an accuracy below {half_distance:.4g}, half the distance of a pair"
    return _range(upper, failure, 2 if accuracy < half_distance else 1, far)


def optimal_privacy_of_kernel(
    n_rows: int,
    n_inputs: int,
    alpha: float,
    *,
    accuracy: float,
    failure: float = 0.05,
    length_scale: float = 1.0,
    diameter: float = 1.0,
    kernel: str = "rbf",
    lipschitz: float = 1.0,
) -> PrivacyRange:
    """The same range for the hinge and a kernel that random Fourier features approximate.

    Rows lie in a ball of this diameter. Decision functions are compared over the ball.

    Upper: theorem 13 with the number of features that it asks for: 2^1.5 L C sqrt(d) / (n scale), with the tight sensitivity
    and the scale of corollary 15. It grows as C^5 / (a^5 n), where the paper prints C / (a^3 n). It holds for any convex
    loss with slopes up to L.

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
    kernel : "rbf", "laplacian" or "cauchy"
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

    The argument needs of the kernel only that k(x, x) = 1 and that k(p, 0) is the same for all p. For the other kernels the
    points p are the 2 d ends of the axes, +-D / 2 in one column: k(p, p') is exp(-D / s) between any two for "laplacian";
    for "cauchy" it is 1 / (1 + D^2 / s^2) between the two ends of an axis and 1 / (1 + D^2 / (4 s^2))^2 else. L multiplies
    C.
    """
    check_whole(n_rows=n_rows, n_inputs=n_inputs)
    check_positive(alpha=alpha, accuracy=accuracy, length_scale=length_scale, diameter=diameter)
    check_failure(failure)
    check_positive(lipschitz=lipschitz)
    c = lipschitz / alpha
    n_pairs = features_for_kernel(
        n_inputs,
        accuracy=accuracy,
        failure=failure,
        alpha=alpha,
        length_scale=length_scale,
        diameter=diameter,
        kernel=kernel,
        lipschitz=lipschitz,
    )
    # Corollary 15 gives half the accuracy and half the probability of failure to the noise.
    upper = 2.0**1.5 * c * math.sqrt(n_pairs) / (laplace_scale_for_kernel(accuracy, failure, n_pairs) * n_rows)
    share = 2.0 * n_rows * accuracy * alpha / lipschitz
    if n_rows <= c:
        return PrivacyRange(0.0, upper, f"the proof needs more than C = {c:.4g} rows.")
    if kernel == "rbf":
        databases = _databases_apart(share, length_scale / diameter)
        databases = min(2, databases) if n_inputs == 1 else databases
    else:
        databases = _ends_apart(share, diameter / length_scale, n_inputs, kernel)
    return _range(upper, failure, databases, "an accuracy at which two machines of lemma 25 are twice as far apart")


def _range(upper: float, failure: float, databases: int, far: str) -> PrivacyRange:
    """The range for neighbouring data sets, any two of whose machines are more than twice the accuracy apart."""
    if databases < 2:
        return PrivacyRange(0.0, upper, f"the proof needs {far}.")
    lower = math.log((1.0 - failure) * (databases - 1) / failure)
    if lower <= 0.0:
        return PrivacyRange(0.0, upper, "the proof needs a smaller probability of failure.")
    return PrivacyRange(lower, upper)


def _ends_apart(share: float, relative_diameter: float, n_inputs: int, kernel: str) -> int:
    """The number of data sets with a row at the end of an axis, whose machines are all more than this share apart."""
    if kernel == "laplacian":
        opposite = across = -math.expm1(-relative_diameter)
    else:
        square = relative_diameter**2
        opposite, across = square / (1.0 + square), 1.0 - (1.0 + 0.25 * square) ** -2
    together = opposite if n_inputs == 1 else min(opposite, across)
    if together > share:
        return 2 * n_inputs
    return max(2 if opposite > share else 1, n_inputs if across > share else 1)


def _databases_apart(share: float, relative_scale: float) -> int:
    """The number of data sets of lemma 25 whose machines are all more than this share of C / n apart.

    The relative scale is s / D.
    """
    if share >= 1.0:
        return 1
    sine = relative_scale * math.sqrt(-2.0 * math.log1p(-share))
    return math.ceil(math.pi / math.asin(sine)) - 1 if 0.0 < sine < 1.0 else 1
