"""How accurate a model is expected to be at its budget, and how accurate it was on private rows: numbers and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from confide.budget_warnings import EXAMPLE_DELTA, cautions
from confide.displays.plans import budgets_around
from confide.errors import ParameterError, wording
from confide.evaluations.documents import is_hidden, rates_in
from confide.evaluations.result import NOT_LISTED
from confide.guarantee import Guarantee
from confide.inference.table import SUPPOSED_NOTE
from confide.known_words import listed
from confide.planning.made_up_fits import estimator_with
from confide.planning.simulation import COVERAGE, Forecast, simulate
from confide.privacy.budgets import Budget, Neighbours, budget_from_dict
from confide.report.ledger_facts import LedgerFacts, estimator_of, pays_for


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
    n_rows_known = model.guarantee_.n_rows
    if n_rows_known is None or not model.guarantee_.budget.is_private:
        raise ParameterError("forecasts are for private models, whose guarantee states the number of rows.")
    n_rows = n_rows_known[0] if n_rows_known[0] == n_rows_known[1] else None
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


def forecast_document(forecast: Forecast, **more: Any) -> dict[str, Any]:
    """A forecast, with the budget of the whole release: a part of it may pay for intervals."""
    names = ("error", "low", "high", "non_private_error", "constant_error")
    return {"budget": forecast.plan.event.budget.to_dict(), **more} | {name: getattr(forecast, name) for name in names}


def doubts_of_rates(
    evaluation: dict[str, Any], identity: str | None, charges: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Why rates that a report shows may cost more than is counted; empty if they were charged to a ledger.

    Parameters
    ----------
    evaluation : the rates, see `checked_evaluation`
    identity : that of the ledger which is given with the report, or None
    charges : the charges of that ledger
    """
    if evaluation["void"] is not None:
        return (f"The rates that are shown with the model are not private. {evaluation['void']}",)
    if evaluation["charged_to"] is None:
        return ("The rates that are shown with the model cost privacy of their own, and were charged to no ledger.",)
    budget = budget_from_dict(evaluation["budget"])
    paid = (estimator_of(charge) is None and pays_for(charge, budget) for charge in charges)
    if evaluation["charged_to"] == identity and not any(paid):
        return ("The rates shown with the model say that they were charged to this ledger. It holds no such charge.",)
    return ()


