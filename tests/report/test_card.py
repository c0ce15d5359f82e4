"""The Markdown card: fields that Hugging Face reads, and text that cannot become Markdown or HTML."""

from __future__ import annotations

import json
import re

from confide.report.card import card_of, document_of_report
from confide.report.contents import contents_of
from confide.report.page import page_of
from tests.report.released import logistic, rates, with_interest, with_intervals, without_privacy


def fields_of(card):
    """The fields at the top. Each is a JSON value, which YAML reads too."""
    front = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)[1]
    return {name: json.loads(value) for name, _, value in (line.partition(": ") for line in front.split("\n"))}


def test_fields_name_library_task_tags_and_rates():
    model, ledger = logistic()
    fields = fields_of(card_of(contents_of(model, ledger=ledger, evaluation=rates(), data_name="people")))
    assert fields["library_name"] == "confide"
    assert fields["pipeline_tag"] == "tabular-classification"
    assert "differential-privacy" in fields["tags"]
    (result,) = fields["model-index"][0]["results"]
    assert result["dataset"]["name"] == "people"
    assert result["metrics"][0] == {"type": "accuracy", "name": "accuracy", "value": rates().accuracy.value}


def test_the_card_says_what_the_page_says():
    model, ledger = logistic()
    card = card_of(contents_of(model, ledger=ledger))
    for part in ("73.11%", "- [ ] Of each person", "per 1", "against private", "confide verify", "Odds ratio"):
        assert part in card
    assert "not-private" in fields_of(card_of(contents_of(without_privacy())))["tags"]
    assert "[0.025" in card_of(contents_of(with_intervals()))


def test_the_card_page_and_document_show_named_coefficients_beside_the_released_ones():
    """Their intervals first, and then all weights, of which nothing is said."""
    contents = contents_of(with_interest())
    card = card_of(contents)
    assert card.index("### Coefficients of interest") < card.index("[0.025") < card.index("### All released")
    assert "used for intervals of all coefficients" in card
    page = page_of(contents)
    assert page.index("Coefficients of interest") < page.index("All released coefficients")
    assert "used for intervals of all coefficients" in page
    assert document_of_report(contents)["intervals"] == with_interest().summary().to_dict()


def test_a_card_holds_nothing_that_controls_a_terminal():
    """What names and files hold of escapes is shown as question marks, in the command that verifies too."""
    card = card_of(contents_of(logistic()[0], data_name="a\x1b[31mb\x9b"), model="m\x1b]0;x\x07.json")
    assert "a?" in card
    assert all(letter.isprintable() or letter == "\n" for letter in card)


def test_names_stay_text():
    """A level that looks like a tag, in every row of a table as many cells as heads."""
    card = card_of(contents_of(logistic()[0], data_name="a | b <i> *c*"))
    assert "<b>" not in card
    assert r"self \<b\>" in card
    assert r"a \| b \<i\> \*c\*" in card
    for table in re.findall(r"(?:^\|.*\n)+", card, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().split("\n")}) == 1
