"""Blocks of reports: each kind on a page and on a card, and words that stay words in both."""

from __future__ import annotations

from html import unescape

import pytest

from confide.blocks import (
    Block,
    Section,
    heading,
    html_of,
    html_of_section,
    markdown_of,
    plain,
    scroll,
    table,
    text,
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
        html_of_section(Section("A & B", [text("x")], whole=True))
        == "<section class=whole><h2>A &amp; B</h2>\n<p>x</p></section>"
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
    for section in sections:
        for sentence in sentences([] if section is None else section.blocks):
            assert " ".join(sentence.split()) in page
            assert plain(sentence) in card


def test_what_is_wide_can_be_reached_by_the_keyboard():
    assert scroll("<p>x</p>", 'a "name"').startswith(
        '<div class="scroll" role="region" aria-label="a &quot;name&quot;" tabindex="0">'
    )
