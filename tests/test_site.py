"""The documentation site: pages made from code are current, every page is in the navigation, and the builder sees faults."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import markdown
import pandas as pd
import pytest
from scripts import (
    build_site,
    formulas,
    gallery,
    notebooks,
    page_outputs,
    pages_in_browser,
    reference_pages,
    site_check,
    site_pages,
)

import confide
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.fourier import RandomFeatures
from confide.features.schema import Interaction, Target
from confide.studies.study import BudgetOfStudy, Data, EvaluationOfStudy, LedgerOfStudy, Naming, Outputs, Schedule, Study
from tests.report.test_browser import needs_browser

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def settings():
    return tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]


def pages_in(navigation):
    """Every page that a navigation names."""
    for entry in navigation if isinstance(navigation, list) else navigation.values():
        if isinstance(entry, str):
            yield entry
        else:
            yield from pages_in(entry)


@pytest.fixture(scope="module")
def gathered(tmp_path_factory):
    """The sources of the site in a folder of the test."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    site_pages.gather(folder)
    return folder


def test_every_page_is_in_the_navigation_once(gathered):
    """And the navigation names no page that is not there."""
    named = list(pages_in(settings()["nav"]))
    there = {path.relative_to(gathered).as_posix() for path in gathered.rglob("*.md")}
    assert sorted(named) == sorted(there)


def test_each_page_has_a_copy_in_markdown_and_a_list_names_them_all(gathered):
    """With docstrings in the places where the site has them."""
    pages = site_pages.plain_pages(gathered)
    assert set(re.findall(r"\]\((\S+\.md)\)", pages["llms.txt"])) == set(pages) - {"llms.txt"}
    assert "- [Your first private model](tutorials/first_model.md)" in pages["llms.txt"]
    assert "Ridge regression (least squares with a ridge)" in pages["reference/python/Ridge.md"]
    assert not any(re.search(r"(?m)^:::", text) for text in pages.values())


def test_pages_made_from_code_are_current():
    """The command line and the Python names; `python -m scripts.reference_pages --write` renews them."""
    made = reference_pages.pages()
    there = set((DOCS / "reference" / "python").glob("*.md")) | {DOCS / "reference" / "command_line.md"}
    assert set(made) == there
    locked = re.search(r"^typer==([\d.]+)", (ROOT / "requirements" / "core.txt").read_text(encoding="utf-8"), re.MULTILINE)
    if locked and locked[1] != version("typer"):
        del made[DOCS / "reference" / "command_line.md"]  # another version writes the help of commands in other words
    old = [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert old == [], "run: python -m scripts.reference_pages --write"


def test_every_public_name_is_on_one_page():
    """Names and pages agree, both ways."""
    named = [name for _, names in reference_pages.GROUPS.values() for name in names]
    assert sorted(named) == sorted(set(confide.__all__) - {"__version__"})


def tables_of(page):
    """Heading -> the rows of the table below it, each a list of cells."""
    found = {}
    for part in re.split(r"(?m)^## ", page.read_text(encoding="utf-8"))[1:]:
        heading, _, text = part.partition("\n")
        rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
        found[heading] = [[cell.strip() for cell in row] for row in rows]
    return found


PARTS = {
    "The file": confide.Schema,
    "A column of numbers": NumberColumn,
    "A column of categories": CategoryColumn,
    "The target": Target,
    "An interaction as a table": Interaction,
    "Random features": RandomFeatures,
}


@pytest.mark.parametrize("heading", PARTS)
def test_the_page_on_schemas_has_every_key_and_its_default(heading):
    """The keys are those that the reader admits, which are the fields of its classes, and so are the defaults."""
    fields = {field.name: field for field in dataclasses.fields(PARTS[heading]) if field.init and field.name != "name"}
    rows = {row[0].strip("`"): row for row in tables_of(DOCS / "reference" / "schema.md")[heading]}
    assert rows.keys() == fields.keys()
    if PARTS[heading] is confide.Schema:
        return
    for name, field in fields.items():
        written = rows[name][2].strip("`")
        if field.default is dataclasses.MISSING:
            assert written == "required"
        elif field.default in (None, ()):
            assert written == "none"
        else:
            assert tomllib.loads(f"value = {written}")["value"] == field.default


TABLES_OF_A_STUDY = {
    "study": Naming,
    "data": Data,
    "budget": BudgetOfStudy,
    "ledger": LedgerOfStudy,
    "evaluation": EvaluationOfStudy,
    "schedule": Schedule,
    "outputs": Outputs,
}


def test_the_page_on_study_files_has_every_table_key_and_default(tmp_path):
    """They are those of the reader, each example is TOML with its key, and the file on the page is read."""
    page = DOCS / "reference" / "study_file.md"
    found = tables_of(page)
    tables = {field.name for field in dataclasses.fields(Study)} - {"path", "release"}
    assert found.keys() == tables == TABLES_OF_A_STUDY.keys() | {"model"}
    for name, kind in TABLES_OF_A_STUDY.items():
        fields = {field.name: field for field in dataclasses.fields(kind)}
        assert [row[0].strip("`") for row in found[name]] == list(fields)
        for key, _, default, example in found[name]:
            field = fields[key.strip("`")]
            assert field.name in tomllib.loads(example.strip("`"))
            if field.default is dataclasses.MISSING:
                assert default == "required"
            else:
                expected = {"value": field.default} if field.default is not None else "none"
                assert (default if default == "none" else tomllib.loads(f"value = {default.strip('`')}")) == expected
    (whole,) = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "study.toml").write_text(whole, encoding="utf-8")
    assert Study.from_toml(tmp_path / "study.toml").budget.delta == 1e-6


