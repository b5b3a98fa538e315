"""What exhume answers: the logs to ask about, the commands to run on each, and their answers as files.

The logs are those that come with the tests, the log of `exhume demo`, and the situations of `exhume lab`. Exhume is known here by its
command line alone, so that the same script records every checkout.
"""

from __future__ import annotations

import fnmatch
import io
import json
import multiprocessing
import re
import shlex
import tarfile
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

JSON = ("--output", "json")
#: Of each family of rules one release.
RELEASES = (
    *("0.9.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.0", "1.1.1", "2.0.0", "2.1.1", "2.3.1"),
    *("2.4.0", "2.8.2", "3.0.0", "3.9.1", "4.0.0", "4.0.2", "4.1.2", "4.3.0"),
)
#: Values of options that were renamed, by those that are recorded. The second is tried where a checkout refuses the first.
_NEW_SPELLINGS = {"--view=held": "--view=in_memory"}
_LEFTOVERS = ("deleted", "swap", "cleaned", "delete", "future", "stray")
_WRONG_REQUEST = 2
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
# Hostile logs carry times beyond these.
_FIRST_MS, _LAST_MS = 1_000_000_000_000, 4_000_000_000_000

Commands = dict[str, list[str]]
Answer = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Log:
    """Log directories that are read together, by their paths under a root; or the arguments of `exhume lab write` that make one."""

    name: str
    root: Path = Path()
    paths: tuple[str, ...] = ()
    lab: tuple[str, ...] = ()


@contextmanager
def unpacked(data: Path) -> Iterator[Path]:
    """The directory of the stories: this one, or a temporary one where it holds archives of them."""
    archives = sorted(data.rglob("*.tar.xz"))
    if not archives:
        yield data
        return
    with tempfile.TemporaryDirectory() as made:
        for archive in archives:
            story = Path(made, archive.relative_to(data).as_posix().removesuffix(".tar.xz"))
            with tarfile.open(archive) as packed:
                for member in packed:
                    content = packed.extractfile(member)
                    if content is not None and not member.name.startswith("oracle"):
                        (story / member.name).parent.mkdir(parents=True, exist_ok=True)
                        (story / member.name).write_bytes(content.read())
        yield Path(made)


def bundled_logs(stories: Path) -> Iterator[Log]:
    """Every log directory under this one, alone and with its neighbours."""
    directories = defaultdict(list)
    for place in sorted({found.parent for found in stories.rglob("__consumer_offsets-*") if found.is_dir()}):
        name = place.relative_to(stories).as_posix()
        directories[place.parent].append(name)
        yield Log(name, stories, (name,))
    for story, names in directories.items():
        if story != stories and len(names) > 1:
            yield Log(f"{story.relative_to(stories).as_posix()}/together", stories, tuple(names))


def lab_logs() -> Iterator[Log]:
    """Every situation that `exhume lab` can write."""
    for row in run(["lab", "list", *JSON])["tables"][""]:
        if row["hits"] is None:
            yield Log(f"lab/{row['name']}", lab=(row["name"],))
        for kind in ("hits", "near_misses", "undecidable"):
            option = "--" + kind.replace("hits", "hit").replace("misses", "miss").replace("_", "-")
            for number in range(1, len(row[kind] or ()) + 1):
                yield Log(f"lab/{row['name']}{option[1:]}-{number}", lab=(row["name"], option, str(number)))


