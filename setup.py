"""The part of the build that pyproject.toml cannot say: the kernels, compiled from their Python sources."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).resolve().parent))

from kernel_build.extension import BuildKernels, choose_compiler, extensions

choose_compiler()
setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels}, options={"bdist_wheel": {"py_limited_api": "cp311"}})
