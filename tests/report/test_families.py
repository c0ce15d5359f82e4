"""Several analyses as one family: what is in it, what may not be left out, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import confide
from confide import ApproxDP, FileError, Ledger, LinearSVC, LogisticRegression, ParameterError
from confide.files import sha256_of
from confide.inference.table import adjusted_p_values
from confide.report.families import Family, family

BUDGET = ApproxDP(4.0, 1e-5)
rng = np.random.default_rng(5)
X = rng.uniform(-0.5, 0.5, size=(4000, 2))
Y = (3.0 * X[:, 0] + rng.logistic(size=4000) > 0.0).astype(int)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a ledger, the files of two models that it charged, and two charges that bought no test."""
    folder = tmp_path_factory.mktemp("study")
    ledger = Ledger(folder / "study.db", limit=ApproxDP(40.0, 1e-3))
    settings = {"classes": [0, 1], "row_norm": 1.0, "ledger": ledger}
    LogisticRegression(BUDGET, inference_share=0.3, **settings).fit(X, Y).save(folder / "whole.json")
    LogisticRegression(BUDGET, interest=["x1"], **settings).fit(X, Y).save(folder / "one.json")
    LogisticRegression(BUDGET, **settings).fit(X, Y).save(folder / "bare.json")
    ledger.charge(ApproxDP(0.1, 1e-6), purpose="evaluate")
    return folder


def files(folder):
    return [folder / name for name in ("whole.json", "one.json")]


@pytest.mark.parametrize("method", ["holm", "bonferroni", "fdr_by"])
def test_p_values_are_corrected_over_all_analyses(place, method):
    """As one family of the p-values of each model's own table; intercepts are in no family."""
    found = family(files(place), method=method)
    tables = [confide.load(path).summary() for path in files(place)]
    own = [one.p_value for table in tables for one in table.coefficients if one.unit]
    assert [one.p_value for one in found.hypotheses] == own
    assert [one.adjusted_p_value for one in found.hypotheses] == pytest.approx(adjusted_p_values(own, method))
    assert [(one.analysis, one.name) for one in found.hypotheses] == [("whole", "x0"), ("whole", "x1"), ("one", "x1")]
    assert found.rejected(0.05)[0].name == "x0"


def test_all_intervals_hold_together_by_bonferronis_inequality(place):
    """Those of each table at the level that the number of tests demands."""
    found = family(files(place), level=0.9)
    whole = confide.load(place / "whole.json").summary(level=1.0 - 0.1 / 3.0)
    assert found.hypotheses[0].low == pytest.approx(whole.coefficients[0].low)
    assert found.hypotheses[1].high == pytest.approx(whole.coefficients[1].high)


def test_a_family_may_be_about_some_columns_alone(place):
    """Then fewer tests are corrected for; a column that no analysis has is refused."""
    found = family({"A": place / "whole.json", "B": confide.load(place / "one.json")}, columns=["x1"])
    assert [(one.analysis, one.name) for one in found.hypotheses] == [("A", "x1"), ("B", "x1")]
    with pytest.raises(ParameterError, match='no analysis has a coefficient of "x7"'):
        family(files(place), columns=["x1", "x7"])
    with pytest.raises(ParameterError, match="columns must be names"):
        family(files(place), columns="x1")


def test_p_values_from_elsewhere_count(place):
    """As tests without an estimate; each needs a name."""
    found = family({"whole": place / "whole.json", "survey in R": 0.011})
    assert found.hypotheses[-1].p_value == 0.011
    assert math.isnan(found.hypotheses[-1].estimate)
    assert found.to_dict()["tests"][-1]["estimate"] is None
    for wrong in ([0.5], {"a": 1.5}, {"a": True}, {"a": "no.json"}):
        with pytest.raises((ParameterError, FileError)):
            family(wrong)


