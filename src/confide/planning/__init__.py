"""Before anything is spent: how good a private model will be, and how many rows it needs. Made from public facts only."""

from confide.planning.advice import Compared, compare_mechanisms, equivalent_budgets
from confide.planning.bounds import (
    ExcessRiskBound,
    FeatureApproximation,
    UtilityBound,
    excess_risk_bound,
    feature_approximation,
    kernel_excess_risk_bound,
    least_excess_risk,
    utility_bound,
)
from confide.planning.kernels import (
    PrivacyRange,
    features_for_kernel,
    kernel_error_for_accuracy,
    laplace_scale_for_accuracy,
    laplace_scale_for_kernel,
    optimal_privacy,
    optimal_privacy_of_kernel,
    pairs_by_lemma_18,
    pairs_for_kernel_error,
    second_moment,
)
from confide.planning.sample_sizes import SampleSize, sample_size
from confide.planning.simulation import Forecast, simulate

__all__ = [
    "Compared",
    "ExcessRiskBound",
    "FeatureApproximation",
    "Forecast",
    "PrivacyRange",
    "SampleSize",
    "UtilityBound",
    "compare_mechanisms",
    "equivalent_budgets",
    "excess_risk_bound",
    "feature_approximation",
    "features_for_kernel",
    "kernel_error_for_accuracy",
    "kernel_excess_risk_bound",
    "laplace_scale_for_accuracy",
    "laplace_scale_for_kernel",
    "least_excess_risk",
    "optimal_privacy",
    "optimal_privacy_of_kernel",
    "pairs_by_lemma_18",
    "pairs_for_kernel_error",
    "sample_size",
    "second_moment",
    "simulate",
    "utility_bound",
]
