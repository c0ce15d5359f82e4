"""The fixtures, as a user's tests have them."""

from __future__ import annotations

import subprocess
import sys

TESTS = """
import numpy as np
from confide.audit import noisy

def count(values, sensitivity):
    return noisy(float(values.sum()), sensitivity=sensitivity, noise=np.zeros)

def test_right(replay_holds):
    assert replay_holds(lambda v: count(v, 1.0), np.ones(3), neighbour=np.array([1.0, 1.0, 0.0])).worst == 1.0

def test_wrong(replay_holds):
    replay_holds(lambda v: count(v, 0.5), np.ones(3), neighbour=np.array([1.0, 1.0, 0.0]))

class Keeps:
    def fit(self, X, y):
        self.rows_ = X.sum()
        return self

def test_leak(no_leaks):
    no_leaks(Keeps(), np.random.default_rng(0).normal(size=(5, 2)), np.ones(5))
"""


def test_a_right_release_passes_and_wrong_ones_fail(tmp_path):
    """One passes, and the two others fail with their table."""
    (tmp_path / "test_theirs.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "confide.audit.pytest_plugin",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "TOO FAR" in done.stdout
    assert "attributes.rows_" in done.stdout
