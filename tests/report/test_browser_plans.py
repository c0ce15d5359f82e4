"""The page of a plan in a real browser: moved by keyboard, read aloud in whole sentences, and without any request."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from confide import ApproxDP, LogisticRegression
from confide.report import page as pages
from confide.report import plan_page
from confide.report.writing import FLAGS, browser
from tests.report.test_browser import DARK, checked_by_axe, needs_browser
from tests.report.test_page_plans import facts_of

KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Tab": 9, " ": 32}


class Browser:
    """A browser that is told what to do through two pipes, by the protocol of its developers' tools."""

    def __init__(self, folder, *flags):
        given, self._tells = os.pipe()
        self._hears, written = os.pipe()
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [browser(), *FLAGS, *root, f"--user-data-dir={folder}/profile", "--remote-debugging-pipe", *flags]
        ends = (os.dup(given), os.dup(written))  # not 3 or 4 themselves, which these become in the browser

        def wired():
            os.dup2(ends[0], 103)
            os.dup2(ends[1], 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self._process = subprocess.Popen(
            [*command, "about:blank"], preexec_fn=wired, pass_fds=(3, 4), stderr=subprocess.DEVNULL
        )
        self._number, self._left, self.events, self._session = 0, b"", [], None
        page = next(one for one in self("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def __call__(self, method, **given):
        self._number += 1
        session = {} if self._session is None else {"sessionId": self._session}
        os.write(
            self._tells, json.dumps({"id": self._number, "method": method, "params": given, **session}).encode() + b"\0"
        )
        while True:
            while b"\0" not in self._left:
                self._left += os.read(self._hears, 2**16)
            one, _, self._left = self._left.partition(b"\0")
            answer = json.loads(one)
            if answer.get("id") == self._number:
                return answer["result"]
            self.events.append(answer)

    def value(self, script):
        """What a line of JavaScript gives."""
        return self("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def press(self, *keys):
        """Press keys, one after the other."""
        for key in keys:
            for kind in ("rawKeyDown", "keyUp"):
                self("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])

    def opened(self, text, folder):
        """Open a page, and wait until its script has run."""
        (folder / "plan.html").write_text(text, encoding="utf-8")
        self("Page.navigate", url=(folder / "plan.html").as_uri())
        for _ in range(100):
            if self.value("document.readyState") == "complete" and self.value("!!document.getElementById('data')"):
                return
            time.sleep(0.1)


@pytest.fixture(name="page", scope="module")
def _page():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "_FEWER_DOUBLINGS", (1, 1))
        return plan_page(LogisticRegression(ApproxDP(1.0, 1e-6), inference_share="auto"), 1500, 4)


SAID = "document.getElementById('said').textContent"
FOCUS = "document.activeElement.id || document.activeElement.name"


@needs_browser
def test_sliders_and_promises_are_moved_by_keyboard(page, tmp_path):
    """Tab goes through them, arrows move them, and the live sentence says what the plan at that place says."""
    facts = facts_of(page)

    def sentence(kind, relation, rows, budget):
        of_kind, of_relation = facts["kinds"][kind], facts["relations"][relation]
        point, (amounts, guess) = of_relation["points"][kind][rows][budget], of_kind["budgets"][budget]
        start = f"{of_kind['name']} with {amounts}, {of_relation['rows'][rows]}, {of_relation['name']}: "
        start, first = start[0].upper() + start[1:], facts["said"][point["s"][0]]
        if "l" not in point:
            return f"{start} {first}"
        odds = of_relation["meaning"].replace("{odds}", guess)
        return f"{start}expected error {point['r']}. {first} {odds}"

    with Browser(tmp_path) as chrome:
        chrome.opened(page, tmp_path)
        assert chrome.value(SAID) == sentence(0, 0, 1, 1)
        places = []
        for _ in range(4):
            chrome.press("Tab")
            places.append(chrome.value(FOCUS))
        assert places == ["kind", "relation", "budget", "rows"]
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert chrome.value(outline) == "solid"
        chrome.press("ArrowRight")
        assert chrome.value(SAID) == sentence(0, 0, 2, 1)
        assert chrome.value("document.getElementById('rows').getAttribute('aria-valuetext')") == "3,000 rows"
        chrome.value("document.getElementById('budget').focus()")
        chrome.press("Home")
        assert chrome.value("document.getElementById('budget').getAttribute('aria-valuetext')").startswith("epsilon = 0.5,")
        assert chrome.value(SAID) == sentence(0, 0, 2, 0)
        chrome.value("document.querySelector('input[name=kind]').focus()")
        chrome.press("ArrowDown")
        assert chrome.value("document.querySelectorAll('input[name=kind]')[1].checked")
        chrome.value("document.getElementById('rows').focus()")
        chrome.press("Home")
        assert "l" not in facts["relations"][0]["points"][1][0][0]
        assert chrome.value(SAID) == sentence(1, 0, 0, 0)
        chrome.value("document.querySelector('input[name=relation]').focus()")
        chrome.press("ArrowDown")
        assert chrome.value("document.getElementById('options').textContent").endswith(
            "--neighbours add-or-remove-one --n-rows-bounds 750 1500"
        )
        chrome.value("document.getElementById('back').focus()")
        chrome.press(" ")
        assert chrome.value(SAID) == sentence(0, 0, 1, 1)
        next_figures = chrome.value("[...document.querySelectorAll('#next tr')].map(r => r.children[1].textContent)")
        own = facts["relations"][0]["points"][0]
        assert next_figures == [own[1][1]["r"], own[2][1]["r"], own[1][2]["r"], own[2][2]["r"]]
        asked = [e["params"]["request"]["url"] for e in chrome.events if e["method"] == "Network.requestWillBeSent"]
        assert asked == [(tmp_path / "plan.html").as_uri()]
        assert not [e for e in chrome.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]


@needs_browser
def test_the_page_fits_a_telephone_and_its_live_region_is_one(page, tmp_path):
    """Of 390 pixels, light and dark; what changes is read aloud, whole."""
    with Browser(tmp_path) as chrome:
        chrome.opened(page, tmp_path)
        chrome("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        chrome.value("document.querySelector('details.grid').open = true")
        assert chrome.value("document.documentElement.scrollWidth") == 390
        live = "['role', 'aria-live', 'aria-atomic'].map(name => document.getElementById('said').getAttribute(name)).join()"
        assert chrome.value(live) == "status,polite,true"
        labels = "[...document.querySelectorAll('.move input')].map(one => one.labels.length)"
        assert set(chrome.value(labels)) == {1}


@needs_browser
def test_without_a_script_tables_are_read(page, tmp_path):
    """They are open, what is moved is hidden, and a sentence says so."""
    with Browser(tmp_path) as chrome:
        chrome("Emulation.setScriptExecutionDisabled", value=True)
        chrome.opened(page, tmp_path)
        shown = chrome.value("document.body.innerText")
        assert "The tables below hold the same figures." in shown
        assert "Right guess, at most" in shown
        assert "Budget:" not in shown


@needs_browser
@pytest.mark.parametrize("flags", [["--window-size=1100,900"], [DARK, "--window-size=500,900"]])
def test_axe_finds_nothing_serious(page, flags, tmp_path):
    """With the tables unfolded, light and dark."""
    found, console = checked_by_axe(page.replace(".open = false", ".open = true"), tmp_path, *flags)
    assert [each for each in found["violations"] if each[1] in ("serious", "critical")] == []
    assert found["passes"] > 10
    assert found["width"] <= found["seen"]
    assert console == []
