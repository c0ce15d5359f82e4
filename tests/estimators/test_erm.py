"""Losses that a user wrote: what is asked of them, what is refused before any charge, and what the guarantee says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import get_tags

import confide
from confide import (
    ApproxDP,
    ERMClassifier,
    ERMRegressor,
    HuberRegressor,
    Ledger,
    LinearSVC,
    LogisticRegression,
    ParameterError,
)
from confide.erm.losses import LogisticLoss
from tests.estimators.conventions import failed_checks
from tests.estimators.own_losses import Hyperbola, Pseudo

INF = float("inf")


def rows(n=600, seed=0):
    """Rows, labels and targets."""
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, size=(n, 2))
    return X, X[:, 0] - X[:, 1] > 0.1, X @ [0.5, -0.5]


def test_the_library_s_losses_by_name_are_those_of_their_estimators():
    """Equal weights without noise, and the same plan with it."""
    X, labels, targets = rows()
    bound = {"target_bound": 1.0}
    pairs = [
        (ERMClassifier, {"loss": "logistic"}, LogisticRegression, {}, labels),
        (ERMClassifier, {"loss": "huber_hinge"}, LinearSVC, {"loss": "huber_hinge"}, labels),
        (ERMClassifier, {"loss": "logistic_hinge"}, LinearSVC, {"loss": "logistic_hinge"}, labels),
        (ERMClassifier, {"loss": "smooth_hinge"}, LinearSVC, {"loss": "smooth_hinge"}, labels),
        (ERMRegressor, {"loss": "huber"} | bound, HuberRegressor, bound, targets),
        (ERMRegressor, {"loss": "clipped_squared"} | bound, HuberRegressor, {"loss": "clipped_squared"} | bound, targets),
    ]
    for general, named, special, own, y in pairs:
        np.testing.assert_array_equal(general(INF, **named).fit(X, y).coef_, special(INF, **own).fit(X, y).coef_)
        assert general(1.0, **named).plan(600, 2).to_dict() == special(1.0, **own).plan(600, 2).to_dict()


class Rewritten:
    """The logistic loss again, as a user would declare it."""

    lipschitz, smoothness, monotone = 1.0, 0.25, True

    def __init__(self):
        loss = LogisticLoss()
        self.value, self.derivative, self.second_derivative = loss.value, loss.derivative, loss.second_derivative


def test_a_user_s_loss_gives_the_weights_of_the_same_loss_of_the_library():
    """Without noise; with it, at least as much noise as the library needs, which knows more of the loss."""
    X, labels, _ = rows()
    own, known = ERMClassifier(INF, loss=Rewritten()).fit(X, labels), LogisticRegression(INF).fit(X, labels)
    np.testing.assert_allclose(own.coef_, known.coef_, atol=1e-7)
    for budget in (1.0, ApproxDP(1.0, 1e-6)):
        noise = [model.plan(20_000, 2).noise.norm for model in (
            ERMClassifier(budget, loss=Rewritten(), alpha=0.01), LogisticRegression(budget, alpha=0.01)
        )]  # fmt: skip
        assert 1.0 <= noise[0] / noise[1] < 1.1


@pytest.mark.parametrize("budget", [1.0, ApproxDP(1.0, 1e-6)])
def test_the_guarantee_names_the_constants_as_an_assumption(budget):
    """Of a user's loss, not of the library's; one fit is charged as any other."""
    X, labels, targets = rows()
    ledger = Ledger(limit=budget)
    statement = ERMRegressor(budget, loss=Pseudo(), ledger=ledger, target_bound=1.0).fit(X, targets).guarantee_.statement()
    for words in ("The loss Pseudo is convex", "at most 0.1 in absolute", "checked on a grid of public numbers, not proven"):
        assert words in statement
    assert ledger.spent().epsilon == pytest.approx(1.0)
    assert "never positive" in ERMClassifier(budget, loss=Hyperbola()).fit(X, labels).guarantee_.statement()
    assert "convex" not in ERMRegressor(budget, target_bound=1.0).fit(X, targets).guarantee_.statement()


def test_a_claim_of_one_sign_makes_gaussian_noise_cheaper():
    """And without the claim the dearer account is used."""

    class Silent(Hyperbola):
        monotone = False

    plans = [ERMClassifier(ApproxDP(1.0, 1e-6), loss=loss, alpha=0.01).plan(50_000, 30) for loss in (Hyperbola(), Silent())]
    assert [plan.event.curve.monotone for plan in plans] == [True, False]
    assert plans[0].noise.norm < plans[1].noise.norm < 1.1 * plans[0].noise.norm


def test_a_loss_that_changes_between_two_fits_is_read_again():
    """The same object with another constant: another plan, another noise; a plan from before is not used."""
    X, _, targets = rows()
    loss = Pseudo(0.1)
    model = ERMRegressor(1.0, loss=loss, alpha=0.1, target_bound=1.0)
    before = model.plan(600, 2)
    assert model.fit(X, targets).guarantee_.statement().count("0.1 in absolute") == 1
    loss.__init__(0.2)
    after = model.plan(600, 2)
    assert after.noise.norm == pytest.approx(2.0 * before.noise.norm, rel=1e-6)
    assert "0.2 in absolute" in model.fit(X, targets).guarantee_.statement()
    loss.lipschitz = 0.05
    with pytest.raises(ParameterError, match="lipschitz"):
        model.fit(X, targets)


@pytest.mark.filterwarnings("ignore::confide.BudgetWarning")
def test_a_file_holds_the_weights_and_not_the_loss(tmp_path):
    """What is read predicts and states its guarantee; another fit asks for the loss."""
    X, labels, targets = rows()
    for model, y in ((ERMClassifier(loss=Hyperbola()), labels), (ERMRegressor(loss=Pseudo(), target_bound=1.0), targets)):
        model.fit(X, y).save(tmp_path / "model.json", overwrite=True)
        read = confide.load(tmp_path / "model.json")
        np.testing.assert_array_equal(read.predict(X), model.predict(X))
        assert read.guarantee_.statement() == model.guarantee_.statement()
        with pytest.raises(ParameterError, match="a loss of your own"):
            read.fit(X, y)
    named = ERMClassifier(loss="smooth_hinge").fit(X, labels)
    named.save(tmp_path / "named.json")
    assert confide.load(tmp_path / "named.json").fit(X, labels).loss == "smooth_hinge"


def test_scikit_learns_checks_pass_for_classifiers():
    """check_estimator at a large budget and wide bounds."""
    assert not failed_checks(ERMClassifier(1e6, row_norm=1e3))


@pytest.mark.parametrize("loss", ["huber_hinge", Hyperbola()], ids=["huber_hinge", "own"])
def test_one_check_of_scikit_learn_asks_for_a_smaller_ridge_than_hinges_get(loss):
    """Class weights of 1000: the automatic ridge of losses without a theorem for Newton's method grows with them."""
    failed = failed_checks(ERMClassifier(1e6, row_norm=1e3, loss=loss))
    assert {line.split(":")[0] for line in failed.splitlines()} <= {"check_class_weight_classifiers", ""}
    assert not failed_checks(ERMClassifier(1e6, row_norm=10.0, loss=loss), "check_class_weight_classifiers")


