"""The compiled module is optional, and can be switched off."""

from __future__ import annotations

import subprocess
import sys

import pytest

from confide.compiled import loading


def test_the_kernel_can_be_switched_off(monkeypatch):
    """The variable is read at each fit, so nothing has to be imported again."""
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    assert loading.kernel() is None
    monkeypatch.delenv("CONFIDE_COMPILED")
    assert loading.kernel() is loading._built()
    assert not loading.is_plain()
    monkeypatch.setenv("CONFIDE_COMPILED", "plain")
    assert loading.is_plain()


def test_a_package_without_the_module_works_without_it(monkeypatch):
    """A missing module is no error."""

    def missing(name):
        raise ImportError(name)

    monkeypatch.delenv("CONFIDE_COMPILED", raising=False)
    monkeypatch.setattr(loading, "import_module", missing)
    loading._built.cache_clear()
    try:
        assert loading.kernel() is None
    finally:
        loading._built.cache_clear()


def test_the_processor_is_named(compiled):
    """What is used is one of the kinds that were compiled."""
    assert compiled.processor() in ("AVX2", "plain")


def test_importing_confide_loads_no_compiled_module():
    """It is loaded when a solver asks for it."""
    code = "import sys, confide; sys.exit('confide.compiled._kernel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("value", ["1", "", "yes"])
def test_other_values_leave_it_on(monkeypatch, value):
    """Only 0 switches it off."""
    monkeypatch.setenv("CONFIDE_COMPILED", value)
    assert loading.kernel() is loading._built()
