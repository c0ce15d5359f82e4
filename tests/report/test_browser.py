"""The page in a real browser: it renders without errors, is quick, prints on two pages, and axe-core finds nothing bad."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import subprocess
import unicodedata
from functools import cache
from pathlib import Path

import pytest

from confide import Ledger, evaluate
from confide.report.accuracy import forecasts_of
from confide.report.contents import contents_of
from confide.report.page import page_of
from confide.report.writing import FLAGS, browser, write_pdf
from tests.report.released import additive, logistic, long_names, rates, rows_of_long_names, with_intervals, without_privacy

LARGEST_PAGE = 1_500_000
DARK = "--blink-settings=preferredColorScheme=0"


def needs_browser(test):
    """Mark a test that opens a browser."""
    there = pytest.mark.skipif(browser() is None, reason="no Chromium or Chrome is installed")
    return pytest.mark.browser(there(test))


def page(name):
    model, ledger = logistic()
    made = {
        "charged": lambda: contents_of(model, ledger=ledger, evaluation=rates(), analyst="A. Name", data_name="people"),
        "curves": lambda: contents_of(additive()),
        "intervals": lambda: contents_of(with_intervals()),
        "void": lambda: contents_of(without_privacy()),
    }
    return page_of(made[name]())


PAGES = ("charged", "curves", "intervals", "void")


@cache
def axe():
    """The text of axe-core, from a package that brings it."""
    found = importlib.util.find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core is not installed: pip install axe-core-python")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def opened(text, folder, *flags):
    """What a browser made of a page: its document as text, and its log."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "page.html").write_text(text, encoding="utf-8")
    command = [
        browser(), *FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={folder}/profile",
        "--enable-logging=stderr", *flags, "--dump-dom", (folder / "page.html").as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


def checked_by_axe(text, folder, *flags):
    """Violations that axe-core calls serious or critical, and what was written to the console."""
    script = (
        "axe.run({resultTypes: ['violations']}).then(found => { "
        "const out = document.createElement('pre'); out.id = 'found'; "
        "const serious = found.violations.map(v => [v.id, v.impact, v.nodes[0].html]); "
        "const sizes = {width: document.documentElement.scrollWidth, seen: innerWidth}; "
        "out.textContent = JSON.stringify({violations: serious, passes: found.passes.length, ...sizes}); "
        "document.body.append(out); });"
    )
    # The folded appendix is checked too.
    unfolded = text.replace('<details class="appendix">', '<details class="appendix" open>')
    document, log = opened(
        unfolded.replace("</body>", f"<script>{axe()}</script><script>{script}</script></body>"),
        folder,
        "--virtual-time-budget=20000",
        *flags,
    )
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', document, re.DOTALL)[1]))
    return found, [line for line in log.split("\n") if "CONSOLE" in line]


@needs_browser
@pytest.mark.parametrize(
    ("name", "flags"), [("charged", ["--window-size=1100,900"]), ("curves", [DARK, "--window-size=500,900"])]
)
def test_axe_finds_nothing_serious_on_light_and_dark_screens(name, flags, tmp_path):
    """With the appendix unfolded, and nothing on the console. The page is no wider than the screen."""
    found, console = checked_by_axe(page(name), tmp_path, *flags)
    assert [each for each in found["violations"] if each[1] in ("serious", "critical")] == []
    assert found["passes"] > 10
    assert found["width"] <= found["seen"]
    assert console == []


@needs_browser
def test_axe_would_find_what_is_wrong(tmp_path):
    """A picture without a name, and text that nobody can read on its ground."""
    bad = page("void").replace("<main>", '<main><img src="data:,"><p style="color: #999; background: #aaa">pale</p>')
    found, _ = checked_by_axe(bad, tmp_path)
    assert {"image-alt", "color-contrast"} <= {each[0] for each in found["violations"]}


@needs_browser
def test_the_page_is_small_and_ready_at_once(tmp_path):
    """Under 1.5 MB, and interactive in less than a second."""
    text = page("curves")
    assert all(len(page(name).encode()) < LARGEST_PAGE for name in PAGES)
    script = (
        "<script>addEventListener('load', () => { document.body.dataset.ready = "
        "performance.getEntriesByType('navigation')[0].domInteractive; });</script></body>"
    )
    document, log = opened(text.replace("</body>", script), tmp_path)
    ready = float(re.search(r'data-ready="([0-9.]+)"', document)[1])
    assert 0.0 < ready < 1000.0
    assert "CONSOLE" not in log


@needs_browser
def test_assumptions_that_are_signed_for_are_printed(tmp_path):
    """Also beside rates of many groups, which take a third page."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    model = long_names()
    rated = evaluate(model, *rows_of_long_names(4000), budget=400.0, groups="region where they lived before")
    given = contents_of(model, ledger=Ledger(limit=3.0), evaluation=rated)
    write_pdf(page_of(given), tmp_path / "page.pdf")
    pages = [each.extract_text() for each in pypdf.PdfReader(tmp_path / "page.pdf").pages]
    text = letters(" ".join(pages))
    assert 2 <= len(pages) <= 4
    assert all(letters(sentence) in text for sentence in model.guarantee_.assumptions)
    assert letters(f"assumptions 1 to {len(model.guarantee_.assumptions)} printed above") in text
    assert letters("Difference from Region number 0") in text


def letters(text):
    """The text without gaps and ligatures."""
    return unicodedata.normalize("NFKC", "".join(text.split()))


@needs_browser
def test_long_names_and_all_parts_still_print_on_two_pages(tmp_path):
    """A table of coefficients with long levels, rates and a forecast."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    model = long_names()
    forecasts = forecasts_of(additive(), 0.2)[:2]
    rated = evaluate(model, *rows_of_long_names(400), budget=1.0)
    given = contents_of(model, ledger=Ledger(limit=3.0), evaluation=rated, forecasts=forecasts, model_name="a,b.json")
    write_pdf(page_of(given), tmp_path / "page.pdf")
    pages = [each.extract_text() for each in pypdf.PdfReader(tmp_path / "page.pdf").pages]
    assert len(pages) <= 2
    assert all("a,b.json, SHA-256" in page for page in pages)
    assert "Assumptions of the guarantee" in pages[0]


@needs_browser
@pytest.mark.parametrize("name", ["charged", "curves"])
def test_what_is_signed_prints_on_two_pages(name, tmp_path):
    """The place to sign is on the last of them."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    write_pdf(page(name), tmp_path / "page.pdf")
    pages = pypdf.PdfReader(tmp_path / "page.pdf").pages
    assert len(pages) <= 2
    width, height = (float(side) for side in pages[0].mediabox[2:])
    assert (round(width), round(height)) == (595, 842)  # A4
    assert "Approved by" in pages[-1].extract_text()
    for number, each in enumerate(pages, start=1):
        assert f"page {number} of {len(pages)}" in each.extract_text()
        assert "SHA-256" in each.extract_text()
    assert "No ledger records this release" in "".join(each.extract_text() for each in pages).replace("\n", " ") or (
        name == "charged"
    )
    assert "Technical appendix" not in "".join(each.extract_text() for each in pages)
