"""A public prior at small budgets.

Five hundred public rows give a poor model. As a prior of a private fit to the other rows they help where the noise is
large. Where it is small, the rows say more than the prior, which then gains nothing.

Picture: Test error against epsilon with a public prior and without: the prior helps most at the smallest epsilon.

Data: Adult (B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0), which ships with confide. The
first 500 rows play the public ones.
"""

import matplotlib.pyplot as plt
import numpy as np

import confide

adult = confide.datasets.load_adult()
public, private = slice(0, 500), slice(500, None)
alone = confide.LogisticRegression(float("inf"), schema=adult.schema).fit(
    adult.X_train[public], adult.y_train[public]
)
budgets = [0.03, 0.1, 0.3, 1.0]


def error(epsilon, prior):
    model = confide.LogisticRegression(
        confide.ApproxDP(epsilon, 1e-6), schema=adult.schema, prior=prior
    )
    return 1.0 - model.fit(adult.X_train[private], adult.y_train[private]).score(
        adult.X_test, adult.y_test
    )


figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for label, prior in (
    ("without a prior", None),
    ("with the public prior", confide.PublicPrior(alone)),
):
    axes.plot(
        budgets,
        [np.mean([error(epsilon, prior) for _ in range(4)]) for epsilon in budgets],
        "o-",
        label=label,
    )
axes.axhline(
    1.0 - alone.score(adult.X_test, adult.y_test),
    color="0.5",
    linestyle=":",
    label="public rows alone",
)
axes.set(xscale="log", xlabel="epsilon (delta = 1e-6)", ylabel="test error")
axes.set_xticks(budgets, [str(epsilon) for epsilon in budgets])
axes.legend(frameon=False)
figure.savefig("public_prior.svg")
