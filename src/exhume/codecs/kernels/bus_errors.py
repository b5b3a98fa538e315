"""Survive bus errors: a mapped file that another process makes shorter, or a disk that fails (`kernel_build/bus_errors.h`)."""

from __future__ import annotations

from exhume.codecs.kernels import native
from exhume.codecs.kernels.types import Number


@native
def can_survive_bus_errors() -> Number:
    """Return 1 if `survive_bus_errors` has an effect here; the text of the kernels has none."""
    return 0


@native
def survive_bus_errors() -> Number:
    """Put zeros in the place of a lost page, and call the handler that Python has for SIGBUS; return 1 on success."""
    return 0


@native
def lost_page() -> Number:
    """Return the address of the first lost page; 0 if there is none."""
    return 0
