"""How sure: intervals and tables, made of what was released and of public facts."""

from confide.submodules import on_first_use

__getattr__ = on_first_use(__name__)
