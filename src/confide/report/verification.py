"""Checks of a released model against public facts: what was verified, what failed, and what no program can check.

The plan of a fit is a pure function of public facts, and a model's file holds all of them. So anybody can make the plan
again and compare: mechanism, ridge, the sentences of the guarantee, the grid of the released weights, and the charge.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide._version import __version__
from confide.accounting.batches import charges_of
from confide.accounting.ledger import Ledger
from confide.budget_warnings import cautions
from confide.erm.row_bounds import before_moving
from confide.errors import ConfideError, wording
from confide.estimators.calibration import CalibratedClassifier, counts_of
from confide.estimators.evaluation import said_by_model
from confide.estimators.linear_model import (
    PrivateLinearModel,
    checksum_of_model,
    form_of_model,
    released_model,
    said_of_target,
    settings_of_model,
    version_of,
)
from confide.estimators.search import before_fit, encoder_with_slots, plans_again, sentences_of_search
from confide.evaluations.documents import what_does_not_follow
from confide.features.atoms import cells_of, n_cells
from confide.features.forms import ShortenedInNorm
from confide.features.fourier import has_found_scales
from confide.features.schema import Schema
from confide.guarantee import Guarantee
from confide.inference.debiased import InterestEvidence, RisksEvidence, points_of_risks
from confide.inference.forecast import IntervalsPlan
from confide.inference.interest_plan import InterestPlan
from confide.inference.intervals import Evidence, positive_part
from confide.inference.least_squares import SumsEvidence
from confide.inference.rates import guarantee_in_words
from confide.intake.specification import Columns, coefficient_names
from confide.intake.targets import declared_domain, number_column
from confide.models.model import ReleasedModel
from confide.privacy.curvature import length_of
from confide.privacy.standardised_sums import StandardisedSums
from confide.privacy.sufficient_statistics import NoisyStatistics, StatisticsPlan
from confide.report.accuracy import charge_of_rates, doubts_of_rates
from confide.report.ledger_facts import LedgerFacts
from confide.training.assumptions import guarantee_of, of_weights, sentences_of_rows
from confide.training.fit import atoms_release
from confide.training.plan import AnyPlan

VERIFIED, FAILED, UNCHECKED = "verified", "failed", "not checked"
_MOST_DOUBT = 0.25
"""In grid steps: where rounding leaves more doubt than this, a weight is not compared with the grid of their noise."""
_MOST_CHANCE = 0.01
"""Where more than this part of other weights would lie on the grid too, that these do shows nothing."""
_ROUNDING_OF_SUMS = 1e-6
"""Relative: what is computed from released sums again differs by far less on another machine."""
_SUMS = (
    "curvature", "slope", "products", "targets", "square", "sums", "risks", "weights", "frame.centre", "frame.spreads",
    "start", "slopes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One check.

    Attributes
    ----------
    outcome : "verified", "failed" or "not checked"
    sentence : what was found, in plain words
    parts : of what is not checked, the parts of the model's file that hold it, as "part.part"
    """

    outcome: str
    sentence: str
    parts: tuple[str, ...] = ()


def verify(
    model: Any,
    *,
    calibrated: CalibratedClassifier | None = None,
    sha256: str = "",
    written_by: str = "",
    ledger: Ledger | None = None,
    schema: Schema | None = None,
) -> tuple[Finding, ...]:
    """Check a loaded model against its own public facts, and against a ledger and a schema if they are given.

    Parameters
    ----------
    model : a model that `confide.load` read, which checked the checksum and that the parts of the file fit each other
    calibrated : the calibrated classifier that the file holds, of which this is the model, or None
    sha256 : checksum of its file
    written_by : the version that wrote the file; "" for what the model was read from
    ledger : the ledger of the rows, or None
    schema : the schema that people agreed to, or None

    Returns
    -------
    tuple of Finding
    """
    whole = "The file is whole: its checksum is right, and its parts fit each other."
    findings = [Finding(VERIFIED, f"{whole} SHA-256 of the file: {sha256}" if sha256 else whole)]
    guarantee = model.guarantee_
    if guarantee.void is not None:
        findings.append(Finding(FAILED, f"The model has no guarantee. {guarantee.void}"))
    findings += _findings_of_plan(model, written_by)
    findings.append(_finding_of_schema(released_model(model).schema, schema))
    # Charges of fits name the file of the model, which a calibrated classifier has inside of its own.
    findings += _findings_of_ledger(model, ledger, sha256 if calibrated is None else checksum_of_model(model))
    if calibrated is not None:
        findings += _findings_of_counts(calibrated, ledger)
    findings += _stated_alone(model, written_by or version_of(model))
    assumed = "What the guarantee assumes about people, rows and other releases: the report lists the points to confirm."
    return (*findings, Finding(UNCHECKED, assumed))


