"""The progress of the jobs of a session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS = 0.25
#: The time to wait for cancelled jobs to end.
_CANCEL_SECONDS = 5
#: After this number of checks without a running task, no task will run.
_IDLE_LOOKS = 2


@dataclass(slots=True)
class JobWatch:
    """A context manager that reports, four times a second, the number of finished tasks and of all known tasks.

    It counts tasks of jobs that began after the last `begin`, and in the thread that called it. A session without a Spark context, such as
    one of Spark Connect, reports nothing.
    """

    spark: SparkSession
    tell: Callable[[int, int], None]
    _context: Any = field(default=None, init=False)
    _group: str = field(default="", init=False)
    _is_over: threading.Event = field(default_factory=threading.Event, init=False)
    _is_cancelled: bool = field(default=False, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        try:
            self._context = self.spark.sparkContext
        except Exception:  # a class of Spark Connect says so
            return self
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def begin(self, name: str) -> None:
        """Count jobs from zero, and give them this name in Spark's own pages."""
        if self._context is not None:
            self._context.setJobGroup(f"exhume: {name}", name, interruptOnCancel=True)
            self._group = f"exhume: {name}"

    def cancel(self) -> None:
        """Cancel all jobs of the session, and those that begin meanwhile, until nothing runs. A signal handler may call it: the thread of
        the watch cancels, because the thread of the handler may be in a call to Spark.
        """
        self._is_cancelled = True
        self._is_over.set()
        if self._thread is not None:
            self._thread.join(2 * _CANCEL_SECONDS)

    def _look(self) -> None:
        tracker = self._context.statusTracker()
        self._count(tracker)
        if self._is_cancelled:
            # Spark would log the cancellation as an error.
            self._context.setLogLevel("OFF")
            idle_looks, waited = 0, threading.Event()
            for _ in range(round(_CANCEL_SECONDS / _LOOK_SECONDS)):
                # An interrupted call continues in Spark, and may begin its job only now.
                self._context.cancelAllJobs()
                idle_looks = 0 if tracker.getActiveJobsIds() or self._running_tasks() else idle_looks + 1
                if idle_looks == _IDLE_LOOKS or waited.wait(_LOOK_SECONDS):
                    break

    def _running_tasks(self) -> int:
        """Count running tasks. Tasks of a cancelled job run, and may write, until they see that they are killed."""
        executors = self._context._jsc.sc().statusTracker().getExecutorInfos()  # noqa: SLF001  # PySpark's tracker knows jobs and stages alone
        return sum(executor.numRunningTasks() for executor in executors)

    def _count(self, tracker: Any) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            group = self._group
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)] if group else []
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            # Spark never begins stages whose output exists already.
            begun = [stage for stage in stages if stage is not None and (stage.numActiveTasks or stage.numCompletedTasks)]
            if group == self._group:
                self.tell(sum(stage.numCompletedTasks for stage in begun), sum(stage.numTasks for stage in begun))
