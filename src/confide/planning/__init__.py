"""Before anything is spent: how good a private model will be, and how many rows it needs. Made from public facts only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide.first_use import public_names

if TYPE_CHECKING:
    from confide.planning.bounds import ExcessRiskBound as ExcessRiskBound
    from confide.planning.bounds import FeatureApproximation as FeatureApproximation
    from confide.planning.bounds import UtilityBound as UtilityBound
    from confide.planning.bounds import excess_risk_bound as excess_risk_bound
    from confide.planning.bounds import feature_approximation as feature_approximation
    from confide.planning.bounds import kernel_excess_risk_bound as kernel_excess_risk_bound
    from confide.planning.bounds import least_excess_risk as least_excess_risk
    from confide.planning.bounds import utility_bound as utility_bound
    from confide.planning.kernels import PrivacyRange as PrivacyRange
    from confide.planning.kernels import features_for_kernel as features_for_kernel
    from confide.planning.kernels import kernel_error_for_accuracy as kernel_error_for_accuracy
    from confide.planning.kernels import laplace_scale_for_accuracy as laplace_scale_for_accuracy
    from confide.planning.kernels import laplace_scale_for_kernel as laplace_scale_for_kernel
    from confide.planning.kernels import optimal_privacy as optimal_privacy
    from confide.planning.kernels import optimal_privacy_of_kernel as optimal_privacy_of_kernel
    from confide.planning.kernels import pairs_by_lemma_18 as pairs_by_lemma_18
    from confide.planning.kernels import pairs_for_kernel_error as pairs_for_kernel_error
    from confide.planning.kernels import second_moment as second_moment
    from confide.planning.sample_sizes import SampleSize as SampleSize
    from confide.planning.sample_sizes import sample_size as sample_size
    from confide.planning.simulation import Forecast as Forecast
    from confide.planning.simulation import simulate as simulate

__all__, __getattr__, __dir__ = public_names(__name__, __file__)