def test_the_examples_on_the_page_on_schemas_are_schemas():
    """Each example of a key, completed by what it needs, is read, and holds its key."""
    target = 'target = { column = "y", negative = 0, positive = 1 }'
    columns = "\n".join(f"{name} = {{ low = 0, high = 9 }}" for name in ("sex", "education", "age", "hours"))
    seen = 0
    for heading, rows in tables_of(DOCS / "reference" / "schema.md").items():
        for key, _, _, example in rows:
            text, name = example.strip("`"), key.strip("`")
            seen += 1
            if "column" in heading:
                schema = confide.Schema.from_dict({"columns": tomllib.loads(text)})
                assert re.search(rf"\b{name} = ", schema.to_toml())
            elif text != "[columns]":
                above = text if text.startswith("target") else f"{target}\n{text}"
                schema = confide.Schema.from_dict(tomllib.loads(f"{above}\n[columns]\n{columns}"))
                assert re.search(rf"\b{name}\b", schema.to_toml()) or text.startswith("interact")
    assert seen > 20
    (whole,) = re.findall(r"```toml\n(.*?)```", (DOCS / "reference" / "schema.md").read_text(encoding="utf-8"), re.DOTALL)
    assert confide.Schema.from_dict(tomllib.loads(whole)).target.column == "income"


def test_the_glossary_is_in_order():
    """Terms rise, each has an explanation, and none is there twice."""
    text = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"(?m)^(\S[^\n]*)\n:   \S", text)
    assert len(terms) > 40
    assert terms == sorted(set(terms), key=str.lower)


def test_the_tree_of_errors_is_that_of_the_code():
    """The page shows what the docstring of confide.errors shows."""
    from confide import errors

    tree = re.findall(r"(?m)^ +(ConfideError\n(?: +[├│└ ].*\n)+)", errors.__doc__)[0]
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    lines = [line.strip() for line in tree.splitlines()]
    assert len(lines) >= 10
    assert [line for line in lines if line not in page] == []


