"""A kernel machine, where straight lines fail.

Pixels of faces against other pixels, by their red and green. A straight line cannot enclose a region; a support vector
machine on random features of a kernel can. The shade is the decision, the points are a few of the pixels.

Picture: Pixels by red and green, and what two models call skin: one side of a straight line, and a region with a curved
edge.

Data: Skin segmentation (R. Bhatt and A. Dhall, UCI Machine Learning Repository, 2012, CC BY 4.0),
skin_segmentation.parquet in the folder that CONFIDE_DATA_DIR names. Pixels are no persons; they stand for rows that
need protection.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import confide

folder = os.environ.get("CONFIDE_DATA_DIR")
if not folder:
    raise SystemExit(
        "Set CONFIDE_DATA_DIR to the folder that holds skin_segmentation.parquet."
    )
pixels = pd.read_parquet(Path(folder, "skin_segmentation.parquet")).sample(
    40_000, random_state=0, replace=True
)
schema = confide.Schema(
    columns={"R": {"low": 0, "high": 255}, "G": {"low": 0, "high": 255}},
    target={"column": "label", "negative": 2, "positive": 1},
)
budget = confide.ApproxDP(1.0, 1e-6)
models = {
    "LinearSVC": confide.LinearSVC(budget, schema=schema),
    "KernelSVC": confide.KernelSVC(
        budget, schema=schema, length_scale=0.5, n_features=128
    ),
}
red, green = np.meshgrid(np.linspace(0, 255, 60), np.linspace(0, 255, 60))
grid = pd.DataFrame({"R": red.ravel(), "G": green.ravel()})
figure, places = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
shown = pixels[:250]
for axes, (name, model) in zip(places, models.items(), strict=True):
    model.fit(pixels, pixels["label"])
    is_skin = (model.predict(grid) == 1).reshape(red.shape)
    axes.contourf(
        red, green, is_skin, levels=[-0.5, 0.5, 1.5], colors=["#dbe6f2", "#f6d9c8"]
    )
    for label, colour in ((2, "C0"), (1, "C1")):
        axes.plot(
            *shown.loc[shown["label"] == label, ["R", "G"]].to_numpy().T,
            ".",
            color=colour,
            markersize=3,
        )
    axes.set(
        title=f"{name}: error {1 - model.score(pixels, pixels['label']):.3f}",
        xlabel="red",
    )
places[0].set_ylabel("green")
figure.savefig("kernel_of_skin.svg")
