"""Atoms of columns by noisy counts: one charge, the same from files, and a schema that says what they cost."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ApproxDP, Ledger, PureDP, Schema, private_atoms
from confide.errors import BudgetExceeded, InputError, ParameterError
from confide.estimators import private_atoms as module
from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import largest_mu

RNG = np.random.default_rng(6)
N = 4000
GAINS = np.where(RNG.uniform(size=N) < 0.7, 0.0, RNG.integers(1, 5_000, N))
GAINS[:400], GAINS[400:700] = 777.0, 1500.0
FRAME = pd.DataFrame(
    {"gain": GAINS, "loss": RNG.integers(0, 300, N), "age": RNG.integers(17, 91, N), "y": ["no", "yes"] * (N // 2)}
)
FRAME["who"] = np.arange(N) // 2
COLUMNS = {
    "gain": {"low": 0, "high": 5000, "scale": "log"},
    "loss": {"low": 0, "high": 300, "scale": "log", "missing": True},
    "age": {"low": 17, "high": 90},
}
TARGET = {"column": "y", "negative": "no", "positive": "yes"}
SCHEMA = Schema(columns=COLUMNS, target=TARGET)


def atoms(rows=FRAME, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.PrivacyWarning)
        return private_atoms(rows, **{"schema": SCHEMA, "budget": 4.0, **options})


def test_atoms_are_found_and_charged_once():
    """In the columns with a logarithmic scale, in one entry of the ledger; the share of zeros is too large."""
    ledger = Ledger(limit=5.0)
    found = atoms(ledger=ledger)
    assert [column.name for column in found.columns] == ["gain", "loss"]
    assert {777.0, 1500.0} <= set(found.columns[0].atoms)
    assert 0.0 not in found.columns[0].atoms
    assert ledger.spent() == PureDP(4.0)
    assert ledger.entries()["purpose"].tolist() == ["private atoms"]
    counts = dict(zip(found.columns[0].atoms, found.counts[0], strict=True))
    assert abs(counts[777.0] - (FRAME["gain"] == 777.0).sum()) < 6 * found.plan.deviation


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("budget", [PureDP(0.5), ApproxDP(0.5, 1e-6)], ids=["pure", "approximate"])
def test_the_noise_is_what_one_row_can_change(neighbours, budget):
    """One row is in one cell of each of two columns; a row that is replaced leaves two cells and enters two."""
    found = atoms(budget=budget, neighbours=neighbours, random_state=0)
    changed = 2.0 * (2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0)
    pure, gaussian = math.sqrt(2.0) * changed / 0.5, math.sqrt(changed) / largest_mu(0.5, 1e-6)
    expected = pure if budget.is_pure else gaussian
    assert expected <= found.plan.deviation <= 1.02 * expected


def test_the_noise_on_empty_cells_is_that_of_the_plan(monkeypatch):
    """Within 15% either way."""
    seen = {}
    monkeypatch.setattr(module, "_found", lambda plan, columns, counts, *_: seen.update(plan=plan, counts=counts))
    atoms(budget=0.5, random_state=3)
    empty = seen["counts"][0][:-1][np.bincount(GAINS.astype(int), minlength=5001) == 0]
    assert len(empty) > 2000
    assert 0.9 < empty.std() / seen["plan"].deviation < 1.1


def test_the_schema_follows_from_the_released_counts_alone(monkeypatch):
    """The same released numbers of other rows give the same schema, to the bit."""
    made = []
    for rows in (FRAME, FRAME.assign(gain=3.0, loss=np.nan)):
        table = np.zeros(5002)
        table[[777, 1500]] = 400.0, 310.25
        forced = (table, np.arange(302.0))
        monkeypatch.setattr(module, "_counts", lambda *_, forced=forced: forced)
        made.append(atoms(rows, ledger=None))
    assert made[0].to_toml() == made[1].to_toml()
    assert made[0].columns == made[1].columns
    assert made[0].counts == made[1].counts
    assert made[0].columns[0].atoms == (777.0, 1500.0)


def test_the_number_of_rows_stays_private(monkeypatch):
    """Under add-or-remove-one the outcome is the same for another number of rows."""
    monkeypatch.setattr(module, "_counts", lambda *_: (np.append(np.zeros(5001), 4000.0), np.append(np.zeros(301), 4000.0)))
    private = [atoms(FRAME.head(n), neighbours="add-or-remove-one").to_toml() for n in (4000, 3999)]
    assert private[0] == private[1]


def test_a_private_number_of_rows_is_that_of_the_smallest_table_above_all(monkeypatch):
    """The noise on the sum of a table grows with its size."""
    large, small = np.zeros(5002), np.zeros(302)
    large[777], large[-1], small[-1] = 700.0, 300.0, 4000.0
    monkeypatch.setattr(module, "_counts", lambda *_: (large, small))
    assert atoms(neighbours="add-or-remove-one").columns[0].atoms == (777.0,)
    small[-1] = 1000.0
    assert atoms(neighbours="add-or-remove-one").columns[0].atoms == ()


def test_the_schema_says_what_its_atoms_cost_and_fits(tmp_path):
    """Written, read again, and named in the statement of a model, which says void where the atoms are."""
    ledger = Ledger(limit=9.0)
    found = atoms(ledger=ledger)
    path = tmp_path / "found.toml"
    path.write_text(found.to_toml(), encoding="utf-8")
    assert found.to_toml().startswith("# The atoms of these columns were looked for in rows: gain, loss.\n")
    schema = Schema.from_toml(path)
    assert schema == found.schema
    assert schema.columns[0].released_atoms.price == "epsilon = 4 (replace-one)"
    assert "released atoms" in str(schema)
    model = confide.AdditiveClassifier(2.0, schema=schema, ledger=ledger).fit(FRAME, FRAME["y"])
    statement = model.guarantee_.statement()
    assert statement.count('The atoms of "gain" and "loss" were not declared; they came from rows by a private release') == 1
    assert "The release of these atoms was charged to the same ledger." in statement
    assert "apart from the atoms that were released" in statement
    model.save(tmp_path / "model.json")
    assert confide.load(tmp_path / "model.json").schema_.columns[0].released_atoms == schema.columns[0].released_atoms
    void = confide.AdditiveClassifier(2.0, schema=atoms(random_state=1).schema).fit(FRAME, FRAME["y"]).guarantee_.void
    assert void.startswith('The atoms of "gain"')
    assert void.endswith(" came from a release without a guarantee, which may reveal rows.")


def test_where_no_number_stands_out_the_schema_stays_as_it_is(monkeypatch):
    """Nothing in it came from rows."""
    monkeypatch.setattr(module, "_counts", lambda *_: (np.arange(5002) % 3.0, np.arange(302.0)))
    found = atoms()
    assert found.schema == SCHEMA
    assert found.schema.columns[0].released_atoms is None
    assert "No number stands out of the noise" in str(found)
    assert "None was found, so nothing of this release is in the schema." in found.to_toml()
    assert "Keep the key" not in found.to_toml()


def test_files_frames_and_orders_of_rows_give_the_same(tmp_path):
    """Counts are whole numbers, in whatever pieces the rows come."""
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    whole = atoms(random_state=4)
    for rows in (str(tmp_path / "a.csv"), FRAME.sample(frac=1.0, random_state=1), FRAME.astype({"gain": "float32"})):
        assert atoms(rows, random_state=4).to_toml() == whole.to_toml()


def test_of_each_person_so_many_rows_count():
    """The noise grows with their number, and the rows that count are drawn at random."""
    schema = Schema(columns=COLUMNS, target=TARGET, person="who")
    one, two = (atoms(schema=schema, max_rows_per_person=most, budget=9.0) for most in (1, 2))
    assert two.plan.deviation == pytest.approx(2.0 * one.plan.deviation, rel=1e-3)
    assert one.counts[0][one.columns[0].atoms.index(777.0)] == pytest.approx(200, abs=30)
    assert two.schema.columns[0].released_atoms.max_rows_per_person == 2


def test_other_columns_are_searched_where_they_are_named():
    """A linear scale is no obstacle then."""
    rows = FRAME.assign(age=np.where(np.arange(N) % 9 == 0, 65, FRAME["age"]))
    assert 65.0 in atoms(rows, columns=["age"], budget=9.0).schema.columns_by_name["age"].atoms


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": None}, "give the budget"),
        ({"columns": []}, "each once"),
        ({"columns": ["gain", "gain"]}, "each once"),
        ({"columns": "gain"}, "each once"),
        ({"columns": ["gian"]}, "gian"),
        ({"schema": Schema(columns={"age": {"low": 0, "high": 90}})}, "no column with a logarithmic scale"),
        ({"columns": ["x"], "schema": Schema(columns={"x": {"low": 0, "high": 1e9}})}, "at most 1,048,576"),
        ({"columns": ["x"], "schema": Schema(columns={"x": {"low": 0.1, "high": 0.9}})}, "whole numbers"),
        (
            {"columns": ["x", "y"], "schema": Schema(columns={name: {"low": 0, "high": 9e5} for name in "xy"})},
            "name fewer columns",
        ),
        ({"columns": ["x"], "schema": Schema(columns={"x": {"low": 0, "high": 9, "atoms": [3]}})}, "has atoms already"),
        ({"schema": None}, "must be a Schema"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_the_charge(options, words):
    """From public facts."""
    ledger = Ledger(limit=5.0)
    with pytest.raises(ParameterError, match=words):
        atoms(ledger=ledger, **options)
    assert len(ledger.entries()) == 0


def test_cells_that_are_no_numbers_and_a_ledger_with_too_little_left_charge_nothing():
    """As in every release, no message holds a cell."""
    ledger = Ledger(limit=1.0)
    with pytest.raises(InputError, match="missing values"):
        atoms(FRAME.assign(gain=np.nan), ledger=ledger, budget=0.5)
    with pytest.raises(BudgetExceeded):
        atoms(ledger=ledger)
    assert len(ledger.entries()) == 0


def test_a_budget_whose_noise_hides_every_atom_is_warned_of():
    """From the number of rows, where it is public."""
    with pytest.warns(confide.BudgetWarning, match="6 in 1,000 rows"):
        private_atoms(FRAME, SCHEMA, budget=0.01)
