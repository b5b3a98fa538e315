"""Ask a broker of any release about the logs of a corpus: `python -m tests.brokers.asking RELEASE CORPUS TARGET [STORY ...]`.

The release is one of `Broker`: 4.4.0, or 3.9.2-new. The corpus is a directory of stories as `tests.judges.corpus` describes it, such as
the one that `tools/bundle_logs.py unpack` writes. The target gets the answers and links to the log directories, so it is a corpus too. At
the end, all answers of this release in the target are compared with the state by exhume.

    stories          after-R.json      the offsets partitions of the log directory, in a broker with the topics of the story
    random logs      after-R.json      the same
    logs of expiry   expired-R.json    after runs of the expiry task, with the retention of another answer about this log
    facts            answers.json      all facts of one kind in one broker, `after-R` of each

Releases before 0.10.1 do not know the requests of this client.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import exhume
from exhume.codecs.record_types import decode_record
from tests.judges import replays
from tests.judges.broker_answers import FAILED_LOAD, LATE_ERROR, read_json
from tests.judges.corpus import Case, cases
from tests.judges.state_comparison import Comparison

from .broker import Broker
from .client import Client, answers, await_loads, create_topics
from .kafka import KafkaFailed
from .loading import questions_of
from .topic_ids import give_topic_ids

_OFTEN_MS = 1_000
#: Time in which the expiry task runs often enough to have nothing left to remove.
_RUNS_SECONDS = 6.0
_WEEK_MINUTES = 10_080
_TOPICS_OF_FACTS = {"orders": 4, "clicks": 4, "audit": 4}
#: Kinds of facts, and facts, that a broker loads without any other: those with a checkpoint, and one that keeps it from starting.
_ALONE = ("logstart", "solo", "facts/tail-zero-clean")
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """The broker that loads a log: rounds with one setting share it."""

    offsets_partitions: int
    topics: Mapping[str, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    is_clean: bool = True
    #: Minutes; None: nothing expires.
    retention_minutes: int | None = None
    #: The story that no other one shares this broker with; after a start that failed, a broker has no clean stop.
    alone: str = ""


@contextmanager
def _prepared(coordinator: str, setting: Setting) -> Iterator[Broker]:
    """Return a stopped broker with an empty offsets topic, and with the topics of the setting."""
    settings: dict[str, object] = {"num.partitions": max([3, *setting.topics.values()])}
    if setting.retention_minutes is not None:
        settings |= {"offsets.retention.minutes": setting.retention_minutes, "offsets.retention.check.interval.ms": _OFTEN_MS}
    with (
        tempfile.TemporaryDirectory(prefix="exhume-asking-") as made,
        Broker(coordinator, Path(made), offsets_partitions=setting.offsets_partitions, settings=settings) as broker,
    ):
        broker.start()
        create_topics(broker, *setting.topics)
        await_loads(broker)
        broker.stop()
        give_topic_ids(broker.log_directory, setting.topic_ids)
        yield broker


def ask(broker: Broker, logs: Mapping[str, Path], setting: Setting) -> dict[str, Answer]:
    """Let a stopped broker load these logs together, and return its answers, by the name of the story."""
    broker.put(sorted(place for data in logs.values() for place in data.glob("__consumer_offsets-*") if place.is_dir()))
    for data in logs.values():
        for checkpoint in data.glob("log-start-offset-checkpoint"):
            shutil.copyfile(checkpoint, broker.log_directory / checkpoint.name)
    if not setting.is_clean:
        broker.forget_clean_stop()
    with exhume.open(broker.log_directory) as topic:
        questions = questions_of(topic)
    ends = _ends(broker.log_directory)
    try:
        broker.start()
        await_loads(broker)
    except KafkaFailed as failed:
        return {name: _refused(broker, failed) for name in logs}
    if setting.retention_minutes is not None:
        time.sleep(_RUNS_SECONDS)
    with Client(broker.port) as client:
        said = answers(client, broker, questions)
    said["asked_at_ms"] = int(time.time() * 1000)
    broker.stop()
    if not any(any(data.rglob("*.snapshot")) for data in logs.values()):
        # After a clean stop, the log layer reads open transactions from producer snapshots alone.
        said.pop("producers", None)
    appended = {name: [] if len(logs) == 1 else list(_appended(broker.log_directory, data, ends)) for name, data in logs.items()}
    return {name: _of_log(said, logs, name) | _of_expiry(setting, appended[name]) for name in logs}


def _refused(broker: Broker, failed: KafkaFailed) -> Answer:
    release = broker.kafka.release
    text = str(failed).replace(str(broker.log_directory.parent), "HOME")
    lines = [line for line in text.splitlines() if " ERROR " in line or " FATAL " in line]
    about = {"version": release, "coordinator": "new" if broker.is_java else "classic", "list_error": None}
    return {**about, "groups": {}, "broker_refused_to_start": lines or ["it ended"]}


def _of_log(said: Answer, logs: Mapping[str, Path], name: str) -> Answer:
    """Return the part of an answer that is about one of the logs."""
    numbers = {int(place.name.rpartition("-")[2]) for place in logs[name].glob("__consumer_offsets-*")}
    groups, lines = said["groups"], said["log_lines"]
    probe: Mapping[str, Any] = said["probe"]
    if len(logs) > 1:
        with exhume.open(logs[name]) as topic:
            own = questions_of(topic)
        groups = {group: answer for group, answer in groups.items() if group in own}
        probe = {group: answer for group, answer in probe.items() if group in own}
    failures: dict[str, str] = {}
    for line in lines:
        late, match = LATE_ERROR.search(line), FAILED_LOAD.search(line)
        if late and int(late[1]) in numbers:
            # The reason of a line before: the load itself was complete.
            failures[late[1]] = line
        elif match and int(match[1]) in numbers:
            failures.setdefault(match[1], line)
    common = ("version", "coordinator", "asked_at_ms", "list_error", "producers")
    answer: Answer = {key: said[key] for key in common if key in said}
    return answer | {"groups": groups, "probe": probe, "load_failures": failures}


def _of_expiry(setting: Setting, appended: list[str]) -> Answer:
    if setting.retention_minutes is None:
        return {}
    return {"retention_minutes": setting.retention_minutes} | ({"appended": appended} if appended else {})


def _ends(log_directory: Path) -> dict[Path, int]:
    """Return the last record offset of each offsets partition, -1 for an empty one."""
    ends: dict[Path, int] = {}
    with exhume.open(log_directory) as topic:
        for batch in topic.batches().read_all().to_pylist():
            place = log_directory / f"__consumer_offsets-{batch['offsets_partition']}"
            ends[place] = max(ends.get(place, -1), batch["last_offset"])
    return defaultdict(lambda: -1, ends)


def _appended(log_directory: Path, data: Path, ends: Mapping[Path, int]) -> Iterator[str]:
    """Yield the records that the broker added to the offsets partitions of this log, as answers about facts list them."""
    for place in (log_directory / found.name for found in sorted(data.glob("__consumer_offsets-*"))):
        with exhume.open(place) as topic:
            records = topic.records().read_all().to_pylist()
        for record in records:
            if record["record_offset"] > ends[place]:
                key = decode_record(record["key"], record["value"]).key
                named = f"{key['group']} {key['topic']}-{key['partition']}" if "topic" in key else _text_of(key)
                value = "null" if record["value"] is None else record["value"].hex()
                yield f"{record['record_offset']} b{record['byte_position']} type={record['record_type']} {named} = {value} [appended]"


def _text_of(key: Mapping[str, Any]) -> str:
    return " ".join(str(part) for part in key.values())


def rounds(found: Sequence[Case]) -> Iterator[tuple[Setting, str, dict[str, Path]]]:
    """Yield the setting and the kind (`after` or `expired`) of each round, and the logs that the broker loads in it."""
    together: defaultdict[tuple[int, bool, str, str], dict[str, Path]] = defaultdict(dict)
    for case in found:
        scenario = case.scenario
        if case.is_fact:
            # Those without a kind show a high watermark, which only a release that tests it can answer.
            if kind := scenario.get("kind"):
                alone = case.name if kind in _ALONE or case.name in _ALONE else ""
                # The facts of one kind are in different offsets partitions.
                together[scenario["partitions"], case.is_clean_stop, kind, alone][case.name] = case.data_directories[""]
            continue
        setting = Setting(scenario["partitions"], scenario.get("topics", {}), case.topic_ids)
        expired = [read_json(path) for path in sorted((case.directory / "oracle").glob("expired-*.json"))]
        for suffix, data in case.data_directories.items():
            logs = {f"{case.name}:{suffix}" if suffix else case.name: data}
            yield setting, "after", logs
            if expired:
                yield replace(setting, retention_minutes=expired[-1]["retention_minutes"]), "expired", logs
    for (offsets_partitions, is_clean, kind, alone), logs in together.items():
        yield Setting(offsets_partitions, _TOPICS_OF_FACTS, {}, is_clean, _WEEK_MINUTES if kind == "expiry" else None, alone), "after", logs


def write(target: Path, source: Case, label: str, answer: Answer) -> None:
    """Add an answer to the story in the target corpus."""
    story = target / source.name
    (story / "oracle").mkdir(parents=True, exist_ok=True)
    for path in (*source.data_directories.values(), source.directory / "scenario.json"):
        if not (story / path.name).exists():
            (story / path.name).symlink_to(path.resolve())
    path = story / "oracle" / ("answers.json" if source.is_fact else f"{label}.json")
    content = {**(read_json(path) if path.exists() else {}), label: answer} if source.is_fact else answer
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def compared(target: Path, coordinator: str) -> tuple[int, Comparison]:
    """Return the number of answers of this release in the target corpus, and the comparison of all of them."""
    total, count = Comparison(), 0
    for answer in replays.answers(target):
        if answer.label.partition("-")[2].startswith(coordinator) and answer.release == coordinator.partition("-")[0]:
            count += 1
            compare = replays.compare_after_expiry if answer.is_after_expiry else replays.compare_load
            total.add(compare(answer), answer.id)
    return count, total


def main() -> None:
    """Ask about all stories of a corpus, or about those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("story", nargs="*", help="the beginning of its name, such as facts/ or random/streams")
    arguments = parser.parse_args()
    found = {case.name: case for case in cases(arguments.corpus)}
    if arguments.story:
        found = {name: case for name, case in found.items() if name.startswith(tuple(arguments.story))}
    label = f"-{arguments.release}"
    by_setting: defaultdict[str, list[tuple[Setting, str, dict[str, Path]]]] = defaultdict(list)
    for each in rounds(list(found.values())):
        by_setting[repr(each[0])].append(each)
    for alike in by_setting.values():
        with _prepared(arguments.release, alike[0][0]) as broker:
            for setting, kind, logs in alike:
                start = time.monotonic()
                for name, answer in ask(broker, logs, setting).items():
                    story, _, suffix = name.partition(":")
                    write(arguments.target, found[story], f"{kind}{label}{'-' + suffix if suffix else ''}", answer)
                sys.stdout.write(f"{arguments.release} {kind} {', '.join(logs)[:100]}: {time.monotonic() - start:.0f} s\n")
                sys.stdout.flush()
    count, total = compared(arguments.target, arguments.release)
    sys.stdout.write("".join(f"{difference}\n" for difference in total.differences))
    sys.stdout.write(f"{count} answers, {sum(total.counts.values())} rows, {len(total.differences)} differences\n")


if __name__ == "__main__":
    main()
