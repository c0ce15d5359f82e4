"""Attacks on releases of two neighbouring data sets: what an event shows of the privacy that was spent.

The first half of the releases decides the event: a statistic and a threshold. The second half is counted. So the bound holds
whatever was tried on the first half.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import betaincinv, ndtri

from confide.array_types import Array
from confide.audit.releases import Statistic, arguments_of, bounded, learned, released_by, vectors, with_bits
from confide.blocks import as_json
from confide.effects.picture import BLUE, ORANGE, axes_for
from confide.errors import ParameterError, as_float, checked_count, checked_flag
from confide.privacy.budgets import Budget, as_budget

# What two counts say about a guarantee: Clopper-Pearson bounds, and the amounts of privacy that they refute.
#
# Source: Clopper and Pearson (1934); Jagielski, Ullman and Oprea (2020), "Auditing differentially private machine
# learning".

_ORDERS = 1.0 + np.geomspace(1e-3, 30.0, 200)


def lower_bound(hits: Any, n: int, confidence: float) -> Any:
    """Clopper and Pearson's bound from below on a probability: it is too high with probability (1 - confidence) / 2.

    Parameters
    ----------
    hits : int or array of numbers
        How often the event was seen.
    n : int
        Out of how many.
    confidence : float in (0, 1)
        Of this bound and the upper one together.
    """
    bounds = betaincinv(np.maximum(hits, 1e-300), n - np.asarray(hits) + 1.0, 0.5 - 0.5 * confidence)
    return np.where(np.asarray(hits) <= 0, 0.0, bounds)[()]


def upper_bound(hits: Any, n: int, confidence: float) -> Any:
    """The same from above; see `lower_bound`."""
    return 1.0 - lower_bound(n - np.asarray(hits), n, confidence)


@dataclass(frozen=True, slots=True)
class Separation:
    """An event that is likely under one data set and unlikely under its neighbour.

    Attributes
    ----------
    low : float in [0, 1]
        The event has at least this probability under the first data set.
    high : float in [0, 1]
        It has at most this probability under the second.
    """

    low: float
    high: float

    def epsilon(self, delta: float = 0.0) -> float:
        """The least epsilon at this delta that allows such an event, at least 0."""
        ends = ((self.low, self.high), (1.0 - self.high, 1.0 - self.low))
        ratios = [math.log((inside - delta) / max(outside, 1e-300)) for inside, outside in ends if inside > delta]
        return max(0.0, *ratios, 0.0)

    def delta(self, epsilon: float) -> float:
        """The least delta at this epsilon that allows such an event, at least 0."""
        factor = math.exp(min(epsilon, 700.0))
        return max(0.0, self.low - factor * self.high, (1.0 - self.high) - factor * (1.0 - self.low))

    @property
    def rho(self) -> float:
        """The least rho of zero-concentrated privacy that allows such an event, at least 0."""
        if self.low <= self.high:
            return 0.0
        laws = np.array([[self.low, 1.0 - self.low], [self.high, 1.0 - self.high]])
        logs = np.log(np.maximum(laws, 1e-300))
        return rho_of(laws[0], laws[1], logs[0] - logs[1])

    @property
    def mu(self) -> float:
        """The least mu of Gaussian privacy that allows such an event, at least 0."""
        p, q = min(self.low, 1.0 - 1e-300), max(self.high, 1e-300)
        return max(0.0, float(ndtri(p) - ndtri(q))) if p > q else 0.0


def amount_shown(spent: Any, budget: Budget) -> float:
    """What a result shows of the budget's own currency: epsilon at its delta, or rho."""
    return float(spent.rho if budget.is_concentrated else spent.epsilon(budget.slack))


def currency(budget: Budget) -> str:
    """What `amount_shown` measures for this budget."""
    return f"{budget.symbol} at delta {budget.slack:g}" if budget.is_approximate else budget.symbol


def rho_of(first: Array, second: Array, losses: Array) -> float:
    """The rho of zero-concentrated privacy that two laws on the same points need, over orders from 1.001 to 31.

    Parameters
    ----------
    first, second : (n,) probabilities of the points
    losses : (n,) logarithms of the first over the second
    """
    rho = 0.0
    for chances, ratios in ((first, losses), (second, -losses)):
        kept = chances > 0.0
        logs = np.log(chances[kept]) + (_ORDERS[:, None] - 1.0) * ratios[kept]
        top = logs.max(axis=1)
        divergences = (top + np.log(np.exp(logs - top[:, None]).sum(axis=1))) / (_ORDERS - 1.0)
        rho = max(rho, float((divergences / _ORDERS).max()))
    return rho


