"""Run the examples of the gallery, and write their pictures and what they print beside them. Noise follows from their names.

Run: CONFIDE_DATA_DIR=... python -m scripts.gallery [names]
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

from scripts.page_outputs import seeded, written

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "gallery"


def examples() -> list[Path]:
    """The scripts of the gallery by their names."""
    return sorted(FOLDER.glob("*.py"))


def words(example: Path) -> tuple[str, str, str]:
    """The title of an example, what its docstring says of it, and what its picture shows."""
    text = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    title, _, rest = text.partition(".\n")
    shows = re.search(r"\n\nPicture: (.*?)\.(?:\n\n|$)", rest, flags=re.DOTALL)
    if shows is None:
        raise ValueError(f'{example.name}: the docstring has no paragraph "Picture: ..." that says what the picture shows.')
    return title, rest.replace(shows[0], "\n\n"), " ".join(shows[1].split())


def printed(example: Path) -> str:
    """What an example prints, as a block of a page; nothing for those that draw alone."""
    path = example.with_suffix(".txt")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def run(example: Path, folder: Path) -> str:
    """Run one example in a folder, which gets its picture; the result is what it prints, as a block of a page."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    style = {"svg.fonttype": "none", "svg.hashsalt": "confide", "savefig.facecolor": "white", "font.family": "sans-serif"}
    shown = io.StringIO()
    shaped = mpl.rc_context(style | {"savefig.bbox": "tight"})
    with contextlib.chdir(folder), shaped, seeded(example.name), contextlib.redirect_stdout(shown):
        plt.switch_backend("svg")
        try:
            runpy.run_path(str(example), run_name="__main__")
        finally:
            plt.close("all")
    return written(shown.getvalue())


def main() -> None:
    """Run those that are named, or all."""
    for example in examples():
        if sys.argv[1:] and example.stem not in sys.argv[1:]:
            continue
        print(example.stem, flush=True)
        try:
            output = run(example, FOLDER)
        except SystemExit as left:
            print(left)
            continue
        if output:
            example.with_suffix(".txt").write_text(output, encoding="utf-8")
        picture = example.with_suffix(".svg")
        text = re.sub(r"(?s)\s*<metadata>.*?</metadata>", "", picture.read_text(encoding="utf-8"))
        picture.write_text("\n".join(line.rstrip() for line in text.split("\n")), encoding="utf-8")
        print(f"  {picture.name}: {picture.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
