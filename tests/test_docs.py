"""What the pages say is what the code does."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from scripts import page_outputs, site_pages

import confide
from confide.cli import app
from confide.estimators.released import effects_of

ROOT = Path(__file__).resolve().parents[1]


PAGES = page_outputs.PAGES
NEEDED = {"cluster.md": "dask.dataframe", "plots.md": "matplotlib.pyplot", "exports.md": "onnxruntime"}


def blocks(page, language):
    """Fenced code of one language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def after_effects(names):
    """Its model has effects and bands for every column."""
    found = list(effects_of(confide.load("effects.json")).with_bands())
    assert [each.name for each in found] == ["age", "hours-per-week", "education-num", "sex"]
    assert all(each.has_band for each in found)


def after_additive_models(names):
    """Curves find what lines do not."""
    assert names["curves"].score(names["X"], names["y"]) > 0.9


def after_priors(names):
    """The prior raises the accuracy, the page quotes the statement, and the refit is charged."""
    adult, sentence = names["adult"], "a model that was declared public. It was made from rows that need no protection"
    assert names["model"].score(adult.X_test, adult.y_test) > names["without"].score(adult.X_test, adult.y_test)
    assert sentence in " ".join(str(names["model"].guarantee_).split())
    assert sentence in " ".join((ROOT / "docs/how_to/priors.md").read_text(encoding="utf-8").replace("> ", "").split())
    assert len(names["ledger"].entries()) == 2


def after_own_data(names):
    """The model is private, its report is there, and one charge was made."""
    assert confide.load("model.json").guarantee_.void is None
    assert Path("report.html").stat().st_size > 10_000
    assert len(confide.Ledger("study.db").entries()) == 1


def after_studies(names):
    """A second run charges nothing."""
    assert [confide.Ledger(name).spent().epsilon for name in ("study.db", "held_out.db")] == [1.0, 0.5]
    assert set(confide.Ledger("study.db").entries()["purpose"].str.split(" ").str[0]) == {"Census"}


def after_private_bounds(names):
    """The statement that the page quotes is that of a model."""
    page = " ".join((ROOT / "docs/how_to/private_bounds.md").read_text(encoding="utf-8").replace("> ", "").split())
    release = confide.Schema.from_toml("bounds.toml").columns[0].released
    assert " ".join(release.sentences(confide.Ledger("study.db").identity)) in page
    narrow = confide.Schema.from_toml("narrow.toml").columns[1].released
    statement = " ".join(confide.load("model.json").guarantee_.statement().split())
    assert narrow.sentences(confide.Ledger("study.db").identity)[0] in statement


def after_plots(names):
    """Each display has axes, and the releases are charged."""
    for name in ("forecast", "coefficients", "effects", "roc", "calibration", "spent"):
        assert names[name].ax_.figure is names[name].figure_
    assert len(names["ledger"].entries()) == 2
    assert Path("ledger.png").stat().st_size > 1000


def after_exports(names):
    """They compare predictions themselves."""
    assert names["probabilities"].shape == (100, 2)


def after_the_readme(names):
    """The model that was saved is private."""
    assert confide.load("adult.json").guarantee_.void is None


AFTER = {
    "README.md": after_the_readme,
    "effects.md": after_effects,
    "additive_models.md": after_additive_models,
    "priors.md": after_priors,
    "own_data.md": after_own_data,
    "studies.md": after_studies,
    "private_bounds.md": after_private_bounds,
    "plots.md": after_plots,
    "exports.md": after_exports,
}
"""What else is to be true when the blocks of a page were run."""


@pytest.mark.parametrize("page", [page.relative_to(ROOT).as_posix() for page in PAGES if page_outputs.has_code(page)])
def test_the_code_of_a_page_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    """Its blocks in order, in an empty folder."""
    path, names = ROOT / page, {}
    if path.name in NEEDED:
        pytest.importorskip(NEEDED[path.name])
    if path.name == "plots.md":
        plt = importlib.import_module("matplotlib.pyplot")
        plt.close("all")  # Matplotlib 3.8 warns of figures that another test left open
        plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    assert page_outputs.differences(path, names) == [], "python -m scripts.page_outputs --write renews what pages show"
    AFTER.get(path.name, lambda names: None)(names)
    if path.name == "plots.md":
        plt.close("all")


