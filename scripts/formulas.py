"""Formulas in the pages, `$...$` and `$$...$$`, as MathML, which browsers draw themselves: no script and no font is loaded.

An extension of Python-Markdown, which zensical.toml names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from latex2mathml.converter import convert
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

if TYPE_CHECKING:
    from markdown import Markdown

_BLOCK = re.compile(r"^\$\$(.+?)\$\$\s*$", re.DOTALL)
# Inside a line, and without what was set aside before, such as code, which stands between the characters 2 and 3.
_INLINE = r"(?<![\\$\w])\$(?!\s)([^$\n\x02]*[^$\s\\\x02])\$(?![\w$])"


def mathml(formula: str, display: str = "inline") -> str:
    """A formula in the notation of TeX as MathML; ValueError where a command is not known."""
    # Browsers without a font for formulas draw a raised prime too small to be read, and a norm's bars at different heights.
    made = convert(formula.strip().replace("'", "′"), display=display).replace(r"\_", "_")
    made = made.replace("<mo>&#x02016;", '<mo stretchy="false">&#x02016;')
    unknown = re.findall(r"\\[A-Za-z]+", re.sub(r"<annotation.*?</annotation>", "", made))
    if unknown:
        raise ValueError(f"the formula {formula!r} has commands that cannot be drawn: {', '.join(unknown)}")
    ET.fromstring(made)  # noqa: S314 - it was made on the line above
    return made


class _Blocks(BlockProcessor):
    def test(self, parent: ET.Element, block: str) -> bool:
        return bool(_BLOCK.match(block))

    def run(self, parent: ET.Element, blocks: list[str]) -> None:
        found = _BLOCK.match(blocks.pop(0))
        assert found
        place = ET.SubElement(parent, "div", {"class": "formula"})
        place.text = self.parser.md.htmlStash.store(mathml(found[1], "block"))


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802 - the name is Markdown's
        return self.md.htmlStash.store(mathml(m[1])), m.start(0), m.end(0)


class Formulas(Extension):
    """Both kinds of formulas."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name is Markdown's
        """Add the two patterns: after code, and before everything that could change a formula."""
        md.parser.blockprocessors.register(_Blocks(md.parser), "formulas", 75)
        md.inlinePatterns.register(_Inline(_INLINE, md), "formulas", 185)


def makeExtension(**options: object) -> Formulas:  # noqa: N802 - the name is Markdown's
    """What Python-Markdown calls."""
    return Formulas(**options)
