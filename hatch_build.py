"""Builds the compiled kernel (src/confide/compiled) with the package, where there is a C compiler.

Without a compiler, or with CONFIDE_COMPILED=0, the package is built without it, and one line says so. The module uses the
limited API of Python 3.11, so one wheel of a platform serves all later versions. `python hatch_build.py` builds it in place.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # to build in place, hatchling is not needed
    BuildHookInterface = object  # type: ignore[assignment, misc]

FOLDER = Path("src", "confide", "compiled")
MODULE = FOLDER / "_kernel.abi3.so"
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fno-fast-math",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
)
"""Rounding stays that of IEEE 754, but for fused multiplications, whatever CC and its defaults ask for."""
LINKING = ("-bundle", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared", "-Wl,-s", "-lm")


def compiler() -> list[str] | None:
    """The command of a C compiler: what CC says, or the first of the usual names that is found."""
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        return named if shutil.which(named[0]) else None
    return next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), None)


def build(root: Path) -> str:
    """Build the module in place. The result is empty, or the reason why there is none, in one line."""
    if os.environ.get("CONFIDE_COMPILED") == "0":
        return "CONFIDE_COMPILED is 0"
    command = compiler()
    if command is None:
        return "no C compiler was found"
    # The file appears in one step. A process that has loaded the module keeps the old one.
    with tempfile.TemporaryDirectory(dir=root / FOLDER, prefix=".build-") as folder:
        made = Path(folder, MODULE.name)
        include = f"-I{sysconfig.get_path('include')}"
        hidden = ("-fPIC", "-fvisibility=hidden", f"-ffile-prefix-map={root}=.")
        arguments = [*command, *FLAGS, *hidden, include, str(FOLDER / "kernel.c"), "-o", str(made), *LINKING]
        try:
            ran = subprocess.run(arguments, cwd=root, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"{command[0]} cannot be run: {error.strerror}"
        if ran.returncode:
            first = next((line for line in ran.stderr.splitlines() if "error" in line), "it gave no reason")
            return f"{command[0]} failed: {first}"
        made.replace(root / MODULE)
    return ""


def platform() -> str:
    """The tag of wheels that this machine builds for itself."""
    from packaging.tags import platform_tags

    return next(tag for tag in platform_tags() if "manylinux" not in tag and "musllinux" not in tag)


class KernelHook(BuildHookInterface):
    """Puts the compiled module into wheels and editable installations."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the module; without one the wheel is that of pure Python."""
        root = Path(self.root)
        reason = build(root)
        if reason:
            if version == "editable":
                # A module that was built earlier may not fit the source any more.
                (root / MODULE).unlink(missing_ok=True)
            self.app.display_warning(f"confide is built without its compiled kernel, and works without it: {reason}.")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform()}"
        build_data["artifacts"].append(MODULE.as_posix())


if __name__ == "__main__":
    found = build(Path(__file__).resolve().parent)
    print(found or f"built {MODULE}")
    sys.exit(bool(found))