def _stated_alone(model: PrivateLinearModel, written_by: str) -> list[Finding]:
    """What the file says and nothing else confirms. With the checks, these findings cover every part of a model's file."""
    released, has_form = released_model(model), getattr(model, "penalty", None) is not None
    kept = {"intervals": released.evidence, "interest": released.interest}
    sums = [f"{name}.{part}" for name, value in kept.items() if value is not None for part in _SUMS]
    facts, encoder, sentence = released.guarantee.circumstances, released.encoder, ""
    if facts is not None:
        low, high = facts.n_rows
        rows = f"{low:,}" if low == high else f"between {low:,} and {high:,}"
        search = facts.search
        chosen = "one fit" if search is None else f"a search among {search.candidates} candidates ({search.method})"
        ledger = "no ledger" if facts.ledger is None else f"the ledger {facts.ledger.identity}"
        seed = "noise from a fixed seed" if facts.seeded else "noise that no seed fixed"
        earlier = f"{' and '.join(facts.learned_steps) or 'none'}; OpenDP asked: {facts.opendp or 'no'}"
        tried = facts.attempts
        sentence = wording(
            "facts of a fit", rows=rows, ledger=ledger, chosen=chosen, seed=seed, earlier=earlier, attempt=tried
        )
    numbers = "The released numbers, and that their noise was drawn as planned on the machine of the fit: no file shows it."
    names = "Names of columns and of classes, and the bound on rows: no schema declares them."
    strengths = wording("strengths of a ridge")
    unnamed = encoder is not None and encoder.schema.target is None and bool(released.domain)
    unused = tuple(f"parameters.{name}" for name in ("cluster_effect", "population_size", "mean_sample_weight"))
    of_losses = {"power": "tweedie", "dispersion": "negative_binomial"}
    unasked = (name for name, loss in of_losses.items() if hasattr(model, name) and getattr(model, "loss", None) != loss)
    idle = tuple(map("parameters.{}".format, unasked))
    bounded = number_column(released.schema) is not None
    stated: tuple[tuple[bool, str, tuple[str, ...]], ...] = (
        (True, numbers, ("coef", "intercept", *sums)),
        (True, f"Which version wrote the file: it says confide {written_by}.", ("version",)),
        (facts is not None, sentence, ("guarantee.circumstances",)),
        (encoder is None, names, ("feature_names_in", "classes", "row_bound")),
        (unnamed, "Names of classes: the schema has no target.", ("classes",)),
        (
            released.evidence is None and released.interest is None,
            "What was declared of the sample: no intervals rest on it.",
            unused,
        ),
        (idle != (), "Parameters of losses that the model does not have.", idle),
        (has_form, strengths, ("parameters.penalty",)),
        (bounded, "The parameter target_bound: the schema bounds the target.", ("parameters.target_bound",)),
        (released.prior is not None, "The weights of the prior, and where they came from.", ("prior",)),
    )
    return [Finding(UNCHECKED, said, parts) for is_said, said, parts in stated if is_said]


def failures_of_plan(model: Any, written_by: str = "") -> tuple[str, ...]:
    """What `verify` finds wrong with the plan and the weights in a model's file, in words. Empty if nothing is."""
    return tuple(finding.sentence for finding in _findings_of_plan(model, written_by) if finding.outcome == FAILED)


