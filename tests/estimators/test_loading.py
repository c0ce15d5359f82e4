"""Models as files: what is saved comes back, and nothing else is in the file."""

from __future__ import annotations

import copy
import json
import math
import os
import stat
import sys

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ZCDP, ApproxDP, BoxBound, FileError, GroupBound, Ledger, LogisticRegression, Schema

SCHEMA = Schema(
    columns={"age": {"low": 0, "high": 100}, "job": {"categories": ["a", "b", "c"], "missing": True}},
    target={"column": "y", "negative": "no", "positive": "yes"},
)


def table(n=200):
    """Raw columns and labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(0, 100, n), "job": rng.choice(["a", "b", "c"], n)})
    return frame, np.where(frame["age"] > 50, "yes", "no")


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"budget": float("inf")},
        {"row_norm": GroupBound((5,), (2.0,))},
        {"alpha": 0.1, "fit_intercept": False, "classes": [0, 1], "mechanism": "output"},
        {"neighbours": "add-or-remove-one", "n_rows_bounds": (1000, 9000)},
        {"random_state": 4},
        {"row_norm": float("inf"), "budget": float("inf")},
        {"class_weight": {np.int64(0): 0.5, 1: 3}, "max_sample_weight": 2.0},
        {"budget": ApproxDP(1.0, 1e-6), "row_norm": GroupBound((3, 2), (1.0, 0.5), (True, False))},
        {"budget": ZCDP(0.3), "max_rows_per_person": 2, "row_norm": BoxBound([1.0] * 5)},
    ],
    ids=str,
)
def test_a_saved_model_comes_back_equal(rows, tmp_path, parameters):
    """Predictions, guarantee, weights to the last bit, and public parameters; a second save gives the same file."""
    X, y = rows
    model = LogisticRegression(**parameters).fit(X, y)
    path = tmp_path / "model.json"
    model.save(path)
    again = confide.load(path)
    assert np.array_equal(again.coef_, model.coef_)
    assert np.array_equal(again.predict_proba(X * 3), model.predict_proba(X * 3))
    assert again.guarantee_ == model.guarantee_
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.alpha_ == model.alpha_
    assert again.ledger is None
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()


def test_a_model_with_a_schema_carries_it(tmp_path):
    """The loaded model takes raw columns, and names its coefficients."""
    frame, label = table()
    model = LogisticRegression(1.0, schema=SCHEMA, ledger=Ledger(limit=1.0)).fit(frame, label)
    model.save(tmp_path / "m.json")
    again = confide.load(tmp_path / "m.json")
    assert again.schema == SCHEMA
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert again.coefficient_names_.tolist() == model.coefficient_names_.tolist()
    assert again.feature_names_in_.tolist() == ["age", "job"]


def test_knots_and_interactions_come_back(tmp_path):
    """The loaded model encodes as the saved one did; a changed knot that keeps the columns apart is noticed."""
    columns = {"age": {"low": 0, "high": 100, "knots": [25, 60.5]}, "job": {"categories": ["a", "b", "c"]}}
    schema = confide.Schema(columns=columns, interact=[["age", "job"]])
    frame = pd.DataFrame({"age": np.linspace(0, 100, 400), "job": ["a", "b", "c", "z"] * 100})
    path = tmp_path / "m.json"
    model = LogisticRegression(1.0, schema=schema).fit(frame, (frame["age"] > 50).astype(int))
    model.save(path)
    again = confide.load(path)
    assert again.schema == schema
    assert "age~60.5:job=c" in again.coefficient_names_.tolist()
    assert np.array_equal(again.decision_function(frame), model.decision_function(frame))
    spoil(path, lambda document: document["content"]["schema"]["columns"]["age"].update(knots=[25, 61]))
    with pytest.raises(FileError, match="columns"):
        confide.load(path)
    spoil(path, lambda document: document["content"]["schema"]["columns"]["age"].update(knots=[25, 60.5], degree=3))
    with pytest.raises(FileError, match="understand"):
        confide.load(path)


def test_coarse_interactions_and_random_features_come_back(tmp_path):
    """The loaded model maps rows as the saved one did. Features that the schema does not describe are noticed."""
    columns = {"age": {"low": 0, "high": 100, "knots": 3}, "hours": {"low": 0, "high": 80}}
    interact = [{"columns": ["age", "hours"], "knots": 1, "scale": 0.5}]
    features = {"number": 6, "length_scale": 1.5, "norm": 2.0}
    schema = confide.Schema(columns, interact=interact, random_features=features)
    frame = pd.DataFrame({"age": np.linspace(0, 100, 400), "hours": np.linspace(0, 80, 400) ** 2 % 80})
    path = tmp_path / "m.json"
    model = LogisticRegression(1.0, schema=schema).fit(frame, (frame["age"] > 50).astype(int))
    model.save(path)
    again = confide.load(path)
    assert again.schema == schema
    assert again.coefficient_names_.tolist()[-1] == "sin2"
    assert np.array_equal(again.decision_function(frame), model.decision_function(frame))
    for change in ({"seed": 1}, {"norm": 3.0}, {"number": 4}):
        model.save(path, overwrite=True)
        spoil(path, lambda document, change=change: document["content"]["schema"]["random_features"].update(change))
        with pytest.raises(FileError, match=r"fit|match"):
            confide.load(path)
    model.save(path, overwrite=True)
    spoil(path, lambda document: document["content"].update(fourier_map=None))
    with pytest.raises(FileError, match=r"fit|match"):
        confide.load(path)


def spoil(path, change):
    """Change the document, with a checksum that fits unless the change is to the checksum."""
    from confide.files import _checksum

    document = json.loads(path.read_text())
    change(document)
    if document.get("checksum") != "wrong":
        document["checksum"] = _checksum(document["content"])
    path.write_text(json.dumps(document))


def test_a_kernel_of_a_file_that_says_no_norm_of_features_has_the_features_alone(tmp_path):
    """So it was before columns stood beside them. A refit has the same map."""
    schema = confide.Schema({"a": {"low": -1, "high": 1}, "b": {"low": -1, "high": 1}})
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (200, 2)), columns=["a", "b"])
    labels = frame["a"].to_numpy() > 0.0
    model = confide.KernelSVC(math.inf, schema=schema, n_features=8, feature_norm=None).fit(frame, labels)
    model.save(tmp_path / "model.json")
    spoil(tmp_path / "model.json", lambda document: document["content"]["parameters"].pop("feature_norm"))
    loaded = confide.load(tmp_path / "model.json")
    assert loaded.feature_norm == "auto"
    assert np.array_equal(loaded.decision_function(frame), model.decision_function(frame))
    assert loaded.refit(frame, labels, budget=math.inf).coef_.shape == (1, 8)


SPOILED = {
    "kind": lambda d: d.update(kind="other"),
    "version": lambda d: d.update(format_version=99),
    "checksum": lambda d: d.update(checksum="wrong"),
    "estimator": lambda d: d["content"].update(estimator="Oracle"),
    "missing part": lambda d: d["content"].pop("coef"),
    "shape": lambda d: d["content"].update(coef=[[1.0, 2.0]]),
    "text weights": lambda d: d["content"].update(coef=[["a"] * 5]),
    "guarantee version": lambda d: d["content"]["guarantee"].update(version=7),
    "row bound": lambda d: d["content"].update(row_bound={"kind": "cube"}),
    "guarantee": lambda d: d["content"].update(guarantee=None),
    "void": lambda d: d["content"]["guarantee"].update(void=3),
    "classes": lambda d: d["content"].update(classes=[0, 1, 2]),
    "alpha": lambda d: d["content"].update(alpha=[]),
    "parameter": lambda d: d["content"]["parameters"].update(warm_start=True),
    "parameter of another kind of model": lambda d: d["content"]["parameters"].update(kernel="rbf"),
    "missing parameter": lambda d: d["content"]["parameters"].pop("budget"),
    "unknown part": lambda d: d["content"].update(calibration=[1.0]),
    "unknown part of the document": lambda d: d.update(signature="x"),
    "unknown part of the row bound": lambda d: d["content"]["row_bound"].update(centre=[0.0]),
    "unknown part of the guarantee": lambda d: d["content"]["guarantee"].update(conditions=["x"]),
    "unknown part of the budget": lambda d: d["content"]["guarantee"]["budget"].update(order=2),
}


@pytest.mark.parametrize("name", SPOILED)
def test_files_that_are_not_understood_are_refused(rows, tmp_path, name):
    """One line, whatever is wrong with them."""
    path = tmp_path / "m.json"
    LogisticRegression(1.0).fit(*rows).save(path)
    spoil(path, SPOILED[name])
    with pytest.raises(FileError) as caught:
        confide.load(path)
    assert len(str(caught.value).splitlines()) == 1


@pytest.fixture(scope="module")
def every_kind():
    """Fitted models whose files hold every part there is."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (6000, 2))
    y, kinds = (X[:, 0] > 0).astype(int), np.array(["a", "b", "c"])[np.arange(6000) % 3]
    groups = GroupBound((1, 1), (1.0, 0.5))
    schema = Schema(
        columns={
            "age": {"low": 0, "high": 100, "knots": [25, 60]},
            "size": {"low": 0, "high": 9, "scale": "log"},
            "job": {"categories": ["a", "b", "c"], "other": True},
        },
        target={"column": "y", "negative": "no", "positive": "yes"},
        interact=[["age", "job"]],
    )
    frame, label = table(6000)
    return {
        "intervals": LogisticRegression(4.0, inference_share=0.3).fit(X, y),
        "groups": LogisticRegression(ApproxDP(2.0, 1e-6), row_norm=groups, inference_share=0.3).fit(X, y),
        "schema": LogisticRegression(ZCDP(1.0), schema=schema).fit(frame.assign(size=1.0), label),
        "weights": LogisticRegression(1.0, class_weight={0: 0.5, 1: 1.0}).fit(X, y),
        "kernel": confide.KernelSVC(5.0, n_features=8).fit(X, y),
        "classes": LogisticRegression(8.0, classes=["a", "b", "c"], inference_share=0.3).fit(X, kinds),
        "ridge": confide.Ridge(2.0, intervals=True, target_bound=1.0).fit(X, X[:, 0]),
        "huber": confide.HuberRegressor(1.0, target_bound=1.0).fit(X, X[:, 0]),
        "counts": confide.PoissonRegressor(1.0, target_bound=10.0).fit(X, y),
        "void": LogisticRegression(float("inf")).fit(X, y),
    }


