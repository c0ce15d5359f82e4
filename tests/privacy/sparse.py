"""Small problems with an l1 penalty."""

from __future__ import annotations

from dataclasses import fields

from confide.privacy.elastic_net import SparseProblem


def sparse(facts, l1_ratio):
    """The same problem with an l1 penalty: its strength over that of the ridge is l1_ratio / (1 - l1_ratio)."""
    return SparseProblem(**{field.name: getattr(facts, field.name) for field in fields(facts)}, l1_ratio=l1_ratio)
