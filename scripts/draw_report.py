"""Draw the first screens of a report and of a moved plan as report.png and plan.png in docs/pictures, with a browser.

Noise of the report is drawn anew: curves move a little.

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

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SIZES = {"report": (980, 1000), "plan": (980, 790)}


def main() -> None:
    """Fit a model of Adult under a ledger, write its report and the page of a plan, and photograph both."""
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
        words = ["plan", "--model", "logistic", "--rows", "3000", "--features", "10", "--epsilon", "0.5", "--error", "0.15"]
        subprocess.run([sys.executable, "-m", "confide", *words, "--page", "plan.html"], check=True)  # noqa: S603 - as above
        for name, (width, height) in SIZES.items():
            shot = [f"--window-size={width},{height}", f"--screenshot={name}.png", Path(f"{name}.html").resolve().as_uri()]
            # A browser, and a page of our own.
            subprocess.run([found, *flags, *shot], check=True, capture_output=True, timeout=120)  # noqa: S603
            shutil.copyfile(f"{name}.png", PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
