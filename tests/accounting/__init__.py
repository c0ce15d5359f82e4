"""Tests of confide.accounting."""
