"""What the command line audits."""

from __future__ import annotations

import pytest
from sklearn.naive_bayes import GaussianNB

import confide
from confide.audit import worst_pairs
from confide.audit.worst_pairs import audited
from confide.errors import ParameterError

PAIR = "import numpy as np\nfirst, second = 0.0, 1.0\n"
CONSTANT = PAIR + "def release(x): return np.array([x])\n"


def test_a_file_is_attacked_with_its_own_pair(tmp_path):
    """A release without noise is refuted."""
    (tmp_path / "theirs.py").write_text(CONSTANT)
    assert audited(str(tmp_path / "theirs.py"), confide.PureDP(1.0), 60, 0.99).refuted


def test_an_estimator_is_attacked_at_its_worst_pair(tmp_path, monkeypatch):
    """From a file, by its name, or as it is."""
    monkeypatch.setattr(worst_pairs, "worst_pair", lambda estimator, **given: (type(estimator), given["n_fits"]))
    (tmp_path / "theirs.py").write_text("from sklearn.naive_bayes import GaussianNB\nrelease = GaussianNB()\n")
    for target in (str(tmp_path / "theirs.py"), "sklearn.naive_bayes:GaussianNB", GaussianNB()):
        assert audited(target, confide.PureDP(1.0), 40, 0.99) == (GaussianNB, 40)


def test_a_file_without_a_release_or_a_pair_is_refused(tmp_path):
    """With what is missing."""
    for text, missing in (("x = 1\n", "release"), ("def release(x): return x\n", "first and second")):
        (tmp_path / "theirs.py").write_text(text)
        with pytest.raises(ParameterError, match=missing):
            audited(str(tmp_path / "theirs.py"), None, 40, 0.99)