def schema_hash(schema: Schema) -> str:
    """SHA-256 of a schema, whatever the layout of its file: of its columns in order, its target and its interactions."""
    return hashlib.sha256(json.dumps(schema.to_dict(), separators=(",", ":")).encode()).hexdigest()


def is_verified(findings: tuple[Finding, ...]) -> bool:
    """Whether no check failed."""
    return all(finding.outcome != FAILED for finding in findings)


def _findings_of_plan(model: Any, written_by: str) -> list[Finding]:
    guarantee, advice = model.guarantee_, ""
    if (version := written_by or version_of(model)) != __version__:
        advice = f" The file was written by confide {version}, and this is {__version__}: verify with that version."
    if guarantee.circumstances is None:
        lacking = "The file does not say from which facts its guarantee was written, as files of this version do."
        return [Finding(FAILED, f"{lacking}{advice}")]
    if not guarantee.budget.is_private:
        return [Finding(UNCHECKED, "The plan was not made again: there is no privacy that it could show.")]
    try:
        plan, whole = plans_again(model)
        expected = _guarantee_again(model, whole)
        if getattr(whole, "without", None) is not None:
            expected = of_weights(expected, plan)
    except (ConfideError, KeyError) as error:
        return [Finding(FAILED, f"The facts in the file allow no such plan: {error}{advice}")]
    if differing := _differences(model, plan, expected):
        others = " and another ".join(differing)
        return [Finding(FAILED, f"The plan, made again from public facts, has another {others}.{advice}")]
    same = wording("plan made again", budget=guarantee.budget)
    return [Finding(VERIFIED, same), *_finding_of_grid(model, plan)]


def _guarantee_again(model: Any, plan: AnyPlan) -> Guarantee:
    """The guarantee that the plan and the other facts in the file lead to, with all its sentences."""
    model = before_fit(model)
    facts, released, problem = model.guarantee_.circumstances, released_model(model), plan.problem
    settings = settings_of_model(model)
    target = said_of_target(model, declared=facts.labels_declared)
    of_rows = sentences_of_rows(target, settings, facts, released.encoder, released.fourier)
    unusual = cautions(plan.event.budget, problem.n_rows_low, problem.n_rows_high)
    return guarantee_of(plan, (*of_rows, *sentences_of_search(facts)), released.encoder, facts, unusual)


def _differences(model: Any, plan: AnyPlan, expected: Guarantee) -> list[str]:
    """What differs between the file and the plan that its facts lead to, in words."""
    stated, released = model.guarantee_, released_model(model)
    is_declared = model.schema is not None and model.schema.target is not None and bool(released.domain)
    facts = stated.circumstances
    rows = (plan.problem.n_rows_low, plan.problem.n_rows_high)
    compared = {
        "budget": stated.budget == expected.budget,
        "neighbour relation": stated.neighbours is expected.neighbours,
        "number of rows of a person": stated.max_rows_per_person == expected.max_rows_per_person,
        "number of rows": facts.search is not None or tuple(facts.n_rows) == rows,
        "mechanism": stated.mechanism == expected.mechanism,
        "reason for having no guarantee": stated.void == expected.void,
        "ridge": model.alpha_ == plan.alpha,
        "bound on rows to be scored": _is_bounded_as_planned(model, plan),
        "set of classes": not is_declared or released.domain == declared_domain(None, model.schema),
        "source of the labels": facts.labels_declared or (bool(released.domain) and not is_declared),
        "ledger of the prior": not facts.prior_in_ledger or None not in (facts.ledger, released.prior),
        "list of columns": _has_its_columns(released),
        "map of rows to random features": _has_scales_as_planned(released, plan),
        "list of atoms that it may find": _has_atoms_as_planned(released, plan),
        "description of what intervals are computed from": _has_evidence_as_planned(
            released, plan, settings_of_model(model).target_shift
        ),
    }
    differing = [name for name, is_same in compared.items() if not is_same]
    if stated.assumptions != expected.assumptions:
        lacking = [assumption for assumption in expected.assumptions if assumption not in stated.assumptions]
        more = [assumption for assumption in stated.assumptions if assumption not in expected.assumptions]
        what = f'the file lacks "{lacking[0]}"' if lacking else f'the file adds "{more[0]}"' if more else "in another order"
        differing.append(f"set of assumptions: {what}")
    return differing


