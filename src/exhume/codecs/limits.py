"""What hostile evidence may take of this machine, for all readers of this process. `exhume --memory-limit` and `--unpack-ratio` set them.

The memory is limited by the system: an allocation beyond the limit is a `MemoryError`. Mapped evidence does not count.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: The share of the memory of this machine, or of its control group, that exhume takes at most.
MEMORY_SHARE = 0.75
DEFAULT_UNPACK_RATIO = 200
_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(slots=True)
class Limits:
    """Limits that a user may change; `memory_bytes` None: the limit was not set."""

    unpack_ratio: int = DEFAULT_UNPACK_RATIO
    memory_bytes: int | None = None


LIMITS = Limits()


def machine_bytes() -> int | None:
    """Return the memory of this machine, or of its control group if that is less; None if it is unknown."""
    found: list[int] = []
    with suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in _CONTROL_GROUPS:
        with suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min(found, default=None)


def limit_memory(size_bytes: int | None = None) -> None:
    """Let the system refuse memory beyond this size; None: `MEMORY_SHARE` of the machine.

    It does so on Linux. Elsewhere, and for a size that the system does not allow, the limit is left as it is.
    """
    if size_bytes is None:
        machine = machine_bytes()
        if machine is None:
            return
        size_bytes = int(machine * MEMORY_SHARE)
    if sys.platform == "linux":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        if most == resource.RLIM_INFINITY or size_bytes <= most:
            resource.setrlimit(resource.RLIMIT_DATA, (size_bytes, most))
            LIMITS.memory_bytes = size_bytes
