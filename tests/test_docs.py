"""What the pages say is what the code does."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import confide
from confide.estimators.model_effects import effects_of

ROOT = Path(__file__).resolve().parents[1]


def blocks(page, language):
    """Fenced code of one language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    """As it stands, in an empty folder; it prints a plan, an accuracy and a guarantee, and writes a model."""
    monkeypatch.chdir(tmp_path)
    for code in blocks("README.md", "python"):
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - our own page
    printed = capsys.readouterr().out
    assert "objective perturbation" in printed
    assert "It holds if" in printed
    assert confide.load(tmp_path / "model.json").guarantee_.void is None


def test_the_python_of_the_page_on_planning_runs(capsys):
    """Its blocks in order: a plan, a forecast, a bound, a sample size, budgets and mechanisms."""
    names = {}
    for code in blocks("docs/planning.md", "python"):
        exec(compile(code, "docs/planning.md", "exec"), names)  # noqa: S102 - our own page
    printed = capsys.readouterr().out
    assert "probably between" in printed
    assert "With probability 0.95" in printed
    assert "PrivacyRange" in printed


def test_the_python_of_the_page_on_intervals_runs(tmp_path, monkeypatch, capsys):
    """Its blocks in order, in an empty folder: a plan with a forecast, a table and an evaluation."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("docs/intervals.md", "python"):
        exec(compile(code, "docs/intervals.md", "exec"), names)  # noqa: S102 - our own page
    printed = capsys.readouterr().out
    for words in ("expected interval", "sampling err", "privacy err", "hours-per-week", "accuracy", "auc"):
        assert words in printed


def test_the_python_of_the_page_on_effects_runs(tmp_path, monkeypatch):
    """In an empty folder; its model has effects and bands for every column."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("docs/effects.md", "python"):
        exec(compile(code, "docs/effects.md", "exec"), names)  # noqa: S102 - our own page
    found = list(effects_of(confide.load("effects.json")).with_bands())
    assert [each.name for each in found] == ["age", "hours-per-week", "education-num", "sex"]
    assert all(each.has_band for each in found)


def test_the_python_of_the_page_on_additive_models_runs(tmp_path, monkeypatch, capsys):
    """Block by block, in one namespace."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("docs/additive_models.md", "python"):
        exec(compile(code, "docs/additive_models.md", "exec"), names)  # noqa: S102 - our own page
    assert "even knots" in capsys.readouterr().out
    assert names["curves"].score(names["X"], names["y"]) > 0.9


def test_the_python_of_the_page_on_priors_runs(tmp_path, monkeypatch, capsys):
    """Block by block: the prior raises the accuracy, the statement names it, and the refit is charged."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("docs/priors.md", "python"):
        exec(compile(code, "docs/priors.md", "exec"), names)  # noqa: S102 - our own page
    adult, sentence = names["adult"], "a model that was declared public. It was made from rows that need no protection"
    assert names["model"].score(adult.X_test, adult.y_test) > names["without"].score(adult.X_test, adult.y_test)
    assert sentence in " ".join(capsys.readouterr().out.split())
    page = (ROOT / "docs/priors.md").read_text(encoding="utf-8")
    assert sentence in " ".join(page.replace("> ", "").split())
    assert len(names["ledger"].entries()) == 2


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
    """Doctests of every module."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_links_between_pages_lead_somewhere():
    """Relative links of the Markdown pages name files that exist."""
    for page in [*ROOT.glob("*.md"), *ROOT.glob("src/**/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} -> {target}"


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


def test_names_in_the_pages_can_be_had_after_one_import():
    """Each dotted name of the pages for users, in a process that has imported confide alone."""
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *ROOT.glob("docs/**/*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    names = set(re.findall(r"(?<!from )\bconfide(?:\.[A-Za-z_]\w*)+", text)) | {"confide.report.write_report"}
    assert {"confide.datasets.load_adult", "confide.planning.utility"} <= names
    assert "from confide import FederatedRows, take_part" in text
    # Each alone first: what another import brought along would not be missed.
    for name in ("confide.planning.simulate", "confide.take_part", "confide.evaluate"):
        subprocess.run([sys.executable, "-c", f"import confide; {name}"], check=True)
    subprocess.run([sys.executable, "-c", f"import confide\nfor name in {sorted(names)}: assert eval(name)"], check=True)


def test_the_python_of_the_page_on_pictures_runs(tmp_path, monkeypatch):
    """Its blocks in order, in an empty folder: each display has axes, and the releases are charged."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("docs/plots.md", "python"):
        exec(compile(code, "docs/plots.md", "exec"), names)  # noqa: S102 - our own page
    for name in ("forecast", "coefficients", "effects", "compared", "roc", "calibration", "spent"):
        assert names[name].ax_.figure is names[name].figure_
    assert len(names["ledger"].entries()) == 3
    assert (tmp_path / "ledger.png").stat().st_size > 1000
    plt.close("all")


def test_the_python_of_the_page_on_exports_runs(tmp_path, monkeypatch, capsys):
    """Its blocks in order, in an empty folder; they compare predictions themselves."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("docs/exports.md", "python"):
        exec(compile(code, "docs/exports.md", "exec"), names)  # noqa: S102 - our own page
    assert names["probabilities"].shape == (100, 2)
    assert "encode" in capsys.readouterr().out