def _has_scales_as_planned(released: ReleasedModel, plan: AnyPlan) -> bool:
    """Whether the columns of random features have scales beyond those of the schema or a prior, if the plan finds some."""
    known = None if released.encoder is None or released.prior is not None else released.encoder.appended
    return has_found_scales(released.fourier, known) == (getattr(plan, "scaling", None) is not None)


def _has_atoms_as_planned(released: ReleasedModel, plan: AnyPlan) -> bool:
    """Whether the atoms that the fit found are such as the plan may find, and are said to come from this fit."""
    part, schema, guarantee = getattr(plan, "atoms", None), released.schema, released.guarantee
    found = {} if schema is None else {c.name: c for c in schema.columns if c.is_number and c.before_fit is not c}
    if part is None:
        return not found
    sought = {column.name: column for column in part.query.columns}
    return found.keys() <= sought.keys() and all(
        len(column.atoms) <= part.query.slots
        and column.released_atoms == atoms_release(tuple(sought), guarantee)
        and (cells_of(column, np.array(column.atoms)) < n_cells(column) - 1).all()
        for column in found.values()
    )


def _has_its_columns(released: ReleasedModel) -> bool:
    """Whether columns and coefficients have the names that the schema, or the columns of X, lead to."""
    columns, encoder = released.columns, released.encoder
    if encoder is not None:
        own = Columns.of_schema(encoder)
        given = (described.feature_names_in for described in (columns, own))
        names, expected = (() if described is None else tuple(described) for described in given)
        if columns.n_features_in != own.n_features_in or names != expected:
            return False
    return np.array_equal(released.coefficient_names, coefficient_names(columns, encoder, released.fourier))


def _has_evidence_as_planned(released: ReleasedModel, plan: AnyPlan, shift: float) -> bool:
    """Whether the public facts beside the released sums and moments are those of the plan."""
    facts, evidence, interest = released.guarantee.circumstances, released.evidence, released.interest
    weighted = facts is not None and facts.has_weights
    if isinstance(plan, StatisticsPlan):
        if interest is not None or (evidence is None) != (not plan.problem.with_square or plan.l1_ratio > 0.0):
            return False
        if not isinstance(evidence, SumsEvidence):
            return evidence is None
        sums = NoisyStatistics(evidence.products, evidence.targets, evidence.square, plan)
        expected = replace(SumsEvidence.of(sums, evidence.weights), shift=shift)
        return _same_facts(evidence, expected, weighted=weighted) and _solves_its_sums(evidence)
    if isinstance(plan.intervals, InterestPlan):
        if interest is None or evidence is not None or (interest.risks is None) != (plan.intervals.risks is None):
            return False
        length = math.inf if plan.intervals.spreads.lattice is None else length_of(plan.problem)
        asked, frame = plan.intervals, replace(interest.frame, length=length)
        planned = replace(interest, facts=asked.facts, combinations=asked.combinations, frame=frame)
        is_same = interest.to_dict() == (planned.with_weights() if weighted else planned).to_dict()
        return is_same and _has_risks_as_planned(interest, asked)
    if interest is not None or (evidence is None) != (plan.intervals is None):
        return False
    if plan.intervals is None:
        return True
    if not isinstance(evidence, Evidence) or not isinstance(plan.intervals, IntervalsPlan):
        return False
    of_plan = Evidence.of(plan, evidence.weights, plan.intervals.moments, (evidence.curvature, evidence.slope))
    return _same_facts(evidence, of_plan, weighted=weighted)


