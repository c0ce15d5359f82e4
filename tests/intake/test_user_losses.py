"""A user's loss is checked on a grid of public numbers, before any charge and without the data."""

from __future__ import annotations

import numpy as np
import pytest

from confide import ERMClassifier, ERMRegressor, Ledger, ParameterError
from confide.intake.user_losses import declared_loss
from tests.estimators.own_losses import Hyperbola, Pseudo

INF = float("inf")


def rows(n=600, seed=0):
    """Rows, labels and targets."""
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, size=(n, 2))
    return X, X[:, 0] - X[:, 1] > 0.1, X @ [0.5, -0.5]


def changed(base, **changes):
    """An object of a loss class with other attributes."""
    return type("Changed", (base,), changes)()


def _noisy(self, margin):
    return Hyperbola.derivative(self, margin) * (1.0 + 1e-3 * np.sin(np.arange(margin.size)))


def _of_the_block(self, margin):
    return Hyperbola.derivative(self, margin) + 1e-6 * (margin - margin.mean()) * 0.0 - 1e-3 * (margin.sum() > 0)


def _raises(self, margin):
    raise ZeroDivisionError("no")


BASE = Hyperbola()


WRONG = {
    "no derivative": (changed(Hyperbola, derivative=None), "lacks derivative"),
    "no lipschitz": (changed(Hyperbola, lipschitz=None), "declare lipschitz"),
    "infinite smoothness": (changed(Hyperbola, smoothness=INF), "declare smoothness"),
    "half of lipschitz": (changed(Hyperbola, lipschitz=0.5), "exceeds the declared lipschitz"),
    "a little below lipschitz": (changed(Hyperbola, lipschitz=0.99), "exceeds the declared lipschitz"),
    "half of smoothness": (changed(Hyperbola, smoothness=0.25), "exceeds the declared smoothness"),
    "hidden curvature": (
        changed(Hyperbola, smoothness=0.3, second_derivative=lambda self, z: np.minimum(0.3, BASE.second_derivative(z))),
        "rises faster",
    ),
    "not convex": (
        changed(Hyperbola, monotone=False, derivative=lambda _, z: np.sin(z), second_derivative=lambda _, z: np.cos(z) / 2),
        "convex",
    ),
    "a falling derivative": (
        changed(Hyperbola, derivative=lambda self, z: Hyperbola.derivative(self, -z) * 1.0), "derivative falls"
    ),
    "value of another loss": (changed(Hyperbola, value=lambda self, z: 2.0 * BASE.value(z)), "value does not change"),
    "negative": (changed(Hyperbola, value=lambda self, z: Hyperbola.value(self, z) - 1.0), "negative"),
    "derivative of another loss": (
        changed(Hyperbola, smoothness=1.0, second_derivative=lambda self, z: 2.0 * Hyperbola.second_derivative(self, z)),
        "as the second derivative says",
    ),
    "rising": (
        changed(Hyperbola, value=lambda self, z: BASE.value(-z), derivative=lambda self, z: -BASE.derivative(-z),
                second_derivative=lambda self, z: BASE.second_derivative(-z)),
        "not monotone",
    ),
    "not finite far out": (
        changed(Hyperbola, value=lambda self, z: np.where(z < -1e5, np.nan, Hyperbola.value(self, z))), "not finite"
    ),
    "by place": (changed(Hyperbola, derivative=_noisy), "each entry alone"),
    "by the block": (changed(Hyperbola, derivative=_of_the_block), "each entry alone"),
    "of another shape": (changed(Hyperbola, derivative=lambda self, z: Hyperbola.derivative(self, z).sum()), "shape"),
    "raising": (changed(Hyperbola, derivative=_raises), "raised ZeroDivisionError"),
    "a small value at zero": (changed(Hyperbola, value_at_zero=0.5), "value_at_zero"),
    "a word for monotone": (changed(Hyperbola, monotone="yes"), "monotone"),
    "a flag for rounding": (changed(Hyperbola, rounding=True), "declare rounding"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_loss_that_contradicts_itself_is_refused_before_any_charge(name):
    """In one line that says what is wrong, by fit and by plan; nothing is charged."""
    loss, words = WRONG[name]
    X, labels, _ = rows(60)
    ledger = Ledger(limit=10.0)
    model = ERMClassifier(loss=loss, ledger=ledger)
    for call in (lambda: model.fit(X, labels), lambda: model.plan(60, 2)):
        with pytest.raises(ParameterError, match=words) as failure:
            call()
        assert len(str(failure.value).splitlines()) == 1
    assert ledger.spent().epsilon == 0.0


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (changed(Pseudo, monotone=True), "margin alone"),
        (changed(Hyperbola, monotone=False), "raised TypeError"),
        (type("Low", (Pseudo,), {"lipschitz": property(lambda s: 0.05, lambda s, v: None)})(), "lipschitz"),
        (type("Flat", (Pseudo,), {"smoothness": property(lambda s: 0.5, lambda s, v: None)})(), "smoothness"),
        (object(), "lacks value"),
        (7, "lacks value"),
    ],
)
def test_a_wrong_loss_of_scores_and_targets_is_refused(loss, words):
    """A factor of 2 in either constant, a loss of the margin, and what is no loss."""
    X, _, targets = rows(60)
    with pytest.raises(ParameterError, match=words):
        ERMRegressor(loss=loss, target_bound=1.0).fit(X, targets)
    with pytest.raises(ParameterError, match="finite target_bound"):
        ERMRegressor(INF, loss=Pseudo(), target_bound=INF).fit(X, targets)


