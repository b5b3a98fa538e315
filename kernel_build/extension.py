"""The extension module of the kernels, for setuptools: write the Cython module, translate it to C, and compile it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
#: One build serves Python 3.11 and all later releases (Py_LIMITED_API).
_STABLE_ABI = "0x030B0000"
#: The compiler must copy the code of each inlined kernel: it counts too few instructions for a reader of many fields.
_INLINE = "inline __attribute__((always_inline))"
_OPTIONS = ["-g0", "-fno-strict-aliasing", "-fwrapv", "-Wno-unused-function", "-Wno-unreachable-code"]
#: A wheel for Linux names the C library that it needs, also if it calls no function of it.
_LINK_OPTIONS = ["-Wl,--no-as-needed", "-lc"] if sys.platform == "linux" else []


def extensions() -> list[Extension]:
    """Return the module of the kernels; with EXHUME_CHECKED=1 in the environment, the one that checks each index instead."""
    if os.environ.get("EXHUME_CHECKED"):
        return [_extension("exhume._kernels_checked", [("EXHUME_CHECKED", "1")], "-O1")]
    return [_extension("exhume._kernels", [("CYTHON_INLINE", _INLINE)], "-O3")]


def _extension(name: str, macros: list[tuple[str, str]], optimization: str) -> Extension:
    return Extension(
        name,
        [],
        define_macros=[("Py_LIMITED_API", _STABLE_ABI), *macros],
        extra_compile_args=[optimization, *_OPTIONS],
        extra_link_args=_LINK_OPTIONS,
        depends=[str(path) for path in HERE.glob("*.h")],
        py_limited_api=True,
    )


class BuildKernels(build_ext):  # type: ignore[misc]
    """The build step that makes the module of the kernels from their Python sources."""

    def build_extension(self, ext: Extension) -> None:
        """Write the C source of the module, then compile it."""
        from Cython.Compiler import Main

        from kernel_build import readers, unit

        readers.write()
        name = ext.name.rpartition(".")[2]
        directory = Path(self.build_temp).resolve() / name
        module = unit.write(directory, name)
        result = Main.compile_single(str(module), Main.CompilationOptions(language_level=3), None)  # type: ignore[attr-defined,no-untyped-call]
        if result.num_errors:
            raise SystemExit(f"Cython cannot translate {module}")
        ext.sources = [str(module.with_suffix(".c"))]
        ext.include_dirs = [str(directory), str(HERE)]
        super().build_extension(ext)


def has_compiler() -> bool:
    """Return True if there is a C compiler."""
    return shutil.which((os.environ.get("CC") or "cc").split()[0]) is not None


def choose_compiler() -> None:
    """Compile with the C compiler of this machine, or with that of the package `ziglang` if there is none."""
    if not has_compiler():
        os.environ["CC"] = f"{sys.executable} -m ziglang cc"
    if sys.platform == "linux":
        # The options that Python itself was linked with may hold paths of the machine that built it.
        os.environ.setdefault("LDSHARED", f"{os.environ.get('CC') or 'cc'} -shared")
