"""The report as a Markdown model card, with the fields that Hugging Face reads at its top."""

from __future__ import annotations

import json
from typing import Any

from confide._version import __version__
from confide.blocks import Block, markdown_of, plain, section
from confide.estimators.released import ReleasedCoefficients
from confide.known_words import printable_lines
from confide.report.accuracy import forecast_document
from confide.report.contents import Contents
from confide.report.findings import has_risks, has_tests
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
    sections = [
        section("Facts", contents.facts_box),
        section("Checksums, SHA-256", [Block("facts", contents.checksums, ("Of", "SHA-256"))]),
        contents.gain,
        contents.findings(whole=True),
        contents.accuracy,
        contents.confirmed,
        contents.word_by_word,
        contents.not_promised,
    ]
    parts = [
        _front_matter(contents),
        f"# {contents.heading}\n\n{plain(contents.purpose)}",
        f"> **{plain(contents.verdict.headline)}**\n"
        + "".join(f">\n> {plain(sentence)}\n" for sentence in contents.verdict.sentences if sentence),
        *(markdown_of(block) for block in sections if block is not None),
        f"## Verify\n\n```sh\n{contents.command_to_verify(model, schema)}\n```{note}",
    ]
    # Nothing in a card may control the terminal that shows it.
    return printable_lines("\n\n".join(parts) + "\n")


def _front_matter(contents: Contents) -> str:
    """The fields of Hugging Face, as YAML. JSON values are YAML values."""
    task = "tabular-classification" if hasattr(contents.model, "classes_") else "tabular-regression"
    tags = ["differential-privacy", "confide", *([] if contents.is_sound else ["not-private"])]
    fields: dict[str, object] = {"library_name": "confide", "pipeline_tag": task, "tags": tags}
    if contents.evaluation is not None:
        rates = contents.evaluation.get("rates", contents.evaluation)
        is_one_model = len(contents.evaluation["model_checksums"]) == 1
        known = [name for name in _METRICS if is_one_model and name in rates and rates[name]["value"] is not None]
        metrics = [{"type": _METRICS[name], "name": name, "value": rates[name]["value"]} for name in known]
        fields["metrics"] = [metric["type"] for metric in metrics]
        data = {"type": "private", "name": contents.data_name or "private rows"}
        result = {"task": {"type": task}, "dataset": data, "metrics": metrics}
        fields["model-index"] = [{"name": contents.name, "results": [result]}]
    lines = "\n".join(f"{name}: {json.dumps(value)}" for name, value in fields.items())
    return f"---\n{lines}\n---"


# The report as a JSON document, for programs that check what leaves a secure room.

KIND, VERSION = "confide-report", 1


def document_of_report(contents: Contents) -> dict[str, Any]:
    """What a report says, as JSON values. `private` is the answer in one word; `guarantee` holds it in numbers."""
    guarantee, schema, model = contents.guarantee, contents.schema, contents.model
    how: dict[str, Any] = {"level": contents.level, "adjust": contents.adjust}
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
        "largest_probability_of_a_right_guess": [{"after": seen, "probability": odds} for seen, odds in contents.odds],
        "facts": dict(contents.facts),
        "estimator": contents.name,
        "alpha": model.alpha_,
        "model_sha256": contents.sha256,
        "schema_sha256": None if schema is None else schema_hash(schema),
        "schema": None if schema is None else schema.to_dict(),
        "ledger": None if contents.ledger is None else contents.ledger.to_dict(),
        "to_confirm": list(contents.points),
        "coefficients": ReleasedCoefficients.of(model).to_dict(),
        "intervals": model.summary(**how).to_dict() if has_tests(model) else None,
        **({"risk_differences": model.average_risk_differences(**how).to_dict()} if has_risks(model) else {}),
        "evaluation": contents.evaluation,
        "forecasts": list(map(forecast_document, contents.forecasts)),
        "date": contents.date,
        "versions": {"model": contents.written_by, "report": __version__},
    }