def objects_in(value, path=()):
    """Paths of the objects of a JSON value."""
    if isinstance(value, dict):
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        yield from objects_in(part, (*path, key))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def test_an_unknown_part_is_refused_at_every_level(every_kind, tmp_path):
    """In every object of every kind of file a name that no version knows; in some also each name that stands elsewhere."""
    from confide.files import document_text, read_document

    documents = {}
    for kind, model in every_kind.items():
        model.save(tmp_path / f"{kind}.json")
        documents[kind] = read_document(tmp_path / f"{kind}.json")
    known = copy.deepcopy({name: at(d, p)[name] for d in documents.values() for p in objects_in(d) for name in at(d, p)})
    path, accepted = tmp_path / "spoiled.json", []
    for kind, document in documents.items():
        path.write_text(document_text(document))
        confide.load(path)
        for place in list(objects_in(document)):
            elsewhere = known if kind in ("schema", "ridge", "groups") else {}
            for name, value in ({"no_such_part": 1, "nor_this": None} | elsewhere).items():
                if name in at(document, place):
                    continue
                at(document, place)[name] = value
                path.write_text(document_text(document))
                del at(document, place)[name]
                try:
                    confide.load(path)
                    accepted.append((kind, place, name))
                except FileError:
                    pass
    assert accepted == []


