"""The report as a JSON document, for programs that check what leaves a secure room."""

from __future__ import annotations

from typing import Any

from confide._version import __version__
from confide.estimators.released_coefficients import ReleasedCoefficients
from confide.report.contents import Contents
from confide.report.verification import schema_hash

KIND, VERSION = "confide-report", 1


def document_of_report(contents: Contents) -> dict[str, Any]:
    """What a report says, as JSON values. `private` is the answer in one word; `guarantee` holds it in numbers."""
    guarantee, schema = contents.guarantee, contents.schema
    found = ReleasedCoefficients.of(contents.model)
    return {
        "kind": KIND,
        "format_version": VERSION,
        "private": contents.is_sound,
        "verdict": {
            "kind": contents.verdict.kind,
            "headline": contents.verdict.headline,
            "sentences": list(filter(None, contents.verdict.sentences)),
        },
        "guarantee": guarantee.to_dict(),
        "statement": guarantee.statement(),
        "largest_probability_of_a_right_guess": [
            {"after": each.name, "probability": each.probability} for each in contents.odds
        ],
        "facts": dict(contents.facts),
        "estimator": contents.name,
        "alpha": contents.model.alpha_,
        "model_sha256": contents.sha256,
        "schema_sha256": None if schema is None else schema_hash(schema),
        "schema": None if schema is None else schema.to_dict(),
        "ledger": None if contents.ledger is None else contents.ledger.to_dict(),
        "to_confirm": list(contents.points),
        "coefficients": {
            "units": found.units,
            "outcome": found.outcome,
            "coefficients": [one.to_dict() for one in found.coefficients],
        },
        "intervals": None if contents.table is None else contents.table.to_dict(),
        **({} if contents.risks is None else {"risk_differences": contents.risks.to_dict()}),
        "evaluation": contents.evaluation,
        "forecasts": [
            {
                "budget": each.plan.event.budget.to_dict(),
                "error": each.error,
                "low": each.low,
                "high": each.high,
                "non_private_error": each.non_private_error,
                "constant_error": each.constant_error,
            }
            for each in contents.forecasts
        ],
        "date": contents.date,
        "versions": {"model": contents.written_by, "report": __version__},
    }
