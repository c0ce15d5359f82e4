"""Penalties that users may write, for tests; with gradients and Hessians of their own for exact laws."""

from __future__ import annotations

import numpy as np

from confide.erm.penalties import StronglyConvex

CONVEXITY = 0.5


def log_cosh_value(w):
    """m / 2 |w|^2 and the sum of log cosh w."""
    return 0.5 * CONVEXITY * w @ w + np.sum(np.logaddexp(w, -w) - np.log(2.0))


def log_cosh_gradient(w):
    """Of `log_cosh_value`."""
    return CONVEXITY * w + np.tanh(w)


LOG_COSH = StronglyConvex(log_cosh_value, log_cosh_gradient, CONVEXITY, CONVEXITY + 1.0, "log-cosh and ridge")


def of_length_value(w):
    """m / 2 |w|^2 and sqrt(1 + |w|^2) - 1, which ties the weights together."""
    return 0.5 * CONVEXITY * w @ w + np.sqrt(1.0 + w @ w) - 1.0


def of_length_gradient(w):
    """Of `of_length_value`."""
    return CONVEXITY * w + w / np.sqrt(1.0 + w @ w)


OF_LENGTH = StronglyConvex(of_length_value, of_length_gradient, CONVEXITY, CONVEXITY + 1.0, "length and ridge")
CORNER = 0.05


def bent_value(w):
    """m / 2 |w|^2 and Huber functions, straight beyond 0.05: its gradient has kinks."""
    size = np.abs(w)
    return 0.5 * CONVEXITY * w @ w + np.sum(np.where(size <= CORNER, 0.5 * w * w / CORNER, size - 0.5 * CORNER))


def bent_gradient(w):
    """Of `bent_value`."""
    return CONVEXITY * w + np.clip(w / CORNER, -1.0, 1.0)


BENT = StronglyConvex(bent_value, bent_gradient, CONVEXITY, CONVEXITY + 1.0 / CORNER, "Huber and ridge")
OWN = {penalty.name: penalty for penalty in (LOG_COSH, OF_LENGTH, BENT)}


def hessian(name, w):
    """(n, d, d): Hessians of a penalty at (n, d) weights."""
    eye = np.eye(w.shape[1])
    if name == LOG_COSH.name:
        return CONVEXITY * eye + eye / np.cosh(w)[:, :, None] ** 2
    if name == BENT.name:
        return CONVEXITY * eye + eye * (np.abs(w) <= CORNER)[:, :, None] / CORNER
    root = np.sqrt(1.0 + np.square(w).sum(axis=1))[:, None, None]
    return CONVEXITY * eye + eye / root - w[:, :, None] * w[:, None, :] / root**3
