"""What a ledger says of a released model: the limit, what is spent and left, and whether it holds the model's charge."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from confide.accounting.batches import charges_of
from confide.accounting.ledger import Ledger
from confide.errors import wording
from confide.guarantee import Guarantee
from confide.privacy.budgets import Budget, shown_amounts
from confide.training.charge import VOID_MARK

_RELATIVE = 1e-9
"""Amounts that differ by less are the same one, written and read again."""
_NO_FITS = ("evaluate", "private bounds")
"""What the library calls releases that are no models, where it names the purpose itself."""
_FIT = re.compile(rf"(\w+)\.fit({re.escape(VOID_MARK)})?")
"""How the library names the release of a fit."""


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
    charge : number of the charge that names the checksum of the model's file, or None
    cohort : the cohort that alone paid it, whose `spent` and `left` these are; None for everybody
    unnamed : numbers of the charges that have the model's budget and name no file, if none names the model's
    other_files : number and checksum of each charge that has the model's budget and names another file, likewise
    says_charged : whether the model's own guarantee says that it was charged to a ledger
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
    cohort: str | None
    unnamed: tuple[int, ...]
    other_files: tuple[tuple[int, str], ...]
    says_charged: bool
    disagreement: str | None
    unit_note: str | None
    entries: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, ledger: Ledger, guarantee: Guarantee, sha256: str, name: str = "", estimator: str = "") -> LedgerFacts:
        """The facts of a ledger about a model with this guarantee, whose file has this checksum, made by this estimator."""
        entries = charges_of(ledger)
        charges = _charges_of(entries, guarantee, sha256, estimator)
        charges["disagreement"] = _disagreement(ledger, guarantee) or charges["disagreement"]
        says_charged = guarantee.circumstances is not None and guarantee.circumstances.ledger is not None
        cohort = entries[charges["charge"] - 1].get("cohort") if charges["charge"] else None
        note = unit_note(ledger.max_rows_per_person, guarantee.max_rows_per_person)
        return cls(
            name=name, limit=ledger.limit, spent=ledger.spent(cohort), left=ledger.remaining(cohort), cohort=cohort,
            neighbours=str(ledger.neighbours), max_rows_per_person=ledger.max_rows_per_person, charges=len(entries),
            head=ledger.head, says_charged=says_charged, unit_note=note, entries=tuple(entries), **charges,
        )  # fmt: skip

    @property
    def holds_the_charge(self) -> bool:
        """Whether a charge of the ledger names the model's file, and the ledger can be that of the model."""
        return self.charge is not None and self.disagreement is None

    @property
    def account(self) -> str:
        """What is spent and left, in words; with the persons for whom it holds, where the model protects others."""
        spent, limit, left = (shown_amounts(budget, ".6") for budget in (self.spent, self.limit, self.left))
        whose = "" if self.unit_note is None else f"; for persons with at most {_rows(self.max_rows_per_person)}"
        whose += "" if self.cohort is None else f'; for the persons of the cohort "{self.cohort}"'
        return f"{spent} spent of {limit}; {left} left{whose}"

    @property
    def may_hold_the_charge(self) -> bool:
        """Whether some charge could be that of the model, and none names its file."""
        return bool(self.unnamed) and self.disagreement is None

    def sentence(self) -> str:
        """Whether the model was charged, in words."""
        if self.disagreement is not None:
            return self.disagreement
        *first, last = map(str, self.unnamed or (0,))
        if self.charge is not None:
            said = f"Charge {self.charge} of the ledger names the checksum of this model's file."
            said += "" if self.cohort is None else f' The persons of the cohort "{self.cohort}" paid it, and nobody else.'
        elif first:
            said = f"Charges {', '.join(first)} and {last} have this model's budget and name no file; which one is this "
            said += "model's, if any, cannot be told from the ledger."
        elif self.unnamed:
            said = f"Charge {last} has this model's budget and names no file; whether it is this model's cannot be told "
            said += "from the ledger."
        elif self.other_files:
            said = " ".join(f"Charge {n} has this budget but names another file ({own[:8]})." for n, own in self.other_files)
        else:
            said = "The ledger holds no charge of a model of this kind with this budget."
        alone = "" if self.says_charged else " The model's own guarantee does not say that it was charged to a ledger."
        return said + alone

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        facts = {one.name: getattr(self, one.name) for one in fields(self)}
        facts |= {name: getattr(self, name).to_dict() for name in ("limit", "spent", "left")}
        facts |= {"by_checksum": self.charge is not None, "unnamed": list(self.unnamed), "entries": list(self.entries)}
        return facts | {"other_files": [{"charge": number, "sha256": sha256} for number, sha256 in self.other_files]}


