"""`exhume batch` as a program: what it shows to whoever watches, and how it ends when it is interrupted."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.judges import corpus

PLACE = corpus.BUNDLED / "4.3.0-transactions" / "data"
_ENVIRONMENT = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "TERM": "xterm"}


def command(output_dir: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "exhume",
        "batch",
        str(PLACE),
        "--output-dir",
        str(output_dir),
        "--master",
        "local[1]",
        *(options or ("--tables", "offsets")),
    ]


def test_who_watches_sees_what_was_planned_and_how_far_it_is(java17: None, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(command(tmp_path / "out"), env=_ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = bytearray()
        while True:
            try:
                content = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            shown += content
    os.close(ours)
    text = " ".join(shown.decode(errors="replace").split())
    assert process.returncode == 0
    assert "loading, 4 segments" in text
    assert "kB" in text or "KiB" in text


def test_an_interrupt_ends_jobs_and_leaves_nothing_behind(java17: None, tmp_path: Path) -> None:
    with subprocess.Popen(
        command(tmp_path / "out"), env=_ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        is_over = threading.Event()

        def interrupt() -> None:
            while not is_over.wait(0.02):
                if any(tmp_path.glob("*.unfinished/*")):
                    process.send_signal(signal.SIGINT)
                    return

        threading.Thread(target=interrupt, daemon=True).start()
        _, said = process.communicate(timeout=120)
        is_over.set()
    assert process.returncode == 130
    assert said.endswith("interrupted\n")
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_is_refused_before_a_session_begins(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path / "out", "--tables", "offsets,owners", "--at-time", "0"),
        env=_ENVIRONMENT | {"PATH": "", "JAVA_HOME": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("exhume: owners at a moment")
