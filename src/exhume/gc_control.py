"""Python's collector of reference cycles, called less often while very many objects are made that stay."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: So many more objects than before, and it looks at the young ones; usual are 700. Where it is switched off or slower already, it stays so.
_SELDOM = 1_000_000

_lock = threading.Lock()
_usual: list[int] = []


@contextmanager
def infrequent_gc() -> Iterator[None]:
    """What is made within is no garbage, or none that hangs together in a circle: to look through it again and again finds nothing.

    The interval is that of the process. Whoever leaves last, of any thread, sets it back.
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
    """Put what was made among the old objects, which the collector would do as soon as it is back, once it had looked through all of it."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
