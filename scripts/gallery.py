"""Run the examples of the gallery and write their pictures beside them. Noise is drawn anew, so pictures change a little.

Run: CONFIDE_DATA_DIR=... python -m scripts.gallery [names]
"""

from __future__ import annotations

import contextlib
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "gallery"


def examples() -> list[Path]:
    """The scripts of the gallery by their names."""
    return sorted(FOLDER.glob("*.py"))


def run(example: Path, folder: Path) -> None:
    """Run one example in a folder, which gets its picture."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    style = {"svg.fonttype": "none", "svg.hashsalt": "confide", "savefig.facecolor": "white", "font.family": "sans-serif"}
    with contextlib.chdir(folder), mpl.rc_context(style | {"savefig.bbox": "tight"}):
        plt.switch_backend("svg")
        try:
            runpy.run_path(str(example), run_name="__main__")
        finally:
            plt.close("all")


def main() -> None:
    """Run those that are named, or all."""
    for example in examples():
        if sys.argv[1:] and example.stem not in sys.argv[1:]:
            continue
        print(example.stem, flush=True)
        try:
            run(example, FOLDER)
        except SystemExit as left:
            print(left)
            continue
        picture = example.with_suffix(".svg")
        text = re.sub(r"(?s)\s*<metadata>.*?</metadata>", "", picture.read_text(encoding="utf-8"))
        picture.write_text("\n".join(line.rstrip() for line in text.split("\n")), encoding="utf-8")
        print(f"  {picture.name}: {picture.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
