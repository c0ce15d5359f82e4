"""The blocks of which reports, results and answers of commands are made, and how HTML, Markdown and text write each kind.

A block says what is shown. Whatever comes from a file is text in it, and no medium reads it as markup. A terminal shows the
same blocks by `confide.cli.output`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from html import escape
from itertools import zip_longest
from operator import attrgetter
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from confide.errors import imported
from confide.known_words import printable_line

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a report.

    Attributes
    ----------
    kind : str
        "text" (sentences of one paragraph; on a terminal each by itself), "heading", "list", "numbered", "confirm" (points
        to be ticked), "facts" (names and values), "coefficients", "rates" and "table" (tables of a report, and of a
        command), "verbatim" (commands and paths, which are never broken), "figure", or "group" (of blocks).
    lines : sequence
        Sentences, points, pairs, rows of cells, or blocks. Of a figure: the rows of its numbers, where they are few.
    heads : sequence of str
        The headings of a table, and of the numbers of a figure.
    title : str
        Of headings and tables (of coefficients only for those who hear the page); of a figure, what its numbers speak of.
    drawing : str
        The figure as HTML.
    style : str
        The class of a group in the style sheet of the page; of text, its style on a terminal.
    words, optional : sequences of str
        Of a "table": headings of the columns that hold words, and of those that a narrow terminal may leave out, in order.
        Of "facts": the names of those that a page folds below the title.
    wrapped : str
        Of a "table": the heading of the column whose cells may be broken between words; the first by default.
    """

    kind: str
    lines: Sequence[Any] = ()
    heads: Sequence[str] = ()
    title: str = ""
    drawing: str = ""
    style: str = ""
    words: Sequence[str] = ()
    optional: Sequence[str] = ()
    wrapped: str = ""


def text(*sentences: str, style: str = "") -> Block:
    """One paragraph."""
    return Block("text", sentences, style=style)


def heading(title: str) -> Block:
    """A heading within a section."""
    return Block("heading", title=title)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], **how: Any) -> Block:
    """A table on a terminal; `how` are its words, optional, and wrapped."""
    return Block("table", rows, heads, **how)


def section(title: str, blocks: Sequence[Block], *, whole: bool = False) -> Block:
    """A heading and what stands below it; `whole` ones are not divided between two sheets of paper."""
    return Block("section", blocks, title=title, style=" class=whole" if whole else "")


def group(blocks: Sequence[Block], style: str) -> Block:
    """Blocks that a page shows in this style."""
    return Block("group", blocks, style=style)


def verbatim(*lines: str) -> Block:
    """Lines that a terminal never breaks, so that they can be copied."""
    return Block("verbatim", lines)


def html_of(*blocks: Block) -> str:
    """Blocks on a page."""
    return "".join(_HTML[block.kind](block) for block in blocks)


def scroll(content: str, name: str) -> str:
    """Content that may be wider than a narrow screen. It can be reached by the keyboard."""
    return f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0">{content}</div>'


def facts_as_html(pairs: Sequence[tuple[str, str]], more: str = "") -> str:
    """Names and values; `more` is added to the class."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts{more}">{items}</dl>'


def _facts(block: Block) -> str:
    folded = [pair for pair in block.lines if pair[0] in block.optional]
    rest = f"<details><summary>{escape(block.title)}</summary>{facts_as_html(folded)}</details>" if folded else ""
    return facts_as_html([pair for pair in block.lines if pair not in folded]) + rest


def _items(block: Block, frame: str, item: str = "{}") -> str:
    return frame.format("".join([f"<li>{item.format(escape(line))}</li>" for line in block.lines]))


def _coefficients(block: Block) -> str:
    """A table whose first two columns are words."""
    kinds = (" class=word" if place < 2 else "" for place in range(len(block.heads)))
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for kind, name in zip(kinds, block.heads, strict=True))
    unit_head, *heads = block.heads[1:]
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="word" data-name="{escape(unit_head)}">{escape(unit)}</td>'
        + "".join(f'<td data-name="{escape(head)}">{escape(cell)}</td>' for head, cell in zip(heads, cells, strict=True))
        + "</tr>"
        for name, unit, *cells in block.lines
    )
    table = f'<table class="stack"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return scroll(table, block.title or "Coefficients")


def _rates(block: Block) -> str:
    """Names and numbers; with a title, and in a table of a command, also the headings."""
    of_words = {place: " class=word" for place, head in enumerate(block.heads) if head in block.words}
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f"{''.join(f'<td{of_words.get(place, str())}>{escape(cell)}</td>' for place, cell in enumerate(cells, 1))}</tr>"
        for name, *cells in block.lines
    )
    head = "".join(f'<th scope="col"{of_words.get(place, "")}>{escape(each)}</th>' for place, each in enumerate(block.heads))
    caption = f"<caption>{escape(block.title)}</caption>" if block.title else ""
    above = f"<thead><tr>{head}</tr></thead>" if block.title or block.kind == "table" else ""
    return f"<table>{caption}{above}<tbody>{rows}</tbody></table>"


_START = ("<div>", '<div class="{}">')
_HTML: dict[str, Callable[[Block], str]] = {
    "text": lambda block: f"<p>{escape(' '.join(block.lines))}</p>",
    "heading": lambda block: f"<h3>{escape(block.title)}</h3>",
    "list": lambda block: _items(block, "<ul>{}</ul>"),
    "numbered": lambda block: _items(block, "<ol>{}</ol>"),
    "confirm": lambda block: _items(
        block, '<ul class="confirm">{}</ul>', '<label><input type="checkbox"><span>{}</span></label>'
    ),
    "facts": _facts,
    "coefficients": _coefficients,
    "rates": _rates,
    "table": lambda block: scroll(_rates(block), block.title or "Table"),
    "verbatim": lambda block: "".join([f"<pre>{escape(line)}</pre>" for line in block.lines]),
    "figure": lambda block: block.drawing,
    "section": lambda block: f"<section{block.style}><h2>{escape(block.title)}</h2>\n{html_of(*block.lines)}</section>",
    "group": lambda block: f"{_START[bool(block.style)].format(block.style)}{html_of(*block.lines)}</div>",
}


def markdown_of(*blocks: Block) -> str:
    """Blocks on a card."""
    return "\n\n".join(filter(None, (_MARKDOWN[block.kind](block) for block in blocks)))


def markdown_table(block: Block) -> str:
    """A table without its title."""
    lines = [block.heads, ["---"] * len(block.heads), *block.lines]
    return "\n".join("| " + " | ".join(plain(cell) for cell in line) + " |" for line in lines)


def plain(words: str) -> str:
    """Text that is no Markdown and no HTML, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#~&$])", r"\\\1", " ".join(words.split()))