def test_pages_that_are_named_exist_and_outputs_are_compared(tmp_path):
    """A page whose output changed is found; digits that another machine rounds otherwise are not."""
    named = AFTER.keys() | NEEDED.keys() | page_outputs.FOLLOWED | page_outputs.NOT_RUN | page_outputs.OF_THE_MACHINE
    assert named <= {page.name for page in PAGES}
    page = tmp_path / "page.md"

    def wrong(text):
        page.write_text(text, encoding="utf-8")
        return page_outputs.differences(page, {})

    code, output = "```python\nprint('error', 0.1234)\n```\n", '\n```text title="Output"\n{}\n```\n'
    assert wrong(code + output.format("error 0.1235")) == []
    assert wrong(code + output.format("error 0.1334")) == ["it prints 0.1234, and the page has 0.1334"]
    assert wrong(code + output.format("mistakes 0.1234")) == ["it prints error, and the page has mistakes"]
    assert wrong(code) == ["it prints 2 words, and the page has 0"]


def test_the_questions_of_the_tutorial_are_those_that_a_terminal_asks(tmp_path, monkeypatch):
    """Each question of `confide new`, what it says to each answer, and the schema that the answers make."""
    from typer.testing import CliRunner

    from confide.cli import new

    page = "docs/tutorials/own_data.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(new, "is_dialogue", lambda: True)
    exec(compile(blocks(page, "python")[0], page, "exec"), {})  # noqa: S102 - our own page
    shown = blocks(page, "text")[0].splitlines()
    asked = [tuple(line.split(" >", 1)) for line in shown if " >" in line]
    answers = "".join(f"{answer.strip()}\n" for _, answer in asked)
    (begin,) = (line for line in blocks(page, "sh")[0].splitlines() if line.startswith("confide new "))
    done = CliRunner().invoke(app, shlex.split(begin)[1:], input=answers)
    assert done.exit_code == 0, done.output
    assert done.output.count(" > ") == len(asked)
    rest = done.output
    for line in (line.split(" >")[0] for line in shown):
        assert line in rest, line
        rest = rest[rest.index(line) + len(line) :]
    assert confide.Schema.from_toml("patients.toml") == confide.Schema.from_dict(tomllib.loads(blocks(page, "toml")[0]))
    told = "\n".join(line.strip() for line in rest.replace("e-0", "e-").splitlines())
    for line in re.findall(r"^confide (?:check|ledger init|run) .*$", "\n".join(blocks(page, "sh")[1:]), flags=re.MULTILINE):
        assert line.removesuffix(" --dry-run") in told


def test_code_and_output_of_pages_are_no_wider_than_their_column():
    """88 characters; a table of results may be wider, and scrolls."""
    wide = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in PAGES
        for language in ("python", "sh", "toml", "r", "sql")
        for block in blocks(page.relative_to(ROOT), language)
        for line in block.splitlines()
        if len(line) > page_outputs.WIDTH
    ]
    assert wide == []


def written_commands():
    """Each `confide ...` of a page, in a block of the shell or within a sentence, with the name of the page."""
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]:
        text = page.read_text(encoding="utf-8")
        lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
        found = [line for line in lines if line.startswith("confide ")]
        found += [
            " ".join(words.split()) for words in re.findall(r"`(confide [a-z][^`]*)`", re.sub(r"(?s)```.*?```", "", text))
        ]
        yield from ((page.relative_to(ROOT).as_posix(), line) for line in found)


