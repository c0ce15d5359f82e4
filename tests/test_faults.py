"""A small part of scripts/faults.py in each run of the tests, and that it would see a broken promise."""

from __future__ import annotations

import pytest
from scripts import faults

import confide


@pytest.mark.parametrize("name", ["clock", "descriptors", "disk", "finishing", "kills"])
def test_what_is_released_is_charged_under_faults(name, tmp_path):
    """Kills, a full disk, no more files and a jumping clock; memory and studies are left to `make faults`."""
    assert faults.FAULTS[name](tmp_path, 10)


def test_a_release_that_is_not_charged_is_seen(tmp_path):
    """A model beside a ledger that holds no charge."""
    confide.Ledger(tmp_path / "ledger.db", limit=1.0)
    faults._fit(None).save(tmp_path / "model-0.json")
    with pytest.raises(faults.Broken, match="was released and"):
        faults._checked(tmp_path)
