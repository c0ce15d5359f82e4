"""What decides a release of a study, and what changed of it."""

from __future__ import annotations

import pytest

from confide.errors import FileError
from confide.features.schema import Schema
from confide.studies.study import changes, facts_of_evaluation, facts_of_fit, fingerprint
from tests.studies.examples import EVALUATION, TEXT, study_of

SCHEMA = Schema(
    columns={"age": {"low": 17, "high": 90}, "hours": {"low": 0, "high": 99}},
    target={"column": "income", "negative": "low", "positive": "high"},
)


def test_what_people_call_a_study_decides_nothing(tmp_path):
    """Name, analyst, purpose and report may change; the evaluation does not decide the fit."""
    before = facts_of_fit(study_of(tmp_path), SCHEMA)
    for changed in ({"name": '"Other"'}, {"analyst": None}, {"report": None}):
        assert facts_of_fit(study_of(tmp_path, **changed), SCHEMA) == before
    assert facts_of_fit(study_of(tmp_path, TEXT + EVALUATION), SCHEMA) == before


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epsilon": "0.7"}, "budget.epsilon was 0.5 and is 0.7"),
        ({"kind": '"svm"'}, 'model.kind was "logistic" and is "svm"'),
        ({"model": '"m2.json"'}, 'outputs.model was "model.json" and is "m2.json"'),
    ],
)
def test_a_change_is_named(tmp_path, changed, words):
    before = facts_of_fit(study_of(tmp_path), SCHEMA)
    after = facts_of_fit(study_of(tmp_path, **changed), SCHEMA)
    assert changes(before, after) == [words]
    assert fingerprint(before) != fingerprint(after)


def test_a_changed_schema_is_named_by_its_keys(tmp_path):
    """A bound, a new column, and an order that changed alone."""
    study = study_of(tmp_path)
    before = facts_of_fit(study, SCHEMA)
    wider = Schema(columns={"age": {"low": 17, "high": 99}, "hours": {"low": 0, "high": 99}}, target=SCHEMA.target)
    assert changes(before, facts_of_fit(study, wider)) == ["schema.columns.age.high was 90 and is 99"]
    fewer = Schema(SCHEMA.columns[:1], SCHEMA.target)
    assert "schema.columns.hours.low was 0 and is absent" in changes(before, facts_of_fit(study, fewer))
    turned = facts_of_fit(study, Schema(SCHEMA.columns[::-1], SCHEMA.target))
    assert fingerprint(turned) != fingerprint(before)
    assert changes(before, turned) == ["the order of the columns of the schema"]


def test_a_prior_counts_by_its_content(tmp_path):
    text = TEXT.replace('kind = "logistic"', 'kind = "logistic"\nprior = "before.json"')
    with pytest.raises(FileError, match=r"before\.json"):
        facts_of_fit(study_of(tmp_path, text), SCHEMA)
    prints = set()
    for content in ("a", "b"):
        (tmp_path / "before.json").write_text(content)
        prints.add(fingerprint(facts_of_fit(study_of(tmp_path, text), SCHEMA)))
    assert len(prints) == 2


def test_an_evaluation_belongs_to_its_fit(tmp_path):
    study = study_of(tmp_path, TEXT + EVALUATION)
    assert facts_of_evaluation(study_of(tmp_path), "a") is None
    assert facts_of_evaluation(study_of(tmp_path, TEXT + EVALUATION), "a") != facts_of_evaluation(study, "b")
