"""Checks of a released model against public facts: what was verified, what failed, and what no program can check.

The plan of a fit is a pure function of public facts, and a model's file holds all of them. So anybody can make the plan
again and compare: mechanism, ridge, the sentences of the guarantee, the grid of the released weights, and the charge.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide._version import __version__
from confide.accounting.ledger import Ledger
from confide.cautions import cautions
from confide.erm.centred_rows import Centred
from confide.errors import ConfideError
from confide.estimators.linear_model import form_of_model, released_model
from confide.features.penalised_bounds import ShortenedInNorm
from confide.features.quadratic_forms import QuadraticForm
from confide.features.released_bounds import ABOUT_ITS_CHARGE
from confide.features.schema import Schema
from confide.privacy.mechanism import Plan
from confide.report.ledger_facts import LedgerFacts
from confide.report.verdict import rows_of
from confide.training.assumptions import PENALISED, PENALISED_IN_GROUPS, WITHOUT_LEDGER, guarantee_of
from confide.training.charge import Charge
from confide.training.plan import AnyPlan

VERIFIED, FAILED, UNCHECKED = "verified", "failed", "not checked"
_MOST_DOUBT = 0.25
"""In grid steps: where rounding leaves more doubt than this, a weight is not compared with the grid of their noise."""
_ABOUT_THE_CHARGE = (WITHOUT_LEDGER, "It was charged to a ledger", ABOUT_ITS_CHARGE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check.

    Attributes
    ----------
    outcome : "verified", "failed" or "not checked"
    sentence : what was found, in plain words
    """

    outcome: str
    sentence: str


def verify(
    model: Any,
    *,
    sha256: str = "",
    written_by: str = __version__,
    ledger: Ledger | None = None,
    schema: Schema | None = None,
) -> tuple[Finding, ...]:
    """Check a loaded model against its own public facts, and against a ledger and a schema if they are given.

    Parameters
    ----------
    model : a model that `confide.load` read, which checked the checksum and that the parts of the file fit each other
    sha256 : checksum of its file
    written_by : the version that wrote the file
    ledger : the ledger of the rows, or None
    schema : the schema that people agreed to, or None

    Returns
    -------
    tuple of Finding
    """
    whole = "The file is whole: its checksum is right, and its parts fit each other."
    found = [Finding(VERIFIED, f"{whole} SHA-256 of the file: {sha256}" if sha256 else whole)]
    guarantee = model.guarantee_
    if guarantee.void is not None:
        found.append(Finding(FAILED, f"The model has no guarantee. {guarantee.void}"))
    found += _findings_of_plan(model, written_by)
    found.append(_finding_of_schema(released_model(model).schema, schema))
    found += _findings_of_ledger(model, ledger, sha256)
    found += [
        Finding(UNCHECKED, "That the noise was drawn as planned, on the machine of the fit: no file can show it."),
        Finding(
            UNCHECKED,
            "What the guarantee assumes about people, rows and other releases: the report lists the points to confirm.",
        ),
    ]
    return tuple(found)


def failures_of_plan(model: Any, written_by: str = __version__) -> tuple[str, ...]:
    """What `verify` finds wrong with the plan and the weights in a model's file, in words. Empty if nothing is."""
    return tuple(finding.sentence for finding in _findings_of_plan(model, written_by) if finding.outcome == FAILED)


def schema_hash(schema: Schema) -> str:
    """SHA-256 of a schema, whatever the layout of its file: of its columns in order, its target and its interactions."""
    return hashlib.sha256(json.dumps(schema.to_dict(), separators=(",", ":")).encode()).hexdigest()


def is_verified(findings: tuple[Finding, ...]) -> bool:
    """Whether no check failed."""
    return all(finding.outcome != FAILED for finding in findings)


def plan_again(model: Any) -> AnyPlan:
    """The plan of the fit, made again from the public facts in the model's file.

    Raises
    ------
    ParameterError
        If these facts allow no plan.
    """
    rows, released = rows_of(model.guarantee_), released_model(model)
    n_rows = None if rows is None or model.n_rows_bounds is not None else rows[0]
    classes = {"n_classes": len(released.domain)} if len(released.domain) > 2 else {}
    plan: AnyPlan = model.plan(n_rows, None if model.schema is not None else model.n_features_in_, **classes)
    return plan


def _findings_of_plan(model: Any, written_by: str) -> list[Finding]:
    guarantee, advice = model.guarantee_, ""
    if written_by != __version__:
        advice = f" The file was written by confide {written_by}, and this is {__version__}: verify with that version."
    if not guarantee.budget.is_private:
        return [Finding(UNCHECKED, "The plan was not made again: there is no privacy that it could show.")]
    if _was_chosen(guarantee):
        sentence = (
            "The plan was not made again: the model is one of several that were tried privately, on parts of the rows."
        )
        return [Finding(UNCHECKED, sentence)]
    try:
        plan = plan_again(model)
    except ConfideError as error:
        return [Finding(FAILED, f"The facts in the file allow no such plan: {error}{advice}")]
    expected = guarantee_of(
        plan,
        (),
        released_model(model).encoder,
        Charge(None, None, ""),
        cautions(plan.event.budget, plan.problem.n_rows_low, plan.problem.n_rows_high),
    )
    differing = _differences(model, plan, expected)
    if differing:
        return [
            Finding(
                FAILED, f"The plan, made again from public facts, has another {' and another '.join(differing)}.{advice}"
            )
        ]
    same = (
        f"The plan was made again from the public facts in the file. It has the same budget, {guarantee.budget}, "
        f"mechanism, ridge, noise grid and assumptions."
    )
    return [Finding(VERIFIED, same), *_finding_of_grid(model, plan)]


