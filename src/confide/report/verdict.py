"""The verdict on a released model: one line that a signer can act on, and the reasons behind it."""

from __future__ import annotations

from dataclasses import dataclass

from confide.cautions import cautions
from confide.guarantee import Guarantee
from confide.inference.table import SUPPOSED_NOTE
from confide.known_words import listed
from confide.report.ledger_facts import LedgerFacts
from confide.report.odds import guess_probability, percent, question_of

_NO_LEDGER = (
    "No ledger was given with this report. Other releases from the same rows would add to what is revealed, and are not "
    "counted here."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the report says first.

    Attributes
    ----------
    kind : "private", "caution" or "void"
    headline : one line
    sentences : why, and what it means
    """

    kind: str
    headline: str
    sentences: tuple[str, ...]


def verdict_of(
    guarantee: Guarantee,
    ledger: LedgerFacts | None,
    failures: tuple[str, ...] = (),
    supposed: tuple[str, ...] = (),
    doubts_of_rates: tuple[str, ...] = (),
) -> Verdict:
    """The verdict, from the guarantee, from what the ledger says of the model, and from what verification found wrong.

    A model without a ledger gets no green light: nobody can say what other releases from the same rows cost. Nor does one
    with `supposed`, names of coefficients whose intervals rest on more than the rows. Nor do rates of the model on private
    rows that were charged to no ledger, or have no guarantee: `doubts_of_rates` says so.
    """
    if guarantee.void is not None:
        return Verdict("void", "Not private. Do not release this model as a private one.", (guarantee.void, *failures))
    if failures:
        headline = "This file does not hold together: what it says does not follow from its facts; do not sign."
        return Verdict("void", headline, failures)
    meaning = (
        f"Someone who knows everything else, and guesses at even odds {question_of(guarantee)}, is right with probability "
        f"at most {percent(guess_probability(guarantee.budget))} after seeing the model."
    )
    of_more = [f"{listed(supposed)}: {SUPPOSED_NOTE}"] if supposed else []
    doubts = [*unusual_of(guarantee), *_doubts_of_ledger(ledger)]
    if doubts_of_rates and not doubts:
        headline = "Private, and charged; but the rates shown with it are not private, or were charged to no known ledger."
        return Verdict("caution", headline, (meaning, *of_more, *doubts_of_rates))
    if supposed and not doubts:
        headline = "Private, and charged. The noise hides what the rows tell about a named coefficient."
        return Verdict("caution", headline, (meaning, *of_more))
    doubts += [*of_more, *doubts_of_rates]
    if not doubts:
        sentence = "" if ledger is None else ledger.sentence()
        return Verdict(
            "private", "Private, and charged. Ready to sign once the points below are confirmed.", (meaning, sentence)
        )
    if unusual_of(guarantee):
        return Verdict("caution", "Private in form, but the budget is so large that it promises little.", (meaning, *doubts))
    return Verdict("caution", "Private by itself. What all releases cost together is not shown.", (meaning, *doubts))


def unusual_of(guarantee: Guarantee) -> tuple[str, ...]:
    """What is unusual about the budget, from the public facts of the guarantee."""
    low, high = guarantee.n_rows or (1, 1)
    return cautions(guarantee.budget, low, high)


def _doubts_of_ledger(ledger: LedgerFacts | None) -> list[str]:
    if ledger is None:
        return [_NO_LEDGER]
    if not ledger.holds_the_charge:
        return [ledger.sentence()]
    return [] if ledger.unit_note is None else [ledger.unit_note]
