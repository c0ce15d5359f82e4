"""Effects of columns beside random features: means over all other columns, and what they leave."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from confide import AdditiveClassifier, AdditiveRegressor, ApproxDP, Schema, load
from confide.cli.output import blocks_of_effects, blocks_of_model
from confide.effects.effects import variances_of
from confide.estimators.released import ReleasedCoefficients, effects_of
from confide.features.fourier import RandomFeatures
from confide.features.schema import Interaction
from confide.report.findings import all_findings, effect_drawings, main_findings

COLUMNS = Schema(
    {
        "a": {"low": 0, "high": 10, "knots": 2},
        "b": {"low": 1, "high": 9, "knots": 1, "scale": "log", "missing": True},
        "c": {"categories": ["u", "v", "w"]},
        "d": {"low": -1, "high": 1, "knots": 0},
    }
)
CURVED = replace(COLUMNS, interact=(Interaction(("d",), 1, 0.5),))


def rows(n=3000):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.uniform(0, 10, n), "b": rng.uniform(1, 9, n), "c": rng.choice([*"uvw"], n), "d": rng.uniform(-1, 1, n)}
    )
    return frame, np.sin(frame["a"]) + frame["d"] * (frame["a"] - 5.0) / 3.0 + 0.5 * (frame["c"] == "u")


def fitted(schema=COLUMNS):
    frame, target = rows()
    scales = (1.5, 0.7, 1.0, 1.2, 0.9)[: len(schema.columns) + len(schema.interact)]
    schema = replace(schema, random_features=RandomFeatures(60, 1.0, 2.0, scales=scales))
    model = AdditiveRegressor(ApproxDP(4.0, 1e-6), schema=schema, target_bound=4.0, random_state=0)
    with pytest.warns(match="random_state"):
        return model.fit(frame, target)


def on_grid(model):
    """The scores at all values of the effects together, with the public weights of each column."""
    points = [term.points[0] for term in effects_of(model).terms if len(term.points) == 1]
    shown = [[value for value in p.values if value != "(missing)"] for p in points]
    frame = pd.DataFrame(list(product(*shown)), columns=[*"abcd"])
    return model.predict(frame).reshape([len(values) for values in shown]), [
        p.weights[: len(values)] for p, values in zip(points, shown, strict=True)
    ]


def mean_for(numbers, weights, kept):
    """The means of an array over all but some of its axes."""
    for axis in sorted(set(range(numbers.ndim)) - set(kept), reverse=True):
        numbers = np.tensordot(numbers, weights[axis], axes=(axis, 0))
    return numbers


@pytest.mark.parametrize("schema", [COLUMNS, CURVED], ids=["knots", "curves beside lines"])
def test_effects_are_means_of_the_score_over_all_other_columns(schema):
    """As sums over a grid of all columns have it: constant, single columns, the strongest pairs, share of interactions."""
    model = fitted(schema)
    effects, (scores, weights) = effects_of(model), on_grid(model)
    left = scores - mean_for(scores, weights, ())
    np.testing.assert_allclose(effects.intercepts, [mean_for(scores, weights, ())], atol=1e-7)
    whole, found = mean_for(left**2, weights, ()), {term.columns: term for term in effects.terms}
    for axis, name in enumerate("abcd"):
        own = mean_for(left, weights, (axis,))
        np.testing.assert_allclose(found[name,].effects[: own.size, 0], own, atol=1e-7)
        left = left - own.reshape([-1 if other == axis else 1 for other in range(4)])
    variances = {}
    for axes in combinations(range(4), 2):
        own, names = mean_for(left, weights, axes), tuple("abcd"[axis] for axis in axes)
        variances[names] = mean_for(own**2, [weights[axis] for axis in axes], ())
        if names in found:
            np.testing.assert_allclose(found[names].effects[: len(own), : own.shape[1], 0], own, atol=1e-7)
            np.testing.assert_allclose(variances_of(found[names]), [variances[names]], rtol=1e-6)
    assert {names for names in found if len(names) == 2} == set(sorted(variances, key=variances.get)[-2:])
    assert effects.share_of_interactions == pytest.approx(mean_for(left**2, weights, ()) / whole, rel=1e-6)


def test_a_missing_cell_has_its_effect():
    """It has no weight in means, and its effect is how far the score lies above them."""
    model = fitted()
    frame = model.effects_
    value = frame[(frame["column"] == "b") & (frame["value"] == "(missing)")]["effect"].item()
    weights = [on_grid(model)[1][axis] for axis in (0, 2, 3)]
    values = [effects_of(model).terms[axis].points[0].values for axis in (0, 2, 3)]
    grid = pd.DataFrame(list(product(*values)), columns=[*"acd"]).assign(b=np.nan)
    scores = model.predict(grid[[*"abcd"]]).reshape([len(one) for one in values])
    assert value == pytest.approx(mean_for(scores, weights, ()) - effects_of(model).intercepts[0], abs=1e-8)


def test_effects_are_those_of_the_file_and_are_shown(tmp_path):
    """In a frame, a JSON form, a contrast, a picture, a report and the command line, each of which says what they leave."""
    pytest.importorskip("matplotlib").use("Agg")
    model = fitted()
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    pd.testing.assert_frame_equal(again.effects_, model.effects_)
    share = effects_of(model).share_of_interactions
    assert model.effects_.attrs == {"share_of_interactions": share}
    assert effects_of(model).to_dict()["share_of_interactions"] == share
    assert share > 0.1
    frame = model.effects_
    ends = frame[(frame["column"] == "a") & frame["value"].isin([0.0, 10.0])]["effect"].to_numpy()
    assert model.contrast("a", 0, 10).estimate == pytest.approx(ends[1] - ends[0])
    left_out = effects_of(model).left_out("a")
    pairs = [":".join(term.columns) for term in effects_of(model).terms if len(term.columns) == 2]
    assert pairs
    assert all(f'"{pair}"' in left_out for pair in pairs)
    assert left_out in str(model.contrast("a", 0, 10))
    display = model.plot_effects()
    assert len(display.axes_) == 4
    caption = display.figure_._suptitle.get_text().replace("\n", " ")
    assert left_out in caption
    assert "a straight line" not in caption
    assert "knots, between which random features bend a curve, too" in caption
    points = next(term.points[0] for term in effects_of(model).terms if term.columns == ("a",))
    assert len(points.inner_knots) == (points.n_numbers - 1) // 4 - 1 > 0
    places = dict(zip(display.effects, display.axes_, strict=True))
    (ax,) = (ax for effect, ax in places.items() if effect.name == "a")
    assert ax.get_xticks(minor=True).tolist() == list(points.inner_knots)
    drawn = effect_drawings([effect for effect in display.effects if effect.name == "a"])
    assert drawn.count('class="knot"') == len(points.inner_knots)
    assert "between which random features bend a curve" in str(main_findings(model, 0.95))
    told = f"makes up {share:.0%} of the variance"
    assert told in str(main_findings(model, 0.95))
    assert "no coefficients are shown" in str(main_findings(model, 0.95, whole=True))
    assert 'class="surfaces"' in str(all_findings(model, 0.95))
    coefficients = ReleasedCoefficients.of(model)
    n_features = len(coefficients.coefficients) - len(coefficients.of_columns)
    norm = np.linalg.norm(model.coef_[-n_features:])
    told = f"{n_features:,} random features are not listed, because single ones mean nothing. Their norm is {norm:.4g}"
    for shown in (str(all_findings(model, 0.95)), str(list(blocks_of_model(model)))):
        assert told in shown
        assert "random feature'" not in shown
    told = f"makes up {share:.0%} of the variance"
    assert told in str(list(blocks_of_effects(model)))


def test_effects_without_features_say_which_interactions_they_leave():
    """Contrasts and pictures name the pairs of their columns alone; the share is there, and 0 without interactions."""
    pytest.importorskip("matplotlib").use("Agg")
    frame, target = rows()
    models = []
    for interact in ((["a", "c"], ["a", "d"]), ()):
        model = AdditiveRegressor(
            ApproxDP(4.0, 1e-6), schema=replace(COLUMNS, interact=interact), target_bound=4.0, random_state=0
        )
        with pytest.warns(match="random_state"):
            models.append(model.fit(frame, target))
    with_pairs, alone = models
    assert alone.effects_.attrs == {"share_of_interactions": 0.0}
    assert alone.contrast("a", 0, 10).left_out == effects_of(alone).left_out("abcd") == ""
    effects = effects_of(with_pairs)
    sizes = [(len(term.columns), variances_of(term).sum()) for term in effects.terms]
    joint, whole = (sum(size for n, size in sizes if n > least) for least in (1, 0))
    assert with_pairs.effects_.attrs["share_of_interactions"] == pytest.approx(joint / whole)
    assert 'is left out: "a:c".' in str(with_pairs.contrast("c", "u", "v"))
    assert with_pairs.contrast("b", 1, 9).left_out == ""
    caption = with_pairs.plot_effects().figure_._suptitle.get_text()
    assert 'is left out: "a:c", "a:d".' in caption.replace("\n", " ")
    assert "a curve is a straight line" in caption.replace("\n", " ")


def test_each_of_several_classes_has_effects():
    """Less their mean over classes, as all others."""
    frame, target = rows()
    schema = replace(COLUMNS, random_features=RandomFeatures(60, 1.0, 2.0))
    labels = np.digitize(target, [-0.5, 0.5])
    with pytest.warns(match="random_state"):
        model = AdditiveClassifier(ApproxDP(4.0, 1e-6), schema=schema, random_state=0).fit(frame, labels)
    effects = effects_of(model)
    assert effects.labels == (0, 1, 2)
    for term in effects.terms:
        np.testing.assert_allclose(term.effects.sum(axis=-1), 0.0, atol=1e-9)
    grid = pd.DataFrame({"a": [2.5], "b": [1.0], "c": ["u"], "d": [-1.0]})
    assert effects.share_of_interactions > 0.0
    assert model.decision_function(grid).shape == (1, 3)
