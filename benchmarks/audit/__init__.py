"""The full audit: every estimator, mechanism, currency, relation and kind of rows, and every planted bug."""
