"""Atoms: numbers that many rows share, each with an effect of its own beside the line or the curve of its column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import confide
from confide.effects.effects import decomposition, points_of
from confide.erm.coded_rows import dense
from confide.errors import ParameterError, SchemaError
from confide.estimators.released import effects_of
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.report.findings import effect_drawings
from confide.training.alpha import usual_norm_of_rows

ATOMS = (0.0, 7688.0, 99999.0)
TARGET = {"column": "rich", "negative": "no", "positive": "yes"}


def described(atoms=ATOMS, **others):
    gain = {"low": 0, "high": 99999, "scale": "log", "atoms": list(atoms)} | others
    return confide.Schema(
        columns={"gain": gain, "sex": {"categories": ["F", "M"]}, "age": {"low": 0, "high": 100}}, target=TARGET
    )


def rows(n=400, seed=0, missing=False):
    random = np.random.default_rng(seed)
    gains = random.choice([0.0, 7688.0, 7688.5, 99999.0, 200000.0, -3.0, 412.0], n)
    if missing:
        gains[::7] = np.nan
    return pd.DataFrame({"gain": gains, "sex": random.choice(["F", "M"], n), "age": random.uniform(0.0, 100.0, n)})


def labels(frame):
    return np.where(frame["gain"].to_numpy() == 7688.0, "yes", "no")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("knots", [{}, {"knots": 0}, {"knots": 6}, {"knots": [10, 500]}, {"knots": 4, "scale": "linear"}])
def test_the_entry_of_an_atom_is_1_exactly_where_the_clipped_number_is_the_atom(knots, dtype):
    """Numbers outside of the bounds count as the nearer bound, in every form of an encoded row."""
    encoder, frame = Encoder(described(**knots)), rows()
    frame["gain"] = frame["gain"].astype(dtype)
    clipped = np.clip(frame["gain"], 0, 99999)
    codes = encoder.read(frame)
    place = encoder.feature_names.index("gain=0")
    assert encoder.feature_names[place : place + 3] == ("gain=0", "gain=7688", "gain=99999")
    expected = np.column_stack([clipped == atom for atom in ATOMS])
    for made in (encoder.transform(frame), dense(encoder.block(codes, 0, 400)), encoder.block(codes, 0, 400, np.float32)):
        assert np.array_equal(dense(made)[:, place : place + 3] == 1.0, expected)
        assert not dense(made)[:, place : place + 3][~expected].any()
    without = Encoder(described(atoms=(), **knots)).transform(frame)
    assert np.array_equal(np.delete(encoder.transform(frame), range(place, place + 3), axis=1), without)


@pytest.mark.parametrize("atoms", [(7688.0,), (0.0, 7688.0), ATOMS])
def test_every_number_of_atoms_has_as_many_columns_in_a_group_of_its_own(atoms):
    """Two atoms are no category of two levels, which would have one column."""
    encoder = Encoder(described(atoms=atoms))
    assert (encoder.groups[3].column, encoder.groups[3].size) == ("gain", len(atoms))
    assert encoder.row_bound.sizes[3:] == (len(atoms),)
    assert encoder.row_bound.scales[3:] == (1.0,)
    assert not encoder.row_bound.linked[3]
    encoded = encoder.transform(rows())
    assert np.array_equal(encoder.row_bound.clip(encoded), encoded)


def test_missing_and_infinite_numbers_are_no_atom():
    """The codes of missing cells are none either, even where clipping would make one of them an atom."""
    encoder = Encoder(described(missing=[-9]))
    frame = pd.DataFrame({"gain": [-9.0, np.nan, 0.0], "sex": "F", "age": 1.0})
    place = encoder.feature_names.index("gain=0")
    assert encoder.transform(frame)[:, place].tolist() == [0.0, 0.0, 1.0]
    column = NumberColumn("gain", 0, 10, atoms=(0, 10))
    assert column.atoms_in(np.array([np.inf, -np.inf, np.nan, 10.0])).tolist() == [-1, -1, -1, 1]


def test_the_compiled_kernel_adds_up_the_same_gradients():
    """Fits with the kernel and without it are the same to the bit, as for all columns."""
    encoder, frame = Encoder(described(knots=6)), rows()
    codes = encoder.read(frame)
    stored = encoder.as_stored(codes)
    assert stored is not None
    assert len(stored.codes) == 4
    column = next(column for column in stored.columns if column.start == encoder.groups[3].start)
    assert (column.kind, column.bins, column.linked) == (2, 4, False)


def test_a_fit_finds_what_an_atom_says_and_a_file_keeps_it(tmp_path):
    """The effect at an atom is that of the curve there and its own; next to it there is the curve alone."""
    frame, schema = rows(4000), described(knots=3)
    model = confide.AdditiveClassifier(confide.ApproxDP(50.0, 1e-6), schema=schema, interactions=(), random_state=0)
    model.fit(frame, labels(frame))
    alone, at = model.contrast("gain", 5000, 7688), model.contrast("gain", 5000, 7688.5)
    assert alone.estimate > at.estimate + 3.0
    weight = model.coef_.ravel()[list(model.coefficient_names_).index("gain=7688")]
    assert alone.estimate - model.contrast("gain", 5000, 7688 + 1e-6).estimate == pytest.approx(weight, abs=1e-6)
    values = model.effects_.query("column == 'gain'")["value"].tolist()
    assert values[-3:] == ["= 0", "= 7688", "= 99999"]
    loaded = confide.load(model.save(tmp_path / "model.json") or tmp_path / "model.json")
    assert loaded.schema_ == model.schema_
    assert loaded.schema_.columns[0].atoms == ATOMS
    assert np.array_equal(loaded.decision_function(frame), model.decision_function(frame))


def test_effects_and_intercept_add_up_to_the_score():
    """At every number, an atom or not, also where cells are missing and the column interacts."""
    schema = replace(described(knots=2, missing=True), interact=[["gain", "sex"]])
    encoder, frame = Encoder(schema), rows(300, missing=True)
    weights = np.random.default_rng(1).normal(size=encoder.n_features)
    constant, terms = decomposition(encoder, weights[:, None])
    points = points_of(encoder)
    for row, score in zip(frame.to_dict("records"), encoder.transform(frame) @ weights, strict=True):
        total = float(constant[0])
        for term in terms:
            mixed = term.effects[..., 0]
            for name in term.columns:
                value = (
                    row[name]
                    if name == "sex" or np.isnan(row[name])
                    else np.clip(row[name], *schema.columns_by_name[name].bounds)
                )
                mixed = np.tensordot(points[name].mixture(value), mixed, axes=(0, 0))
            total += float(mixed)
        assert total == pytest.approx(score, abs=1e-9)


def test_coefficients_in_the_units_of_the_table_name_each_atom():
    """Its coefficient is its weight: what is added beside the line or the curve."""
    frame, schema = rows(6000), described(knots=0)
    model = confide.LogisticRegression(confide.ApproxDP(50.0, 1e-6), schema=schema, random_state=0, inference_share=0.3)
    table = model.fit(frame, labels(frame)).summary()
    found = {one.name: one for one in table.coefficients if "exactly" in one.name}
    assert found["gain at exactly 7688"].unit == "beside the line"
    weight = model.coef_.ravel()[list(model.coefficient_names_).index("gain=7688")]
    assert found["gain at exactly 7688"].estimate == pytest.approx(weight, rel=1e-6)


def test_pictures_and_reports_draw_a_dot_for_each_atom():
    """Beside the curve, at its number and at its effect."""
    pytest.importorskip("matplotlib")
    frame, schema = rows(4000), described(knots=3)
    model = confide.AdditiveClassifier(confide.ApproxDP(50.0, 1e-6), schema=schema, random_state=0).fit(frame, labels(frame))
    axes = model.plot_effects(columns=["gain"]).ax_
    dots = [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() == "o"]
    effects = model.effects_.query("column == 'gain'").set_index("value")["effect"]
    assert dots == [(atom, effects[f"= {atom:.0f}"]) for atom in ATOMS]
    drawn = effect_drawings([effect for effect in effects_of(model).with_bands() if effect.name == "gain"])
    assert drawn.count("<circle") == len(ATOMS)


@pytest.mark.parametrize(
    ("atoms", "words"),
    [
        ([5, 1], "rising order"),
        ([1, 1], "rising order"),
        ([-1], "each from low to high"),
        ([10.5], "each from low to high"),
        (["a"], "finite number"),
        (7, "a list of numbers"),
        ([9], "code for missing cells"),
        (list(range(1001)), "more than 1000 atoms"),
    ],
)
def test_atoms_that_contradict_their_column_are_refused(atoms, words):
    """The message names the column."""
    with pytest.raises(SchemaError, match=f'column "x": .*{words}'):
        NumberColumn("x", 0, 10, missing=(9,), atoms=atoms)


def test_a_schema_with_atoms_is_read_as_it_was_written(tmp_path):
    """As a mapping and as TOML; and it says which atoms there are."""
    schema = described(knots=6)
    path = tmp_path / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert confide.Schema.from_toml(path) == schema == confide.Schema.from_dict(schema.to_dict())
    assert schema != described(atoms=(0.0,), knots=6)
    assert "atoms at 0, 7688, 99999" in str(schema)
    assert schema.without_curves() == described(atoms=()).without_curves()


def test_what_needs_a_curve_or_a_line_alone_refuses_atoms_before_anything_is_spent():
    """Monotone effects, coefficients of interest, and bounds that are not known yet."""
    frame, schema, ledger = rows(), described(knots=3), confide.Ledger(limit=10.0)
    with pytest.raises(ParameterError, match='"gain" has atoms'):
        confide.AdditiveClassifier(1.0, schema=schema, monotone={"gain": "up"}, ledger=ledger).fit(frame, labels(frame))
    with pytest.raises(ParameterError, match="no straight line"):
        confide.LogisticRegression(
            confide.ApproxDP(4.0, 1e-6), schema=described(knots=0), interest=["gain"], ledger=ledger
        ).fit(frame, labels(frame))
    with pytest.raises(ParameterError, match="knots or atoms at fixed places"):
        confide.private_bounds(frame, ["gain"], schema=schema, budget=1.0, ledger=ledger)
    assert not len(ledger.entries())


def test_a_strength_of_a_column_is_that_of_its_atoms_and_nothing_smooths_them():
    """They have no neighbours."""
    frame, schema = rows(2000), described(knots=6)
    for penalty in ({"gain": 10.0}, {"gain": confide.Smooth(50.0)}, "smooth"):
        model = confide.AdditiveClassifier(confide.ApproxDP(20.0, 1e-6), schema=schema, penalty=penalty, random_state=0)
        assert model.fit(frame, labels(frame)).contrast("gain", 5000, 7688).estimate > 1.0


def test_a_typical_row_is_as_long_as_if_a_quarter_of_the_rows_had_an_atom():
    """Few rows have one, and rows that are shortened to the typical norm would otherwise be too long."""
    squares = [usual_norm_of_rows(Encoder(described(atoms=atoms, knots=6))) ** 2 for atoms in ((), (7688.0,), ATOMS)]
    assert np.diff(squares) == pytest.approx([0.25, 0.0])
