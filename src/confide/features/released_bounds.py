"""What a schema says of bounds that were released from rows: how, and at which price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

from confide.errors import SchemaError
from confide.features.schema_checks import check_fields, finite_bound, is_list


@dataclass(frozen=True, slots=True)
class BoundsRelease:
    """The release from which the bounds of a column came, as its schema keeps it. It holds public facts alone.

    Parameters
    ----------
    quantiles : the quantiles of the column that became low and high, between 0 and 1
    outer : the public bounds between which they were looked for
    columns : all columns whose bounds were released together; the price is for all of them
    neighbours : the relation under which the release is private
    epsilon, delta, rho : the price of the release, as epsilon, epsilon and delta, or rho
    max_rows_per_person : the release protects a person with at most so many rows
    ledger : identity of the ledger that was charged, or None
    void : why the release has no guarantee; None if it has one

    Raises
    ------
    SchemaError
        If a value is of the wrong kind.
    """

    quantiles: tuple[float, ...]
    outer: tuple[float, ...]
    columns: tuple[str, ...]
    neighbours: str
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    max_rows_per_person: int = 1
    ledger: str | None = None
    void: str | None = None

    def __post_init__(self) -> None:
        where = "released"
        for key in ("quantiles", "outer"):
            numbers = getattr(self, key)
            if not is_list(numbers) or len(tuple(numbers)) != 2:
                raise SchemaError(f"{where}: {key} must be a list of two numbers.")
            object.__setattr__(self, key, tuple(finite_bound(where, key, number) for number in numbers))
        if not is_list(self.columns) or not all(isinstance(name, str) for name in self.columns):
            raise SchemaError(f"{where}: columns must be a list of names.")
        object.__setattr__(self, "columns", tuple(self.columns))
        for key in ("epsilon", "delta", "rho"):
            amount = getattr(self, key)
            is_amount = isinstance(amount, Real) and not isinstance(amount, bool) and 0.0 < float(amount) < math.inf
            if amount is not None and not is_amount:
                raise SchemaError(f"{where}: {key} must be a positive number.")
        if (self.epsilon is None) == (self.rho is None):
            raise SchemaError(f"{where}: give its price, as epsilon or as rho.")
        if isinstance(self.max_rows_per_person, bool) or not isinstance(self.max_rows_per_person, int):
            raise SchemaError(f'{where}: "max_rows_per_person" must be a whole number.')
        for key in ("neighbours", "ledger", "void"):
            if not isinstance(getattr(self, key), str | None):
                raise SchemaError(f"{where}: {key} must be text.")

    @property
    def price(self) -> str:
        """The price in words, for example "epsilon = 0.1 (replace-one)"."""
        amounts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        named = " and ".join(f"{name} = {amount:.12g}" for name, amount in amounts.items() if amount is not None)
        several = f", for persons with at most {self.max_rows_per_person:,} rows" if self.max_rows_per_person > 1 else ""
        return f"{named} ({self.neighbours}{several})"

    def sentences(self, ledger: str | None) -> tuple[str, ...]:
        """What a statement says of these bounds, for a fit that is charged to the ledger with this identity.

        The first sentence depends on the release alone.
        """
        names = " and ".join(f'"{name}"' for name in self.columns)
        bounds = f"The bounds of {names} were not declared"
        if self.void is not None:
            return (f"{bounds}; they came from rows by a release without a guarantee, which may reveal these rows.",)
        released = f"{bounds}; they came from rows by a private release that cost {self.price}."
        if ledger is not None and self.ledger == ledger:
            return released, "The release of these bounds was charged to the same ledger."
        uncovered = "is not covered here: where it used some of these rows, its cost adds to that of this release."
        return released, f"The release of these bounds {uncovered}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, as in a TOML file, without what has its default value."""
        facts = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        named = {name: fact for name, (fact, default) in facts.items() if fact != default}
        return {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in named.items()}


def release_of(where: str, described: object) -> BoundsRelease | None:
    """The release that a schema describes, or None.

    Raises
    ------
    SchemaError
        If the description is none. The message begins with `where`.
    """
    if described is None or isinstance(described, BoundsRelease):
        return described
    if not isinstance(described, Mapping):
        raise SchemaError(f"{where}: released must be a table, as `confide bounds` writes it.")
    check_fields(f"{where}, released", described, BoundsRelease)
    try:
        return BoundsRelease(**described)
    except SchemaError as error:
        message = str(error)
    raise SchemaError(f"{where}, {message}")
