"""Tests of confide.erm."""
