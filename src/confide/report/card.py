"""The report as a Markdown model card, with the fields that Hugging Face reads at its top."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from confide._version import __version__
from confide.estimators.released import ReleasedCoefficients
from confide.features.column_names import printable_lines
from confide.inference.table import CoefficientTable, readable, readable_interval
from confide.report.accuracy import charge_of_rates, forecast_note, percent, question_of, tables_of_rates, what_was_rated
from confide.report.contents import NOT_PROMISED, Contents
from confide.report.findings import has_intervals
from confide.report.verification import schema_hash

_METRICS = {
    "accuracy": "accuracy", "sensitivity": "recall", "specificity": "specificity", "auc": "roc_auc",
    "macro F1": "f1", "R^2": "r_squared", "RMSE": "rmse", "MAE": "mae",
}  # fmt: skip
"""The names that Hugging Face has for rates."""


def card_of(contents: Contents, model: str = "", schema: str = "SCHEMA.toml", note: str = "") -> str:
    """The model card, which names these files in the command that verifies.

    Text that came from files cannot be read as Markdown or HTML.
    """
    guarantee = contents.guarantee
    parts = [
        _front_matter(contents),
        f"# {contents.heading}\n\n{_plain(contents.purpose)}",
        f"> **{_plain(contents.verdict.headline)}**\n"
        + "".join(f">\n> {_plain(each)}\n" for each in contents.verdict.sentences if each),
        "## Facts\n\n" + _table(("Fact", "Value"), contents.facts),
        "## Checksums, SHA-256\n\n" + _table(("Of", "SHA-256"), contents.checksums),
        _gain(contents),
        _coefficients(contents),
        _accuracy(contents),
    ]
    if contents.points:
        parts.append("## What the signer confirms\n\n" + "\n".join(f"- [ ] {_plain(point)}" for point in contents.points))
    statement = "\n\n".join(_plain(line) for line in guarantee.statement().split("\n") if not line.startswith("  - "))
    parts.append(
        f"## Guarantee, word by word\n\n{statement}\n\n" + "\n".join(f"- {_plain(each)}" for each in guarantee.assumptions)
    )
    if guarantee.void is None:
        parts.append("## What the guarantee does not promise\n\n" + "\n".join(f"- {each}" for each in NOT_PROMISED))
    parts.append(f"## Verify\n\n```sh\n{contents.command_to_verify(model, schema)}\n```{note}")
    text = "\n\n".join(filter(None, parts)) + "\n"
    # Nothing in a card may control the terminal that shows it.
    return printable_lines(text)


def _front_matter(contents: Contents) -> str:
    """The fields of Hugging Face, as YAML. JSON values are YAML values."""
    is_classifier = hasattr(contents.model, "classes_")
    task = "tabular-classification" if is_classifier else "tabular-regression"
    fields: dict[str, object] = {
        "library_name": "confide",
        "pipeline_tag": task,
        "tags": ["differential-privacy", "confide", *([] if contents.is_sound else ["not-private"])],
    }
    if contents.evaluation is not None:
        rates = contents.evaluation.get("rates", contents.evaluation)
        is_one_model = len(contents.evaluation["model_checksums"]) == 1
        metrics = [
            {"type": _METRICS[name], "name": name, "value": rates[name]["value"]}
            for name in _METRICS
            if is_one_model and name in rates and rates[name]["value"] is not None
        ]
        fields["metrics"] = [each["type"] for each in metrics]
        data = {"type": "private", "name": contents.data_name or "private rows"}
        result = {"task": {"type": task}, "dataset": data, "metrics": metrics}
        fields["model-index"] = [{"name": contents.name, "results": [result]}]
    lines = "\n".join(f"{name}: {json.dumps(value)}" for name, value in fields.items())
    return f"---\n{lines}\n---"


def _gain(contents: Contents) -> str:
    if not contents.odds:
        return ""
    rows = [(each.name, percent(each.probability)) for each in contents.odds]
    return (
        f"## What an attacker can gain\n\nThe largest probability of guessing {_plain(question_of(contents.guarantee))}, "
        "for an attacker who knows every other row:\n\n"
        + _table(("What was seen", "Right with probability at most"), rows)
        + (f"\n\n{_plain(contents.odds_note)}" if contents.odds_note else "")
    )


def _with_intervals(table: CoefficientTable) -> str:
    """A table with intervals, and its notes."""
    rows = []
    for one in table.coefficients:
        found = table.ratio_of(one)
        ratio = "" if found is None else "{} ({} to {})".format(*readable_interval(*found))
        estimate, *ends = readable_interval(one.estimate, one.low, one.high)
        adjusted = [f"{table.shown_p(one):.3f}"] if table.adjust else []
        rows.append((one.name, one.unit, estimate, " to ".join(ends), *([ratio] if table.ratio else []), *adjusted))
    heads = (
        "Column",
        "Unit",
        "Coefficient" if table.quantity == "coefficients" else "Risk difference",
        f"{100.0 * table.level:g}% interval",
        *([table.ratio] if table.ratio else []),
        *([table.heading_of_p] if table.adjust else []),
    )
    return f"{_table(heads, rows)}\n\n" + "\n\n".join(map(_plain, table.notes[:-1]))


def _coefficients(contents: Contents) -> str:
    model = contents.model
    named = ""
    table = contents.table
    if table is not None:
        text = _with_intervals(table)
        if has_intervals(model):
            return f"## Coefficients\n\n{text}"
        named = f"## Coefficients of interest\n\n{text}\n\n"
    if contents.risks is not None:
        named += f"## Risk differences, standardised over the rows\n\n{_with_intervals(contents.risks)}\n\n"
    shown = ReleasedCoefficients.of(model)
    if shown.units == "encoded" and model.schema is not None:
        return "## Coefficients\n\nThe model works with random features, which mean nothing one by one."
    lines = [
        (
            one.name,
            one.unit,
            readable(one.estimate),
            *(["" if one.ratio is None else readable(one.ratio)] if shown.ratio else []),
        )
        for one in shown.coefficients
    ]
    heads = ("Column", "Unit", "Coefficient", *([shown.ratio] if shown.ratio else []))
    bought = "No intervals of all coefficients were bought" if named else "No intervals were bought"
    return f"{named}## Coefficients\n\nIn {_plain(shown.outcome)}. {bought}.\n\n{_table(heads, lines)}"


def _accuracy(contents: Contents) -> str:
    parts = []
    if contents.evaluation is not None:
        level = contents.evaluation["level"]
        parts.append(
            f"On private rows, with intervals at level {level:g}:\n\n"
            + "\n\n".join(
                f"{_plain(title)}:\n\n{_table(heads, rows)}" if title else _table(heads, rows)
                for title, heads, rows in tables_of_rates(contents.evaluation)
            )
            + f"\n\n{_plain(what_was_rated(contents.evaluation))} {_plain(charge_of_rates(contents.evaluation))}"
        )
    if contents.forecasts:
        rows = [
            (str(each.plan.event.budget), f"{1.0 - each.error:.1%}", f"{1.0 - each.high:.1%} to {1.0 - each.low:.1%}")
            for each in contents.forecasts
        ]
        parts.append(_table(("Budget", "Expected accuracy", "Range"), rows) + f"\n\n{forecast_note(contents.forecasts)}")
    return "## How accurate it is\n\n" + "\n\n".join(parts) if parts else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_plain(cell) for cell in line) + " |" for line in lines)


def _plain(text: str) -> str:
    """Text that is no Markdown and no HTML, in one line."""
    one_line = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>|#~&$])", r"\\\1", one_line)


# The report as a JSON document, for programs that check what leaves a secure room.

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