def test_every_command_that_a_page_shows_exists():
    """Each word is a command, and each option is one of that command."""
    import typer

    seen, whole = 0, typer.main.get_command(app)
    for page, line in written_commands():
        command, words = whole, shlex.split(line, comments=True)[1:]
        while words and getattr(command, "commands", None):
            name = words.pop(0)
            assert name in command.commands or name in {"...", "--help"}, f"{page}: {line}"
            if name not in command.commands:
                break
            command, seen = command.commands[name], seen + 1
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.split("=")[0] for word in words if word.startswith("--")}
        assert given - known - {"--help"} == set(), f"{page}: {line}"
    assert seen > 15


def test_the_recomputation_for_sceptics_holds():
    """The ten-minute check of privacy/README.md, which uses no formula of the library, agrees with the plan."""
    (code,) = blocks("src/confide/privacy/README.md", "python")
    exec(compile(code, "privacy/README.md", "exec"), {})  # noqa: S102 - our own page


def test_the_schema_of_the_readme_is_valid(tmp_path):
    """It loads."""
    (page,) = blocks("README.md", "toml")
    path = tmp_path / "people.toml"
    path.write_text(page)
    assert confide.Schema.from_toml(path).column_names == ("age", "capital-gain", "workclass")


MODULES = [name for _, name, _ in pkgutil.walk_packages(confide.__path__, "confide.") if "__main__" not in name]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    """Doctests of every module that has some."""
    module = importlib.import_module(name)
    path = Path(module.__file__)
    if path.suffix == ".py" and ">>>" in path.read_text(encoding="utf-8"):
        found = doctest.testmod(module)
        assert found.attempted > 0
        assert found.failed == 0


def anchors(page):
    """Headings of a page as links name them. A line beneath a table or a paragraph, without a blank one between, is none."""
    text = re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8"))
    for heading in re.findall(r"(?:^|\n\n)#+ (.*)", text):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_links_between_pages_lead_somewhere():
    """Relative links of the Markdown pages name files that exist, and headings of them."""
    for page in [
        *ROOT.glob("*.md"),
        *ROOT.glob("src/**/*.md"),
        *ROOT.glob("benchmarks/**/*.md"),
        *ROOT.glob("docs/**/*.md"),
    ]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
            if Path(target).name in {Path(made).name for made in site_pages.MADE}:
                continue
            found = page.parent / target if target else page
            assert found.exists(), f"{page.relative_to(ROOT)} -> {target}"
            if anchor and found.suffix == ".md":
                assert anchor in set(anchors(found)), f"{page.relative_to(ROOT)} -> {target}#{anchor}"


def test_every_module_stands_in_the_architecture():
    """ARCHITECTURE.md names every module of the library."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    missing = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src" / "confide").rglob("*.py")
        if not path.name.startswith("_") and path.stem not in words
    }
    assert missing == set()


def test_public_names_resolve_and_are_listed():
    """Every name of __all__ can be had, and an unknown one gives the usual error."""
    for name in confide.__all__:
        assert getattr(confide, name) is not None
    assert set(confide.__all__) <= set(dir(confide))
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        confide.no_such_name  # noqa: B018 - the access is the test


CHILDREN = """
import os
import pandas, scipy.optimize, scipy.stats, sklearn.base  # what takes long; none of it imports confide
import confide
for names in {}:
    child = os.fork()
    if not child:
        try:
            assert all(eval(name) for name in names)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, names
"""


def test_names_in_the_pages_can_be_had_after_one_import():
    """Each dotted name of the pages for users, in a process that has imported confide alone."""
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *ROOT.glob("docs/**/*.md")]
    pages.remove(ROOT / "docs" / "reference" / "command_line.md")  # help pages name files such as confide.fish
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    names = set(re.findall(r"(?<!from )\bconfide(?:\.[A-Za-z_]\w*)+", text)) | {"confide.report.write_report"}
    assert {"confide.datasets.load_adult", "confide.planning.bounds"} <= names
    assert "from confide import FederatedRows, take_part" in text
    # In children of one process: what another import of confide brought along would not be missed in any of them.
    alone = ("confide.planning.simulate", "confide.take_part", "confide.evaluate")
    subprocess.run([sys.executable, "-c", CHILDREN.format([*([name] for name in alone), sorted(names)])], check=True)
