"""Output whose reader has gone."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import confide
from confide.cli.application import unbroken


def test_a_stream_without_a_descriptor_stays_as_it_is():
    """As in tests that collect output."""
    stream = io.StringIO()
    assert unbroken(stream) is stream


def test_what_nobody_reads_is_dropped():
    """No error, neither at once nor when the stream is flushed."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as broken:
        stream = unbroken(broken)
        stream.write("x" * 100_000)
        stream.flush()
        assert not stream.isatty()


def test_a_fit_whose_output_is_cut_off_still_writes_its_model(folder):
    """`confide fit ... | head -1`: the fit is charged, so its model must be there; no error is shown."""
    fit = f"{shlex.quote(sys.executable)} -m confide fit people.csv --schema people.toml --epsilon 1 --no-ledger"
    environment = os.environ | {"PYTHONPATH": str(Path(confide.__file__).parents[1])}
    command = f"set -o pipefail; {fit} | head -1"
    done = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert confide.load("model.json").guarantee_.void is None
