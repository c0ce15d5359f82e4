"""The page of a released model: what it holds, what it never holds, and that it is a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from confide import (
    AdditiveClassifier,
    FileError,
    HuberRegressor,
    LinearSVC,
    LogisticRegression,
    ParameterError,
    Ridge,
    Schema,
    load,
)
from confide.report.contents import contents_of
from confide.report.page import page_of, report_page
from confide.report.writing import write_report
from tests.report.released import logistic, people, schema, without_privacy

VOID = {"meta", "rect", "line", "input"}


class Balanced(HTMLParser):
    """Fails on tags that are not closed in order, and keeps the words."""

    def __init__(self, page):
        super().__init__()
        self.open, self.words, self.tags = [], [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def rows(n=400, d=3):
    """Rows and labels."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, d)) / np.sqrt(d)
    return X, (X[:, 0] + 0.1 * rng.normal(size=n) > 0).astype(int)


MODELS = {
    "logistic": lambda X, y: LogisticRegression(1.0).fit(X, y),
    "intervals": lambda X, y: LogisticRegression(200.0, inference_share=0.3).fit(X, y),
    "intervals of classes": lambda X, y: LogisticRegression(300.0, inference_share=0.3).fit(X, y + (X[:, 1] > 0.2)),
    "classes": lambda X, y: LinearSVC(1.0, classes=[0, 1, 2]).fit(X, y),
    "ridge": lambda X, y: Ridge(1.0, target_bound=1.0).fit(X, y.astype(float)),
    "huber": lambda X, y: HuberRegressor(1.0, target_bound=1.0).fit(X, y.astype(float)),
    "not private": lambda X, y: LogisticRegression(float("inf")).fit(X, y),
    "no intercept": lambda X, y: LogisticRegression(1.0, fit_intercept=False).fit(X, y),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_page_is_whole_and_says_what_the_model_says(name, tmp_path):
    """Every sentence of the statement, every weight; the same after saving and loading; nothing is fetched or runs."""
    model = MODELS[name](*rows())
    page = report_page(model)
    parsed = Balanced(page)
    words = " ".join(" ".join(parsed.words).split())
    for line in model.guarantee_.statement().replace("  - ", "").split("\n"):
        assert " ".join(line.split()) in words
    if not name.startswith("intervals"):
        for weight in np.ravel(model.coef_):
            assert f"{weight:+.4f}" in words or f"{-weight:+.4f}" in words
    assert not {"script", "link", "img", "iframe"} & set(parsed.tags)
    assert "http" not in page.replace("http-equiv", "")
    assert "svg" in parsed.tags
    model.save(tmp_path / "model.json")
    assert report_page(load(tmp_path / "model.json")) == page


def test_what_is_not_private_is_said_first():
    """In the title, and in a box of another colour."""
    page = report_page(MODELS["not private"](*rows()))
    assert page.index("not private") < page.index("Not private. Do not release") < page.index("What the model says")
    assert 'class="verdict void"' in page
    assert 'class="verdict promise"' not in page
    assert "NOT PRIVATE" in page
    assert "What the signer confirms" not in page
    assert "released privately" not in page


def test_intervals_are_drawn_in_two_shades_and_listed():
    """One dark and one light bar for each coefficient, at the level asked for."""
    model = MODELS["intervals"](*rows())
    page = report_page(model, level=0.8)
    assert model.summary(0.8).to_html() in page
    assert page.count('style="fill: var(--light)"') == page.count('style="fill: var(--dark)"') == 3
    assert "Intervals at level 0.8" in page


def test_names_are_text_and_nothing_else():
    """A column that looks like a tag, and one too long for the drawing."""
    columns = {'<b>&"x"': {"low": 0, "high": 1}, "n" * 80: {"low": 0, "high": 1}}
    schema = Schema(columns=columns, target={"column": "y", "negative": "</html>", "positive": "<i>"})
    import pandas as pd

    frame = pd.DataFrame({name: np.linspace(0, 1, 100) for name in columns})
    model = LogisticRegression(1.0, schema=schema).fit(frame, np.resize(["</html>", "<i>"], 100))
    page = report_page(model)
    Balanced(page)
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;" in page


def test_many_weights_are_listed_and_the_longest_drawn():
    """Of 100, 40 have bars."""
    rng = np.random.default_rng(1)
    model = LogisticRegression(1.0).fit(rng.normal(size=(300, 100)) / 10, rng.integers(0, 2, 300))
    page = report_page(model)
    assert page.count('style="fill: var(--dark)"') == 40
    assert "The 40 largest of 100" in page
    assert "The 16 largest of 101 coefficients" in page
    assert page.partition('class="appendix"')[2].count('<tr><th scope="row">') == 101


def test_what_is_no_model_is_refused(tmp_path):
    """And a folder that is not there."""
    with pytest.raises(ParameterError, match="fitted"):
        report_page(LogisticRegression(1.0))
    with pytest.raises(ParameterError, match="fitted"):
        report_page(object())
    with pytest.raises(FileError, match="cannot write"):
        write_report(MODELS["logistic"](*rows()), tmp_path / "nowhere" / "page.html")


def test_signatures_are_bound_to_the_file_and_to_numbered_assumptions():
    contents = contents_of(logistic()[0])
    page, last = page_of(contents), len(contents.guarantee.assumptions)
    signed = page[page.index("Verify and sign") :]
    assert f"SHA-256 {contents.sha256[:16]}" in signed
    where = '<span class="screen"> of the technical appendix.</span><span class="paper"> printed above.</span>'
    assert f"assumptions 1 to {last}{where}" in signed
    (printed,) = re.findall(r'<section class="paper">.*?</section>', page, re.DOTALL)
    assert printed.count("<li>") == last
    assert page[page.index("<ol>") : page.index("</ol>")].count("<li>") == last


def test_nothing_without_privacy_can_be_signed_or_blames_noise():
    page = page_of(contents_of(without_privacy()))
    assert "Approved by" not in page
    assert "There is nothing to sign" in page
    curves = AdditiveClassifier(float("inf"), schema=schema(), knots=2).fit(*people())
    assert "The noise alone" not in page_of(contents_of(curves))


def test_a_page_holds_nothing_that_controls_a_terminal_or_turns_the_direction_of_its_text():
    """What names hold of either is shown as question marks."""
    page = page_of(contents_of(logistic()[0], data_name="a\x1b[31mb\x9b\u202ec"))
    assert "a?[31mb??c" in page
    assert all(letter.isprintable() or letter in "\n\xa0" for letter in page)


def test_the_name_of_a_signer_fills_its_row_on_a_phone():
    """The table is then a list, and the head of each row a block of its own."""
    narrow = re.search(r"@media \(max-width: 44rem\) \{.*?\} \}", report_page(logistic()[0]), flags=re.DOTALL)
    assert ".sign tbody th { display: block;" in narrow[0]
