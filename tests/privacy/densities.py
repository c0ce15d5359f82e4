"""Exact laws of the mechanisms, for attacks on their calibration. Written from the theorems, not from the code.

For fixed rows the map from the noise b to the minimiser w is a bijection, b(w) = -(l2 w + sum c l'(u . w) u) with u = y x
and c the weight of the row, so log density(w) = log density of b(w) + log det(l2 I + sum c l''(u . w) u u^T) + constant.
"""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
from scipy import optimize
from scipy.special import log_ndtr, ndtr


def signed(rows, labels, intercept=0.0):
    """u = y (x, intercept): what a row contributes to a loss of the margin."""
    rows = np.asarray(rows, dtype=float)
    if intercept:
        rows = np.hstack([rows, np.full((len(rows), 1), intercept)])
    return rows * np.asarray(labels, dtype=float)[:, None]


def noise_behind(loss, signed_rows, l2, w, counts=1.0):
    """The b whose perturbed objective is minimised at w: one vector, or an (n, D) array of them."""
    return -(l2 * w + (counts * loss.derivative(w @ signed_rows.T)) @ signed_rows)


def log_determinant(loss, signed_rows, l2, w, counts=1.0):
    """log det of the Hessian at w, one vector or several."""
    curvatures = counts * loss.second_derivative(np.atleast_2d(w) @ signed_rows.T)
    if signed_rows.shape[1] == 1 and np.ndim(w) > 1:
        return np.log(l2 + curvatures @ signed_rows[:, 0] ** 2)
    hessians = l2 * np.eye(signed_rows.shape[1]) + np.einsum("ni,ij,ik->njk", curvatures, signed_rows, signed_rows)
    logs = np.linalg.slogdet(hessians)[1]
    return logs if np.ndim(w) > 1 else float(logs[0])


def log_density(loss, signed_rows, l2, rate, w, counts=1.0):
    """Log density of the released w under spherical Laplace noise, up to a constant that neighbours share."""
    noise = noise_behind(loss, signed_rows, l2, w, counts)
    return -rate * np.linalg.norm(noise, axis=-1) + log_determinant(loss, signed_rows, l2, w, counts)


def log_ratio(loss, first, second, l2, rate, w, counts=(1.0, 1.0)):
    """Privacy loss at w between two data sets given by their signed rows, and the weights of these."""
    return log_density(loss, first, l2, rate, w, counts[0]) - log_density(loss, second, l2, rate, w, counts[1])


def tight_huber_pair(loss, l2, alpha):
    """The two-dimensional pair on which the refined calibration is attained: (first, second, w).

    One record sits just inside the quadratic zone, its replacement just outside, nearly opposite; the common records cancel
    the ridge and push the noise along the first axis.
    """
    h = loss.smoothing
    n = round(l2 / alpha)
    t = 0.5 * np.sqrt((1 - h) / alpha)
    s = (1 - h) / t
    w = np.array([0.0, t])
    s1, s2 = s * (1 + 1e-9), s * (1 - 1e-6)
    first = np.array([np.sqrt(1 - s1**2), s1])
    second = np.array([-np.sqrt(1 - s2**2), s2])
    sc = (l2 * t - s) / (n - 1)
    common = np.tile(np.array([[-0.5 * np.sqrt(1 - sc * sc), sc]]), (n - 1, 1))
    return np.vstack([common, first]), np.vstack([common, second]), w


def groups_of(sizes):
    """The slice of each group of columns."""
    return [slice(stop - size, stop) for size, stop in zip(sizes, itertools.accumulate(sizes), strict=True)]


def shape_norm(b, sizes, scales):
    """|b|_K of a ball (one group, L2) is `np.linalg.norm(b) / R`; of groups the largest of |b_g|_1 / s_g: this one."""
    parts = [np.abs(b[..., g]).sum(axis=-1) / scale for g, scale in zip(groups_of(sizes), scales, strict=True)]
    return np.max(parts, axis=0)


