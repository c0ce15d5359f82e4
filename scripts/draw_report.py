"""Draw the first screen of a report as docs/pictures/report.png, with a browser. Noise is drawn anew: curves move a little.

Run: python -m scripts.draw_report
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import confide
from confide.report.writing import browser

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "report.png"
SIZE = (980, 1000)


def main() -> None:
    """Fit a model of Adult under a ledger, write its report, and photograph it."""
    found = browser()
    if found is None:
        sys.exit("This needs a browser, such as Chromium.")
    adult = confide.datasets.load_adult()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        ledger = confide.Ledger("study.db", limit=confide.ApproxDP(2.0, 1e-5))
        model = confide.AdditiveClassifier(confide.ApproxDP(1.0, 1e-6), schema=adult.schema, loss="logistic", ledger=ledger)
        model.fit(adult.X_train, adult.y_train).save("model.json")
        words = ["report", "model.json", "--ledger", "study.db", "--data-name", "Adult census, 1994", "--analyst", "A. Name"]
        subprocess.run([sys.executable, "-m", "confide", *words], check=True)  # noqa: S603 - our own command
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync"]
        flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder}/browser"]
        size = f"--window-size={SIZE[0]},{SIZE[1]}"
        command = [found, *flags, size, "--screenshot=report.png", Path("report.html").resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603 - a browser, and a page of our own
        shutil.copyfile("report.png", PICTURE)


if __name__ == "__main__":
    main()