# The module's own function


class Square:
    """Half the square of the residual, as nobody should declare it."""

    lipschitz, smoothness = 2.0, 1.0

    def value(self, score, target):
        return 0.5 * (score - target) ** 2

    def derivative(self, score, target):
        return score - target

    def second_derivative(self, score, target):
        return np.ones_like(score)


def test_a_declaration_is_read_with_the_defaults_that_it_leaves_out():
    """Name of the class, 1024 units of rounding, no sign, and the value at zero seen on the grid."""
    read = declared_loss(changed(Hyperbola, monotone=False), None)
    assert (read.lipschitz, read.smoothness, read.rounding, read.monotone) == (1.0, 0.5, 1024.0, False)
    assert (read.name, read.target_bound) == ("Changed", None)
    assert read.value_at_zero == pytest.approx(0.5 * (np.sqrt(2.0) + 1.0))
    own = declared_loss(changed(Hyperbola, rounding=7, value_at_zero=3, name="ours"), None)
    assert (own.rounding, own.value_at_zero, own.name, own.monotone) == (7.0, 3.0, "ours", True)


def test_the_value_at_zero_of_targets_is_doubled_where_the_grid_alone_tells_it():
    """Between two targets of the grid it may be larger. A declared one stands as it is."""
    seen = declared_loss(Pseudo(0.1), 1.0).value_at_zero
    at_the_bound = 0.01 * (np.hypot(1.0, 10.0) - 1.0)
    assert seen == pytest.approx(2.0 * at_the_bound)
    assert declared_loss(changed(Pseudo, value_at_zero=at_the_bound), 1.0).value_at_zero == at_the_bound


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 101, 7])
def test_a_name_that_cannot_be_printed_is_that_of_the_class(name):
    """It stands in the guarantee."""
    assert declared_loss(changed(Hyperbola, name=name), None).name == "Changed"


def test_a_loss_is_looked_at_far_out():
    """At 10^6 times the bound on targets the square has passed every constant that it could declare."""
    with pytest.raises(ParameterError, match="exceeds the declared lipschitz"):
        declared_loss(Square(), 1.0)
    with pytest.raises(ParameterError, match="exceeds the declared lipschitz"):
        declared_loss(changed(Square, lipschitz=1e5), 1.0)


def test_a_loss_is_copied_before_a_charge():
    """Solvers get a copy. What cannot be copied is refused by the kind of its error, whose text may be anything."""

    def refuse(self, memo):
        raise RuntimeError("secret")

    with pytest.raises(ParameterError, match="cannot copy it and raises RuntimeError") as refused:
        declared_loss(changed(Hyperbola, __deepcopy__=refuse), None)
    assert "secret" not in str(refused.value)


def test_a_function_that_writes_to_its_argument_is_refused():
    """Its argument is the library's."""

    def value(self, margin):
        margin += 1.0
        return margin

    with pytest.raises(ParameterError, match="value raised ValueError"):
        declared_loss(changed(Hyperbola, value=value), None)


def test_a_loss_by_chance_is_refused():
    """The same scores twice must give the same values."""
    rng = np.random.default_rng(0)

    def value(self, margin):
        return Hyperbola.value(self, margin) + 1e-6 * rng.random(margin.size)

    with pytest.raises(ParameterError, match="or on chance"):
        declared_loss(changed(Hyperbola, value=value), None)
