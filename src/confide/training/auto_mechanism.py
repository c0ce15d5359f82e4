"""The mechanism that "auto" begins with, and the plan of the weights. Later steps of `plan.py` may take another mechanism.

Everything is decided from public facts.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from confide.data.arrays import summation_depth
from confide.erm.losses import Loss
from confide.erm.objective import Solver
from confide.erm.penalties import Penalty
from confide.erm.source import RowSource
from confide.errors import InsufficientRegularisation, ParameterError
from confide.features.atoms import n_cells
from confide.features.encoder import Encoder
from confide.privacy.budgets import Budget
from confide.privacy.mechanism import ANOTHERS, Mechanism, Plan, Problem, Release, made_by, zero_weights
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.tables import AtomsOfColumns
from confide.training.alpha import AlphaRule, plan_with_alpha
from confide.training.gradient_steps import gradient_mechanism
from confide.training.settings import Settings

# Fits without privacy: the same problem without noise, for comparison. Their guarantee is void and says so.

_NARROW_JOINT = 2.0**-20
"""Half the width of the joint that takes the place of a kink. The mean loss of a hinge is at most 2^-22 larger with it, and
Newton's method finds its minimiser."""


@dataclass(frozen=True, slots=True)
class NonPrivate:
    """Minimises as exactly as double precision allows, and releases the minimiser. See `Mechanism`."""

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        if budget.is_private:
            raise ParameterError("a finite budget needs a mechanism that adds noise.")
        if problem.loss.constants.has_kinks:
            problem = replace(problem, loss=problem.loss.with_joint(_NARROW_JOINT * problem.loss.constants.unit))
        return Plan(problem, budget, "none", problem.l2, None, 0.0, 0.0, None, problem.event(budget))

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        if not made_by(plan, Plan, "none") or plan.budget.is_private:
            raise ParameterError(ANOTHERS)
        problem = plan.problem
        objective = problem.objective(source, plan.l2, zero_weights(problem))
        solution = solver.solve(objective.lent(), zero_weights(problem), tolerance=0.0)
        if not np.isfinite(solution.gradient_norm).all():
            raise ParameterError("sums over the rows overflow. Scale rows and targets, or give a finite row_norm.")
        return Release(solution.weights, plan)


MECHANISMS: dict[str, Mechanism] = {
    "objective": ObjectivePerturbation(),
    "output": OutputPerturbation(),
    "output-laplace": OutputPerturbation(laplace_alone=True),
    "gradient": gradient_mechanism(AlphaRule(is_automatic=False, score_size=None, is_raised=False, for_intervals=False)),
    "none": NonPrivate(),
}
"""Mechanisms for a loss of the score, by their names in plans. "none" is used if the budget is infinite."""
MECHANISM_NAMES = ("auto", *(name for name in MECHANISMS if name != "none"))
"""The names that users may give."""
_MOST_NOISE_IN_THE_OBJECTIVE = 4.0
"""For three or more classes, "auto" puts the noise on the weights if noise in the objective would be more than this many
times as large at the same ridge. Below this ratio noise in the objective is better, because the curvature of the loss damps
it (benchmarks/notes/objective_or_output.md)."""


def mechanism_for(settings: Settings, loss: Loss) -> str:
    """The name of the mechanism for this loss. For three or more classes, `plan_of_weights` compares plans afterwards.

    Objective perturbation is better if the loss has curvature, which damps the noise. For a loss without curvature and a
    small ridge, objective perturbation displaces the weights more than output perturbation: up to twice as much for pure and
    approximate budgets, and many times as much for small concentrated ones.
    """
    if not settings.budget.is_private:
        return "none"
    bounds = loss.constants
    if settings.mechanism != "auto":
        return settings.mechanism
    # Noise in the objective has no theorem for an l1 penalty. For other losses with kinks than the hinge, noise on the
    # weights is not damped by the curvature of the mean loss, as noise in gradients is: at (1, 1e-6) and 20,000 rows of 8
    # columns the absolute error is several times that without noise, and with gradients 1.01 times. A pure budget has no
    # Gaussian noise.
    has_other_kinks = bounds.has_kinks and (bounds.is_declared or bounds.target_bound is not None)
    if settings.l1_ratio > 0.0 or (settings.own_penalty is None and has_other_kinks):
        return "output" if settings.budget.is_pure else "gradient"
    return "output" if bounds.has_kinks else "objective"