def _same_facts(evidence: Evidence | SumsEvidence, expected: Evidence | SumsEvidence, *, weighted: bool) -> bool:
    """Whether evidence has the facts that the plan leads to, where rows may have had weights of their own."""
    if weighted:
        expected = replace(expected, design=replace(expected.design, has_weights=True))
    return evidence.to_dict() == expected.to_dict()


def _solves_its_sums(evidence: SumsEvidence) -> bool:
    """Whether the weights are those of the released sums, to far less than anybody would change them by."""
    products = positive_part(evidence.products) + evidence.l2 * np.eye(evidence.weights.size)
    targets = evidence.targets + evidence.l2 * evidence.centre
    size = np.abs(products) @ np.abs(evidence.weights) + np.abs(targets)
    return bool((np.abs(products @ evidence.weights - targets) <= _ROUNDING_OF_SUMS * size.max()).all())


def _has_risks_as_planned(interest: InterestEvidence, plan: InterestPlan) -> bool:
    """Whether steps and noise of differences of risks follow from what was released before, and from the plan."""
    risks = interest.risks
    if risks is None or plan.risks is None:
        return True
    _, steps = points_of_risks(interest)
    n_rows = risks.n_rows
    sums = StandardisedSums(risks.differences * n_rows, risks.rates * n_rows, risks.bends * n_rows, n_rows)
    expected = RisksEvidence.of(plan.risks, risks.steps, sums)
    close = [(steps, risks.steps), *zip(expected.deviations, risks.deviations, strict=True)]
    same = (expected.count_deviation, expected.n_rows) == (risks.count_deviation, risks.n_rows)
    if not same or expected.is_laplace != risks.is_laplace:
        return False
    return all(np.allclose(one, other, rtol=_ROUNDING_OF_SUMS, atol=0.0) for one, other in close)


def _is_bounded_as_planned(model: Any, plan: AnyPlan) -> bool:
    """Whether rows to be scored are clipped as the plan clips them, and shortened where it does so in the norm of a form."""
    released, planned = released_model(model), before_moving(plan.problem.row_bound)
    form, encoder = form_of_model(model), released.encoder
    # Slots in which the fit found no atoms are left out of the model.
    if encoder is not None and (part := getattr(plan, "atoms", None)) is not None:
        with_slots = encoder_with_slots(encoder, part)
        whole, sought = encoder.appended or encoder, with_slots.appended or with_slots
        planned = whole.row_bound if planned == sought.row_bound else planned
    if form is None:
        return bool(released.scoring.row_bound == planned)
    if encoder is not None and encoder.appended is not None:
        # Rows with random features are never shortened in the norm of the form.
        bounds, longest = encoder.appended, form.longest(encoder.row_bound)
        return bool(released.scoring.row_bound == bounds.row_bound and planned == bounds.bound_for(longest))
    own, norm = released.scoring.row_bound if encoder is None else encoder.row_bound, planned.l2_norm
    expected = own if planned == own or norm >= form.longest(own) else ShortenedInNorm(own, form, norm)
    return bool(released.scoring.row_bound == expected)


def _finding_of_grid(model: Any, plan: AnyPlan) -> list[Finding]:
    """Whether the released weights lie on the grid of their noise. Weights that are computed from noisy sums do not."""
    if plan.lattice is None or not plan.weights_on_grid or getattr(model, "monotone", None):
        return []
    steps = np.ldexp(np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)), -plan.lattice.exponent)
    form = form_of_model(model)
    doubts = np.zeros_like(steps)
    if form is not None:
        # The noise was on the weights of rows in the norm of the form, which are found from these up to rounding.
        steps = form.weights_in_norm(steps)
        doubts = form.rounding(steps)
    grid, shows = f"2^{plan.lattice.exponent}", doubts <= _MOST_DOUBT
    if (np.abs(steps - np.rint(steps)) > doubts)[shows].any():
        return [Finding(FAILED, f"Some weight is no multiple of {grid}: it was changed after the release.")]
    # The part of other weights that would pass: rounding leaves doubts, and their binary digits end.
    chance = float(np.prod(np.minimum(1.0, 2.0 * doubts + np.abs(steps) * 2.0**-52)[shows & (steps != 0.0)]))
    if chance <= _MOST_CHANCE:
        return [Finding(VERIFIED, f"Every released weight is a multiple of {grid}, as its noise says.")]
    return [Finding(UNCHECKED, f"Rounding hides whether the released weights are multiples of {grid}, as their noise says.")]


