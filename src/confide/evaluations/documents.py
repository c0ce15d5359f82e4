"""Evaluations as documents that were written and are read again: every value that is used has the right type."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confide.errors import FileError, ParameterError, wording
from confide.features.toml_form import is_path, refuse_address
from confide.privacy.budgets import Neighbours, budget_from_dict

RATES = ("accuracy", "sensitivity", "specificity", "auc")


def checked_evaluation(given: Any, checksums: Sequence[str], name: str = "evaluation") -> dict[str, Any] | None:
    """An evaluation as JSON values, of which every one that a report reads has the right type.

    Parameters
    ----------
    given : what `evaluate` gave, or a document of it, which may have been damaged, or the path of its file
    checksums : those that the file of the model has, or would have if it were saved again
    name : of the parameter or option that gave it

    Raises
    ------
    ParameterError
        If it is no evaluation, or one of another model.
    FileError
        If the file cannot be read, or is not JSON.
    """
    if given is None:
        return None
    document = given.to_dict() if hasattr(given, "to_dict") else _json_of(given) if is_path(given) else given
    if isinstance(document, dict) and isinstance(document.get("evaluation"), dict):
        document = document["evaluation"]
    try:
        json.dumps(document, allow_nan=False)
        is_one = isinstance(document, dict) and _is_evaluation(document)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, ParameterError):
        is_one = False
    if not is_one:
        raise ParameterError(wording("no document of an evaluation", name=name))
    if document["model_checksums"][0] not in checksums:
        raise ParameterError(
            f"{name}: these rates are of another model. They name the file with SHA-256 "
            f"{document['model_checksums'][0]}, and that of this model has {checksums[-1]}. Give the rates of this model."
        )
    return dict(document)


def _is_evaluation(document: dict[str, Any]) -> bool:
    """Whether every value that reports read is there and of the right type. It may raise an error in place of False."""
    from_tables = "rates" in document
    groups, charge = document.get("by_group", {}), document.get("charge")
    budget, _ = budget_from_dict(document["budget"]), Neighbours.parse(document["neighbours"])
    checksums = document["model_checksums"]
    # Exports to SQL write these in comments, which a line end would close.
    sentences = [*document.get("interrupted", ()), *([] if document["void"] is None else [document["void"]])]
    texts = [document["kind" if from_tables else "outcome"], *checksums]
    perhaps = [document["charged_to"], document.get("other"), document.get("group_column")]
    perhaps.append((charge or {}).get("ledger"))
    rates = [rates_in(document), *groups.values(), *document.get("group_differences", {}).values()]
    return (
        (document["void"] is not None or budget.is_private)
        and all(type(text) is str for text in texts)
        and all(type(text) is str and text and text.isprintable() for text in sentences)
        and all(text is None or (type(text) is str and text.isprintable()) for text in perhaps)
        and isinstance(charge, dict | None)
        and type(checksums) is list
        and 1 <= len(checksums) <= 2
        and _is_number(document["level"], 0.0, 1.0)
        and (document.get("clip") is None or _is_number(document["clip"], 0.0, math.inf))
        and (not groups or document.get("group_column") is not None)
        and set(document.get("group_differences", {})) <= {name for name, block in groups.items() if not is_hidden(block)}
        and all(name for block in rates for name in block)
        and all(_is_rate(rate, bounded=not from_tables) for block in rates for rate in block.values())
    )


def _is_rate(rate: Any, *, bounded: bool) -> bool:
    """Whether it is a number with an interval, or one that the noise hides."""
    if not isinstance(rate, dict) or set(rate) != {"value", "low", "high"}:
        return False
    low, high = (0.0, 1.0) if bounded else (-math.inf, math.inf)
    hidden = [value is None for value in rate.values()]
    if any(hidden):
        return all(hidden)
    return all(_is_number(value, low, high) for value in rate.values()) and rate["low"] <= rate["value"] <= rate["high"]


def is_hidden(rates: dict[str, Any]) -> bool:
    """Whether the noise hides all of these rates."""
    return all(rate["value"] is None for rate in rates.values())


def _is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and low <= value <= high


def rates_in(evaluation: dict[str, Any]) -> dict[str, Any]:
    """The rates of an evaluation by name, of whatever kind it is."""
    return dict(evaluation["rates"]) if "rates" in evaluation else {name: evaluation[name] for name in RATES}


def _json_of(path: Any) -> Any:
    refuse_address(path)
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    except (RecursionError, ValueError):
        raise FileError(f"{path} is not JSON; give the file that `confide evaluate --format json` wrote.") from None
