"""The R package: its own tests pass against this very library, where R is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "r"
NEEDED = ("reticulate", "testthat", "generics", "knitr")


def without_r() -> str | None:
    """Why the tests in R cannot run here, or None if they can."""
    script = "; ".join(f"stopifnot(requireNamespace('{name}', quietly = TRUE))" for name in NEEDED)
    command = ["Rscript", "-e", script]
    if shutil.which("Rscript") and not subprocess.run(command, capture_output=True, check=False).returncode:
        return None
    return f"R or a package is not installed (apt-get install r-base-core {' '.join(f'r-cran-{name}' for name in NEEDED)})"


@pytest.mark.slow
def test_the_tests_of_the_r_package_pass(tmp_path):
    """Installed into a library of its own; every test ran, and none was skipped. The page docs/how_to/from_r.md runs too."""
    if reason := without_r():
        pytest.skip(reason)
    source, library = tmp_path / "confide", tmp_path / "library"
    shutil.copytree(PACKAGE, source)
    library.mkdir()
    # This very library, wherever pytest found it.
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "RETICULATE_PYTHON": sys.executable, "R_LIBS": str(library), "PYTHONPATH": paths}
    installed = ["R", "CMD", "INSTALL", "--no-docs", f"--library={library}", str(source)]
    subprocess.run(installed, check=True, capture_output=True, env=environment)
    page = (ROOT / "docs" / "how_to" / "from_r.md").read_text(encoding="utf-8")
    (tmp_path / "page.R").write_text("\n".join(re.findall(r"```r\n(.*?)```", page, flags=re.DOTALL)), encoding="utf-8")
    script = (
        "found <- as.data.frame(testthat::test_dir('confide/tests/testthat', package = 'confide', "
        "load_package = 'installed', reporter = 'silent', stop_on_failure = FALSE)); "
        "cat(sprintf('%s: %d failed, %s, %s\\n', found$test, found$failed, found$error, found$skipped)); "
        "source('page.R'); stopifnot(predict(model, people[1:5, ]) > 0); "
        "knitr::purl('confide/vignettes/confide.Rmd.orig', 'vignette.R', quiet = TRUE); source('vignette.R'); "
        "cat('BAD', sum(found$failed + found$error + found$skipped), 'OF', nrow(found), '\\n')"
    )
    ran = subprocess.run(
        ["Rscript", "-e", script],  # noqa: S607 - from the path
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    counted = re.search(r"BAD (\d+) OF (\d+)", ran.stdout)
    assert counted is not None, ran.stderr
    assert counted.group(1) == "0", ran.stdout
    assert int(counted.group(2)) >= 11


def test_what_the_r_package_exports_has_a_help_page():
    """Each exported function and each method stands in a page of man/."""
    names = re.findall(r"^export\((\w+)\)$", (PACKAGE / "NAMESPACE").read_text(encoding="utf-8"), flags=re.MULTILINE)
    pages = "\n".join(page.read_text(encoding="utf-8") for page in sorted((PACKAGE / "man").glob("*.Rd")))
    assert len(names) >= 8
    assert {name for name in names if f"\\alias{{{name}}}" not in pages} == set()


def test_the_outputs_of_the_vignette_belong_to_its_code():
    """The vignette needs no Python to be built: its outputs stand in it, beside the code of the file it was made from."""
    names = ("confide.Rmd", "confide.Rmd.orig")
    made, source = ((PACKAGE / "vignettes" / name).read_text(encoding="utf-8") for name in names)
    chunks = re.findall(r"```\{r (?!setup)[^}]*\}\n(.*?)```", source, flags=re.DOTALL)
    shown = [
        "".join(line for line in chunk.splitlines(keepends=True) if not line.startswith("#>"))
        for chunk in re.findall(r"```r\n(.*?)```", made, flags=re.DOTALL)
    ]
    assert len(chunks) >= 10
    assert shown == chunks
    assert made.count("#>") > 60
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", made)
    assert pictures
    assert all((PACKAGE / "vignettes" / picture).is_file() for picture in pictures)


def test_the_r_package_has_the_version_of_the_library():
    from confide import __version__

    described = (PACKAGE / "DESCRIPTION").read_text(encoding="utf-8")
    assert re.search(r"^Version: (.*)$", described, flags=re.MULTILINE).group(1) == __version__
