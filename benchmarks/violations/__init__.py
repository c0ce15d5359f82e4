"""Violations that were found in other libraries, each attacked by confide.audit."""
