"""Amounts of privacy in three currencies, their conversions, and the relation between neighbouring data sets.

The values are frozen and hold public facts alone. Conversions go from stronger to weaker notions and are rounded outwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from numbers import Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from confide.errors import ParameterError, as_float, wording
from confide.known_words import words_of

# Conversions from concentrated to approximate privacy, as functions of numbers. Proof: proofs/gaussian.md, section 8.

_ORDERS = 1.0 + np.geomspace(1e-4, 1e8, 2**15)
_LOGS = np.log1p(-1.0 / _ORDERS) - np.log(_ORDERS) / (_ORDERS - 1.0)


def _order_penalty(delta: float) -> Any:
    """What each order adds to epsilon when a Rényi divergence is converted to (epsilon, delta).

    log(1 - 1/a) - (log delta + log a) / (a - 1), Canonne, Kamath and Steinke (2020), proposition 12. Any order is valid.
    """
    return _LOGS - math.log(delta) / (_ORDERS - 1.0)


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Least epsilon over a grid of orders such that rho-zCDP implies (epsilon, delta)."""
    if rho == math.inf:
        return math.inf
    epsilon = float((rho * _ORDERS + _order_penalty(delta)).min())
    return max(0.0, epsilon + 1e-12 + abs(epsilon) * 2.0**-40) if rho > 0.0 else 0.0


def concentrated_limit(epsilon: float, delta: float) -> tuple[float, float]:
    """Largest rho such that rho-zCDP implies (epsilon, delta), and the order of the grid at which it does."""
    rhos = (epsilon * (1.0 - 2.0**-40) - 1e-12 - _order_penalty(delta)) / _ORDERS
    best = int(rhos.argmax())
    return max(0.0, float(rhos[best]) * (1.0 - 2.0**-40)), float(_ORDERS[best])


_UP = 1.0 + 2.0**-40


