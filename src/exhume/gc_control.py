"""Run Python's cycle collector less often while a function makes many long-lived objects, and give freed memory back."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: The number of new objects before the next run; the default is 700. A collector that is off or rarer already stays so.
_SELDOM = 1_000_000

_lock = threading.Lock()
_usual: list[int] = []


@contextmanager
def infrequent_gc() -> Iterator[None]:
    """Run the cycle collector rarely inside this block: it creates many long-lived objects and no cycles.

    The interval is one for the whole process. The last thread that leaves a block restores it.
    """
    with _lock:
        usual, *others = gc.get_threshold()
        _usual.append(usual)
        if 0 < usual < _SELDOM:
            gc.set_threshold(_SELDOM, *others)
    try:
        yield
    finally:
        with _lock:
            usual = _usual[0]
            _usual.pop()
            if not _usual and gc.get_threshold()[0] == _SELDOM:
                _promote_survivors()
                gc.set_threshold(usual, *gc.get_threshold()[1:])


def _promote_survivors() -> None:
    """Promote all objects to the oldest generation without a scan; the collector would do so after its next scan."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def give_back_freed_memory() -> None:
    """Give freed memory back to the system: glibc keeps the pages between blocks in use for later."""
    if sys.platform != "linux":
        return
    import ctypes

    # Other C libraries of Linux have no such function.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
