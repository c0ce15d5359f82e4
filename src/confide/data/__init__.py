"""Where rows live. Trusted for one sentence: every row is counted exactly once."""

from confide.submodules import on_first_use

__getattr__ = on_first_use(__name__)
