"""The JSON document: a guarantee that a program can check."""

from __future__ import annotations

import json

from confide import evaluate
from confide.guarantee import Guarantee
from confide.report.card import document_of_report
from confide.report.contents import contents_of
from tests.report.released import logistic, people, with_intervals, without_privacy


def test_the_guarantee_is_there_in_numbers():
    model, ledger = logistic.__wrapped__()
    rated = evaluate(model, *people(400, 1), budget=1.0)
    contents = contents_of(model, ledger=ledger, evaluation=rated)
    document = json.loads(json.dumps(document_of_report(contents), allow_nan=False))
    assert document["private"] is True
    assert Guarantee.from_dict(document["guarantee"]) == model.guarantee_
    assert document["verdict"]["kind"] == "caution"  # no charge names the file
    assert document["largest_probability_of_a_right_guess"][1] == {"after": "after this model", "probability": 0.7311}
    assert document["ledger"]["spent"]["epsilon"] == 1.0
    assert document["evaluation"]["accuracy"]["value"] == rated.accuracy.value
    assert document["coefficients"]["units"] == "original"
    assert document["intervals"] is None
    assert document["to_confirm"] == list(contents.points)


def test_what_is_not_private_says_so():
    assert document_of_report(contents_of(without_privacy()))["private"] is False
    with_ends = document_of_report(contents_of(with_intervals(), level=0.8))
    assert with_ends["intervals"]["level"] == 0.8
