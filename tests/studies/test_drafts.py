"""Drafts of schemas and studies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from confide.features.canonical_labels import BLANK
from confide.studies.drafts import described_column, drafted, typed
from confide.studies.text_tables import TableNames
from tests.starting.studies import SCHEMA, STUDY, TABLE


def test_blanks_are_where_only_a_person_knows() -> None:
    """Target and person are not among the columns; an identifier is left out."""
    draft = drafted(TABLE, {}, "ill", "who")
    found = {column.name: column.description for column in draft.columns}
    assert found == {
        "age": {"low": BLANK, "high": BLANK},
        "sex": {"categories": [BLANK], "other": True},
        "PAY_1": BLANK,
        "PAY_2": BLANK,
        "id": None,
    }
    assert (draft.n_blank, draft.predicts_numbers, draft.person) == (7, None, "who")


def test_declared_types_are_used() -> None:
    """Booleans need no answer; dates and ordered levels have blanks of their own; what is nothing of these is left out."""
    types = {"flag": "boolean", "day": "date", "size": "number", "stage": "ordered", "list": "other"}
    found = {column.name: column.description for column in drafted(TableNames(tuple(types), types), {}, None, None).columns}
    assert found == {
        "flag": {"categories": [False, True]},
        "day": {"low": BLANK, "high": BLANK},
        "size": {"low": BLANK, "high": BLANK},
        "stage": {"categories": [BLANK], "ordered": True},
        "list": None,
    }


@pytest.mark.parametrize(
    ("answer", "described"),
    [
        ("2010-01-01 2030-12-31", {"low": "2010-01-01", "high": "2030-12-31"}),
        ("2010-01-01 2030-12-31 empty", {"low": "2010-01-01", "high": "2030-12-31", "missing": True}),
        ("I < II < III", {"categories": ["I", "II", "III"], "ordered": True}),
        ("1 < 2 < 3, empty", {"categories": [1, 2, 3], "ordered": True, "missing": True}),
        ("<=50K, >50K", {"categories": ["<=50K", ">50K"]}),
    ],
)
def test_dates_and_ordered_levels_are_typed_in_one_line(answer, described) -> None:
    """The answer that stands for a description is the one that was typed."""
    assert described_column("x", answer) == described
    assert typed(described) == answer


def test_suggested_answers_fill_a_draft() -> None:
    """A column without a suggestion stays blank."""
    answers = {"age": "1 9", "sex": "F, M", "PAY_1": "", "PAY_2": "skip", "id": "skip", "ill": "no, yes, empty"}
    draft = drafted(TABLE, answers, "ill", None)
    assert [column.description for column in draft.columns] == [
        {"low": 1, "high": 9}, {"categories": ["F", "M"]}, BLANK, None, None,
    ]  # fmt: skip
    assert draft.target == {"column": "ill", "negative": "no", "positive": "yes"}
    assert drafted(TABLE, answers, None, None).target["column"] == BLANK


def test_what_is_predicted() -> None:
    """A number, labels, or not known."""
    assert SCHEMA.predicts_numbers is False
    assert replace(SCHEMA, target={"column": "y", "low": 0, "high": 1}).predicts_numbers is True


def test_a_ledger_has_delta_for_as_many_fits_as_its_epsilon_pays_for() -> None:
    """Otherwise the second fit would be refused."""
    assert STUDY.limits["delta"] == 4e-6
    assert "delta" not in replace(STUDY, delta=None).limits
    assert STUDY.neighbours == "replace-one"
    assert replace(STUDY, n_rows_bounds=(1, 9)).neighbours == "add-or-remove-one"