def _differences(model: Any, plan: AnyPlan, expected: Any) -> list[str]:
    """What differs between the file and the plan that its facts lead to, in words."""
    stated = model.guarantee_
    compared = {
        "budget": stated.budget == expected.budget,
        "neighbour relation": stated.neighbours is expected.neighbours,
        "number of rows of a person": stated.max_rows_per_person == expected.max_rows_per_person,
        "mechanism": stated.mechanism == expected.mechanism,
        "ridge": model.alpha_ == plan.alpha,
        "kind of ridge": any(each in stated.assumptions for each in (PENALISED, PENALISED_IN_GROUPS))
        == (form_of_model(model) is not None),
    }
    form = form_of_model(model)
    if form is not None:
        compared["bound on rows to be scored"] = _shortens_as_planned(model, plan, form)
    found = [name for name, is_same in compared.items() if not is_same]
    if stated.void is not None:
        return found  # sentences on how noise was drawn are missing, as they should be
    owed = [sentence for sentence in expected.assumptions if not sentence.startswith(_ABOUT_THE_CHARGE)]
    # Files of earlier versions call the bound that holds by default a declared one.
    known = {*stated.assumptions, *(each.replace("its declared bound", "its default bound") for each in stated.assumptions)}
    missing = [sentence for sentence in owed if sentence not in known]
    return [*found, *([f'set of assumptions: the file lacks "{missing[0]}"'] if missing else [])]


def _shortens_as_planned(model: Any, plan: AnyPlan, form: QuadraticForm) -> bool:
    """Whether rows to be scored are shortened as the plan shortens rows in the norm of a form."""
    released, planned = released_model(model), plan.problem.row_bound
    own = released.scoring.row_bound if released.encoder is None else released.encoder.row_bound
    norm = planned.inner.l2_norm if isinstance(planned, Centred) else planned.l2_norm
    expected = own if planned == own or norm >= form.longest(own) else ShortenedInNorm(own, form, norm)
    return bool(released.scoring.row_bound == expected)


def _finding_of_grid(model: Any, plan: AnyPlan) -> list[Finding]:
    """Whether the released weights lie on the grid of their noise. Weights that are computed from noisy sums do not."""
    if not isinstance(plan, Plan) or plan.lattice is None or plan.descent is not None or plan.centring is not None:
        return []
    if getattr(model, "monotone", None):
        return []
    steps, form = (
        np.ldexp(np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)), -plan.lattice.exponent),
        form_of_model(model),
    )
    doubts = np.zeros_like(steps)
    if form is not None:
        # The noise was on the weights of rows in the norm of the form, which are found from these up to rounding.
        steps = form.weights_in_norm(steps)
        doubts = form.rounding(steps)
    shows = doubts <= _MOST_DOUBT
    if not shows.any():
        return []
    if (np.abs(steps - np.rint(steps)) <= doubts)[shows].all():
        return [Finding(VERIFIED, f"Every released weight is a multiple of 2^{plan.lattice.exponent}, as its noise says.")]
    return [Finding(FAILED, f"Some weight is no multiple of 2^{plan.lattice.exponent}: it was changed after the release.")]


def _finding_of_schema(own: Schema | None, given: Schema | None) -> Finding:
    if own is None:
        if given is not None:
            return Finding(FAILED, "The model was fitted without a schema, and one was given.")
        return Finding(UNCHECKED, "The model has no schema: the bound on its rows stands in the guarantee.")
    contents = f"SHA-256 of the contents of the model's schema: {schema_hash(own)}"
    if given is None:
        return Finding(UNCHECKED, f"The schema was not compared; give it to do so. {contents}")
    if schema_hash(own) == schema_hash(given):
        return Finding(VERIFIED, f"The model has exactly this schema. {contents}")
    if _without_choices(own) == _without_choices(given):
        same = "The model has this schema. Knots and interactions that it left open were chosen from public facts."
        return Finding(VERIFIED, f"{same} {contents}")
    return Finding(FAILED, f"The model was fitted with another schema than the one that was given. {contents}")


def _without_choices(schema: Schema) -> dict[str, Any]:
    """What a schema says besides what an estimator may choose."""
    described = schema.without_curves().to_dict()
    kept = {key: value for key, value in described.items() if key not in ("interact", "random_features")}
    # Units are words for readers, which decide nothing.
    for each in (kept.get("target", {}), *kept["columns"].values()):
        each.pop("unit", None)
    return kept


def _findings_of_ledger(model: Any, ledger: Ledger | None, sha256: str) -> list[Finding]:
    if ledger is None:
        return [Finding(UNCHECKED, "No ledger was given, so what all releases cost together is not known.")]
    facts = LedgerFacts.of(ledger, model.guarantee_, sha256, estimator=type(model).__name__)
    ledger.verify()
    chain = f"The ledger's chain is whole; head: {facts.head}"
    outcome = VERIFIED if facts.holds_the_charge else UNCHECKED if facts.may_hold_the_charge else FAILED
    found = [Finding(outcome, f"{facts.sentence()} {chain}")]
    if facts.unit_note is not None:
        found.append(Finding(UNCHECKED, f"What all releases cost together is not known. {facts.unit_note}"))
    return found


def _was_chosen(guarantee: Any) -> bool:
    """Whether the model came out of a private search."""
    return any("candidate" in sentence for sentence in guarantee.assumptions)