def tables_of_rates(evaluation: dict[str, Any]) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Tables of rates with their intervals, in words: title, headings and lines, for all rows and for each group.

    The tables of further groups also have the differences from the first one. Rows that a schema does not list are no group
    that anybody asks for, and are left out.
    """
    tables: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        ("", ("Rate", "Value"), [(_named(name), _shown(rate)) for name, rate in rates_in(evaluation).items()])
    ]
    groups = {name: rates for name, rates in evaluation.get("by_group", {}).items() if name != NOT_LISTED}
    known = [name for name, rates in groups.items() if not is_hidden(rates)]
    for group, rates in groups.items():
        title, headings = f"{evaluation.get('group_column')} = {group}", ["Rate", "Value"]
        lines = [[_named(name), _shown(rate)] for name, rate in rates.items()]
        differences = evaluation.get("group_differences", {}).get(group)
        if differences is not None:
            headings.append(f"Difference from {known[0]}")
            for line, name in zip(lines, rates, strict=True):
                line.append(_shown(differences.get(name, {"value": None})))
        tables.append((title, tuple(headings), list(map(tuple, lines))))
    return tables


def _named(rate: str) -> str:
    return "AUC" if rate == "auc" else f"{rate[0].upper()}{rate[1:]}"


def _shown(rate: dict[str, Any]) -> str:
    if rate["value"] is None:
        return "the noise hides it"
    return f"{rate['value']:.3f} ({rate['low']:.3f} to {rate['high']:.3f})"


def what_was_rated(evaluation: dict[str, Any]) -> str:
    """What the rates are of, in a sentence."""
    if "rates" not in evaluation:
        calibrated = " Calibrated probabilities of this model follow from the counts behind these rates."
        return f"Positive: {evaluation['outcome']}.{calibrated if evaluation.get('calibrates') else ''}"
    kind, clip = evaluation["kind"], evaluation.get("clip")
    clipped = f" Losses and errors count as at most {clip:g}." if clip is not None else ""
    other = f" The second model: {evaluation['other']}." if evaluation.get("other") is not None else ""
    return f"{kind[:1].upper()}{kind[1:]}.{clipped}{other}"


def charge_of_rates(evaluation: dict[str, Any]) -> str:
    """To which ledger the rates were charged, in words, and what is assumed of interrupted attempts."""
    ledger = (evaluation.get("charge") or {}).get("ledger")
    if evaluation["charged_to"] is None:
        where = "no ledger"
    else:
        # Only the identity is compared with a ledger that is shown. The name is what the file says.
        name = f" {place_without_password(ledger)}" if ledger else ""
        where = f"the ledger{name} with the identity {evaluation['charged_to']}"
    return " ".join((f"They were charged to {where}.", *evaluation.get("interrupted", ())))


def cost_of_rates(evaluation: dict[str, Any]) -> str:
    """What the rates cost and where it was charged, in words; or why they are not private."""
    if evaluation.get("void"):
        return f"NOT PRIVATE: {evaluation['void']}"
    amounts = (f"{name} = {value:.6g}" for name, value in evaluation["budget"].items() if name != "kind")
    return f"The rates cost {', '.join(amounts)} of their own. {charge_of_rates(evaluation)}"


def place_without_password(ledger: str) -> str:
    """A file as it is; of the URL of a database, everything up to what could be a secret."""
    return ledger.partition("?")[0] if "://" in ledger else ledger


def forecast_note(forecasts: Sequence[Forecast]) -> str:
    """What the forecasts rest on."""
    first = forecasts[0]
    return wording("forecast", right=1.0 - first.non_private_error, usual=1.0 - first.constant_error, coverage=COVERAGE)


# What an attacker can gain from a release: from even odds about one person to what at most, in numbers and as a picture.

_DECIMALS = 1e4
"""Probabilities are rounded up to four digits after the point."""


def guess_probability(budget: Budget) -> float:
    """The largest probability of a right guess between two neighbouring data sets, at even odds before; rounded up.

    For pure privacy it is also the most that any single outcome can lead to. With a delta it is an average over outcomes:
    (exp(epsilon) + delta) / (exp(epsilon) + 1). A concentrated budget is converted at delta = 1e-6.
    """
    implied = budget.to_approx(EXAMPLE_DELTA) if budget.is_concentrated else budget
    if not implied.is_private:
        return 1.0
    smaller = math.exp(-implied.amount)
    return min(1.0, math.ceil((1.0 + implied.slack * smaller) / (1.0 + smaller) * _DECIMALS * (1.0 - 1e-12)) / _DECIMALS)


def question_of(guarantee: Guarantee) -> str:
    """What the attacker guesses at, in words."""
    several = guarantee.max_rows_per_person > 1
    rows = f"the rows of one person (at most {guarantee.max_rows_per_person})" if several else "the row of one person"
    if guarantee.neighbours is Neighbours.REPLACE_ONE:
        return f"which of two possible values {rows} had"
    return f"whether {rows} {'were' if several else 'was'} among the data"


def meaning_of(guarantee: Guarantee, shown: str = "") -> str:
    """What the attacker is right about how often, in a sentence; `shown` stands for the probability if it is given."""
    most = shown or percent(guess_probability(guarantee.budget))
    return wording("guess after seeing the model", question=question_of(guarantee), most=most)


def percent(probability: float) -> str:
    """A probability in percent, with at most two digits after the point."""
    return f"{100.0 * probability:.2f}".rstrip("0").rstrip(".") + "%"


def odds_picture(lines: Sequence[tuple[str, float]]) -> str:
    """Bars from 0% to 100% for what was seen, each with its number. The first line is what the attacker knew before."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><div class="bar"><i style="width: {100.0 * min(0.5, chance):.1f}%"></i>'
        f'<i style="width: {100.0 * max(0.0, chance - 0.5):.1f}%"></i></div></td><td>{percent(chance)}</td></tr>'
        for name, chance in lines
    )
    return f'<table class="odds" aria-label="Right with probability at most"><tbody>{rows}</tbody></table>'


# The verdict on a released model: one line that a signer can act on, and the reasons behind it.


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
    meaning = meaning_of(guarantee)
    of_more = [f"{listed(supposed)}: {SUPPOSED_NOTE}"] if supposed else []
    unusual, of_ledger = unusual_of(guarantee), wording("report without a ledger")
    if ledger is not None:
        of_ledger = (ledger.unit_note or "") if ledger.holds_the_charge else ledger.sentence()
    if ledger is not None and not (unusual or of_ledger or doubts_of_rates or supposed):
        headline = "Private, and charged. Ready to sign once the points below are confirmed."
        return Verdict("private", headline, (meaning, ledger.sentence()))
    if unusual:
        headline = "Private in form, but the budget is so large that it promises little."
    elif of_ledger:
        headline = "Private by itself. What all releases cost together is not shown."
    elif doubts_of_rates:
        headline = "Private, and charged; but the rates shown with it are not private, or were charged to no known ledger."
    else:
        headline = "Private, and charged. The noise hides what the rows tell about a named coefficient."
    doubts = [of_ledger] if of_ledger else []
    return Verdict("caution", headline, (meaning, *unusual, *doubts, *of_more, *doubts_of_rates))


def unusual_of(guarantee: Guarantee) -> tuple[str, ...]:
    """What is unusual about the budget, from the public facts of the guarantee."""
    low, high = guarantee.n_rows or (1, 1)
    return cautions(guarantee.budget, low, high)
