"""The compiled module is optional, and can be switched off."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import hatch_build
import pytest

from confide.compiled import loading

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.mark.parametrize("setting", ["PATH", "CC", "CONFIDE_COMPILED"])
def test_an_installation_without_a_compiler_has_no_module_and_says_so(tmp_path, monkeypatch, capsys, setting):
    """Whether no compiler is found, the named one is none, or none is wanted. A module that was built earlier goes."""
    folder = tmp_path / "a folder" / hatch_build.FOLDER
    shutil.copytree(ROOT / hatch_build.FOLDER, folder, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (folder / hatch_build.MODULE.name).write_text("of an earlier version")
    for name in ("CC", "CONFIDE_COMPILED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(setting, {"PATH": str(tmp_path), "CC": "no-such-compiler -O3", "CONFIDE_COMPILED": "0"}[setting])
    hook = hatch_build.KernelHook(str(tmp_path / "a folder"), {}, None, None, "", "wheel")
    facts = {"artifacts": []}
    hook.initialize("editable", facts)
    assert facts == {"artifacts": []}
    assert not (folder / hatch_build.MODULE.name).exists()
    reason = "CONFIDE_COMPILED is 0" if setting == "CONFIDE_COMPILED" else "no C compiler was found"
    said = capsys.readouterr()
    assert f"built without its compiled kernel, and works without it: {reason}." in said.out + said.err
