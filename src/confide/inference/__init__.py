"""Intervals and tables of coefficients, made from what was released and from public facts."""

from confide.submodules import on_first_use

__getattr__ = on_first_use(__name__)