def test_the_format_of_a_ledger_is_the_one_that_is_described():
    """The version, the keys of the header and of a charge, and the names of details."""
    import json
    import sqlite3
    import tempfile

    from confide.accounting.records import DETAILS, FORMAT_VERSION

    page = (DOCS / "reference" / "ledger_format.md").read_text(encoding="utf-8")
    assert f"`user_version` {FORMAT_VERSION}," in page
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.db")
        confide.Ledger(path, limit=1.0).charge(confide.PureDP(0.5), purpose="mean age")
        with contextlib.closing(sqlite3.connect(path)) as file:
            records = [json.loads(text) for (text,) in file.execute("SELECT text FROM records ORDER BY number")]
    written = {key for record in records for key in record} | set(DETAILS) | {"details", "note_on"}
    assert [key for key in sorted(written) if f"`{key}`" not in page] == []


def test_exit_codes_are_those_of_the_command_line():
    """The headings and `confide --help` have the same codes, and each error of the tree has a heading."""
    from confide.cli.options import epilog_of

    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?m)^### Exit code (\d+)$", page)) == set(re.findall(r"(?m)^ *(\d+)  ", epilog_of("confide")))
    named = {name for name in reference_pages.GROUPS["errors"][1] if name != "ConfideError"}
    assert named <= set(re.findall(r"(?m)^### (\w+)$", page))


def test_links_are_those_of_the_site():
    """A page elsewhere, a page of the repository, a module, code, and a link to nothing."""
    page = DOCS / "how_to" / "priors.md"
    where = site_pages.places()

    def rewritten(text):
        return site_pages.rewritten(text, page, where)

    proof = "../../src/confide/privacy/proofs/objective_perturbation.md#4-theorem-2-density"
    assert rewritten(f"[proof]({proof})") == "[proof](../explanation/proofs/objective_perturbation.md#4-theorem-2-density)"
    assert rewritten("[x](https://example.org/a.md)") == "[x](https://example.org/a.md)"
    assert rewritten("[effects](effects.md)") == "[effects](effects.md)"
    assert rewritten("[a solver](../../src/confide/solvers/newton.py)") == "a solver (`src/confide/solvers/newton.py`)"
    assert (
        rewritten("(see [a solver](../../src/confide/solvers/newton.py))")
        == "(see a solver: `src/confide/solvers/newton.py`)"
    )
    assert rewritten("```\n[a](nothing.md)\n```\n") == "```\n[a](nothing.md)\n```\n"
    with pytest.raises(LookupError, match=r"nothing\.md"):
        rewritten("[a](nothing.md)")


def test_a_long_output_shows_what_it_begins_with_and_what_it_comes_to():
    """The middle is left out, and the page says so."""
    lines = [f"line {number}" for number in range(100)]
    assert page_outputs.written("\n".join(lines[:60])).count("line") == 60
    shown = page_outputs.written("\n".join(lines)).splitlines()
    assert shown[2:22] == lines[:20]
    assert shown[22] == "... 40 lines are left out here ..."
    assert shown[23:-1] == lines[60:]


def test_lists_get_the_blank_line_that_they_need():
    """Lists after a paragraph, and neither code nor lists that have it."""
    assert site_pages.with_blank_lines("Text\n- a\n- b\n") == "Text\n\n- a\n- b\n"
    for same in (
        "Text\n\n- a\n- b\n",
        "```\nText\n- a\n```\n",
        "- a\n  more\n- b\n",
        "minus 1\nis below 0\n",
        "In\n2022. B\n",
    ):
        assert site_pages.with_blank_lines(same) == same


def test_no_page_has_a_list_that_is_read_as_a_paragraph(gathered):
    """Python-Markdown, which the site uses, joins a list to the paragraph before it unless a line is empty."""
    for path in gathered.rglob("*.md"):
        text = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
        html = markdown.markdown(text, extensions=["tables", "def_list", "admonition"])
        for paragraph in re.findall(r"(?s)<p>(.*?)</p>", html):
            assert not re.search(r"(?m)^[-*] \S", paragraph), f"{path.name}: {paragraph[:80]}"


