"""Attacks on the bits of released weights: neighbours must not differ in what a release says below its noise.

Tests have a level of 10^-4 each and seeds fixed by their place; about 150 run in all, so that a correct library would fail
one of them with probability 1.5% at most over the choice of seeds.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from tests.audit.attacks import ADD, L2, REPLACE, few_of, objective_attack, output_attack
from tests.privacy.problems import releases

LEVEL = 1e-4
CASES = [
    (objective_attack, ("ball 2", "laplace", PureDP(1.0), REPLACE)),
    (objective_attack, ("linked 2", "laplace", PureDP(1.0), ADD)),
    (objective_attack, ("groups 2", "gaussian", ApproxDP(1.0, 0.05), REPLACE)),
    (output_attack, ("ball 1", PureDP(1.0), REPLACE)),
    (output_attack, ("ball 2", PureDP(1.0), ADD)),
    (output_attack, ("ball 2", ApproxDP(1.0, 0.05), ADD)),
    (output_attack, ("ball 2", ZCDP(0.5), REPLACE)),
]
NAMES = [f"{attack.__name__.split('_')[0]}, {facts[0]}, {facts[-2].kind}" for attack, facts in CASES]


def table_p_value(first, second):
    """Chi-square test that two samples of small whole numbers have one law; rare values are put together."""
    values, counts = np.unique(np.concatenate([first, second]), return_counts=True)
    kept = values[counts >= 20]
    classes = [np.searchsorted(kept, np.where(np.isin(side, kept), side, kept[-1])) for side in (first, second)]
    table = np.array([np.bincount(side, minlength=len(kept)) for side in classes])
    return 1.0 if len(kept) < 2 else stats.chi2_contingency(table)[1]


def trailing_zeros(integers):
    """Of each whole number; 60 for 0."""
    lowest = integers & -integers
    return np.where(integers == 0, 60, np.log2(np.maximum(1, lowest)).astype(int))


def p_values(first, second):
    """Of tests that the lowest bits of two samples of whole numbers, as objects of a few, have one law."""
    both = {f"modulo {m}": lambda q, m=m: q % m for m in (2, 3, 8, 16)}
    both |= {"trailing zeros": trailing_zeros, "bit 5": lambda q: (q >> 5) & 1}
    return {name: table_p_value(low(first), low(second)) for name, low in both.items()}


def grid_integers(attack, n, seed):
    """The released weights of either data set over the grid step, after a check that all are on the grid."""
    exponent = attack.plan.lattice.exponent
    sides = []
    for side, rows in enumerate((attack.first, attack.second)):
        steps = np.ldexp(releases(attack.mechanism, attack.plan, rows, n, None if seed is None else (seed, side)), -exponent)
        integers = np.rint(steps)
        assert np.array_equal(steps, integers)
        # Beyond 2^53 the conversion of a whole number to a double would round, and the lowest bits be 0.
        assert np.abs(integers).max() < 2.0**53
        sides.append(integers.astype(np.int64))
    return sides


def check_bits(number, n, seed):
    """No low bit, remainder or set of attained values tells two data sets apart, nor prefers some values."""
    attack, facts = CASES[number]
    first, second = grid_integers(attack(*facts), n, seed)
    for column in range(first.shape[1]):
        assert min(p_values(first[:, column], second[:, column]).values()) > LEVEL
        for sample in (first[:, column], second[:, column]):
            # The noise is hundreds of steps wide, so that remainders are uniform to many digits.
            for modulus in (2, 3, 8):
                counts = np.bincount(sample % modulus, minlength=modulus)
                assert counts.min() > 0
                assert stats.chisquare(counts).pvalue > LEVEL
            # Every value is in reach from either data set. One of 64 is missing among 500 uniform draws with probability
            # 2.4% at most; five of them with less than 10^-9.
            assert len(set((sample % 64).tolist())) > 59


@pytest.mark.parametrize("number", few_of(range(len(CASES)), 0, 3, 5), ids=NAMES)
def test_low_bits_of_five_hundred_releases_tell_nothing(number):
    """On the grid; parity, remainders and trailing zeros of neighbours, uniform remainders, each at level 10^-4."""
    check_bits(number, 500, seed=number)


@pytest.mark.audit
@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_low_bits_of_ten_thousand_releases_tell_nothing(number):
    """The same with fresh noise, at 10,000 releases from either data set."""
    check_bits(number, 10_000, seed=None)


def float_laplace(weight, n, rng, scale):
    """What a naive library releases: the weight plus a double made from the logarithm of a uniform one."""
    uniform = rng.random(n)
    return weight + rng.choice([-1.0, 1.0], n) * -scale * np.log(uniform)


def unreachable(released, weight, scale):
    """Share of releases that the naive sampler cannot make from this weight, whatever its uniform number was.

    Mironov (2012): the uniform numbers around exp(-|released - weight| / scale) are tried one by one.
    """
    guess = np.exp(-np.abs(released - weight) / scale)
    # Where the uniform number is near 1 each of its steps is seen in the logarithm.
    testable = guess > 0.5
    candidates = (np.rint(guess[testable] * 2.0**53)[:, None] + np.arange(-300, 301)) * 2.0**-53
    noise = -scale * np.log(np.clip(candidates, 2.0**-53, None))
    values = np.concatenate([weight + noise, weight - noise], axis=1)
    return 1.0 - (values == released[testable, None]).any(axis=1).mean()


def test_the_attack_on_reachable_values_breaks_naive_noise():
    """Doubles released from one weight are mostly out of reach from its neighbour's: the attack has power."""
    rng, scale, weights = np.random.default_rng(0), 2.0, (1.0 / 3.0, 1.0 / 3.0 + 0.5)
    released = float_laplace(weights[0], 300, rng, scale)
    assert unreachable(released, weights[0], scale) < 0.05
    assert unreachable(released, weights[1], scale) > 0.2


def test_the_test_of_low_bits_breaks_naive_noise():
    """Two weights whose last bits differ, noise on a coarser grid than theirs: remainders tell them apart at once."""
    rng = np.random.default_rng(1)
    noise = np.rint(rng.laplace(size=(2, 500)) * 2.0**10) * 16
    first, second = (noise + np.array([[3], [8]])).astype(np.int64)
    assert p_values(first, second)["modulo 16"] < 1e-100
    assert p_values(first - 3, second - 8)["modulo 16"] > LEVEL


def test_the_grid_step_is_public_and_far_below_the_noise():
    """The same for both data sets, and at most a hundredth of the noise of one weight."""
    for attack, facts in CASES:
        case = attack(*facts)
        deviation = case.plan.lattice.norm / np.sqrt(case.plan.problem.n_weights)
        assert case.plan.lattice.step < 0.01 * deviation
        assert case.plan.problem.l2 == L2