def test_scikit_learns_checks_pass_for_a_regressor_with_a_loss_of_the_users_own():
    """The same; target_bound 10, since the grid must see how far the loss bends."""
    assert not failed_checks(ERMRegressor(1e6, row_norm=1e3, target_bound=10.0, loss=Pseudo(1.0)))


class Corner:
    """The hinge, as its user would write it: a kink, and no constant but the largest slope."""

    lipschitz = 1.0

    def value(self, margin):
        return np.maximum(0.0, 1.0 - margin)

    def derivative(self, margin):
        return np.where(margin < 1.0, -1.0, 0.0)


class Insensitive:
    """The absolute error beyond 0.02."""

    lipschitz = 1.0

    def value(self, score, target):
        return np.maximum(np.abs(score - target) - 0.02, 0.0)

    def derivative(self, score, target):
        return np.where(np.abs(score - target) <= 0.02, 0.0, np.sign(score - target))


@pytest.mark.parametrize("mechanism", ["auto", "output", "gradient"])
@pytest.mark.parametrize("budget", [20.0, ApproxDP(4.0, 1e-6)], ids=["pure", "approximate"])
def test_losses_with_kinks_need_their_largest_slope_alone(mechanism, budget):
    """Fitted by noise on the weights or in gradients; the guarantee says what it assumes."""
    if isinstance(budget, float) and mechanism == "gradient":
        budget = confide.ZCDP(0.5)
    X, labels, targets = rows(8000)
    for model, y, least in (
        (ERMClassifier(budget, loss=Corner(), mechanism=mechanism, classes=[0, 1]), labels, 0.9),
        (ERMRegressor(budget, loss=Insensitive(), mechanism=mechanism, target_bound=0.5), targets, 0.8),
        (ERMRegressor(budget, loss="absolute", mechanism=mechanism, target_bound=0.5), targets, 0.8),
    ):
        assert model.fit(X, y).score(X, y) > least
        by_gradients = mechanism == "gradient" or (mechanism == "auto" and isinstance(budget, ApproxDP))
        assert model.guarantee_.mechanism == ("gradient" if by_gradients else "output")
        statement = model.guarantee_.statement()
        if model.loss != "absolute":
            assert ("is convex: its computed slopes" in statement) != by_gradients
            assert "slopes at multiples of" in str(model.plan(8000, 2))
        with pytest.raises(ParameterError, match="smooth"):
            model.set_params(mechanism="objective", budget=1.0).plan(8000, 2)


