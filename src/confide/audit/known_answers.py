"""The audit of the auditor: releases of which it is known what an attack must show."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from confide.array_types import Array
from confide.audit.attacks import AuditResult, attack
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball

_AT_ONCE = 1000
_MULTIPLIER = 2.2216
"""Deviations of the Gaussian noise at which a sum of sensitivity 1 is (1, 0.05)-private, rounded upwards."""


@dataclass(frozen=True, slots=True)
class OwnCheck:
    """One release with a known answer.

    Attributes
    ----------
    name : str
        What is released.
    result : AuditResult
        What the attack found.
    expected : str
        "nothing", "not refuted" or "refuted".
    """

    name: str
    result: AuditResult
    expected: str

    @property
    def holds(self) -> bool:
        """Whether the attack found what it must find."""
        if self.expected == "nothing":
            return self.result.shown <= 0.0
        return self.result.refuted == (self.expected == "refuted")

    def __str__(self) -> str:
        mark = "as expected" if self.holds else f"WRONG: it must be {self.expected}"
        return f"{self.name}: at least {self.result.shown:.3f}; {mark}"


def own_checks(n_releases: int = 1000, *, confidence: float = 0.999) -> tuple[OwnCheck, ...]:
    """Attack releases of which it is known what an attack must show: the audit of the auditor.

    Parameters
    ----------
    n_releases : int, default 1000
        Number of releases from either data set. With much fewer, planted bugs are missed.
    confidence : float in (0, 1), default 0.999
        Of each attack. A check of what must not be refuted fails with at most probability 1 - confidence.

    Returns
    -------
    tuple of OwnCheck
        Releases without any data must show 0. Releases with exactly the promised noise must not be refuted. Planted bugs
        must be refuted.

    Raises
    ------
    ParameterError
        If an argument is outside its range.

    Notes
    -----
    Guarantee: none is needed: no data are used but the numbers 0 and 1.

    Source: the bugs are those that were found in published libraries; Mironov (2012) for noise in floating point.
    """
    how = partial(attack, n_releases=n_releases, confidence=confidence, with_power=False)
    cases = _cases(Entropy.fresh()).items()
    return tuple(OwnCheck(name, how(made, 0.0, 1.0, budget=claim, name=name), must) for name, (made, claim, must) in cases)


def _answer(entropy: Entropy, value: float, epsilon: float) -> str:
    """Randomised response. An exponential is below log(1 + e^epsilon) with probability e^epsilon / (1 + e^epsilon)."""
    is_true = float(entropy.exponential(1)[0]) < math.log1p(math.exp(epsilon))
    return "yes" if (value > 0.0) == is_true else "no"


def _naive(entropy: Entropy, value: float) -> Array:
    """The logarithm of a uniform number with 53 digits, added in floating point."""
    uniform = (int.from_bytes(entropy.read(7), "little") % 2**53 + 1) * 2.0**-53
    sign = 1.0 if entropy.below(2) else -1.0
    return np.array([value + sign * -math.log(uniform)])


def _cases(entropy: Entropy) -> dict[str, tuple[Callable[[float], Any], Budget, str]]:
    def noisy(grid: LatticeNoise) -> Callable[[float], Array]:
        # Many integers are drawn much faster together. Each is used once.
        drawn: list[Any] = []

        def release(value: float) -> Array:
            if not drawn:
                drawn.extend(grid.integers(_AT_ONCE, entropy))
            return np.asarray(grid.release(np.array([[value]]), entropy, [drawn.pop()])[0])

        return release

    def laplace(part: float = 1.0) -> Callable[[float], Array]:
        return noisy(LatticeLaplace.of_l1(1, part, 1.0))

    def gaussian(multiplier: float) -> Callable[[float], Array]:
        return noisy(LatticeGaussian.of_multiplier(1, -12, 1.0, multiplier))

    def failing(value: float) -> Array:
        if value == 0.0 and entropy.below(4) == 0:
            raise ZeroDivisionError
        return alone(1.0)

    alone, alone_concentrated, constant = laplace(), gaussian(1.0), laplace()(0.0)
    pure, approximate, concentrated = PureDP(1.0), ApproxDP(1.0, 0.05), ZCDP(0.5)
    return {
        "noise alone": (lambda _: alone(0.0), pure, "nothing"),
        "noise alone, as JSON": (lambda _: {"a": alone(0.0).tolist(), "b": {"c": _answer(entropy, 1, 0)}}, pure, "nothing"),
        "noise alone, many numbers": (lambda _: entropy.gaussian(Ball(30, 1.0), 1, 1.0)[0], approximate, "nothing"),
        "noise alone, concentrated": (lambda _: alone_concentrated(0.0), concentrated, "nothing"),
        "Laplace noise": (laplace(), pure, "not refuted"),
        "Gaussian noise": (gaussian(_MULTIPLIER), approximate, "not refuted"),
        "Gaussian noise, concentrated": (gaussian(1.0), concentrated, "not refuted"),
        "randomised response": (lambda x: {"answer": _answer(entropy, x, 1.0)}, pure, "not refuted"),
        "Laplace noise, halved": (laplace(0.5), pure, "refuted"),
        "Gaussian noise, a quarter": (gaussian(_MULTIPLIER / 4.0), approximate, "refuted"),
        "Gaussian noise, a third, concentrated": (gaussian(1.0 / 3.0), concentrated, "refuted"),
        "randomised response, at twice its epsilon": (lambda x: {"answer": _answer(entropy, x, 2.0)}, pure, "refuted"),
        "the same noise in every release": (lambda x: x + constant, pure, "refuted"),
        "noise in floating point": (partial(_naive, entropy), pure, "refuted"),
        "an error for one data set alone": (failing, pure, "refuted"),
    }
