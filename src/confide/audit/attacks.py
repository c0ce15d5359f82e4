"""Attacks on releases of two neighbouring data sets: what an event shows of the privacy that was spent.

The first half of the releases decides the event: a statistic and a threshold. The second half is counted. So the bound holds
whatever was tried on the first half.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from confide.audit.classifiers import Statistic, learned
from confide.audit.confidence import Separation, claimed, lower_bound, upper_bound
from confide.audit.outcomes import Failed, bounded, vectors, with_bits
from confide.audit.releases import released_by
from confide.audit.results import LIKELY, AuditResult
from confide.errors import ParameterError, checked_flag
from confide.privacy.budgets import Budget, as_budget
from confide.types import Array

_FACTORS = tuple(round(0.05 * k, 2) for k in range(19, 3, -1))
"""Parts of the noise for which the power is looked at."""
_MOST_THRESHOLDS = 400
_BINS = 60
_LEAST_RELEASES = 40


def attack(
    release: Any,
    first: Any,
    second: Any,
    *,
    budget: Budget | float | None = None,
    n_releases: int = 2000,
    statistic: Statistic | None = None,
    confidence: float = 0.99,
    with_power: bool = True,
    name: str | None = None,
) -> AuditResult:
    """Release many times from either of two neighbouring data sets, and bound from below what was spent.

    Parameters
    ----------
    release : callable, estimator or OpenDP measurement
        A callable gives a vector of numbers, or anything that JSON can hold. An estimator is copied and fitted anew for each
        release, and its fitted attributes are what it releases. An error is an outcome too.
    first, second : tuple or object
        The neighbouring data sets: a tuple is given as several arguments, such as (X, y).
    budget : budget, float or None
        What is claimed. None takes the estimator's own budget, or its `epsilon`.
    n_releases : int, default 2000
        Number of releases from either data set, at least 40. Half of them are counted.
    statistic : callable or None
        From releases (n, columns) to numbers (n,) that are larger where the first data set is likelier, for instance the
        logarithm of the likelihood ratio. None learns one from the first half of the releases.
    confidence : float in (0, 1), default 0.99
        The lower bound is too high with at most probability 1 - confidence.
    with_power : bool, default True
        Whether to estimate the power too: how much smaller the noise would have to be for this audit to see it.
    name : str or None
        What is audited, for the text of the result.

    Returns
    -------
    AuditResult
        The lower bound with its counts, what was claimed, a control without any difference, and the power.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or nothing is claimed.

    Notes
    -----
    Guarantee: none. The data sets should be made up: releases are repeated without any charge. An attack can refute a claim
    of privacy and can never prove one.

    Source: Jagielski, Ullman and Oprea (2020); thresholds and counts come from different releases, as in Nasr et al. (2021).
    """
    checked_flag("with_power", with_power)
    if n_releases < _LEAST_RELEASES:
        raise ParameterError(f"n_releases must be at least {_LEAST_RELEASES}; it is {n_releases}.")
    if not 0.0 < confidence < 1.0:
        raise ParameterError(f"confidence must lie strictly between 0 and 1; it is {confidence}.")
    outcomes = [outcomes_of(release, data, n_releases) for data in (first, second)]
    return result_of(
        outcomes[0],
        outcomes[1],
        budget=claim_of(release, budget),
        statistic=statistic,
        confidence=confidence,
        with_power=with_power,
        name=name or str(getattr(release, "__name__", type(release).__name__)),
    )


def claim_of(release: Any, budget: Budget | float | None) -> Budget:
    """What is claimed of a release: the budget that was given, or the one of the estimator."""
    for given in (budget, getattr(release, "budget", None), getattr(release, "epsilon", None)):
        if given is not None and not callable(given):
            return as_budget(given)
    raise ParameterError("say what is claimed, such as budget=1.0.")


def outcomes_of(release: Any, data: Any, n: int) -> list[Any]:
    """What n releases from one data set give. An error is an outcome too."""
    released, found = released_by(release), []
    given = data if isinstance(data, tuple) else (data,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(n):
            try:
                found.append(released(*given))
            except Exception as error:  # noqa: BLE001 - whatever the release raises is its outcome
                found.append(Failed(f"{type(error).__name__}: {error}"))
    return found


def result_of(
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    budget: Budget,
    statistic: Statistic | None = None,
    confidence: float = 0.99,
    with_power: bool = True,
    name: str = "release",
) -> AuditResult:
    """The result of an attack on releases that were made before, equally many from either data set."""
    half = len(first) // 2
    one, other, are_vectors = vectors(first, second, half)
    samples = _Samples(one[:half], other[:half], one[half:], other[half:])
    setting = _Setting(budget, statistic, confidence)
    found = _attacked(samples, setting)
    # The same attack where both sides are releases from the first data set: it must show nothing.
    quarter = len(one) // 4
    own = _attacked(_Samples(*(one[k * quarter : (k + 1) * quarter] for k in range(4))), setting)
    failed = [side for side in (first, second) if all(isinstance(each, Failed) for each in side)]
    return AuditResult(
        name=name,
        budget=budget,
        confidence=confidence,
        statistic=found.name,
        n_learned=len(samples.first),
        n_counted=len(samples.counted_first),
        hits_first=found.hits_first,
        hits_second=found.hits_second,
        separation=found.separation,
        control=own.separation.spent(budget),
        power=_powers(samples, setting) if are_vectors and with_power else (),
        false_alarms=tuple(found.curve[0].tolist()),
        detections=tuple(found.curve[1].tolist()),
        failure=failed[0][0].error if len(failed) == 2 else None,
    )


@dataclass(frozen=True, slots=True)
class _Samples:
    """Releases that decide the event, and those that are counted."""

    first: Array
    second: Array
    counted_first: Array
    counted_second: Array

    def shrunk(self, factor: float) -> _Samples:
        """What the releases would be if their noise were this part of what it is: both sides drawn towards their means."""
        sides = []
        for learned_from, counted in ((self.first, self.counted_first), (self.second, self.counted_second)):
            mean = np.concatenate([learned_from, counted]).mean(axis=0)
            sides.append([mean + factor * (each - mean) for each in (learned_from, counted)])
        return _Samples(sides[0][0], sides[1][0], sides[0][1], sides[1][1])

    def with_details(self) -> _Samples:
        """The same with columns for the last bits and for what is missing, and without numbers that are not finite."""
        parts = (self.first, self.second, self.counted_first, self.counted_second)
        whole = bounded(with_bits(np.concatenate(parts)))
        return _Samples(*np.split(whole, np.cumsum([len(each) for each in parts])[:-1]))


@dataclass(frozen=True, slots=True)
class _Setting:
    budget: Budget
    statistic: Statistic | None
    confidence: float


@dataclass(frozen=True, slots=True)
class _Found:
    """An event and how often it was seen."""

    name: str
    hits_first: int
    hits_second: int
    separation: Separation
    curve: tuple[Array, Array]


def separation_of_samples(first: Sequence[Any], second: Sequence[Any]) -> float:
    """How often a learned classifier ranks a release from the first data set above one from the second: 1/2 to 1."""
    one, other, _ = vectors(first, second, len(first))
    whole = bounded(with_bits(np.concatenate([one, other])))

    def ranked(first_scores: Array, second_scores: Array) -> float:
        return float((first_scores[:, None] > second_scores).mean() + 0.5 * (first_scores[:, None] == second_scores).mean())

    _, *scores, _ = learned(whole[: len(one)], whole[len(one) :], ranked)
    return ranked(*scores)


def _attacked(samples: _Samples, setting: _Setting) -> _Found:
    """Choose the event by the first half of the releases and count it in the second."""
    n = len(samples.counted_first)

    def best(one: Array, other: Array) -> tuple[float, float]:
        return _threshold(one, other, n, setting)

    if setting.statistic is None:
        detailed = samples.with_details()
        statistic, one, other, name = learned(detailed.first, detailed.second, lambda a, b: best(a, b)[0])
        counted = [statistic(side) for side in (detailed.counted_first, detailed.counted_second)]
    else:
        name = "likelihood ratio"
        one, other, *counted = (
            np.nan_to_num(np.asarray(setting.statistic(side), dtype=np.float64))
            for side in (samples.first, samples.second, samples.counted_first, samples.counted_second)
        )
    _, threshold = best(one, other)
    hits = [int((side > threshold).sum()) for side in counted]
    separation = Separation(
        float(lower_bound(hits[0], n, setting.confidence)), float(upper_bound(hits[1], n, setting.confidence))
    )
    return _Found(name, hits[0], hits[1], separation, _curve(*counted))


def _threshold(first: Array, second: Array, n: int, setting: _Setting) -> tuple[float, float]:
    """(what n releases from either side would show, the threshold at which they show most)."""
    values = np.unique(np.concatenate([first, second]))
    middles = 0.5 * (values[1:] + values[:-1]) if len(values) > 1 else values
    if len(middles) > _MOST_THRESHOLDS:
        middles = middles[np.linspace(0, len(middles) - 1, _MOST_THRESHOLDS).astype(int)]
    one, other = (1.0 - np.searchsorted(np.sort(side), middles, side="right") / len(side) for side in (first, second))
    lows, highs = lower_bound(one * n, n, setting.confidence), upper_bound(other * n, n, setting.confidence)
    shown = [Separation(low, high).spent(setting.budget) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]
    if max(shown) <= 0.0:
        # Nothing would be shown, so the threshold that tells most of them apart is as good as any.
        return 0.0, float(middles[np.argmax(one - other)])
    best = int(np.argmax(shown))
    return shown[best], float(middles[best])


def _curve(first: Array, second: Array) -> tuple[Array, Array]:
    """Shares of false alarms and of detections at many thresholds, for a picture."""
    thresholds = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0.0, 1.0, 101)))
    return tuple((side[:, None] > thresholds).mean(axis=0) for side in (second, first))


def _powers(samples: _Samples, setting: _Setting) -> tuple[tuple[float, float], ...]:
    """Parts of the noise, each with the probability that this audit would then have refuted the claim.

    The part 0.8 is always among them, and so is the largest of `_FACTORS` at which the probability is at least 0.9.
    """
    found: dict[float, float] = {}

    def power(factor: float) -> float:
        if factor not in found:
            shrunk, n = _attacked(samples.shrunk(factor), setting), len(samples.counted_first)
            found[factor] = _chance(shrunk.hits_first / n, shrunk.hits_second / n, n, setting)
        return found[factor]

    power(0.8)
    low, high = 0, len(_FACTORS) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(_FACTORS[middle]) >= LIKELY else (middle + 1, high)
    power(_FACTORS[low])
    return tuple(sorted(found.items(), reverse=True))


def _chance(p: float, q: float, n: int, setting: _Setting) -> float:
    """Probability that counts of n releases, of events with these probabilities, refute the claim."""
    levels = (np.arange(_BINS) + 0.5) / _BINS
    lows = lower_bound(_quantiles(levels, n, p), n, setting.confidence)
    highs = upper_bound(_quantiles(levels, n, q), n, setting.confidence)
    limit, refuted = claimed(setting.budget), 0
    for low in np.unique(lows).tolist():
        times = int((lows == low).sum())
        refuted += times * sum(Separation(low, high).spent(setting.budget) > limit for high in highs.tolist())
    return refuted / _BINS**2


def _quantiles(levels: Array, n: int, p: float) -> Array:
    """Quantiles of the binomial law."""
    if not 0.0 < p < 1.0:
        return np.full(levels.shape, p * n)
    return np.asarray(np.clip(np.ceil(special.bdtrik(levels, n, p)), 0, n))
