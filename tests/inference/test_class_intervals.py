"""Intervals of three classes and more: against the sandwich by finite differences, and where they are refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp, softmax

import confide
import confide.report
from confide import ZCDP, ApproxDP, FileError, Ledger, LinearSVC, LogisticRegression, ParameterError, PureDP
from confide.inference.intervals import Evidence, WeightNoise, known_scores
from confide.privacy.mechanism import Noise
from confide.privacy.moments import directions_of
from confide.privacy.shapes import Ball

TRUTH = np.array([[2.0, -1.0, 0.5, 0.4], [-1.5, 1.5, 0.5, 0.0], [-0.5, -0.5, -1.0, -0.4]])
KINDS = ["softmax", "one-vs-rest"]
kinds = pytest.mark.parametrize("multiclass", KINDS)


def sample(n, seed):
    """Rows within the unit ball and classes of a softmax model of three classes, the constant of the intercept 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.argmax(X @ TRUTH[:, :3].T + TRUTH[:, 3] + rng.gumbel(size=(n, 3)), axis=1)


def loss_of(multiclass):
    """Loss by row (n,) of flat weights (12,), written again."""

    def value(design, classes, W):
        scores = design @ W.reshape(3, -1).T
        if multiclass == "softmax":
            return logsumexp(scores, axis=1) - scores[np.arange(len(scores)), classes]
        signs = np.where(np.arange(3) == classes[:, None], 1.0, -1.0)
        return np.logaddexp(0.0, -signs * scores).sum(axis=1)

    return value


def differences(value, design, classes, W, step=1e-4):
    """Gradients by row (n, p) and the summed Hessian (p, p) by central differences of fourth order, of losses alone."""
    p, taps = len(W), ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
    unit = step * np.eye(p)
    gradients = np.stack([sum(c * value(design, classes, W + m * e) for m, c in taps) / step for e in unit], axis=1)
    hessian, wide = np.empty((p, p)), 10.0 * unit
    for i in range(p):
        for j in range(i + 1):
            total = sum(
                a * b * value(design, classes, W + m * wide[i] + k * wide[j]).sum() for m, a in taps for k, b in taps
            )
            hessian[i, j] = hessian[j, i] = total / (10.0 * step) ** 2
    return gradients, hessian


def sandwich(multiclass, X, classes, W, l2, *, without_ridge=False):
    """Standard errors (12,) and, without the ridge, the weights after one step of Newton's method."""
    design = np.column_stack([X, np.ones(len(X))])
    gradients, hessian = differences(loss_of(multiclass), design, classes, W)
    spread = gradients.T @ gradients - l2**2 * np.outer(W, W) / len(X)
    # Softmax: pseudo-inverses leave out what moves all classes alike.
    whole = hessian + l2 * np.eye(12)
    if without_ridge:
        inverse = np.linalg.pinv(hessian, rcond=1e-7)
        W, whole = inverse @ whole @ W, hessian
    inverse = np.linalg.pinv(whole, rcond=1e-7)
    if multiclass == "softmax":
        centring = np.kron(np.eye(3) - 1.0 / 3.0, np.eye(4))
        inverse = centring @ inverse @ centring
    return W, np.sqrt(np.diagonal(inverse @ spread @ inverse))


