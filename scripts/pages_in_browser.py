"""Open every page of the built site in a browser, and list what people cannot read or reach.

Each page is opened as wide as a screen and as narrow as a telephone, on a light and on a dark ground. axe-core looks
for faults that it calls serious or critical, such as pale text or a picture without a name. A page must not be wider than
the screen.

Run, after `make docs`: python -m scripts.pages_in_browser [--only how_to/effects] [--folder build/site]
For what the search of the site finds first: python -m scripts.pages_in_browser --search "odds ratio" GridSearchCV
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.site_pages import ROOT

from confide.report.writing import FLAGS, browser

SCREENS = {
    f"{ground}, {width} pixels": (width, flags)
    for width in (1300, 390)
    for ground, flags in (("light", []), ("dark", ["--blink-settings=preferredColorScheme=0"]))
}
# Chromium makes no window as narrow as a telephone, so each page stands in a frame, to which it says what was found.
FRAME = """<!DOCTYPE html><html><body style="margin: 0"><iframe src="{page}" width="{width}" height="1000"></iframe>
<script>addEventListener('message', event => {{ const out = document.createElement('pre'); out.id = 'axe-found';
out.textContent = event.data; document.body.append(out); }});</script></body></html>"""
SCRIPT = """
addEventListener('load', () => setTimeout(() => axe.run({resultTypes: ['violations'], iframes: false}).then(found => {
  const faults = found.violations.filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => `${v.id}: ${v.nodes.length} times, such as ${v.nodes[0].html.slice(0, 160)}`);
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 1) faults.push(`the page is wider than the screen by ${wide} pixels`);
  parent.postMessage(JSON.stringify(faults), '*');
}), 300));
"""


SEARCH = """
const pause = () => new Promise(done => setTimeout(done, 50));
addEventListener('load', async () => {
  const found = {}, shown = () => [...document.querySelectorAll('body > div')].map(div => div.shadowRoot).find(Boolean);
  while (!shown()) await pause();
  document.querySelector('.md-search__button').click();
  while (!shown().querySelector('input')) await pause();
  const input = shown().querySelector('input');
  for (const words of WORDS) {
    input.value = words;
    input.dispatchEvent(new Event('input', {bubbles: true}));
    for (let wait = 0; wait < 12; wait++) await pause();
    found[words] = [...shown().querySelectorAll('li a')].map(link => link.href);
  }
  const out = document.createElement('pre'); out.id = 'found'; out.textContent = JSON.stringify(found);
  document.body.append(out); });
"""


def dumped(page: Path, *flags: str) -> str:
    """The document that a browser makes of a page."""
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        command = [str(browser()), *FLAGS, *root, "--allow-file-access-from-files", f"--user-data-dir={folder}", *flags]
        command += ["--dump-dom", page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout  # noqa: S603 - our own


def searched(folder: Path, words: list[str]) -> dict[str, list[str]]:
    """What the search of a built site finds: for each of the words, addresses of pages below the folder, the best first."""
    copy = folder.resolve() / ".search.html"
    text = (folder / "index.html").read_text(encoding="utf-8")
    script = SEARCH.replace("WORDS", json.dumps(words))
    copy.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    try:
        document = dumped(copy, f"--virtual-time-budget={5000 + 1000 * len(words)}")
    finally:
        copy.unlink()
    found = re.search(r'<pre id="found">(.*?)</pre>', document, re.DOTALL)
    if found is None:
        raise RuntimeError("the search of the site did not answer in the browser")
    start = copy.parent.as_uri() + "/"
    return {
        asked: [re.sub(r"\?h=[^#]*", "", link).removeprefix(start) for link in links]
        for asked, links in json.loads(html.unescape(found[1])).items()
    }


def axe() -> str:
    """The text of axe-core, from a package that brings it."""
    found = importlib.util.find_spec("axe_core_python")
    if found is None or found.origin is None:
        raise SystemExit('axe-core is not installed: pip install "axe-core-python"')
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def faults(page: Path, screen: str, script: Path) -> list[str]:
    """What is wrong with one page on one screen.

    Parameters
    ----------
    page : a file of the site
    screen : one of `SCREENS`
    script : a file of JavaScript that is added to the page
    """
    width, flags = SCREENS[screen]
    copy = page.with_name(f".{page.stem}.{width}.html")
    text = page.read_text(encoding="utf-8")
    copy.write_text(text.replace("</body>", f'<script src="{script.as_uri()}"></script></body>'), encoding="utf-8")
    try:
        with tempfile.TemporaryDirectory() as folder:
            frame = Path(folder, "frame.html")
            frame.write_text(FRAME.format(page=copy.as_uri(), width=width), encoding="utf-8")
            document = dumped(frame, *flags, "--window-size=1400,1000", "--virtual-time-budget=20000")
    finally:
        copy.unlink()
    found = re.search(r'<pre id="axe-found">(.*?)</pre>', document, re.DOTALL)
    return list(json.loads(html.unescape(found[1]))) if found else ["axe-core did not end"]


def main() -> int:
    """Check all pages; 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="pages whose address holds this")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--search", nargs="+", metavar="WORDS", help="words to search for in place of the check")
    asked = parser.parse_args()
    if browser() is None:
        raise SystemExit("no Chromium or Chrome is installed")
    if asked.search:
        for words, links in searched(asked.folder, asked.search).items():
            print(words, *links[:3], sep="\n  ")
        return 0
    pages = [page for page in sorted(asked.folder.rglob("[!.]*.html")) if asked.only in page.as_posix()]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "axe.js"
        script.write_text(axe() + SCRIPT, encoding="utf-8")
        each = [(page, screen) for page in pages for screen in SCREENS]
        found = 0
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (page, screen), some in zip(each, pool.map(lambda one: faults(*one, script), each), strict=True):
                for fault in some:
                    print(f"{page.relative_to(asked.folder)} ({screen}): {' '.join(fault.split())}", flush=True)
                found += len(some)
    print(f"{len(pages)} pages, {found} faults")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