def _finding_of_schema(own: Schema | None, given: Schema | None) -> Finding:
    if own is None:
        if given is not None:
            return Finding(FAILED, "The model was fitted without a schema, and one was given.")
        return Finding(UNCHECKED, "The model has no schema: the bound on its rows stands in the guarantee.")
    contents = f"SHA-256 of the contents of the model's schema: {schema_hash(own)}"
    if given is None:
        return Finding(UNCHECKED, f"The schema was not compared; give it to do so. {contents}", ("schema",))
    # As a fit takes it: atoms that an earlier fit found are those of a release.
    asked = {schema_hash(given), schema_hash(given.for_another_fit)}
    if schema_hash(own) in asked:
        return Finding(VERIFIED, f"The model has exactly this schema. {contents}")
    if _without_choices(own) in (_without_choices(given), _without_choices(given.for_another_fit)):
        same = "The model has this schema, but for knots, interactions, random features, atoms that the fit found, and units"
        return Finding(VERIFIED, f"{same}, which were not compared. {contents}", ("schema",))
    return Finding(FAILED, f"The model was fitted with another schema than the one that was given. {contents}")


def _without_choices(schema: Schema) -> dict[str, Any]:
    """What a schema says besides what an estimator may choose. Atoms that no fit found are compared."""
    schema = schema.before_fit
    columns = {column.name: (column.atoms, column.released_atoms) for column in schema.columns if column.is_number}
    described = schema.without_curves().to_dict() | {"atoms": columns}
    kept = {key: value for key, value in described.items() if key not in ("interact", "random_features")}
    # Units are words for readers, which decide nothing.
    for field in (kept.get("target", {}), *kept["columns"].values()):
        field.pop("unit", None)
    return kept


def _findings_of_ledger(model: Any, ledger: Ledger | None, sha256: str) -> list[Finding]:
    if ledger is None:
        return [Finding(UNCHECKED, "No ledger was given, so what all releases cost together is not known.")]
    facts = LedgerFacts.of(ledger, model.guarantee_, sha256, estimator=type(model).__name__)
    ledger.verify()
    chain = f"The ledger's chain is whole; head: {facts.head}"
    outcome = VERIFIED if facts.holds_the_charge else UNCHECKED if facts.may_hold_the_charge else FAILED
    findings = [Finding(outcome, f"{facts.sentence()} {chain}")]
    if facts.unit_note is not None:
        findings.append(Finding(UNCHECKED, f"What all releases cost together is not known. {facts.unit_note}"))
    return findings


def _findings_of_counts(calibrated: CalibratedClassifier, ledger: Ledger | None) -> list[Finding]:
    """What holds of the counts by which probabilities are calibrated. Reading the file compared them with the model."""
    facts = counts_of(calibrated)
    said = "The file's calibrated probabilities follow from counts that name its model."
    if facts["void"] is not None:
        return [Finding(FAILED, f"{said} They have no guarantee. {facts['void']}", ("evaluation",))]
    own = ledger is not None and facts["charged_to"] == ledger.identity
    lacking = doubts_of_rates(facts, facts["charged_to"], charges_of(ledger)) if ledger is not None and own else ()
    stated = f"{said} {guarantee_in_words(facts)} {charge_of_rates(facts)} No file shows that they are those of the rows."
    doubts = (*lacking, what_does_not_follow(facts, said_by_model(calibrated.model)))
    return [Finding(UNCHECKED, stated, ("evaluation",)), *(Finding(FAILED, doubt) for doubt in doubts if doubt)]
