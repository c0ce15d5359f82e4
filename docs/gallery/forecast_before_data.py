"""A forecast before any data, and what came.

How the error of an additive model of the Bank data falls with epsilon: the band was forecast from the schema, the
number of rows and a guess of the error without privacy; no row was read for it. The points are fits to the rows.

Picture: A band of forecast errors that falls with epsilon, and within it the errors of fits that came later.

Data: Bank marketing (S. Moro, P. Rita and P. Cortez, UCI Machine Learning Repository, 2014, CC BY 4.0),
bank_full.parquet in the folder that CONFIDE_DATA_DIR names.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import confide
from confide import planning

folder = os.environ.get("CONFIDE_DATA_DIR")
if not folder:
    raise SystemExit("Set CONFIDE_DATA_DIR to the folder that holds bank_full.parquet.")
bank = pd.read_parquet(Path(folder, "bank_full.parquet"))
schema = confide.Schema(
    columns={
        "age": {"low": 18, "high": 95},
        "duration": {"low": 0, "high": 5000, "scale": "log"},
        "campaign": {"low": 1, "high": 60, "scale": "log"},
        "housing": {"categories": ["no", "yes"]},
        "loan": {"categories": ["no", "yes"]},
        "contact": {
            "categories": ["cellular", "telephone", "unknown"],
            "other": "unknown",
        },
        "poutcome": {
            "categories": ["failure", "other", "success", "unknown"],
            "other": "unknown",
        },
    },
    target={"column": "y", "negative": "no", "positive": "yes"},
)
order = np.random.default_rng(0).permutation(len(bank))
train, test = (
    bank.iloc[order[: 2 * len(bank) // 3]],
    bank.iloc[order[2 * len(bank) // 3 :]],
)

budgets = [0.03, 0.1, 0.3, 1.0]
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
forecasts, errors = [], []
for epsilon in budgets:
    model = confide.AdditiveClassifier(confide.ApproxDP(epsilon, 1e-6), schema=schema)
    forecasts.append(
        planning.simulate(model, len(train), error=0.1, positive_rate=0.12)
    )
    errors.append(
        [1.0 - model.fit(train, train["y"]).score(test, test["y"]) for _ in range(3)]
    )
lows, highs = [each.low for each in forecasts], [each.high for each in forecasts]
axes.fill_between(budgets, lows, highs, alpha=0.25, label="forecast: 4 in 5 within")
axes.plot(budgets, [each.error for each in forecasts], label="forecast")
axes.plot(budgets, errors, "k.", label="fits")
axes.set(xscale="log", xlabel="epsilon (delta = 1e-6)", ylabel="test error")
axes.set_xticks(budgets, [str(epsilon) for epsilon in budgets])
handles, labels = axes.get_legend_handles_labels()
axes.legend(handles[:3], labels[:3], frameon=False)
figure.savefig("forecast_before_data.svg")
