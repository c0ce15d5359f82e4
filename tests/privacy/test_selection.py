"""Private choice and repetition: exact laws against closed forms, and what they cost against enumerated neighbours."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from confide.errors import ParameterError
from confide.privacy import selection
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP, concentrated_epsilon
from confide.privacy.noise import Entropy
from confide.privacy.selection import Repetition, Selection
from tests.covering import pairs_of

DRAWS, ACCEPT, REJECT = 10_000, 1e-3, 1e-9
LAWS = ("exponential", "permute-and-flip")


def exponential(mistakes, epsilon):
    """Probabilities, by definition."""
    weights = np.exp(-epsilon * (np.array(mistakes) - min(mistakes)) / 2.0)
    return weights / weights.sum()


def permute_and_flip(mistakes, epsilon):
    """Probabilities, by all orders of visiting."""
    kept = np.exp(-epsilon * (np.array(mistakes) - min(mistakes)) / 2.0)
    law = np.zeros(len(mistakes))
    orders = list(itertools.permutations(range(len(mistakes))))
    for order in orders:
        refused = 1.0
        for candidate in order:
            law[candidate] += refused * kept[candidate] / len(orders)
            refused *= 1.0 - kept[candidate]
    return law


FORMS = dict(zip(LAWS, (exponential, permute_and_flip), strict=True))


@pairs_of(law=LAWS, mistakes=[(0, 3), (5, 2, 3), (11, 9, 12, 10)], seeded=[False, True])
def test_choices_have_the_exact_law(law, mistakes, seeded):
    """Chi-square on 10,000 choices; an epsilon 30% off is rejected, and so is the other law."""
    selection, entropy = Selection(law, 0.7), Entropy.seeded(3) if seeded else Entropy.fresh()
    counts = np.bincount([selection.choose(mistakes, entropy) for _ in range(DRAWS)], minlength=len(mistakes))

    def p_value(form, epsilon):
        return stats.chisquare(counts, form(mistakes, epsilon) * DRAWS).pvalue

    assert p_value(FORMS[law], 0.7) > (ACCEPT if seeded else 1e-9)
    for wrong in (0.7 * 0.7, 0.7 * 1.3):
        assert p_value(FORMS[law], wrong) < REJECT
    (other,) = set(LAWS) - {law}
    assert p_value(FORMS[other], 0.7) < REJECT


@pytest.mark.parametrize("law", LAWS)
def test_opendp_draws_from_the_same_laws(law):
    """Its noisy maximum, with Gumbel or exponential noise of scale 2 / epsilon, by chi-square; and its account agrees."""
    from opendp import domains, measurements, measures, metrics, mod

    mod.enable_features("contrib")
    measure = measures.zero_concentrated_divergence() if law == "exponential" else measures.max_divergence()
    space = domains.vector_domain(domains.atom_domain(T=int)), metrics.linf_distance(T=int)
    mechanism = measurements.make_noisy_max(*space, measure, scale=2.0 / 0.7, negate=True)
    counts = np.bincount([mechanism([5, 2, 3]) for _ in range(3000)], minlength=3)
    assert stats.chisquare(counts, FORMS[law]((5, 2, 3), 0.7) * 3000).pvalue > 1e-9
    assert mechanism.map(1) == pytest.approx(0.7**2 / 8.0 if law == "exponential" else 0.7, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("law", LAWS)
def test_a_choice_costs_its_epsilon_and_no_more(law, epsilon):
    """Over all neighbouring numbers of mistakes of three candidates: log-ratios reach 0.9 epsilon and never exceed it."""
    far, moves = math.ceil(6.0 / epsilon), list(itertools.product((-1, 0, 1), repeat=3))
    worst, widest, rho = 0.0, 0.0, 0.0
    for mistakes in itertools.product((1, 2, 1 + far), repeat=3):
        here = FORMS[law](mistakes, epsilon)
        for move in moves:
            losses = np.log(here / FORMS[law](np.add(mistakes, move), epsilon))
            worst, widest = max(worst, abs(losses).max()), max(widest, np.ptp(losses))
            for order in (1.01, 2.0, 10.0):
                rho = max(rho, np.log((here * np.exp((order - 1.0) * losses)).sum()) / (order - 1.0) / order)
    assert 0.9 * epsilon < worst <= epsilon * (1 + 1e-12)
    if law == "exponential":
        assert widest <= epsilon * (1 + 1e-9)
        assert 0.5 * epsilon**2 / 8.0 < rho <= epsilon**2 / 8.0
    else:
        assert rho <= PureDP(epsilon).to_zcdp().rho


def test_a_choice_spends_its_budget():
    """Pure and approximate: epsilon. Concentrated: the larger of what the two laws promise, and no more than rho."""
    assert Selection.of_budget("auto", PureDP(0.3)) == Selection("permute-and-flip", 0.3)
    assert Selection.of_budget("auto", ApproxDP(0.3, 1e-6)) == Selection("permute-and-flip", 0.3)
    assert Selection.of_budget("exponential", PureDP(0.3)) == Selection("exponential", 0.3)
    small, large = Selection.of_budget("auto", ZCDP(0.02)), Selection.of_budget("auto", ZCDP(20.0))
    assert (small.law, large.law) == LAWS
    assert small.epsilon == pytest.approx(0.4, rel=1e-9)
    assert small.epsilon**2 / 8.0 <= 0.02
    flip = Selection.of_budget("permute-and-flip", ZCDP(0.02))
    assert flip.law == "permute-and-flip"
    assert 0.02 * (1 - 1e-9) <= flip.epsilon * math.tanh(flip.epsilon / 2.0) <= 0.02


def test_epsilons_of_any_size_are_drawn():
    """A huge one finds the fewest mistakes; a tiny one hardly looks."""
    entropy = Entropy.seeded(5)
    assert {Selection(law, 1e9).choose((3, 2, 4), entropy) for law in LAWS for _ in range(50)} == {1}
    assert {Selection(law, 1e-9).choose((3, 2, 4), entropy) for law in LAWS for _ in range(50)} == {0, 1, 2}
    assert Selection("permute-and-flip", 1.0).choose((7,), entropy) == 0


def generating(x, shape, stop):
    """E x^K, Papernot and Steinke (2022), definition 1; in high precision, since differences of it cancel."""
    x, eta, gamma = (
        mpmath.mpf(x),
        mpmath.mpf(shape.numerator) / shape.denominator,
        mpmath.mpf(stop.numerator) / stop.denominator,
    )
    if eta == 0:
        return mpmath.log(1 - (1 - gamma) * x) / mpmath.log(gamma)
    return ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


SHAPES = [Fraction(-1, 2), Fraction(0), Fraction(1, 2), Fraction(1)]


def masses(shape, stop, size):
    """Pr[K = 1], ..., Pr[K = size]: coefficients of the generating function, by the binomial series."""
    eta, gamma = float(shape), float(stop)
    counts = range(1, size + 1)
    if eta == 0.0:
        return np.array([(1 - gamma) ** k / k / -math.log(gamma) for k in counts])
    return np.array([(1 - gamma) ** k * float(mpmath.rf(eta, k) / mpmath.factorial(k)) for k in counts]) / (gamma**-eta - 1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_number_of_tries_has_the_exact_law(shape):
    """Chi-square of 6,000 draws against the generating function's coefficients; a stop 30% off is rejected."""
    entropy, law = Entropy.seeded(7), Repetition(shape, Fraction(1, 5))
    n = 6000
    draws = np.array([law.draw(entropy) for _ in range(n)])

    def p_value(shape, stop):
        law = masses(shape, stop, 12)
        observed = np.bincount(np.minimum(draws, 13), minlength=14)[1:]
        return stats.chisquare(observed, np.append(law, 1.0 - law.sum()) * n).pvalue

    with mpmath.workdps(30):
        assert float(generating(0.3, shape, law.stop)) == pytest.approx(
            masses(shape, law.stop, 40) @ 0.3 ** np.arange(1, 41)
        )
    assert p_value(shape, law.stop) > ACCEPT
    for wrong in (0.7, 1.3):
        assert p_value(shape, wrong * law.stop) < 1e-6
    assert p_value(shape - Fraction(1, 3), law.stop) < REJECT
    assert draws.mean() == pytest.approx(law.mean, rel=0.06)


