"""What scripts/fuzz.py tries: one class for each thing that reads files, messages or arguments."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from scipy import sparse

import confide
from confide.data.federated import packed, received
from confide.features.schema import Schema
from confide.files import _checksum
from confide.studies.study import Study

SCHEMA = """
target = { column = "income", negative = "no", positive = "yes" }
[columns]
age = { low = 17, high = 90, knots = 3 }
gain = { low = 0, high = 99999, scale = "log", missing = true }
"work class" = { categories = ["Private", "Public", "Other"], other = true }
"""
STUDY = """
[study]
name = "income"
[data]
file = "people.csv"
schema = "people.toml"
[budget]
epsilon = 1.0
delta = 1e-6
[ledger]
file = "study.db"
[model]
kind = "logistic"
[outputs]
model = "model.json"
report = "report.html"
"""
CSV = "age,gain,work class,income\n39,2174,Private,no\n50,0,Public,yes\n38,,Other,no\n53,14,Private,yes\n28,0,Never,no\n"
ODD_NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, True, 0.1)
ODD_TEXTS = (
    "",
    " ",
    "\x00",
    "x" * 5000,
    "\ud83d\ude00",
    "=1+1",
    "../../x",
    "nan",
    "1e999",
    "\u202e",
    "<b>",
    "'\"",
    "{",
    "%s",
)
_ODD_BYTES = (b"[" * 3000, b"9" * 5000, b"\xff\xfe", b"\x00" * 8, b"{a={" * 300, b'"')


class Target(Protocol):
    """Something to be tried."""

    name: ClassVar[str]

    def try_case(self, draws: random.Random) -> None:
        """Try one case, the same for the same draws. It returns, or raises what the tried code raised."""


def _odd_value(draws: random.Random) -> Any:
    made: tuple[Callable[[], Any], ...] = (
        lambda: draws.choice(ODD_NUMBERS),
        lambda: draws.choice(ODD_TEXTS),
        lambda: None,
        list,
        dict,
        lambda: [draws.choice(ODD_NUMBERS) for _ in range(draws.randrange(5))],
        lambda: {draws.choice(ODD_TEXTS): draws.choice(ODD_NUMBERS)},
        lambda: [[[]]],
    )
    return draws.choice(made)()


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all parts of a nested value of dicts and lists."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in _places(part, (*path, key)))]


def _broken(value: Any, draws: random.Random) -> Any:
    """A copy of a nested value with one to three parts changed, removed, renamed or repeated."""
    value = json.loads(json.dumps(value))
    for _ in range(draws.choice((1, 1, 1, 2, 3))):
        place = draws.choice(_places(value))
        if not place:
            continue
        parent = value
        for key in place[:-1]:
            parent = parent[key]
        key = place[-1]
        kind = draws.randrange(6)
        if kind == 0:
            del parent[key]
        elif kind == 1 and isinstance(parent, dict):
            parent[draws.choice(ODD_TEXTS)] = parent.pop(key)
        elif kind == 2 and isinstance(parent, list):
            parent.append(parent[key])
        elif kind == 3 and isinstance(parent[key], (int, float)):
            parent[key] = draws.choice((parent[key] * 2, -parent[key], parent[key] + 1, str(parent[key]), [parent[key]]))
        else:
            parent[key] = _odd_value(draws)
    return value


def _broken_bytes(content: bytes, draws: random.Random) -> bytes:
    """The bytes with some changed, removed, repeated or inserted."""
    changed = bytearray(content)
    for _ in range(draws.choice((1, 1, 2, 8))):
        at = draws.randrange(len(changed) + 1)
        kind = draws.randrange(5)
        if kind == 0 and changed:
            changed[at % len(changed)] = draws.randrange(256)
        elif kind == 1:
            del changed[at : at + draws.choice((1, 4, 100))]
        elif kind == 2:
            changed[at:at] = changed[at : at + draws.choice((1, 20, 300))]
        elif kind == 3:
            changed[at:at] = draws.choice(ODD_TEXTS).encode("utf-8", "surrogatepass")
        else:
            changed[at:at] = draws.choice(_ODD_BYTES)
    return bytes(changed)


def _table(n_rows: int = 60) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    draws = np.random.default_rng(0)
    rows = draws.uniform(-0.5, 0.5, size=(n_rows, 3))
    return rows, (rows[:, 0] > 0).astype(int)


class ModelFiles:
    """`confide.load`."""

    name = "model-file"

    def __init__(self, folder: Path) -> None:
        rows, classes = _table()
        frame = pd.DataFrame({"age": rows[:, 0] * 40 + 50, "work class": np.where(classes == 1, "Private", "Public")})
        schema = Schema({"age": {"low": 17, "high": 90, "knots": 3}, "work class": {"categories": ["Private", "Public"]}})
        letters = np.array(["a", "b", "c"] * (len(rows) // 3))
        models = [
            confide.LogisticRegression(8.0, classes=[0, 1], random_state=0).fit(rows, classes),
            confide.LinearSVC(confide.ApproxDP(8.0, 1e-3), classes=["a", "b", "c"], random_state=0).fit(rows, letters),
            confide.Ridge(confide.ZCDP(2.0), target_bound=1.0, random_state=0).fit(rows, rows[:, 1]),
            confide.KernelSVC(8.0, n_features=4, classes=[0, 1], random_state=0).fit(rows, classes),
            confide.AdditiveClassifier(8.0, schema=schema, classes=[0, 1], random_state=0).fit(frame, classes),
        ]
        self._path = folder / "model.json"
        self._documents = []
        for number, model in enumerate(models):
            model.save(folder / f"seed{number}.json")
            self._documents.append((folder / f"seed{number}.json").read_bytes())

    def try_case(self, draws: random.Random) -> None:
        """A file with broken bytes, or with broken content and a checksum that fits it."""
        content = draws.choice(self._documents)
        if draws.random() < 0.3:
            self._path.write_bytes(_broken_bytes(content, draws))
        else:
            document = json.loads(content)
            document["content"] = _broken(document["content"], draws)
            document["checksum"] = _checksum(document["content"])
            self._path.write_text(json.dumps(document), encoding="utf-8", errors="surrogatepass")
        model = confide.load(self._path)
        rows = _table(3)[0]
        if model.n_features_in_ == rows.shape[1] and getattr(model, "schema", None) is None:
            model.predict(rows)
        model.guarantee_.statement()


class Schemas:
    """`Schema.from_toml`."""

    name = "schema"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "fuzzed.toml"

    def try_case(self, draws: random.Random) -> None:
        """A file of broken text; if it is understood, it is written again and read as the same schema."""
        self._path.write_bytes(_broken_bytes(SCHEMA.encode(), draws))
        schema = Schema.from_toml(self._path)
        self._path.write_text(schema.to_toml(), encoding="utf-8")
        assert Schema.from_toml(self._path) == schema
        str(schema)


class SchemaValues:
    """`Schema.from_dict`: valid TOML with odd values."""

    name = "schema-values"

    def __init__(self, folder: Path) -> None:
        path = folder / "seed.toml"
        path.write_text(SCHEMA, encoding="utf-8")
        self._described = Schema.from_toml(path).to_dict()

    def try_case(self, draws: random.Random) -> None:
        """A description with odd values."""
        str(Schema.from_dict(_broken(self._described, draws)))


class Studies:
    """`Study.from_toml`."""

    name = "study"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "study.toml"

    def try_case(self, draws: random.Random) -> None:
        """A file of broken text."""
        self._path.write_bytes(_broken_bytes(STUDY.encode(), draws))
        Study.from_toml(self._path)


class Tables:
    """Rows of a broken CSV or Parquet file, up to the charge."""

    name = "table"

    def __init__(self, folder: Path) -> None:
        path = folder / "table-seed.toml"
        path.write_text(SCHEMA, encoding="utf-8")
        self._schema = Schema.from_toml(path)
        frame = pd.read_csv(io.StringIO(CSV))
        stream = io.BytesIO()
        frame.to_parquet(stream)
        self._seeds = {".csv": CSV.encode(), ".parquet": stream.getvalue()}
        self._folder = folder

    def try_case(self, draws: random.Random) -> None:
        """Open, and fit on a ledger that has nothing left, so that rows are checked and nothing is released."""
        suffix = draws.choice(tuple(self._seeds))
        path = self._folder / f"table{suffix}"
        path.write_bytes(_broken_bytes(self._seeds[suffix], draws))
        ledger = confide.Ledger(limit=0.5)
        model = confide.LogisticRegression(1.0, schema=self._schema, ledger=ledger)
        try:
            model.fit(confide.open_rows(path, self._schema))
        finally:
            assert ledger.spent().epsilon == 0.0


class Ledgers:
    """`Ledger` on a broken file."""

    name = "ledger"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "fuzzed.db"
        seed = folder / "ledger-seed.db"
        ledger = confide.Ledger(seed, limit=9.0)
        rows, classes = _table()
        for _ in range(3):
            confide.LogisticRegression(1.0, classes=[0, 1], ledger=ledger).fit(rows, classes)
        self._seed = seed.read_bytes()
        self._spent = ledger.spent().epsilon

    def try_case(self, draws: random.Random) -> None:
        """Open the file and ask what was spent. A file that opens has lost no charge that its checksums cover."""
        for left in self._path.parent.glob("fuzzed.db*"):
            left.unlink()
        self._path.write_bytes(_broken_bytes(self._seed, draws))
        ledger = confide.Ledger(self._path)
        ledger.spent()
        ledger.entries()
        ledger.verify()


class _Wire:
    """A connection whose messages are given beforehand."""

    def __init__(self, *messages: bytes) -> None:
        self._messages = list(messages)
        self.sent: list[bytes] = []

    def send_bytes(self, message: bytes, /) -> None:
        """Keep the message."""
        self.sent.append(message)

    def recv_bytes(self, maxlength: int | None = None, /) -> bytes:
        """The next message, or the end of the connection."""
        if not self._messages:
            raise EOFError
        return self._messages.pop(0)


class Messages:
    """Messages of the coordinator to a party, and of a party to the coordinator."""

    name = "message"

    def __init__(self, folder: Path) -> None:
        del folder
        self._rows, self._classes = _table()
        self._schema = Schema(
            columns={name: {"low": -1, "high": 1} for name in "abc"}, target={"column": "y", "negative": 0, "positive": 1}
        )
        self._frame = pd.DataFrame(self._rows, columns=list("abc"))
        self._model = confide.LogisticRegression(1.0, schema=self._schema, alpha=1.0, fit_intercept=False)
        wire = _Wire()
        try:
            confide.take_part(wire, self._model, self._frame, self._classes)
        except confide.InputError:
            hello = wire.sent[0]
        self._hello = hello
        self._agreed = received(_Wire(hello), "agreed", n_numbers=0)["agreed"]

    def try_case(self, draws: random.Random) -> None:
        """A broken message: of bytes, or of arrays of odd names, types and shapes."""
        if draws.random() < 0.5:
            self._to_coordinator(draws)
        else:
            self._to_party(draws)

    def _to_party(self, draws: random.Random) -> None:
        request = {
            "agreed": np.array(draws.choice(self._agreed.ravel().tolist())), "order": np.array(1), "joint": np.zeros(0),
            "weights": np.zeros((1, 3)), "limit": np.zeros(0), "centre": np.zeros(0), "radius": np.zeros(()),
            "number": np.array(0),
        }  # fmt: skip
        confide.take_part(_Wire(self._message(request, draws), packed()), self._model, self._frame, self._classes)

    def _to_coordinator(self, draws: random.Random) -> None:
        n_rows, agreed = np.array(60), self._agreed
        hello = self._message({"n_rows": n_rows, "agreed": agreed}, draws) if draws.random() < 0.5 else self._hello
        totals = {
            "number": np.array(0), "value": np.zeros(1), "gradient": np.zeros((1, 3)), "hessian": np.zeros((1, 3, 3)),
        }  # fmt: skip
        wire = _Wire(hello, *(self._message(totals, draws) for _ in range(3)))
        ledger = confide.Ledger(limit=0.5)
        confide.LogisticRegression(1.0, schema=self._schema, alpha=1.0, fit_intercept=False, ledger=ledger).fit(
            confide.FederatedRows(self._schema, (wire,))
        )

    @staticmethod
    def _message(arrays: dict[str, Any], draws: random.Random) -> bytes:
        if draws.random() < 0.4:
            return _broken_bytes(packed(**arrays), draws)
        changed = dict(arrays)
        for _ in range(draws.choice((1, 2))):
            name = draws.choice(tuple(changed) or ("agreed",))
            kind = draws.randrange(4)
            if kind == 0:
                changed.pop(name, None)
            elif kind == 1:
                changed[draws.choice(("x", "centre", "radius", "limit", "order"))] = np.array(draws.choice(ODD_NUMBERS[:4]))
            elif kind == 2:
                shape = draws.choice(((), (0,), (1,), (2, 3), (1, 3), (1, 1, 1), (0, 3)))
                changed[name] = np.full(shape, draws.choice((0, 1, -1, np.nan, np.inf, True, 2**62)))
            else:
                changed[name] = np.array(draws.choice(ODD_TEXTS[3:8]))
        return packed(**changed)


_CLASSIFIERS = (confide.LogisticRegression, confide.LinearSVC)
_REGRESSORS = (confide.Ridge, confide.HuberRegressor, confide.PoissonRegressor)


class Arrays:
    """`fit` on arrays of every shape, type and layout."""

    name = "array"

    def __init__(self, folder: Path) -> None:
        del folder

    def try_case(self, draws: random.Random) -> None:
        """A fit on odd arrays: refused without a charge, or charged; nothing of the caller is modified."""
        noise = np.random.default_rng(draws.randrange(2**32))
        n, d = draws.choice((0, 1, 2, 5, 30)), draws.choice((0, 1, 2, 3))
        rows: Any = noise.normal(size=(n, d))
        labels: Any = noise.integers(0, 2, size=n)
        rows, labels = self._odd_rows(rows, draws), self._odd_labels(labels, draws)
        kind = draws.choice((*_CLASSIFIERS, *_REGRESSORS))
        own = {"classes": [0, 1]} if kind in _CLASSIFIERS else {"target_bound": 1.0}
        ledger = confide.Ledger(limit=1.0)
        before = (self._copied(rows), self._copied(labels))
        model = kind(1.0, alpha=10.0, ledger=ledger, **own)
        refusal: confide.ConfideError | None = None
        try:
            model.fit(rows, labels)
        except confide.ConfideError as error:
            refusal = error
        assert (ledger.spent().epsilon == 0.0) == (refusal is not None)
        for old, now in zip(before, (rows, labels), strict=True):
            assert old is None or np.array_equal(old, now, equal_nan=old.dtype.kind in "fc")
        if refusal is not None:
            raise refusal

    @staticmethod
    def _copied(value: Any) -> Any:
        return value.copy() if isinstance(value, np.ndarray) else None

    @staticmethod
    def _odd_rows(rows: Any, draws: random.Random) -> Any:
        made: tuple[Callable[[], Any], ...] = (
            lambda: rows,
            lambda: rows.astype(draws.choice(("f2", "f4", "i1", "u8", "c8", "?", "O", "U4", "M8[s]", ">f8"))),
            lambda: np.asfortranarray(rows)[::-1],
            lambda: np.repeat(rows, 2, axis=1)[:, ::2],
            lambda: rows * draws.choice((1e200, 1e-320, np.nan, np.inf, 0.0)),
            lambda: rows[..., None],
            lambda: rows.ravel(),
            lambda: rows.tolist(),
            lambda: pd.DataFrame(rows),
            lambda: pd.DataFrame(rows, columns=list("aaa"[: rows.shape[1]])),
            lambda: np.ma.masked_greater(rows, 0.5),
            lambda: np.broadcast_to(rows[:1], rows.shape) if len(rows) else rows,
            lambda: sparse.csr_array(rows),
            lambda: sparse.coo_array(rows),
            lambda: draws.choice((None, 3, "rows", b"x", object(), {}, [[1], [2, 3]], np.array(1.0), range(3))),
        )
        return draws.choice(made)()

    @staticmethod
    def _odd_labels(labels: Any, draws: random.Random) -> Any:
        made: tuple[Callable[[], Any], ...] = (
            lambda: labels,
            lambda: labels,
            lambda: labels,
            lambda: labels.astype(draws.choice(("f2", "f8", "?", "O", "U4", "c16", "u1"))),
            lambda: labels[:-1],
            lambda: labels[:, None],
            lambda: labels * 1.5,
            lambda: labels.astype(float) * math.nan,
            lambda: labels.tolist(),
            lambda: pd.Series(labels, index=range(5, 5 + len(labels))),
            lambda: draws.choice((None, 0, "y", [None] * len(labels), {}, [[]])),
        )
        return draws.choice(made)()


class Parameters:
    """Odd parameters of estimators, as seen by `plan`."""

    name = "parameter"

    def __init__(self, folder: Path) -> None:
        del folder
        others = (confide.KernelSVC, confide.AdditiveClassifier, confide.AdditiveRegressor, confide.ERMClassifier)
        self._kinds = (*_CLASSIFIERS, *_REGRESSORS, *others)

    def try_case(self, draws: random.Random) -> None:
        """One or two odd parameters, and odd numbers of rows and columns."""
        kind = draws.choice(self._kinds)
        model = kind(1.0)
        names = sorted(set(model.get_params(deep=False)) - {"ledger"})
        for name in draws.sample(names, draws.choice((1, 1, 2))):
            model.set_params(**{name: _odd_value(draws)})
        sizes = (100, 1000, 10, 1, 0, -1, 2**70, 1.5, math.nan, "x", None, True)
        known = model.get_params(deep=False)
        if "target_bound" in known and known["target_bound"] is None:
            model.set_params(target_bound=1.0)
        str(model.plan(draws.choice(sizes[:2] * 3 + sizes), draws.choice((3, 3, 3, 0, -1, 2.5, None, 10**9))))


TARGETS: dict[str, Callable[[Path], Target]] = {
    kind.name: kind for kind in (ModelFiles, Schemas, SchemaValues, Studies, Tables, Ledgers, Messages, Arrays, Parameters)
}