CONTRADICTIONS = {
    "two budgets": ("intervals", lambda c: c["parameters"]["budget"].update(epsilon=1.0)),
    "classes of a regressor": ("huber", lambda c: c.update(classes=[0, 1])),
    "links of a ball": ("intervals", lambda c: c["intervals"]["noises"][0].update(linked=[True])),
    "a target's classes": ("schema", lambda c: c["schema"]["target"].update(classes=None)),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_part_that_would_be_left_out_is_refused(every_kind, tmp_path, name):
    """What a file says and its model would not say again was not understood."""
    kind, change = CONTRADICTIONS[name]
    path = tmp_path / "m.json"
    every_kind[kind].save(path)
    assert confide.load(path).guarantee_
    spoil(path, lambda document: change(document["content"]))
    with pytest.raises(FileError):
        confide.load(path)


def test_a_part_that_stands_twice_is_refused(rows, tmp_path):
    """Of two, JSON readers keep one, and the checksum would fit."""
    path = tmp_path / "m.json"
    LogisticRegression(1.0).fit(*rows).save(path)
    text = path.read_text()
    path.write_text(text.replace('"alpha": ', '"alpha": 7.0, "alpha": ', 1))
    with pytest.raises(FileError, match="twice"):
        confide.load(path)


def test_a_file_is_replaced_when_asked_alone(rows, tmp_path):
    """By save of a model and of a search, and for a page; a file without write permission never is."""
    from confide.report.writing import write_report

    X, y = rows
    model = LogisticRegression(1.0).fit(X, y)
    search = confide.PrivateSearchCV(LogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, budget=1.0).fit(X, y)
    path = tmp_path / "m.json"
    for write in (model.save, search.save, lambda *a, **o: write_report(model, *a, **o)):
        path.write_text("mine")
        with pytest.raises(FileError, match="overwrite=True"):
            write(path)
        path.chmod(0o444)
        with pytest.raises(FileError, match="no write permission"):
            write(path, overwrite=True)
        assert path.read_text() == "mine"
        path.chmod(0o644)
        write(path, overwrite=True)
        assert path.read_text() != "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


def test_a_name_as_long_as_a_name_may_be_can_be_written(rows, tmp_path):
    """The unfinished file beside it has a short name of its own."""
    path = tmp_path / ("m" * 250 + ".json")
    LogisticRegression(1.0).fit(*rows).save(path)
    assert confide.load(path).guarantee_.void is None


def test_reordered_columns_are_noticed(tmp_path):
    """The order of the schema's columns is the order of the coefficients."""
    path = tmp_path / "m.json"
    LogisticRegression(1.0, schema=SCHEMA).fit(*table()).save(path)

    def reorder(document):
        columns = document["content"]["schema"]["columns"]
        document["content"]["schema"]["columns"] = dict(reversed(columns.items()))

    spoil(path, reorder)
    with pytest.raises(FileError, match="columns"):
        confide.load(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"[" * 100_000, b"\xff\xfe\x00", b'{"kind": "confide-model"'])
