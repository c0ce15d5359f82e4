"""A study as one file: its data, budget, ledger, model, evaluation and outputs, and how far it has come."""
