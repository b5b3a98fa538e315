"""`exhume export` as a program: what it shows to whoever watches, and how it ends when it is interrupted."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import exhume
from exhume.cli.app import run
from exhume.findings import SCHEMA as FINDINGS
from exhume.fixtures import incidents
from exhume.replay.spark.wide import plain_schema
from tests.judges import corpus
from tests.patience import PATIENCE_SECONDS

PLACE = corpus.BUNDLED / "4.3.0-transactions" / "data"
_ENVIRONMENT = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "TERM": "xterm"}


def command(output_dir: Path, *options: str, places: Sequence[Path] = (PLACE,)) -> list[str]:
    return [
        sys.executable,
        "-m",
        "exhume",
        "export",
        *map(str, places),
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
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
        is_over.set()
    assert process.returncode == 130
    assert said.endswith("interrupted\n")
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--tables", "offsets,owners", "--at-time", "0"], "owners cannot be exported at a moment"),
        (["--tables", "findings", "--at-time", "0", "--retention", "7d"], "detectors cannot run at a moment"),
        (["--code", "IC-02"], "there are inputs or codes for detectors, but no detector runs"),
        (["--tables", "findings", "--code", "IC-99"], "no detector has the code"),
    ],
    ids=["owners", "detectors at a moment", "no detectors", "no such detector"],
)
def test_what_cannot_be_is_refused_before_a_session_begins(tmp_path: Path, options: list[str], reason: str) -> None:
    done = subprocess.run(
        command(tmp_path / "out", *options), env=_ENVIRONMENT | {"PATH": "", "JAVA_HOME": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"exhume: {reason}")


#: What detectors are told of these incidents, as `exhume diagnose` and `exhume export` take it.
_INCIDENTS = ("IC-01", "IC-07", "IC-20a", "IC-21", "IC-29")
_VALUES = {"--retention": "1d", "--offsets-partitions": "50"}
_FILES = {
    "--end-offsets": "t:0:50\nq:0:5000\n",
    "--start-offsets": "q:0:4000\nt:0:500\n",
    "--topics": "topic,topic_id,partitions\nt,,4\n",
    "--live": "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET\ng     t     0         7              50\n",
}


def test_detectors_find_what_diagnose_finds_with_the_same_inputs(java17: None, tmp_path: Path) -> None:
    places = [incidents.write(code, tmp_path / code).directory for code in _INCIDENTS]
    given = dict(_VALUES)
    for option, text in _FILES.items():
        file = tmp_path / option.removeprefix("--")
        file.write_text(text)
        given[option] = str(file)
    expected = diagnosed(places, given)
    for option in given:
        assert diagnosed(places, {name: text for name, text in given.items() if name != option}) != expected, f"{option} tells nothing"
    with exhume.open(places) as topic:
        topic.state()
        expected += rows_of(topic.findings.to_table())

    done = subprocess.run(
        command(tmp_path / "out", "--tables", "findings", *flat(given), places=places),
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = ds.dataset(tmp_path / "out" / "findings", partitioning="hive").to_table()
    assert rows_of(found) == expected


def diagnosed(places: Sequence[Path], options: Mapping[str, str]) -> Counter[str]:
    """Everything that `exhume diagnose` finds."""
    with TemporaryDirectory() as directory:
        file = Path(directory, "found.parquet")
        shown = ["--min-severity", "info", "--undecided", "--fail-on", "never", "--output", "parquet", "--output-file", str(file)]
        assert run(["diagnose", *map(str, places), *flat(options), *shown]) == 0
        return rows_of(pq.read_table(file))


def flat(options: Mapping[str, str]) -> list[str]:
    return [part for option in options.items() for part in option]


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.select(FINDINGS.names).cast(plain_schema(FINDINGS)).to_pylist()))
