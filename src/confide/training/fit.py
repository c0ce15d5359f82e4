"""One fit, from checked parameters and given rows to a released model.

    check the rows -> plan -> guarantee, names, check of the noise by OpenDP if it is there -> charge -> release

Everything that could fail comes before the charge, since a charge is not refunded. After the charge, noise is drawn, the
problem is solved, the minimiser is certified, and the result is kept.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from confide.budget_warnings import cautions, of_many_classes, warn
from confide.effects.monotone import monotone_weights
from confide.erm.source import RowSource
from confide.errors import AccuracyWarning
from confide.expected_noise import wasted
from confide.features.checks import AtomsRelease
from confide.features.encoder import Encoder
from confide.features.forms import ShortenedInNorm
from confide.features.fourier import CurvesAndFeatures
from confide.guarantee import Guarantee
from confide.inference.debiased import InterestEvidence
from confide.inference.intervals import WeightsEvidence
from confide.intake.rows import GivenRows
from confide.intake.specification import CheckedRows, RowSpecification, coefficient_names
from confide.models.model import ReleasedModel
from confide.models.scores import LinearModel
from confide.privacy import matching
from confide.privacy.lattice import LatticeNoise
from confide.privacy.mechanism import Plan
from confide.privacy.noise import Entropy
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.solvers.fallback import NewtonThenFallback
from confide.training.assumptions import circumstances_of, guarantee_of, of_weights, sentences_of_rows
from confide.training.auto_mechanism import MECHANISMS
from confide.training.charge import Charge, before_charge, charge_and_release, deciding_fit
from confide.training.least_squares import weights_of_sums
from confide.training.plan import AnyPlan, plan_for, sums_beside
from confide.training.settings import Settings
from confide.training.support import with_zeros

Fit: TypeAlias = tuple[LinearModel, WeightsEvidence | None, InterestEvidence | None, dict[str, tuple[Any, ...]]]
"""What one fit released: the weights; what intervals, or those of named coefficients, are computed from; and what was found
before the weights: as "scaling", scales of encoded columns in random features, and as "atoms", those of columns. With
"without", the weights are those of `Plan.without`."""


def train(given: GivenRows, specification: RowSpecification, settings: Settings, charge: Charge) -> ReleasedModel:
    """Check the rows, plan, charge and release.

    Raises
    ------
    ParameterError, InputError, NotCertified
        If there can be no such fit. Nothing was charged.
    BudgetExceeded
        If the ledger has too little left. Nothing was charged, and no row was used.
    """
    with given.checked([specification]) as (rows,):
        rows.source.refuse_sums(partial(settings.row_sums, len(rows.domain)), with_moments=settings.has_intervals)
        plan = plan_for(settings, rows)
        if rows.encoder is not None and getattr(plan, "without", None) is None:
            always = rows.encoder.schema.with_features_always
            rows = rows if always is rows.encoder.schema else replace(rows, encoder=replace(rows.encoder, schema=always))
        design = settings.sampling_design(plan.problem.n_rows_low, has_weights=rows.has_weights)
        problem, source = plan.problem, rows.source
        unusual = cautions(plan.event.budget, problem.n_rows_low, problem.n_rows_high)
        deciding = lambda: (plan.to_dict(), deciding_fit(settings, rows))  # noqa: E731
        charge = charge.of_release(plan.event, deciding, None if rows.encoder is None else rows.encoder.schema)
        facts = circumstances_of(problem, rows, settings.prior, charge)
        of_rows = sentences_of_rows(rows.target_sentence, settings, facts, rows.encoder, rows.fourier)
        guarantee = guarantee_of(plan, of_rows, rows.encoder, facts, unusual)
        if many_classes := of_many_classes(plan):
            warn(many_classes, AccuracyWarning)
        waste = wasted(plan, design.effective_share)
        before_charge(charge, plan.event.budget, lattices_of(plan), unusual, facts.learned_steps, waste)
        fit = charge_and_release(partial(released, plan, source), plan.event, problem.neighbours, charge)
    return model_of(fit, plan, guarantee, rows, settings)


def model_of(fit: Fit, plan: Any, guarantee: Guarantee, rows: CheckedRows, settings: Settings) -> ReleasedModel:
    """What a fit released, with the public facts about the rows, and with monotone effects where they were asked for."""
    weights, evidence, interest, found = fit
    if getattr(plan, "without", None) is not None:
        guarantee = of_weights(guarantee, plan.without if "without" in found else plan)
    if "without" in found and rows.encoder is not None:
        made, plan, settings = Encoder(rows.encoder.schema.without_features), plan.without, settings.without or settings
        rows = replace(rows, encoder=made, fourier=None, coefficient_names=coefficient_names(rows.columns, made, None))
    if "scaling" in found and isinstance(rows.fourier, CurvesAndFeatures):
        rows = replace(rows, fourier=rows.fourier.scaled(found["scaling"]))
    if evidence is not None:
        evidence = evidence.of_rows(settings.target_shift, has_weights=rows.has_weights)
    if rows.has_weights and interest is not None:
        interest = interest.with_weights()
    scoring = model_of_columns(weights, settings)
    if rows.encoder is not None and rows.encoder.slots:
        rows, scoring = with_atoms(rows, rows.encoder, scoring, found.get("atoms", ()), guarantee)
    model = ReleasedModel.of(scoring, evidence, plan.alpha, guarantee, rows, settings.prior, interest)
    return replace(model, scoring=monotone_weights(model, dict(settings.monotone))) if settings.monotone else model


def with_atoms(
    rows: CheckedRows, encoder: Encoder, model: LinearModel, atoms: tuple[Any, ...], guarantee: Guarantee
) -> tuple[CheckedRows, LinearModel]:
    """The public facts about the rows with the atoms that were found, and the weights of these columns without empty slots.

    Parameters
    ----------
    rows : the public facts about the rows
    encoder : by which they were encoded
    model : the weights of its columns
    atoms : those of each column in which some were looked for; empty if none were
    guarantee : of the fit
    """
    release = atoms_release(tuple(column.name for column in encoder.sought), guarantee)
    pairs = zip(encoder.sought, atoms, strict=False)
    made, kept = encoder.with_found([replace(column, atoms=own, released_atoms=release) for column, own in pairs if own])
    own, asked, fourier = made.appended or made, encoder.appended or encoder, rows.fourier
    bound = own.row_bound if model.row_bound == asked.row_bound else model.row_bound
    if isinstance(fourier, CurvesAndFeatures) and made.appended is not None:
        scales = fourier.features.scales  # none of three classes, and under a pure budget
        fourier = made.appended.scaled(tuple(np.array(scales)[kept].tolist()) if scales else ())
        kept = np.concatenate([kept, np.arange(encoder.n_features, asked.n_features)])
    rows = replace(rows, encoder=made, fourier=fourier, coefficient_names=coefficient_names(rows.columns, made, fourier))
    return rows, replace(model, coef=model.coef[:, kept], row_bound=bound)


def atoms_release(columns: tuple[str, ...], guarantee: Guarantee) -> AtomsRelease:
    """What the schema of a model says of the atoms that its own fit found in these columns."""
    facts = guarantee.circumstances
    return AtomsRelease(
        columns,
        str(guarantee.neighbours),
        **guarantee.budget.amounts,
        max_rows_per_person=guarantee.max_rows_per_person,
        attempts=1 if facts is None else facts.attempts,
        ledger=None if facts is None or facts.ledger is None else facts.ledger.identity,
        void=guarantee.void,
        by_fit=True,
    )


def model_of_columns(model: LinearModel, settings: Settings) -> LinearModel:
    """The released weights for rows and targets as they come.

    Those of rows in the norm of a form become those of the columns, and what was subtracted from the targets is added.
    """
    if settings.target_shift:
        model = replace(model, intercept=model.intercept + settings.target_shift)
    form, bound = settings.penalty, settings.bound_before_penalty
    if form is None or bound is None:
        return model
    if model.row_bound != settings.row_bound:
        # The plan shortened rows in the norm of the form, and rows to be predicted are shortened as they were.
        bound = ShortenedInNorm(bound, form, model.row_bound.l2_norm)
    return replace(model, coef=form.weights_of(model.coef), row_bound=bound)


def released(plan: AnyPlan, source: RowSource, entropy: Entropy) -> Fit:
    """Release by a plan whose event was charged before this call."""
    if isinstance(plan, StatisticsPlan):
        of_sums, from_sums = weights_of_sums(plan, source, entropy)
        return LinearModel.of(of_sums[None], plan.problem), from_sums, None, {}
    matching.check_parts(plan)
    ready: Plan = plan
    found: dict[str, tuple[Any, ...]] = {}
    parts = list(plan.parts)
    while parts:
        part = parts.pop(0)
        ready, source, follows = part.query.before(part, ready, source, entropy)
        found |= {part.query.name: follows} if follows else {}
        if ready is plan.without:
            parts, found = list(ready.parts), {"without": (True,)}
    problem = ready.problem
    minimiser = weights = MECHANISMS[ready.mechanism].release(ready, source, NewtonThenFallback(), entropy).weights
    for part in ready.parts:
        weights = part.query.after(part, ready, weights, source, entropy)
    model = LinearModel.of(weights.reshape(problem.loss.constants.n_outputs, -1), problem)
    if problem.penalty.l1_ratio > 0.0:
        model = with_zeros(model, ready, minimiser)
    if plan.intervals is None:
        return model, None, None, found
    return model, *plan.intervals.released(ready, minimiser, source, entropy), {}


def lattices_of(plan: AnyPlan) -> tuple[LatticeNoise | None, ...]:
    """All noise on a grid that a release by this plan draws, before anything is charged."""
    matching.check_parts(plan)
    without: Any = getattr(plan, "without", None)
    return (plan.lattice, *map(attrgetter("lattice"), sums_beside(plan)), *(() if without is None else lattices_of(without)))
