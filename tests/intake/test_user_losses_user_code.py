"""Objects with functions of a user: they can be copied, and declare positive constants."""

from __future__ import annotations

import sys
import traceback
from copy import deepcopy
from fractions import Fraction
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest

import confide
from confide.data.federated import received, send
from confide.erm.row_bounds import LARGEST_BOUND
from confide.erm.transformed_losses import DeclaredLoss
from confide.errors import InputError, NotCertified, ParameterError
from confide.intake.user_losses import check_that_it_can_be_copied, positive_constant


def test_what_cannot_be_copied_is_refused_in_the_callers_words():
    """The kind of the error is named, and its text is not."""
    check_that_it_can_be_copied(SimpleNamespace(width=1.0), ParameterError)
    with pytest.raises(ParameterError, match=r"^copy\.deepcopy cannot copy it and raises TypeError; keep locks"):
        check_that_it_can_be_copied(SimpleNamespace(lock=Lock()), ParameterError)


@pytest.mark.parametrize(
    ("constant", "number"),
    [
        (2, 2.0),
        (0.5, 0.5),
        (Fraction(1, 4), 0.25),
        (LARGEST_BOUND, LARGEST_BOUND),
        (1.0 / LARGEST_BOUND, 1.0 / LARGEST_BOUND),
    ],
)
def test_a_positive_number_is_a_constant(constant, number):
    """Of any type of real numbers, as a double."""
    found = positive_constant(SimpleNamespace(smoothness=constant), "smoothness")
    assert found == number
    assert type(found) is float


@pytest.mark.parametrize(
    "constant", [None, True, "1", 0.0, -1.0, 10**400, float("nan"), float("inf"), 2.0 * LARGEST_BOUND, 1j]
)
def test_anything_else_is_none(constant):
    """As is a constant that is missing."""
    assert positive_constant(SimpleNamespace(smoothness=constant), "smoothness") is None
    assert positive_constant(SimpleNamespace(), "smoothness") is None


PRIVATE = "private margin 0.1234"
ROWS = np.random.default_rng(4).uniform(-0.5, 0.5, size=(400, 3))
LABELS = np.where(ROWS[:, 0] > 0.0, 1, -1)


class Raises:
    """What an array of numbers cannot be made of."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(PRIVATE)


def failing(kind, numbers):
    """What a user's function does with its `numbers` when it fails."""
    if kind == "raises":
        raise ValueError(PRIVATE)
    return {
        "exits": lambda: {}[PRIVATE],
        "too short": lambda: numbers[:-1],
        "of another shape": lambda: np.reshape(numbers, (1, -1)),
        "a number": lambda: 0.5,
        "text": lambda: np.array([PRIVATE] * np.size(numbers)),
        "nothing": lambda: None,
        "an object": Raises,
        "no numbers": lambda: np.full(np.shape(numbers), np.nan),
    }[kind]()


KINDS = ("raises", "exits", "too short", "of another shape", "a number", "text", "nothing", "an object", "no numbers")


class Switched:
    """A loss of which one function fails once its ledger has been charged."""

    lipschitz = 1.0

    def __init__(self, ledger, kind, name):
        self.ledger, self.kind, self.failing_name = ledger, kind, name

    def _may_fail(self, name, numbers):
        fails = name == self.failing_name and len(self.ledger.entries()) > 0
        return failing(self.kind, numbers) if fails else numbers

    def __deepcopy__(self, memo):
        self._may_fail("copied", np.zeros(2))
        return type(self)(self.ledger, self.kind, self.failing_name)


class Smooth(Switched):
    """The logistic loss of margins, or of residuals."""

    smoothness = 0.25

    def value(self, score, target=0.0):
        return self._may_fail("value", np.logaddexp(0.0, target - score))

    def derivative(self, score, target=0.0):
        return self._may_fail("derivative", -1.0 / (1.0 + np.exp(score - target)))

    def second_derivative(self, score, target=0.0):
        chance = 1.0 / (1.0 + np.exp(score - target))
        return self._may_fail("second_derivative", chance * (1.0 - chance))


class WithKinks(Switched):
    """The hinge of margins, or the absolute residual."""

    def value(self, score, target=None):
        return np.maximum(1.0 - score, 0.0) if target is None else np.abs(score - target)

    def derivative(self, score, target=None):
        return self._may_fail("derivative", -1.0 * (score < 1.0) if target is None else np.sign(score - target))


