"""Living with scikit-learn: notebooks, frames of all kinds, pipelines, metadata routing, searches."""

from __future__ import annotations

import math
import pickle
import re
import warnings
from html import escape

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from confide import (
    BudgetExceeded,
    InputError,
    Ledger,
    LinearSVC,
    LogisticRegression,
    PureDP,
    RandomFourierFeatures,
    Ridge,
    Schema,
    SchemaEncoder,
)
from tests.estimators.conventions import failed_checks

SCHEMA = Schema(
    columns={"age": {"low": 0, "high": 100, "knots": [30, 60]}, "job": {"categories": ["a", "b", "c"], "other": "a"}},
    interact=[["age", "job"]],
)


@pytest.fixture
def people():
    """600 people and whether they are above 50."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(0, 101, 600).astype(float), "job": rng.choice(["a", "b", "c"], 600)})
    return frame, (frame["age"] > 50).to_numpy().astype(int)


# Notebooks


def html_of(model):
    """What a notebook shows, by either of the ways in which it asks."""
    shown = model._repr_mimebundle_()["text/html"]
    identities = re.compile(r"sk-[a-z0-9-]*\d+")  # scikit-learn numbers its diagrams
    assert identities.sub("", model._repr_html_()) == identities.sub("", shown)
    return shown


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, Ridge])
def test_a_notebook_shows_the_guarantee_above_the_diagram(rows, kind):
    """The statement of a fitted model, all of it; before the fit the diagram alone."""
    X, y = rows
    model = kind(1.0, target_bound=1.0) if kind is Ridge else kind(1.0)
    assert html_of(model).startswith("<style>") or "confide-guarantee" not in html_of(model)
    shown = html_of(model.fit(X, y))
    assert shown.index("released under pure differential privacy with epsilon = 1") < shown.index("sk-top-container")
    for sentence in model.guarantee_.assumptions:
        assert f"<li>{escape(sentence)}</li>" in shown
    assert shown.count("<ul>") >= 1
    assert "#b00020" not in shown


def test_a_void_guarantee_is_red(rows):
    """Its first line says NOT PRIVATE."""
    shown = html_of(LogisticRegression(1.0, random_state=0).fit(*rows))
    assert re.search(r'<p style="color: #b00020; font-weight: bold">NOT PRIVATE\.', shown)


def test_labels_do_not_become_markup(people):
    """A schema's labels and names come from a file."""
    frame, y = people
    labels = np.where(y == 1, "<script>x</script>", "b")
    schema = Schema(SCHEMA.columns, {"column": "<t>", "negative": "b", "positive": "<script>x</script>"})
    model = LogisticRegression(1.0, schema=schema).fit(frame, labels)
    assert "<script>x" not in model.guarantee_.to_html()
    assert model.guarantee_._repr_html_() == model.guarantee_.to_html()


def test_text_is_shown_where_scikit_learn_is_set_to_it(rows):
    """No HTML at all then, in the model or in a pipeline; and its own function draws the diagram."""
    model = LogisticRegression(1.0).fit(*rows)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}
    assert "LogisticRegression" in estimator_html_repr(make_pipeline(model))


# Frames


def float32_frames():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32), columns=["east", "north"])
    yield "pandas", frame
    yield "pandas, nullable", frame.astype("Float32")
    yield "pandas, Arrow", frame.astype("float32[pyarrow]")
    yield "polars", pl.from_pandas(frame)
    yield "arrow", pa.table(frame)


@pytest.mark.parametrize(
    ("kind", "frame"), list(float32_frames()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_frame_is_read_alike(kind, frame, monkeypatch):
    """Names are kept, float32 stays float32, and the model is that of the array; another order of columns is refused."""
    array = np.array(frame.to_pandas() if hasattr(frame, "to_pandas") else frame, dtype=np.float32)
    y = (array[:, 0] > 0).astype(int)
    seen = []
    import confide.intake.arrays as validation

    blocks = validation.ArrayBlocks
    monkeypatch.setattr(validation, "ArrayBlocks", lambda rows: (seen.append(rows.dtype), blocks(rows))[1])
    model = LogisticRegression(math.inf).fit(frame, y)
    assert seen == [np.float32]
    assert model.feature_names_in_.tolist() == ["east", "north"] == model.coefficient_names_.tolist()
    assert model.coef_ == pytest.approx(LogisticRegression(math.inf).fit(array, y).coef_, rel=1e-6)
    with pytest.raises(InputError, match="same order"):
        model.predict(pd.DataFrame(array, columns=["north", "east"]))


def test_a_frame_of_several_types_becomes_float64():
    """One array holds it, so nothing is rounded."""
    frame = pl.DataFrame({"a": pl.Series([0.5, 0.25], dtype=pl.Float32), "b": [0.1, 0.2]})
    names = LogisticRegression(math.inf).fit(frame, [0, 1])
    as_array = LogisticRegression(math.inf).fit(np.array([[0.5, 0.1], [0.25, 0.2]]), [0, 1])
    # Columns that lie one after the other are added up in another order; rounding to float32 would be 10^-8.
    np.testing.assert_allclose(names.coef_, as_array.coef_, rtol=1e-12)


def test_a_lazy_frame_is_refused_with_advice():
    """A row count would cost a pass, and scikit-learn would take it for one object."""
    with pytest.raises(InputError, match=r"\.collect\(\)"):
        LogisticRegression().fit(pl.LazyFrame({"a": [1.0]}), [0])


@pytest.mark.parametrize("names", [["39", "77516.5"], ["-1", "Unnamed: 1"], ["1e3", "0"], ["2", "0", "2.1"]])
def test_a_row_that_was_taken_for_names_is_refused(names):
    """It would be published with the model as the names of its coefficients. The message quotes none of it."""
    frame = pd.DataFrame(np.zeros((2, len(names))), columns=names)
    with pytest.raises(InputError, match="header=None") as refusal:
        LogisticRegression().fit(frame, [0, 1])
    assert not any(name in str(refusal.value) for name in names if len(name) > 1)


@pytest.mark.parametrize("names", [["0", "1"], ["1", "2"], ["x1", "2"], [0, 1], ["age", "1990"]])
def test_names_that_programs_and_people_give_are_no_cells(names):
    """Positions as text, whole numbers, and names that are not all numbers."""
    frame = pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], columns=names)
    assert LogisticRegression(math.inf).fit(frame, [0, 1]).coef_.shape == (1, 2)


