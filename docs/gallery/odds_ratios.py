"""Which columns matter, each for its unit.

A logistic regression with intervals for sampling and noise. Numbers count for the step from the low to the high of their
bounds, and levels against the first one of their category, so that all can be compared; the axis above shows odds ratios.
What noise alone could make lies in the grey bands.

Picture: Coefficients as points with short intervals, the largest on top: education, working hours, age and being a man
raise the odds of a high income; two categories of race, against the first one, lower them.

Data: Adult (B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0), which ships with confide.
"""

import confide

adult = confide.datasets.load_adult()
schema = confide.Schema(
    columns={
        "age": {"low": 17, "high": 90},
        "education-num": {"low": 1, "high": 16},
        "hours-per-week": {"low": 1, "high": 99},
        "sex": {"categories": ["Female", "Male"]},
        "race": {"categories": ["White", "Black", "Other"], "other": "Other"},
    },
    target={"column": "income", "negative": "<=50K", "positive": ">50K"},
)
model = confide.LogisticRegression(
    confide.ApproxDP(1.0, 1e-6), schema=schema, inference_share=0.3
)
model.fit(adult.X_train, adult.y_train)
display = confide.CoefficientsDisplay.from_estimator(model)
display.figure_.savefig("odds_ratios.svg")
