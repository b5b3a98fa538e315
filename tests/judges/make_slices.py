"""Makes the stories of `tests/data` out of a whole corpus: `python -m judges.make_slices CORPUS TARGET`, from the folder `tests`.
`tools/bundle_logs.py pack TARGET` packs them.

Real brokers' directories, hand-made logs and hostile random logs come over whole (of the hostile ones those that hold every awkward
thing once). Of the other random logs come `KEPT_PARTITIONS` offsets partitions of fifty, with the answers cut down to the groups
that live in them. The partitions are chosen for variety: one after the other, each time the one that adds most that was not yet there
(a failed load, an error, a group type in a state, an unstable offset), file by file.

Log directories are copied byte for byte. All texts are plain; the answers to a hand-made log, one small file for each of up to eighteen
releases, are in one file together.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from exhume.codecs.offsets_topic import offsets_partition_of

from .broker_answers import read_json

KEPT_PARTITIONS = 10
#: Random logs of these families and levels: their awkward things are in other directories too, each once.
LEFT_OUT = ("hostile-classic-2.3-104", "hostile-java-4.0-106")


def copy_story(source: Path, target: Path) -> None:
    """The whole of a story."""
    for data in sorted(source.glob("data*")):
        copy_tree(data, target / data.name)
    for dump in sorted(source.glob("oracle/dump-*/*.txt.gz")):
        write(target / "oracle" / dump.parent.name / dump.stem, gzip.decompress(dump.read_bytes()))
    paths = sorted(source.glob("oracle/*.json"))
    if source.parent.name == "facts":
        write(target / "oracle" / "answers.json", to_json({path.stem: read_json(path) for path in paths}))
    else:
        for path in paths:
            write(target / "oracle" / path.name, path.read_bytes())
    write(target / "scenario.json", (source / "scenario.json").read_bytes())


def copy_tree(source: Path, target: Path) -> None:
    """Every file, byte for byte; permissions not: those of the corpus are read-only."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def write(path: Path, text: bytes) -> None:
    """Write a file, and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def slice_story(source: Path, target: Path) -> None:
    """Some offsets partitions of random logs, and what was said of their groups."""
    scenario = read_json(source / "scenario.json")
    answers = {path.name: read_json(path) for path in sorted(source.glob("oracle/*.json"))}
    kept = choose_partitions(scenario, answers)
    for partition in kept:
        name = f"__consumer_offsets-{partition}"
        copy_tree(source / "data" / name, target / "data" / name)
    for path in sorted((source / "data").iterdir()):
        if path.is_file():
            shutil.copyfile(path, target / "data" / path.name)
    for name, answer in answers.items():
        write(target / "oracle" / name, to_json(slice_answer(answer, kept, scenario["partitions"])))
    sliced = scenario | {
        "groups": {group: about for group, about in scenario["groups"].items() if about["partition"] in kept},
        "records": by_partition(scenario["records"], kept),
        "kept_partitions": kept,
    }
    write(target / "scenario.json", to_json(sliced))


def slice_answer(answer: Mapping[str, Any], kept: Iterable[int], partition_count: int) -> dict[str, Any]:
    """The answer about the groups of these partitions; everything else in it stays as it was."""

    def of_kept(groups: Mapping[str, Any]) -> dict[str, Any]:
        return {group: value for group, value in groups.items() if offsets_partition_of(group, partition_count) in kept}

    sliced = dict(answer) | {"groups": of_kept(answer["groups"]), "probe": of_kept(answer["probe"])}
    return sliced | {"load_failures": by_partition(answer["load_failures"], kept)}


def by_partition(values: Mapping[str, Any], kept: Iterable[int]) -> dict[str, Any]:
    """Of a mapping from offsets partition, what belongs to these."""
    return {partition: value for partition, value in values.items() if int(partition) in kept}


def choose_partitions(scenario: Mapping[str, Any], answers: Mapping[str, Any]) -> list[int]:
    """Partitions in the order of their number, chosen one by one for what each adds."""
    features = {partition: partition_features(partition, scenario["partitions"], answers) for partition in range(scenario["partitions"])}
    chosen: list[int] = []
    covered: set[object] = set()
    while len(chosen) < KEPT_PARTITIONS:
        best = max((partition for partition in features if partition not in chosen), key=lambda p: (len(features[p] - covered), -p))
        chosen.append(best)
        covered |= features[best]
    return sorted(chosen)


def partition_features(partition: int, partition_count: int, answers: Mapping[str, Any]) -> set[object]:
    """What the answers show of this partition, each file by itself."""
    features: set[object] = set()
    for name, answer in answers.items():
        failure = answer["load_failures"].get(str(partition))
        features.add((name, "load", failure and "Unexpected unload" in failure, failure is None))
        for group, parts in answer["groups"].items():
            if offsets_partition_of(group, partition_count) == partition:
                features |= {(name, feature) for feature in group_features(parts)}
    return features


def group_features(parts: Mapping[str, Any]) -> Iterable[object]:
    """What the answers show of a group, as far as it makes a case of its own."""
    listed = parts["listed"] or {}
    yield "listed", listed.get("group_type"), listed.get("group_state"), listed.get("protocol_type")
    for request in ("describe", "consumer_describe", "share_describe", "streams_describe"):
        for description in parts.get(request, {}).get("groups", ()):
            yield request, description["error_code"], description["group_state"], min(len(description["members"]), 2)
    offsets = parts.get("offsets", {}).get("offsets", ())
    yield "offsets", bool(offsets), parts.get("offsets_stable") == "same"
    for offset in offsets:
        yield "offset", offset.get("committed_leader_epoch", -1) >= 0, bool(offset["metadata"])


def to_json(value: object) -> bytes:
    """JSON as the corpus writes it."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def main() -> None:
    """Write every story of the corpus to the target, which must not have any yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    for oracle in sorted(path for pattern in ("*/oracle", "facts/*/oracle", "random/*/oracle") for path in arguments.corpus.glob(pattern)):
        source = oracle.parent
        if source.name in LEFT_OUT:
            continue
        target = arguments.target / source.relative_to(arguments.corpus)
        target.mkdir(parents=True)
        is_sliced = source.parent.name == "random" and not source.name.startswith("hostile")
        (slice_story if is_sliced else copy_story)(source, target)


if __name__ == "__main__":
    main()
