"""Where an answer goes: standard output, or a file that appears whole or not at all, and never inside the evidence."""

from __future__ import annotations

import io
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from exhume.cli.progress import make_way
from exhume.errors import RequestError

#: What a shell reports for a program that SIGPIPE ended: 128 + 13.
READER_LEFT_STATUS = 141

_PARTITION_DIRECTORY = re.compile(r".+-[0-9]+(\.[0-9a-f]{32}-(delete|future|stray))?")


class Sink(io.RawIOBase):
    """A binary stream to write an answer to. Failures of the place are `RequestError`; a reader that left ends the program quietly."""

    def __init__(self, stream: BinaryIO, name: str, *, is_terminal: bool = False) -> None:
        self._stream = stream
        self._is_terminal = is_terminal
        self._name = name
        self._size_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size_bytes

    def write(self, data: Any) -> int:
        if self._is_terminal and not self._size_bytes:
            make_way()
        try:
            self._stream.write(data)
        except BrokenPipeError:
            _leave_quietly()
        except OSError as error:
            raise cannot_write(self._name, error) from error
        size_bytes = memoryview(data).nbytes
        self._size_bytes += size_bytes
        return size_bytes

    def flush(self) -> None:
        # Closing a RawIOBase flushes it once more, when the stream below may be closed already.
        if self._stream.closed:
            return
        try:
            self._stream.flush()
        except BrokenPipeError:
            _leave_quietly()
        except OSError as error:
            raise cannot_write(self._name, error) from error


@contextmanager
def open_destination(output_file: Path | None, *, evidence: Iterable[Path | str] = ()) -> Iterator[Sink]:
    """The place to write an answer to; None is standard output.

    A file is written aside, in its own directory, and renamed into place when the block ends well; when it does not, nothing is
    left behind and a file of that name stays as it was.

    Raises:
        RequestError: the file lies inside the evidence, or cannot be written.
    """
    if output_file is None:
        if sys.stdout is None:
            raise RequestError("standard output is closed", remedy="Name a file with --output-file")
        sys.stdout.flush()
        sink = Sink(sys.stdout.buffer, "standard output", is_terminal=sys.stdout.isatty())
        yield sink
        sink.flush()
        return
    refuse_inside(output_file, evidence)
    # The file behind a symbolic link is replaced, not the link.
    target = Path(os.path.realpath(output_file))
    if target.is_dir():
        raise RequestError(f"{output_file} is a directory", remedy="Name a file in it")
    if target.exists() and not target.is_file():
        # A pipe or a device cannot be replaced by a file, and must not be.
        with _opened(target, "wb", output_file) as sink:
            yield sink
        return
    aside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with _opened(aside, "xb", output_file) as sink:
            yield sink
        _move(aside, target, output_file)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


def refuse_inside(path: Path, evidence: Iterable[Path | str]) -> None:
    """Do nothing if this path lies outside the evidence.

    A directory is evidence with all that is in it. A file is evidence itself, and so is the partition directory around it.

    Raises:
        RequestError: the path is evidence, or lies in it, symbolic links followed.
    """
    from exhume.codecs.uris import parse_place

    target = Path(os.path.realpath(path))
    for piece in evidence:
        named = piece if isinstance(piece, Path) else parse_place(piece)
        if not isinstance(named, Path):
            # What lies elsewhere is not reached by writing here.
            continue
        place = Path(os.path.realpath(named))
        if place.is_file() and _PARTITION_DIRECTORY.fullmatch(place.parent.name):
            place = place.parent
        if any(_is_same(ancestor, place) for ancestor in (target, *target.parents)):
            raise RequestError(f"{path} lies inside the evidence {piece}", remedy="Evidence is never written to: choose a place outside it")


@contextmanager
def quiet_when_reader_leaves() -> Iterator[None]:
    """End the program with status 141 and no traceback when the reader of standard output (`| head`) has left.

    For `main`, around everything: it covers what is printed without a destination and what is still buffered at the end.
    A command line library that treats a broken pipe in its own way sees `SystemExit`, which it lets pass.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _leave_quietly()


def cannot_write(name: Path | str, error: OSError) -> RequestError:
    """The error for a place that cannot be written, in the system's words."""
    return RequestError(f"cannot write {name}: {error.strerror or error}", remedy="Choose another --output-file")


def _leave_quietly() -> NoReturn:
    # The interpreter flushes standard output once more on its way out, and would complain about the broken pipe then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(READER_LEFT_STATUS)


def _move(aside: Path, target: Path, name: Path) -> None:
    try:
        if target.exists():
            shutil.copymode(target, aside)
        aside.replace(target)
    except OSError as error:
        raise cannot_write(name, error) from error


@contextmanager
def _opened(path: Path, mode: str, name: Path) -> Iterator[Sink]:
    try:
        stream: Any = path.open(mode)
    except OSError as error:
        raise cannot_write(name, error) from error
    sink = Sink(stream, str(name))
    try:
        yield sink
        sink.flush()
    finally:
        try:
            stream.close()
        except BrokenPipeError:
            # Said already, by the write or flush that met it first.
            pass
        except OSError as error:
            raise cannot_write(name, error) from error


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one == other
