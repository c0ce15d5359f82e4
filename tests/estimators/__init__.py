"""Tests of confide.estimators."""
