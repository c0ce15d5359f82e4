"""What users pass in: parameters, rows, labels and losses of their own. Everything is checked before any charge."""
