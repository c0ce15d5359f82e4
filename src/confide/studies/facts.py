"""What decides a release of a study, as public facts: compared when a study is run again, and named where they changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from confide.features.schema import Schema
from confide.files import sha256_of
from confide.studies.study import Study

_ABSENT = "absent"
_PRIOR_KEYS = ("prior", "public_prior")


def facts_of_fit(study: Study, schema: Schema) -> dict[str, Any]:
    """What decides the model: data file, schema, budget, ledger, options and the file of the model. JSON-able.

    Of the rows nothing is in it: a checksum of private rows would not be private.
    """
    model = dict(study.model)
    priors = {key: sha256_of(study.located(model[key])) for key in _PRIOR_KEYS if isinstance(model.get(key), str)}
    facts = {
        "data": {"file": study.data.file},
        "schema": schema.to_dict(),
        "budget": _given(asdict(study.budget)),
        "ledger": _given(asdict(study.ledger)),
        "model": model | {f"{key}_sha256": checksum for key, checksum in priors.items()},
        "outputs": {"model": study.outputs.model},
    }
    return _plain(facts if study.release is None else facts | {"release": study.release})


def facts_of_evaluation(study: Study, fitted: str) -> dict[str, Any] | None:
    """What decides the evaluation, or None if none is asked for. `fitted` is the fingerprint of the fit."""
    if study.evaluation is None:
        return None
    return _plain({"fit": fitted, "evaluation": _given(asdict(study.evaluation))})


def fingerprint(facts: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits that stand for the facts. Ledgers hold them in the purpose of a charge."""
    # The order of the columns of a schema decides, so keys are not sorted.
    return hashlib.sha256(json.dumps(facts, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()[:12]


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What changed, one sentence for each key, for example "budget.epsilon was 1.0 and is 2.0"."""
    old, new = dict(_leaves(before)), dict(_leaves(now))
    found = [
        f"{key} was {_shown(old.get(key, _ABSENT))} and is {_shown(new.get(key, _ABSENT))}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key, _ABSENT) != new.get(key, _ABSENT)
    ]
    return found or ["the order of the columns of the schema"]


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, item in value.items():
        yield from _leaves(item, f"{name}.{key}" if name else str(key))


def _shown(value: Any) -> str:
    return str(value) if value is _ABSENT else json.dumps(value, ensure_ascii=False)


def _given(described: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if value is not None}


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts as they are read back from JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=str))
    return plain
