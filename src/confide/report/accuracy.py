"""How accurate a model is expected to be at its budget, and how accurate it was on private rows: numbers and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from confide.errors import ParameterError
from confide.planning.estimator_copies import estimator_with
from confide.planning.simulation import COVERAGE, Forecast, simulate
from confide.privacy.budgets import Budget

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The budgets around the chosen one, as multiples of it."""
_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT = 460, 52, 8, 16, 130
RATES = ("accuracy", "sensitivity", "specificity", "auc")
_FACTS_OF_EVALUATION = {"budget", "level", "outcome", *RATES}
_FACTS_OF_TABLES = {"budget", "level", "kind", "rates"}


def forecasts_of(model: Any, error: float, positive_rate: float = 0.5) -> tuple[Forecast, ...]:
    """Forecasts of the test error of such a model around its budget, by fits to made-up rows. They use no data.

    A smaller or larger budget at which there is no such fit, for example because its intervals could not be trusted, is left
    out.

    Parameters
    ----------
    model : a fitted classifier of two classes
    error : the test error that a model without privacy is expected to reach: a guess from public knowledge
    positive_rate : the expected share of one of the two classes

    Raises
    ------
    ParameterError
        If there are no forecasts for such a model at its own budget, or the guesses contradict each other.
    """
    found = model.guarantee_.n_rows
    if found is None or not model.guarantee_.budget.is_private:
        raise ParameterError("forecasts are for private models, whose guarantee states the number of rows.")
    n_rows = found[0] if found[0] == found[1] else None
    n_features = None if getattr(model, "schema", None) is not None else model.n_features_in_
    forecasts: list[Forecast] = []
    for budget in budgets_around(model.guarantee_.budget):
        estimator = estimator_with(model, budget=budget, ledger=None)
        try:
            forecasts.append(simulate(estimator, n_rows, n_features, error=error, positive_rate=positive_rate))
        except ParameterError:
            if budget == model.guarantee_.budget:
                raise
    return tuple(forecasts)


def budgets_around(budget: Budget) -> list[Budget]:
    """The budgets of a curve: epsilon or rho below and above the chosen one, delta as it is."""
    name = next(iter(budget.ranges))
    return [replace(budget, **{name: factor * getattr(budget, name)}) for factor in _FACTORS]


def checked_evaluation(given: Any) -> dict[str, Any] | None:
    """An evaluation as JSON values.

    Raises
    ------
    ParameterError
        If it is no evaluation.
    """
    if given is None:
        return None
    found = given.to_dict() if hasattr(given, "to_dict") else given
    if isinstance(found, dict) and isinstance(found.get("evaluation"), dict):
        found = found["evaluation"]
    from_tables = isinstance(found, dict) and isinstance(found.get("rates"), dict)
    needed = _FACTS_OF_TABLES if from_tables else _FACTS_OF_EVALUATION
    if not isinstance(found, dict) or not set(found) >= needed:
        raise ParameterError(
            "evaluation must be what confide.evaluate gives, or the JSON document of `confide evaluate --format json`."
        )
    for name, rate in _rates_in(found).items():
        values = list(rate.values()) if isinstance(rate, dict) else [None, rate]
        if set(rate if isinstance(rate, dict) else ()) < {"value", "low", "high"} or not all(
            value is None or (isinstance(value, float | int) and (from_tables or 0.0 <= value <= 1.0)) for value in values
        ):
            bounds = "" if from_tables else " between 0 and 1"
            raise ParameterError(f"evaluation: {name} must have a value, a low and a high{bounds}.")
    return found


def _rates_in(evaluation: dict[str, Any]) -> dict[str, Any]:
    """The rates of an evaluation by name, of whatever kind it is."""
    if isinstance(evaluation.get("rates"), dict):
        return dict(evaluation["rates"])
    return {name: evaluation[name] for name in RATES}


def rates_of(evaluation: dict[str, Any]) -> list[tuple[str, str]]:
    """The rates of an evaluation with their intervals, in words; after those of all rows those of each group."""
    blocks = [("", _rates_in(evaluation))]
    groups = evaluation.get("by_group")
    for name, rates in (groups if isinstance(groups, dict) else {}).items():
        blocks.append((f", {evaluation.get('group_column')} = {name}", rates))
    found = []
    for of, rates in blocks:
        for name, rate in rates.items():
            text = "the noise hides it"
            if rate["value"] is not None:
                text = f"{rate['value']:.3f} ({rate['low']:.3f} to {rate['high']:.3f})"
            title = "AUC" if name == "auc" else f"{name[0].upper()}{name[1:]}"
            found.append((f"{title}{of}", text))
    return found


