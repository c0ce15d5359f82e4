"""Effects with bands.

What age, education and working hours say about income, from an additive model of the census of 1994. Four tenths of the
budget pay for the bands. The inner band is for each value by itself, the outer one for the whole curve.

Picture: Three curves with bands: the effect of age rises until about 50 and then falls, those of education and of hours
are mostly higher for large values than for small ones.

Data: Adult (B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0), which ships with confide.
"""

import confide

adult = confide.datasets.load_adult()
budget = confide.ApproxDP(4.0, 1e-5)
model = confide.AdditiveClassifier(
    budget, schema=adult.schema, loss="logistic", inference_share=0.4
)
model.fit(adult.X_train, adult.y_train)
figure = model.plot_effects(columns=["age", "education-num", "hours-per-week"]).figure_
figure.savefig("effects_with_bands.svg")