_OF_SETTINGS = ("usual_norm", "has_curves", "ridges_of_curves", "random_features", "n_slots", "n_encoded")
"""What a rule for alpha takes from settings as it is."""


def plan_of_weights(settings: Settings, n_features: int, n_rows: int | None) -> Plan:
    """The plan of the weights alone, for `n_rows` rows or for the declared bounds on their number."""
    score_loss, budget = settings.score_loss, settings.budget
    loss = score_loss.loss
    problem = problem_of(settings, loss, n_features, n_rows)
    rule = AlphaRule(
        # Without privacy the automatic ridge is 1, which is scikit-learn's C = 1.
        is_automatic=settings.alpha is None and budget.is_private,
        score_size=score_loss.score_size,
        is_raised=score_loss.raises_alpha,
        for_intervals=settings.has_intervals,
        **dict(zip(_OF_SETTINGS, attrgetter(*_OF_SETTINGS)(settings), strict=True)),
        # Declared effects are rough.
        has_near_prior=settings.prior is None or not settings.prior.declared,
    )
    name = mechanism_for(settings, loss)
    if name == "gradient":
        return gradient_mechanism(rule).plan(problem, budget)
    plan = plan_with_alpha(MECHANISMS[name], problem, budget, rule)
    if settings.mechanism == "auto" and name == "objective" and loss.constants.n_outputs > 1:
        # The privacy bound for Gaussian noise in the objective of several scores is loose, above all for concentrated
        # budgets.
        with suppress(InsufficientRegularisation):
            on_weights = MECHANISMS["output"].plan(replace(problem, l2=plan.l2), budget)
            if plan.noise_norm > _MOST_NOISE_IN_THE_OBJECTIVE * on_weights.noise_norm:
                return plan_with_alpha(MECHANISMS["output"], problem, budget, rule)
    return plan


def problem_of(settings: Settings, loss: Loss, n_features: int, n_rows: int | None) -> Problem:
    """The public facts of a fit with this loss, with the user's ridge if there is one."""
    facts = facts_of_rows(settings, n_features, n_rows)
    form, has_levels = settings.penalty if settings.keeps_groups else None, settings.has_schema and settings.l1_ratio > 0.0
    penalty = Penalty(l1_ratio=settings.l1_ratio, form=form, function=settings.own_penalty, has_levels=has_levels)
    # The ridge within the penalty, which is what proofs rest on.
    strength = 1.0 if settings.alpha is None else settings.alpha * facts["n_rows_low"] * penalty.strong_convexity
    return Problem(
        **facts,
        loss=loss,
        l2=strength * (1.0 - settings.l1_ratio),
        largest_weight=settings.largest_weight,
        beside_mu=settings.beside_mu,
        prior=settings.weights_of_prior(loss.constants.n_outputs, n_features),
        penalty=penalty,
    )


SHARE_OF_ATOMS = 0.15
"""The part of the budget that finds atoms of columns (benchmarks/notes/what_do_atoms_gain.md)."""


def atoms_plan(settings: Settings, encoder: Encoder, n_rows: int | None) -> SumPlan[AtomsOfColumns]:
    """The plan of the counts by which a fit finds atoms for the slots of an encoder."""
    facts = facts_of_rows(settings, encoder.n_features, n_rows)
    number = (facts["n_rows_low"], facts["n_rows_high"])
    sizes = tuple(n_cells(column) for column in encoder.sought)
    persons = (settings.neighbours, settings.rows_per_person)
    query = AtomsOfColumns(sizes, 0, *persons, columns=encoder.sought, slots=encoder.slots, n_rows=number)
    return SumPlan.of(query, settings.budget, ("laplace" if settings.budget.is_pure else "gaussian",), SHARE_OF_ATOMS)


def facts_of_rows(settings: Settings, n_features: int, n_rows: int | None) -> dict[str, Any]:
    """The fields of `ProblemFacts`. Where the number of rows is public, both bounds on it are the number itself."""
    low, high = settings.n_rows_bounds or (n_rows, n_rows)
    if low is None or high is None:
        raise ParameterError("a plan needs the number of rows: give n_rows.")
    return {
        "row_bound": settings.row_bound,
        "intercept": settings.intercept,
        "n_features": n_features,
        "n_rows_low": low,
        "n_rows_high": high,
        "summation_depth": summation_depth(high, n_features),
        "neighbours": settings.neighbours,
        "rows_per_person": settings.rows_per_person,
        "set_aside": settings.set_aside,
    }