def test_the_check_of_the_site_sees_each_fault(tmp_path):
    """A missing page, a missing anchor, a missing picture, what another server would send, and a table that is torn."""
    good = '<a href="b.html#there">b</a><img src="p.svg"><a href="https://example.org">e</a><a href="#top" id="top">t</a>'
    (tmp_path / "p.svg").touch()
    (tmp_path / "b.html").write_text('<h1 id="there">B</h1><link rel="canonical" href="https://example.org">')
    (tmp_path / "a.html").write_text(good)
    assert site_check.faults(tmp_path) == []
    for bad, words in {
        '<a href="c.html">c</a>': "missing",
        '<a href="b.html#nowhere">b</a>': "no such place",
        '<a href="#nowhere">b</a>': "no such place",
        '<img src="q.svg">': "missing",
        '<script src="https://example.org/x.js"></script>': "from elsewhere",
        '<link rel="stylesheet" href="//example.org/x.css">': "from elsewhere",
        "<p>| <code>a</code> | b |</p>": "outside",
    }.items():
        (tmp_path / "a.html").write_text(good + bad)
        (fault,) = site_check.faults(tmp_path)
        assert fault.startswith("a.html")
        assert words in fault
    assert site_check.faults(tmp_path / "empty") == ["empty holds no page"]


def test_the_html_of_a_page_is_made_readable():
    """Options stay on one line, code in blocks and long words stay as they are, and boxes to tick have names."""
    kept = f"<pre><code><span>a</span> --b-c</code></pre><code>a b</code><code>{'a-' * 20}</code>"
    assert build_site.readable(kept) == kept
    shown = '<code>a <span class="whole">--out-dir</span> b</code>'
    assert build_site.readable("<code>a --out-dir b</code>") == shown
    assert "aria-label" in build_site.readable('<li><input type="checkbox" disabled/> a</li>')
    assert build_site.readable("<code>tests/erm/test_a_b.py::test_c</code>").count("<wbr>") == 6
    shown = build_site.readable('<p><img alt="a" src="../b.svg"></p>')
    assert shown == '<p class="picture"><a href="../b.svg"><img alt="a" src="../b.svg"></a></p>'
    assert build_site.readable("<td>.1410</td><td>two words</td>") == '<td class="short">.1410</td><td>two words</td>'


def test_tables_of_sentences_are_cards_on_a_telephone():
    """Each cell names its column; numbers, and what is narrow enough, stay in columns."""
    head = "<table>\n<thead>\n<tr>\n<th>key</th>\n<th>its <em>meaning</em></th>\n<th></th>\n</tr>\n</thead>\n<tbody>\n"
    words = "what a reader of the page wants to know of it"

    def row(*cells):
        return "<tr>\n" + "\n".join(f"<td>{cell}</td>" for cell in cells) + "\n</tr>\n"

    shown = build_site.stacked(head + row("<b>a</b>", words, words) + row("b", words, "") + "</tbody>\n</table>")
    assert shown.startswith('<table role="table" data-stacked>')
    assert re.findall(r'data-column="([^"]*)"', shown) == 2 * ["key", "its meaning", ""]
    for same in (
        row(".141", ".142", ".143") + row("Adult with more", ".1", ".2"),
        row("a", "b", "two words"),
        row("a", words),
    ):
        assert build_site.stacked(head + same + "</tbody>\n</table>") == head + same + "</tbody>\n</table>"


