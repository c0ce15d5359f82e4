"""Curves as block characters, and the table of effects."""

from __future__ import annotations

from confide.effects.picture import common_limits, extremes, sparkline
from confide.estimators.released import effects_of
from tests.cli.commands import run
from tests.effects.examples import labels, model, schema, table


def test_a_sparkline_rises_with_its_curve():
    found = {each.name: each for each in effects_of(model()).with_bands()}
    limits = common_limits(list(found.values()))
    line = sparkline(found["age"], limits)
    assert len(line) == 16
    assert sorted(line) == list(line)
    assert set(line) <= set("▁▂▃▄▅▆▇█")
    assert sparkline(found["work"], limits) == ""
    least, largest = extremes(found["age"])
    assert least.startswith("20 -")
    assert largest.startswith("80 +")
    assert common_limits([found["work"]]) == (0.0, 1.0)


def test_inspect_shows_the_table_of_effects(tmp_path, monkeypatch):
    """Within 80 columns."""
    import confide

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    frame = table()
    confide.LogisticRegression(50.0, schema=schema()).fit(frame, labels(frame)).save("model.json")
    text = run("inspect", "model.json").stdout
    assert "least at" in text
    assert next(line for line in text.splitlines() if line.startswith("age ")).count("▁") > 0
    assert max(map(len, text.splitlines())) <= 80
