"""The assumptions of a guarantee: the sentences that must be true for it to hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confide.callers import learned_before
from confide.data.checked_source import PLACES
from confide.effects.monotone import monotone_sentence
from confide.erm.row_bounds import BallBound
from confide.expected_noise import l1_ratio
from confide.features.checks import BoundsRelease
from confide.features.columns import codes_sentence
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.guarantee import Circumstances, Guarantee, NamedLedger, Search
from confide.intake.specification import CheckedRows
from confide.models.prior import Prior
from confide.plan_text import sums_beside
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.noise import LARGEST_PROVEN_EPSILON
from confide.training.charge import Charge
from confide.training.plan import AnyPlan
from confide.training.settings import Settings

_CHECKED = (
    "The rows were checked beforehand for shape, labels and finite values and, with a schema, for cells that a column "
    "cannot hold and for columns without any cell that the schema lists or bounds; the fact that they passed is not "
    "protected."
)
_CHOSEN = "; bounds, categories and parameters were chosen without looking at the rows."
_CHOSEN_BUT_RELEASED = (
    "; bounds, categories and parameters were chosen without looking at the rows, apart from the bounds that were released."
)
_DEFAULT_BOUND = BallBound(1.0)
IF_CODE_FAILS = (
    "Where this code raises an error or returns something else than such numbers, the fit is refused and nothing that it "
    "says is shown; the fact that it was not refused is not protected."
)
"""Said of every loss and every penalty that a user wrote."""


PENALISED = (
    "The ridge is a quadratic form that was chosen without looking at the rows. Rows were brought to its norm and clipped "
    "there, and the weights are given for rows as they were."
)
"""Said of every fit with a quadratic form whose rows are brought to its norm."""
PENALISED_IN_GROUPS = (
    "The ridge is a quadratic form that was chosen without looking at the rows. Rows were clipped by the schema, which "
    "bounds them in its norm too, and the noise has the shape of their columns in that norm."
)
"""Said of every other fit with a quadratic form."""


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
    )


def steps_sentence(learned: tuple[str, ...]) -> str:
    """What is assumed of the steps before a fit, of which these learned from the rows."""
    if not learned:
        return "No step before the fit, such as scaling, filling of gaps or a choice of columns, learned from the rows."
    return f"What {' and '.join(learned)} learned from the rows before the fit, without noise, is public anyway."


def guarantee_of(
    plan: AnyPlan,
    of_rows: Iterable[str],
    encoder: Encoder | None,
    circumstances: Circumstances,
    unusual: tuple[str, ...],
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
    problem, ledger = plan.problem, circumstances.ledger
    released_bounds = _released_bounds(encoder, ledger)
    person_column = None if encoder is None else encoder.schema.person
    void = void_because(plan.budget, 0 if circumstances.seeded else None, "the model may reveal any row") or _void_bounds(
        encoder
    )
    is_guaranteed = void is None and plan.lattice is not None
    sentences = (
        _persons(problem.rows_per_person, person_column),
        _number_of_rows(problem),
        _bound(problem, is_private=plan.budget.is_private, some_released=bool(released_bounds)),
        *([steps_sentence(circumstances.learned_steps)] if plan.budget.is_private else []),
        *released_bounds,
        *(() if encoder is None else codes_sentence(encoder.schema.columns)),
        *of_rows,
        *_declared(problem),
        *_clipped_slopes(problem),
        *_own_penalty(problem),
        *_zeros(plan),
        *([] if plan.intervals is None else [plan.intervals.sentence(is_private=plan.budget.is_private)]),
        *(part.query.sentence(part) for part in plan.parts),
        *(_private_release(plan, ledger, unusual) if is_guaranteed else ()),
        *attempts_sentence(circumstances.attempts),
    )
    rows = problem.rows_per_person
    return Guarantee(plan.event.budget, problem.neighbours, plan.mechanism, sentences, void, rows, circumstances)


def void_because(budget: Budget, seed: int | None, consequence: str) -> str | None:
    """Why there is no guarantee: there is no noise, or the noise can be subtracted. None if there is a guarantee."""
    if not budget.is_private:
        return f"The budget is infinite: no noise was added, and {consequence}."
    if seed is not None:
        return "The noise came from a fixed seed (random_state): whoever knows or guesses the seed can subtract it."
    return None


def _number_of_rows(problem: Any) -> str:
    if problem.neighbours is Neighbours.REPLACE_ONE:
        return f"The number of rows, {problem.n_rows_low:,}, is public."
    return (
        f"The number of rows is private; it lies between the declared bounds {problem.n_rows_low:,} and "
        f"{problem.n_rows_high:,}, which were not learned from the rows."
    )


def _bound(problem: Any, *, is_private: bool, some_released: bool) -> str:
    chosen = _CHOSEN_BUT_RELEASED if some_released else _CHOSEN
    with_intercept = " with the intercept" if problem.intercept > 0.0 else ""
    # Nobody declared the norm 1: it holds where no bound is given.
    which = "default" if problem.row_bound == _DEFAULT_BOUND else "declared"
    return (
        f"Every row is clipped to its {which} bound (L2 norm {problem.row_norm:.6g}{with_intercept})"
        f"{chosen if is_private else '.'}"
    )


def _released_bounds(encoder: Encoder | None, ledger: NamedLedger | None) -> tuple[str, ...]:
    """Which bounds of the schema came from rows, by releases of their own."""
    identity = None if ledger is None else ledger.identity
    releases = _released_by_column(encoder).values()
    return tuple(dict.fromkeys(sentence for release in releases for sentence in release.sentences(identity)))


def _released_by_column(encoder: Encoder | None) -> dict[str, BoundsRelease]:
    columns = () if encoder is None else encoder.schema.columns
    return {column.name: column.released for column in columns if column.is_number and column.released is not None}


def _void_bounds(encoder: Encoder | None) -> str | None:
    """Why the bounds of the schema leave no guarantee; None if they were declared, or released privately."""
    releases = _released_by_column(encoder).items()
    names = " and ".join(f'"{name}"' for name, release in releases if release.void is not None)
    return f"The bounds of {names} came from a release without a guarantee, which may reveal rows." if names else None


def _private_release(plan: AnyPlan, ledger: NamedLedger | None, unusual: tuple[str, ...]) -> tuple[str, ...]:
    """The assumptions of a private release that do not concern its rows."""
    exact = (
        f"It holds for every bit of the released weights{plan.grid_sentence()} with exact noise; it relies on the operating "
        f"system's random numbers, which every draw reads, and on functions of the mathematical library whose errors are no "
        f"larger than the proof pages allow for."
    )
    draws = sum(part.noise is not None for part in (plan, *sums_beside(plan)))
    return (
        "How the rows were read into memory, such as the types of columns, did not depend on single rows.",
        _CHECKED,
        *unusual,
        exact,
        *([_failure(plan.event.budget, draws)] if draws else []),
        _ledger(ledger, plan.problem),
    )


def attempts_sentence(attempt: int) -> tuple[str, ...]:
    """What a release assumes of the earlier attempts under its charge, by its own number; empty for the first one."""
    if attempt == 1:
        return ()
    earlier = "An earlier attempt" if attempt == 2 else f"{attempt - 1} earlier attempts"
    sentence = (
        f"{earlier} at this release, under the same charge, ended before anything was released. What ended it depended "
        f"neither on the rows nor on its noise; an attempt of which this is not true counts as one more release at the same "
        f"cost."
    )
    return (sentence,)


def _ledger(ledger: NamedLedger | None, problem: Any) -> str:
    if ledger is None:
        return (
            "No ledger records this release, so nothing adds it up with other releases from these rows; it covers this fit "
            "alone. Scores computed on private rows, and choices made from them, are not covered."
        )
    return (
        f"It was charged to a ledger with the limit: {ledger.limit}{_fewer_rows(ledger, problem)}; what is "
        f"not charged there is not counted."
    )


def sentences_of_rows(
    target: str,
    settings: Settings,
    circumstances: Circumstances,
    encoder: Encoder | None,
    fourier: PublicMap | None,
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
    return (
        target,
        *_kernel(encoder, fourier),
        *_weights(circumstances.has_weights, settings.largest_sample_weight, settings.class_weight),
        *([place] if place else []),
        *([] if settings.penalty is None else [PENALISED_IN_GROUPS if settings.keeps_groups else PENALISED]),
        *([prior.sentence(None if ledger is None else ledger.identity)] if prior is not None else []),
        *([monotone_sentence(dict(settings.monotone))] if settings.monotone else []),
    )


def _kernel(encoder: Encoder | None, fourier: PublicMap | None) -> tuple[str, ...]:
    """What is assumed about the random features of a kernel. Those of a schema are among what the schema says."""
    is_of_schema = encoder is not None and encoder.appended is not None
    if fourier is None or is_of_schema:
        return ()
    return (f"The map of rows to {fourier} was chosen without looking at the rows.",)


def _weights(
    given: bool, largest_sample_weight: float, class_weight: tuple[tuple[Any, float], ...] | None
) -> tuple[str, ...]:
    """What is assumed about the weights of rows and classes; empty if every row counts 1."""
    sentences = []
    if given or largest_sample_weight != 1.0:
        sentences.append(
            f"The weight of a row was made from that row alone, and lies between 0 and the declared cap "
            f"{largest_sample_weight:g}; not all are 0. That they passed these checks is not protected."
        )
    if class_weight is not None:
        named = ", ".join(f"{label!r}: {weight:g}" for label, weight in class_weight)
        sentences.append(f"The weights of the classes, {{{named}}}, were chosen without looking at the rows.")
    return tuple(sentences)


def _declared(problem: Any) -> tuple[str, ...]:
    """What is assumed about a loss that a user wrote."""
    loss = getattr(problem, "loss", None)
    if loss is None or not loss.constants.is_declared:
        return ()
    if not loss.constants.convex:
        sentence = (
            f"The computed slope of the loss {loss.constants.name} depends only on the row's own score and label or target; "
            f"it is used at multiples of {loss.width:g} and interpolated between them, so nothing else is assumed of the "
            f"loss. {IF_CODE_FAILS}"
        )
        return (sentence,)
    declared = loss if loss.constants.joint is None else loss.loss
    sign = " and never positive" if declared.monotone else ""
    if loss is not declared:
        sentence = (
            f"The loss {declared.name} is convex: its computed slopes{sign} never fall as the score rises, to within "
            f"{declared.rounding:g} units of rounding, and depend on the row's own score and label or target alone. They "
            f"are clipped to the declared {declared.lipschitz:.6g}, used at multiples of {loss.width:g} and interpolated "
            f"between them. This was checked on a grid of public numbers, not proven. {IF_CODE_FAILS}"
        )
        return (sentence,)
    sentence = (
        f"The loss {loss.name} is convex and has the declared constants: derivative at most {loss.lipschitz:.6g} in "
        f"absolute value{sign}, changing at most {loss.smoothness:.6g} times as fast as the score, computed to within "
        f"{loss.rounding:g} units of rounding; its value for a row depends only on that row. This was checked on a grid "
        f"of public numbers, not proven. {IF_CODE_FAILS}"
    )
    return (sentence,)


def _own_penalty(problem: Any) -> tuple[str, ...]:
    """What is assumed about a penalty that a user wrote."""
    penalty = getattr(problem, "penalty", None)
    if penalty is None:
        return ()
    sentence = (
        f"The penalty {penalty.name} was chosen without looking at the rows, is differentiable and has the declared "
        f"constants: it is {penalty.strong_convexity:.6g}-strongly convex, and its gradient, which depends on the weights "
        f"alone, changes at most {penalty.smoothness:.6g} times as fast as the weights and is computed to within "
        f"{penalty.rounding:g} units of rounding. This was checked at public points, not proven. {IF_CODE_FAILS}"
    )
    return (sentence,)


def _clipped_slopes(problem: Any) -> tuple[str, ...]:
    """At which public threshold the slopes of a loss of a residual are clipped."""
    loss = getattr(problem, "loss", None)
    if loss is None or loss.constants.threshold is None:
        return ()
    residual = "of a count from its mean" if loss.constants.is_count else "of a target from its prediction"
    longer = ", times the largest norm of a row over the norm of the row," if loss.constants.by_length else ""
    sentence = (
        f"A difference {residual} beyond the threshold {loss.threshold:.6g}{longer} pulls no harder than one of that size; "
        f"the threshold follows from public facts alone."
    )
    return (sentence,)


def _zeros(plan: AnyPlan) -> tuple[str, ...]:
    """What is done with the released weights of a model with an l1 penalty."""
    if l1_ratio(plan) == 0.0 or plan.lattice is None:
        return ()
    sentence = (
        f"An l1 penalty has {l1_ratio(plan)!r} of alpha. Released weights of columns that are no larger than chance alone "
        f"makes them are set to 0; this uses the release and public facts alone."
    )
    return (sentence,)


def _persons(rows_per_person: int, person_column: str | None) -> str:
    if person_column is not None:
        drawn = (
            "one row, drawn at random, counts"
            if rows_per_person == 1
            else f"{rows_per_person:,} rows, drawn at random, count"
        )
        return (
            f'All rows of one person, and no others, have the same value in the column "{person_column}"; of each person at '
            f"most {drawn}."
        )
    if rows_per_person == 1:
        return "Each person contributed one row at most."
    return f"Each person contributed {rows_per_person:,} rows at most."


def _fewer_rows(ledger: NamedLedger, problem: Any) -> str:
    """For which persons the ledger's limit holds, if they differ from the persons whom this release protects."""
    rows = ledger.max_rows_per_person
    if rows == problem.rows_per_person:
        return ""
    persons = f" for persons with at most {rows:,} row{'s' if rows > 1 else ''}"
    return f"{persons}; a person with more rows can pay more than that for its other charges"


def _failure(budget: Budget, draws: int) -> str:
    """The event that the proof sets aside: one of the draws of noise exceeds the bound that the proof allows for."""
    if getattr(budget, "epsilon", 0.0) > LARGEST_PROVEN_EPSILON:
        return (
            f"The rounding proof claims nothing above epsilon = {LARGEST_PROVEN_EPSILON:g}; such a budget protects nobody."
        )
    return (
        f"It holds except for an event of probability below 2^-{200 - draws}: a draw of noise beyond the bound that the "
        f"rounding proof allows for."
    )
