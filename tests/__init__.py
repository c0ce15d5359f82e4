"""Tests, in the order of the package."""
