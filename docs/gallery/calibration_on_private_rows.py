"""Calibration on private rows.

Do 70 in 100 of the people to whom a model gives 0.7 belong to the positive class? The rows held out are private too, so
their counts are released with noise, at epsilon 0.5. The bars are intervals that cover sampling and noise.

Picture: The part of rows that are positive against the predicted probability: the points, with their intervals, lie
near the diagonal.

Data: Adult (B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0), which ships with confide.
"""

import confide

adult = confide.datasets.load_adult()
model = confide.AdditiveClassifier(
    confide.ApproxDP(1.0, 1e-6), schema=adult.schema, loss="logistic"
)
model.fit(adult.X_train, adult.y_train)
report = confide.evaluate(model, adult.X_test, adult.y_test, budget=0.5, n_bins=10)
print(report)

display = confide.CalibrationDisplay.from_counts(
    report
)  # draws what was released, so it costs nothing more
display.figure_.savefig("calibration_on_private_rows.svg")
