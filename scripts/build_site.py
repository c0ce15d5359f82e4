"""Build the documentation site in build/site, and check it. `make docs` runs this.

Run: python -m scripts.build_site
"""

from __future__ import annotations

import html
import itertools
import json
import os
import re
import subprocess
import sys

from scripts import site_check, site_pages

ROOT = site_pages.ROOT
SITE = ROOT / "build" / "site"


def readable(text: str) -> str:
    """The HTML of a page in which boxes to tick have names, and code ends its lines where a reader would.

    No line ends within an option such as --out-dir; a long name, such as that of a test, may end one after each part.
    Cells of a table that hold a number or a short word are marked, so that they take no more room than they need.
    """
    text = text.replace('<input type="checkbox" disabled', '<input type="checkbox" aria-label="to be checked" disabled')
    # What a docstring only names has no words after its dash.
    text = re.sub(r"–(?=\s*<div class=\"doc-md-description\">\s*</div>)", "", text)
    # A picture is a link to itself, so that it can be enlarged; on narrow screens it scrolls.
    picture = re.compile(r'<p>(<img [^>]*src="([^":]+\.(?:svg|png))"[^>]*>)</p>')
    text = picture.sub(r'<p class="picture"><a href="\2">\1</a></p>', text)
    text = re.sub(r"<td(?=[^>]*>[^<\s]{0,9}</td>)", '<td class="short"', text)
    hyphens = re.compile(r"(?<!\S)(?=\S*-)\S{2,28}(?!\S)")

    def code(found: re.Match[str]) -> str:
        parted = re.sub(r"\S{20,}", lambda word: re.sub(r"(?<=[\w)])[_./=,](?=\w)", r"\g<0><wbr>", word[0]), found[0])
        return hyphens.sub(r'<span class="whole">\g<0></span>', parted)

    return stacked(re.sub(r"(?<=<code>)[^<]+(?=</code>)", code, text))


def stacked(text: str) -> str:
    """The HTML of a page in which each cell of a table that is too wide for a telephone names its column.

    There the style sheet shows each line of such a table as a card, one cell below the other. Tables of numbers, which are
    compared down their columns, stay tables.
    """

    def plain(cell: str) -> str:
        return re.sub(r"<[^>]*>", "", cell).strip()

    def table(found: re.Match[str]) -> str:
        heads = [plain(cell) for cell in re.findall(r"(?s)<th[^>]*>(.*?)</th>", found[0])]
        rows = [re.findall(r"(?s)<td[^>]*>(.*?)</td>", row) for row in re.findall(r"(?s)<tr>.*?</tr>", found[0])]
        lengths = [[len(html.unescape(plain(cell))) for cell in row] for row in rows if row]
        if not lengths or any(len(row) != len(heads) for row in lengths):
            return found[0]
        words = [0 if re.fullmatch(r"[\d.,+/x() -]*", plain(cell)) else len(plain(cell)) for row in rows for cell in row]
        widths = [max(column) for column in zip(*lengths, strict=True)]
        sentences = sum(length > _SHORT for length in words) > 0.4 * len(words) or max(widths[1:], default=0) > _SENTENCE
        if not sentences or sum(min(width, _WRAPS) for width in widths) < _TELEPHONE:
            return found[0]
        whole = [[max(map(len, re.split(r"\s", plain(cell)))) for cell in row] for row in rows if row]
        if len(heads) < 3 and sum(max(column) for column in zip(*whole, strict=True)) < _TELEPHONE:
            return found[0]
        names = itertools.cycle(heads)
        labelled = re.sub(r"<td(?=[ >])", lambda _: f'<td role="cell" data-column="{next(names)}"', found[0])
        return labelled.replace("<table>", '<table role="table" data-stacked>').replace("<tr>", '<tr role="row">')

    return re.sub(r"(?s)<table>.*?</table>", table, text)


_SHORT, _WRAPS, _SENTENCE, _TELEPHONE = 9, 24, 40, 44
"""Letters of a cell that is short, of a line of a cell, of a cell that is a sentence, and of a line on a telephone."""


def load_from_here() -> None:
    """Zensical's pages load one script, of the search, from another server; the site has a copy of its own."""
    for page in SITE.rglob("*.html"):
        text = readable(page.read_text(encoding="utf-8"))
        copy = os.path.relpath(SITE / "site" / "iframe-worker.js", page.parent).replace(os.sep, "/")
        page.write_text(text.replace("https://unpkg.com/iframe-worker/shim", copy), encoding="utf-8")


BEHIND = {
    "explanation/proofs/": "Proof: ",
    "project/notes/": "Measurement: ",
    "experiments/": "Experiment: ",
    "project/": "",
}
"""Pages that are found by their titles alone, which begin with these words, and come after guides that match as well.

Zensical's search has no weights of pages: titles come first, among these the one that has the word nearest to its
beginning, then what has it in its place in the navigation too, and then the order of the index.
"""


def guides_first() -> None:
    """Leave out of the search's index what hides the guides: parts of proofs, and inherited methods after the first."""
    index = json.loads((SITE / "search.json").read_text(encoding="utf-8"))
    kept, behind, seen = [], [], set()
    for item in index["items"]:
        text = item["text"]
        start = next((start for start in BEHIND if item["location"].startswith(start)), None)
        if start is not None:
            if item["level"] == 1:
                behind.append(item | {"title": BEHIND[start] + item["title"], "text": "", "path": item["path"][:-1]})
            continue
        if item["location"].startswith("reference/python/") and "#" in item["location"]:
            if text in seen:
                continue
            seen.add(text)
        kept.append(item)
    written = json.dumps(index | {"items": kept + behind}, ensure_ascii=False, separators=(",", ":"))
    (SITE / "search.json").write_text(written, encoding="utf-8")
    script = (SITE / "search.js").read_text(encoding="utf-8")
    start, end = script.index("{"), script.rindex("}") + 1
    (SITE / "search.js").write_text(script[:start] + written + script[end:], encoding="utf-8")


def main() -> int:
    """Gather, build strictly, check; 0 if nothing is wrong."""
    site_pages.gather()
    # Zensical runs the extension of formulas, which lies in scripts/.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)  # noqa: S603 - our own command
    printed = done.stdout + done.stderr
    print(printed, end="")
    load_from_here()
    if done.returncode == 0:
        guides_first()
    for name, text in site_pages.plain_pages(site_pages.SOURCE).items():
        (SITE / name).parent.mkdir(parents=True, exist_ok=True)
        (SITE / name).write_text(text, encoding="utf-8")
    faults = site_check.faults(SITE) if done.returncode == 0 else ["the site could not be built; see above"]
    if "warning" in printed.lower() or "griffe:" in printed:
        faults.append("there are warnings; see above")
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{SITE.relative_to(ROOT)}/index.html: {sum(1 for _ in SITE.rglob('*.html'))} pages, every link checked")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