def commands_for(paths: Sequence[str], most: int) -> Commands:
    """Every command that gives a table, on these paths, for no more than so many groups and topics."""
    records = run(["dump", *paths, *JSON])["tables"].get("", [])
    groups, topics = (_telling(records, column)[:most] for column in ("group", "topic"))
    offsets = defaultdict(list)
    for record in records:
        offsets[record["offsets_partition"]].append(record["record_offset"])
    times = sorted(time_ms for time_ms in map(_time_ms, records) if _FIRST_MS < time_ms < _LAST_MS) or [_FIRST_MS]
    time_ms, soon, late = str(times[len(times) // 2]), str(times[-1] + _HOUR_MS), str(times[-1] + 8 * _DAY_MS)

    def moment(option: str, part: float) -> list[str]:
        return [f"{option}={partition}:{sorted(each)[int(len(each) * part)]}" for partition, each in sorted(offsets.items())]

    include = [f"--include={kind}" for kind in _LEFTOVERS]
    middle = moment("--at-offset", 0.5)
    asked: dict[str, Sequence[str]] = {
        "inspect": JSON,
        "inspect text": (),
        "inspect include": [*include, *JSON],
        "inspect no-verify": ["--no-verify", *JSON],
        "dump": JSON,
        "dump include": [*include, *JSON],
        "dump raw": ["--raw", "--no-verify", f"--from-time={time_ms}", *JSON],
        "state": JSON,
        "state text": (),
        "state unclean": ["--stop=unclean", *JSON],
        "state at-offset": [*middle, *JSON],
        "state at-time": [f"--at-time={time_ms}", *JSON],
        "state at-commit-time": [f"--at-time={time_ms}", "--clock=commit", "--release=2.8.2", *JSON],
        "diff from-offset": [*moment("--from-offset", 0.3), *moment("--to-offset", 0.8), *JSON],
        "diff from-time": [f"--from-time={time_ms}", "--release=2.8.2", *JSON],
        "rebalances": JSON,
        "assignments": JSON,
        "assignments every": ["--every", "--table=verdicts", *JSON],
        "assignments partitions": ["--every", "--table=partitions", *JSON],
        "expiry soon": [f"--now={soon}", *JSON],
        "expiry records": [f"--now={late}", "--as-records", *JSON],
        "diagnose": ["--min-severity=info", "--undecided", *JSON],
        "diagnose retention": ["--min-severity=info", "--undecided", "--retention=1d", "--offsets-partitions=50", *JSON],
        "transactions": ["--all", *JSON],
        "transactions partitions": ["--table=partitions", "--max-timeout=1", *JSON],
        "load-check": JSON,
        "load-check text": ["--stop=unclean", "--release=2.8.2", "--release=4.3.0"],
    }
    for release in RELEASES:
        asked[f"state {release}"] = [f"--release={release}", *JSON]
        asked[f"expiry {release}"] = [f"--release={release}", f"--now={late}", *JSON]
    for release in ("0.10.2.2", "2.8.2", "4.3.0"):
        asked[f"state lenient {release}"] = [f"--release={release}", "--mode=lenient", *JSON]
        asked[f"state held {release}"] = [f"--release={release}", "--view=held", *JSON]
    for by in ("group", "topic", "type", "hour", "partition"):
        asked[f"growth {by}"] = [f"--by={by}", f"--now={late}", *JSON]
    for number, topic in enumerate(topics):
        asked[f"owners topic-{number}"] = [f"--topic={topic}", *JSON]
        asked[f"owners topic-{number} at-offset"] = [f"--topic={topic}", *middle, *JSON]
        asked[f"dump topic-{number}"] = [f"--topic={topic}", *JSON]
    for number, group in enumerate(groups):
        for command, variant, options in _of_group(middle, time_ms, soon, late):
            asked[f"{command} group-{number}{variant}"] = [f"--group={group}", *options]
    together = [f"--group={group}" for group in groups]
    for name, to in (("before-rewind", "--before-rewind"), ("lost", "--lost"), ("at-time", f"--at-time={time_ms}")) if groups else ():
        asked[f"reset-plan {name}"] = [*together, to, *JSON]
        asked[f"reset-plan {name} pending"] = [*together, to, "--include-pending", "--as-records", f"--now={late}", *JSON]
    commands = {name: [name.split()[0], *paths, *options] for name, options in asked.items()}
    if len(paths) == 2:
        commands["diff together"] = ["diff", *paths, *JSON]
    return commands


def _of_group(middle: Sequence[str], time_ms: str, soon: str, late: str) -> Iterator[tuple[str, str, Sequence[str]]]:
    yield "state", " text", ()
    yield "state", " at-offset", [*middle, *JSON]
    yield "dump", " annotate", ["--annotate", *JSON]
    yield "explain", "", JSON
    yield "explain", " at-offset", [*middle, "--release=2.8.2", "--retention=1d", *JSON]
    yield "explain", " at-time", [f"--at-time={time_ms}", *JSON]
    yield "history", "", JSON
    yield "history", " 2.8.2", ["--release=2.8.2", *JSON]
    yield "timeline", "", JSON
    yield "timeline", " text", ()
    yield "timeline", " member", ["--by=member", "--scale=changes"]
    yield "assignments", "", JSON
    yield "why", "", [f"--now={soon}", *JSON]
    yield "why", " late", [f"--now={late}", "--release=2.8.2", *JSON]
    yield "why", " 0.10.2.2", [f"--now={late}", "--release=0.10.2.2", "--retention=1d", *JSON]
    yield "reset-plan", " text", ["--lost"]


def _time_ms(record: Mapping[str, Any]) -> int:
    """When a record was written, as far as it says; 0 where it does not."""
    value = record["value"] if isinstance(record["value"], dict) else {}
    time_ms: int = record["timestamp_ms"] or value.get("commit_timestamp_ms") or 0
    return time_ms


def _telling(records: Iterable[Mapping[str, Any]], column: str) -> list[str]:
    """The names in this column: first those that add a kind of record, then those with the most records."""
    kinds: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for record in records:
        if record[column] is not None:
            kinds[record[column]].add((record["type"], record["is_tombstone"]))
            counts[record[column]] += 1
    chosen: list[str] = []
    seen: set[tuple[Any, ...]] = set()
    while kinds:
        name = min(kinds, key=lambda each: (-len(kinds[each] - seen), -counts[each], each))
        seen |= kinds.pop(name)
        chosen.append(name)
    return chosen


def lab_commands(told: Iterable[str], directories: Sequence[str], lab: Sequence[str], most: int) -> Commands:
    """What `exhume lab` says to try; for an incident every detector too, for a story every command."""
    lines = [shlex.split(line)[1:] for line in told if line.startswith("  exhume ")]
    commands = {f"try-{number} {line[0]}": [*line, *JSON] for number, line in enumerate(lines)}
    if len(lab) == 1:
        return commands | commands_for(directories, most)
    for line in lines:
        if "--code" in line:
            at = line.index("--code")
            commands["diagnose all codes"] = [*line[:at], *line[at + 2 :], "--undecided", *JSON]
    return commands | {
        "diagnose": ["diagnose", *directories, "--min-severity=info", "--undecided", *JSON],
        "inspect": ["inspect", *directories, *JSON],
        "state": ["state", *directories, *JSON],
        "rebalances": ["rebalances", *directories, *JSON],
    }


def run(arguments: Sequence[str]) -> Answer:
    """What this command line answers, in the spelling of this checkout."""
    answer = _run(arguments)
    renamed = [_NEW_SPELLINGS.get(argument, argument) for argument in arguments]
    if answer["exit_code"] == _WRONG_REQUEST and renamed != list(arguments):
        return _run(renamed) | {"arguments": list(arguments)}
    return answer


def _run(arguments: Sequence[str]) -> Answer:
    run_command_line = _command_line()
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    code: int | str
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = run_command_line(list(arguments))
        except Exception as error:
            # A failure is an answer too.
            code = f"{type(error).__name__}: {error}"
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.detach().getvalue().decode("utf-8", "backslashreplace"))
    return {"arguments": list(arguments), "exit_code": code, "messages": texts[1].splitlines(), "tables": tables_of(texts[0])}


@cache
def _command_line() -> Callable[[list[str]], int]:
    import typer.main

    from exhume.cli.app import run as run_command_line

    # Typer makes all commands anew for each call, which takes longer than most answers about small logs.
    typer.main.get_command = cache(typer.main.get_command)
    return run_command_line


def tables_of(text: str) -> dict[str, list[Row]]:
    """The tables of this output by name; the name of a single one is empty."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return dict(_text_tables(text.splitlines()))
    # The head of a document says what made it, and is no table.
    return {"": parsed} if isinstance(parsed, list) else {name: rows for name, rows in parsed.items() if name != "exhume"}


def _text_tables(lines: Sequence[str]) -> Iterator[tuple[str, list[Row]]]:
    """The tables of a text, without the widths of their columns; what is no table is one of lines."""
    rows: list[Row] = []
    name, header = "text", ["line"]
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if re.fullmatch(r"-+(  -+)*", line):
            continue
        if re.fullmatch(r"-+(  -+)+", following):
            header = line.split()
        elif not line:
            yield name, rows
            name, header, rows = f"text {number}", ["line"], []
        else:
            cells = re.split(r" {2,}", line.strip())
            rows.append(dict(zip(header, cells, strict=True)) if len(cells) == len(header) else {"line": "  ".join(cells)})
    yield name, rows


def write_answer(place: Path, answer: Answer) -> None:
    """Write an answer, a line for each row."""
    head = {key: value for key, value in answer.items() if key != "tables"}
    tables = ",\n".join(f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]" for name, rows in answer["tables"].items())
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{json.dumps(head)[:-1]},\n{json.dumps('tables')}: {{\n{tables}\n}}}}\n", encoding="ascii")


def record_log(log: Log, *, target: Path, wanted: Sequence[str], most: int) -> tuple[str, dict[str, float]]:
    """Write the answers about one log; what comes back is its name and the seconds of each command."""
    # Evidence is named relative to the working directory: an answer holds no path of the machine.
    with tempfile.TemporaryDirectory() as made, chdir(made if log.lab else log.root):
        if log.lab:
            written = run(["lab", "write", log.lab[0], "lab", *log.lab[1:]])
            directories = [row["line"] for rows in written["tables"].values() for row in rows]
            commands = lab_commands(written["messages"], directories, log.lab, most)
            write_answer(target / log.name / "lab write.json", written)
        elif log.paths:
            commands = commands_for(log.paths, most)
        else:
            commands = {"releases": ["releases", *JSON], "lab list": ["lab", "list", *JSON], "diagnose list": ["diagnose", "--list"]}
        seconds: dict[str, float] = defaultdict(float)
        for name, arguments in commands.items():
            if not wanted or arguments[0] in wanted:
                start = time.perf_counter()
                write_answer(target / log.name / f"{name}.json", run(arguments))
                seconds[arguments[0]] += time.perf_counter() - start
    return log.name, dict(seconds)


def record(logs: Sequence[Log], target: Path, wanted: Sequence[str], most: int, workers: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Write the answers of these commands (none: of all) about these logs; names no more than so many groups and topics of each."""
    work = partial(record_log, target=target.resolve(), wanted=wanted, most=most)
    if workers == 1:
        yield from map(work, logs)
    else:
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            yield from pool.imap_unordered(work, logs)


def logs_named(pattern: str, stories: Path, demo: Path) -> list[Log]:
    """The logs of this name, such as `facts/*`. `no log` is for commands that read none."""
    demos = [Log("demo_log", demo.parent, (demo.name,))] if demo.exists() else []
    return [log for log in (Log("no log"), *bundled_logs(stories), *demos, *lab_logs()) if fnmatch.fnmatch(log.name, pattern)]
