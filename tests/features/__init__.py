"""Tests of confide.features."""
