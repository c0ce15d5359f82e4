"""Draw a report and the first screen of a moved plan into docs/pictures, with a browser.

The report is cut into report_1.png to report_3.png, with the numbers by which docs/how_to/report.md explains its parts. Its
noise is drawn anew: curves move a little.

Run: python -m scripts.draw_report
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

import confide
from confide.report.writing import browser

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
PARTS = (
    "Verdict",
    "Facts",
    "Model file",
    "What an attacker",
    "What the model says",
    "How accurate",
    "What the signer",
    "Verify and sign",
)
"""What is numbered, in the order of the page: the verdict, headings, and the first checksum."""
BADGE = (
    '<b style="display: inline-block; width: 1.5em; border-radius: 1em; background: #b3261e; color: #fff; '
    'text-align: center; margin-right: .4em">{}</b>'
)
ENDS = ("What the model says", "How accurate", "Technical appendix")
"""Where a part of the numbered report ends."""
HEIGHTS = """<script>addEventListener('load', () => {{
const titles = [...document.querySelectorAll('h2, summary')];
const ends = {}.map(name => titles.find(title => title.textContent.includes(name)).getBoundingClientRect().top);
document.title = JSON.stringify(ends); }});</script>"""


def main() -> None:
    """Fit a model of Adult under a ledger, write its report and the page of a plan, and draw both."""
    found = browser()
    if found is None:
        sys.exit("This needs a browser, such as Chromium.")
    adult = confide.datasets.load_adult()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        ledger = confide.Ledger("study.db", limit=confide.ApproxDP(2.0, 1e-5))
        model = confide.AdditiveClassifier(confide.ApproxDP(1.0, 1e-6), schema=adult.schema, loss="logistic", ledger=ledger)
        model.fit(adult.X_train, adult.y_train).save("model.json")
        rates = confide.evaluate(model, adult.X_test, adult.y_test, budget=0.2, ledger=ledger)
        named = {"data_name": "Adult census, 1994", "analyst": "A. Name"}
        model.report("report.html", ledger=ledger, evaluation=rates, **named)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync"]
        flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder}/browser"]
        words = ["plan", "--model", "logistic", "--rows", "3000", "--features", "10", "--epsilon", "0.5", "--error", "0.15"]
        subprocess.run([sys.executable, "-m", "confide", *words, "--page", "plan.html"], check=True)  # noqa: S603 - as above
        shot = [*flags, "--window-size=980,790", "--screenshot=plan.png", Path("plan.html").resolve().as_uri()]
        subprocess.run([found, *shot], check=True, capture_output=True, timeout=120)  # noqa: S603 - a page of our own
        with Image.open("plan.png") as whole:
            whole.quantize(128).save(PICTURES / "plan.png", optimize=True)
        draw_parts([found, *flags, "--window-size=1010,6000"])


def draw_parts(browse: list[str]) -> None:
    """Number the parts of report.html in this folder, and cut its picture into three."""
    text = Path("report.html").read_text(encoding="utf-8")
    for number, part in enumerate(PARTS, 1):
        place = re.search(f'aria-label="{part}"[^>]*>|<(?:h2|t[dh]|dt)[^>]*>(?={part})', text)
        assert place is not None, f"the report has no part {part}"
        text = text[: place.end()] + BADGE.format(number) + text[place.end() :]
    script = HEIGHTS.format(json.dumps(ENDS))
    Path("numbered.html").write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
    address = Path("numbered.html").resolve().as_uri()
    subprocess.run([*browse, "--screenshot=numbered.png", address], check=True, capture_output=True, timeout=120)  # noqa: S603
    dumped = subprocess.run([*browse, "--dump-dom", address], check=True, capture_output=True, text=True, timeout=120)  # noqa: S603
    title = re.search(r"<title>(.*?)</title>", dumped.stdout)
    assert title is not None
    begin = 0
    with Image.open("numbered.png") as whole:
        for number, end in enumerate(json.loads(title[1]), 1):
            part = whole.crop((0, begin, whole.width, int(end) - 12)).quantize(128)
            part.save(PICTURES / f"report_{number}.png", optimize=True)
            begin = int(end) - 12


if __name__ == "__main__":
    main()
