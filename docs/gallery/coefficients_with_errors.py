"""Coefficients, and why they are uncertain.

A logistic regression with intervals. The inner part of each interval is what sampling alone would give, and the ends
are what the noise adds. In the picture numbers count per half of their range, so that they can be compared, and the axis
above shows odds ratios; the table that the script prints has people's units. With 32,561 rows most of the width is
sampling.

Picture: Coefficients but the intercept, as bars around their estimates: nearly all of each bar is its inner part, for
sampling, and the ends that noise adds are short.

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
print(model.summary())
axes = model.summary(units="encoded").plot()
axes.figure.savefig("coefficients_with_errors.svg")