def test_every_formula_can_be_drawn(gathered):
    """Formulas of all pages become MathML; a command that is not known is refused."""
    drawn = 0
    for path in gathered.rglob("*.md"):
        text = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
        html = markdown.markdown(text, extensions=["scripts.formulas", "tables"])
        drawn += html.count("<math")
        assert "$$" not in re.sub(r"(?s)<code>.*?</code>", "", html), path.name
    assert drawn > 50
    assert "<msup>" in formulas.mathml("e^{2}")
    assert "msup" not in formulas.mathml("D'")
    with pytest.raises(ValueError, match="nosuch"):
        formulas.mathml(r"\nosuch{2}")
    assert "<math" not in markdown.markdown("It costs $5 and `$x$`, or 10 $.", extensions=["scripts.formulas"])


def test_a_notebook_is_made_from_its_source():
    """Cells of both kinds, in order, each with what it shows: what it prints, then its last value. No mark is refused."""
    pytest.importorskip("matplotlib")
    source = "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nx = 1\nprint(2)\n\n# %%\nx\n"
    assert notebooks.cells(source) == [("markdown", "# Title\n\nWords."), ("code", "x = 1\nprint(2)"), ("code", "x")]
    shown = notebooks.outputs(source)
    assert [[output["output_type"] for output in some] for some in shown] == [[], ["stream"], ["execute_result"]]
    assert '"text/plain": [\n       "1"' in notebooks.notebook(source, shown)
    output = '```text title="Output"\n{}\n```\n'
    cells = ["Words.\n", "```python\nx = 1\nprint(2)\n```\n", output.format(2), "```python\nx\n```\n", output.format(1)]
    assert notebooks.as_markdown(source, shown) == "\n".join(cells)
    with pytest.raises(ValueError, match="begins with a mark"):
        notebooks.cells("x = 1\n# %%\n")


