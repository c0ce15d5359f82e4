"""From columns to bounded rows, by public knowledge only."""

from confide.first_use import submodules

__getattr__ = submodules(__name__)
