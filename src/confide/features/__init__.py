"""From columns to bounded rows, by public knowledge only."""

from confide.submodules import on_first_use

__getattr__ = on_first_use(__name__)
