"""Evaluations that are read again: as they were returned, as documents of JSON, and from files."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from functools import cache, partial

import pytest

from confide import ZCDP, ApproxDP, Ledger, LinearSVC, ParameterError, evaluate
from confide.budget_warnings import attempts_sentence
from confide.errors import FileError
from confide.estimators.evaluation import said_by_model
from confide.estimators.linear_model import checksum_of_model
from confide.evaluations.documents import checked_evaluation, what_does_not_follow
from confide.report.accuracy import tables_of_rates
from confide.report.contents import contents_of
from tests.evaluations import examples
from tests.report.released import logistic, of_two_rows, people, rates, schema

OWN = checksum_of_model(logistic()[0])


def test_an_evaluation_is_read_as_it_is_and_as_json():
    found = checked_evaluation(rates(), (OWN,))
    assert found == checked_evaluation(found, (OWN,)) == checked_evaluation({"evaluation": found}, ("x", OWN))
    ((_, _, lines),) = tables_of_rates(found)
    assert [name for name, _ in lines] == ["Accuracy", "Sensitivity", "Specificity", "AUC"]
    assert f"{found['accuracy']['value']:.3f} (" in lines[0][1]
    hidden = found | {"auc": {"value": None, "low": None, "high": None}}
    assert tables_of_rates(hidden)[0][2][3][1] == "the noise hides it"
    assert checked_evaluation(None, (OWN,)) is None


@cache
def released():
    """A model and its evaluation, of each kind."""
    two, three, number = logistic()[0], examples.classifier(), examples.regressor()
    rows, numbers, more = examples.three_classes(3000, 3), examples.numbers(3000, 3), people(3000, 1)
    private = {"budget": ApproxDP(1.0, 1e-6), "neighbours": "add-or-remove-one", "max_rows_per_person": 2}
    scores = LinearSVC(1.0, schema=schema()).fit(*people())
    return {
        "two classes": (two, rates()),
        "a private number of rows": (two, evaluate(two, *people(400, 1), **private)),
        "scores": (scores, evaluate(scores, *people(400, 1), budget=ZCDP(1.0))),
        "groups": (two, evaluate(two, *more, budget=5.0, groups="work")),
        "two models": (two, evaluate(two, *more, budget=5.0, other=of_two_rows()[0])),
        "three classes": (three, evaluate(three, *rows, budget=2.0)),
        "no noise": (three, evaluate(three, *rows, budget=math.inf)),
        "two models of three": (three, evaluate(three, *rows, budget=2.0, other=examples.classifier(1))),
        "numbers": (number, evaluate(number, *numbers, budget=2.0)),
        "two models of numbers": (number, evaluate(number, *numbers, budget=2.0, other=examples.regressor(1))),
    }


KINDS = (
    "two classes", "a private number of rows", "scores", "groups", "two models", "three classes", "no noise",
    "two models of three", "numbers", "two models of numbers",
)  # fmt: skip
BELIEVED = {
    ("charged_to",),
    ("model_checksums", 1),
    ("group_column",),
    ("clip",),
    ("budget", "epsilon"),
    ("budget", "delta"),
}
"""What no document shows: names of other things, and what makes an equal promise. A file with another budget says as much
of more or fewer rows of a person; two models' clip is known up to the largest difference of their losses."""


