"""Which option of the command line stands for which parameter of Python.

Refusals are put into the words of options by this table, and a test compares it with the parameters of all estimators.
"""

from __future__ import annotations

OPTION_OF = {
    "allow_hidden": "--allow-hidden",
    "alpha": "--alpha",
    "budget": "--epsilon",
    "centre": "--centre",
    "class_weight": "--class-weight",
    "clip": "--clip",
    "cluster_effect": "--cluster-effect",
    "cross_tables": "--cross",
    "delta": "--delta",
    "epsilon": "--epsilon",
    "error": "--error",
    "excess": "--excess",
    "expected_tries": "--expected-tries",
    "failure": "--failure",
    "feature_norm": "--feature-norm",
    "fit_intercept": "--intercept",
    "groups": "--groups",
    "held_out": "--held-out",
    "inference_share": "--intervals",
    "interactions": "--interactions",
    "interest": "--interest",
    "intercept_scaling": "--intercept-scaling",
    "intervals": "--intervals",
    "kernel": "--kernel",
    "knots": "--knots",
    "ledger": "--ledger",
    "l1_ratio": "--l1-ratio",
    "length_scale": "--length-scale",
    "level": "--level",
    "loss": "--loss",
    "map_seed": "--map-seed",
    "match_mean": "--match-mean",
    "max_rows_per_person": "--max-rows-per-person",
    "mechanism": "--mechanism",
    "method": "--method",
    "monotone": "--monotone",
    "multiclass": "--multiclass",
    "n_bins": "--bins",
    "n_features": "--n-features",
    "n_jobs": "--jobs",
    "n_rows": "--rows",
    "n_rows_bounds": "--n-rows-bounds",
    "neighbours": "--neighbours",
    "orthogonal": "--orthogonal",
    "other": "--other",
    "param_grid": "--grid",
    "penalty": "--penalty",
    "population_size": "--population-size",
    "positive_rate": "--positive-rate",
    "prior": "--prior",
    "quantile": "--quantile",
    "quantiles": "--quantiles",
    "random_state": "--seed",
    "reference_norm": "--reference-norm",
    "risk_differences": "--risk-differences",
    "rho": "--rho",
    "row_norm": "--row-norm",
    "schema": "--schema",
    "score_share": "--score-share",
    "smoothing": "--smoothing",
    "target_bound": "--target-bound",
    "threshold": "--threshold",
}
"""The option that stands for a parameter."""

WITHOUT_OPTION = {
    "bounds": "a command needs a schema, which has the bounds of each column",
    "classes": "the schema declares the labels of its target",
    "max_sample_weight": "the schema names the column of weights and its cap: weight = { column = ..., high = ... }",
    "mean_sample_weight": "the schema says the mean of the weights: weight = { column = ..., high = ..., mean = ... }",
    "estimator": "--model and its options describe it",
    "target_high": "the schema has the range of its target: target = { column = ..., low = ..., high = ... }",
    "target_low": "the schema has the range of its target: target = { column = ..., low = ..., high = ... }",
}
"""Parameters that have no option, and the reason."""

OF_FITS_ALONE = ("ledger", "random_state")
"""Parameters of a release. A plan has none, so `confide plan` has no options for them."""
