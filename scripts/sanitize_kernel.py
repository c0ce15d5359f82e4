"""The compiled kernel under the sanitizers of addresses and of undefined behaviour: random shapes, then its own tests.

Run: make sanitize
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import hatch_build

ROOT = Path(__file__).resolve().parents[1]
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
TESTS = ("tests/compiled", "tests/features/test_coded_columns_stored_columns.py")
PLUGIN = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

import confide.compiled

spec = spec_from_file_location("confide.compiled._kernel", {path!r})
sys.modules["confide.compiled._kernel"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["confide.compiled._kernel"])
"""


def run(*command: str, **environment: str) -> None:
    """Run a command in the project, and stop where it fails."""
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True)  # noqa: S603 - fixed commands


def main() -> None:
    """Build both programs in a temporary folder and run them."""
    command = hatch_build.compiler()
    if command is None:
        sys.exit("no C compiler was found; install one, or name it in CC.")
    flags = [flag for flag in hatch_build.FLAGS if not flag.startswith("-O")] + [*SANITIZED]
    with tempfile.TemporaryDirectory() as folder:
        fuzz, module = Path(folder, "fuzz"), Path(folder, hatch_build.MODULE.name)
        run(*command, *flags, "tests/compiled/fuzz.c", "-o", str(fuzz), "-lm")
        run(str(fuzz), *sys.argv[1:])
        include = f"-I{sysconfig.get_path('include')}"
        run(
            *command, *flags, "-fPIC", include, str(hatch_build.FOLDER / "kernel.c"), "-o", str(module), *hatch_build.LINKING
        )
        # Python itself was built without the sanitizer, so its part has to be loaded first.
        asked = [*command, "-print-file-name=libasan.so"]
        runtime = subprocess.run(asked, capture_output=True, text=True, check=True)  # noqa: S603 - a fixed command
        Path(folder, "sanitized_kernel.py").write_text(PLUGIN.format(path=str(module)), encoding="utf-8")
        path = os.pathsep.join([folder, str(ROOT / "src"), str(ROOT)])
        # Python keeps memory until it ends, which is no leak of the kernel.
        run(
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:xdist",
                "-p",
                "sanitized_kernel",
                "-p",
                "no:cacheprovider",
                *TESTS,
            ),
            LD_PRELOAD=runtime.stdout.strip(),
            ASAN_OPTIONS="detect_leaks=0",
            PYTHONPATH=path,
        )


if __name__ == "__main__":
    main()
