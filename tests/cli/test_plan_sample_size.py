"""`confide sample-size`."""

from __future__ import annotations

import json

from confide.estimators.logistic import LogisticRegression
from confide.planning.sample_sizes import sample_size
from tests.cli.commands import refused, run


def test_the_number_of_rows_is_that_of_the_library():
    """With the options of the fit that it is for."""
    options = ("sample-size", "--features", 5, "--model", "logistic", "--epsilon", 1, "--excess", "0.1")
    expected = sample_size(LogisticRegression(1.0), 5, excess=0.1)
    document = json.loads(run(*options, "--format", "json").stdout)
    assert (document["rows"], document["alpha"], document["mechanism"]) == (
        expected.n_rows,
        expected.plan.alpha,
        expected.plan.mechanism,
    )
    text = run(*options).stdout
    assert text.startswith(f"{expected.n_rows:,} rows suffice\n")
    assert f"--alpha {expected.plan.alpha:.6g} --mechanism objective --no-centre" in text
    new_rows = sample_size(LogisticRegression(1.0), 5, excess=0.1, population=True).n_rows
    assert json.loads(run(*options, "--population", "--format", "json").stdout)["rows"] == new_rows > expected.n_rows
    by_bound = sample_size(LogisticRegression(1.0), 5, excess=0.1, by="excess_risk_bound")
    document = json.loads(run(*options, "--by", "excess-risk-bound", "--format", "json").stdout)
    assert document["rows"] == by_bound.n_rows < new_rows
    assert document["bound"]["excess_risk"] <= 0.1
    assert "mean loss on new rows at most" in run(*options, "--by", "excess-risk-bound").stdout


def test_what_cannot_be_had_is_refused():
    """In words of options."""
    options = ("sample-size", "--features", 5, "--model", "logistic", "--epsilon", 1)
    assert "--excess" in refused(*options)
    assert "--excess must" in refused(*options, "--excess", "-1")
    assert "--reference-norm must" in refused(*options, "--excess", "0.1", "--reference-norm", "0")
    assert "excess-risk-bound" in refused(*options, "--excess", "0.1", "--by", "hope")
    assert "either --features or --schema" in refused("sample-size", "--epsilon", 1, "--excess", "0.1")