# What an attack found, as a frozen value: for people, as JSON, and as a picture.

LIKELY = 0.9
"""The power that the text of a result speaks of."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an attack on two neighbouring data sets found.

    Attributes
    ----------
    name : str
        What was audited.
    budget : Budget
        What was claimed.
    confidence : float
        The lower bound is too high with at most probability 1 - confidence.
    statistic : str
        By what the attack told the two data sets apart.
    n_learned, n_counted : int
        Releases from either data set that decided the event, and those that were counted.
    hits_first, hits_second : int
        Of the counted releases from the first and from the second data set, how many lie in the event.
    separation : Separation
        Bounds on the two probabilities of the event. Every lower bound follows from them.
    control : float
        What the same attack shows where both sides are releases from the first data set. It must be 0.
    power : tuple of (float, float)
        Parts of the noise, each with the estimated probability that this audit would have refuted the claim if the noise
        were that part of what it is. Empty where releases are not vectors of numbers.
    false_alarms, detections : tuple of float
        Shares of the counted releases from the second and from the first data set beyond many thresholds, for the picture.
    failure : str or None
        The error with which every release from either data set ended, if all of them did.
    """

    name: str
    budget: Budget
    confidence: float
    statistic: str
    n_learned: int
    n_counted: int
    hits_first: int
    hits_second: int
    separation: Separation
    control: float
    power: tuple[tuple[float, float], ...]
    false_alarms: tuple[float, ...] = ()
    detections: tuple[float, ...] = ()
    failure: str | None = None

    @property
    def epsilon(self) -> float:
        """Lower bound on epsilon, at the delta that was claimed, or at 0."""
        return self.separation.epsilon(self.budget.slack)

    @property
    def rho(self) -> float:
        """Lower bound on rho of zero-concentrated privacy."""
        return self.separation.rho

    def delta(self, epsilon: float) -> float:
        """Lower bound on delta at this epsilon. All of these bounds hold together."""
        return self.separation.delta(epsilon)

    @property
    def shown(self) -> float:
        """Lower bound on what was spent, in the currency of the claim."""
        return amount_shown(self.separation, self.budget)

    @property
    def refuted(self) -> bool:
        """Whether the releases refute the claim: more was spent than claimed. False proves nothing."""
        return self.failure is None and self.shown > self.budget.amount

    @property
    def is_sound(self) -> bool:
        """Whether the control showed nothing, as it must."""
        return self.control <= 0.0

    @property
    def visible_noise(self) -> float | None:
        """The largest part of the noise at which this audit would have refuted the claim with probability 0.9, if known."""
        return max((factor for factor, power in self.power if power >= LIKELY), default=None)

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return as_json(
            self,
            "name claimed refuted confidence epsilon rho mu delta_curve statistic n_learned n_counted hits probabilities "
            "control power failure",
            claimed=self.budget.to_dict(),
            mu=self.separation.mu,
            delta_curve=[[epsilon, self.delta(epsilon)] for epsilon in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)],
            hits=[self.hits_first, self.hits_second],
            probabilities={"first_at_least": self.separation.low, "second_at_most": self.separation.high},
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """The result in whole sentences."""
        what, amount = currency(self.budget), self.budget.amount
        claim = f"The claim is {what} = {amount:.4g}"
        if self.failure is not None:
            return [f"{self.name}: every release ended with an error, so nothing was learned. The first one: {self.failure}"]
        verdict = "REFUTED" if self.refuted else "not refuted"
        control = "as it must" if self.is_sound else "AND IT MUST SHOW 0: do not trust this audit"
        shown = f"the releases show at least {what} = {self.shown:.3f} ({100 * self.confidence:g}% confidence)"
        learned = f"found by {self.statistic} in {self.n_learned:,} releases from either data set"
        hits = f"holds for {self.hits_first:,} from the first and {self.hits_second:,} from the second"
        sentences = [
            f"{self.name}: {verdict}. {claim}; {shown}.",
            f"The event, {learned}: of {self.n_counted:,} further releases it {hits}.",
            f"The same attack on two samples from one data set shows {self.control:.3f}, {control}.",
        ]
        if not self.refuted and self.power:
            visible, power = self.visible_noise, dict(self.power).get(0.8)
            seen = "So many releases would hardly ever refute the claim, even with a fifth of the noise: take more of them"
            if visible is not None:
                smaller = f"Noise {100 * (1 - visible):.0f}% smaller than it is"
                seen = f"{smaller} would have been refuted with probability {LIKELY:g}"
                seen += "" if power is None else f"; noise 20% smaller, with probability {power:.2f}"
            sentences.append(f"{seen}.")
        elif not self.refuted:
            sentences.append("The power is not known, because the releases are not vectors of numbers.")
        return sentences

    def plot(self, ax: Any = None) -> Any:
        """Draw how well the releases tell the data sets apart, beside what the claim allows.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None
            Axes to draw on; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ParameterError
            If Matplotlib is not installed.
        """
        ax = axes_for("plot", ax, (4.8, 4.4))
        x = [k / 200 for k in range(201)]
        ax.plot(x, [self._allowed(share) for share in x], color="0.4", linestyle="--", label="most that the claim allows")
        ax.plot(self.false_alarms, self.detections, color=BLUE, label="counted releases")
        ax.plot([self.separation.high], [self.separation.low], "o", color=ORANGE, label="bounds of the event")
        where = "share beyond the threshold,"
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel=f"{where} second data set", ylabel=f"{where} first data set")
        ax.set_title(f"{self.name}: {'refuted' if self.refuted else 'not refuted'}", loc="left", fontsize="medium")
        ax.legend(loc="lower right", frameon=False, fontsize="small")
        return ax

    def _allowed(self, q: float) -> float:
        """The largest probability that the claim allows an event whose probability under the other data set is q."""
        low, high = q, 1.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            is_allowed = amount_shown(Separation(middle, q), self.budget) <= self.budget.amount
            low, high = (middle, high) if is_allowed else (low, middle)
        return low


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
    checked_count("n_releases", n_releases, _LEAST_RELEASES)
    if not 0.0 < as_float(confidence) < 1.0:
        raise ParameterError("confidence must be a number strictly between 0 and 1.")
    return result_of(
        *(outcomes_of(release, data, n_releases) for data in (first, second)),
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
    released, outcomes, given = released_by(release), [], arguments_of(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(n):
            try:
                outcomes.append(released(*given))
            except Exception as error:  # noqa: BLE001 - whatever the release raises is its outcome
                outcomes.append(RuntimeError(f"{type(error).__name__}: {error}"))
    return outcomes


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
    half, quarter = len(first) // 2, len(first) // 4
    one, other, are_vectors = vectors(first, second, half)
    event: Any = partial(_event, budget=budget, statistic=statistic, confidence=confidence)
    found_by, hits, separation, counted = event(one, other, half)
    # The same attack where both sides are releases from the first data set: it must show nothing.
    own = [np.concatenate([one[start : start + quarter], one[start + 2 * quarter :][:quarter]]) for start in (0, quarter)]
    thresholds = np.unique(np.quantile(np.concatenate(counted), np.linspace(0.0, 1.0, 101)))
    detections, false_alarms = ((side[:, None] > thresholds).mean(axis=0).tolist() for side in counted)
    failures = [str(outcome) if isinstance(outcome, RuntimeError) else None for outcome in (*first, *second)]
    return AuditResult(
        name=name,
        budget=budget,
        confidence=confidence,
        statistic=found_by,
        n_learned=half,
        n_counted=len(one) - half,
        hits_first=hits[0],
        hits_second=hits[1],
        separation=separation,
        control=amount_shown(event(*own, quarter)[2], budget),
        power=_powers(event, one, other, half) if are_vectors and with_power else (),
        false_alarms=tuple(false_alarms),
        detections=tuple(detections),
        failure=None if None in failures else failures[0],
    )


def separation_of_samples(first: Sequence[Any], second: Sequence[Any]) -> float:
    """How often a learned classifier ranks a release from the first data set above one from the second: 1/2 to 1."""
    one, other, _ = vectors(first, second, len(first))
    whole = bounded(with_bits(np.concatenate([one, other])))

    def ranked(first_scores: Array, second_scores: Array) -> float:
        return float((first_scores[:, None] > second_scores).mean() + 0.5 * (first_scores[:, None] == second_scores).mean())

    _, *scores, _ = learned(whole[: len(one)], whole[len(one) :], ranked)
    return ranked(*scores)


def _event(
    first: Array, second: Array, n_learned: int, budget: Budget, statistic: Statistic | None, confidence: float
) -> tuple[str, list[int], Separation, list[Array]]:
    """Choose the event by the first releases of either side, and count it in the others.

    Returns the name of the statistic, how often either side showed the event, what this says, and the scores counted.
    """
    n = len(first) - n_learned

    def best(one: Array, other: Array) -> tuple[float, float]:
        return _threshold(one, other, n, budget, confidence)

    name = "likelihood ratio"
    if statistic is None:
        detailed = bounded(with_bits(np.concatenate([first, second])))
        first, second = detailed[: len(first)], detailed[len(first) :]
        statistic, one, other, name = learned(first[:n_learned], second[:n_learned], lambda a, b: best(a, b)[0])
        counted = [statistic(side[n_learned:]) for side in (first, second)]
    else:
        sides = (first[:n_learned], second[:n_learned], first[n_learned:], second[n_learned:])
        one, other, *counted = (np.nan_to_num(np.asarray(statistic(side), dtype=np.float64)) for side in sides)
    _, threshold = best(one, other)
    hits = [int((side > threshold).sum()) for side in counted]
    low, high = float(lower_bound(hits[0], n, confidence)), float(upper_bound(hits[1], n, confidence))
    return name, hits, Separation(low, high), counted


def _threshold(first: Array, second: Array, n: int, budget: Budget, confidence: float) -> tuple[float, float]:
    """(what n releases from either side would show, the threshold at which they show most)."""
    values = np.unique(np.concatenate([first, second]))
    middles = 0.5 * (values[1:] + values[:-1]) if len(values) > 1 else values
    if len(middles) > _MOST_THRESHOLDS:
        middles = middles[np.linspace(0, len(middles) - 1, _MOST_THRESHOLDS).astype(int)]
    one, other = (1.0 - np.searchsorted(np.sort(side), middles, side="right") / len(side) for side in (first, second))
    lows, highs = lower_bound(one * n, n, confidence), upper_bound(other * n, n, confidence)
    shown = [amount_shown(Separation(*ends), budget) for ends in zip(lows.tolist(), highs.tolist(), strict=True)]
    if max(shown) <= 0.0:
        # Nothing would be shown, so the threshold that tells most of them apart is as good as any.
        return 0.0, float(middles[np.argmax(one - other)])
    best = int(np.argmax(shown))
    return shown[best], float(middles[best])


def _powers(event: partial[Any], first: Array, second: Array, n_learned: int) -> tuple[tuple[float, float], ...]:
    """Parts of the noise, each with the probability that this audit would then have refuted the claim.

    The part 0.8 is always among them, and so is the largest of `_FACTORS` at which the probability is at least 0.9.
    """
    n, means = len(first) - n_learned, [side.mean(axis=0) for side in (first, second)]
    chances: dict[float, float] = {}
    levels = (np.arange(_BINS) + 0.5) / _BINS

    def power(factor: float) -> float:
        if factor in chances:
            return chances[factor]
        # What the releases would be if their noise were this part of what it is: both sides drawn towards their means.
        shrunk = [mean + factor * (side - mean) for mean, side in zip(means, (first, second), strict=True)]
        quantiles = [stats.binom.ppf(levels, n, hits / n) for hits in event(*shrunk, n_learned)[1]]
        budget, confidence = event.keywords["budget"], event.keywords["confidence"]
        highs, refuted = upper_bound(quantiles[1], n, confidence).tolist(), 0
        for low, times in zip(*np.unique(lower_bound(quantiles[0], n, confidence), return_counts=True), strict=True):
            shown = [amount_shown(Separation(float(low), high), budget) for high in highs]
            refuted += int(times) * sum(amount > budget.amount for amount in shown)
        chances[factor] = refuted / _BINS**2
        return chances[factor]

    power(0.8)
    low, high = 0, len(_FACTORS) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(_FACTORS[middle]) >= LIKELY else (middle + 1, high)
    power(_FACTORS[low])
    return tuple(sorted(chances.items(), reverse=True))