def no_word_of_it(caught):
    """Whether nothing that a user's code said is in an error, in what caused it, or in what is printed of it."""
    seen = "".join(traceback.format_exception(caught)) + repr(caught)
    return (caught.__cause__, caught.__context__) == (None, None) and PRIVATE not in seen


MECHANISMS = {
    "objective": (confide.ERMClassifier, Smooth, {"mechanism": "objective"}),
    "output": (confide.ERMClassifier, Smooth, {"mechanism": "output"}),
    "gradient": (confide.ERMClassifier, Smooth, {"mechanism": "gradient"}),
    "slopes alone": (confide.ERMClassifier, WithKinks, {"mechanism": "output"}),
    "gradients of kinks": (confide.ERMClassifier, WithKinks, {"mechanism": "gradient"}),
    "of numbers": (confide.ERMRegressor, Smooth, {"target_bound": 1.0, "mechanism": "objective"}),
    "absolute residuals": (confide.ERMRegressor, WithKinks, {"target_bound": 1.0, "mechanism": "output"}),
}


@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [("objective", kind) for kind in KINDS]
    + [(mechanism, kind) for mechanism in list(MECHANISMS)[1:] for kind in ("raises", "of another shape", "no numbers")],
)
def test_a_loss_that_fails_after_the_charge_says_nothing(mechanism, kind):
    """The fit is refused in words that are the same for all rows; a number that is none is clipped, row by row."""
    estimator, loss, parameters = MECHANISMS[mechanism]
    ledger = confide.Ledger(limit=confide.ApproxDP(10.0, 1e-3))
    parameters = parameters | ({} if estimator is confide.ERMRegressor else {"classes": [-1, 1]})
    model = estimator(
        confide.ApproxDP(5.0, 1e-6), loss=loss(ledger, kind, "derivative"), ledger=ledger, alpha=0.1, **parameters
    )
    targets = ROWS[:, 0] if estimator is confide.ERMRegressor else LABELS
    if kind == "no numbers":
        assert np.isfinite(model.fit(ROWS, targets).coef_).all()
        return
    with pytest.raises(NotCertified) as caught:
        model.fit(ROWS, targets)
    assert no_word_of_it(caught.value)
    assert len(ledger.entries()) == 1
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("name", ["second_derivative", "copied"])
def test_so_does_every_other_function_of_a_loss(name):
    """Second derivatives, and how it is copied for a solver."""
    ledger = confide.Ledger(limit=2.0)
    loss = Smooth(ledger, "raises", name)
    model = confide.ERMClassifier(1.0, loss=loss, ledger=ledger, classes=[-1, 1], mechanism="objective", alpha=0.1)
    with pytest.raises(NotCertified, match="the loss Smooth raised an error") as caught:
        model.fit(ROWS, LABELS)
    assert no_word_of_it(caught.value)


class Ends(BaseException):
    """An error of a user's own that no `except Exception` catches."""


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, Ends, KeyboardInterrupt])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_would_end_the_program_says_nothing_either(kind, n_jobs):
    """It is a failure like others. An interrupt goes on as one, without what was said in it or handled before it."""
    ledger = confide.Ledger(limit=2.0)

    class Stops(Smooth):
        def derivative(self, score, target=0.0):
            if len(self.ledger.entries()) > 0:
                try:
                    failing("raises", score)
                except ValueError:
                    raise kind(PRIVATE) from None
            return super().derivative(score, target)

    loss = Stops(ledger, "", "")
    model = confide.ERMClassifier(
        1.0, loss=loss, ledger=ledger, classes=[-1, 1], mechanism="objective", alpha=0.1, n_jobs=n_jobs
    )
    expected = KeyboardInterrupt if kind is KeyboardInterrupt else NotCertified
    with pytest.raises(expected) as caught:
        model.fit(ROWS, LABELS)
    assert no_word_of_it(caught.value)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("name", "kind"), [("gradient", "raises"), ("gradient", "an object"), ("value", "text"), ("copied", "raises")]
)
def test_a_penalty_that_fails_after_the_charge_says_nothing(kind, name):
    """It is a refusal, or a fit in which that function was not needed."""
    ledger = confide.Ledger(limit=2.0)

    class Function:
        def __init__(self, own, function):
            self.own, self.function = own, function

        def fails(self, name_of_call):
            return name == name_of_call and len(ledger.entries()) > 0

        def __call__(self, weights):
            found = self.function(weights)
            return failing(kind, found) if self.fails(self.own) else found

        def __deepcopy__(self, memo):
            return failing(kind, np.zeros(2)) if self.fails("copied") else self

    penalty = confide.StronglyConvex(
        Function("value", lambda w: 0.5 * w @ w), Function("gradient", lambda w: 1.0 * w), 1.0, 1.0, name="own"
    )
    model = confide.ERMClassifier(1.0, penalty=penalty, ledger=ledger, classes=[-1, 1], alpha=0.1)
    if name == "value":
        # Solvers ask for values where they search; certificates never do.
        assert model.fit(ROWS, LABELS).coef_.shape == (1, 3)
        return
    with pytest.raises(NotCertified, match="unless a penalty of your own fails") as caught:
        model.fit(ROWS, LABELS)
    assert no_word_of_it(caught.value)


