"""Before anything is spent: how good a private model will be, and how many rows it needs. Made from public facts only."""

from confide.planning.comparison import Compared, compare_mechanisms, equivalent_budgets
from confide.planning.simulation import Forecast, simulate
from confide.planning.support_vectors import (
    PrivacyRange,
    features_for_kernel,
    laplace_scale_for_accuracy,
    optimal_privacy,
    optimal_privacy_of_kernel,
)
from confide.planning.utility import SampleSize, UtilityBound, sample_size, utility_bound

__all__ = [
    "Compared",
    "Forecast",
    "PrivacyRange",
    "SampleSize",
    "UtilityBound",
    "compare_mechanisms",
    "equivalent_budgets",
    "features_for_kernel",
    "laplace_scale_for_accuracy",
    "optimal_privacy",
    "optimal_privacy_of_kernel",
    "sample_size",
    "simulate",
    "utility_bound",
]