class Neighbours(StrEnum):
    """Which two data sets the guarantee calls neighbours."""

    REPLACE_ONE = "replace-one"
    """Same number of rows, one row changed in any way. The number of rows is public."""
    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    """One row more or less. The number of rows is private; only declared bounds on it are public."""

    @classmethod
    def parse(cls, value: object) -> Neighbours:
        """The member named by `value`.

        Parameters
        ----------
        value : str or Neighbours
            "replace-one" or "add-or-remove-one".

        Raises
        ------
        ParameterError
            If it names no member.
        """
        try:
            return cls(str(value))
        except ValueError:
            raise ParameterError(f"neighbours must be one of {words_of(cls, value)}.") from None


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Positive numbers in declared ranges: what the three currencies have in common."""

    kind: ClassVar[str]
    title: ClassVar[str]
    ranges: ClassVar[dict[str, tuple[float, float]]]

    def __post_init__(self) -> None:
        for name, (low, high) in self.ranges.items():
            value = as_float(getattr(self, name))
            if not (low <= value <= high or (name != "delta" and value == math.inf)):
                also = "" if name == "delta" else " (float('inf') for a model without privacy)"
                raise ParameterError(f"{name} must be a number from {low:g} to {high:g}{also}.")
            object.__setattr__(self, name, value)

    @classmethod
    def of_sum(cls, *amounts: float) -> Self:
        """What several charges cost together. Unlike the budget of a release it may be 0.

        Parameters
        ----------
        *amounts : float
            The numbers of the currency, in its order; none is negative.

        Raises
        ------
        ParameterError
            If an amount is negative or not a number.
        """
        if not all(amount >= 0.0 for amount in amounts):
            raise ParameterError("a sum of charges is not negative.")
        total = cls(*(low for low, _ in cls.ranges.values()))
        for name, amount in zip(cls.ranges, amounts, strict=True):
            object.__setattr__(total, name, float(amount))
        return total

    @property
    def amounts(self) -> dict[str, float]:
        """Its numbers by name: epsilon, epsilon and delta, or rho."""
        return {name: getattr(self, name) for name in self.ranges}

    @property
    def symbol(self) -> str:
        """The name of its first number: "epsilon" or "rho"."""
        return next(iter(self.ranges))

    @property
    def amount(self) -> float:
        """Its first number: epsilon or rho."""
        return self.amounts[self.symbol]

    @property
    def slack(self) -> float:
        """Probability of an event outside of which it promises what it says: its delta; 0 where it has none."""
        return self.amounts.get("delta", 0.0)

    @property
    def is_pure(self) -> bool:
        """Whether it is an epsilon without a delta."""
        return self.kind == "pure"

    @property
    def is_approximate(self) -> bool:
        """Whether it is an epsilon with a delta."""
        return self.kind == "approximate"

    @property
    def is_concentrated(self) -> bool:
        """Whether it is a rho."""
        return self.kind == "zcdp"

    @property
    def is_private(self) -> bool:
        """False for an infinite epsilon or rho."""
        return all(map(math.isfinite, self.amounts.values()))

    def __str__(self) -> str:
        if not self.is_private:
            return f"no privacy ({self.symbol} is infinite)"
        return f"{self.title} with {' and '.join(f'{name} = {amount:.12g}' for name, amount in self.amounts.items())}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {"kind": self.kind, **{n: v if math.isfinite(v) else "inf" for n, v in self.amounts.items()}}


@dataclass(frozen=True, slots=True, order=True)
class PureDP(_Amounts):
    """Pure differential privacy: no outcome becomes more than exp(epsilon) times as likely through one row.

    Parameters
    ----------
    epsilon : float
        From 1e-9 to 1e9; ``math.inf`` means no privacy at all.

    Raises
    ------
    ParameterError
        If epsilon is outside its range.
    """

    kind: ClassVar[str] = "pure"
    title: ClassVar[str] = "pure differential privacy"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"epsilon": (1e-9, 1e9)}
    epsilon: float

    def to_zcdp(self) -> ZCDP:
        """The least rho that it implies: epsilon tanh(epsilon / 2). Proof: accounting/proofs/ledger.md, lemma 2."""
        return ZCDP.of_sum(self.epsilon * math.tanh(0.5 * self.epsilon) * _UP if self.is_private else math.inf)

    def to_approx(self, delta: float) -> ApproxDP:
        """The same epsilon; pure privacy needs no delta.

        Parameters
        ----------
        delta : float
            From 1e-30 to 0.5.

        Returns
        -------
        ApproxDP
            A budget with this delta.

        Raises
        ------
        ParameterError
            If delta is outside its range.
        """
        return ApproxDP(self.epsilon, delta)


@dataclass(frozen=True, slots=True, order=True)
class ApproxDP(_Amounts):
    """Approximate differential privacy: P(S) <= exp(epsilon) Q(S) + delta for every set S of outcomes.

    Parameters
    ----------
    epsilon : float
        From 1e-9 to 1e9; ``math.inf`` means no privacy at all.
    delta : float
        From 1e-30 to 0.5. Far below one over the number of rows, or it protects nobody.

    Raises
    ------
    ParameterError
        If epsilon or delta is outside its range.
    """

    kind: ClassVar[str] = "approximate"
    title: ClassVar[str] = "approximate differential privacy"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"epsilon": (1e-9, 1e9), "delta": (1e-30, 0.5)}
    epsilon: float
    delta: float

    def to_approx(self, delta: float) -> ApproxDP:
        """The same with a larger delta.

        Parameters
        ----------
        delta : float
            At least the present one, and at most 0.5.

        Returns
        -------
        ApproxDP
            A budget with this delta.

        Raises
        ------
        ParameterError
            If delta is smaller than the present one.
        """
        if not as_float(delta) >= self.delta:
            raise ParameterError("an approximate guarantee cannot be turned into one with a smaller delta.")
        return ApproxDP(self.epsilon, delta)


@dataclass(frozen=True, slots=True, order=True)
class ZCDP(_Amounts):
    """Zero-concentrated differential privacy: Rényi divergence of order a at most rho a, for every a > 1.

    Parameters
    ----------
    rho : float
        From 1e-12 to 1e9; ``math.inf`` means no privacy at all.

    Raises
    ------
    ParameterError
        If rho is outside its range.
    """

    kind: ClassVar[str] = "zcdp"
    title: ClassVar[str] = "zero-concentrated differential privacy"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"rho": (1e-12, 1e9)}
    rho: float

    def to_approx(self, delta: float) -> ApproxDP:
        """The least epsilon for this delta, by Canonne, Kamath and Steinke (2020), proposition 12.

        Parameters
        ----------
        delta : float
            Strictly between 0 and 1.

        Returns
        -------
        ApproxDP
            A budget with this delta.

        Raises
        ------
        ParameterError
            If delta is outside its range.
        """
        if not 0.0 < (share := as_float(delta)) < 1.0:
            raise ParameterError("delta must lie strictly between 0 and 1.")
        return ApproxDP.of_sum(concentrated_epsilon(self.rho, share), share)


Budget: TypeAlias = PureDP | ApproxDP | ZCDP


def pure_within(rho: float) -> float:
    """The largest epsilon whose pure privacy is rho-concentrated: epsilon tanh(epsilon / 2) = rho, rounded down."""
    # The function lies below epsilon and epsilon^2 / 2, and above rho at the sum of their roots and 1.
    low, high = 0.0, rho + math.sqrt(2.0 * rho) + 1.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if middle * math.tanh(0.5 * middle) <= rho else (low, middle)
    return low * (1.0 - 2.0**-38)


def pure_epsilon(budget: Budget) -> float:
    """The largest epsilon whose pure privacy a private budget allows."""
    return pure_within(budget.amount) if budget.is_concentrated else budget.amount


def with_amount(budget: Budget, amount: float) -> Budget:
    """The budget with another epsilon or rho; a delta stays as it is."""
    return type(budget)(*(budget.amounts | {budget.symbol: amount}).values())


def share_of(budget: Budget, share: float) -> Budget:
    """A part of a budget. Parts whose shares add up to 1 cost at most the whole together, by basic composition.

    The factor 1 - 2^-50 rounds each part down, so that rounding cannot make the sum exceed the whole.
    """
    if share == 1.0 or not budget.is_private:
        return budget
    return type(budget)(*(share * amount * (1.0 - 2.0**-50) for amount in budget.amounts.values()))


def shown_amounts(budget: Budget, digits: str = "") -> str:
    """The numbers of a budget or of a sum of charges for a sentence, for example "epsilon = 0.5, delta = 1e-06"."""
    return ", ".join(f"{name} = {amount:{digits}g}" for name, amount in budget.amounts.items())


def budget_of_row(budget: Budget, n_rows: int) -> Budget:
    """What the release may cost one row, so that it costs a person with up to `n_rows` rows the budget.

    Group privacy with k rows: e = epsilon / k; rho / k^2; and for (epsilon, delta) a delta of delta (exp(e) - 1) /
    (exp(epsilon) - 1).
    """
    if n_rows == 1 or not budget.is_private:
        return budget
    down = 1.0 - 2.0**-40
    try:
        if budget.is_concentrated:
            return ZCDP(budget.amount / n_rows**2 * down)
        epsilon = budget.amount / n_rows * down
        if budget.is_pure:
            return PureDP(epsilon)
        # The ratio of the exponentials, in terms that do not overflow.
        share = math.exp(epsilon - budget.amount) * math.expm1(-epsilon) / math.expm1(-budget.amount)
        return ApproxDP(epsilon, budget.slack * share * down)
    except ParameterError:
        raise ParameterError(wording("budget cannot be shared", n_rows=n_rows)) from None


_CURRENCIES: dict[str, type[PureDP] | type[ApproxDP] | type[ZCDP]] = {c.kind: c for c in (PureDP, ApproxDP, ZCDP)}


def budget_from_dict(value: dict[str, Any]) -> Budget:
    """Read the form written by `to_dict`."""
    currency = _CURRENCIES.get(value.get("kind", ""))
    if currency is None or set(value) != {"kind", *currency.ranges}:
        raise ParameterError("a budget of an unknown kind.")
    return currency(*(math.inf if value[name] == "inf" else value[name] for name in currency.ranges))


def as_budget(value: object) -> Budget:
    """A budget; a bare number means pure differential privacy with that epsilon."""
    if isinstance(value, (PureDP, ApproxDP, ZCDP)):
        return replace(value)  # refuses the empty sum of a ledger
    if isinstance(value, Real) and not isinstance(value, bool):
        return PureDP(value)  # type: ignore[arg-type]  # any real number; PureDP checks it
    raise ParameterError("budget must be a positive number (epsilon), or a PureDP, ApproxDP or ZCDP.")
