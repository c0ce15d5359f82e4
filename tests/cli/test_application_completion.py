"""Completion in shells."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.cli.commands import refused, run, run_elsewhere


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_it_can_read(shell):
    """The shell itself checks the script, where it is installed."""
    script = run("completion", shell).stdout
    assert "_CONFIDE_COMPLETE" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, check=False).returncode == 0


def test_another_shell_is_refused():
    """With those that there are."""
    assert "bash" in refused("completion", "tcsh")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("confide led", "ledger"),
        ("confide ledger ch", "charge"),
        ("confide fit --thr", "--threshold"),
        ("confide fit --kernel ca", "cauchy"),
    ],
)
def test_bash_is_answered(words, expected):
    """Commands, options and their values; with no error."""
    position = str(len(words.split()) - 1)
    done = run_elsewhere(_CONFIDE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=position)
    assert (done.stdout.split(), done.stderr) == ([expected], "")
