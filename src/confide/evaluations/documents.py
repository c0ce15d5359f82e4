"""Evaluations as documents that were written and are read again: each is made again of its noisy counts and public facts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from confide.array_types import Array
from confide.budget_warnings import attempts_sentence, void_because
from confide.errors import FileError, ParameterError, wording
from confide.evaluations.class_rates import ClassEvaluation
from confide.evaluations.model_comparison import ModelComparison
from confide.evaluations.number_errors import NumberEvaluation
from confide.evaluations.result import Groups, TablesEvaluation
from confide.evaluations.tables import ClassPairTables, ClassTables, NumberPairTables, NumberTables, sizes_of
from confide.features.toml_form import is_path, refuse_address
from confide.inference.rates import Evaluation, NoisyTable
from confide.known_words import listed
from confide.privacy.budgets import Neighbours, budget_from_dict
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Counts, Tables

Evaluated: TypeAlias = Evaluation | ClassEvaluation | NumberEvaluation | ModelComparison
_KINDS: dict[type, type[TablesEvaluation]] = {
    ClassTables: ClassEvaluation, NumberTables: NumberEvaluation,
    ClassPairTables: ModelComparison, NumberPairTables: ModelComparison,
}  # fmt: skip
RATES = ("accuracy", "sensitivity", "specificity", "auc")
REVEALED = "the counts may reveal any row"
"""What an evaluation without noise has to say of itself."""
_OF_FILES = {"model", "other", "charge", "calibrates"}
"""What a command or a report writes beside an evaluation. No rate follows from it."""
_MOST_ROWS = 10_000
"""Of one person. No evaluation says how many there may be, but its noise does."""
_ROUNDING, _SMALLEST = 1e-6, 1e-9
"""What is computed of the same counts on another machine differs by far less, relative to its size or at all."""


def rated(result: partial[Evaluated], released: Sequence[Array], shapes: Any, noise: Any) -> Evaluated:
    """The rates, from the released tables. `noise` is what `NoisyTable.of` takes of it."""
    tables = tuple(NoisyTable.of(*pair, *noise) for pair in zip(released, shapes, strict=True))
    return result(counts=tables[0].counts) if result.func is Evaluation else result(tables=tables)


def result_of(words: dict[str, Any]) -> tuple[partial[Evaluated], Any]:
    """What the rates are put into, of which each kind of evaluation has its own words, and the noise of tables."""
    noise = (words["plan"].deviation, words["n_rows"], words["level"], words["plan"].excess_kurtosis)
    return _with_own(_KINDS.get(type(words["layout"]), Evaluation), words), noise


def _with_own(kind: Any, words: dict[str, Any]) -> partial[Any]:
    return partial(kind, **{field.name: words[field.name] for field in fields(kind) if field.name in words})


def checked_evaluation(
    given: Any, checksums: Sequence[str], name: str = "evaluation", known: Callable[[], dict[str, Any]] | None = None
) -> dict[str, Any] | None:
    """An evaluation as JSON values: counts that were released, with all that is said of them.

    Parameters
    ----------
    given : what `evaluate` gave, or a document of it, which may have been damaged, or the path of its file
    checksums : those that the file of the model has, or would have if it were saved again
    name : of the parameter or option that gave it
    known : gives what the model says of its target, as `said_by_model` does, where all parts must follow from the counts;
        None leaves that to `what_does_not_follow`

    Raises
    ------
    ParameterError
        If it is no evaluation, or one of another model, or it has parts or sentences that no evaluation has, or such as do
        not follow from its counts.
    FileError
        If the file cannot be read, or is not JSON.
    """
    if given is None:
        return None
    document = given.to_dict() if hasattr(given, "to_dict") else _json_of(given) if is_path(given) else given
    if isinstance(document, dict) and isinstance(document.get("evaluation"), dict):
        document = document["evaluation"]
    is_one = False
    with suppress(Exception):  # whatever is wrong with it
        document = json.loads(json.dumps(document, allow_nan=False))
        expected = _evaluation_of(document).to_dict().keys()
        shown = (document.get("other", ""), (document.get("charge") or {}).get("ledger") or "")
        is_one = expected <= document.keys() <= expected | _OF_FILES and all(map(_is_line, shown))
    if not is_one:
        raise ParameterError(wording("no document of an evaluation", name=name))
    if document["model_checksums"][0] not in checksums:
        named = document["model_checksums"][0]
        raise ParameterError(wording("rates of another model", name=name, named=named, own=checksums[-1]))
    if known is not None and (doubt := what_does_not_follow(document, known())):
        raise ParameterError(f"{name}: {doubt}")
    return dict(document)


def what_does_not_follow(document: dict[str, Any], known: dict[str, Any]) -> str:
    """Which parts of a checked evaluation do not follow from its counts and public facts, as a sentence; "" if none.

    Parameters
    ----------
    document : what `checked_evaluation` gave
    known : what the model says of its target, as `said_by_model` gives it
    """
    if not re.fullmatch("(?!0*$)[0-9a-f]{32}", document["charged_to"] or "f" * 32):
        return wording("evaluation of no ledger")
    expected = json.loads(json.dumps(_evaluation_of(document | known).to_dict()))
    differing = [name for name, value in expected.items() if name in document and not _is_same(document[name], value)]
    differing += [] if _has_its_charge(document) else ["charge"]
    return wording("evaluation that does not follow", parts=listed(differing)) if differing else ""


def _has_its_charge(document: dict[str, Any]) -> bool:
    """Whether the charge that is named is that of the budget, and names a ledger where one was charged."""
    charge = document.get("charge") or {}
    paid = None if document["charged_to"] is None else document["budget"]
    with suppress(AttributeError, TypeError):
        named, left = charge.get("ledger", paid and ""), charge.get("remaining", paid)
        amounts = [] if left is None else [amount for name, amount in left.items() if name != "kind"]
        is_paid = (named is None) == (left is None) == (paid is None) and charge.get("charged", paid) == paid
        has_keys = charge.keys() <= {"ledger", "charged", "remaining"}
        return has_keys and is_paid and all(amount == "inf" or amount >= 0.0 for amount in amounts)
    return False


def _evaluation_of(said: dict[str, Any]) -> Evaluated:
    """The evaluation that has these counts and public facts. An error of whatever kind says that there is none."""
    lists = {name: tuple(said.get(name, ())) for name in ("classes", "interrupted", "model_checksums")}
    words = {"target": ""} | said | lists
    if "tables" in said:
        column, title = said["group_column"], said["kind"]
        words["groups"] = Groups() if column is None else Groups(column, tuple(said["by_group"]))
        layout, counts = _layout_of(words), said["tables"]
        plan, shapes = _plan_of(said, partial(Tables, sizes_of(layout), 0)), layout.shapes
    else:
        column, title, layout, counts, shapes = None, said["outcome"], None, [said["counts"]], (np.shape(said["counts"]),)
        words = {"has_probabilities": said["calibration"] is not None} | words
        plan = _plan_of(said, partial(Counts, math.prod(shapes[0])))
    n_rows, earlier = said["n_rows"], "".join(words["interrupted"]).partition(" ")[0]
    attempt = {"": 1, "An": 2}.get(earlier) or 1 + abs(int(earlier))
    if not (
        all(type(text) is str for text in (title, words["target"], *words["classes"], *words["model_checksums"]))
        and all(map(_is_line, (said["charged_to"] or "", column or "")))
        and len(words["model_checksums"]) == (2 if title == ModelComparison.kind else 1)
        and type(said["level"]) is float
        and 0.0 < said["level"] < 1.0
        and words["interrupted"] == attempts_sentence(attempt)
        and said["void"] in (void_because(plan.budget.is_private, seed, REVEALED) for seed in (None, 0))
        and (n_rows is None or (type(n_rows) is int and plan.neighbours is Neighbours.REPLACE_ONE))
    ):
        raise ParameterError("no evaluation says this.")
    result, noise = result_of(words | {"layout": layout, "plan": plan})
    return rated(result, [np.array(table, dtype=np.float64) for table in counts], shapes, noise)


def _layout_of(said: dict[str, Any]) -> Any:
    """The tables of an evaluation."""
    n_classes, edges = len(said["classes"]), (said.get("calibration") or {"edges": [0.0]})["edges"]
    sizes = {"n_groups": len(said["groups"].names), "n_classes": n_classes, "n_bins": len(edges) - 1}
    words = {"largest_difference": said["clip"] or math.inf} | said | sizes
    if said["kind"] == ModelComparison.kind and said["clip"] is not None and "largest_difference" not in said:
        # It is not written, but one rate is a multiple of it.
        of_most, name = _evaluation_of(words).to_dict(), "log loss" if n_classes else "MAE"
        own, most = (one["rates"][name]["value"] for one in (said, of_most))
        words["largest_difference"] *= min(1.0, own / most) if most else 1.0
    kinds = [layout for layout, kind in _KINDS.items() if kind.kind == said["kind"]]
    return next(_with_own(kind, words)() for kind in kinds if hasattr(kind, "n_classes") == bool(n_classes))


def _plan_of(said: dict[str, Any], query: Callable[[Neighbours, int], Any]) -> SumPlan[Any]:
    """What the counts cost, and their noise, at the least number of rows of a person that needs as much."""
    budget, relation = budget_from_dict(said["budget"]), Neighbours.parse(said["neighbours"])
    plans = (SumPlan.of(query(relation, rows), budget) for rows in range(1, _MOST_ROWS))
    return next(plan for plan in plans if plan.deviation >= (1.0 - _SMALLEST) * said["count_deviation"])


def _is_line(text: object) -> bool:
    """Whether it is text on one line: in a report or an export, a line end could begin a sentence of its own."""
    return type(text) is str and text.isprintable()


def _is_same(read: Any, expected: Any) -> bool:
    """Whether a value of a document is the one that was computed again, but for rounding."""
    if isinstance(read, dict) and isinstance(expected, dict):
        return read.keys() == expected.keys() and all(_is_same(read[name], value) for name, value in expected.items())
    if isinstance(read, list) and isinstance(expected, list):
        return len(read) == len(expected) and all(map(_is_same, read, expected))
    if type(read) in (int, float) and type(expected) in (int, float):
        return math.isclose(read, expected, rel_tol=_ROUNDING, abs_tol=_SMALLEST)
    return type(read) is type(expected) and bool(read == expected)


def is_hidden(rates: dict[str, Any]) -> bool:
    """Whether the noise hides all of these rates."""
    return all(rate["value"] is None for rate in rates.values())


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