def test_the_statement_says_what_happens_where_code_of_a_user_fails():
    """For losses of every kind and for penalties."""
    ledger = confide.Ledger(limit=100.0)
    penalty = confide.StronglyConvex(lambda w: 0.5 * w @ w, lambda w: 1.0 * w, 1.0, 1.0, name="own")
    fits = [
        confide.ERMClassifier(1.0, loss=Smooth(ledger, "raises", ""), classes=[-1, 1]),
        confide.ERMClassifier(1.0, loss=WithKinks(ledger, "raises", ""), classes=[-1, 1]),
        confide.ERMClassifier(
            confide.ApproxDP(1.0, 1e-6), loss=WithKinks(ledger, "raises", ""), classes=[-1, 1], mechanism="gradient"
        ),
        confide.ERMClassifier(1.0, penalty=penalty, classes=[-1, 1]),
    ]
    for model in fits:
        text = " ".join(model.fit(ROWS, LABELS).guarantee_.statement().split())
        assert "raises an error or returns something else than such numbers, the fit is refused" in text
    plain = confide.ERMClassifier(1.0, classes=[-1, 1]).fit(ROWS, LABELS)
    assert "raises an error" not in plain.guarantee_.statement()


def test_a_function_that_shows_progress_stops_no_fit(capsys):
    """It is told nothing more, a line says why, and Ctrl-C still stops a fit."""
    told = []

    def shows(what, n_rows):
        told.append(what)
        raise ValueError(PRIVATE)

    with confide.progress(shows):
        for _ in range(2):
            confide.LogisticRegression(1.0, ledger=confide.Ledger(limit=1.0), classes=[-1, 1]).fit(ROWS, LABELS)
    assert len(told) == 1
    expected = "confide: no more progress is shown: its function raised ValueError.\n"
    assert capsys.readouterr().err == expected

    def interrupts(what, n_rows):
        raise KeyboardInterrupt

    with confide.progress(interrupts), pytest.raises(KeyboardInterrupt):
        confide.LogisticRegression(1.0, classes=[-1, 1]).fit(ROWS, LABELS)


@pytest.mark.parametrize("stream", ["closed", "none"])
def test_a_standard_error_that_is_gone_stops_no_fit(stream, monkeypatch, tmp_path):
    """As of a console that was closed."""
    closed = (tmp_path / "log").open("w")
    closed.close()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", closed if stream == "closed" else None)
        patched.setattr("confide.threads._SECONDS_BETWEEN_LINES", 0.0)
        with confide.progress():
            model = confide.LogisticRegression(1.0, classes=[-1, 1]).fit(ROWS, LABELS)
    assert model.coef_.shape == (1, 3)


def test_a_connection_of_the_users_own_says_nothing():
    """What it sends are sums of rows."""

    class Cut:
        def send_bytes(self, message):
            raise RuntimeError(PRIVATE)

        def recv_bytes(self, maxlength=None):
            raise ConnectionAbortedError(PRIVATE) if maxlength is None else TypeError(PRIVATE)

    class Ended:
        def send_bytes(self, message):
            raise SystemExit(PRIVATE)

        def recv_bytes(self, maxlength=None):
            raise Ends(PRIVATE)

    uses = [
        use
        for cut in (Cut(), Ended())
        for use in (lambda cut=cut: send(cut, b""), lambda cut=cut: received(cut, "number", n_numbers=1))
    ]
    for use in uses:
        with pytest.raises(InputError, match="a party left") as caught:
            use()
        assert no_word_of_it(caught.value)


def test_a_loss_is_copied_with_what_it_holds():
    """A solver that changes its copy changes nothing else."""
    loss = DeclaredLoss(SimpleNamespace(held=[1.0]), None, "own", 1.0, 1.0, 1.0, 1.0, False)
    copied = deepcopy(loss)
    copied.loss.held.append(2.0)
    assert loss.loss.held == [1.0]
