"""The dataclasses of this room are frozen values with slots."""

from __future__ import annotations

from tests.frozen_values import check_values, dataclasses_of

KINDS = dataclasses_of("accounting")


def test_every_dataclass_is_a_frozen_value_with_slots():
    """A plan that could be changed after the charge would prove nothing."""
    assert KINDS
    check_values(KINDS)