@kinds
@pytest.mark.parametrize("target", ["regularised", "unregularised"])
def test_without_noise_intervals_are_those_of_the_sandwich(multiclass, target):
    """Standard errors and ends to 1e-6 of those by finite differences of the loss."""
    X, classes = sample(900, 0)
    for alpha in (1e-3, 0.03):
        model = LogisticRegression(math.inf, alpha=alpha, inference_share=0.5, multiclass=multiclass).fit(X, classes)
        W = np.column_stack([model.coef_, model.intercept_]).ravel()
        W, errors = sandwich(multiclass, X, classes, W, 900 * alpha, without_ridge=target == "unregularised")
        known = model.uncertainty(target)
        # The window of one-vs-rest, 2^-12, changes curvatures by parts in 10^8.
        np.testing.assert_allclose(known.estimates, W, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(known.sampling_error, errors, rtol=1e-6)
        assert np.all(known.privacy_error == 0.0)
        ends = np.stack([W - 1.959963984540054 * errors, W + 1.959963984540054 * errors], axis=1).reshape(3, 4, 2)
        np.testing.assert_allclose(model.conf_int(target=target), ends[:, :3], rtol=1e-6, atol=1e-6)


def test_one_vs_rest_has_the_intervals_of_each_class_against_the_others():
    """Without noise, of the same two-class model; for a hinge with a round joint too."""
    X, classes = sample(900, 0)
    for make in (
        lambda **k: LogisticRegression(math.inf, multiclass="one-vs-rest", **k),
        lambda **k: LinearSVC(math.inf, **k),
    ):
        arguments = {"alpha": 0.01, "inference_share": 0.5}
        joint = make(**arguments).fit(X, classes)
        for label in range(3):
            alone = make(**arguments).fit(X, (classes == label).astype(int))
            np.testing.assert_allclose(joint.conf_int()[label], alone.conf_int(), rtol=1e-3, atol=1e-4)


def test_the_intercept_is_in_the_units_of_intercept():
    """Whatever constant the rows get; without an intercept there is none."""
    X, classes = sample(900, 0)
    for multiclass in KINDS:
        tables = [
            LogisticRegression(
                math.inf, alpha=1e-9, inference_share=0.3, intercept_scaling=scaling, multiclass=multiclass
            ).fit(X, classes).summary().to_frame().drop(columns="unit")
            for scaling in (1.0, 7.0)
        ]  # fmt: skip
        np.testing.assert_allclose(tables[0], tables[1], rtol=1e-4, atol=1e-6)
        arguments = {"inference_share": 0.3, "fit_intercept": False, "multiclass": multiclass}
        without = LogisticRegression(math.inf, **arguments).fit(X, classes)
        assert without.conf_int().shape == (3, 3, 2)
        assert len(without.summary().coefficients) == 9


def test_what_moves_all_classes_alike_is_left_out_of_softmax():
    """Released weights plus the same vector for each class have the same estimates and errors, which are centred."""
    X, classes = sample(3000, 4)
    known = LogisticRegression(100.0, inference_share=0.3, alpha=0.01).fit(X, classes)._evidence
    document = known.to_dict()
    shift = np.tile([1.0, -2.0, 3.0, 0.5], 3)
    moved = Evidence.from_dict(document | {"weights": (known.weights + shift).tolist()})
    for target in ("regularised", "unregularised"):
        one, two = known.uncertainty(target), moved.uncertainty(target)
        np.testing.assert_allclose(two.estimates, one.estimates, atol=1e-9)
        np.testing.assert_allclose(two.total_error, one.total_error, rtol=1e-9)
        np.testing.assert_allclose(one.estimates.reshape(3, 4).sum(axis=0), 0.0, atol=1e-9)


@kinds
def test_noise_in_the_weights_is_part_of_the_error(multiclass):
    """Output perturbation with Gaussian noise: its deviation, but for the part that moves all classes of a softmax alike."""
    X, classes = sample(3000, 4)
    arguments = {"inference_share": 0.3, "mechanism": "output", "multiclass": multiclass, "alpha": 0.01}
    model = LogisticRegression(ZCDP(1.0), classes=[0, 1, 2], **arguments).fit(X, classes)
    plan = model.plan(3000, 3)
    deviation = plan.noise_norm / math.sqrt(12) * (math.sqrt(2 / 3) if multiclass == "softmax" else 1.0)
    errors = model.uncertainty().privacy_error
    # Errors are raised a little because moments are noisy.
    assert np.all((0.93 * deviation <= errors) & (errors <= 1.35 * deviation))


@kinds
@pytest.mark.parametrize("budget", [PureDP(3.0), ApproxDP(3.0, 1e-6), ZCDP(0.5)], ids=lambda budget: budget.kind)
def test_the_sampling_error_with_noise_is_near_that_without(multiclass, budget):
    """20,000 rows: on average over coefficients within 15%, of the same ridge."""
    X, classes = sample(20_000, 5)
    arguments = {"inference_share": 0.5, "alpha": 0.003, "multiclass": multiclass, "classes": [0, 1, 2]}
    noisy = LogisticRegression(budget, random_state=0, **arguments).fit(X, classes)
    plain = LogisticRegression(math.inf, **(arguments | {"alpha": noisy.alpha_})).fit(X, classes)
    ratio = noisy.uncertainty().sampling_error / plain.uncertainty().sampling_error
    assert np.mean(ratio) == pytest.approx(1.0, abs=0.15)
    gap = (noisy.uncertainty().estimates - plain.uncertainty().estimates) / noisy.uncertainty().privacy_error
    assert np.sqrt(np.mean(gap**2)) < 2.0


def with_a_rare_class(n, seed):
    """The sample, and a fourth class of one row in 4,000."""
    X, classes = sample(n, seed)
    return X, np.where(np.random.default_rng(seed).uniform(size=n) < 1 / 4000, 3, classes)


@kinds
def test_a_class_that_the_noise_hides_has_no_interval(multiclass):
    """Its errors are infinite, in every form of the table; the others hold what there is without noise, less known means."""
    X, classes = with_a_rare_class(40_000, 6)
    arguments = {"inference_share": 0.3, "alpha": 0.0001, "multiclass": multiclass}
    model = LogisticRegression(PureDP(1.0), random_state=1, **arguments).fit(X, classes)
    assert known_scores(model._evidence).tolist() == [True, True, True, False]
    known, ends, table = model.uncertainty(), model.conf_int(), model.summary()
    assert np.all(ends[3] == [-math.inf, math.inf])
    assert np.all(np.isfinite(ends[:3]))
    for column in (known.sampling_error, known.privacy_error, known.total_error, known.margins(0.5)):
        assert np.all(np.isinf(column.reshape(4, 4)[3]))
        assert np.all(np.isfinite(column.reshape(4, 4)[:3]))
    assert np.all(known.p_values().reshape(4, 4)[3] == 1.0)
    plain = LogisticRegression(math.inf, **(arguments | {"alpha": model.alpha_})).fit(X, classes)
    expected = np.column_stack([plain.coef_, plain.intercept_])
    released = np.column_stack([model.coef_, model.intercept_])
    if multiclass == "softmax":
        expected, released = (weights - weights[:3].mean(axis=0) for weights in (expected, released))
    np.testing.assert_allclose(known.estimates, released.ravel(), atol=1e-9)
    gaps = (released - expected)[:3] / known.privacy_error.reshape(4, 4)[:3]
    assert np.sqrt(np.mean(gaps**2)) < 2.0
    assert "the noise hides" in " ".join(str(table).split())
    assert "inf" in table.to_latex()
    document = table.to_dict()
    json.dumps(document, allow_nan=False)
    assert document["coefficients"][-1]["low"] is document["coefficients"][-1]["total_error"] is None
    assert document["coefficients"][0]["low"] == ends[0, 0, 0]
    assert "nan" not in confide.report.report_page(model)


@pytest.mark.parametrize("separable", [True, False])
@pytest.mark.parametrize("intercept", [0.0, 2.0])
def test_a_class_is_hidden_where_noise_exceeds_its_own_curvature_by_the_limit_of_the_forecast(separable, intercept):
    """2 s sqrt(D) over the mean over columns, net of the intercept, and the ridge: the second class is just at the limit."""
    rng, o, D = np.random.default_rng(0), 4, 3
    rows, bends = rng.normal(size=(500, D)) + 1.0, np.array([4.0, 1.0, 2.0, 3.0])
    if intercept:
        rows[:, -1] = intercept
    one = rows.T @ rows
    if separable:
        curvature, width, own = np.kron(np.diag(bends), one), D, one
    else:
        # Scores that bend like those of a softmax: no class has the shift of all alike.
        matrix = np.diag(bends) - np.outer(bends, bends) / bends.sum()
        turn, width = directions_of(o, D), (o - 1) * D
        curvature, own = turn @ np.kron(matrix, one) @ turn.T, one * matrix[1, 1] / (1.0 - 1.0 / o)
    mean = np.mean(np.diagonal(own)[:-1] - own[:-1, -1] ** 2 / own[-1, -1]) if intercept else np.mean(np.diagonal(own))
    curvature = (curvature + curvature.T) / 2.0
    limit = 1.75 * (mean + 1.0) / (2.0 * math.sqrt(width))
    for factor, expected in ((0.99, [True] * 4), (1.01, [True, False, True, True])):
        made = Evidence(
            np.zeros(o * D), intercept, 1.0, 500, curvature, curvature, factor * limit, 1.0, (), o, separable
        )  # fmt: skip
        assert known_scores(made).tolist() == expected


def test_what_noise_on_the_weights_explains_is_known_whatever_the_curvature():
    """The share of the variance that passes through the curvature decides; slopes are raised by two of their deviations."""
    one, noise = np.eye(3), Noise(Ball(3, 1.0), "gaussian", 1.0)
    for in_objective, added, limit in ((False, 0.0, 3.0), (False, 1.0, 3.0), (True, 0.0, 3.0)):
        steep = 4.0 + added * 2.0 * math.sqrt(2.0 / 3.0)
        # The ridge is 1 and the curvature 2; entries of the noise have variance 1.
        share = 1.0 if in_objective else steep / (steep + 9.0)
        deviation = limit * 3.0 / share / (2.0 * math.sqrt(3.0))
        for factor, expected in ((0.99, True), (1.01, False)):
            made = Evidence(
                np.zeros(3), 0.0, 1.0, 500, 2.0 * one, 4.0 * one, factor * deviation, added,
                (WeightNoise(noise.shape, noise.law, noise.scale, in_objective),),
            )  # fmt: skip
            assert known_scores(made).tolist() == [expected]


def test_two_classes_known_and_none_known():
    """Differences of two classes remain; of one known class of a softmax there is nothing to tell."""
    X, classes = sample(3000, 4)
    document = LogisticRegression(6.0, inference_share=0.3, alpha=0.01).fit(X, classes)._evidence.to_dict()
    # Noise of a deviation beyond all curvature.
    known = Evidence.from_dict(document | {"curvature_deviation": 1e9}).uncertainty()
    assert np.all(np.isinf(known.total_error))
    assert np.all(known.p_values() == 1.0)
    assert np.all(np.isinf(known.intervals(0.9)))


CASES = {
    "softmax, pure, in the objective": ({"budget": 4.0, "mechanism": "objective"}, 5000),
    "softmax, zcdp, on the weights": ({"budget": ZCDP(0.3), "mechanism": "output"}, 5000),
    "one-vs-rest, approximate": ({"budget": ApproxDP(4.0, 1e-6), "multiclass": "one-vs-rest"}, 5000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_the_populations_coefficients(name):
    """40 samples: coverage of the regularised minimiser near 0.95, over twelve coefficients."""
    arguments, n = CASES[name]
    model = LogisticRegression(inference_share=0.3, classes=[0, 1, 2], **arguments)
    X, classes = sample(300_000, 10)
    plain = {"multiclass": arguments.get("multiclass", "softmax"), "classes": [0, 1, 2]}
    population = LogisticRegression(math.inf, alpha=model.plan(n, 3).alpha, **plain).fit(X, classes)
    target = np.column_stack([population.coef_, population.intercept_]).ravel()
    hits, rng = [], np.random.default_rng(11)
    for trial in range(40):
        drawn = rng.integers(300_000, size=n)
        ends = model.set_params(random_state=trial).fit(X[drawn], classes[drawn]).uncertainty().intervals(0.95)
        hits.append((ends[:, 0] <= target) & (target <= ends[:, 1]))
    assert 0.90 <= np.mean(hits) <= 0.985


@kinds
def test_the_table_names_class_and_column(multiclass):
    """Class by class, each with its intercept; in text, frame, LaTeX and HTML; softmax says that it is centred."""
    X, classes = sample(3000, 4)
    frame = pd.DataFrame(X, columns=["a", "b_c", "d"])
    labels = np.array(["low", "middle", "high"])[classes]
    model = LogisticRegression(3.0, inference_share=0.3, alpha=0.01, multiclass=multiclass).fit(frame, labels)
    table = model.summary(level=0.9)
    names = [f"{label}: {name}" for label in ("high", "low", "middle") for name in ("a", "b_c", "d", "(intercept)")]
    assert table.to_frame().index.tolist() == names
    known = model.uncertainty()
    np.testing.assert_array_equal(table.to_frame()["estimate"], known.estimates)
    np.testing.assert_allclose(table.to_frame()[["low", "high"]], known.intervals(0.9))
    np.testing.assert_array_equal(model.conf_int(0.9), known.intervals(0.9).reshape(3, 4, 2)[:, :3])
    assert "in favour of the class named before each" in str(table)
    assert ("minus their mean over classes" in str(table)) == (multiclass == "softmax")
    assert r"high: b\_c" in table.to_latex()
    assert '<th scope="row">middle: (intercept)</th>' in table.to_html()
    released = np.column_stack([model.coef_, model.intercept_])
    shown = released - released.mean(axis=0) if multiclass == "softmax" else released
    np.testing.assert_allclose(known.estimates, shown.ravel(), atol=1e-12)


def test_the_plot_draws_every_coefficient_of_every_class():
    """Two bars each; intercepts are not drawn."""
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    X, classes = sample(3000, 4)
    ax = LogisticRegression(3.0, inference_share=0.3, alpha=0.01).fit(X, classes).summary().plot()
    assert [len(bars.get_segments()) for bars in ax.collections] == [9, 9]
    assert ax.get_yticklabels()[0].get_text() == "0: x0"
    plt.close(ax.figure)


@pytest.mark.parametrize(
    "parameters",
    [
        {"budget": 4.0},
        {"budget": ZCDP(0.5), "mechanism": "output"},
        {"budget": 3.0, "multiclass": "one-vs-rest"},
        {"budget": 3.0, "multiclass": "one-vs-rest", "fit_intercept": False},
        {"budget": math.inf, "inference_share": "auto", "row_norm": math.inf},
        {
            "budget": 3.0,
            "neighbours": "add-or-remove-one",
            "n_rows_bounds": (2800, 4000),
            "max_sample_weight": 2.0,
            "mean_sample_weight": 2.0,
        },
    ],
    ids=str,
)
def test_a_loaded_model_gives_the_same_intervals(parameters, tmp_path):
    """To the last bit; and a second save is the same file."""
    X, classes = sample(3000, 4)
    model = LogisticRegression(**({"inference_share": 0.3, "classes": [0, 1, 2]} | parameters)).fit(X, classes)
    model.save(tmp_path / "one.json")
    again = confide.load(tmp_path / "one.json")
    assert np.array_equal(again.conf_int(), model.conf_int())
    assert str(again.summary()) == str(model.summary())
    again.save(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_outputs", 1), ("n_outputs", 4), ("n_outputs", 0), ("separable", False), ("separable", 1), ("separable", None)],
)
def test_parts_that_do_not_fit_are_refused(name, value):
    """A file cannot turn the moments of one loss into those of another."""
    X, classes = sample(3000, 4)
    model = LogisticRegression(3.0, inference_share=0.3, multiclass="one-vs-rest").fit(X, classes)
    with pytest.raises((ParameterError, ValueError)):
        Evidence.from_dict(model._evidence.to_dict() | {name: value})


def test_a_file_whose_intervals_speak_of_other_weights_is_refused(tmp_path):
    """The weights of each class stand twice in the file and must agree, and so must their number."""
    from confide.files import read_document, write_document

    X, classes = sample(3000, 4)
    model = LogisticRegression(3.0, inference_share=0.3, alpha=0.01).fit(X, classes)
    model.save(tmp_path / "m.json")
    for number, change in enumerate([lambda content: content["intervals"]["weights"].__setitem__(7, 1.0),
                                     lambda content: content.__setitem__("coef", content["coef"][::-1])]):  # fmt: skip
        content = read_document(tmp_path / "m.json")
        change(content)
        write_document(tmp_path / f"{number}.json", content)
        with pytest.raises(FileError, match="do not fit each other"):
            confide.load(tmp_path / f"{number}.json")


@kinds
def test_rows_on_disk_and_threads_give_the_same_intervals(multiclass, tmp_path):
    """Without noise, of files read in pieces, and of rows shared between two threads."""
    X, classes = sample(9000, 3)
    labels = np.array(["low", "middle", "high"])[classes]
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=labels)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    target = {"column": "y", "classes": ["low", "middle", "high"]}
    schema = confide.Schema(columns={name: {"low": -1, "high": 1} for name in "abc"}, target=target)
    model = LogisticRegression(math.inf, schema=schema, inference_share=0.3, multiclass=multiclass)
    expected = model.fit(frame[["a", "b", "c"]], frame["y"]).conf_int()
    opened = confide.open_rows(tmp_path / "rows.csv", schema)
    np.testing.assert_allclose(model.fit(opened).conf_int(), expected, rtol=1e-6, atol=1e-8)
    two = model.set_params(n_jobs=2).fit(frame[["a", "b", "c"]], frame["y"])
    np.testing.assert_array_equal(two.conf_int(), expected)


@kinds
def test_one_charge_covers_weights_and_moments(multiclass):
    """The ledger has one entry, the whole budget, whatever the number of classes."""
    X, classes = sample(3000, 1)
    ledger = Ledger(limit=4.0)
    arguments = {"inference_share": 0.4, "classes": [0, 1, 2], "multiclass": multiclass}
    model = LogisticRegression(4.0, ledger=ledger, **arguments).fit(X, classes)
    assert ledger.entries()["purpose"].tolist() == ["LogisticRegression.fit"]
    assert ledger.remaining().epsilon == pytest.approx(0.0)
    plan = model.plan(3000, 3)
    assert (plan.budget.epsilon, plan.intervals.moments.budget.epsilon) == pytest.approx((2.4, 1.6))
    assert "second moments" in model.guarantee_.statement()
    with pytest.raises(confide.BudgetExceeded):
        model.fit(X, classes)


@kinds
def test_intervals_that_cannot_be_trusted_are_refused_before_the_charge(multiclass):
    """Few rows, many columns; more of it is accepted, and so is an automatic share."""
    ledger = Ledger(limit=10.0)
    rng = np.random.default_rng(0)
    arguments = {"inference_share": 0.3, "classes": [0, 1, 2], "multiclass": multiclass}
    model = LogisticRegression(0.5, ledger=ledger, **arguments)
    with pytest.raises(ParameterError, match="not be trustworthy"):
        model.fit(rng.normal(size=(500, 10)), rng.integers(0, 3, 500))
    assert len(ledger.entries()) == 0
    assert model.plan(2_000_000, 10).intervals.is_valid
    best = model.set_params(budget=ApproxDP(1.0, 1e-6), inference_share="auto").plan(50_000, 4).intervals
    for share in (0.1, 0.3, 0.5):
        other = model.set_params(inference_share=share).plan(50_000, 4).intervals
        assert best.margin <= other.margin * (1.0 + 1e-9)


def test_the_forecast_compares_noise_with_usual_curvature():
    """Both written out, of 10 directions of a softmax of 3 classes and 5 weights each, and of one score of one-vs-rest."""
    n, size = 50_000, 110
    plan = LogisticRegression(2.0, inference_share=0.3, classes=[0, 1, 2]).plan(n, 4).intervals
    scale = plan.moments.query.curvature_scale
    # Theorem 4 of proofs/moments.md; R^2 = 2; the length of the noise is that of a Gamma law in N dimensions, by entry.
    entry = math.sqrt(2.0) * math.sqrt(max(1.0, scale**2 + 9 / 16)) * 2.0 / (2.0 * 0.3 * 0.99) * math.sqrt(size + 1)
    assert plan.curvature_noise == pytest.approx(2.0 * entry * 0.5 / scale / math.sqrt(2.0) * math.sqrt(10.0), rel=0.02)
    assert plan.usual_curvature == pytest.approx(n / 6.0 / 3.0 / 4.0)
    plan = LogisticRegression(2.0, inference_share=0.3, classes=[0, 1, 2], multiclass="one-vs-rest").plan(n, 4).intervals
    entry = math.sqrt(2.0) * math.sqrt(3.0) * 2.0 / (2.0 * 0.3 * 0.99) * math.sqrt(90 + 1)
    unit = 0.25 / plan.moments.query.curvature_scale
    assert plan.curvature_noise == pytest.approx(2.0 * entry * unit / math.sqrt(2.0) * math.sqrt(5.0), rel=0.03)
    assert plan.usual_curvature == pytest.approx(n * 0.25 * 8 / 9 / 2.0 / 3.0 / 4.0)


@kinds
def test_the_forecast_width_is_near_the_widths_that_come(multiclass):
    """Within a factor 2.2."""
    X, classes = sample(20_000, 2)
    arguments = {"inference_share": 0.3, "classes": [0, 1, 2], "multiclass": multiclass, "random_state": 0}
    for mechanism in ("objective", "output"):
        model = LogisticRegression(2.0, mechanism=mechanism, **arguments).fit(X, classes)
        width = np.median(model.uncertainty().margins(0.95).reshape(3, 4)[:, :3])
        assert 0.45 < model.plan(20_000, 3).intervals.margin / width < 2.2


@kinds
def test_more_weights_than_moments_are_sensible_for_are_refused(multiclass):
    """Before anything is charged, whatever the rows; the message says how many there would be."""
    arguments = {"inference_share": 0.3, "multiclass": multiclass}
    model = LogisticRegression(ApproxDP(50.0, 1e-6), alpha=0.01, **arguments)
    with pytest.raises(ParameterError, match=r"at most 1,000 weights, and classes times columns would be 1,010"):
        model.plan(10**6, 100, n_classes=10)
    assert model.plan(10**6, 99, n_classes=10).intervals is not None
    # Two classes have one vector of weights.
    assert model.plan(10**6, 1010, n_classes=2).intervals is not None


def test_a_hinge_with_several_classes_bends_or_is_refused():
    """As with two: the plain one is for two classes alone."""
    X, classes = sample(20_000, 2)
    ends = LinearSVC(8.0, inference_share=0.4, classes=[0, 1, 2]).fit(X, classes).conf_int()
    assert ends.shape == (3, 3, 2)
    with pytest.raises(ParameterError):
        LinearSVC(8.0, loss="hinge", inference_share=0.4, classes=[0, 1, 2]).fit(X, classes)


def test_the_oracle_of_this_file_is_right():
    """Finite differences against formulas of slope and curvature, to 1e-8."""
    X, classes = sample(50, 0)
    design, W = np.column_stack([X, np.ones(50)]), TRUTH.ravel()
    p = softmax(design @ TRUTH.T, axis=1)
    gradients, hessian = differences(loss_of("softmax"), design, classes, W)
    np.testing.assert_allclose(
        gradients, ((p - np.eye(3)[classes])[:, :, None] * design[:, None]).reshape(50, 12), atol=1e-9
    )
    bends = np.einsum("ni,ij->nij", p, np.eye(3)) - p[:, :, None] * p[:, None, :]
    exact = sum(np.kron(C, np.outer(x, x)) for C, x in zip(bends, design, strict=True))
    np.testing.assert_allclose(hessian, exact, atol=1e-7)
    q = expit(design @ TRUTH.T)
    _, hessian = differences(loss_of("one-vs-rest"), design, classes, W)
    exact = sum(np.kron(np.diag(b), np.outer(x, x)) for b, x in zip(q * (1 - q), design, strict=True))
    np.testing.assert_allclose(hessian, exact, atol=1e-7)


def test_a_rare_class_of_two_has_no_interval_where_noise_is_all_there_is():
    """One row in 2,000: the plan cannot know, the release shows it at 9 seeds of 10; a frequent class has its intervals."""
    rng = np.random.default_rng(8)
    rows = rng.uniform(-0.5, 0.5, size=(20_000, 4))
    for share, hidden in ((0.0005, True), (0.3, False)):
        labels = rng.permutation((np.arange(20_000) < share * 20_000).astype(int))
        model = LogisticRegression(0.7, inference_share=0.3, classes=[0, 1], random_state=2).fit(rows, labels)
        assert np.isinf(model.conf_int()).all() == hidden
        assert np.isinf(model.conf_int()).any() == hidden
        assert ("the noise hides" in " ".join(str(model.summary()).split())) == hidden
