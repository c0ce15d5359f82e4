"""The comparison with other libraries: its own implementations keep what they claim, and nothing is left out silently."""

from __future__ import annotations

import json
import sys
from unittest.mock import Mock

import dp_accounting
import numpy as np
import pytest
from benchmarks.peers import accuracy, output_perturbation
from benchmarks.peers.gradient_descent import Schedule, noise_multiplier, train
from benchmarks.peers.output_perturbation import minimiser
from benchmarks.peers.problems import small_adult


def test_a_missing_peer_is_named_and_the_rest_is_compared(monkeypatch, capsys):
    """Without diffprivlib the quick run says so above the table and in it, and has figures for the others."""
    monkeypatch.setitem(sys.modules, "diffprivlib", None)  # as if it were not installed
    accuracy.main(["--quick"])
    said = capsys.readouterr().out
    assert "diffprivlib, as its proof needs it is missing below: " in said
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in said.splitlines() if line.startswith("| ")}
    absent = [name for name in rows if name.startswith("diffprivlib")]
    assert len(absent) == 2
    assert all("(missing: " in name and rows[name].endswith("| missing |") for name in absent)
    for name in ("confide", "DP-SGD", "scikit-learn, Laplace noise on weights", "scikit-learn, Gaussian noise on weights"):
        assert 0.1 < float(rows[name].split(" | ")[1].strip("|* ")) < 0.5


def test_what_is_there_is_not_computed_again(tmp_path):
    """A line of the file stands for its cell; another epsilon is another cell."""
    contender = next(one for one in accuracy.contenders(small=True) if one.name.startswith("scikit-learn, Laplace"))
    kept = accuracy.Results(tmp_path / "results.jsonl")
    kept.keep(accuracy.computed(small_adult(), contender, 1.0, accuracy.Effort(2, 1, 1)))
    again = accuracy.Results(tmp_path / "results.jsonl")
    assert again.cell("adult, 4000 rows", contender, 1.0) == json.loads((tmp_path / "results.jsonl").read_text())
    assert again.cell("adult, 4000 rows", contender, 2.0) is None


@pytest.mark.parametrize("schedule", [Schedule(1.0, 20), Schedule(0.1, 100)])
def test_all_steps_of_gradient_descent_together_keep_to_the_budget(schedule):
    """Rényi accounting, a looser second opinion, finds at most 1.35 times the epsilon; with 0.7 times the noise, more."""

    def epsilon(multiplier):
        accountant = dp_accounting.rdp.RdpAccountant()
        step = dp_accounting.PoissonSampledDpEvent(schedule.share, dp_accounting.GaussianDpEvent(multiplier))
        accountant.compose(dp_accounting.SelfComposedDpEvent(step, schedule.steps))
        return accountant.get_epsilon(1e-5)

    multiplier = noise_multiplier(schedule, 1.0, 1e-5)
    assert 1.0 < epsilon(multiplier) < 1.35 < epsilon(0.7 * multiplier)


def test_a_step_adds_the_noise_that_was_asked_for():
    """Rows of zeros: the first step is noise alone, of deviation multiplier times clipping norm over the rows taken."""
    rng = np.random.default_rng(0)
    rates, clips = np.array([1.0, 1.0]), np.array([0.5, 2.0])
    last, _ = train(np.zeros((40, 4000)), 100.0, Schedule(0.5, 1), 3.0, rates, clips, rng)
    assert last.std(axis=0) == pytest.approx(3.0 * clips / 50.0, rel=0.05)


def test_no_row_pulls_harder_than_the_clipping_norm():
    """A row of length 13 moves the weights by the clipping norm, one of length 0.1 by half its length."""
    rates, clips, rng = np.array([1.0]), np.array([0.7]), np.random.default_rng(0)
    for row, length in (([5.0, 12.0], 0.7), ([0.06, 0.08], 0.05)):
        last, _ = train(np.array([row]), 1.0, Schedule(1.0, 1), 0.0, rates, clips, rng)
        assert np.linalg.norm(last) == pytest.approx(length)


def test_noise_on_weights_has_the_right_constant():
    """Laplace: norms are gamma distributed with mean d 2 / (ridge epsilon). Gaussian: that of one row's 1 / ridge."""
    rng = np.random.default_rng(1)
    noise = output_perturbation.laplace(0.5, 8.0, 6, 20_000, rng)
    assert np.linalg.norm(noise, axis=0).mean() == pytest.approx(6 * 2.0 / (8.0 * 0.5), rel=0.02)
    noise = output_perturbation.gaussian(0.5, 1e-5, 8.0, 6, 20_000, rng)
    sigma = dp_accounting.get_sigma_gaussian(0.5, 1e-5)
    assert noise.std() * 8.0 == pytest.approx(sigma, rel=0.02)
    assert dp_accounting.get_epsilon_gaussian(noise.std() * 8.0, 1e-5) == pytest.approx(0.5, rel=0.05)


def test_weights_move_by_no_more_than_their_noise_hides():
    """One row of norm 1 with the other label moves the minimiser by nearly half of 2 / ridge; encoded rows obey norm 1."""

    def weights(label, ridge):
        split = Mock(y_train=np.array([1, -1, label]))
        rows = np.array([[1e-3, 0.0], [1e-3, 0.0], [0.0, 1.0]])
        return minimiser(Mock(split=split, unit_rows=lambda norm: (rows, rows)), "largest", ridge)

    for ridge in (10.0, 100.0):
        moved = np.linalg.norm(weights(1, ridge) - weights(-1, ridge))
        assert 0.9 / ridge < moved <= 2.0 / ridge
    adult = small_adult()
    for norm in ("largest", "usual"):
        for rows in adult.unit_rows(norm):
            assert 0.9 < np.linalg.norm(rows, axis=1).max() <= 1.0 + 1e-12