def bundles_norm(shape, vectors):
    """|b|_K by its definition: the least sum over all constants c of the levels, where a linked group is away."""
    parts, total = np.split(vectors, np.cumsum(shape.sizes)[:-1], axis=1), 0.0
    for bundle, share in zip(shape.bundles, shape.shares, strict=True):
        largest = 0.0
        for g in bundle:
            away = shape.linked[g] and len(shape.sizes) - 1 not in bundle
            centres = parts[g] if away else np.zeros((len(vectors), 1))
            least = np.min([np.abs(parts[g] - c[:, None]).sum(axis=1) for c in centres.T], axis=0)
            largest = np.maximum(largest, least / shape.scales[g])
        total = total + share / 1024 * largest
    return total


def linked_basis(sizes, scales, linked):
    """(D, d): a basis of V = {b : the entries of each linked group, over its scale, add up to b_0 / s_0}."""
    total = sum(sizes)
    conditions = []
    for g, scale, flag in zip(groups_of(sizes), scales, linked, strict=True):
        if flag:
            condition = np.zeros(total)
            condition[g], condition[-1] = 1.0 / scale, -1.0 / scales[-1]
            conditions.append(condition)
    _, singular, right = np.linalg.svd(np.array(conditions))
    return right[len(singular) :].T


def least_variance_covariance(sizes, scales, linked, scale):
    """Covariance of the Gaussian law of groups (E.14): t^2 = scale^2 (sum of rho sqrt(m)) rho / sqrt(m) on each piece."""
    total = sum(sizes)
    pieces = []  # (rho, projector)
    common = np.zeros(total)
    for g, s, flag in zip(groups_of(sizes), scales, linked, strict=True):
        projector, size = np.zeros((total, total)), g.stop - g.start
        projector[g, g] = np.eye(size) - flag / size
        if flag:
            common[g] = s / size
        if not (any(linked) and g.stop == total):
            pieces.append((s * math.sqrt(1.0 - flag / size), projector))
    if any(linked):
        common[-1] = scales[-1]
        length = np.linalg.norm(common)
        pieces.append((length, np.outer(common, common) / length**2))
    ranks = [np.trace(projector) for _, projector in pieces]
    weight = sum(rho * math.sqrt(m) for (rho, _), m in zip(pieces, ranks, strict=True))
    variances = [scale**2 * weight * rho / math.sqrt(m) for (rho, _), m in zip(pieces, ranks, strict=True)]
    return sum(variance * projector for variance, (_, projector) in zip(variances, pieces, strict=True))


