"""Calibration on private rows.

Do 70 in 100 of the people to whom a model gives 0.7 belong to the positive class? The rows held out are private too, so
their counts are released with noise, at epsilon 0.5. The bars are intervals that cover sampling and noise.

Data: Adult (B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0), which ships with confide.
"""

import matplotlib.pyplot as plt

import confide

adult = confide.datasets.load_adult()
model = confide.AdditiveClassifier(confide.ApproxDP(1.0, 1e-6), schema=adult.schema, loss="logistic")
model.fit(adult.X_train, adult.y_train)
report = confide.evaluate(model, adult.X_test, adult.y_test, budget=0.5, n_bins=10)
print(report)

figure, axes = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
axes.plot([0, 1], [0, 1], color="0.7")
for place, rate in enumerate(report.calibration):
    if rate.value is None:
        continue
    middle = (rate.low + rate.high) / 2
    axes.errorbar((place + 0.5) / 10, middle, yerr=(rate.high - rate.low) / 2, fmt="none", color="C0", capsize=3)
    axes.plot((place + 0.5) / 10, rate.value, "o", color="C0")
axes.set(xlabel="probability by the model", ylabel="share of the positive class", xlim=(0, 1), ylim=(0, 1))
figure.savefig("calibration_on_private_rows.svg")
