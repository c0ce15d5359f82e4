"""Builds the compiled kernel (src/confide/compiled) with the package, where there is a C compiler, and its first page.

Without a compiler, or with CONFIDE_COMPILED=0, the package is built without it, and one line says so. The module uses the
limited API of Python 3.11, so one wheel of a platform serves all later versions. `python hatch_build.py` builds it in place.

An index of packages shows README.md. Its links lead to files of the repository, so they get the address of the repository
where the package is built: CONFIDE_REPOSITORY, or what GitHub's workflows say of themselves. Without an address, links
become words, pictures are left out, and the package names no address.
"""

from __future__ import annotations

import os
import re
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
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # to build in place, hatchling is not needed
    BuildHookInterface = MetadataHookInterface = object  # type: ignore[assignment, misc]

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
    if sys.platform == "win32":
        return "on Windows it is not built yet"
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
    """The tag of wheels that this machine builds for itself. On macOS, a builder of wheels names an older system."""
    from packaging.tags import platform_tags

    if sys.platform == "darwin" and (named := os.environ.get("_PYTHON_HOST_PLATFORM")):
        return re.sub(r"[-.]", "_", named)
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


def repository() -> str:
    """The address of the repository, or nothing where it is not known."""
    server, name = (os.environ.get(f"GITHUB_{part}", "") for part in ("SERVER_URL", "REPOSITORY"))
    return os.environ.get("CONFIDE_REPOSITORY") or (f"{server}/{name}" if server and name else "")


_PICTURE = r"!\[[^\[\]]*\]\([^()]*\)"
_LINK = re.compile(rf"(!?)\[((?:[^\[\]]|{_PICTURE})*)\]\(([^()\s]+)((?:\s+\"[^\"]*\")?)\)")
"""A link or a picture of Markdown, which may have a title, or a picture in place of its words."""


def first_page(text: str, address: str, version: str) -> str:
    """README.md with links that lead somewhere from an index of packages: to the files of this version.

    Parameters
    ----------
    text : the page as it stands in the repository
    address : that of the repository, or nothing
    version : that of the package
    """

    def link(found: re.Match[str]) -> str:
        mark, words, target, title = found.groups()
        words = _LINK.sub(link, words)  # a link may stand around a picture
        if re.match(r"https?://|mailto:|#", target):
            return f"{mark}[{words}]({target}{title})"
        if not address:
            return "" if mark else words
        return f"{mark}[{words}]({address}/{'raw' if mark else 'blob'}/v{version}/{target}{title})"

    return _LINK.sub(link, text)


class FirstPageHook(MetadataHookInterface):
    """Gives the package its first page, and the addresses of its repository."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Write what pyproject.toml calls dynamic."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        (version,) = re.findall(
            r'__version__ = "(.*)"', Path(self.root, "src/confide/_version.py").read_text(encoding="utf-8")
        )
        address = repository()
        metadata["readme"] = {"content-type": "text/markdown", "text": first_page(text, address, version)}
        if address:
            pages = {"Source": "", "Issues": "/issues", "Changelog": f"/blob/v{version}/CHANGELOG.md"}
            metadata["urls"] = {name: address + rest for name, rest in pages.items()}


if __name__ == "__main__":
    found = build(Path(__file__).resolve().parent)
    print(found or f"built {MODULE}")
    sys.exit(bool(found))
