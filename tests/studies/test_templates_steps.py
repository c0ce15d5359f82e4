"""The steps of a study."""

from __future__ import annotations

import ast
from dataclasses import replace

from confide.studies.drafts import drafted
from confide.studies.templates import steps_of
from tests.starting.studies import SCHEMA, STUDY, TABLE


def test_every_step_is_python() -> None:
    """Whatever the names hold."""
    for schema in (SCHEMA, drafted(TABLE, {}, None, None)):
        for study in (STUDY, replace(STUDY, delta=None, n_rows_bounds=(1, 9), data='a"\\.csv')):
            for step in steps_of(schema, study):
                ast.parse(step.code)


def test_steps_that_spend_come_last() -> None:
    """And only they open rows or a ledger."""
    steps = steps_of(SCHEMA, STUDY)
    assert [step.spends for step in steps] == [False, False, False, True, True]
    for step in steps:
        assert step.spends or not {"open_rows", "Ledger"} & set(step.code.replace("(", ".").split("."))


def test_the_model_is_that_of_the_target() -> None:
    """Chosen when the schema is read if the target is not known yet."""

    def code(schema):
        return steps_of(schema, STUDY)[1].code

    assert "confide.AdditiveClassifier(budget=confide.ApproxDP(0.5, 1e-06), schema=schema, max_rows_per_person=3)" in code(
        SCHEMA
    )
    assert "confide.AdditiveRegressor(" in code(replace(SCHEMA, target={"column": "y", "low": 0, "high": 1}))
    assert "if schema.target.bounds else" in code(drafted(TABLE, {}, None, None))
