"""What the signer has to confirm: facts about people, rows and machines that no program can check."""

from __future__ import annotations

from confide.guarantee import Guarantee
from confide.report.ledger_facts import LedgerFacts
from confide.training.assumptions import steps_sentence

NOT_PROMISED = (
    "It does not hide what is true of the whole population, nor what follows from that about a person.",
    "It covers this release only. Other releases from the same rows add to what is revealed; a ledger adds them up.",
    "It does not hold if the holder of the data publishes the rows, or the seed of the noise, in another way.",
    "It does not cover the time that the fit took, nor other traces on the machine where it ran.",
)


def points_to_confirm(
    guarantee: Guarantee, ledger: LedgerFacts | None, person_column: str | None, *, has_prior: bool = False
) -> tuple[str, ...]:
    """The sentences of the checklist. Each can be confirmed or not by the signer."""
    if guarantee.void is not None:
        return ()
    rows = guarantee.max_rows_per_person
    of_person = "at most one row is" if rows == 1 else f"at most {rows:,} rows are"
    persons = (
        f"Of each person, {of_person} in the data."
        if person_column is None
        else f'All rows of one person, and no others, have the same value in the column "{person_column}".'
    )
    releases = (
        "No other release was made from these rows, or somebody adds up what all of them cost."
        if ledger is None
        else "Every release from these rows is in the ledger, also those made with other tools and by other people."
    )
    labels = (
        ("The labels were not declared. None of them points to a single person.",)
        if guarantee.circumstances is not None and not guarantee.circumstances.labels_declared
        else ()
    )
    prior = ("The model used as a prior came from where the technical appendix says.",) if has_prior else ()
    return (
        persons,
        "Bounds, categories, labels and parameters were written down without looking at the rows.",
        steps_sentence(() if guarantee.circumstances is None else guarantee.circumstances.learned_steps),
        *labels,
        "Which rows are in the data, and how they were cleaned, was decided for each row by itself.",
        releases,
        *prior,
        "The fit ran on a machine that outsiders can neither read nor time, with its operating system's random numbers.",
        "Nothing else that was computed from the rows is released with the model: no score, count, log or fingerprint.",
    )
