"""Interrupts, readers that leave, and closed outputs: a command ends soon and cleanly."""

from __future__ import annotations

import os
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from tests.cli.conftest import TIME_MS, command
from tests.patience import PATIENCE_SECONDS, cpu_seconds


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 million commits in 50 partitions, all in one file with 50 names: minutes of work, however fast the machine is."""
    directory = tmp_path_factory.mktemp("large")
    commits = [offset_commit(f"group-{number % 50}", "t", number, 1, commit_timestamp_ms=TIME_MS) for number in range(2000)]
    batch = bytearray(encode_batch([NewRecord(number, TIME_MS, *commit) for number, commit in enumerate(commits)], base_offset=0))
    with PartitionWriter(directory, 0) as partition:
        for number in range(200):
            # The checksum does not cover the base offset.
            struct.pack_into(">q", batch, 0, number * 2000)
            partition.append_bytes(bytes(batch), number * 2000 + 1999, TIME_MS)
    (first,) = directory.iterdir()
    for number in range(1, 50):
        other = directory / f"__consumer_offsets-{number}"
        other.mkdir()
        for file in first.iterdir():
            (other / file.name).hardlink_to(file)
    return directory


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    # Block-buffered output would keep a reader waiting; what is tested is the program, not the pipe.
    return subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _cpu_seconds_of_ended_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.fixture
def interrupted() -> Callable[..., tuple[int, str, float]]:
    """Interrupt a command at work. Return its exit code, its standard error, and the processor seconds until its end."""

    def interrupt(*arguments: str | Path, waits_for_output: bool) -> tuple[int, str, float]:
        with started(*arguments) as process:
            assert process.stdout is not None
            if waits_for_output:
                process.stdout.readline()
            else:
                while process.poll() is None and cpu_seconds(process.pid) < 1:
                    time.sleep(0.05)
            assert process.poll() is None, "it must be at work still"
            before = cpu_seconds(process.pid) + _cpu_seconds_of_ended_children()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE_SECONDS)
            return process.returncode, said, _cpu_seconds_of_ended_children() - before

    return interrupt


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("arguments", "waits_for_output"),
    [
        (("dump", "--output", "jsonl"), True),
        (("load-check",), False),
        # A moment of the commits' own clock is read record by record, which takes its time.
        (("state", "--at-time", "9999999999999", "--clock", "commit"), False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_interrupt_ends_a_command_within_a_second_with_one_word(
    interrupted: Callable[..., tuple[int, str, float]], large_log: Path, arguments: tuple[str, ...], waits_for_output: bool
) -> None:
    code, said, seconds = interrupted(arguments[0], large_log, *arguments[1:], waits_for_output=waits_for_output)

    assert (code, said) == (130, "interrupted\n")
    assert seconds < 1


def test_an_interrupt_is_not_lost_while_an_object_is_taken_apart() -> None:
    program = """
import signal, time
from exhume.cli import app

class Fragile:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def work(arguments):
    try:
        Fragile()
        time.sleep(20)
    except KeyboardInterrupt:
        return 130

app.run = work
app.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)

    assert (done.returncode, done.stderr) == (130, "")


def test_an_error_that_an_interrupt_caused_is_an_interrupt() -> None:
    program = """
import ctypes, signal, sys
from exhume.cli import app, releases

def failing():
    # C code goes on after the exception of a Python function that it calls.
    @ctypes.CFUNCTYPE(None)
    def called_back():
        signal.raise_signal(signal.SIGINT)

    called_back()
    raise RuntimeError("no result")

releases.releases_command = failing
sys.argv = ["exhume", "releases"]
app.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)

    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_an_interrupt_leaves_no_half_written_file(
    interrupted: Callable[..., tuple[int, str, float]], large_log: Path, tmp_path: Path
) -> None:
    target = tmp_path / "dump.jsonl"
    code, _, _ = interrupted("dump", large_log, "--annotate", "--output", "jsonl", "--output-file", target, waits_for_output=False)

    assert code == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_that_end_a_program_leave_no_half_written_file_either(
    large_log: Path, tmp_path: Path, number: signal.Signals
) -> None:
    target = tmp_path / "dump.jsonl"
    with started("dump", large_log, "--output", "jsonl", "--output-file", target) as process:
        while process.poll() is None and not any(path.stat().st_size for path in tmp_path.glob(".*.part")):
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_SECONDS)

    assert (process.returncode, said) == (128 + number, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_of(2)
@pytest.mark.parametrize("arguments", [("dump", "--output", "jsonl"), ("dump", "--annotate")], ids=" ".join)
def test_a_reader_that_leaves_ends_a_command_without_a_word(large_log: Path, arguments: tuple[str, ...]) -> None:
    with started(arguments[0], large_log, *arguments[1:]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        process.wait(timeout=PATIENCE_SECONDS)

    assert (process.returncode, said) == (141, "")


def test_a_closed_standard_output_is_a_wrong_request(segment: Path) -> None:
    done = subprocess.run(
        command("dump", segment), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, preexec_fn=lambda: os.close(1)
    )

    assert (done.returncode, done.stderr) == (2, "exhume: standard output is closed. Name a file with --output-file\n")


def test_colours_stay_off_where_nobody_watches(segment: Path) -> None:
    any_colour: dict[str, Any] = {**os.environ, "CLICOLOR_FORCE": "1", "TERM": "xterm-256color"}
    for arguments in (("inspect", segment.parent.parent), ("--help",), ("nonsense",)):
        done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, env=any_colour)
        assert "\x1b" not in done.stdout + done.stderr


#: An interrupt comes when the import of the command line begins.
_INTERRUPTED_IMPORT = """
import sys

class Interrupting:
    @staticmethod
    def find_spec(name, *_):
        if name == "exhume.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting)

from exhume.__main__ import main
main()
"""


def test_an_interrupt_before_the_command_line_is_there_ends_it_as_quietly() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED_IMPORT], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
