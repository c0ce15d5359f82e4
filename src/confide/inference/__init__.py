"""Intervals and tables of coefficients, made from what was released and from public facts."""

from confide.first_use import submodules

__getattr__ = submodules(__name__)
