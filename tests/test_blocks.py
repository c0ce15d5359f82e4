"""Blocks of reports: each kind on a page and on a card, and words that stay words in both."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

import confide
from confide.blocks import (
    Block,
    heading,
    html_of,
    markdown_of,
    plain,
    scroll,
    section,
    table,
    text,
    text_of,
    verbatim,
)
from confide.cli.output import Screen
from confide.report.contents import contents_of
from tests.report.released import logistic, rates, with_interest, with_intervals, without_privacy

NASTY = "a | <b> *c*"
BLOCKS = [
    text(NASTY, "second"),
    heading(NASTY),
    Block("list", [NASTY]),
    Block("numbered", [NASTY]),
    Block("confirm", [NASTY]),
    Block("facts", [("name", NASTY)], ("Fact", "Value")),
    Block("coefficients", [(NASTY, "per 1", "2")], ("Column", "Unit", "Coefficient")),
    Block("rates", [(NASTY, "2")], ("Rate", "Value"), NASTY),
    Block("group", [text(NASTY)], style="pair"),
    table(("Name", "Number"), [(NASTY, "2")]),
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.kind)
def test_words_stay_words_in_both_media(block):
    assert NASTY in unescape(html_of(block))
    assert "<b>" not in html_of(block)
    assert plain(NASTY) in markdown_of(block)
    assert "<b>" not in markdown_of(block).replace(plain(NASTY), "")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.kind)
def test_a_terminal_shows_the_same_words(block, capsys, monkeypatch):
    """Every kind of block is for every medium."""
    monkeypatch.setenv("COLUMNS", "100")
    Screen().show([block])
    shown = capsys.readouterr().out
    assert NASTY in shown
    assert all(head in shown for head in block.heads)


def test_facts_that_say_little_to_readers_are_folded_on_a_page_and_printed_elsewhere():
    """They stand below the title, which opens them; without such names nothing is folded."""
    facts = Block("facts", [("rows", "10"), ("seal", "3 & 4")], ("name", "value"), "Details", optional=("seal", "grid"))
    shown, _, folded = html_of(facts).partition("<details>")
    assert ("10" in shown, "3" in shown) == (True, False)
    assert "<summary>Details</summary>" in folded
    assert "3 &amp; 4" in folded
    assert "details" not in html_of(replace(facts, optional=()))
    assert text_of(facts) == "rows  10\nseal  3 & 4"


def test_lines_to_be_copied_are_as_they_are_in_every_medium(capsys):
    """No word of them is changed or broken, however long they are."""
    line = "confide report a  b.json --out " + "x" * 200
    Screen().show([verbatim(line)])
    assert capsys.readouterr().out == f"{line}\n"
    assert html_of(verbatim(line)) == f"<pre>{line}</pre>"
    assert markdown_of(verbatim(line)) == f"    {line}"


def test_a_figure_is_drawn_on_a_page_and_told_in_numbers_on_a_card():
    figure = Block("figure", [("a", "1")], ("Name", "Number"), drawing="<svg></svg>")
    assert html_of(figure) == "<svg></svg>"
    assert markdown_of(figure) == "| Name | Number |\n| --- | --- |\n| a | 1 |"
    assert markdown_of(Block("figure", title="log-odds", drawing="<svg></svg>")) == "In log-odds."


def test_a_section_that_must_stay_whole_says_so():
    assert (
        html_of(section("A & B", [text("x")], whole=True)) == "<section class=whole><h2>A &amp; B</h2>\n<p>x</p></section>"
    )


def sentences(blocks):
    """All sentences of blocks, those in groups too."""
    for block in blocks:
        if block.kind == "group":
            yield from sentences(block.lines)
        elif block.kind in ("text", "confirm", "list"):
            yield from filter(None, block.lines)


@pytest.mark.parametrize("released", [lambda: logistic()[0], with_interest, with_intervals, without_privacy])
def test_page_and_card_say_the_same_sentences(released):
    """Of every section: no medium has words of its own."""
    from confide.report.card import card_of
    from confide.report.page import page_of

    contents = contents_of(released(), evaluation=rates() if released() is logistic()[0] else None)
    page, card = " ".join(unescape(page_of(contents)).split()), card_of(contents)
    sections = [contents.gain, contents.findings(whole=True), contents.accuracy, contents.confirmed, contents.not_promised]
    for part in sections:
        for sentence in sentences([] if part is None else part.lines):
            assert " ".join(sentence.split()) in page
            assert plain(sentence) in card


def test_what_is_wide_can_be_reached_by_the_keyboard():
    assert scroll("<p>x</p>", 'a "name"').startswith(
        '<div class="scroll" role="region" aria-label="a &quot;name&quot;" tabindex="0">'
    )


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.kind)
def test_plain_text_has_the_same_words_and_no_line_of_its_own(block):
    """A name with a line end does not look like another line, and no character of it controls a terminal."""
    if block.kind == "group":
        return
    assert NASTY in text_of(block)
    assert "\x1b" not in text_of(text("a\x1b[31m"))
    assert text_of(text("a\nb")).count("\n") == 0


def released_things():
    """One of each type that shows itself, of the same made-up rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"<b>age": rng.uniform(0, 50, 400), "job": rng.choice(["a", "b"], 400)})
    labels = np.where(frame["<b>age"] + rng.normal(0, 9, 400) > 25, "yes", "no")
    columns = {"<b>age": {"low": 0, "high": 50}, "job": {"categories": ["a", "b"]}}
    schema = confide.Schema(columns=columns, target={"column": "y", "negative": "no", "positive": "yes"})
    ledger = confide.Ledger(limit=50.0)
    model = confide.AdditiveClassifier(8.0, schema=schema, ledger=ledger).fit(frame, labels)
    search = confide.PrivateSearchCV(confide.LogisticRegression(schema=schema), {"alpha": [0.1, 1.0]}, budget=2.0)
    return {
        "Plan": model.plan(400),
        "SearchPlan": search.plan(400),
        "Guarantee": model.guarantee_,
        "Contrast": model.contrast("<b>age", 10, 20),
        "Evaluation": confide.evaluate(model, frame, labels, budget=8.0, ledger=ledger),
        "Description": confide.describe(frame.assign(y=labels), schema, budget=8.0, ledger=ledger),
        "PrivateBounds": confide.private_bounds(frame, {"<b>age": (0, 100)}, budget=2.0, ledger=ledger),
        "Ledger": ledger,
    }


def test_results_show_themselves_as_a_page_as_lines_and_as_a_frame():
    """With names as text, no field of a class, no colour, and the same words in all of them."""
    for name, shown in released_things().items():
        page, lines = shown._repr_html_(), str(shown)
        assert type(shown).__name__ == name
        assert "<b>" not in page
        assert "color" not in page
        assert "_facts(" not in lines
        assert f"{name}(" not in lines
        assert repr(shown) == lines or name == "Ledger"
        assert len(lines) < 6000
        frame = shown.to_frame()
        assert len(frame)
        assert len(frame.columns) > 1
        for word in lines.split()[:5]:
            assert word.strip(":,") in unescape(page)
