"""Accuracy against epsilon.

Three models of Adult at four budgets, the mean of three fits each. The dotted lines are the same models without
privacy. From epsilon 1 on, privacy costs an additive model less than straight lines lose to curves. It may even fall
below its dotted line: with a budget it looks for amounts that many people share, and without one it does not.

Picture: Test error of three models on Adult against epsilon: the additive model errs least at all budgets but the
smallest, and falls below its dotted line, the error without privacy; the two others near theirs.

Data: Adult (B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0), which ships with confide.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import confide

adult = confide.datasets.load_adult()
estimators = {
    "AdditiveClassifier": confide.AdditiveClassifier,
    "LinearSVC": confide.LinearSVC,
    "LogisticRegression": confide.LogisticRegression,
}
budgets = [0.1, 0.3, 1.0, 3.0]


def error(kind, epsilon):
    budget = epsilon if math.isinf(epsilon) else confide.ApproxDP(epsilon, 1e-6)
    model = kind(budget, schema=adult.schema)
    return 1.0 - model.fit(adult.X_train, adult.y_train).score(
        adult.X_test, adult.y_test
    )


figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, kind in estimators.items():
    errors = [np.mean([error(kind, epsilon) for _ in range(3)]) for epsilon in budgets]
    (line,) = axes.plot(budgets, errors, "o-", label=name)
    axes.axhline(error(kind, math.inf), color=line.get_color(), linestyle=":")
axes.set(xscale="log", xlabel="epsilon (delta = 1e-6)", ylabel="test error")
axes.set_xticks(budgets, [str(epsilon) for epsilon in budgets])
axes.legend(frameon=False)
figure.savefig("accuracy_and_epsilon.svg")
