"""A study as one file: its first questions, its checks, its steps, and how far it has come."""
