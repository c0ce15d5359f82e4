"""Intervals and tables of coefficients, made from what was released and from public facts."""
