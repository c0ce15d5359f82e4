"""What came in: parameters, rows and labels of any kind, and a user's losses. All of it is checked before any charge."""
