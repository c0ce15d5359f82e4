"""One fit, from checked parameters and given rows to a released model.

    check the rows -> plan -> guarantee, names, second account -> charge -> release

Everything that could fail stands before the charge. What follows it draws, solves, certifies and holds the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from confide.accounting.events import Event
from confide.accounting.ledger import Batch, Ledger
from confide.cautions import cautions, warn
from confide.data.source import RowSource
from confide.data.threads import one_blas_thread
from confide.errors import NotCertified
from confide.features.encoder import RowsPerPerson
from confide.inference.evidence import Evidence
from confide.inference.least_squares import SumsEvidence
from confide.intake.given_rows import GivenRows
from confide.intake.specification import RowSpecification
from confide.privacy.budgets import Neighbours
from confide.privacy.lattice import LatticeNoise
from confide.privacy.moments import SecondMoments
from confide.privacy.noise import Entropy
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.released_models.model import ReleasedModel
from confide.released_models.scores import LinearModel
from confide.second_account import confirms
from confide.solvers.fallback import NewtonThenFallback
from confide.training.assumptions import guarantee_of, sentences_of_rows
from confide.training.least_squares import weights_of_sums
from confide.training.mechanism_choice import MECHANISMS
from confide.training.plan import AnyPlan, plan_for
from confide.training.settings import Settings


@dataclass(frozen=True, slots=True)
class Charge:
    """Where a release is charged.

    Attributes
    ----------
    ledger : Ledger, a batch planned on one, or None
    seed : of the noise, for tests; None draws it from the operating system
    purpose : what the ledger notes
    """

    ledger: Ledger | Batch | None
    seed: int | None
    purpose: str


def train(given: GivenRows, specification: RowSpecification, settings: Settings, charge: Charge) -> ReleasedModel:
    """Check the rows, plan, charge and release.

    Raises
    ------
    ParameterError, InputError
        Before anything is charged.
    BudgetExceeded
        If the ledger has too little left; no row was used.
    """
    with given.checked([specification]) as (rows,):
        rows.source.refuse_sums(settings.for_classes(len(rows.domain)).row_sums, with_moments=settings.has_intervals)
        plan = plan_for(settings, rows)
        guarantee = guarantee_of(plan, sentences_of_rows(rows, settings), rows.encoder, charge.ledger, charge.seed)
        problem, source = plan.problem, rows.source
        # A batch pays for parts of something larger, of which it warned when it was planned.
        is_whole = not isinstance(charge.ledger, Batch)
        before_charge(lattices_of(plan), plan.event, (problem.n_rows_low, problem.n_rows_high), is_whole=is_whole)
        fit = charge_and_release(lambda entropy: released(plan, source, entropy), plan.event, problem.neighbours, charge)
    return ReleasedModel.of(fit.model, fit.evidence, plan.alpha, guarantee, rows)


@dataclass(frozen=True, slots=True)
class Fit:
    """What one fit released.

    Attributes
    ----------
    model : the released weights
    evidence : what intervals are made of, where it was released too
    """

    model: LinearModel
    evidence: Evidence | SumsEvidence | None


def released(plan: AnyPlan, source: RowSource, entropy: Entropy) -> Fit:
    """Release by a plan whose event was charged before this call."""
    if isinstance(plan, StatisticsPlan):
        weights, evidence = weights_of_sums(plan, source, entropy)
        return Fit(LinearModel.of(weights[None], plan.problem), evidence)
    release = MECHANISMS[plan.mechanism].release(plan, source, NewtonThenFallback(), entropy)
    model = LinearModel.of(release.weights.reshape(plan.problem.loss.n_outputs, -1), plan.problem)
    if plan.intervals is None:
        return Fit(model, None)
    moments = SecondMoments().release(plan.intervals.moments, release.weights, source, entropy)
    return Fit(model, Evidence.of(plan, release.weights[0], moments))


def before_charge(
    lattices: Iterable[LatticeNoise | None], event: Event, n_rows_bounds: tuple[int, int], *, is_whole: bool = True
) -> None:
    """What remains to be done before a charge: the second account of the noise, and a warning of an unusual budget.

    Parameters
    ----------
    lattices : all noise on a grid that the release draws
    event : what is charged
    n_rows_bounds : public bounds on the number of rows
    is_whole : whether to warn; False for a release that is a part of something larger
    """
    for lattice in lattices:
        # A release asks OpenDP again, and gets the same answer.
        if lattice is not None and not confirms(lattice):
            raise NotCertified("OpenDP finds the noise less private than claimed. Nothing was used or charged.")
    if is_whole:
        warn(cautions(event.budget, *n_rows_bounds))


def lattices_of(plan: AnyPlan) -> tuple[LatticeNoise | None, ...]:
    """All noise on a grid that a release by this plan draws."""
    if isinstance(plan, StatisticsPlan) or plan.intervals is None:
        return (plan.lattice,)
    return plan.lattice, plan.intervals.moments.lattice


Released = TypeVar("Released")


def charge_and_release(
    release: Callable[[Entropy], Released], event: Event, neighbours: Neighbours, charge: Charge
) -> Released:
    """Charge the event, which is durable before the next line runs, and then release."""
    entropy = entropy_of(charge.seed)
    # Floating-point warnings would depend on the data.
    with np.errstate(all="ignore"), one_blas_thread():
        if charge.ledger is not None:
            # Whoever reads the ledger must see that its limit does not speak of this release.
            void = "" if charge.seed is None else " (void: random_state was set)"
            charge.ledger.charge(event, purpose=charge.purpose + void, neighbours=neighbours)
        return release(entropy)


def entropy_of(seed: int | None) -> Entropy:
    """Where random bits come from: the operating system, or a seed for tests."""
    return Entropy.fresh() if seed is None else Entropy.seeded(seed)


def rows_per_person(most: int, seed: int | None) -> RowsPerPerson:
    """Which rows of each person count: so many, drawn at random."""
    return RowsPerPerson(most, entropy_of(seed).permutation)
