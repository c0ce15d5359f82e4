"""What a curator may learn of a table before anything is spent: how its cells fit its schema. Not for release."""
