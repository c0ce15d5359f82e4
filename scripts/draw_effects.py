"""Draw the picture of effects in the README, docs/pictures/effects_of_adult.svg. Noise is drawn anew: the curves move a bit.

Run: python scripts/draw_effects.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

import confide

COLUMNS = ["age", "education-num", "hours-per-week"]
BUDGET = confide.ApproxDP(4.0, 1e-5)


def main() -> None:
    """Fit an additive model of Adult with intervals, and draw three effects."""
    mpl.use("svg")
    mpl.rcParams["svg.fonttype"] = "path"
    adult = confide.datasets.load_adult()
    model = confide.AdditiveClassifier(BUDGET, schema=adult.schema, loss="logistic", inference_share=0.4)
    model.fit(adult.X_train, adult.y_train)
    figure = model.plot_effects(columns=COLUMNS).figure_
    figure.savefig(
        Path(__file__).parent.parent / "docs" / "pictures" / "effects_of_adult.svg", bbox_inches="tight", facecolor="white"
    )


if __name__ == "__main__":
    main()