_MARKDOWN: dict[str, Callable[[Block], str]] = {
    "text": lambda block: "\n\n".join(map(plain, filter(None, block.lines))),
    "heading": lambda block: f"### {plain(block.title)}",
    **dict.fromkeys(("list", "numbered"), lambda block: "\n".join(f"- {plain(item)}" for item in block.lines)),
    "confirm": lambda block: "\n".join(f"- [ ] {plain(point)}" for point in block.lines),
    "facts": markdown_table,
    "coefficients": markdown_table,
    "rates": lambda block: f"{plain(block.title)}:\n\n" * bool(block.title) + markdown_table(block),
    "table": markdown_table,
    "verbatim": lambda block: "\n".join([f"    {line}" for line in block.lines]),
    "figure": lambda block: markdown_table(block) if block.lines else f"In {plain(block.title)}." * bool(block.title),
    "section": lambda block: f"## {block.title}\n\n{markdown_of(*block.lines)}",
    "group": lambda block: markdown_of(*block.lines),
}


_LONGEST_WORDS = 28
"""Names and units of a table are broken between words after so many characters, and numbers are not broken."""


def text_of(*blocks: Block) -> str:
    """Blocks as plain text: each sentence, point and row a line, in which no character controls a terminal."""
    return "\n".join(line for block in blocks for line in _lines_of(block))


def _lines_of(block: Block) -> list[str]:
    if not block.heads:
        return [f"{'  - ' if block.kind == 'list' else ''}{printable_line(line)}" for line in block.lines or [block.title]]
    if block.kind == "facts":
        widest = max(len(name) for name, _ in block.lines)
        return [f"{name:<{widest}}  {printable_line(value)}" for name, value in block.lines]
    at_left = [place == 0 or name in block.words for place, name in enumerate(block.heads)]
    rows = [
        line
        for row in (block.heads, *block.lines)
        for line in zip_longest(*map(_broken, row, at_left), fillvalue="")  # words are broken, and no number is
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    how = [f"{'<' if left else '>'}{width}" for left, width in zip(at_left, widths, strict=True)]
    return ["  ".join(map(format, row, how)).rstrip() for row in rows]


def _broken(cell: str, is_word: bool) -> list[str]:
    line = printable_line(cell)
    return wrap(line, _LONGEST_WORDS, subsequent_indent="  ") if is_word and line else [line]


# Results as JSON values.


def json_value(value: Any) -> Any:
    """A value as JSON has it: what has a JSON form gives it, a member of an enumeration its text, and a tuple is a list."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return as_json(value, " ".join(map(attrgetter("name"), fields(value))))
    if isinstance(value, Mapping):
        return dict(zip(value, map(json_value, value.values()), strict=True))
    if isinstance(value, tuple | list):
        return list(map(json_value, value))
    return str(value) if isinstance(value, StrEnum) else value.tolist() if hasattr(value, "tolist") else value


def as_json(of: object, names: str, **others: Any) -> dict[str, Any]:
    """A JSON form with these names, in this order: what is given here, and otherwise the attributes of the value."""
    return {name: others[name] if name in others else json_value(getattr(of, name)) for name in names.split()}


# Results that show themselves: to whoever prints them, and to notebooks.

NAMES_RELEASE = "Statements of models that are fitted with its schema name this release and its price."


def void_first(void: str | None, *sentences: str) -> list[str]:
    """Sentences on a release, behind the reason why it has no guarantee, if there is one."""
    return [*([] if void is None else [f"NOT PRIVATE. {void}"]), *sentences]


class Shown:
    """A result that is shown by its blocks: a page in notebooks, plain lines elsewhere, and a pandas frame."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Dataclasses write a representation of their own unless there is one.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def blocks(self) -> Iterable[Block]:
        """What is shown."""
        raise NotImplementedError

    def __str__(self) -> str:
        return text_of(*self.blocks())

    def __repr__(self) -> str:
        return str(self)

    def to_html(self) -> str:
        """What is shown, for a web page or a notebook."""
        return f"<div>{html_of(*self.blocks())}</div>"

    _repr_html_ = to_html

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame of the first table that is shown, or else one row of what the result consists of."""
        for block in self.blocks():
            if block.heads:
                return frame_of([*block.lines], columns=list(block.heads))
        own = fields(self)  # type: ignore[arg-type]  # all but tables are dataclasses
        return frame_of([{field.name: getattr(self, field.name) for field in own}])


def frame_of(lines: Any, **how: Any) -> pd.DataFrame:
    """A frame, as `pandas.DataFrame` makes it of the same arguments.

    Raises
    ------
    ParameterError
        If pandas is not installed. The message says how to install it.
    """
    return imported("pandas", "a result as a pandas frame", "files").DataFrame(lines, **how)  # type: ignore[no-any-return]
