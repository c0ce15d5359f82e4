"""The budget of a study, release by release.

A study makes five releases about the same people: a count by hand, two models, an evaluation, and a batch of three
small models that was planned beforehand. Under a concentrated limit they cost less together than the sum of their
epsilons.

Data: Adult (B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0), which ships with confide.
"""

import matplotlib.pyplot as plt

import confide

adult = confide.datasets.load_adult()
X, y = adult.X_train, adult.y_train
ledger = confide.Ledger(limit=confide.ZCDP(0.2))
left = [ledger.remaining().rho]


def note():
    left.append(ledger.remaining().rho)


ledger.charge(confide.PureDP(0.1), purpose="number of people over 65")
note()
for kind in (confide.LogisticRegression, confide.AdditiveClassifier):
    model = kind(confide.ZCDP(0.05), schema=adult.schema, ledger=ledger).fit(X, y)
    note()
confide.evaluate(model, adult.X_test, adult.y_test, budget=confide.ZCDP(0.01), ledger=ledger)
note()
ledger.plan([confide.ZCDP(0.02)] * 3)
note()
print(ledger.entries()[["purpose", "rho", "epsilon"]])

names = ["limit", "count by hand", "logistic model", "additive model", "evaluation", "three small models"]
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.step(range(len(left)), left, where="post", color="0.6")
axes.plot(range(len(left)), left, "o")
axes.set_xticks(range(len(left)), names, rotation=25, ha="right")
axes.set(ylabel="rho that is left", ylim=(0, 0.21))
figure.savefig("budget_of_a_study.svg")
