"""Commands of the project: each may be the first on a fresh machine; continuous integration begins as a stranger does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (help .*)$", MAKEFILE, re.MULTILINE)[1].split()
PARTS_OF_PROGRAMS = {
    "confide": "core",
    "experiments/obtain_data.py": "core",
    "benchmarks/run.py": "all",
    "experiments/run.py": "all",
    "pytest": "test",
    "scripts.faults": "test",
    "scripts.fuzz": "test",
    "scripts.mutation_tests": "test",
    "scripts.sanitize_kernel": "test",
    "benchmarks.audit.run": "test",
    "scripts.house": "check",
    "ruff": "check",
    "mypy": "check",
    "lint-imports": "check",
    "scripts.build_site": "docs",
    "scripts.release": "release",
    "scripts.lock": "release",
    "cibuildwheel": "release",
}
"""Programs that the Makefile starts in its environment, and the part of pyproject.toml that each needs."""
IN_AN_ENVIRONMENT_OF_ITS_OWN = {"bench-peers", "oldest"}

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(folder, *arguments):
    """Run make in a folder, without the variables of a make that may have started these tests."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [shutil.which("make"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def clone(tmp_path):
    """What make looks at in a fresh clone; the name of the folder has a space."""
    folder = tmp_path / "a clone"
    small = ("Makefile", "pyproject.toml", "hatch_build.py", "src/confide/_version.py", "benchmarks/run.py")
    for name in (*small, "requirements", "src/confide/compiled", "benchmarks/peers/requirements.txt"):
        source, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
    return folder


@pytest.fixture
def installed(clone):
    """The same clone after an installation: an environment made with this Python, with stamps of all locked parts."""
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (clone / ".venv" / "pyvenv.cfg").write_text("")
    for parts in ("core", "all", "all,test", "all,test,check", "docs", "release"):
        (clone / ".venv" / f".locked-{parts}").write_text("")
    return clone


def installed_by(done):
    """The parts of the package that make would install."""
    assert done.returncode == 0, done.stderr
    return [parts.split(",") for parts in re.findall(r'echo "installing confide \((.*?)\)', done.stdout)]


@pytest.mark.parametrize("target", [target for target in TARGETS if target not in ("help", "clean")])
def test_each_command_installs_what_it_runs_when_it_is_the_first_after_the_clone(clone, target):
    """The programs that a target starts are among the parts that it installs before."""
    done = make(clone, "-n", target, "FOLDER=here")
    parts = {part for parts in installed_by(done) for part in parts}
    started = re.findall(r"\.venv/bin/(?:python(?: -m)? )?(\S+)", done.stdout)
    wanted = {PARTS_OF_PROGRAMS[name] for name in started if name in PARTS_OF_PROGRAMS}
    assert wanted or target in IN_AN_ENVIRONMENT_OF_ITS_OWN, f"none of {started} is known"
    assert wanted <= parts | {"core"} | ({"all"} if "test" in parts else set())


def test_every_program_that_make_starts_trusts_the_certificates_of_the_system(clone):
    """uv brings its own otherwise, and none of its commands works behind the certificate of a company."""
    (clone / "more.mk").write_text("include Makefile\nsay: ; @printenv UV_SYSTEM_CERTS\n", encoding="utf-8")
    assert make(clone, "--file=more.mk", "say").stdout == "true\n"


def test_every_command_of_the_list_is_shown_whole():
    """Text after a colon too."""
    shown = {line.split()[1]: line for line in make(ROOT, "help").stdout.splitlines() if line.startswith("  make ")}
    said = dict(re.findall(r"^([a-z-]+):.* ## (.*)$", MAKEFILE, re.MULTILINE))
    assert set(said) == set(TARGETS) == set(shown)
    for target, text in said.items():
        assert shown[target].endswith(f" {text}")
    assert any(":" in text for text in said.values())


