"""Call functions in other Python processes of this machine, with their progress.

Threads take turns at Python code; processes do not. A function and its task go to a process as pickled bytes through its standard input,
and the result comes back through its standard output. The processes import nothing from the directory of the user, and end with the caller.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

import lz4.frame

from exhume import without_pandas
from exhume.gc_control import give_back_freed_memory, infrequent_gc

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
#: Takes the number of bytes that were read since the last call.
Advance = Callable[[int], None]

_START = "from exhume.processes import serve; serve()"
_PROGRESS, _RESULT = range(2)


def _ignore(size_bytes: int) -> None:
    """Report no progress."""


class ProcessEnded(Exception):
    """A process could not start, or ended before its result: an error in the function, or too little memory."""


class Processes:
    """A number of processes, in a `with` statement. They start with it, each calls `prepare`, and none outlives it.

    with Processes(2) as processes:
        results = processes.map(function, tasks, advance)

    Raises:
        ProcessEnded: a process did not start.
    """

    def __init__(self, count: int, prepare: Callable[[], None] | None = None) -> None:
        self._count, self._prepare = count, prepare
        self._started: list[subprocess.Popen[bytes]] = []
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    def map(self, function: Callable[[_Task, Advance], _Result], tasks: Sequence[_Task], advance: Advance = _ignore) -> list[_Result]:
        """Return the results of `function` for these tasks, in order. `advance` is called from several threads.

        Function, tasks and results must be picklable.

        Raises:
            ProcessEnded: a process ended before its result. What went wrong there is not known: do the work in this process instead.
        """
        with ThreadPoolExecutor(self._count, thread_name_prefix="exhume-process") as pool:
            try:
                return [*pool.map(lambda task: self._call(function, task, advance), tasks)]
            except BaseException:
                # The threads end with their processes.
                self._kill()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _call(self, function: Callable[[_Task, Advance], _Result], task: _Task, advance: Advance) -> _Result:
        call = pickle.dumps((function, task), protocol=5)
        process = self._idle.get()
        try:
            _send(process, call)
            # It may be as large as the task.
            del call
            while (answer := _next_answer(process))[0] == _PROGRESS:
                advance(answer[1])
        finally:
            self._idle.put(process)
        result: _Result = answer[1]
        return result

    def __enter__(self) -> Self:
        paths = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
        try:
            for _ in range(self._count):
                process = subprocess.Popen(  # noqa: S603
                    # -P: the directory of the user may contain modules with the names of packages.
                    [sys.executable, "-P", "-c", _START],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                    # Ctrl-C goes to the caller alone, which ends the others.
                    start_new_session=True,
                )
                self._started.append(process)
                assert process.stdin is not None
                pickle.dump(self._prepare, process.stdin, protocol=5)
                self._idle.put(process)
        except OSError as error:
            self._kill()
            raise ProcessEnded("a process did not start") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._kill()

    def _kill(self) -> None:
        for process in self._started:
            process.kill()
        for process in self._started:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    # Bytes that wait for a dead process raise an error.
                    try:
                        pipe.close()
                    except OSError:
                        continue
        self._started = []


def _send(process: subprocess.Popen[bytes], call: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(call)
        process.stdin.flush()
    except (OSError, ValueError) as error:
        raise _ended(process) from error


def _next_answer(process: subprocess.Popen[bytes]) -> tuple[int, Any]:
    """Return the kind and the content of the next answer."""
    assert process.stdout is not None
    try:
        # Written by a process that this one started.
        kind, content = pickle.load(process.stdout)  # noqa: S301
    except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise _ended(process) from error
    return kind, content


def _ended(process: subprocess.Popen[bytes]) -> ProcessEnded:
    return ProcessEnded(f"the process {process.pid} ended before its result")


def serve() -> None:
    """Call functions for the process that started this one, until that process closes the pipe. An error ends this process."""
    without_pandas.keep_out()
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Text that a function prints must not come between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(kind: int, content: Any) -> None:
        pickle.dump((kind, content), answers, protocol=5)
        answers.flush()

    with infrequent_gc():
        prepare = pickle.load(calls)  # noqa: S301
        if prepare is not None:
            prepare()
        while True:
            try:
                function, task = pickle.load(calls)  # noqa: S301
            except EOFError:
                return
            answer(_RESULT, function(task, lambda size_bytes: answer(_PROGRESS, size_bytes)))
            del function, task
            give_back_freed_memory()


def packed(content: object) -> bytes:
    """Return this object as compressed bytes: they take less memory, and less time to send, than the object."""
    compressed = BytesIO()
    with lz4.frame.open(compressed, "wb") as file:
        pickle.dump(content, file, protocol=5)
    return compressed.getvalue()


def unpacked(content: bytes) -> Any:
    """Return the object of `packed`. Call it only with bytes that this program has made."""
    with lz4.frame.open(BytesIO(content)) as file:
        return pickle.load(file)  # noqa: S301
