"""The foot of printed pages."""

from __future__ import annotations

import re

from confide.report.page import css_string, running_lines


def test_nothing_in_a_name_ends_a_string_or_the_style_sheet():
    """Quotes, backslashes, brackets and line breaks become escapes, which mean the same letters."""
    name = 'a"b\\c</style>\n;}ü .json'
    written = css_string(name)
    assert re.fullmatch(r'"(?:[A-Za-z0-9 ]|\\[0-9a-f]+ )*"', written)
    read = re.sub(r"\\([0-9a-f]+) ", lambda found: chr(int(found[1], 16)), written[1:-1])
    assert read == name


def test_the_file_its_checksum_and_the_page_are_named():
    lines = running_lines("model 1", "Ridge", "0123456789abcdef" * 4, "today")
    assert "model 1" in lines
    assert "0123456789abcdef" in lines
    assert "0123456789abcdef0" not in lines
    assert "counter(page)" in lines
    assert "counter(pages)" in lines
    assert "Ridge" in running_lines("", "Ridge", "0" * 64, "today")
