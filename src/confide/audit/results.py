"""What an attack found, as a frozen value: for people, as JSON, and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confide.audit.confidence import Separation, claimed, currency
from confide.displays.axes import BLUE, ORANGE, axes_for
from confide.privacy.budgets import ApproxDP, Budget

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
        return self.separation.epsilon(self.budget.delta if isinstance(self.budget, ApproxDP) else 0.0)

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
        return self.separation.spent(self.budget)

    @property
    def refuted(self) -> bool:
        """Whether the releases refute the claim: more was spent than claimed. False proves nothing."""
        return self.failure is None and self.shown > claimed(self.budget)

    @property
    def is_sound(self) -> bool:
        """Whether the control showed nothing, as it must."""
        return self.control <= 0.0

    @property
    def visible_noise(self) -> float | None:
        """The largest part of the noise at which this audit would have refuted the claim with probability 0.9, if known."""
        seen = [factor for factor, power in self.power if power >= LIKELY]
        return max(seen) if seen else None

    def power_at(self, factor: float) -> float | None:
        """The estimated probability of a refutation if the noise were this part of what it is; None if it is not known."""
        return dict(self.power).get(factor)

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "name": self.name,
            "claimed": self.budget.to_dict(),
            "refuted": self.refuted,
            "confidence": self.confidence,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "mu": self.separation.mu,
            "delta_curve": [[epsilon, self.delta(epsilon)] for epsilon in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)],
            "statistic": self.statistic,
            "n_learned": self.n_learned,
            "n_counted": self.n_counted,
            "hits": [self.hits_first, self.hits_second],
            "probabilities": {"first_at_least": self.separation.low, "second_at_most": self.separation.high},
            "control": self.control,
            "power": [list(each) for each in self.power],
            "failure": self.failure,
        }

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """The result in whole sentences."""
        what, amount = currency(self.budget), claimed(self.budget)
        claim = f"The claim is {what} = {amount:.4g}"
        if self.failure is not None:
            return [f"{self.name}: every release ended with an error, so nothing was learned. The first one: {self.failure}"]
        verdict = "REFUTED" if self.refuted else "not refuted"
        control = "as it must" if self.is_sound else "AND IT MUST SHOW 0: do not trust this audit"
        shown = f"the releases show at least {what} = {self.shown:.3f} ({100 * self.confidence:g}% confidence)"
        learned = f"found by {self.statistic} in {self.n_learned:,} releases from either data set"
        hits = f"holds for {self.hits_first:,} from the first and {self.hits_second:,} from the second"
        found = [
            f"{self.name}: {verdict}. {claim}; {shown}.",
            f"The event, {learned}: of {self.n_counted:,} further releases it {hits}.",
            f"The same attack on two samples from one data set shows {self.control:.3f}, {control}.",
        ]
        if not self.refuted and self.power:
            found.append(_power_sentence(self.visible_noise, self.power_at(0.8)))
        elif not self.refuted:
            found.append("The power is not known, because the releases are not vectors of numbers.")
        return found

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
        ax.plot(x, [self._allowed(each) for each in x], color="0.4", linestyle="--", label="most that the claim allows")
        ax.plot(self.false_alarms, self.detections, color=BLUE, label="counted releases")
        ax.plot([self.separation.high], [self.separation.low], "o", color=ORANGE, label="bounds of the event")
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
        ax.set_xlabel("share of the second data set")
        ax.set_ylabel("share of the first data set")
        ax.set_title(f"{self.name}: {'refuted' if self.refuted else 'not refuted'}", loc="left", fontsize="medium")
        ax.legend(loc="lower right", frameon=False, fontsize="small")
        return ax

    def _allowed(self, q: float) -> float:
        """The largest probability that the claim allows an event whose probability under the other data set is q."""
        low, high = q, 1.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if Separation(middle, q).spent(self.budget) <= claimed(self.budget) else (low, middle)
        return low


def _power_sentence(visible: float | None, power: float | None) -> str:
    if visible is None:
        return "So many releases would hardly ever refute the claim, even with a fifth of the noise: take more of them."
    seen = f"Noise {100 * (1 - visible):.0f}% smaller than it is would have been refuted with probability {LIKELY:g}"
    return f"{seen}." if power is None else f"{seen}; noise 20% smaller, with probability {power:.2f}."
