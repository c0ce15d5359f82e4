# %% [markdown]
# # A private model in a notebook
#
# Every cell can be run as often as you like, except those that fit: each of them is charged. The ledger of this notebook
# lives in memory; in earnest, take a file.

# %%
import confide

adult = confide.datasets.load_adult()
ledger = confide.Ledger(limit=confide.ApproxDP(3.0, 1e-5))

# %% [markdown]
# ## Plan
#
# A plan reads no row and costs nothing.

# %%
budget = confide.ApproxDP(2.0, 1e-6)
model = confide.AdditiveClassifier(
    budget, schema=adult.schema, loss="logistic", inference_share=0.3, ledger=ledger
)
model.plan(n_rows=32_561)

# %% [markdown]
# ## Fit
#
# This cell charges the ledger. If you run it twice, it is charged twice.

# %%
model.fit(adult.X_train, adult.y_train)

# %% [markdown]
# ## Look
#
# Effects and their bands are made from the release, so looking costs nothing.

# %%
display = model.plot_effects(columns=["age", "education-num", "hours-per-week"])

# %%
model.contrast("age", 30, 50)

# %% [markdown]
# ## What is left

# %%
print(ledger)

# %% [markdown]
# ## The guarantee

# %%
print(model.guarantee_)
