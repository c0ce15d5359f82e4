"""The lines at the foot of every printed page: which file the report is about, its checksum, and the number of the page.

They are margin boxes of CSS, which browsers print since 2024 (Chromium 131). Older browsers leave them out.
"""

from __future__ import annotations

from confide._version import __version__

_DIGITS_OF_CHECKSUM = 16


def running_lines(model_name: str, kind: str, sha256: str, date: str) -> str:
    """A style sheet that prints a line at the foot of each page.

    Parameters
    ----------
    model_name : name of the model's file, "" if it is not known
    kind : the kind of the model, which stands there if no file is named
    sha256 : checksum of the model's file
    date : date of the report
    """
    file = f"{model_name or kind}, SHA-256 {sha256[:_DIGITS_OF_CHECKSUM]}…"
    boxes = (
        ("bottom-left", css_string(file)),
        ("bottom-center", css_string(f"made by confide {__version__}, {date}")),
        ("bottom-right", '"page " counter(page) " of " counter(pages)'),
    )
    written = " ".join(f"@{place} {{ content: {content}; font: 7pt system-ui, sans-serif; }}" for place, content in boxes)
    return f"@page {{ {written} }}\n"


def css_string(text: str) -> str:
    """Text as a string of CSS. All but letters, digits and spaces are escaped, so that nothing in it ends the string."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(letter: str) -> str:
    # The space ends the escape and is no part of the string.
    return letter if letter.isascii() and (letter.isalnum() or letter == " ") else f"\\{ord(letter):x} "