def test_the_notebook_of_the_tutorial_shows_what_its_cells_give(gathered):
    """The page has each cell, a table or a picture below each that shows one, and no script; the notebook has the same."""
    source = (DOCS / "tutorials" / "notebook.py").read_text(encoding="utf-8")
    page = (gathered / "tutorials" / "in_a_notebook.md").read_text(encoding="utf-8")
    assert all(text in page for kind, text in notebooks.cells(source) if kind == "code")
    assert page.count("data:image/png") == 1
    assert page.count('class="cell-output"') == 3
    assert "<style" not in page
    assert "<script" not in page
    assert "It holds if" in page
    cells = json.loads((gathered / "tutorials" / "first_private_model.ipynb").read_text(encoding="utf-8"))["cells"]
    shows = [bool(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"]
    assert shows == [False, True, True, True, True, True, True]


def test_guides_come_before_proofs_in_the_search(tmp_path, monkeypatch):
    """Proofs and measurements are found by their titles, and come last; a method that many classes inherit is found once."""
    monkeypatch.setattr(build_site, "SITE", tmp_path)
    places = {
        "how_to/effects.html": ("Effects", "weights"),
        "how_to/effects.html#bands": ("Bands", "noise"),
        "explanation/proofs/seal.html": ("Seal", "weights"),
        "explanation/proofs/seal.html#theorem": ("Theorem", "weights"),
        "reference/python/A.html#A.fit": ("A.fit", "fit it"),
        "reference/python/B.html#B.fit": ("B.fit", "fit it"),
    }
    items = [
        {"location": place, "level": 1 + ("#" in place), "title": title, "text": words, "path": [], "tags": []}
        for place, (title, words) in places.items()
    ]
    written = json.dumps({"config": {}, "items": items})
    (tmp_path / "search.json").write_text(written, encoding="utf-8")
    (tmp_path / "search.js").write_text(f"var __index = {written};", encoding="utf-8")
    build_site.guides_first()
    left = json.loads((tmp_path / "search.json").read_text(encoding="utf-8"))["items"]
    found = [(item["title"], item["text"]) for item in left]
    assert found == [("Effects", "weights"), ("Bands", "noise"), ("A.fit", "fit it"), ("Proof: Seal", "")]
    script = (tmp_path / "search.js").read_text(encoding="utf-8")
    assert json.loads(script.removeprefix("var __index = ").removesuffix(";"))["items"] == left


FOUND_FIRST = {
    "AUC": "how_to/evaluate.html#curves-roc-and-auc",
    "Excel": "how_to/where_rows_come_from.html#workbooks",
    "GDPR": "explanation/questions_of_reviewers.html",
    "Gaussian": "how_to/choose_epsilon_and_delta.html#delta-and-gaussian-or-laplace-noise",
    "GridSearchCV": "how_to/tuning.html#a-private-search",
    "HIPAA": "explanation/questions_of_reviewers.html#data-protection-gdpr-hipaa",
    "SAS": "how_to/where_rows_come_from.html#stata-spss-and-sas",
    "SHAP": "how_to/effects.html#feature-importance-and-shap-values",
    "Snowflake": "how_to/where_rows_come_from.html#databases",
    "Stata": "how_to/where_rows_come_from.html#stata",
    "atoms": "how_to/additive_models.html#atoms",
    "backup": "how_to/share_a_ledger.html#backup-and-restore",
    "budget used up": "how_to/share_a_ledger.html#when-the-budget-is-used-up",
    "categorical variables": "how_to/write_a_schema.html#categories",
    "class_weight": "how_to/from_scikit_learn.html#parameters",
    "concurrent": "how_to/share_a_ledger.html",
    "confidence interval": "how_to/intervals.html",
    "confusion matrix": "how_to/tuning.html",
    "cross-validation": "how_to/tuning.html",
    "decimal comma": "how_to/start_from_a_table.html#a-table-with-semicolons",
    "elastic net": "how_to/sparse_models.html",
    "explain to participants": "how_to/choose_epsilon_and_delta.html#1-how-would-you-explain-it",
    "exposure": "how_to/counts_and_rates.html",
    "feature importance": "how_to/effects.html#feature-importance-and-shap-values",
    "how long does it take": "how_to/larger_than_memory.html#how-long-does-it-take",
    "hyperparameter": "how_to/tuning.html",
    "interactions": "how_to/additive_models.html#interactions",
    "k-anonymity": "reference/glossary.html",
    "known limitations": "explanation/known_holes.html",
    "lasso": "how_to/sparse_models.html",
    "logging": "how_to/larger_than_memory.html#progress-and-logging",
    "membership inference": "how_to/audit.html#membership-inference-on-the-worst-pair",
    "missing codes": "how_to/write_a_schema.html#missing-values",
    "missing values": "how_to/write_a_schema.html#missing-values",
    "monotone": "how_to/effects.html#monotone-effects",
    "neural network": "explanation/what_it_does_not_do.html",
    "odds ratio": "how_to/read_coefficients.html",
    "offset": "how_to/counts_and_rates.html",
    "p-value": "how_to/read_coefficients.html",
    "partition selection": "how_to/private_bounds.html#levels-that-nobody-can-list",
    "predict new data": "how_to/exports.html#predict-new-data",
    "quantile": "how_to/losses_with_kinks.html#quantiles-and-medians",
    "random_state": "how_to/from_scikit_learn.html#random_state",
    "re-identification": "explanation/questions_of_reviewers.html",
    "regularization": "reference/glossary.html",
    "repeated measures": "explanation/what_epsilon_means.html#several-rows-of-one-person",
    "sample_weight": "how_to/survey_data.html",
    "scoring in SQL": "how_to/exports.html#sql",
    "spark": "how_to/cluster.html#spark",
    "train test split": "how_to/tuning.html#train-and-test-split",
    "upgrade": "how_to/install.html#upgrade",
    "variance": "how_to/",
}
"""What users ask for in their own words, and the page or section that they should see first."""


@needs_browser
@pytest.mark.skipif(not (build_site.SITE / "search.js").exists(), reason="there is no site: make docs")
def test_the_search_finds_first_what_users_mean():
    """On the site that `make docs` built, opened in a browser."""
    found = pages_in_browser.searched(build_site.SITE, list(FOUND_FIRST))
    first = {words: next(iter(links), "nothing") for words, links in found.items()}
    assert {words: place for words, place in first.items() if not place.startswith(FOUND_FIRST[words])} == {}


KINDS_OF_PAGES = ("index", "reference/schema", "reference/python/Ledger", "project/peers", "explanation/proofs/noise")


@needs_browser
@pytest.mark.skipif(not (build_site.SITE / "search.js").exists(), reason="there is no site: make docs")
@pytest.mark.parametrize("name", KINDS_OF_PAGES)
def test_a_page_of_each_kind_can_be_read(name, tmp_path):
    """On a wide screen and on a telephone, on light and on dark: axe-core finds nothing serious, and no page is too wide."""
    (tmp_path / "axe.js").write_text(pages_in_browser.axe() + pages_in_browser.SCRIPT, encoding="utf-8")
    page = build_site.SITE / f"{name}.html"
    found = {screen: pages_in_browser.faults(page, screen, tmp_path / "axe.js") for screen in pages_in_browser.SCREENS}
    assert {screen: some for screen, some in found.items() if some} == {}


NEED_ALL_ROWS = {"effects_with_bands"}
"""Few rows have no intervals for so many columns, and the fit says so."""


def examples():
    """Each example of the gallery; those that read the folder of data sets are marked so."""
    for path in gallery.examples():
        reads_data = "CONFIDE_DATA_DIR" in path.read_text(encoding="utf-8")
        yield pytest.param(path, id=path.stem, marks=[pytest.mark.data] if reads_data else [])


@pytest.mark.parametrize("example", [*examples()])
def test_an_example_of_the_gallery_draws_its_picture(example, tmp_path, monkeypatch):
    """On every tenth row where nothing is printed; the committed picture is there, small, and loads nothing."""
    pytest.importorskip("matplotlib")
    if "CONFIDE_DATA_DIR" in example.read_text(encoding="utf-8") and "CONFIDE_DATA_DIR" not in os.environ:
        pytest.skip("CONFIDE_DATA_DIR names no folder with the data of this example")
    printed = gallery.printed(example)
    read, step = pd.read_parquet, 1 if printed or example.stem in NEED_ALL_ROWS else 10
    monkeypatch.setattr(pd, "read_parquet", lambda *given, **named: read(*given, **named).iloc[::step])
    assert page_outputs.differs(gallery.run(example, tmp_path), printed) == ""
    assert (tmp_path / f"{example.stem}.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    committed = example.with_suffix(".svg")
    assert 5_000 < committed.stat().st_size < 150_000
    links = set(re.findall(r"https?://[^\"'<> ]+", committed.read_text(encoding="utf-8")))
    assert {link for link in links if "w3.org" not in link} == set()


def test_the_gallery_has_ten_examples_or_more():
    """Each says what it shows and where its data come from."""
    assert len(gallery.examples()) >= 10
    for example in gallery.examples():
        assert "\nData: " in example.read_text(encoding="utf-8")


def test_the_site_can_be_built_where_its_tools_are():
    """The tools that the extra installs are those that the settings name; without them this says so."""
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("zensical is not installed; `make docs` installs it and builds the site")
    assert settings()["strict"] is True
    assert settings()["theme"]["font"] is False


def test_choices_in_docstrings_are_words_on_the_site():
    """Braces and straight quotes of parameter lines are changed, and nothing else."""
    pytest.importorskip("griffe")
    from scripts.typed_choices import readable

    text = 'Do "it".\n\nParameters\n----------\nkind : {"a-b", "c"}, default "c"\n    It is "c".\nX : array (n, d)\n'
    prose = "a : " + 13 * "words " + "of\n    a sentence\nb : int\n    It is.\n"
    assert readable(prose) == prose.replace("a : ", "a\n    ", 1)
    assert readable(text) == text.replace('{"a-b", "c"}, default "c"', "“a-b” or “c”, default “c”")
