"""Calls to Spark that an interrupt does not end early.

An interrupt ends the Python side of a call at once, but Spark continues its own side: it may begin the job of the call later, and write
files after the caller has deleted them. So the call runs in a thread of its own, and an interrupt waits for its end.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOOK_SECONDS = 0.1
#: A cancelled job ends at once, and its tasks soon after. On executors that do not answer they may never end.
_TASKS_SECONDS = 60


def run_whole(context: SparkContext, call: Callable[[], object]) -> None:
    """Run a call to its end. An interrupt cancels its jobs, and is raised when neither the call nor a task of it runs."""
    from pyspark import InheritableThread

    tag = f"exhume-{secrets.token_hex(8)}"
    errors: list[BaseException] = []
    # Not `join`: an interrupted `join` treats a running thread as ended.
    has_ended = threading.Event()

    def work() -> None:
        try:
            context.addJobTag(tag)
            call()
        except BaseException as error:  # the caller's thread raises it
            errors.append(error)
        finally:
            has_ended.set()

    thread = InheritableThread(target=work)
    try:
        thread.start()
        has_ended.wait()
    except BaseException:
        while thread.is_alive() and not has_ended.wait(_LOOK_SECONDS):
            context.cancelJobsWithTag(tag)
        _wait_for_tasks(context, tag)
        raise
    if errors:
        raise errors[0]


def _wait_for_tasks(context: SparkContext, tag: str) -> None:
    """Wait for tasks that do not yet see that their job is cancelled, and may write until then."""
    until = time.monotonic() + _TASKS_SECONDS
    while _running_tasks(context, tag) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)


def _running_tasks(context: Any, tag: str) -> int:
    tracker = context.statusTracker()
    # PySpark's own tracker does not know tags.
    jobs = [tracker.getJobInfo(job) for job in context._jsc.sc().statusTracker().getJobIdsForTag(tag)]  # noqa: SLF001
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)
