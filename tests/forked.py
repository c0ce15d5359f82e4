"""A script, run in a child of this process: what takes long to import is imported already."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path


def run_script(path: Path, *arguments: object, environment: Mapping[str, str]) -> tuple[int, str]:
    """The exit code of a script and what it printed. It finds modules beside itself, as when Python is called with it."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            output.seek(0)
            return os.waitstatus_to_exitcode(status), output.read().decode()
        code = 1
        try:
            code = _run(path, [str(path), *map(str, arguments)], output.fileno(), environment)
        finally:
            # Nothing of the process that runs the tests may go on in this one.
            os._exit(code)


def _run(path: Path, words: list[str], output: int, environment: Mapping[str, str]) -> int:
    os.dup2(output, 1)
    os.dup2(output, 2)
    code: object = 0
    with open(1, "w", closefd=False) as sys.stdout, open(2, "w", closefd=False) as sys.stderr:
        os.environ.update(environment)
        warnings.simplefilter("ignore")  # the tests make errors of them
        beside = {name for name, module in sys.modules.items() if _file_of(module).startswith(str(path.parent))}
        for name in beside:
            del sys.modules[name]
        sys.argv = words
        sys.path.insert(0, str(path.parent))
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            code = end.code or 0
            if not isinstance(code, int):
                print(code, file=sys.stderr)
        except BaseException:  # noqa: BLE001 - it is told as an interpreter tells it
            traceback.print_exc()
            code = 1
    return code if isinstance(code, int) else 1


def _file_of(module: object) -> str:
    return getattr(module, "__file__", None) or ""
