"""How many random features make a kernel machine, for any loss and kernel that the theorems cover.

Rubinstein, Bartlett, Huang and Taft, Learning in a Large Function Space (2012): lemma 17 (from an error of the kernel to
that of the machine), lemma 18 (from features to an error of the kernel), corollary 15 (noise on the weights), theorem 13
(all of it). Their machine minimises |w|^2 / 2 + C mean loss, so C is 1 / alpha. Lemma 18 needs a finite second moment of the
frequencies, which the Laplacian kernel does not have; the lemma of `pairs_for_kernel_error` does without.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from confide.errors import ParameterError, wording
from confide.planning.simulation import check_arguments

_LEAST_LOG = -300.0
"""Below this logarithm of an error the number of features would overflow."""
_POWERS, _NET_SHARES = tuple(np.linspace(0.05, 1.0, 20)), (0.003, 0.01, 0.03, 0.1, 0.3)
_MOMENTS: dict[str, Callable[[float], float]] = {
    "rbf": lambda s: 0.5 * s * math.log(2.0) + float(gammaln(0.5 * (1.0 + s))) - 0.5 * math.log(math.pi),
    "laplacian": lambda s: -math.log(math.cos(0.5 * math.pi * s)) if s < 1.0 else math.inf,
    "cauchy": lambda s: float(gammaln(1.0 + s)),
}
"""For each kernel of length scale 1 the logarithm of the mean of |w_i|^s, for one coordinate of a frequency: those of a
normal, a Cauchy and a Laplace number."""


def second_moment(kernel: str, n_inputs: int, length_scale: float = 1.0) -> float:
    """The mean of |w|^2 over the frequencies of a kernel; infinite for "laplacian".

    Parameters
    ----------
    kernel : "rbf", "laplacian" or "cauchy", as in `RandomFourierFeatures`
    n_inputs : int
        d, the number of columns before the random features.
    length_scale : float, positive

    Returns
    -------
    float
        d / s^2 for "rbf" and 2 d / s^2 for "cauchy".

    Raises
    ------
    ParameterError
        If a number lies outside its range, or the kernel is unknown.
    """
    check_arguments({"n_inputs": n_inputs}, kernel=kernel, length_scale=length_scale)
    return {"rbf": 1.0, "cauchy": 2.0, "laplacian": math.inf}[kernel] * n_inputs / length_scale**2


def kernel_error_for_accuracy(
    accuracy: float, alpha: float, *, lipschitz: float = 1.0, dual_norm: float | None = None
) -> float:
    """Lemma 17: an error of the kernel at which the decision functions of both machines are within half of `accuracy`.

    min(1, a^2 / (4 (M + 2 sqrt((C L + M / 2) M))^2)), C = 1 / alpha.

    Parameters
    ----------
    accuracy : float, positive
        a; the machines are within a / 2 of each other everywhere.
    alpha : float, positive
    lipschitz : float, positive
        L, a bound on the slopes of the convex loss.
    dual_norm : float or None
        M, a bound on the sum of the absolute dual variables of both machines. None is C L, which holds for every convex loss
        with slopes up to L: a dual variable is C / n times a slope.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If a number lies outside its range.
    """
    check_arguments(accuracy=accuracy, alpha=alpha, lipschitz=lipschitz)
    return math.exp(_log_kernel_error(accuracy, alpha, lipschitz, dual_norm))


def pairs_by_lemma_18(
    n_inputs: int, *, error: float, failure: float, kernel: str = "rbf", length_scale: float = 1.0, diameter: float = 1.0
) -> int:
    """Lemma 18: a number of pairs of features at which the kernel is everywhere within `error`.

    4 (d + 2) / e^2 log(2^8 (p D)^2 / (f e^2)), p^2 the second moment of the frequencies and D the diameter of the rows. It
    holds with probability 1 - failure.

    Parameters
    ----------
    n_inputs : int
        d.
    error : float, positive
        e, the largest difference between the kernel and the products of mapped rows.
    failure : float, in (0, 1)
        f.
    kernel : "rbf" or "cauchy"
        "laplacian" is refused: the second moment is infinite, and the lemma says nothing.
    length_scale, diameter : float, positive
        Of the kernel, and of a ball in which rows lie, in the same unit.

    Returns
    -------
    int

    Raises
    ------
    ParameterError
        If a number lies outside its range, or the lemma does not cover the kernel.
    """
    check_arguments(failure=failure, error=error, diameter=diameter)
    if math.isinf(second_moment(kernel, n_inputs, length_scale)):
        raise ParameterError(wording("no lemma for laplacian"))
    return _n_pairs(n_inputs, math.log(error), failure, kernel, length_scale, diameter, by_moments=False)


def pairs_for_kernel_error(
    n_inputs: int, *, error: float, failure: float, kernel: str = "rbf", length_scale: float = 1.0, diameter: float = 1.0
) -> int:
    """The same number by another lemma, which holds for the Laplacian kernel too, and is smaller where `error` is small.

    Parameters
    ----------
    n_inputs, error, failure, length_scale, diameter
        As in `pairs_by_lemma_18`.
    kernel : "rbf", "laplacian" or "cauchy"

    Returns
    -------
    int

    Raises
    ------
    ParameterError
        If a number lies outside its range, or the kernel is unknown.

    Notes
    -----
    Differences of rows lie in a ball of radius D, which at most T = (1 + 2 D / r)^d balls of radius r cover. By Hoeffding's
    inequality all their centres have an error of at most (1 - b) e but for 2 T exp(-n (1 - b)^2 e^2 / 2), n the number of
    pairs. For s in (0, 1], |cos x - cos y| <= 2^(1 - s) |x - y|^s, and |w|^s <= sum |w_i|^s. So within a ball of radius r
    products of mapped rows move by at most X with mean K r^s, and the kernel by at most K r^s, where K = 2^(1 - s) d E
    |w_i|^s, finite for the Laplacian kernel if s < 1. By Markov's inequality their sum is at most b e but for K r^s / (b e -
    K r^s). Each part gets f / 2: the second gives r, the first n. The least n over some s and b is taken.
    """
    sizes = {"error": error, "length_scale": length_scale, "diameter": diameter}
    check_arguments({"n_inputs": n_inputs}, failure=failure, kernel=kernel, **sizes)
    return _n_pairs(n_inputs, math.log(error), failure, kernel, length_scale, diameter, by_moments=True)


def laplace_scale_for_kernel(accuracy: float, failure: float, n_pairs: int) -> float:
    """Corollary 15: a scale of Laplace noise on weights of pairs of features that moves decision functions by up to a / 2.

    min(a / (2^4 log 2 sqrt(n)), a sqrt(n) / (8 log(2 / f))), n the number of pairs. The decision function of the released
    machine is within half of the accuracy of that without noise, with probability 1 - failure / 2, for any loss.

    Parameters
    ----------
    accuracy : float, positive
    failure : float, in (0, 1)
    n_pairs : int

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If a number lies outside its range.
    """
    check_arguments({"n_pairs": n_pairs}, failure=failure, accuracy=accuracy)
    return _laplace_scale(accuracy, failure, n_pairs)


def _laplace_scale(accuracy: float, failure: float, n_pairs: int) -> float:
    root = math.sqrt(n_pairs)
    return min(accuracy / (16.0 * math.log(2.0) * root), accuracy * root / (8.0 * math.log(2.0 / failure)))


def features_for_kernel(
    n_inputs: int,
    *,
    accuracy: float,
    failure: float,
    alpha: float,
    length_scale: float = 1.0,
    diameter: float = 1.0,
    kernel: str = "rbf",
    lipschitz: float = 1.0,
    dual_norm: float | None = None,
) -> int:
    """Theorem 13: the number of pairs of random features with which a private kernel machine can have this accuracy.

    4 (d + 2) / t log(2^9 (p D)^2 / (f t)), t = min(1, a^4 / (2^4 (M + 2 sqrt((C L + M / 2) M))^4)), p^2 the second moment of
    the frequencies and D the diameter; for the hinge M = C. It is lemma 18 at the error of lemma 17 and half of the
    probability of failure; corollary 15 has the scale of the noise. For the Laplacian kernel, of which the theorem says
    nothing, `pairs_for_kernel_error` takes the place of lemma 18. It holds for all data, so usual data need far fewer.

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
    kernel : "rbf", "laplacian" or "cauchy"
    lipschitz, dual_norm
        L and M, as in `kernel_error_for_accuracy`: any convex loss is covered.

    Returns
    -------
    int

    Raises
    ------
    ParameterError
        If a number lies outside its range, or the kernel is unknown.
    """
    sizes = {"length_scale": length_scale, "diameter": diameter, "lipschitz": lipschitz}
    check_arguments({"n_inputs": n_inputs}, failure=failure, kernel=kernel, accuracy=accuracy, alpha=alpha, **sizes)
    log_error = _log_kernel_error(accuracy, alpha, lipschitz, dual_norm)
    return _n_pairs(n_inputs, log_error, 0.5 * failure, kernel, length_scale, diameter, by_moments=kernel == "laplacian")


def _log_kernel_error(accuracy: float, alpha: float, lipschitz: float, dual_norm: float | None) -> float:
    """The logarithm of the error of lemma 17."""
    if dual_norm is None:
        # M = C L: M + 2 sqrt(3 / 2) M.
        log_sum = math.log(lipschitz) - math.log(alpha) + math.log1p(math.sqrt(6.0))
    else:
        check_arguments(dual_norm=dual_norm)
        log_sum = math.log(dual_norm + 2.0 * math.sqrt((lipschitz / alpha + 0.5 * dual_norm) * dual_norm))
    return 2.0 * min(0.0, math.log(accuracy) - math.log(2.0) - log_sum)


def _n_pairs(
    n_inputs: int, log_error: float, failure: float, kernel: str, length_scale: float, diameter: float, *, by_moments: bool
) -> int:
    """The number of pairs by the lemma of `pairs_for_kernel_error`, or by lemma 18."""
    if log_error < _LEAST_LOG:
        raise ParameterError(wording("too many features for a theorem"))
    if not by_moments:
        spread = math.log(second_moment(kernel, n_inputs)) + 2.0 * (math.log(diameter) - math.log(length_scale))
        logarithm = 8.0 * math.log(2.0) + spread - math.log(failure) - 2.0 * log_error
        return max(1, math.ceil(4.0 * (n_inputs + 2) * math.exp(-2.0 * log_error) * logarithm))
    least, half = math.inf, 0.5 * failure
    for power in _POWERS:
        moment = _MOMENTS[kernel](power)
        log_k = (1.0 - power) * math.log(2.0) + math.log(n_inputs) + moment - power * math.log(length_scale)
        for share in _NET_SHARES if math.isfinite(moment) else ():
            log_radius = (math.log(share) + log_error + math.log(half / (1.0 + half)) - log_k) / power
            log_net = n_inputs * float(np.logaddexp(0.0, math.log(2.0 * diameter) - log_radius))
            least = min(least, (log_net + math.log(4.0 / failure)) / (1.0 - share) ** 2)
    return max(1, math.ceil(2.0 * math.exp(-2.0 * log_error) * least))


# The best privacy that any support vector machine of a given accuracy can have.
#
# Rubinstein, Bartlett, Huang and Taft, Learning in a Large Function Space: Privacy-Preserving Mechanisms for SVM Learning
# (2012), with their errata. Their machine minimises |w|^2 / 2 + C mean loss, so C is 1 / alpha here. A release is (a,
# f)-useful if, with probability at least 1 - f, its decision function is everywhere within a of that of the exact machine.


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

    def __str__(self) -> str:
        lacks = f"no lower bound is proven, since {self.missing.rstrip('.')}"
        return f"epsilon is at most {self.upper:.4g}; {lacks if self.missing else f'at least {self.lower:.4g}'}."


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
    check_arguments({"n_features": n_features}, failure=failure, accuracy=accuracy, largest_entry=largest_entry)
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
    sizes: dict[str, Any] = {"row_norm": row_norm, "largest_entry": largest_entry, "lipschitz": lipschitz}
    check_arguments({"n_rows": n_rows, "n_features": n_features}, failure=failure, alpha=alpha, accuracy=accuracy, **sizes)
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
    sizes: dict[str, Any] = {"length_scale": length_scale, "diameter": diameter, "lipschitz": lipschitz}
    check_arguments({"n_rows": n_rows, "n_inputs": n_inputs}, failure=failure, alpha=alpha, accuracy=accuracy, **sizes)
    c = lipschitz / alpha
    n_pairs = features_for_kernel(n_inputs, accuracy=accuracy, failure=failure, alpha=alpha, kernel=kernel, **sizes)
    # Corollary 15 gives half the accuracy and half the probability of failure to the noise.
    upper = 2.0**1.5 * c * math.sqrt(n_pairs) / (_laplace_scale(accuracy, failure, n_pairs) * n_rows)
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