def gaussian_profile(epsilon, mu):
    """delta of N(mu, 1) against N(0, 1) at epsilon: Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)."""
    return float(ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def gaussian_multiplier(epsilon, delta):
    """Least deviation over sensitivity of the Gaussian mechanism."""
    return optimize.brentq(lambda s: gaussian_profile(epsilon, 1.0 / s) - delta, 1e-3, 1e5)


def exact_minimiser(loss, signed_rows, l2, b):
    """argmin sum l(u . w) + l2/2 |w|^2 + b . w in extended precision, by Newton's steps with that residual."""
    rows, b = np.asarray(signed_rows, dtype=np.longdouble), np.asarray(b, dtype=np.longdouble)
    w = -b / l2
    # From the minimiser of the ridge alone damped steps come near, full steps finish.
    for step in range(200):
        z = rows @ w
        gradient = l2 * w + b + loss.derivative(z) @ rows
        hessian = l2 * np.eye(len(b)) + np.asarray((rows * loss.second_derivative(z)[:, None]).T @ rows, dtype=float)
        change = np.linalg.solve(hessian, np.asarray(gradient, dtype=float))
        length = np.linalg.norm(change) * np.abs(rows).max()
        w = w - change * min(1.0, 1.0 / max(length, 1e-300))
        if np.linalg.norm(gradient) <= 1e-17 * (l2 * np.linalg.norm(w) + len(rows)) and step > 3:
            break
    return w


def laplace_draws(sizes, scales, linked, n, rng):
    """n draws with density proportional to exp(-|b|_K) on the space of groups, by rejection from a box."""
    groups, points = groups_of(sizes), []
    dimension = sum(sizes) - sum(linked)
    while sum(map(len, points)) < n:
        b = np.zeros((50_000, sum(sizes)))
        b[:, -1] = scales[-1] * rng.uniform(-1, 1, len(b))
        inside = np.ones(len(b), dtype=bool)
        for g, s, flag in zip(groups, scales, linked, strict=True):
            if g.stop < b.shape[1] or not any(linked):
                b[:, g] = rng.uniform(-s, s, (len(b), g.stop - g.start))
            if flag:
                b[:, g.stop - 1] = s * b[:, -1] / scales[-1] - b[:, g.start : g.stop - 1].sum(axis=1)
            inside &= np.abs(b[:, g]).sum(axis=1) <= s
        points.append(b[inside])
    # Uniform in the unit ball of the norm, times Gamma(dimension + 1).
    return np.vstack(points)[:n] * rng.gamma(dimension + 1, size=(n, 1))


def bent_losses(losses, kappa):
    """The largest a X + kappa a (1 - a) over a in [0, 1], for losses X: a parabola whose top is at (1 + X / kappa) / 2."""
    a = np.clip(0.5 + 0.5 * losses / kappa, 0.0, 1.0) if kappa else losses > 0.0
    return a * losses + kappa * a * (1 - a)


def bent_profile(epsilon, mu, kappa, seal=0.0):
    """E (1 - exp(epsilon - max over a of a X + kappa a (1 - a)))_+ by brute force, or composed with a Gaussian seal."""
    b = np.linspace(-9.0, 13.0, 60_001)
    bent = bent_losses(mu**2 / 2 + mu * b, kappa)
    if seal:
        inside = ndtr(seal / 2 - (epsilon - bent) / seal) - np.exp(epsilon - bent) * ndtr(
            -seal / 2 - (epsilon - bent) / seal
        )
    else:
        inside = -np.expm1(np.minimum(0.0, epsilon - bent))
    return float(np.trapezoid(inside * np.exp(-(b**2) / 2) / math.sqrt(2 * math.pi), b))


def objective_delta(epsilon, mu, curvature, kappa, replaced):
    """Bounds of E.2 for a loss that falls with the margin: the least of the c_J form and the kappa form."""
    profile = gaussian_profile
    if replaced:
        bounds = [profile(epsilon - curvature, 2 * mu) + 2 * profile(epsilon - curvature, mu)]
        bounds += [profile(epsilon, 2 * mu) + profile(epsilon, mu) + profile(epsilon - kappa, mu)]
    else:
        bounds = [profile(epsilon - curvature, mu), profile(epsilon, mu)]
        if math.isfinite(kappa):
            return min(bent_profile(epsilon, mu, kappa), bounds[0] if epsilon >= curvature else 1.0)
    return min((bound for bound, cost in zip(bounds, (curvature, kappa), strict=True) if epsilon >= cost), default=1.0)


@np.errstate(over="ignore")
def objective_renyi(order, mu, curvature, kappa, replaced):
    """Bounds of E.3 on the Rényi divergence of one order or several: the least of the c_J form and the kappa form."""
    a, cdf = order, ndtr

    def h(m):
        return cdf(-m / 2) + np.exp(a * (a - 1) * m**2 / 2) * cdf((a - 0.5) * m)

    if replaced:
        bounds = [curvature + np.log(h(2 * mu) + 2 * h(mu) - 2) / (a - 1)]
        bounds += [np.log((np.exp((a - 1) * kappa) + 1) * h(mu) + h(2 * mu) - 2) / (a - 1)]
    else:
        bounds = [curvature + np.log(h(mu)) / (a - 1)]
        low = np.exp((a - 1) * kappa) * cdf(kappa / mu - mu / 2)
        bounds += [np.log(low + np.exp(a * (a - 1) * mu**2 / 2) * cdf((a - 0.5) * mu - kappa / mu)) / (a - 1)]
    return np.minimum.reduce(bounds)


def shaped_kappa(pieces, scale, l2):
    """E.14: sum of s^2 max(0, 1 / l2 - 1 / (2 t^2)) over pieces (s, columns), t^2 = scale^2 (sum s sqrt(k)) s / sqrt(k)."""
    total = sum(s * math.sqrt(k) for s, k in pieces)
    return sum(s**2 * max(0.0, 1.0 / l2 - 0.5 / (scale**2 * total * s / math.sqrt(k))) for s, k in pieces)


def least_gaussian_scale(within, high=1e6):
    """The least scale that is within the budget, by bisection to 1e-9; `within` is monotone in it."""
    low = 1e-6
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if within(middle) else (middle, high)
    return high


def ends_renyi(order, mu, cost, replaced, two_sided=False):
    """The bound on the Rényi divergence by the two ends of the loss, from a search over slopes and over its constant.

    For each c the mean, over the noise, of the larger value of exp((a - 1) l) + c (exp(-l) - 1) at the ends. `cost(a)` is
    what the curvature of a row costs that has the share a of its largest slope. Two rows are at an acute or an obtuse angle.
    """
    reach = 12.0 + order * (1 + replaced) * mu
    z = np.linspace(-reach, reach, 3001)
    chances = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi) * (z[1] - z[0])
    slopes = np.linspace(-1.0 if two_sided else 0.0, 1.0, 301)[:, None]
    costs = cost(np.abs(slopes))

    def row(shift, squares, *sides):
        """Both ends of one row; `sides` say how much the cost of its curvature adds to either."""
        line, length = slopes * shift * z, (slopes * shift) ** 2
        upper = (line + squares[0] * length + costs * sides[0]).max(axis=0)
        return upper, (line + squares[1] * length - costs * sides[1]).min(axis=0)

    def pair(acute):
        """Both ends of two rows of slopes of one sign; the slope of the second is 0 or 1 at the upper end."""
        upper = []
        for second in (0.0, 1.0):
            square = 0.5 * mu**2 * ((slopes + second) ** 2 if acute else slopes**2 + second)
            upper.append(((slopes + second) * mu * z + square + costs).max(axis=0))
        squares = (0.0, 0.5 if acute else 0.0)
        return np.maximum(*upper), row(mu, squares, 0.0, 0.0)[1] + row(mu, squares, 0.0, 1.0)[1]

    if replaced and two_sided:
        # Each row counts half, with doubled shift and cost.
        cases = [[(0.5, *row(2.0 * mu, (0.5, 0.0), *sides)) for sides in ((2.0, 0.0), (0.0, 2.0))]]
    elif replaced:
        cases = [[(1.0, *pair(acute))] for acute in (True, False)]
    else:
        cases = [[(1.0, *row(mu, (0.5, 0.5), *sides))] for sides in ((1.0, 0.0), (0.0, 1.0))]

    def divergence(rows, log_charge):
        charge, total = (order - 1.0) * math.exp(log_charge), 0.0
        for share, *both in rows:
            # What is cut off has no chance that a double can hold.
            cut = [np.clip(end, -300.0, 300.0 / (order - 1.0)) for end in both]
            values = [np.expm1((order - 1.0) * end) + charge * np.expm1(-end) for end in cut]
            total += share * (np.maximum(*values) * chances).sum()
        return math.log1p(total) / (order - 1.0)

    far = min(300.0, order * (1 + replaced) * (mu * (1.0 + 2.0 * mu) + 2.0 * float(costs.max())))
    search = {"bounds": (-far, far), "method": "bounded", "options": {"xatol": 1e-7}}
    return max(optimize.minimize_scalar(partial(divergence, rows), **search).fun for rows in cases)


def bent(bend):
    """What the curvature of a tapered loss costs a row with the share a of its largest slope."""
    return lambda a: np.log1p(bend * a * (1.0 - a))


def flat(curvature):
    """A cost of the curvature that is the same for every slope."""
    return lambda a: curvature + 0.0 * a


@np.errstate(over="ignore")
def two_sided_renyi(order, mu, curvature, replaced):
    """The bound by sums over corners where slopes have either sign."""
    m = 2.0 * mu if replaced else mu
    moment = 2.0 * math.exp(order * (order - 1) * m**2 / 2) * ndtr((order - 1) * m)
    return curvature + math.log(moment + replaced * (2.0 * ndtr((order - 1) * m) - 1.0)) / (order - 1)
