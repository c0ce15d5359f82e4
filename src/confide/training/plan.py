"""The plan of a fit: everything that is decided before any row is used, from public facts only."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.erm.transformed_losses import DeclaredLoss
from confide.intake.penalties import check_penalty
from confide.intake.specification import CheckedRows
from confide.privacy.budgets import Neighbours
from confide.privacy.mechanism import Plan
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.auto_loss import chosen_loss, sums_or_loss, with_chosen_threshold
from confide.training.auto_mechanism import plan_of_weights
from confide.training.budget_shares import (
    gradients_or,
    plan_with_centring,
    plan_with_interest,
    plan_with_intervals,
    plan_with_matching,
    refuse_intervals,
    refuse_noisy_gradients,
)
from confide.training.settings import ScoreLoss, Settings, SquaredError

AnyPlan: TypeAlias = Plan | StatisticsPlan
"""The plan of a loss of the score, or of least squares by noisy sums."""


def plan_for(settings: Settings, rows: CheckedRows) -> AnyPlan:
    """The plan of a fit to these rows. It uses their number only if the number is public."""
    if settings.prior is not None:
        settings.prior.refuse_rows(rows)
    n_rows = rows.n_rows if settings.neighbours is Neighbours.REPLACE_ONE else None
    plan = make_plan(settings.for_classes(len(rows.domain)), rows.source.n_features, n_rows)
    plan.problem.check(rows.n_rows, rows.source.n_features)
    return plan


# A caller may have asked NumPy to raise where numbers overflow or underflow, which they do on purpose here.
@np.errstate(all="ignore")
def make_plan(settings: Settings, n_features: int, n_rows: int | None) -> AnyPlan:
    """The plan for `n_rows` rows, or for the declared bounds on their number. It uses no row.

    Parameters
    ----------
    settings : the settings, already for the actual number of classes
    n_features : number of columns of a row as it enters the objective
    n_rows : number of rows if it is public, otherwise None
    """
    minimised = settings.minimised
    if settings.own_penalty is not None:
        check_penalty(settings.own_penalty, n_features)
    if isinstance(minimised, SquaredError):
        chosen = sums_or_loss(settings, minimised, n_features, n_rows)
        if isinstance(chosen, StatisticsPlan):
            return chosen
        settings, minimised = replace(settings, minimised=chosen), chosen
    # A bound or a loss that a user wrote may change and still be the same object. So its plan is not remembered.
    is_frozen = type(settings.row_bound) in (BallBound, GroupBound) and not isinstance(minimised.loss, DeclaredLoss)
    is_frozen = is_frozen and settings.own_penalty is None
    return (_remembered if is_frozen else _remembered.__wrapped__)(settings, minimised, n_features, n_rows)


@lru_cache(maxsize=64)
def _remembered(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> Plan:
    """The plan of a loss of the score. It is a pure function of frozen values, so it is remembered."""
    if settings.interest:
        return plan_with_interest(settings, replace(score_loss, if_noisy=None), n_features, n_rows)
    if settings.has_intervals:
        refuse_noisy_gradients(settings.mechanism)
        refuse_intervals(score_loss.loss, score_loss.loss.n_outputs * (n_features + (settings.intercept > 0.0)))
    score_loss = with_chosen_threshold(settings, score_loss, n_features, n_rows)

    def make(given: Settings) -> Plan:
        return _of_loss(given, score_loss, n_features, n_rows)

    return plan_with_matching(make(settings), settings, make)


def _of_loss(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> Plan:
    """The plan of the weights, with what is released before them."""
    asked = settings
    settings, score_loss, plan = chosen_loss(settings, score_loss, n_features, n_rows)
    if settings.has_intervals:
        return plan_with_intervals(settings, score_loss, n_features, n_rows)
    plan = plan or plan_of_weights(settings, score_loss, n_features, n_rows, settings.budget)
    plan = plan_with_centring(settings, score_loss, n_features, n_rows, plan)
    return gradients_or(plan, settings, asked, score_loss, n_features, n_rows)
