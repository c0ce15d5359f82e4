"""What counts as one release of an estimator, a callable, a file or a name."""

from __future__ import annotations

import numpy as np
import pytest

import confide
from confide.audit.releases import contents, fitted_values, named, plain, released_by, unfitted
from confide.errors import FileError, ParameterError

X, Y = [[1.0], [-1.0], [0.5], [0.2]], [1, 0, 1, 0]


class Theirs:
    """An estimator of somebody else, which writes into its own parameters."""

    def __init__(self):
        self.norm = None
        self.kept = "as it was"

    def fit(self, X, y):
        self.norm = float(np.abs(X).max())
        self.coef_ = np.ones(2)
        return self


def test_an_estimator_of_ours_gets_fresh_noise_and_charges_nothing():
    """Copies have no seed and no ledger; weights of two fits differ, and the estimator stays as it is."""
    ledger = confide.Ledger(limit=1.0)
    estimator = confide.LogisticRegression(1.0, random_state=1, ledger=ledger)
    release = released_by(estimator)
    first, second = release(X, Y), release(X, Y)
    assert first.shape == (2,)
    assert not np.array_equal(first, second)
    assert not hasattr(estimator, "coef_")
    assert len(ledger.entries()) == 0
    assert unfitted(estimator).random_state is None


def test_of_others_all_that_a_fit_changed_is_released():
    """Parameters too."""
    assert fitted_values(Theirs(), (X, Y)).keys() == {"norm", "coef_"}


def test_objects_are_shown_by_their_attributes():
    """Down to a depth, and callables by their type."""
    made = Theirs()
    made.inner = {"a": (1, [2.0]), "f": len}
    assert plain(made) == {
        "norm": "None",
        "kept": "as it was",
        "inner": {"a": [1, [2.0]], "f": "builtin_function_or_method"},
    }


def test_contents_do_not_tell_what_is_shared():
    """Equal values have equal contents, and a last bit is seen; what cannot be pickled is compared by what it shows."""
    one = np.ones(2)
    assert contents([one, one]) == contents([one, one.copy()]) != contents([one, np.nextafter(one, 2.0)])
    assert contents({"f": lambda: 1, "x": 1.0}) != contents({"f": lambda: 1, "x": 2.0})


def test_names_and_files_are_found(tmp_path):
    """module:Class is made without arguments, and a file of Python is run."""
    assert isinstance(named("confide:LogisticRegression"), confide.LogisticRegression)
    (tmp_path / "theirs.py").write_text("first, second = 0, 1\ndef release(x): return x\n")
    assert named(str(tmp_path / "theirs.py")).release(3) == 3


@pytest.mark.parametrize("text", ["nowhere.py", "confide:Nothing", "no_such_module:x"])
def test_what_cannot_be_found_is_refused(text):
    """With one sentence."""
    with pytest.raises(FileError):
        named(text)


def test_what_cannot_be_run_is_refused(tmp_path):
    """A file that fails, a text without a name, and something that is not a release."""
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(FileError, match="ZeroDivisionError"):
        named(str(tmp_path / "broken.py"))
    for wrong in (lambda: named("confide"), lambda: released_by(3)):
        with pytest.raises(ParameterError):
            wrong()
