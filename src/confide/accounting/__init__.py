"""What was spent: how the costs of releases add up, and the ledger that keeps account of them."""
