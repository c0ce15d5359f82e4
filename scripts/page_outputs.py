"""What the pages print: their blocks run in order, with what each of them shows written below it.

A block of Python that prints, or a block of commands on a page of `FOLLOWED`, is followed by a block of text with the title
"Output". `--write` writes these; tests/test_docs.py runs each page again and compares. Noise is seeded by the name of the
page, so a page prints the same numbers each time. What differs between two runs all the same, such as the time of a charge,
is not compared.

Run: python -m scripts.page_outputs [--write] [docs/how_to/planning.md ...]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import secrets
import shlex
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
FOLLOWED = {"own_data.md", "studies.md", "private_bounds.md"}
"""Pages whose commands and files are run too, as a reader does who follows them."""
NOT_RUN = {"adding_a_loss.md", "from_r.md"}
"""Pages that are not run here: tests/erm/test_loss_contract.py runs the first, and the second has R alone."""
OUTPUT = '```text title="Output"\n'
WIDTH, AT_TOP, AT_END = 88, 20, 40
"""The widest line, and how many lines are shown of a long output: what it begins with, and what it comes to."""
_BLOCK = re.compile(rf"(?ms)^```(python|toml|sh)\n(.*?)^```\n(\n{re.escape(OUTPUT)}.*?^```\n)?")
_CHANGES = (
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|\+00:00)?)?",
    r"\b(?=[0-9]*[a-f])[0-9a-f]{8,}\b",
    r"[\d.]+ m?s\b",
    r"\bOpenDP (?:asked: )?[\d.]+\d",
)
"""Dates, identities, seconds, and the version that was asked."""


OF_THE_MACHINE = {"compiled_kernel.md"}
"""Pages whose output another machine does not print."""


def has_code(page: Path) -> bool:
    """Whether a page has Python that is run here."""
    return page.name not in NOT_RUN and "```python\n" in page.read_text(encoding="utf-8")


@contextlib.contextmanager
def seeded(name: str) -> Iterator[None]:
    """Noise that follows from a name, a width of terminals, and no warning on the way to the reader."""
    stream, system, width = random.Random(name), secrets.token_bytes, os.environ.get("COLUMNS")  # noqa: S311 - no secret
    secrets.token_bytes = stream.randbytes  # type: ignore[assignment]
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        secrets.token_bytes = system
        os.environ.pop("COLUMNS") if width is None else os.environ.update(COLUMNS=width)


def blocks_run(page: Path, names: dict[str, Any]) -> list[tuple[re.Match[str], str]]:
    """Each block of a page in order, with the block of what it prints when it is run in the current folder.

    Parameters
    ----------
    page : its path
    names : where its Python leaves its names
    """
    names["__name__"] = "page"
    if page.name in ("first_model.md", "README.md", "index.md"):
        Path("model.json").write_text("{}", encoding="utf-8")  # as `make demo` leaves it
    made = []
    with seeded(page.name):
        for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            language, code = found[1], found[2]
            shown = io.StringIO()
            if language == "python":
                with contextlib.redirect_stdout(shown):
                    exec(compile(code, page.name, "exec"), names)  # noqa: S102 - our own page
            elif page.name in FOLLOWED:
                shown.write(_followed(language, code))
            made.append((found, written(shown.getvalue())))
    return made


def _followed(language: str, code: str) -> str:
    """What a reader sees who writes a file, or gives a command."""
    if language == "toml":
        Path(code.split("\n")[0].removeprefix("# ")).write_text(code, encoding="utf-8")
        return ""
    from typer.testing import CliRunner

    from confide.cli import app

    shown = ""
    for line in code.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            done = CliRunner().invoke(app, words[1:], env={"LOGNAME": "analyst"})
            if done.exit_code:
                raise SystemExit(f"{line}\n{done.output}")
            shown += done.stdout
    return shown


def written(shown: str) -> str:
    """The block that shows an output, or nothing where there is none."""
    lines = [part for line in shown.rstrip().splitlines() for part in _folded(line.rstrip())]
    while lines and not lines[0]:
        lines.pop(0)
    if (left_out := len(lines) - AT_TOP - AT_END) > 5:
        lines[AT_TOP:-AT_END] = [f"... {left_out} lines are left out here ..."]
    return "\n" + OUTPUT + "\n".join(lines) + "\n```\n" if lines else ""


def _folded(line: str) -> list[str]:
    """A line of prose, or a name and what is said of it, in lines that are not too long. Rows of tables are kept."""
    begin = re.match(r"\s*(?:- )?(?:\S+(?: \S+)*\s{2,}(?=\S))?", line)
    assert begin is not None
    if len(line) <= WIDTH or "  " in line[begin.end() :]:
        return [line]
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * begin.end(), break_on_hyphens=False)


def differs(shown: str, there: str) -> str:
    """Where a block of output is not the one that is there, or nothing. Numbers may differ in their last digit."""
    new, old = (_comparable(text) for text in (shown, there))
    for mine, theirs in zip(new, old, strict=False):
        if mine != theirs and not _is_close(mine, theirs):
            return f"it prints {mine}, and the page has {theirs}"
    return "" if len(new) == len(old) else f"it prints {len(new)} words, and the page has {len(old)}"


def _comparable(text: str) -> list[str]:
    text = text.replace(OUTPUT, "").replace("```", "")
    for pattern in _CHANGES:
        text = re.sub(pattern, "*", text)
    return re.findall(r"[+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?|[^\s\d]+", text)


def _is_close(mine: str, theirs: str) -> bool:
    try:
        one, other = (float(word.replace(",", "")) for word in (mine, theirs))
    except ValueError:
        return False
    digits = len(theirs.split("e")[0].partition(".")[2])
    return abs(one - other) <= max(1.01 * 10.0**-digits, 1e-3 * abs(other))


def differences(page: Path, names: dict[str, Any]) -> list[str]:
    """Run a page in the current folder; the result says where it does not print what it shows."""
    found = [differs(output, block[3] or "") for block, output in blocks_run(page, names)]
    return [] if page.name in OF_THE_MACHINE else [each for each in found if each]


def main() -> None:
    """Compare or write the outputs of pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    for page in [path.resolve() for path in asked.pages] or list(filter(has_code, PAGES)):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            outputs = blocks_run(page, {})
        text, told = page.read_text(encoding="utf-8"), []
        for found, output in reversed(outputs):
            # A block that differs in what no run repeats, such as a time, stays.
            if wrong := differs(output, found[3] or ""):
                text = f"{text[: found.start()]}```{found[1]}\n{found[2]}```\n{output}{text[found.end() :]}"
                told.insert(0, f"{page.relative_to(ROOT)}: {wrong}")
        if asked.write:
            page.write_text(text, encoding="utf-8")
        if page.name not in OF_THE_MACHINE:
            print(*told, sep="\n", end="\n" if told else "")


if __name__ == "__main__":
    main()
