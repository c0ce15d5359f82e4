"""Evaluations that are read again: as they were returned, as documents of JSON, and from files."""

from __future__ import annotations

import json

import pytest

from confide import ParameterError
from confide.errors import FileError
from confide.estimators.linear_model import checksum_of_model
from confide.evaluations.documents import checked_evaluation
from confide.report.accuracy import tables_of_rates
from tests.report.released import logistic, rates

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


@pytest.mark.parametrize(
    "damage",
    [
        {"accuracy": 0.5},
        {"auc": {"value": 2.0, "low": 0.0, "high": 1.0}},
        {"auc": {"value": 0.9, "low": 0.95, "high": 0.2}},
        {"accuracy": {"value": 0.9, "low": 0.1, "high": 0.2}},
    ],
)
def test_what_is_no_evaluation_is_refused(damage):
    with pytest.raises(ParameterError, match="evaluation"):
        checked_evaluation(rates().to_dict() | damage, (OWN,))
    with pytest.raises(ParameterError, match="evaluation must be"):
        checked_evaluation({"accuracy": 1.0}, (OWN,))


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