def test_no_fit_of_a_ledger_may_be_left_out(place):
    """Python's charges name no file, so each model that was charged must be given; the rest is listed."""
    ledger = place / "study.db"
    with pytest.raises(ParameterError, match=r"charge 2 of the ledger is a fit .* no file with its checksum"):
        family([place / "whole.json"], ledger=ledger)
    with pytest.raises(ParameterError, match='"bare" released nothing for intervals'):
        family([*files(place), place / "bare.json"], ledger=ledger)
    found = family({"first": place / "whole.json", 2: 0.2, 3: 0.04}, ledger=Ledger(ledger))
    assert [one.analysis for one in found.hypotheses] == ["first", "first", "charge 2", "charge 3"]
    assert found.left_out == ("Charge 4 of the ledger (evaluate) is no fit and has no test in the family.",)
    assert "charge 1 of the ledger" in found.analyses["first"]


def test_a_ledger_that_names_files_needs_nothing_else(place, tmp_path):
    """The files of its charges are found beside it and compared by their checksums; purposes name families."""
    ledger = Ledger(tmp_path / "named.db", limit=ApproxDP(40.0, 1e-3))
    for purpose, name, model in (
        ("primary: treatment", "a.json", LogisticRegression(BUDGET, interest=["x0"], classes=[0, 1], row_norm=1.0)),
        ("secondary", "b.json", LinearSVC(BUDGET, inference_share=0.3, classes=[0, 1], row_norm=1.0)),
        ("exploratory", "c.json", LogisticRegression(BUDGET, classes=[0, 1], row_norm=1.0)),
    ):
        model.fit(X, Y).save(tmp_path / name)
        details = {"release": f"{type(model).__name__}.fit", "model": name}
        ledger.charge(BUDGET, purpose=purpose, details=details)
        ledger.note(ledger.last_charge, {"sha256": sha256_of(tmp_path / name)})
    found = family(ledger=tmp_path / "named.db")
    assert [(one.analysis, one.name) for one in found.hypotheses] == [("a", "x0"), ("b", "x0"), ("b", "x1")]
    assert any("bought no intervals" in sentence for sentence in found.left_out)
    primary = family(ledger=tmp_path / "named.db", purpose="primary")
    assert [one.analysis for one in primary.hypotheses] == ["a"]
    assert primary.hypotheses[0].adjusted_p_value == primary.hypotheses[0].p_value
    assert sum("another purpose" in sentence for sentence in primary.left_out) == 2
    (tmp_path / "b.json").write_text((place / "whole.json").read_text())
    with pytest.raises(ParameterError, match="no file with its checksum"):
        family(ledger=tmp_path / "named.db")
    with pytest.raises(ParameterError, match='"other" cannot be found among the charges'):
        family({"other": place / "one.json"}, ledger=tmp_path / "named.db", purpose="primary")


def test_methods_that_need_to_know_the_dependence_are_refused(place):
    """Releases from the same rows share their sampling errors."""
    for method in ("fdr_bh", "single-step"):
        with pytest.raises(ParameterError, match="not known over several releases"):
            family(files(place), method=method)
    with pytest.raises(ParameterError, match="purpose chooses"):
        family(files(place), purpose="a")
    with pytest.raises(ParameterError, match="has no test"):
        family([])
    with pytest.raises(ParameterError, match="level"):
        family(files(place), level=2.0)
    with pytest.raises(ParameterError, match="same name"):
        family([place / "one.json", place / "one.json"])
    for wrong in (place / "one.json", confide.load(place / "one.json"), 3):
        with pytest.raises(ParameterError, match="must map names"):
            family(wrong)
    with pytest.raises(ParameterError, match="size"):
        family(files(place)).rejected(0.0)


def test_it_is_shown_as_text_frame_json_and_html(place):
    """All say the same, and the notes say what may be concluded."""
    found = family({"A <&>": place / "whole.json", "B": place / "one.json"})
    assert isinstance(found, Family)
    text = str(found)
    assert max(map(len, text.split("\nThe family has")[0].splitlines())) <= 125
    assert "whatever these have to do with each other" in " ".join(text.split())
    assert found.to_frame().shape == (3, 8)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["method"] == "holm"
    assert "A &lt;&amp;&gt;" in found.to_html() == found._repr_html_()
