"""Tests of confide.solvers."""
