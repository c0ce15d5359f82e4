"""What names suggest."""

from __future__ import annotations

from confide.studies.drafts import (
    _USUAL_BOUNDS,
    SKIP,
    described_column,
    drafted,
    guessed_answer,
    guessed_target,
    series_of,
    words_of,
)
from confide.studies.text_tables import TableNames


def test_words_of_names() -> None:
    """However they are written."""
    for name in ("BILL_AMT1", "billAmt1", "Bill amt. 1"):
        assert words_of(name) == ["bill", "amt", "1"]


def test_every_guess_is_an_answer() -> None:
    """It can be typed as it is."""
    for name, answer in _USUAL_BOUNDS.items():
        assert guessed_answer(name) == answer
        assert described_column(name, answer)


def test_names_and_types_suggest_a_kind() -> None:
    """Or nothing."""
    assert [guessed_answer(name) for name in ("patient_id", "E-mail address", "Patient", "person nr")] == [SKIP] * 4
    assert guessed_answer("flag", "boolean") == "false, true"
    assert guessed_answer("day_of_visit", "other") == SKIP
    assert guessed_answer("age", "text") == ""
    assert [guessed_answer(name) for name in ("Phone verified", "has_address", "phone_number")] == ["", "", SKIP]
    number, money, category, nothing = "low = 0, high = 1000", "low = 0, high = 1000000; or", '["a", "b"]', ""
    notes = {
        "age": "low = 0, high = 120", "latitude": "low = -90, high = 90", "sex": category, "is_member": category,
        "PAY_AMT2": money, "PAY_0": nothing, "Phone verified": category,
    }  # fmt: skip
    for name, note in notes.items():
        assert note in blank(name).note
        assert bool(note) == bool(blank(name).note)
    assert number in blank("PAY_0", "number").note
    assert category in blank("PAY_0", "text").note


def blank(name, *declared):
    """The draft of the one column of a table, without a suggestion from rows."""
    return drafted(TableNames((name,), dict(zip([name], declared, strict=False))), {}, None, None).columns[0]


def test_the_target_is_guessed() -> None:
    """By its name, or the last column."""
    assert guessed_target(("default payment next month", "x")) == "default payment next month"
    assert guessed_target(("a", "b")) == "b"
    assert guessed_target(("income", "age", "bad")) == "bad"
    assert guessed_target(("outcome", "age", "patient_id")) == "outcome"
    assert guessed_target(("age", "sex", "patient_id")) == "sex"
    assert guessed_target(("patient_id",)) == "patient_id"


def test_columns_of_a_series_share_their_words() -> None:
    """Without numbers."""
    assert series_of("BILL_AMT1") == series_of("BILL_AMT6") != series_of("PAY_AMT1")
