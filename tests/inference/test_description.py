"""What a release of tables says: coverage of every interval, in a simulation of the noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.inference.description import NOT_LISTED, ColumnTable, Description
from confide.privacy.budgets import ZCDP, Neighbours, PureDP
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Tables, counted, moments_of

N, BINS = 4000, 32
EDGES = tuple(np.linspace(0.0, 160.0, BINS + 1).tolist())
TABLES = (
    ColumnTable("colour", ("red", "green", "blue", NOT_LISTED)),
    ColumnTable("size", (), EDGES, True, "cm"),
    ColumnTable("sex", ("f", "m")),
)
SIZES = (4, BINS + 1, 2, 8)
QUANTILES = (0.1, 0.5, 0.9)


@pytest.fixture(scope="module")
def rows():
    """Colours, sizes of which a tenth is missing, and sexes; one colour does not occur."""
    rng = np.random.default_rng(0)
    sizes = np.where(rng.random(N) < 0.1, np.nan, np.clip(rng.gamma(4.0, 12.0, N), 0.0, 160.0))
    return rng.choice(3, N, p=[0.5, 0.495, 0.005]), sizes, rng.integers(0, 2, N)


def summed(rows):
    """The exact sums."""
    colours, sizes, sexes = rows
    bins = np.where(np.isnan(sizes), BINS, np.clip(np.searchsorted(EDGES, sizes, side="right") - 1, 0, BINS - 1))
    cells = (colours, bins, sexes, 2 * colours + sexes)
    return [counted(c, size) for c, size in zip(cells, SIZES, strict=True)], moments_of(sizes / 80.0 - 1.0)


def description(rows, budget, neighbours, seed, level=0.9):
    """One release and what it says."""
    plan = SumPlan.of(Tables(SIZES, 1, neighbours), budget)
    released = plan.release(summed(rows), Entropy.seeded(seed))
    n_rows = N if neighbours is Neighbours.REPLACE_ONE else None
    return Description(plan, released, TABLES, ((0, 2),), QUANTILES, level, n_rows, None)


def truths(rows):
    """What is estimated, by name."""
    colours, sizes, sexes = rows
    present = sizes[~np.isnan(sizes)]
    found = {f"colour {k}": (colours == k).sum() for k in range(4)} | {f"sex {k}": (sexes == k).sum() for k in range(2)}
    found |= {f"cross {k} {s}": ((colours == k) & (sexes == s)).sum() for k in range(4) for s in range(2)}
    found |= {f"quantile {q}": np.quantile(present, q) for q in QUANTILES}
    return found | {"mean": present.mean(), "deviation": present.std(), "missing": 1.0 - present.size / N}


def estimates(found):
    """The same names, with the rates that were found."""
    colour, sex = found.categories
    size = found.numbers[0]
    rates = {f"colour {k}": rate for k, rate in enumerate(colour.counts.values())}
    rates |= {f"sex {k}": rate for k, rate in enumerate(sex.counts.values())}
    rates |= {f"cross {k} {s}": found.cross_tables[0].counts[k][s] for k in range(4) for s in range(2)}
    rates |= {f"quantile {q}": size.quantiles[q] for q in QUANTILES}
    return rates | {"mean": size.mean, "deviation": size.deviation, "missing": size.missing}


@pytest.mark.parametrize("neighbours", list(Neighbours), ids=str)
@pytest.mark.parametrize("budget", [PureDP(0.5), ZCDP(0.02)], ids=lambda budget: budget.kind)
def test_intervals_hold_what_is_true_of_the_rows(rows, budget, neighbours):
    """150 releases at level 0.9: each interval holds in 84% of them or more, and means in 96% at most; few are hidden."""
    true, held = truths(rows), {}
    for seed in range(150):
        for name, rate in estimates(description(rows, budget, neighbours, seed)).items():
            if rate.value is not None:
                held.setdefault(name, []).append(rate.low <= true[name] <= rate.high)
    assert min(map(len, held.values())) >= 140
    shares = {name: np.mean(each) for name, each in held.items()}
    assert set(shares) == set(true)
    assert min(shares.values()) >= 0.84, shares
    assert shares["mean"] <= 0.96


@pytest.mark.parametrize("neighbours", list(Neighbours), ids=str)
def test_all_numbers_agree_with_each_other(rows, neighbours):
    """No count is negative, totals are the number of rows, and margins of cross tables are the counts of their columns."""
    releases = [description(rows, PureDP(0.2), neighbours, seed) for seed in range(12)]
    shown = [found for found in releases if None not in [rate.value for rate in estimates(found).values()]]
    assert len(shown) >= 3
    for found in shown:
        for category in found.categories:
            counts = [count.value for count in category.counts.values()]
            assert min(counts) >= 0.0
            assert sum(counts) == pytest.approx(found.n_rows)
            assert sum(share.value for share in category.shares.values()) == pytest.approx(1.0)
        crossed = found.cross_tables[0].to_frame()
        assert crossed.to_numpy().min() >= 0.0
        np.testing.assert_allclose(crossed.sum(axis=1), [c.value for c in found.categories[0].counts.values()], atol=1e-3)
        np.testing.assert_allclose(crossed.sum(axis=0), [c.value for c in found.categories[1].counts.values()], atol=1e-3)
        assert min(found.numbers[0].histogram) >= 0.0
        for rate in estimates(found).values():
            assert rate.low <= rate.value <= rate.high


def test_no_interval_of_a_noisy_number_has_no_width(rows):
    """Of 20 rows, in 200 releases: every number is hidden or has an interval that is neither a point nor all there is."""
    few = tuple(each[:20] for each in rows)
    n_shown = 0
    for seed in range(200):
        found = description(few, PureDP(8.0), Neighbours.REPLACE_ONE, seed)
        for name, rate in estimates(found).items():
            if rate.value is None:
                assert rate.low is rate.high is None
                continue
            n_shown += 1
            assert rate.low < rate.high, name
            assert not (rate.low == 0.0 and rate.high == 20.0)
        for _, _, _, low, high in (cells for category in found.categories for cells in category.cells()):
            assert low != high or low == ""
    assert n_shown > 1000


def test_what_the_noise_hides_is_not_shown(rows):
    """At a tiny budget nothing is said of means and quantiles."""
    found = description(rows, PureDP(1e-3), Neighbours.REPLACE_ONE, 0)
    assert found.numbers[0].mean.value is None
    assert found.numbers[0].quantiles[0.5].value is None
    assert "hidden by the noise" in str(found)
    assert np.isnan(found.to_frame().set_index("statistic").loc["mean", "value"])


def test_without_noise_all_is_exact(rows):
    """And intervals have no width; a quantile lies in its bin."""
    found, true = description(rows, PureDP(math.inf), Neighbours.REPLACE_ONE, 0), truths(rows)
    for name, rate in estimates(found).items():
        within = 160.0 / BINS if name.startswith("quantile") else 2e-3
        assert rate.value == pytest.approx(true[name], abs=within), name
    assert found.numbers[0].mean.low == found.numbers[0].mean.high


def test_the_document_holds_all_of_it(rows):
    """JSON with every count, and a frame with the same numbers."""
    found = description(rows, PureDP(1.0), Neighbours.REPLACE_ONE, 0)
    document = found.to_dict()
    frame = found.to_frame().set_index(["column", "statistic", "of"])
    assert document["categories"]["colour"]["red"]["value"] == frame.loc[("colour", "count", "red"), "value"]
    assert document["numbers"]["size"]["quantiles"]["0.5"]["low"] == frame.loc[("size", "quantile", "0.5"), "low"]
    assert sum(document["numbers"]["size"]["histogram"]["rows"]) == pytest.approx(0.9 * N, rel=0.05)
    assert len(document["cross_tables"][0]["counts"]) == 4


def test_numbers_are_shown_in_their_unit(rows):
    """Beside everything but a share, also in the document; without a unit nothing is said of one."""
    found = description(rows, PureDP(1.0), Neighbours.REPLACE_ONE, 0)
    names = ["mean in cm", "standard deviation in cm", *(f"quantile {q:g} in cm" for q in QUANTILES), "missing"]
    assert [what for _, what, *_ in found.numbers[0].cells()] == names
    assert found.to_dict()["numbers"]["size"]["unit"] == "cm"
    plain = replace(found, tables=(TABLES[0], replace(TABLES[1], unit=None), TABLES[2]))
    assert plain.numbers[0].cells()[0][1] == "mean"
    assert "unit" not in plain.to_dict()["numbers"]["size"]
