"""Counts, and one person with several rows.

How often people see a doctor, by the share of the bill that they pay themselves: the RAND health insurance experiment.
A person has up to five rows, one a year, of which two are drawn and count. The schema names the column of persons, and
the guarantee protects a person with all of them.

Picture: Visits a year against the share of the bill that patients pay: two falling curves, women above men.

Data: RAND Health Insurance Experiment (J. P. Newhouse, public domain), randhie.parquet in the folder that
CONFIDE_DATA_DIR names.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import confide

folder = os.environ.get("CONFIDE_DATA_DIR")
if not folder:
    raise SystemExit("Set CONFIDE_DATA_DIR to the folder that holds randhie.parquet.")
years = pd.read_parquet(Path(folder, "randhie.parquet"))
schema = confide.Schema(
    columns={
        "coins": {"low": 0, "high": 100, "knots": 0},
        "xage": {"low": 0, "high": 65, "knots": 4, "missing": True},
        "female": {"categories": [0, 1]},
        "disea": {"low": 0, "high": 60, "knots": 0, "missing": True},
    },
    target={"column": "mdvis", "low": 0, "high": 20},
    person="zper",
)
model = confide.AdditiveRegressor(
    confide.ApproxDP(4.0, 1e-5), schema=schema, loss="poisson", max_rows_per_person=2
)
model.fit(years, years["mdvis"])
print(model.guarantee_.statement().splitlines()[0])

paid = np.linspace(0, 100, 21)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for female, label in ((1, "women"), (0, "men")):
    rows = pd.DataFrame({"coins": paid, "xage": 40.0, "female": female, "disea": 10.0})
    axes.plot(paid, model.predict(rows), label=f"{label}, aged 40")
axes.set(
    xlabel="share of the bill that the patient pays (%)",
    ylabel="visits a year",
    ylim=(0, None),
)
axes.legend(frameon=False)
figure.savefig("visits_to_the_doctor.svg")