def forged(value, place=()):
    """The value with a part more or less, a number changed by a percent, or a word more, and the place of the change."""
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else sorted({0, len(value) // 2, len(value) - 1} & set(range(len(value))))
        yield place, {**value, "more": 1} if isinstance(value, dict) else [*value, *(value[-1:] or ["x"])]
        for key in keys:
            rest = {name: part for name, part in value.items() if name != key} if isinstance(value, dict) else value[:-1]
            yield (*place, "without"), rest
            for where, part in forged(value[key], (*place, key)):
                changed = dict(value) if isinstance(value, dict) else list(value)
                changed[key] = part
                yield where, changed
    elif isinstance(value, str):
        yield place, f"{value} x"
    elif value is None:
        yield place, "x"
    else:
        yield place, value * 1.01 if value else 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_follows_from_the_counts_and_public_facts(kind):
    """A part that is left out, added or changed is refused, or is named as one that does not follow."""
    model, evaluation = released()[kind]
    document, own, passed = json.loads(json.dumps(evaluation.to_dict())), (checksum_of_model(model),), set()
    assert what_does_not_follow(checked_evaluation(document, own), said_by_model(model)) == ""
    for place, forgery in list(forged(document))[:: 5 if kind in ("groups", "three classes", "no noise") else 1]:
        with suppress(ParameterError):
            if not what_does_not_follow(checked_evaluation(forgery, own), said_by_model(model)):
                passed.add(place)
    assert passed <= BELIEVED


@pytest.mark.parametrize("attempt", [1, 2, 3, 12])
def test_sentences_on_interrupted_attempts_are_those_of_the_library(attempt):
    """Whatever else a forger writes there would stand beside the guarantee."""
    document = rates().to_dict()
    assert checked_evaluation(document | {"interrupted": list(attempts_sentence(attempt))}, (OWN,)) is not None
    said = attempts_sentence(attempt + 1)[0]
    for wrong in (
        ["It is private."],
        [f"{said} Sign here."],
        [said.replace("anything", "all")],
        [said, said],
        [f"-{said}"],
        [""],
    ):
        with pytest.raises(ParameterError, match="unknown, or has another form"):
            checked_evaluation(document | {"interrupted": wrong}, (OWN,))


def test_a_report_names_what_does_not_follow():
    document = rates().to_dict()
    document["accuracy"] = {"value": 0.99, "low": 0.98, "high": 1.0}
    with pytest.raises(ParameterError, match=r'the model: "accuracy"\. It was changed'):
        contents_of(logistic()[0], evaluation=document)
    with pytest.raises(ParameterError, match='the model: "outcome"'):
        contents_of(logistic()[0], evaluation=rates().to_dict() | {"outcome": "income = low"})


@pytest.mark.parametrize(
    ("charge", "follows"),
    [
        (None, True),
        ({"ledger": "held_out.db"}, True),
        (
            {"ledger": "l.db", "charged": {"kind": "pure", "epsilon": 1.0}, "remaining": {"kind": "pure", "epsilon": 0.0}},
            True,
        ),
        (
            {"ledger": "l.db", "charged": {"kind": "pure", "epsilon": 0.1}, "remaining": {"kind": "pure", "epsilon": 1.0}},
            False,
        ),
        (
            {"ledger": "l.db", "charged": {"kind": "pure", "epsilon": 1.0}, "remaining": {"kind": "pure", "epsilon": -1}},
            False,
        ),
        ({"ledger": "l.db", "charged": {"kind": "pure", "epsilon": 1.0}, "remaining": "all"}, False),
        ({"ledger": None, "charged": None, "remaining": None}, False),
        ({"ledger": "l.db", "more": 1}, False),
    ],
)
def test_a_charge_agrees_with_the_budget_and_with_the_ledger_that_was_charged(charge, follows):
    """It may be left out, and a study names the ledger alone."""
    document, known = rates().to_dict() | {"charge": charge}, partial(said_by_model, logistic()[0])
    paid = document | {"charged_to": "0f" * 16}
    if follows:
        assert checked_evaluation(paid, (OWN,), known=known) is not None
    else:
        with pytest.raises(ParameterError, match='the model: "charge"'):
            checked_evaluation(paid, (OWN,), known=known)
    unpaid = paid | {"charged_to": None}
    agrees = charge is None or not any(charge.values())
    assert ("charge" in what_does_not_follow(checked_evaluation(unpaid, (OWN,)), known())) is not agrees


@pytest.mark.parametrize("identity", ["0" * 32, "f" * 31, "F" * 32, "my ledger", f"{'0f' * 16}\n"])
def test_what_is_the_identity_of_no_ledger_pays_for_nothing(identity):
    """It is refused by reports and by calibration, and an identity of a ledger is not."""
    known = partial(said_by_model, logistic()[0])
    assert checked_evaluation(rates().to_dict() | {"charged_to": Ledger(limit=1.0).identity}, (OWN,), known=known)
    with pytest.raises(ParameterError, match=r"identity of no ledger|must be what"):
        checked_evaluation(rates().to_dict() | {"charged_to": identity}, (OWN,), known=known)


def test_the_path_of_a_file_is_read(tmp_path):
    """As `confide evaluate` writes it. What is no file of JSON is refused with its path."""
    path = tmp_path / "evaluation.json"
    path.write_text(json.dumps({"model": "model.json", "charge": None} | rates().to_dict()), encoding="utf-8")
    found = checked_evaluation(str(path), (OWN,))
    assert found["counts"] == rates().counts.tolist()
    path.write_text("no JSON", encoding="utf-8")
    with pytest.raises(FileError, match=r"evaluation\.json is not JSON"):
        checked_evaluation(path, (OWN,))
    with pytest.raises(FileError, match="cannot read"):
        checked_evaluation(tmp_path / "absent.json", (OWN,))