def same_rows_note(ledger: Ledger, guarantee: Guarantee, sha256: str) -> str | None:
    """What to say before an evaluation that is charged to the ledger of the model's own fit; None if it is another one."""
    return wording("ledger of the fit") if LedgerFacts.of(ledger, guarantee, sha256).holds_the_charge else None


def unit_note(rows_of_ledger: int, rows: int) -> str | None:
    """Why the amounts of a ledger are not those of persons with so many rows; None if they are.

    A charge that protects one row costs a person with two rows more, by group privacy; the ledger does not count that.
    """
    if rows <= rows_of_ledger:
        return None
    return wording("ledger counts fewer rows", counted=_rows(rows_of_ledger), protected=_rows(rows), rows=rows)


def _charges_of(entries: list[dict[str, Any]], guarantee: Guarantee, sha256: str, estimator: str) -> dict[str, Any]:
    """The newest charge that names the checksum; without one, all charges of the model's kind that have its budget.

    The names are those of fields of `LedgerFacts`; there is a disagreement if a charge names the file and is too small.
    """
    facts: dict[str, Any] = {"charge": None, "unnamed": (), "other_files": (), "disagreement": None}
    possible = [entry for entry in entries if _is_of_kind(entry, guarantee, estimator)]
    named = [entry for entry in reversed(possible) if sha256 and entry.get("sha256") == sha256]
    if paid := [int(entry["number"]) for entry in named if pays_for(entry, guarantee.budget)]:
        return facts | {"charge": paid[0]}
    if named:
        charge = f"Charge {named[0]['number']} of the ledger names the checksum of this model's file"
        return facts | {"disagreement": f"{charge}, but its amount does not cover the model's budget."}
    equal = [(int(entry["number"]), entry.get("sha256")) for entry in possible if _has_budget(entry, guarantee)]
    unnamed = tuple(number for number, file in equal if file is None)
    return facts | {"unnamed": unnamed, "other_files": tuple(pair for pair in equal if pair[1] is not None)}


def _is_of_kind(entry: dict[str, Any], guarantee: Guarantee, estimator: str) -> bool:
    """Whether a charge can be that of a fit of this estimator. One of a purpose in other words can be, for all we know."""
    fitted = estimator_of(entry)
    if guarantee.void is None and name_of_release(entry).endswith(VOID_MARK):
        return False
    if fitted is not None:
        return not estimator or fitted in (estimator, "PrivateSearchCV")
    return not entry.get("release") and not name_of_release(entry).startswith(_NO_FITS)


def name_of_release(entry: Mapping[str, Any]) -> str:
    """What the library calls the release of a charge. Where a ledger keeps no such detail, it is in place of a purpose."""
    return entry.get("release") or entry.get("purpose") or ""


def estimator_of(entry: Mapping[str, Any]) -> str | None:
    """The estimator whose fit was charged; None if the charge was for something else, or its purpose is in other words."""
    match = _FIT.fullmatch(name_of_release(entry))
    return None if match is None else match[1]


def pays_for(entry: Mapping[str, Any], budget: Budget) -> bool:
    """Whether a charge is at least a budget, in its own currency. What was planned together has one charge, a larger one."""
    return all((entry.get(name) or 0.0) >= own * (1.0 - _RELATIVE) for name, own in budget.amounts.items())


def _has_budget(entry: dict[str, Any], guarantee: Guarantee) -> bool:
    amounts = guarantee.budget.amounts
    if any(entry.get(name) for name in ("epsilon", "delta", "rho") if name not in amounts):
        return False
    pairs = [(entry.get(name), own) for name, own in amounts.items()]
    return all(charged is not None and math.isclose(charged, own, rel_tol=_RELATIVE) for charged, own in pairs)


def _disagreement(ledger: Ledger, guarantee: Guarantee) -> str | None:
    if ledger.neighbours is not guarantee.neighbours:
        return f"The ledger counts {ledger.neighbours}, and the model is private under {guarantee.neighbours}."
    if guarantee.max_rows_per_person < ledger.max_rows_per_person:
        return wording("ledger of more rows", ledger=ledger.max_rows_per_person, model=guarantee.max_rows_per_person)
    stated = None if guarantee.circumstances is None else guarantee.circumstances.ledger
    if stated is None:
        return None
    if stated.identity != ledger.identity:
        return "The model was charged to another ledger: its file names one with another identity."
    if (stated.limit, stated.max_rows_per_person) != (ledger.limit, ledger.max_rows_per_person):
        return "The model was charged to a ledger with another limit, or for persons with another number of rows."
    return None


def _rows(number: int) -> str:
    return f"{number:,} row{'s' if number > 1 else ''}"
