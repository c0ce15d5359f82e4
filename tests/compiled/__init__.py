"""Tests of confide.compiled."""
