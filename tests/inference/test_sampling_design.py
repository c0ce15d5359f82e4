"""What sampling errors assume: unequal weights, rows that depend on each other, and finite populations."""

import math

import numpy as np
import pytest
from scipy.special import expit

import confide
from confide.errors import ParameterError
from confide.inference.debiased import InterestEvidence
from confide.inference.intervals import Evidence
from confide.inference.sampling_design import INDEPENDENT, SamplingDesign

WEIGHTS = np.array([1.0, 2.0, 5.0, 10.0, 20.0])
N_ROWS, N_COLUMNS = 3_000, 3


def sample(seed, n_rows=N_ROWS):
    """Rows in the unit ball, labels, and weights from 1 to 20 that depend on the rows."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, N_COLUMNS))
    rows *= rng.uniform(size=(n_rows, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    weights = WEIGHTS[np.searchsorted([-0.3, 0.0, 0.2, 0.4], rows[:, 0] + rng.normal(scale=0.2, size=n_rows))]
    labels = (rng.uniform(size=n_rows) < expit(rows @ [1.0, -1.0, 0.5] + 0.2)).astype(int)
    return rows, labels, weights


def fitted(**parameters):
    """A model without noise, with nearly no ridge, and the sample that it was fitted to."""
    rows, labels, weights = sample(0)
    given = {"inference_share": 0.3} | parameters
    model = confide.LogisticRegression(
        float("inf"), alpha=1e-9, row_norm=1.0, classes=[0, 1], max_sample_weight=20.0, **given
    )
    return model.fit(rows, labels, sample_weight=weights), rows, labels, weights


def sandwich(model, rows, labels, weights):
    """The standard errors of the weighted sandwich, computed here: inverse curvature, squared weighted slopes, inverse."""
    design = np.column_stack([rows, np.ones(len(rows))])
    chances = expit(rows @ model.coef_[0] + model.intercept_[0])
    bent = (design * (weights * chances * (1 - chances))[:, None]).T @ design
    slopes = design * (weights * (chances - labels))[:, None]
    inverse = np.linalg.inv(bent)
    return np.sqrt(np.diagonal(inverse @ (slopes.T @ slopes) @ inverse))


def test_sampling_errors_are_those_of_the_weighted_sandwich():
    """The squares of the weights are in the released sums, not the weights."""
    model, rows, labels, weights = fitted()
    found, expected = model.uncertainty().sampling_error, sandwich(model, rows, labels, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # Those of equal weights would be too small.
    assert (found > 1.15 * sandwich(model, rows, labels, np.ones(len(rows)))).all()


def test_intervals_of_interest_use_squares_of_weights_too():
    """The third sum along the direction has squared weighted slopes."""
    model, rows, labels, weights = fitted(inference_share=0.0, interest=["x0"])
    assert model.uncertainty().sampling_error[0] == pytest.approx(sandwich(model, rows, labels, weights)[0], rel=0.02)


@pytest.mark.parametrize("kind", [{"inference_share": 0.3}, {"inference_share": 0.0, "interest": ["x0", "x1"]}])
def test_clusters_and_finite_populations_multiply_the_sampling_variance_by_their_factor(kind):
    """By 2.25 for a declared effect, and by 1 - (n / N) (mean / largest weight) for a population of 4,000."""
    plain = fitted(**kind)[0].uncertainty().sampling_error
    clustered = fitted(cluster_effect=2.25, **kind)[0].uncertainty().sampling_error
    # Of what is released for named columns, where the sums are taken depends on the factor too, by a little.
    np.testing.assert_allclose(clustered / plain, 1.5, rtol=5e-3)
    finite = fitted(population_size=4_000, mean_sample_weight=6.0, **kind)[0].uncertainty().sampling_error
    np.testing.assert_allclose(finite / plain, math.sqrt(1.0 - 0.75 * 0.3), rtol=5e-3)
    persons = fitted(max_rows_per_person=4, **kind)[0].uncertainty().sampling_error
    np.testing.assert_allclose(persons / plain, 2.0, rtol=0.01)


def test_differences_of_risks_have_the_same_factors_and_no_weights():
    """All of their sampling variance is multiplied; with weights, means over the rows would be those of the sample."""
    rows, labels, weights = sample(0)
    given = {"row_norm": 1.0, "classes": [0, 1], "alpha": 1e-9, "interest": ["x0"], "risk_differences": True}

    def table(**parameters):
        model = confide.LogisticRegression(float("inf"), **given, **parameters)
        return model.fit(rows, labels).average_risk_differences()

    clustered = table(cluster_effect=2.25)
    plain = table().coefficients[0].sampling_error
    assert clustered.coefficients[0].sampling_error == pytest.approx(1.5 * plain, rel=0.01)
    assert any("declared design effect of clustering, 2.25" in note for note in clustered.notes)
    named = confide.Schema(columns={"x0": {"low": -1, "high": 1}}, weight={"column": "w", "high": 1})
    with pytest.raises(ParameterError, match="leave out weights of classes and rows"):
        confide.LogisticRegression(1.0, schema=named, interest=["x0"], risk_differences=True).plan(50_000)
    with pytest.raises(ParameterError, match="leave out weights of rows"):
        confide.LogisticRegression(float("inf"), **given).fit(rows, labels, sample_weight=weights / 20.0)


def test_noise_is_not_corrected_for_a_finite_population():
    """A population of little more than the sample leaves no sampling error, and all of the error due to noise."""
    rows, labels, _ = sample(1, 20_000)
    found = {}
    for size in (None, 20_001):
        model = confide.LogisticRegression(
            confide.ApproxDP(2.0, 1e-6),
            inference_share=0.3,
            row_norm=1.0,
            classes=[0, 1],
            population_size=size,
            random_state=5,
        )
        found[size] = model.fit(rows, labels).uncertainty()
    np.testing.assert_allclose(found[20_001].privacy_error, found[None].privacy_error, rtol=0.05)
    assert (found[20_001].sampling_error < 0.02 * found[None].sampling_error).all()
    assert (found[20_001].margins(0.95) > 1.7 * found[20_001].privacy_error).all()


def test_ridge_has_the_same_factors():
    """Its residual variance is one for all rows, and the same inequality holds for sums over persons."""
    rows, _, _ = sample(2)
    targets = rows @ [0.3, -0.2, 0.1] + np.random.default_rng(3).uniform(-0.3, 0.3, size=len(rows))
    given = {"target_bound": 1.0, "intervals": True, "alpha": 1e-9}

    def errors(**parameters):
        return confide.Ridge(float("inf"), **given, **parameters).fit(rows, targets).uncertainty().sampling_error

    np.testing.assert_allclose(errors(max_rows_per_person=3) / errors(), math.sqrt(3.0), rtol=1e-9)
    np.testing.assert_allclose(errors(population_size=2 * len(rows)) / errors(), math.sqrt(0.5), rtol=1e-9)


def test_the_factor_of_persons_is_attained_by_rows_that_are_equal():
    """The variance of a mean of persons with k equal rows is k times that of independent rows."""
    rng, k = np.random.default_rng(4), 3
    equal = rng.normal(size=(20_000, 200)).repeat(k, axis=1).mean(axis=1)
    supposed = SamplingDesign(cluster_effect=float(k), rows_per_person=k).variance_factor / (200 * k)
    assert equal.var() == pytest.approx(supposed, rel=0.05)


def test_the_correction_of_a_finite_population_is_that_of_a_sample_without_replacement():
    """The variance of a sum over 300 of 400 units, which is a quarter of that with replacement."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=400)
    values -= values.mean()
    sums = np.array([rng.permutation(values)[:300].sum() for _ in range(8_000)])
    design = SamplingDesign(population_size=400, n_rows=300)
    assert sums.var() == pytest.approx(design.variance_factor * 300 * values.var(), rel=0.07)


