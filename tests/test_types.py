"""What type checkers tell users: right calls pass under `mypy --strict`, and each wrong one is found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = """
import numpy as np

import confide

X, y = np.zeros((4, 2)), np.array([0, 1, 1, 0])
model: confide.LogisticRegression = confide.LogisticRegression(budget=1.0, classes=[0, 1]).fit(X, y)
ledger = confide.Ledger(limit=confide.ApproxDP(1.0, 1e-6))
promise: confide.Guarantee = model.guarantee_
accuracy: float = model.score(X, y)
labels = model.predict(X)
count: int = labels.shape[0]
regression = confide.Ridge(budget=confide.PureDP(1.0), target_bound=1.0, ledger=ledger)
prediction: float = float(regression.fit(X, y).predict(X)[0])
found = confide.evaluate(model, X, y, budget=1.0)
rows: int | None = found.n_rows
errors = confide.evaluate(regression, X, y, budget=1.0, n_bins=0)
squared: float | None = errors.r2.value
compared = confide.evaluate(model, X, y, budget=1.0, other=model)
gained: float | None = compared.rates["accuracy"].value
table = model.summary(adjust="holm", units="encoded")
query: str = model.to_sql("people", "duckdb")
confide.AdditiveClassifier(1.0, knots={"age": 4}, interactions=[["age", "hours"]], penalty={"age": "smooth"})
confide.Ridge(1.0, penalty=np.eye(2))
confide.Ledger(limit=confide.ApproxDP(1.0, 1e-6), accounting="renyi")
again = confide.load("model.json")
again.predict(X)
curves = confide.AdditiveClassifier(1.0, bounds=[(0, 1), (0, 1)], knots=3)
chances: float = float(curves.fit(X, y).predict_proba(X)[0, 1])
logarithms: float = float(curves.predict_log_proba(X)[0, 1])
calibrated = confide.CalibratedClassifier(model, found)
search = confide.PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, budget=1.0)
confide.audit.leaks(model, X, y)
from_files = confide.LinearSVC(1.0, schema="people.toml", ledger="study.db", neighbours="add-or-remove-one")
columns = from_files.schema.columns if from_files.schema else ()
charges: int = len(ledger.entries())
confide.LogisticRegression(budgett=1.0)  # wrong: call-arg
confide.AdditiveClassifier(1.0, knotts=3)  # wrong: call-arg
confide.nonexistent  # wrong: attr-defined
confide.Ridge(1.0, target_bound="a")  # wrong: arg-type
confide.Ledger(limits=1.0)  # wrong: call-arg
model.guarantee_.statment()  # wrong: attr-defined
confide.evaluate(model, X, y, budgett=1.0)  # wrong: call-overload
errors.auc  # wrong: attr-defined
compared.auc  # wrong: attr-defined
confide.load()  # wrong: call-arg
confide.KernelSVC(1.0, kernel="gauss")  # wrong: arg-type
confide.AdditiveRegressor(1.0, loss="hubert")  # wrong: arg-type
confide.LogisticRegression(1.0, neighbours="replace")  # wrong: arg-type
confide.LogisticRegression(1.0, mechanism="objectiv")  # wrong: arg-type
confide.Ridge(1.0, schema=3)  # wrong: arg-type
confide.PrivateSearchCV(model, {}, budget=1.0, method="best")  # wrong: arg-type
confide.AdditiveClassifier(1.0, knots="atuo")  # wrong: arg-type
confide.AdditiveClassifier(1.0, interactions="pears")  # wrong: arg-type
confide.Ridge(1.0, penalty="smoth")  # wrong: arg-type
confide.KernelSVC(1.0, n_features="many")  # wrong: arg-type
confide.Ledger(limit=1.0, accounting="rényi")  # wrong: arg-type
model.summary(adjust="holms")  # wrong: arg-type
model.predict_interval(X, target="regularized")  # wrong: arg-type
model.to_sql(dialect="postgres")  # wrong: arg-type
calibrated.to_sql(dialect="mysql")  # wrong: arg-type
confide.family([model], method="fdr_bh")  # wrong: arg-type
"""


def test_right_calls_pass_and_wrong_calls_are_found(tmp_path):
    """In a folder of its own, as a user runs it. What is known of modules is kept beside other caches."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")
    kept = Path(__file__).resolve().parents[1] / ".mypy_cache" / "calls"
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={kept}", "--no-error-summary", "calls.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = {int(line): code for line, code in re.findall(r"(?m)^calls\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout)}
    wrong = {
        number: found[1]
        for number, line in enumerate(CALLS.splitlines(), start=1)
        if (found := re.search(r"# wrong: ([\w-]+)$", line))
    }
    assert told == wrong, done.stdout + done.stderr