def test_a_loss_with_kinks_has_the_same_minimiser_as_the_library_s():
    """Without noise: the hinge by its name and as a user writes it, and a quantile."""
    X, labels, targets = rows()
    ours = LinearSVC(INF, loss="hinge", alpha=0.01).fit(X, labels)
    own = ERMClassifier(INF, loss=Corner(), alpha=0.01).fit(X, labels)
    np.testing.assert_allclose(own.coef_, ours.coef_, atol=1e-3)
    noisy = targets + np.random.default_rng(1).uniform(-0.2, 0.2, 600)
    found = ERMRegressor(INF, loss="quantile", quantile=0.8, alpha=1e-4, target_bound=1.0).fit(X, noisy)
    assert np.mean(noisy <= found.predict(X)) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"lipschitz": 0.5}, "exceeds the declared lipschitz"), ({"lipschitz": None}, "declare lipschitz"),
        ({"value": lambda self, z: np.maximum(0.0, 1.0 - z) - 2.0}, "must not be negative"),
        ({"derivative": lambda self, z: np.where(np.abs(z) < 1.0, -1.0, 0.0)}, "falls, so the loss is not convex"),
        ({"value": lambda self, z: np.maximum(0.0, 2.0 - z)}, "does not change as the derivative says"),
        ({"smoothness": 1.0}, "lacks second_derivative"),
    ],
)  # fmt: skip
def test_a_false_declaration_of_a_loss_with_kinks_is_refused_before_the_charge(changes, what):
    """The grid of public numbers shows it."""
    X, labels, _ = rows()
    ledger = Ledger(limit=confide.PureDP(1.0))
    with pytest.raises(ParameterError, match=what):
        ERMClassifier(1.0, loss=type("Changed", (Corner,), changes)(), ledger=ledger, classes=[0, 1]).fit(X, labels)
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize("quantile", [0.0, 1.0, "half", True])
def test_a_quantile_lies_between_zero_and_one(quantile):
    """With what is allowed."""
    with pytest.raises(ParameterError, match=r"from 0\.001 to 0\.999"):
        ERMRegressor(1.0, loss="quantile", quantile=quantile, target_bound=1.0).plan(100, 2)


def test_questions_of_scikit_learn_do_not_check_a_loss_of_ones_own():
    """Meta-estimators ask for tags many times; a fit and a plan check the loss each time."""

    class Asked(Hyperbola):
        asked = 0

        def derivative(self, *arguments):
            type(self).asked += 1
            return super().derivative(*arguments)

    for model in (ERMClassifier(1.0, loss=Asked(), classes=[0, 1]), ERMRegressor(1.0, loss=Asked(), target_bound=1.0)):
        tags = get_tags(model)
        assert Asked.asked == 0
        assert tags.classifier_tags is None or not tags.classifier_tags.multi_class
    assert get_tags(ERMClassifier(1.0)).classifier_tags.multi_class
    ERMClassifier(1.0, loss=Asked(), classes=[0, 1]).plan(1000, 2)
    assert Asked.asked > 0
