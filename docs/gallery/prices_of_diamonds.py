"""A regression with curves.

The price of a diamond against its weight and its clarity, from an additive model at epsilon 1. Prices are clipped to a
public bound of 20,000 dollars.

Picture: The effect on the price: a curve that rises with the carat, and one point for each clarity, which rise from I1
to IF.

Data: diamonds of ggplot2 (H. Wickham, 2016), diamonds.parquet in the folder that CONFIDE_DATA_DIR names. Diamonds are
no persons; they stand for rows that need protection.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

import confide

folder = os.environ.get("CONFIDE_DATA_DIR")
if not folder:
    raise SystemExit("Set CONFIDE_DATA_DIR to the folder that holds diamonds.parquet.")
diamonds = pd.read_parquet(Path(folder, "diamonds.parquet"))
schema = confide.Schema(
    columns={
        "carat": {"low": 0.2, "high": 3},
        "cut": {"categories": ["Fair", "Good", "Very Good", "Premium", "Ideal"]},
        "color": {"categories": list("DEFGHIJ")},
        "clarity": {
            "categories": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
        },
    },
    target={"column": "price", "low": 0, "high": 20_000},
)
order = np.random.default_rng(0).permutation(len(diamonds))
train, test = (
    diamonds.iloc[order[len(order) // 4 :]],
    diamonds.iloc[order[: len(order) // 4]],
)
model = confide.AdditiveRegressor(confide.ApproxDP(1.0, 1e-6), schema=schema).fit(
    train, train["price"]
)
print(f"R2 on rows held out: {model.score(test, test['price']):.3f}")
figure = model.plot_effects(columns=["carat", "clarity"]).figure_
figure.savefig("prices_of_diamonds.svg")
