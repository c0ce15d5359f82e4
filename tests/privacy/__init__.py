"""Tests of confide.privacy."""