# Transformers


def test_the_encoder_passes_the_checks_that_are_for_frames():
    """Arrays have no names, so scikit-learn can test its parameters, its clones and its tags."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        assert failed_checks(SchemaEncoder(SCHEMA)) == ""


@pytest.mark.parametrize(("output", "library"), [("pandas", pd), ("polars", pl)])
@pytest.mark.parametrize("build", [pd.DataFrame, pl.DataFrame, pa.table])
def test_transformers_give_the_frames_that_are_asked_for(people, output, library, build):
    """set_output, with names, whatever library the rows come from; values are those of the array."""
    frame = build(people[0].to_dict("list"))
    encoder = SchemaEncoder(SCHEMA)
    plain = encoder.fit_transform(frame)
    encoded = clone(encoder).set_output(transform=output).fit_transform(frame)
    assert isinstance(encoded, library.DataFrame)
    assert list(encoded.columns) == encoder.get_feature_names_out().tolist()
    assert "age~30:job=b" in list(encoded.columns)
    assert np.array_equal(np.asarray(encoded), plain)
    mapped = RandomFourierFeatures(4).set_output(transform=output).fit_transform(encoded)
    assert isinstance(mapped, library.DataFrame)
    assert list(mapped.columns) == ["cos0", "cos1", "sin0", "sin1"]


def test_transformers_survive_clone_pickle_and_parameters(people):
    """As scikit-learn's own do."""
    encoder = SchemaEncoder(SCHEMA).fit(people[0])
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.transform(people[0]), encoder.transform(people[0]))
    assert clone(encoder).get_params() == {"schema": SCHEMA}
    assert encoder.row_bound == encoder.set_params(schema=SCHEMA).row_bound


def test_a_pipeline_of_encoder_and_model_is_the_model_with_the_schema(people):
    """Without privacy, to the last digit but for the order of sums."""
    frame, y = people
    pipeline = make_pipeline(SchemaEncoder(SCHEMA), LogisticRegression(math.inf, row_norm=SchemaEncoder(SCHEMA).row_bound))
    whole = LogisticRegression(math.inf, schema=SCHEMA).fit(frame, y)
    assert pipeline.fit(frame, y)[-1].coef_ == pytest.approx(whole.coef_)
    assert whole.coefficient_names_.tolist() == pipeline[0].get_feature_names_out().tolist()


# Routing and searches


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_weights_are_routed_through_a_pipeline(people, kind):
    """With set_fit_request they reach the last step and change the model; unasked they are refused by scikit-learn."""
    frame, y = people
    weights = np.linspace(0.0, 1.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = kind(math.inf, row_norm=2.0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = make_pipeline(SchemaEncoder(SCHEMA), model).fit(frame, y, sample_weight=weights)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            make_pipeline(SchemaEncoder(SCHEMA), kind(math.inf)).fit(frame, y, sample_weight=weights)
        ignored = make_pipeline(SchemaEncoder(SCHEMA), kind(math.inf, row_norm=2.0).set_fit_request(sample_weight=False))
        search = GridSearchCV(model, {"alpha": [0.1]}, cv=2).fit(
            SchemaEncoder(SCHEMA).fit_transform(frame), y, sample_weight=weights
        )
    by_hand = kind(math.inf, row_norm=2.0).fit(SchemaEncoder(SCHEMA).fit_transform(frame), y, sample_weight=weights)
    without = ignored.fit(frame, y)[-1]
    assert routed[-1].coef_ == pytest.approx(by_hand.coef_)
    assert not np.allclose(routed[-1].coef_, without.coef_)
    assert search.best_estimator_.coef_.shape == by_hand.coef_.shape


@pytest.mark.filterwarnings("ignore::confide.errors.BudgetWarning")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_every_fit_of_a_search_is_charged_to_the_file(people, tmp_path, n_jobs):
    """Folds, candidates and the last fit, from one process or several; cross_val_score too."""
    frame, y = people
    ledger = Ledger(tmp_path / "study.db", limit=PureDP(3.0))
    model = LogisticRegression(0.25, schema=SCHEMA, ledger=ledger)
    search = GridSearchCV(model, {"alpha": [0.05, 0.1]}, cv=3, n_jobs=n_jobs).fit(frame, y)
    assert len(ledger.entries()) == 7
    assert len(search.best_estimator_.ledger.entries()) == 7
    assert cross_val_score(model, frame, y, cv=3, n_jobs=n_jobs).shape == (3,)
    assert ledger.spent() == PureDP(2.5)
    with pytest.raises(BudgetExceeded):
        cross_val_score(model, frame, y, cv=3, error_score="raise")
    assert ledger.spent() == PureDP(3.0)
