"""Open every page of the built site in a browser, and list what people cannot read or reach.

Each page is opened twice, as wide as a screen on a light ground and as narrow as a telephone on a dark one. axe-core looks
for faults that it calls serious or critical, such as pale text or a picture without a name. A page must not be wider than
the screen.

Run, after `make docs`: python -m scripts.pages_in_browser [--only how_to/effects] [--folder build/site]
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

SCREENS = {"light, 1300 pixels": (1300, []), "dark, 390 pixels": (390, ["--blink-settings=preferredColorScheme=0"])}
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
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    try:
        with tempfile.TemporaryDirectory() as folder:
            frame = Path(folder, "frame.html")
            frame.write_text(FRAME.format(page=copy.as_uri(), width=width), encoding="utf-8")
            command = [str(browser()), *FLAGS, *root, "--allow-file-access-from-files", f"--user-data-dir={folder}/profile"]
            command += [*flags, "--window-size=1400,1000", "--virtual-time-budget=20000", "--dump-dom", frame.as_uri()]
            done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)  # noqa: S603 - our own
    finally:
        copy.unlink()
    found = re.search(r'<pre id="axe-found">(.*?)</pre>', done.stdout, re.DOTALL)
    return list(json.loads(html.unescape(found[1]))) if found else ["axe-core did not end"]


def main() -> int:
    """Check all pages; 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="pages whose address holds this")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "site")
    asked = parser.parse_args()
    if browser() is None:
        raise SystemExit("no Chromium or Chrome is installed")
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
