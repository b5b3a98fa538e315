"""The build backend: setuptools, and a C compiler from PyPI on a machine that has none."""

from __future__ import annotations

from typing import Any

from setuptools import build_meta

from kernel_build.extension import has_compiler

prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel
build_editable = build_meta.build_editable
build_sdist = build_meta.build_sdist
build_wheel = build_meta.build_wheel
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return the packages that a build needs besides those of pyproject.toml."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Return the packages that an editable build needs besides those of pyproject.toml."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler()]


def _compiler() -> list[str]:
    return [] if has_compiler() else ["ziglang>=0.13"]
