"""What all tests share: the count of what was compared with Kafka, and broker tests that must not be skipped where they count."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests import bundled, s3_server
from tests.compared import Compared

_PR_SET_THP_DISABLE = 41
_COMPARED = pytest.StashKey[Compared]()
#: The share of the parameters of long sweeps that this run takes, such as 2/3. Without it, all of them.
_SHARE = os.environ.get("EXHUME_SHARE")
#: Worker -> its peak memory in bytes.
_PEAKS = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in what a shell runs in the background: tests of interrupts, and the programs that they start, would never see one.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # As under nohup.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # pytest imports readline, which sets the size of the terminal for the programs that tests start: their tables would fit it.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
        # readline does not go through `os.environ`.
        os.unsetenv(name)
    if sys.platform == "linux":
        # Large pages would make the tables of each small log take tens of megabytes.
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    config.stash[_COMPARED] = Counter()
    config.stash[_PEAKS] = {}
    if not hasattr(config, "workerinput"):
        # Workers of a distributed run take the directory of the process that started them.
        bundled.share()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--show-memory", action="store_true", help="show the peak memory of each process at the end")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Spark needs Java, so a test that asks for Java is one on Spark."""
    if "java17" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark parameters as slow before `-m` selects tests, and put files with long tests first: otherwise one runs alone at the end."""
    _mark_slow_parameters(items)
    _take_share(config, items)
    yield
    is_long = {item.path for item in items if any(item.get_closest_marker(name) for name in ("spark", "broker", "slow"))}
    items.sort(key=lambda item: item.path not in is_long)


def _mark_slow_parameters(items: list[pytest.Item]) -> None:
    """Mark tests with `one_of(count)` as slow, except the first of each `count` parameters."""
    seen: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("one_of")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            if seen[test] % marker.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[test] += 1


def _take_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow parameters that are not in the share of $EXHUME_SHARE, such as 2/3. Tests begin with different shares."""
    if _SHARE is None:
        return
    try:
        number, count = map(int, _SHARE.split("/"))
        assert 1 <= number <= count
    except (ValueError, AssertionError) as error:
        raise pytest.UsageError(f"EXHUME_SHARE={_SHARE} is no share: write 1/3, 2/3 or 3/3") from error
    seen: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_out = False
        if item.get_closest_marker("slow") is not None and hasattr(item, "callspec"):
            test = item.nodeid.partition("[")[0]
            is_out = (seen[test] + zlib.crc32(test.encode()) - number) % count != 0
            seen[test] += 1
        (left_out if is_out else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def pytest_report_header() -> str | None:
    return None if _SHARE is None else f"share {_SHARE} of the parameters of long sweeps; EXHUME_SHARE={_SHARE} repeats it"


@pytest.fixture
def compared(request: pytest.FixtureRequest) -> Iterator[Compared]:
    """Counts to add to; the sum over all tests is printed when they are done."""
    counts: Compared = Counter()
    yield counts
    request.config.stash[_COMPARED].update(counts)


@pytest.fixture(scope="session")
def _s3() -> Iterator[s3_server.S3Server]:
    server, stop = s3_server.start()
    yield server
    stop()


@pytest.fixture
def s3(_s3: s3_server.S3Server) -> Iterator[s3_server.S3Server]:
    """An S3 server on the loopback, unbroken and with nothing asked of it."""
    _s3.asked.clear()
    yield _s3
    _s3.broken_from_byte, _s3.fault, _s3.is_closed = None, None, False


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of a distributed run hands its counts to the one who prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["compared"] = [[*key, count] for key, count in session.config.stash[_COMPARED].items()]
        output["peak_bytes"] = _peak_bytes()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # pytest-xdist calls it with these names
    for what, with_what, count in getattr(node, "workeroutput", {}).get("compared", ()):
        node.config.stash[_COMPARED][what, with_what] += count

    peaks: dict[str, int] = node.config.stash[_PEAKS]
    peaks[node.gateway.id] = getattr(node, "workeroutput", {}).get("peak_bytes", 0)


def _peak_bytes() -> int:
    """The peak memory of this process, without the processes that it started."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("show_memory"):
        terminalreporter.section("peak memory")
        peaks = config.stash[_PEAKS]
        for process, peak_bytes in [*sorted(peaks.items()), ("this process", _peak_bytes())]:
            terminalreporter.write_line(f"{process:28} {peak_bytes / 1e6:>8.0f} MB")
    counts = config.stash[_COMPARED]
    if counts:
        terminalreporter.section("rows compared with what Kafka said")
        for (what, with_what), count in sorted(counts.items()):
            terminalreporter.write_line(f"{with_what:28} {what:34} {count:>8}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """With EXHUME_REQUIRE_BROKER a test with a broker, on Spark or in a browser that is skipped has failed: it would prove nothing.

    Those over a larger set of logs are asked for by the variable that names it.
    """
    report: Any = yield
    must_run = any(item.get_closest_marker(name) is not None for name in ("broker", "spark", "browser"))
    is_extra = item.get_closest_marker("corpus") is not None
    if report.skipped and os.environ.get("EXHUME_REQUIRE_BROKER") and must_run and not is_extra:
        report.outcome = "failed"
        report.longrepr = f"a test that must run here was skipped: {report.longrepr}"
    return report