def test_the_correction_never_takes_too_much_from_unequal_chances():
    """The exact variance of a weighted sum over independent draws is at most the corrected one, whatever the values."""
    rng = np.random.default_rng(6)
    for _ in range(50):
        weights = rng.uniform(1.0, 20.0, size=500)
        values = rng.normal(size=500) * rng.uniform(size=500) * (weights if rng.uniform() < 0.5 else 1.0)
        chances = 1.0 / weights
        exact = np.sum((1.0 - chances) / chances * values**2)
        n, size = chances.sum(), len(weights)
        design = SamplingDesign(weights.max(), size / n, True, population_size=size, n_rows=math.floor(n))
        assert exact <= design.variance_factor * np.sum(values**2 / chances) * (1.0 + 1.0 / n)
    one_size = SamplingDesign(4.0, 4.0, True, population_size=400, n_rows=100)
    assert one_size.finite_population_correction == 0.75


def test_the_effective_sample_is_never_larger_than_stated():
    """Kish's effective sample size is at least mean over largest weight, and is that for weights of 0 and 1."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        weights = rng.uniform(1.0, 20.0, size=100) ** rng.uniform(0.1, 3.0)
        kish = weights.sum() ** 2 / np.sum(weights**2) / 100
        assert kish >= SamplingDesign(weights.max(), weights.mean(), True).effective_share * (1.0 - 1e-12)
    assert SamplingDesign(1.0, 0.3, True).effective_share == 0.3


def test_weights_are_supposed_to_have_the_mean_one():
    """Where their mean is not declared; never more than the cap."""
    assert SamplingDesign(20.0).effective_share == 0.05
    assert SamplingDesign(0.5).effective_share == 1.0
    assert INDEPENDENT.effective_share == INDEPENDENT.variance_factor == 1.0


@pytest.mark.parametrize(
    "design",
    [
        INDEPENDENT,
        SamplingDesign(20.0, None, True),
        SamplingDesign(20.0, 4.0, True, 1.5, 1, 100_000, 5_000),
        SamplingDesign(rows_per_person=3, cluster_effect=3.0),
    ],
)
def test_a_file_keeps_the_design(design):
    """And it says nothing where nothing was declared, as files of earlier versions do."""
    assert SamplingDesign.from_dict(design.to_dict()) == design
    assert bool(design.described()) == (design != INDEPENDENT)


@pytest.mark.parametrize(
    "changed",
    [
        {"mean_weight": 21.0},
        {"mean_weight": 0.0},
        {"mean_weight": math.nan},
        {"largest_weight": math.inf},
        {"cluster_effect": 0.5},
        {"cluster_effect": math.nan},
        {"rows_per_person": 0},
        {"population_size": 4},
        {"n_rows": 0},
        {"has_weights": 1},
    ],
)
def test_a_file_with_impossible_facts_is_refused(changed):
    """A factor below what any declaration gives would make intervals too short."""
    facts = SamplingDesign(20.0, 4.0, True, 1.5, 1, 100_000, 5_000).to_dict()
    with pytest.raises(ParameterError):
        SamplingDesign.from_dict(facts | changed)
    with pytest.raises(ParameterError, match="another version"):
        SamplingDesign.from_dict(facts | {"strata": 5})


def test_the_table_says_what_design_it_assumes():
    """One sentence for independent rows; more where weights, clusters or a finite population were declared."""
    independent = "Sampling errors assume that rows were drawn independently of each other."
    assert INDEPENDENT.sentences == (independent,)
    rows, labels, weights = sample(0)
    small = confide.LogisticRegression(float("inf"), inference_share=0.3, row_norm=1.0, classes=[0, 1])
    assert independent in small.fit(rows, labels).summary().notes
    # Weights up to 1 need no declaration; the table speaks of them all the same.
    assert any("inversely" in note for note in small.fit(rows, labels, sample_weight=weights / 20.0).summary().notes)
    model = fitted(cluster_effect=1.7, population_size=30_000, mean_sample_weight=6.0)[0]
    notes = " ".join(model.summary().notes)
    assert "design effect of clustering, 1.7" in notes
    assert "alpha = 1e-09 beside losses times the weights of their rows" in notes
    assert "Strata are not used" in notes
    assert "30,000 units of the population as it is" in notes
    assert model.summary().to_dict()["design"]["cluster_effect"] == 1.7
    assert "any dependence of the up to 4 rows" in " ".join(fitted(max_rows_per_person=4)[0].summary().notes)


def test_a_saved_model_keeps_its_intervals(tmp_path):
    """With both kinds of evidence."""
    for kind in ({"inference_share": 0.3}, {"inference_share": 0.0, "interest": ["x0"]}):
        model = fitted(population_size=30_000, mean_sample_weight=6.0, **kind)[0]
        model.save(tmp_path / "model.json", overwrite=True)
        loaded = confide.load(tmp_path / "model.json")
        np.testing.assert_array_equal(loaded.conf_int(), model.conf_int())
        assert loaded.summary().notes == model.summary().notes
    evidence = fitted()[0]._evidence
    assert Evidence.from_dict(evidence.to_dict()).design == evidence.design
    interest = fitted(inference_share=0.0, interest=["x0"])[0]._interest
    assert InterestEvidence.from_dict(interest.to_dict()).facts == interest.facts


def test_a_forecast_counts_rows_at_their_mean_weight():
    """With a mean of a quarter of the cap, typical rows add a quarter to the curvature, and noise counts four times."""

    def plan(**parameters):
        model = confide.LogisticRegression(
            confide.ApproxDP(4.0, 1e-6), row_norm=1.0, alpha=0.01, classes=[0, 1], max_sample_weight=20.0, **parameters
        )
        return model.plan(100_000, 4)

    at_cap, quarter = (plan(inference_share=0.3, mean_sample_weight=mean).intervals for mean in (20.0, 5.0))
    assert quarter.usual_curvature == pytest.approx(0.25 * at_cap.usual_curvature)
    assert quarter.curvature_noise == at_cap.curvature_noise
    assert quarter.margin > 1.15 * at_cap.margin
    named = [plan(interest=["x0"], mean_sample_weight=mean).intervals for mean in (20.0, 5.0)]
    assert named[1].facts.usual_curvature == pytest.approx(0.25 * named[0].facts.usual_curvature)
    assert named[1].second_order > 1.3 * named[0].second_order
    assert plan(inference_share=0.3).intervals.usual_curvature == pytest.approx(0.05 * at_cap.usual_curvature)
    text = str(plan(inference_share=0.3, mean_sample_weight=5.0))
    assert "the effective sample is at least 0.25 of the rows" in text
    assert "noise counts 4 times" in text


def test_a_plan_that_is_refused_because_of_weights_says_what_helps():
    """Nothing was charged: a lower cap, or the mean weight."""
    model = confide.LogisticRegression(
        confide.ApproxDP(1.0, 1e-6), inference_share=0.3, row_norm=1.0, classes=[0, 1], max_sample_weight=200.0
    )
    with pytest.raises(ParameterError, match=r"trim weights at a lower cap.*declare the mean weight"):
        model.plan(20_000, 4)


def test_errors_have_the_size_that_a_stratified_weighted_sample_gives_them():
    """Over 200 samples, errors over standard errors have a variance near 1; without the weights' squares they would not."""
    rng = np.random.default_rng(8)
    n, sizes = 30_000, (500, 400, 300, 200, 100)
    rows = rng.normal(size=(n, 2))
    rows *= rng.uniform(size=(n, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    shares = np.array(sizes) * WEIGHTS / np.dot(sizes, WEIGHTS)
    strata = rng.choice(5, size=n, p=shares)
    members = [np.flatnonzero(strata == stratum) for stratum in range(5)]
    chances = expit(rows @ [1.0, -1.0] + 0.2 + 0.2 * (strata - 2))
    own = np.array([len(each) / size for each, size in zip(members, sizes, strict=True)])
    design, truth = np.column_stack([rows, np.ones(n)]), np.zeros(3)
    for _ in range(30):
        fit = expit(design @ truth)
        truth -= np.linalg.solve((design * (fit * (1 - fit))[:, None]).T @ design, design.T @ (fit - chances))
    model = confide.LogisticRegression(
        float("inf"), alpha=1e-9, inference_share=0.3, row_norm=1.0, classes=[0, 1], max_sample_weight=float(own.max())
    )
    ratios = []
    for _ in range(200):
        places = np.concatenate([rng.choice(each, size=size) for each, size in zip(members, sizes, strict=True)])
        labels = (rng.uniform(size=len(places)) < chances[places]).astype(int)
        found = model.fit(rows[places], labels, sample_weight=own[strata[places]]).uncertainty()
        ratios.append((found.estimates - truth) / found.sampling_error)
    assert 0.8 < np.mean(np.square(ratios)) < 1.2
