"""Build the documentation site in build/site, and check it. `make docs` runs this.

Run: python -m scripts.build_site
"""

from __future__ import annotations

import os
import subprocess
import sys

from scripts import site_check, site_pages

ROOT = site_pages.ROOT
SITE = ROOT / "build" / "site"


def load_from_here() -> None:
    """Zensical's pages load one script, of the search, from another server; the site has a copy of its own."""
    for page in SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        copy = os.path.relpath(SITE / "site" / "iframe-worker.js", page.parent).replace(os.sep, "/")
        page.write_text(text.replace("https://unpkg.com/iframe-worker/shim", copy), encoding="utf-8")


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
