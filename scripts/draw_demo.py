"""Draw what `confide demo` prints as docs/pictures/demo.svg. Noise is drawn anew, so the numbers move a little.

Run: python -m scripts.draw_demo
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "demo.svg"
WIDTH = 88
SHOWN = ("Effects", "On the test part")
"""How the parts begin that the picture shows; the whole is several screens long."""


def drawn(command: str, printed: str) -> str:
    """A terminal with a command and what it printed, as SVG that loads no font."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    console.print(Text.from_ansi(printed.rstrip()))
    # rich would load a font from another server.
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="confide", code_format=form, unique_id="demo")


def parts(printed: str) -> str:
    """The parts of a text that `SHOWN` names, with dots for what is left out.

    Raises
    ------
    ValueError
        If a part is missing.
    """
    kept = [part for part in printed.strip().split("\n\n") if part.startswith(SHOWN)]
    if len(kept) != len(SHOWN):
        raise ValueError(f"the demo no longer prints the parts {SHOWN}; choose others")
    return "\n\n".join(["...", *kept, "..."])


def main() -> None:
    """Run the demo in an empty folder, and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "confide", "demo"]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603 - our own
    PICTURE.write_text(drawn("confide demo", parts(done.stdout)), encoding="utf-8")


if __name__ == "__main__":
    main()