def what_was_rated(evaluation: dict[str, Any]) -> str:
    """What the rates are of, in a sentence."""
    if "outcome" in evaluation:
        return f"Positive: {evaluation['outcome']}."
    kind = str(evaluation.get("kind", ""))
    clip = evaluation.get("clip")
    clipped = f" Losses and errors count as at most {clip:g}." if isinstance(clip, float | int) else ""
    other = f" The second model: {evaluation['other']}." if isinstance(evaluation.get("other"), str) else ""
    return f"{kind[:1].upper()}{kind[1:]}.{clipped}{other}"


def charge_of_rates(evaluation: dict[str, Any]) -> str:
    """To which ledger the rates were charged, as far as that is known, in words."""
    charge = evaluation.get("charge")
    ledger = charge.get("ledger") if isinstance(charge, dict) else None
    if isinstance(ledger, str) and ledger:
        return f"They were charged to the ledger {ledger.partition('?')[0] if '://' in ledger else ledger}."
    if isinstance(charge, dict):
        return "They were charged to no ledger."
    return "It is not known whether they were charged to a ledger."


def forecast_note(forecasts: Sequence[Forecast]) -> str:
    """What the forecasts rest on."""
    first = forecasts[0]
    return (
        f"Forecast from made-up rows, before any data. It supposes that a model without privacy would be right in "
        f"{1.0 - first.non_private_error:.1%} of cases; always naming the more frequent class is right in "
        f"{1.0 - first.constant_error:.1%}. The range held the mean accuracy in at least {COVERAGE:.0%} of cases on each "
        f"public data set that it was calibrated on."
    )


def accuracy_picture(forecasts: Sequence[Forecast], chosen: float) -> str:
    """Accuracy against the budget: a line, its range, and the chosen budget as a point."""
    amounts = [_amount(forecast) for forecast in forecasts]
    best, least = 1.0 - forecasts[0].non_private_error, 1.0 - forecasts[0].constant_error
    low = min(least, *(1.0 - forecast.high for forecast in forecasts)) - 0.01
    high = min(1.0, max(best, *(1.0 - forecast.low for forecast in forecasts)) + 0.01)
    width, bottom = _WIDTH - _LEFT - _RIGHT, _TOP + _HEIGHT
    first, last = math.log(amounts[0]), math.log(amounts[-1])

    def x_of(amount: float) -> float:
        return _LEFT + 10 + (width - 20) * ((math.log(amount) - first) / (last - first) if last > first else 0.5)

    def y_of(accuracy: float) -> float:
        return _TOP + _HEIGHT * (high - accuracy) / (high - low)

    marks = []
    for accuracy, name in ((best, "without privacy"), (least, "without a model")):
        y = y_of(accuracy)
        marks.append(f'<line class="even" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>')
        marks.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{accuracy:.1%}</text>')
        marks.append(f'<text x="{_WIDTH - _RIGHT}" y="{y - 4:.1f}" text-anchor="end" class="quiet">{name}</text>')
    places = list(map(x_of, amounts))
    above = [f"{x:.1f},{y_of(1.0 - each.low):.1f}" for x, each in zip(places, forecasts, strict=True)]
    below = [f"{x:.1f},{y_of(1.0 - each.high):.1f}" for x, each in zip(places, forecasts, strict=True)]
    line = [f"{x:.1f},{y_of(1.0 - each.error):.1f}" for x, each in zip(places, forecasts, strict=True)]
    marks.append(f'<polygon class="joint" points="{" ".join([*above, *reversed(below)])}"/>')
    marks.append(f'<polyline class="curve" points="{" ".join(line)}"/>')
    for x, amount, each in zip(places, amounts, forecasts, strict=True):
        is_chosen = math.isclose(amount, chosen, rel_tol=1e-9)
        radius = 6 if is_chosen else 3
        marks.append(f'<circle class="point" cx="{x:.1f}" cy="{y_of(1.0 - each.error):.1f}" r="{radius}"/>')
        marks.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{amount:.3g}</text>')
    name = next(iter(forecasts[0].plan.event.budget.ranges))
    marks.append(f'<text x="{_LEFT + width / 2}" y="{bottom + 36}" text-anchor="middle" class="quiet">{name}</text>')
    told = "; ".join(f"{name} {amount:.3g}: {1.0 - each.error:.1%}" for amount, each in zip(amounts, forecasts, strict=True))
    title = f"Expected accuracy. {told}."
    return (
        f'<svg class="wide" role="img" aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {bottom + 42}">'
        f"<title>{escape(title)}</title>{''.join(marks)}</svg>"
    )


def _amount(forecast: Forecast) -> float:
    budget = forecast.plan.event.budget
    amount: float = getattr(budget, next(iter(budget.ranges)))
    return amount
