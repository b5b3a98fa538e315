"""A process that runs subjects when told to: one line of JSON in, one line of JSON out.

It keeps to as many cores as its argument says, and is told so before anything counts the cores there are.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from benchmarks.subjects import Log


class SubjectFailed(Exception):
    """A subject raised an error, or its answer is wrong; the text says what."""


class Worker:
    """Such a process, seen from the runner. Use it in a `with` statement."""

    def __init__(self, cores: int) -> None:
        command = [sys.executable, "-m", "benchmarks.worker", str(cores)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        if error is not None:
            # It may be far from the end of what it was told.
            self._process.kill()
        self._process.stdin.close()
        self._process.wait()

    @property
    def process_id(self) -> int:
        return self._process.pid

    def run(self, subject: str, log: Log) -> float:
        """The seconds that this subject takes for this log.

        Raises:
            SubjectFailed: it ended in an error, or its answer is not what the log holds.
        """
        return float(self._ask(subject, log)["seconds"])

    def stages(self, subject: str, log: Log) -> dict[str, float]:
        """The seconds of each stage of this subject for this log; errors as for `run`."""
        return dict(self._ask(subject, log, stages=True)["stages"])

    def _ask(self, subject: str, log: Log, *, stages: bool = False) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"subject": subject, "directory": str(log.directory), "content": asdict(log.content), "stages": stages}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SubjectFailed(f"{subject}: the process ended with status {self._process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise SubjectFailed(f"{subject}: {reply['error']}")
        held = expected(log)
        wrong = {name: (value, held[name]) for name, value in reply["answer"].items() if value != held[name]}
        if wrong:
            raise SubjectFailed(f"{subject} of {log.directory}: answered, and should have: {wrong}")
        return reply


def expected(log: Log) -> dict[str, Any]:
    """What the answers of subjects are compared with, by name."""
    from exhume.codecs.batch_format import HEADER_BYTES

    content = log.content
    return asdict(content) | {
        "damaged": 0,
        "commit_records": content.records - content.group_records,
        "section_bytes": content.plain_bytes - HEADER_BYTES[2] * content.batches,
    }


def _serve(cores: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    # What a subject prints must not end up between the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = _measure(json.loads(line))
        except Exception:  # whatever it is, the runner is told
            reply = {"error": traceback.format_exc()}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _measure(request: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.generate import Content
    from benchmarks.stages import timed
    from benchmarks.subjects import SUBJECTS, Log

    subject = SUBJECTS[request["subject"]]
    log = Log(Path(request["directory"]), Content(**request["content"]))
    subject.prepare(log)
    gc.collect()
    if request["stages"]:
        with timed(request["subject"]) as clock:
            result = subject.run(log)
            stages = clock.stop()
        return {"stages": stages, "answer": dict(subject.answer(result))}
    start = time.perf_counter()
    result = subject.run(log)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "answer": dict(subject.answer(result))}


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
