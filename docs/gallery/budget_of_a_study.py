"""The budget of a study, release by release.

A study makes five releases about the same people: a count by hand, two models, an evaluation, and a batch of three
small models that was planned beforehand. Under a concentrated limit they cost less together than the sum of their
epsilons.

Picture: A staircase of what five releases spent, one step each, below the line of the limit.

Data: Adult (B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996, CC BY 4.0), which ships with confide.
"""

import confide

adult = confide.datasets.load_adult()
X, y = adult.X_train, adult.y_train
ledger = confide.Ledger(limit=confide.ZCDP(0.2))

ledger.charge(confide.PureDP(0.1), purpose="people over 65, by hand")
for kind in (confide.LogisticRegression, confide.AdditiveClassifier):
    model = kind(confide.ZCDP(0.05), schema=adult.schema, ledger=ledger).fit(X, y)
confide.evaluate(
    model, adult.X_test, adult.y_test, budget=confide.ZCDP(0.01), ledger=ledger
)
ledger.plan([confide.ZCDP(0.02)] * 3, purpose="three small models")

display = confide.LedgerDisplay.from_ledger(ledger)
display.figure_.savefig("budget_of_a_study.svg")
