"""The destination of an answer: standard output, or a file that appears whole or not at all, outside the evidence."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from exhume.cli.progress import make_way
from exhume.errors import RequestError

#: The exit status that a shell reports after SIGPIPE: 128 + 13.
READER_LEFT_STATUS = 141

_PARTITION_DIRECTORY = re.compile(r".+-[0-9]+(\.[0-9a-f]{32}-(delete|future|stray))?")


class Sink(io.RawIOBase):
    """A binary stream for an answer. A failed write raises `RequestError`; a closed pipe ends the program without a message."""

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
        # Closing a RawIOBase flushes it again, after the stream below may be closed.
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
    """Open the destination of an answer; None is standard output.

    A file is written under a temporary name in its directory and renamed at the end of the block. If the block fails, the temporary file is
    removed and an earlier file of that name stays unchanged.

    Raises:
        RequestError: the file is inside the evidence, or cannot be written.
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
    # Replace the target of a symbolic link, not the link.
    target = Path(os.path.realpath(output_file))
    if target.is_dir():
        raise RequestError(f"{output_file} is a directory", remedy="Name a file in it")
    if target.exists() and not target.is_file():
        # Never replace a pipe or a device by a file.
        with _opened(target, "wb", output_file) as sink:
            yield sink
        return
    aside = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        with _opened(aside, "xb", output_file) as sink:
            yield sink
        _move(aside, target, output_file)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


def refuse_inside(path: Path, evidence: Iterable[Path | str]) -> None:
    """Raise an error if this path is inside the evidence.

    A directory is evidence with all of its contents. A file is evidence together with its partition directory, and a partition directory
    together with the data directory that it is in.

    Raises:
        RequestError: the path is evidence or inside it, after symbolic links are resolved.
    """
    from exhume.codecs.uris import parse_place

    target = Path(os.path.realpath(path))
    for piece in evidence:
        named = piece if isinstance(piece, Path) else parse_place(piece)
        if not isinstance(named, Path):
            # A local file cannot overwrite evidence in a store.
            continue
        place = Path(os.path.realpath(named))
        if place.is_file() and _PARTITION_DIRECTORY.fullmatch(place.parent.name):
            place = place.parent
        if _PARTITION_DIRECTORY.fullmatch(place.name) and (place.parent / "meta.properties").exists():
            place = place.parent
        if any(_is_same(ancestor, place) for ancestor in (target, *target.parents)) or _is_linked(target, place):
            raise RequestError(
                f"{path} is inside the evidence {piece}", remedy="exhume never writes to evidence: choose a place outside it"
            )


@contextmanager
def quiet_when_reader_leaves() -> Iterator[None]:
    """End the program with status 141 and without a traceback after the reader of standard output (`| head`) has closed it.

    `main` wraps all commands in it: it also covers text without a destination and the last flush. Raises `SystemExit`, because typer
    handles a broken pipe in its own way.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _leave_quietly()


def cannot_write(name: Path | str, error: OSError) -> RequestError:
    """The error for a failed write, with the message of the system."""
    return RequestError(f"cannot write {name}: {error.strerror or error}", remedy="Choose another --output-file")


def _leave_quietly() -> NoReturn:
    # The interpreter flushes standard output again at exit and would report the broken pipe.
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
            # The write or flush before has already reported it.
            pass
        except OSError as error:
            raise cannot_write(name, error) from error


def _is_linked(target: Path, place: Path) -> bool:
    """Return True if this file is a hard link to a file of the evidence."""
    try:
        if not target.is_file() or target.stat().st_nlink < 2:
            return False
    except OSError:
        return False
    files = (Path(directory, name) for directory, _, names in os.walk(place) for name in names)
    return any(_is_same(each, target) for each in files)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one == other