def test_a_second_command_installs_nothing_again(installed):
    """What is missing is installed, and nothing else."""
    assert installed_by(make(installed, "-n", "test")) == []
    assert "installing" not in make(installed, ".venv/.locked-all,test", f"PYTHON={sys.executable}").stdout
    (installed / ".venv" / ".locked-all,test").unlink()
    assert installed_by(make(installed, "-n", "test")) == [["all", "test"]]


def test_the_newest_versions_are_installed_where_they_are_asked_for(installed):
    """In place of the locked ones, whose stamps go, so that a later command without LOCKED=no brings them back."""
    done = make(installed, "-n", "demo", "LOCKED=no")
    assert installed_by(done) == [["cli"]]
    assert "--upgrade-strategy eager" in done.stdout
    assert "rm -f .venv/.locked-*" in done.stdout
    refused = make(installed, "demo", "LOCKED=maybe")
    assert refused.returncode
    assert 'LOCKED is yes or no, not "maybe"' in refused.stderr


@pytest.mark.parametrize(("script", "said"), [(None, "was not found"), ("exit 1", "is older")])
def test_a_python_that_cannot_be_had_is_refused_though_there_is_an_environment(installed, tmp_path, script, said):
    """The message names it, and the environment stays."""
    python = tmp_path / "python9.9"
    if script:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    done = make(installed, "demo", f"PYTHON={python}")
    assert done.returncode
    assert f"{python} {said}" in done.stderr
    assert (installed / ".venv" / ".locked-core").exists()


def test_another_python_makes_the_environment_anew(installed, tmp_path):
    """The one that made it does not, and without PYTHON= nothing is compared."""
    log, other = tmp_path / "log", tmp_path / "other"
    other.write_text(f'#!/bin/sh\necho "$@" >>"{log}"\ncase "$*" in *base_prefix*) echo other;; esac\n')
    other.chmod(0o755)
    for arguments, made in (((), False), ((f"PYTHON={sys.executable}",), False), ((f"PYTHON={other}",), True)):
        done = make(installed, ".venv/pyvenv.cfg", *arguments)
        assert done.returncode == 0, done.stderr
        assert ("making .venv" in done.stdout) is made
    assert log.read_text().splitlines()[-1] == "-m venv --clear .venv"


PROGRAM = """#!/bin/bash
variables="$(env | cut -d= -f1 | tr '\\n' ' ')"
echo "$(basename "$0") $* | $(pwd) | $(ls -A "$HOME" | wc -l) | $variables" >>"{log}"
if [ "$1" = clone ]; then mkdir -p "${{@: -1}}"; fi
"""


def test_continuous_integration_begins_as_a_stranger_does(tmp_path):
    """A clone with nothing beside it, then `make demo` and `make test`: no variable, no option, and an empty home.

    The site comes last, and then its search is tested. The programs that .ci/run calls note how they are called.
    """
    log, programs, checkout = tmp_path / "log", tmp_path / "programs", tmp_path / "checkout"
    programs.mkdir()
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci" / "run")
    for name in ("git", "make", "apt-get", "python3", "pip", "uv", "java"):
        (programs / name).write_text(PROGRAM.format(log=log))
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(checkout), "CONFIDE_DATA_DIR": "somewhere", "CI": "true"}
    command = [shutil.which("bash"), str(checkout / ".ci" / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    calls = [line.split(" | ") for line in log.read_text().splitlines()]
    (cloned, *_), *made = calls[:3]
    where = cloned.removeprefix("git clone --quiet . ")
    assert " " in Path(where).parent.name
    assert [call for call, *_ in made] == ["make demo", "make test"]
    for _, folder, in_home, variables in made:
        assert folder == where
        assert in_home == "0"
        assert set(variables.split()) <= {"PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_"}
    later = [call for call, *_ in calls[3:] if call.startswith(("make test", "make docs"))]
    for call, part in zip(
        later,
        ("-m 'data or server or browser or spark or attack'", "make docs", "-m browser tests/test_site.py"),
        strict=True,
    ):
        assert part in call
