"""What a ledger says of a released model: the limit, what is spent and left, and whether it holds the model's charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from confide.accounting.ledger import Ledger
from confide.guarantee import Guarantee
from confide.privacy.budgets import Budget

_RELATIVE = 1e-9
"""Amounts that differ by less are the same one, written and read again."""


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """Facts of a ledger. They are public: a ledger holds no data.

    Attributes
    ----------
    name : where the ledger is, or ""
    limit, spent, left : Budget
    neighbours : str
    max_rows_per_person : int
    charges : number of charges
    head : hash of the last record
    charge : number of the charge that belongs to the model, or None
    by_checksum : whether that charge names the checksum of the model's file; otherwise it has the model's budget
    disagreement : why the ledger cannot be that of the model; None if it can
    unit_note : why its amounts are not those of the persons whom the model protects; None if they are
    entries : the charges as JSON values
    """

    name: str
    limit: Budget
    spent: Budget
    left: Budget
    neighbours: str
    max_rows_per_person: int
    charges: int
    head: str
    charge: int | None
    by_checksum: bool
    disagreement: str | None
    unit_note: str | None
    entries: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, ledger: Ledger, guarantee: Guarantee, sha256: str, name: str = "") -> LedgerFacts:
        """The facts of a ledger about a model with this guarantee, whose file has this checksum."""
        entries = [{key: _json_form(value) for key, value in row.items()} for row in ledger.entries().to_dict("records")]
        number, by_checksum = _charge_of(entries, guarantee, sha256)
        return cls(
            name=name,
            limit=ledger.limit,
            spent=ledger.spent(),
            left=ledger.remaining(),
            neighbours=str(ledger.neighbours),
            max_rows_per_person=ledger.max_rows_per_person,
            charges=len(entries),
            head=ledger.head,
            charge=number,
            by_checksum=by_checksum,
            disagreement=_disagreement(ledger, guarantee),
            unit_note=unit_note(ledger.max_rows_per_person, guarantee.max_rows_per_person),
            entries=tuple(entries),
        )

    @property
    def holds_the_charge(self) -> bool:
        """Whether the ledger holds a charge of this model, and can be its ledger."""
        return self.charge is not None and self.disagreement is None

    @property
    def account(self) -> str:
        """What is spent and left, in words; with the persons for whom it holds, where the model protects others."""
        amounts = f"{shown_amount(self.spent)} spent of {shown_amount(self.limit)}; {shown_amount(self.left)} left"
        return (
            amounts if self.unit_note is None else f"{amounts}; for persons with at most {_rows(self.max_rows_per_person)}"
        )

    def sentence(self) -> str:
        """Whether the model was charged, in words."""
        if self.disagreement is not None:
            return self.disagreement
        if self.charge is None:
            return "The ledger holds no charge of this model's budget."
        if self.by_checksum:
            return f"Charge {self.charge} of the ledger names the checksum of this model's file."
        return f"Charge {self.charge} of the ledger has this model's budget; it names no checksum."

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        budgets = {"limit": self.limit, "spent": self.spent, "left": self.left}
        names = ("name", "neighbours", "max_rows_per_person", "charges", "head", "charge", "by_checksum", "disagreement")
        return {
            **{name: getattr(self, name) for name in names},
            "unit_note": self.unit_note,
            **{name: budget.to_dict() for name, budget in budgets.items()},
            "entries": list(self.entries),
        }


def same_rows_note(ledger: Ledger, guarantee: Guarantee, sha256: str) -> str | None:
    """What to say before an evaluation that is charged to the ledger of the model's own fit; None if it is another one."""
    if not LedgerFacts.of(ledger, guarantee, sha256).holds_the_charge:
        return None
    return (
        "This ledger holds a charge like that of the model's fit. The rows of the evaluation must not be those of the fit: "
        "on them a model looks better than it is. Rows of other people have a ledger of their own."
    )


def unit_note(rows_of_ledger: int, rows: int) -> str | None:
    """Why the amounts of a ledger are not those of persons with so many rows; None if they are.

    A charge that protects one row costs a person with two rows more, by group privacy; the ledger does not count that.
    """
    if rows <= rows_of_ledger:
        return None
    return (
        f"The ledger counts what persons with at most {_rows(rows_of_ledger)} pay. This release protects persons with at "
        f"most {_rows(rows)}, and the other charges of the ledger can cost them more than it counts. To count for them, "
        f"open a ledger with --max-rows-per-person {rows} (in Python max_rows_per_person={rows}) before the first release."
    )


def shown_amount(budget: Budget) -> str:
    """The amounts of a budget or of a sum of charges, in a few characters."""
    return ", ".join(f"{name} = {getattr(budget, name):.6g}" for name in budget.ranges)


def _charge_of(entries: list[dict[str, Any]], guarantee: Guarantee, sha256: str) -> tuple[int | None, bool]:
    """The newest charge that names the checksum, or without one the newest that has the budget and no other checksum."""
    for entry in reversed(entries):
        if sha256 and entry.get("sha256") == sha256:
            return int(entry["number"]), True
    amounts = {name: getattr(guarantee.budget, name) for name in guarantee.budget.ranges}
    for entry in reversed(entries):
        found = {name: entry.get(name) for name in ("epsilon", "delta", "rho")}
        has_budget = all(
            found[name] is not None and math.isclose(found[name], amount, rel_tol=_RELATIVE)
            for name, amount in amounts.items()
        )
        others = [found[name] for name in found if name not in amounts and found[name]]
        if has_budget and not others and entry.get("sha256") is None and "(void" not in entry["purpose"]:
            return int(entry["number"]), False
    return None, False


def _disagreement(ledger: Ledger, guarantee: Guarantee) -> str | None:
    if ledger.neighbours is not guarantee.neighbours:
        return f"The ledger counts {ledger.neighbours}, and the model is private under {guarantee.neighbours}."
    if guarantee.max_rows_per_person < ledger.max_rows_per_person:
        return (
            f"The ledger is for persons with up to {ledger.max_rows_per_person} rows, and the model protects "
            f"{guarantee.max_rows_per_person} at a time."
        )
    stated = [sentence for sentence in guarantee.assumptions if "charged to a ledger with the limit: " in sentence]
    if stated and str(ledger.limit) not in stated[0]:
        return "The model was charged to a ledger with another limit."
    return None


def _json_form(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _rows(number: int) -> str:
    return f"{number:,} row{'s' if number > 1 else ''}"