def test_damaged_files_are_refused(tmp_path, content):
    """Empty, cut short, or not text."""
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(FileError):
        confide.load(path)


@pytest.mark.parametrize("depth", [900, 980])
def test_parts_within_parts_are_refused_in_words(rows, tmp_path, depth):
    """A forged file whose bound on rows holds another, and so on: more than Python reads, adds up or understands."""
    from confide.files import _checksum

    path = tmp_path / "m.json"
    LogisticRegression(1.0, row_norm=1.0).fit(*rows).save(path)
    document, limit = json.loads(path.read_text()), sys.getrecursionlimit()
    form = {"scales": [1.0] * rows[0].shape[1], "blocks": []}
    for _ in range(depth):
        document["content"]["row_bound"] = {
            "kind": "form", "norm": 1.0, "form": form, "inner": document["content"]["row_bound"]
        }  # fmt: skip
    try:
        sys.setrecursionlimit(10_000)
        document["checksum"] = _checksum(document["content"])
        path.write_text(json.dumps(document))
    finally:
        sys.setrecursionlimit(limit)
    with pytest.raises(FileError):
        confide.load(path)


def test_missing_and_unwritable_files_are_named(rows, tmp_path):
    """The path, and what the system said."""
    with pytest.raises(FileError, match="nowhere"):
        confide.load(tmp_path / "nowhere.json")
    with pytest.raises(FileError, match="cannot write"):
        LogisticRegression(1.0).fit(*rows).save(tmp_path / "no" / "such" / "folder.json")


def test_a_file_is_replaced_in_one_step_and_readable_as_any_new_file(rows, tmp_path):
    """No partial file is left behind; permissions follow the umask."""
    model = LogisticRegression(1.0).fit(*rows)
    path = tmp_path / "m.json"
    path.write_text("old")
    model.save(path, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_links_devices_and_permissions_survive_a_save(rows, tmp_path):
    """A link keeps its target, an old file its permissions; what is no ordinary file is refused."""
    model = LogisticRegression(1.0).fit(*rows)
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    model.save(link, overwrite=True)
    assert link.is_symlink()
    assert confide.load(real).guarantee_ == model.guarantee_
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="ordinary"):
        model.save(pipe, overwrite=True)
    assert pipe.is_fifo()