@pytest.mark.parametrize("mean", [1.01, 6.0, 500.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_mean_is_the_slope_of_the_generating_function_at_one(shape, mean):
    """And `of_mean` finds the law of a given mean."""
    law = Repetition.of_mean(shape, mean)
    assert law.mean == pytest.approx(mean, rel=1e-4)
    with mpmath.workdps(40):
        slope = mpmath.diff(lambda x: generating(x, shape, law.stop), 1)
    assert law.mean == pytest.approx(float(slope), rel=1e-9)


def tries(rng, stop, shape):
    """Two neighbouring laws of one try over two to four outcomes, in rising score, and those of the best of K."""
    size = rng.integers(2, 5)
    p = [mpmath.mpf(10) ** -float(rng.uniform(0, 5)) for _ in range(size)]
    factor = mpmath.exp(float(rng.choice([0.1, 0.5, 1.0, 2.0])))
    q = [value * (factor if rng.random() < 0.5 else 1) for value in p]
    pair, best = [], []
    for law in (p, q):
        law = [value / mpmath.fsum(law) for value in law]
        sums = [generating(mpmath.fsum(law[:k]) if k < size else 1, shape, stop) for k in range(size + 1)]
        pair.append(law)
        best.append([b - a for a, b in itertools.pairwise(sums)])
    return pair, best


def pure_loss(pair):
    return max(abs(mpmath.log(a / b)) for a, b in zip(*pair, strict=True))


def renyi(p, q, order):
    return mpmath.log(mpmath.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)


@pytest.mark.parametrize("stop", [Fraction(3, 10), Fraction(1, 1000)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_repetition_never_costs_more_than_promised(shape, stop):
    """Random neighbouring laws of a try, in 40 digits: the loss of the best of K stays below 2 + shape times theirs."""
    law, rng, worst = Repetition(shape, stop), np.random.default_rng(1), 0.0
    with mpmath.workdps(40):
        for _ in range(150):
            pair, best = tries(rng, stop, shape)
            if (epsilon := pure_loss(pair)) > 1e-3:
                worst = max(worst, float(pure_loss(best) / epsilon))
    assert 1.0 < worst <= 1.0 / law.pure_base(1.0)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_repetition_costs_all_that_is_promised(shape, epsilon):
    """A rare outcome of middling score, rare ones above it, hardly ever a stop: over 0.97 of what a base is for."""
    stop = Fraction(1, 10**12)
    with mpmath.workdps(60):
        up, middle, high = mpmath.exp(epsilon), mpmath.mpf(10) ** -9, mpmath.mpf(10) ** -5
        losses = []
        for rises, falls in ((1, 1), (up, 1 / up)):
            low = 1 - middle * rises - high * falls
            losses.append(generating(low + middle * rises, shape, stop) - generating(low, shape, stop))
        loss = float(mpmath.log(losses[1] / losses[0]))
    promised = epsilon / Repetition(shape, stop).pure_base(epsilon)
    assert promised == pytest.approx(2.0 + float(shape), rel=1e-9)
    assert 0.97 * promised * epsilon < loss <= promised * epsilon


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_renyi_bound_covers_the_best_of_k(shape):
    """(epsilon, delta) of the best of K tries by two-point laws, whose own rho is known, stays within concentrated_base."""
    rng = np.random.default_rng(2)
    for stop in (Fraction(3, 10), Fraction(1, 100)):
        law = Repetition(shape, stop)
        with mpmath.workdps(40):
            for _ in range(60):
                pair, best = tries(rng, stop, shape)
                epsilon = float(pure_loss(pair))
                rho = PureDP(epsilon).to_zcdp().rho if epsilon > 1e-9 else 0.0
                for delta in (1e-3, 1e-6):
                    promised = mpmath.exp(law._epsilon(rho, delta))
                    spent = mpmath.fsum(max(0, a - promised * b) for a, b in zip(*best, strict=True))
                    assert spent <= delta


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rho", [1e-3, 0.05, 2.0, 30.0])
def test_the_concentrated_account_is_papernot_and_steinkes(shape, rho):
    """Against the formula of E.8 over grids of both orders: not below its least, and at most a thousandth above."""
    law, delta = Repetition(shape, Fraction(1, 20)), 1e-6
    eta, steps = float(shape), math.log(20.0)
    orders, others = 1.0 + np.geomspace(1e-3, 1e5, 4000), np.geomspace(1.0, 1e4, 4000)
    middle = ((1 + eta) * ((1 - 1 / others) * rho * others + steps / others)).min()
    curve = rho * orders + middle + math.log(law.mean) / (orders - 1.0)
    best = (curve + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0)).min()
    assert best * (1 - 1e-3) <= law._epsilon(rho, delta) <= best * (1 + 1e-3)
    base = law.concentrated_base(law._epsilon(rho, delta), delta)
    assert rho * (1 - 1e-6) <= base <= rho * (1 + 1e-6)
    assert law._epsilon(base, delta) <= law._epsilon(rho, delta)


@pytest.mark.parametrize(
    ("shape", "stop"), [(Fraction(-1), Fraction(1, 2)), (Fraction(2), Fraction(1, 2)), (Fraction(0), Fraction(1))]
)
def test_a_law_outside_its_range_is_refused(shape, stop):
    """A shape above 1 would need a probability above 1; the law has no member at the ends."""
    with pytest.raises(ParameterError):
        Repetition(shape, stop)


@pytest.mark.parametrize("mean", [1.001, 2.0, 37.5, 1e5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_law_of_a_mean_is_the_next_one_on_the_grid_of_stops(shape, mean):
    """Its own mean is not above, and that of a stop smaller by 2^-40 is."""
    law = Repetition.of_mean(shape, mean)
    below = Repetition(shape, law.stop - Fraction(1, 2**40))
    assert law.mean <= mean < below.mean
    assert (2**40) % law.stop.denominator == 0


def test_the_geometric_law_of_mean_two_stops_at_every_other_try():
    """Its mean is 1 / stop; the ends of the grid serve means that it has no law for."""
    assert Repetition.of_mean(Fraction(1), 2.0).stop == Fraction(1, 2)
    assert Repetition.of_mean(Fraction(1), 0.5).stop == 1 - Fraction(1, 2**40)
    assert Repetition.of_mean(Fraction(1), 1e13).stop == Fraction(2, 2**40)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 8.0, 400.0])
def test_the_concentrated_base_is_the_largest_that_the_budget_admits(epsilon):
    """It is admitted, and a billionth more is not, for budgets whose base is below 1 and far above."""
    law, delta = Repetition(Fraction(0), Fraction(1, 20)), 1e-6
    base = law.concentrated_base(epsilon, delta)
    assert base == 0.0 or law._epsilon(base, delta) <= epsilon
    assert law._epsilon(base * (1.0 + 1e-9) + 1e-300, delta) > epsilon


@pytest.mark.parametrize(
    ("shape", "stop"), [(Fraction(-3, 2), Fraction(1, 2)), (Fraction(1), Fraction(0)), (Fraction(1), Fraction(3, 2))]
)
def test_a_law_far_outside_its_range_is_refused(shape, stop):
    """No probability is below 0 or above 1."""
    with pytest.raises(ParameterError, match="shape in"):
        Repetition(shape, stop)


@pytest.mark.parametrize("shape", [Fraction(0), Fraction(1, 2), Fraction(1)])
def test_tries_that_cost_nothing_cost_nothing_together(shape):
    """Without rho nothing is divided by it, and nothing is added; what is left is that of no rho at this delta."""
    law = Repetition(shape, Fraction(1, 10))
    assert law._epsilon(0.0, 1e-6) == pytest.approx(concentrated_epsilon(0.0, 1e-6 / law.mean), abs=1e-9)


def test_the_cost_of_tries_is_rounded_up_and_their_delta_down(monkeypatch):
    """By one part in 2^38 each."""
    asked = []
    monkeypatch.setattr(selection, "concentrated_epsilon", lambda rho, delta: asked.append(delta) or 1.0)
    law, rho = Repetition(Fraction(1), Fraction(1, 10)), 0.01
    steps, down = math.log(10.0), 1.0 - 2.0**-38
    order = math.sqrt(steps / rho)
    found = law._epsilon(rho, 1e-6)
    assert found * down == pytest.approx(1.0 + 2.0 * (rho * (order - 1.0) + steps / order), rel=1e-13)
    assert asked == [pytest.approx(1e-6 / law.mean * down, rel=1e-14, abs=0.0)]
