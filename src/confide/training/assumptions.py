"""The assumptions of a guarantee: the sentences that must be true for it to hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from confide.budget_warnings import attempts_sentence, void_because
from confide.callers import learned_before
from confide.data.arrays import PLACES
from confide.effects.monotone import monotone_sentence
from confide.erm.row_bounds import BallBound
from confide.errors import sentences_in
from confide.expected_noise import l1_ratio
from confide.features.columns import codes_sentence
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.features.schema import Schema
from confide.guarantee import Circumstances, Guarantee, NamedLedger, Search
from confide.intake.specification import CheckedRows
from confide.models.prior import Prior
from confide.privacy.budgets import Neighbours
from confide.privacy.noise import LARGEST_PROVEN_EPSILON
from confide.second_account import OPENDP
from confide.training.charge import Charge
from confide.training.plan import AnyPlan, sums_beside
from confide.training.settings import Settings

SENTENCES = sentences_in(Path(__file__).with_suffix(".txt"))
"""What a guarantee may say, by names of what it is about; braces stand for what is filled in."""


def circumstances_of(
    problem: Any, rows: CheckedRows, prior: Prior | None, charge: Charge, search: Search | None = None
) -> Circumstances:
    """The public facts of a fit besides its plan: all that the sentences of its guarantee need.

    Whatever a sentence says must follow from them, from the plan and from the model's public parts: `confide verify` writes
    the sentences again and refuses a file that has others.

    Parameters
    ----------
    problem : the public facts of the problem, which have the number of rows
    rows : the checked rows
    prior : the prior of the fit, or None
    charge : where the release is charged
    search : how the model is chosen, if it is
    """
    ledger = charge.ledger
    named = None if ledger is None else NamedLedger(ledger.identity, ledger.limit, ledger.max_rows_per_person)
    return Circumstances(
        (problem.n_rows_low, problem.n_rows_high),
        labels_declared=rows.labels_declared,
        has_weights=rows.has_weights,
        place=rows.source.place,
        seeded=charge.seed is not None,
        ledger=named,
        prior_in_ledger=prior is not None and named is not None and prior.ledger == named.identity,
        search=search,
        learned_steps=learned_before(() if rows.columns.feature_names_in is None else rows.columns.feature_names_in),
        attempts=charge.attempt,
        opendp=OPENDP,
    )


def steps_sentence(learned: tuple[str, ...]) -> str:
    """What is assumed of the steps before a fit, of which these learned from the rows."""
    if not learned:
        return SENTENCES["nothing learned"]
    return f"What {' and '.join(learned)} learned from the rows before the fit, without noise, is public anyway."


def guarantee_of(
    plan: AnyPlan, of_rows: Iterable[str], encoder: Encoder | None, circumstances: Circumstances, unusual: tuple[str, ...]
) -> Guarantee:
    """The guarantee of a release by this plan, with the assumptions it rests on.

    Parameters
    ----------
    plan : the plan of the release
    of_rows : what is assumed about rows, labels and weights, see `sentences_of_rows`
    encoder : the encoder of the schema, which may name the column of persons; or None
    circumstances : the other public facts of the fit, see `circumstances_of`
    unusual : what is unusual about the budget, see `confide.budget_warnings`
    """
    problem, ledger, is_private = plan.problem, circumstances.ledger, plan.budget.is_private
    void = void_because(is_private, 0 if circumstances.seeded else None, "the model may reveal any row")
    schema, of_columns, of_codes = None, dict[str, str](), tuple[str, ...]()
    without_guarantee: dict[str, list[str]] = {}
    if encoder is not None:
        schema, columns = encoder.schema, encoder.schema.columns
        of_codes = codes_sentence(columns)
        for column in columns:
            for release in column.releases:
                of_columns |= dict.fromkeys(release.sentences(None if ledger is None else ledger.identity), release.what)
                if release.void is not None:
                    without_guarantee.setdefault(release.what, []).append(f'"{column.name}"')
        if void is None and without_guarantee:
            facts = " and the ".join(f"{what} of {' and '.join(names)}" for what, names in without_guarantee.items())
            void = f"The {facts} came from a release without a guarantee, which may reveal rows."
    released = " and ".join(dict.fromkeys(of_columns.values()))
    said = [*_of_persons_and_bounds(problem, schema, is_private=is_private, released=released)]
    said += [steps_sentence(circumstances.learned_steps)] if is_private else []
    said += [*of_columns, *of_codes, *of_rows, *_of_loss_and_penalty(plan)]
    said += [] if plan.intervals is None else [plan.intervals.sentence(is_private=is_private)]
    for part in plan.parts:
        said.append(part.query.sentence(part))
    if (other := getattr(plan, "without", None)) is not None:
        moved = " and moved by their middle, whose noisy sum is released before" if other.parts else ""
        said.append(SENTENCES["without features"].format(problem=other.problem, moved=moved))
    if void is None and plan.lattice is not None:
        said += _of_noise(plan, circumstances, unusual)
    sentences, rows = (*said, *attempts_sentence(circumstances.attempts)), problem.rows_per_person
    return Guarantee(plan.event.budget, problem.neighbours, plan.mechanism, sentences, void, rows, circumstances)


def of_weights(guarantee: Guarantee, chosen: AnyPlan) -> Guarantee:
    """The guarantee of a release that had two plans of the weights, once it is known by which one they were made.

    What was charged, and what is promised, are the same for both.
    """
    sentence = SENTENCES[f"chosen {chosen.mechanism}"]
    return replace(guarantee, mechanism=chosen.mechanism, assumptions=(*guarantee.assumptions, sentence))


def _of_persons_and_bounds(problem: Any, schema: Schema | None, *, is_private: bool, released: str) -> Iterator[str]:
    """What is assumed about persons, the number of rows, and the bound on a row."""
    rows = problem.rows_per_person
    if schema is not None and schema.person is not None:
        drawn = "one row, drawn at random, counts" if rows == 1 else f"{rows:,} rows, drawn at random, count"
        yield SENTENCES["column of persons"].format(column=schema.person, drawn=drawn)
    else:
        yield f"Each person contributed {'one row' if rows == 1 else f'{rows:,} rows'} at most."
    if schema is not None and schema.cohort is not None:
        yield SENTENCES["cohort"].format(column=schema.cohort[0], value=schema.cohort[1])
    if problem.neighbours is Neighbours.REPLACE_ONE:
        yield f"The number of rows, {problem.n_rows_low:,}, is public."
    else:
        yield SENTENCES["private number"].format(problem=problem)
    chosen = "; bounds, categories and parameters were chosen without looking at the rows"
    chosen += f", apart from the {released} that were released." if released else "."
    with_intercept = " with the intercept" if problem.intercept > 0.0 else ""
    # Nobody declared the norm 1: it holds where no bound is given.
    which = "default" if problem.row_bound == BallBound(1.0) else "declared"
    chosen = chosen if is_private else "."
    yield SENTENCES["bound on rows"].format(which=which, problem=problem, with_intercept=with_intercept, chosen=chosen)
    if any(getattr(problem.row_bound, "centre", ())):
        yield SENTENCES["known middle"].format(bound=problem.row_bound)


def _of_noise(plan: AnyPlan, facts: Circumstances, unusual: tuple[str, ...]) -> Iterator[str]:
    """The assumptions of a private release that do not concern its rows."""
    ledger = facts.ledger
    yield from (SENTENCES["reading"], SENTENCES["checks"], *unusual)
    yield SENTENCES["grid"].format(grid=plan.grid_sentence())
    yield SENTENCES["second account" if facts.opendp else "one account"].format(version=facts.opendp)
    draws = sum(part.noise is not None for part in (plan, *sums_beside(plan)))
    if draws and not plan.event.budget.is_concentrated and plan.event.budget.amount > LARGEST_PROVEN_EPSILON:
        yield SENTENCES["no proof"].format(largest=LARGEST_PROVEN_EPSILON)
    elif draws:
        yield SENTENCES["far draws"].format(exponent=200 - draws)
    if ledger is None:
        yield SENTENCES["no ledger"]
        return
    rows, other = ledger.max_rows_per_person, ""
    if rows != plan.problem.rows_per_person:
        persons = f" for persons with at most {rows:,} row{'s' if rows > 1 else ''}"
        other = f"{persons}; a person with more rows can pay more than that for its other charges"
    yield SENTENCES["ledger"].format(limit=ledger.limit, other=other)


def sentences_of_rows(
    target: str, settings: Settings, circumstances: Circumstances, encoder: Encoder | None, fourier: PublicMap | None
) -> tuple[str, ...]:
    """What is assumed about labels or targets, the weights of rows and classes, and the place where the rows lie.

    It also says where the prior came from, and what is done with the released weights afterwards.

    Parameters
    ----------
    target : what is said about the labels or the targets
    settings : the parameters of the fit
    circumstances : the other public facts of the fit
    encoder, fourier : how rows enter the fit
    """
    place, prior, ledger = PLACES[circumstances.place], settings.prior, circumstances.ledger
    said, largest = [target], settings.largest_sample_weight
    # Random features of a schema are among what the schema says.
    if fourier is not None and (encoder is None or encoder.appended is None):
        said.append(f"The map of rows to {fourier} was chosen without looking at the rows.")
    if circumstances.has_weights or largest != 1.0:
        said.append(SENTENCES["weights"].format(largest=largest))
    if settings.class_weight is not None:
        named = ", ".join(f"{label!r}: {weight:g}" for label, weight in settings.class_weight)
        said.append(f"The weights of the classes, {{{named}}}, were chosen without looking at the rows.")
    if place:
        said.append(place)
    if settings.penalty is not None:
        said.append(SENTENCES["penalised in groups" if settings.keeps_groups else "penalised"])
    if prior is not None:
        said.append(prior.sentence(None if ledger is None else ledger.identity))
    if settings.monotone:
        said.append(monotone_sentence(dict(settings.monotone)))
    return tuple(said)


def _of_loss_and_penalty(plan: AnyPlan) -> Iterator[str]:
    """What is assumed about a loss or a penalty that a user wrote, where slopes are clipped, and which weights become 0."""
    loss, penalty = getattr(plan.problem, "loss", None), plan.problem.penalty.function
    if loss is not None and loss.constants.is_declared:
        yield _of_declared_loss(loss)
    if loss is not None and loss.constants.threshold is not None:
        residual = "of a count from its mean" if loss.constants.is_count else "of a target from its prediction"
        longer = ", times the largest norm of a row over the norm of the row," if loss.constants.by_length else ""
        yield SENTENCES["threshold"].format(residual=residual, threshold=loss.threshold, longer=longer)
    if penalty is not None:
        yield f"{SENTENCES['penalty']} {SENTENCES['user code']}".format(penalty=penalty)
    if (share := l1_ratio(plan)) != 0.0 and plan.lattice is not None:
        yield SENTENCES["l1 penalty"].format(share=share)


def _of_declared_loss(loss: Any) -> str:
    """What is assumed about a loss that a user wrote."""
    declared = loss if not loss.constants.convex or loss.constants.joint is None else loss.loss
    name = "slopes" if not loss.constants.convex else "loss" if loss is declared else "interpolated loss"
    sign = " and never positive" if declared.constants.monotone else ""
    return f"{SENTENCES[name]} {SENTENCES['user code']}".format(loss=loss, declared=declared, sign=sign)
