"""Maps of interactions: a cell for each pair of values, coloured by its sign and as strong as its size."""

from __future__ import annotations

import re

from confide.estimators.released import effects_of
from confide.report.findings import surface_drawings
from tests.report.released import additive, logistic


def interactions():
    return [effect for effect in effects_of(additive()).with_bands() if len(effect.columns) == 2]


def test_every_pair_of_values_has_a_cell_with_its_sign_and_size():
    for effect in interactions():
        drawing = surface_drawings([effect])
        cells = re.findall(r'class="cell (more|less)"[^>]*fill-opacity="([0-9.]+)"><title>([^<]+)</title>', drawing)
        assert len(cells) == len(effect.values)
        shown = [float(re.search(r": ([+-][0-9.]+)$", title)[1]) for *_, title in cells]
        for (kind, strength, _), value in zip(cells, shown, strict=True):
            assert kind == ("more" if value >= 0 else "less") or abs(value) < 1e-3
            assert 0.05 < float(strength) <= 1.0
        strongest = max(cells, key=lambda cell: float(cell[1]))
        assert abs(float(re.search(r": ([+-][0-9.]+)$", strongest[2])[1])) == max(map(abs, shown))


def test_names_are_text_and_single_columns_are_left_out():
    drawing = surface_drawings(interactions())
    assert "<b>" not in drawing
    assert "self &lt;b&gt;" in drawing
    assert drawing.count("<figure>") == 2
    assert surface_drawings(list(effects_of(logistic()[0]).with_bands())) == ""
