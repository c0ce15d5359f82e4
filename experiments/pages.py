"""The options of an experiment's script, and the page with tables and a figure that it writes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cells import Cells

RESULTS = Path(__file__).resolve().parent / "results"
QUICK = Path(__file__).resolve().parents[1] / "build" / "experiments"


@dataclass(frozen=True)
class Options:
    """The options of every experiment."""

    name: str
    quick: bool
    out: Path

    @property
    def cells(self) -> Cells:
        """The file of finished cells."""
        return Cells(self.out / f"{self.name}.jsonl")

    def write(self, text: str, figure: Callable[[Path], None]) -> None:
        """The tables, headed by the command that made them, and the figure beside them."""
        command = f"python experiments/{self.name}.py" + (" --quick" if self.quick else "")
        page = f"Made by `{command}`.\n\n{text.strip()}\n"
        (self.out / f"{self.name}.md").write_text(page, encoding="utf-8")
        print(f"\n{page}")
        try:
            figure(self.out / f"{self.name}.svg")
        except ModuleNotFoundError as missing:
            print(f"no figure: {missing.name} is missing; pip install '.[plot]'")


def options(script: str, doc: str | None) -> Options:
    """Read the command line of one script."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a version of seconds, of the same code on few cells")
    parser.add_argument(
        "--out", type=Path, help="folder of results; build/experiments for --quick, else experiments/results"
    )
    given = parser.parse_args()
    return Options(Path(script).stem, given.quick, given.out or (QUICK if given.quick else RESULTS))


def aligned(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown, which can be read as it is. The first column is aligned left, the others right."""
    widths = [max(4, *(len(line[place]) for line in [head, *rows])) for place in range(len(head))]
    rule = [("-" * (width - 1) + (":" if place else "-")) for place, width in enumerate(widths)]
    lines = []
    for line in [head, rule, *rows]:
        cells = [f"{text:>{width}}" for text, width in zip(line, widths, strict=True)]
        cells[0] = f"{line[0]:<{widths[0]}}"
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
