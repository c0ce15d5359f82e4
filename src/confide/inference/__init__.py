"""How sure: intervals and tables, made of what was released and of public facts."""

from confide.first_use import submodules

__getattr__ = submodules(__name__)
