"""Several processes return the findings of one process, and all of them end before or with their caller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from exhume.analysis.detectors.inputs import Inputs, LiveOffset
from exhume.codecs.limits import LIMITS, limit_memory
from exhume.codecs.log_directory import discover
from exhume.codecs.one_log import logs_of
from exhume.codecs.segment_reader import ReadOptions
from exhume.errors import RequestError
from exhume.findings import Finding
from exhume.fixtures import incidents, scenarios
from exhume.processes import Advance, ProcessEnded, Processes, packed, unpacked
from exhume.topic import OffsetsTopic, diagnosis_in_processes
from tests.analysis.detectors.troubles import troubles
from tests.judges import corpus

count = diagnosis_in_processes.process_count
_LIVE = [LiveOffset("billing", "orders", 0, 5, None)]


@pytest.fixture(autouse=True)
def of_small_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two processes diagnose small logs too."""
    monkeypatch.setattr(diagnosis_in_processes, "process_count", lambda logs, threads: min(threads, 2))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of processes that were started together."""
    counts: list[int] = []
    enter = Processes.__enter__

    def counted(processes: Processes) -> Processes:
        counts.append(processes._count)
        return enter(processes)

    monkeypatch.setattr(Processes, "__enter__", counted)
    return counts


def found_in(
    places: list[Path], threads: int, inputs: Inputs | None = None, codes: list[str] | None = None
) -> tuple[list[Finding], list[Finding]]:
    """The findings, and those of reading."""
    with OffsetsTopic(discover(places), ReadOptions(threads=threads)) as topic:
        return [*topic.diagnose(inputs, codes=codes)], [*topic.findings]


def assert_same(places: list[Path], started: list[int], inputs: Inputs | None = None) -> list[Finding]:
    alone = found_in(places, 1, inputs)
    assert not started
    assert found_in(places, 2, inputs) == alone
    # Once to condense, and once to run detectors.
    assert started == [2, 2]
    return alone[0]


def test_logs_of_brokers(started: list[int]) -> None:
    places = [corpus.BUNDLED / name / "data" for name in ("2.8.2-lifecycle", "4.3.0-transactions")]
    assert {"IC-05a", "IC-23", "IC-26", "IC-34"} <= {finding.code for finding in assert_same(places, started)}


@pytest.mark.parametrize("turn", range(2))
def test_drills(started: list[int], tmp_path: Path, turn: int) -> None:
    """Side by side, as replicas of one another, one of them damaged."""
    places = [place for name in [*scenarios.ALL][turn::2] for place in scenarios.write(name, tmp_path / name).data_directories]
    assert len(assert_same(places, started, Inputs(live=_LIVE, offsets_partitions=50))) > 5


@pytest.mark.parametrize("seed", range(3))
def test_logs_with_much_trouble(started: list[int], tmp_path: Path, seed: int) -> None:
    for number in range(3):
        troubles(3 * seed + number, events=80).write(tmp_path / str(number))
    assert assert_same([tmp_path / str(number) for number in range(3)], started)


def test_incidents_that_need_files_of_all_logs(started: list[int], tmp_path: Path) -> None:
    stopped = incidents.write("IC-03", tmp_path / "stopped", which="an open transaction stops it")
    owners = incidents.write("IC-06d", tmp_path / "owners")
    found = assert_same([stopped.directory, owners.directory], started)
    assert {"IC-03", "IC-06d", "IC-08"} <= {finding.code for finding in found}


def test_groups_and_codes_are_checked(tmp_path: Path) -> None:
    places = [tmp_path / str(number) for number in range(2)]
    for number, place in enumerate(places):
        troubles(number, events=80).write(place)
    with OffsetsTopic(discover(places), ReadOptions(threads=2)) as topic:
        with pytest.raises(RequestError, match="no record of group 'missing'"):
            topic.diagnose(groups=["missing"])
        with pytest.raises(RequestError, match="no detector"):
            topic.diagnose(codes=["IC-99"])


def test_progress_covers_all_bytes(tmp_path: Path) -> None:
    places = [tmp_path / str(number) for number in range(2)]
    for number, place in enumerate(places):
        troubles(number, events=80).write(place)
    seen: list[tuple[int, int]] = []
    with OffsetsTopic(discover(places), ReadOptions(threads=2, progress=lambda done, total: seen.append((done, total)))) as topic:
        topic.diagnose(codes=["IC-11"])
    assert seen[-1][0] == seen[-1][1] > 0


def test_without_processes_this_one_finds_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places = [tmp_path / str(number) for number in range(2)]
    for number, place in enumerate(places):
        troubles(number, events=80).write(place)
    alone = found_in(places, 1)
    for executable in ("/nonexistent/python", "/bin/false"):
        monkeypatch.setattr(sys, "executable", executable)
        assert found_in(places, 2) == alone


def test_the_count_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        troubles(number, events=20).write(tmp_path / str(number))
    logs = logs_of(discover([tmp_path / str(number) for number in range(6)]), ReadOptions())
    monkeypatch.setattr(diagnosis_in_processes, "_LEAST_BYTES", 0)
    assert [count(logs, threads) for threads in (1, 2, 3, 16)] == [1, 2, 3, 4]
    assert count(logs[:1], 8) == 1
    # Memory for one process more than this one, for two, and for none.
    monkeypatch.setattr(diagnosis_in_processes, "_PROCESS_BYTES", 100)
    monkeypatch.setattr(diagnosis_in_processes, "_MEMORY_SHARE", 0)
    for memory_bytes, processes in ((250, 1), (300, 2), (399, 2), (50, 1)):
        monkeypatch.setattr(LIMITS, "memory_bytes", memory_bytes)
        assert count(logs, 8) == processes
    monkeypatch.setattr(diagnosis_in_processes, "_LEAST_BYTES", 1 << 30)
    assert count(logs, 8) == 1


# The processes themselves


def _process(task: int, advance: Advance) -> tuple[int, int]:
    sys.stdout.write("text of a function\n")
    advance(task)
    return task, os.getpid()


def _end(task: int, advance: Advance) -> int:
    os._exit(task)


def _fail(task: int, advance: Advance) -> int:
    raise ValueError(task, advance)


def test_results_come_in_the_order_of_the_tasks() -> None:
    done: list[int] = []
    with Processes(2) as processes:
        results = processes.map(_process, [*range(20)], done.append)
    assert [number for number, _ in results] == [*range(20)]
    assert sorted(done) == [*range(20)]
    pids = {pid for _, pid in results}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert not any(map(_exists, pids))


def _limit(task: int, advance: Advance) -> int | None:
    return LIMITS.memory_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_each_process_is_prepared() -> None:
    with Processes(2, partial(limit_memory, 300 << 20)) as processes:
        assert processes.map(_limit, [1, 2, 3]) == [300 << 20] * 3


@pytest.mark.parametrize("function", [_end, _fail])
def test_the_end_of_a_process_is_an_error(function: object) -> None:
    with Processes(2) as processes, pytest.raises(ProcessEnded):
        processes.map(function, [1, 2, 3])  # type: ignore[arg-type]


def test_modules_in_the_directory_of_the_user_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lz4", "pyarrow", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    with Processes(1) as processes:
        assert processes.map(_process, [7])[0][0] == 7


def test_packed_objects_come_back() -> None:
    content = {"rows": [(number, f"group-{number}") for number in range(1000)]}
    assert len(packed(content)) < 10_000
    assert unpacked(packed(content)) == content


_SCRIPT = """
import sys
from pathlib import Path
import exhume
from exhume.topic import diagnosis_in_processes
diagnosis_in_processes._LEAST_BYTES = 0
if __name__ == "__main__":
    with exhume.open([Path(place) for place in sys.argv[1:]]) as topic:
        while True:
            topic.diagnose()
            print("once", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_its_caller(tmp_path: Path, number: signal.Signals) -> None:
    places = [tmp_path / str(place) for place in range(2)]
    for place in places:
        troubles(len(place.name), events=80).write(place)
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    with subprocess.Popen([sys.executable, script, *places], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"once\n"
        children: list[int] = []
        deadline = time.monotonic() + 30
        while not children and time.monotonic() < deadline:
            children = _children(caller.pid)
        assert children
        caller.send_signal(number)
        caller.wait(30)
    deadline = time.monotonic() + 30
    while any(map(_exists, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_exists, children))


def _children(pid: int) -> list[int]:
    return [int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
