"""Kernels that check each index: a build of their own, which only tests use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def environment(directory: Path) -> dict[str, str]:
    """Build the checked kernels in a directory; return the environment of a process that runs them."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", str(directory), "--build-temp", str(directory / "temp")]
    subprocess.run(command, cwd=_ROOT, env=os.environ | {"EXHUME_CHECKED": "1"}, check=True, capture_output=True)
    (module,) = (directory / "exhume").glob("_kernels_checked*")
    return {"EXHUME_KERNELS": str(module)}
