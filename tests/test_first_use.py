"""Public names are imported on first use, and are written in one place."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import confide
from confide.first_use import public_names, submodules


def in_a_fresh_interpreter(code):
    """What the code prints where nothing of the package was imported yet."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("name", confide.__all__)
def test_every_public_name_can_be_imported(name):
    """A name that is listed is there, and is called so."""
    value = getattr(confide, name)
    if not isinstance(value, str | ModuleType):
        assert value.__name__ == name


def test_a_star_imports_all_public_names_and_no_other():
    """`from confide import *`, in an interpreter that imported nothing yet."""
    printed = in_a_fresh_interpreter(
        "from confide import *\nprint(*[name for name in dir() if name not in dir(__builtins__)])"
    )
    assert {name for name in printed if not name.startswith("__")} == {*confide.__all__} - {"__version__"}
    assert "__version__" in printed


def test_dir_lists_the_public_names_in_order():
    """For completion: all of them, whether they were used or not, and no plumbing."""
    assert dir(confide) == sorted({*confide.__all__})
    assert len(confide.__all__) == len({*confide.__all__})
    printed = in_a_fresh_interpreter("import confide\nprint(*dir(confide))")
    assert printed == dir(confide)


def test_an_unknown_name_is_an_attribute_error():
    """With the name of the package and the name asked for, as of any module; and `hasattr` is False."""
    with pytest.raises(AttributeError, match="module 'confide' has no attribute 'LogisticRegresion'"):
        _ = confide.LogisticRegresion
    assert not hasattr(confide, "os")
    with pytest.raises(ImportError, match="nothing"):
        exec("from confide import nothing", {})  # noqa: S102 - a statement under test


def test_a_name_is_found_once():
    """After its first use it is an ordinary attribute."""
    printed = in_a_fresh_interpreter(
        "import confide\nprint('Ledger' in vars(confide))\nconfide.Ledger\nprint('Ledger' in vars(confide))"
    )
    assert printed == ["False", "True"]


def test_modules_of_a_package_are_its_attributes_on_first_use():
    """Public or plumbing; what is no module of it is not."""
    assert confide.datasets is sys.modules["confide.datasets"]
    assert in_a_fresh_interpreter("import confide\nprint(confide.errors.__name__)") == ["confide.errors"]
    module_of = submodules("confide")
    assert module_of("planning") is sys.modules["confide.planning"]
    for name in ("sys", "os.path", "datasets.adult", ""):
        with pytest.raises(AttributeError):
            module_of(name)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with one public name of a module, one public module, and imports that are none of its names."""
    folder = tmp_path / "made_up_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\nimport json\nfrom os import sep\n"
        "if TYPE_CHECKING:\n    from made_up_package.rooms import answer as answer\n"
        "    from made_up_package import tools as tools\n"
        "if not TYPE_CHECKING:\n    from os import linesep\n"
    )
    (folder / "rooms.py").write_text("answer = 42\nother = 43\n")
    (folder / "tools.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    import made_up_package

    yield made_up_package
    for name in [name for name in sys.modules if name.startswith("made_up_package")]:
        del sys.modules[name]


def test_names_are_those_imported_for_type_checkers(package):
    """In the order of the file: so each is written once, and tools that read types see it too."""
    names, attribute, listed = public_names("made_up_package", package.__file__)
    assert names == ["answer", "tools"]
    assert listed() == ["__version__", "answer", "tools"]
    assert attribute("answer") == vars(package)["answer"] == 42
    assert attribute("tools") is sys.modules["made_up_package.tools"]
    assert attribute("rooms") is sys.modules["made_up_package.rooms"]
    for name in ("other", "linesep"):
        with pytest.raises(AttributeError):
            attribute(name)
