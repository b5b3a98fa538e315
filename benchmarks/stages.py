"""Where the time of a subject goes: functions that it comes through, timed within one run, without what each calls of the others.

A stage is a name for some functions. They are replaced, where their callers find them, by ones that look at the clock; all on one thread.
What is in no stage is `the rest`: opening files, room for what comes, letting go of the log.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from typing import Any
from unittest.mock import patch

_STATE = {
    "checksums, splitting, folding": ["exhume.replay.fold.part:scan_and_fold", "exhume.replay.fold.part:fold"],
    "objects of groups": ["exhume.replay.java.loader:JavaLoad.add_fold_result"],
    "tables": ["exhume.replay.local:state_of_loads"],
}

#: By subject its stages, and of each the functions, as `module:name`.
STAGES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "scan": {
        "mapping, checksums, header fields": ["exhume.codecs.kernels.scan:scan"],
        "order, columns": ["exhume.codecs.kernels.scan:in_order", "exhume.codecs.columns.batch_columns:batch_column"],
    },
    "offsets": _STATE,
    "state": _STATE,
    "one group": _STATE,
    "one key's history": {
        **_STATE,
        "batches of the group, read again": ["exhume.analysis.history:HistoryReader.read_all"],
    },
    "diagnose": {
        "reading": ["exhume.analysis.detectors.condense:chunk_of"],
        "condensing": ["exhume.analysis.detectors:condense"],
        "loads by two releases (IC-06)": ["exhume.analysis.detectors.log_files:given_up"],
        "the other detectors": ["exhume.analysis.detectors:diagnose"],
    },
}
REST = "the rest"


class Clock:
    """Seconds by stage. A stage that is entered stops the one around it."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._entered = [REST]
        self._since = time.perf_counter()

    def _switch(self) -> None:
        now = time.perf_counter()
        self.seconds[self._entered[-1]] += now - self._since
        self._since = now

    @contextmanager
    def within(self, stage: str) -> Iterator[None]:
        """What is done in the `with` statement is of this stage."""
        self._switch()
        self._entered.append(stage)
        try:
            yield
        finally:
            self._switch()
            self._entered.pop()

    def stop(self) -> Mapping[str, float]:
        """The seconds of each stage since the clock was made."""
        self._switch()
        return self.seconds


@contextmanager
def timed(subject: str) -> Iterator[Clock]:
    """A clock for the stages of this subject, which may run once in the `with` statement."""
    with ExitStack() as stack:
        functions = [(stage, *_found(name)) for stage, names in STAGES[subject].items() for name in names]
        clock = Clock()
        for stage, owner, name in functions:
            stack.enter_context(patch.object(owner, name, _timed(getattr(owner, name), stage, clock)))
        yield clock


def _found(name: str) -> tuple[Any, str]:
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    owner = import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    return owner, attribute


def _timed(function: Callable[..., Any], stage: str, clock: Clock) -> Callable[..., Any]:
    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        with clock.within(stage):
            result = function(*arguments, **options)
        return timed_items(result, stage, clock) if isinstance(result, Iterator) else result

    return run


def timed_items(items: Iterator[Any], stage: str, clock: Clock) -> Iterator[Any]:
    """These items; what making them takes is of this stage, what is done with them is not."""
    while True:
        with clock.within(stage):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
