"""Write the reference pages from the code, and the outputs of commands in the other pages.

    python tools/generate_docs.py

writes docs/tables.md, docs/spark-tables.md, docs/record-types.md, docs/commands.md, docs/exhume.1, docs/drills.md,
docs/internals/sentences.md and the classes of docs/detectors.md. It fills each code block after a line `<!-- output: COMMAND -->` with the
output of `exhume COMMAND`, and with its notes on standard error if the command ends in `2>&1`. `demo_log/` in a command is the log that
comes with exhume, `drills/NAME/` the scenario of that name.
"""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from warm_exhume import WarmExhume

from exhume import findings
from exhume.analysis.assignment.differences import ASSIGNMENT_PARTITIONS
from exhume.analysis.assignment.verdicts import ASSIGNMENT_VERDICTS
from exhume.analysis.assignors import STREAMS_VARIANTS, VARIANTS
from exhume.analysis.completeness import COMPLETENESS
from exhume.analysis.detectors.catalogue import DETECTORS, WITHOUT_DETECTOR
from exhume.analysis.diff import DIFF
from exhume.analysis.evidence_files import EVIDENCE_FILES
from exhume.analysis.explanation.page import EXPLANATION
from exhume.analysis.forecast import FORECAST, TOMBSTONES
from exhume.analysis.growth import COMPACTION, GROWTH
from exhume.analysis.history import HISTORY
from exhume.analysis.inspection import INSPECTION_TABLES
from exhume.analysis.lag import LAG
from exhume.analysis.ownership import OWNERS
from exhume.analysis.rebalance_rows import REBALANCES
from exhume.analysis.reset_plan import RESET_PLAN, RESET_RECORDS
from exhume.analysis.summary import GROUP_SUMMARY
from exhume.analysis.transactions import STABLE_OFFSETS, TRANSACTIONS
from exhume.analysis.why import WHY
from exhume.codecs import schemas
from exhume.codecs.decoded_tables import DUMP
from exhume.codecs.layout import Array, Field, Scalar, Struct
from exhume.codecs.record_types import CONTROL_TYPES, MARKS, RECORD_TYPES
from exhume.fixtures import scenarios
from exhume.fixtures.catalogue import CATALOGUE
from exhume.fixtures.incidents import INCIDENTS, Incident
from exhume.replay.spark.kinds import for_spark, kinds
from exhume.replay.spark.source_options import FILESYSTEM_PREFIX, OPTIONS
from exhume.replay.state_tables import SCHEMAS

ROOT = Path(__file__).resolve().parent.parent
DEMO_LOG = ROOT / "src" / "exhume" / "cli" / "demo_log"
_DRILL = re.compile(r"\bdrills/([a-z0-9-]+)/")
_GENERATED = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
_SHOWN_OUTPUT = re.compile(r"(<!-- output: (.+?) -->\n```\n)(.*?)(```\n)", re.DOTALL)
COMMANDS = (
    "triage",
    "inspect",
    "dump",
    "state",
    "lag",
    "diff",
    "diagnose",
    "explain",
    "history",
    "rebalances",
    "owners",
    "timeline",
    "assignments",
    "expiry",
    "why",
    "reset-plan",
    "report",
    "growth",
    "transactions",
    "load-check",
    "releases",
    "export",
    "sql",
    "capture",
    "schema",
    "demo",
    "completion",
    "lab list",
    "lab write",
)


def pages() -> dict[Path, str]:
    """Return the text that each generated page should have."""
    with TemporaryDirectory() as directory, WarmExhume() as exhume:
        return _pages(exhume, Path(directory))


def _pages(exhume: WarmExhume, logs: Path) -> dict[Path, str]:
    (logs / "demo_log").symlink_to(DEMO_LOG)
    docs = ROOT / "docs"
    generated = {
        docs / "tables.md": _tables(),
        docs / "spark-tables.md": _spark_tables(),
        docs / "record-types.md": _record_types(),
        docs / "commands.md": _commands(exhume),
        docs / "exhume.1": _man(exhume),
        docs / "drills.md": _drills(),
        docs / "internals" / "sentences.md": _sentences(),
    }
    written = [page for page in (ROOT / "README.md", *sorted(docs.glob("*.md"))) if page not in generated]
    with_output = partial(_with_output, exhume, logs)
    return generated | {page: _SHOWN_OUTPUT.sub(with_output, _with_parts(page.read_text(encoding="utf-8"))) for page in written}


def _with_parts(text: str) -> str:
    return _GENERATED.sub(lambda block: f"{block[1]}{_PARTS[block[2]]()}{block[4]}", text)


def _with_output(exhume: WarmExhume, logs: Path, block: re.Match[str]) -> str:
    opening, line, _, closing = block.groups()
    command, with_notes, _ = line.partition(" 2>&1")
    for name in _DRILL.findall(command):
        if not (logs / "drills" / name).exists():
            scenarios.write(name, logs / "drills" / name)
    return f"{opening}$ exhume {command}\n{_run(exhume, shlex.split(command), logs, with_notes=bool(with_notes))}{closing}"


def _run(exhume: WarmExhume, arguments: Sequence[str], directory: Path | None = None, *, with_notes: bool = False) -> str:
    """Return the output of exhume for these arguments in this directory, as in a pipe, with its notes on standard error if wanted."""
    code, text, notes = exhume.run(arguments, directory, with_notes=with_notes)
    # Exit code 1 means that there are findings.
    if code not in (0, 1):
        raise RuntimeError(f"{' '.join(arguments)} ended with status {code}: {notes or text}")
    return "".join(f"{line.rstrip()}\n" for line in text.strip().splitlines())


def _tables() -> str:
    parts = [
        "# Tables\n",
        "Generated by `tools/generate_docs.py`. Timestamps are int64 milliseconds since the epoch; null means that a value is not there.\n",
        "\n## State: `topic.state(…)`, `exhume state`\n",
        *(_schema(name, schema) for name, schema in SCHEMAS.items()),
        _schema("groups summary (`exhume state` for people)", GROUP_SUMMARY),
        _schema("lag (`topic.lag(…)`, `exhume lag`, `exhume state --end-offsets`)", LAG),
        "\n## Moments: `topic.completeness(state)`, `topic.diff(…)`, `topic.history(…)`, `exhume diff`, `exhume history`\n",
        _schema("completeness", COMPLETENESS),
        _schema("diff", DIFF),
        _schema("history", HISTORY),
        "\n## Groups over time: `topic.rebalances(…)`, `topic.owners(…)`, `exhume rebalances`, `exhume owners`, `exhume timeline`\n",
        _schema("rebalances", REBALANCES),
        _schema("owners", OWNERS),
        "\n## Assignments: `topic.assignments(…)`, `exhume assignments`\n",
        _schema("verdicts (`exhume assignments`)", ASSIGNMENT_VERDICTS),
        _schema("partitions (`exhume assignments --table partitions`)", ASSIGNMENT_PARTITIONS),
        "\n## Expiry: `topic.expiry(…)`, `topic.why(…)`, `exhume expiry`, `exhume why`\n",
        _schema("forecast (`exhume expiry`)", FORECAST),
        _schema("tombstones (`exhume expiry --as-records`)", TOMBSTONES),
        _schema("why", WHY),
        "\n## Sentences: `topic.explain(…)`, `exhume explain`\n",
        _schema("explanation (`exhume explain`)", EXPLANATION),
        "\n## Remedies: `topic.reset_plan(…)`, `exhume reset-plan`\n",
        _schema("reset_plan", RESET_PLAN),
        _schema("reset_records (`exhume reset-plan --as-records`)", RESET_RECORDS),
        "\n## Room and transactions: `topic.growth(…)`, `topic.transactions(…)`, `exhume growth`, `exhume transactions`\n",
        _schema("growth", GROWTH),
        _schema("compaction (`exhume growth --by partition`)", COMPACTION),
        _schema("transactions", TRANSACTIONS),
        _schema("stable_offsets (`exhume transactions --table partitions`)", STABLE_OFFSETS),
        "\n## Evidence: `topic.segments()`, `.files()`, `.batches()`, `.records()`, `.dump()`, `exhume inspect`, `exhume dump`\n",
        *(_schema(name, schema) for name, schema in INSPECTION_TABLES.items() if name != "findings"),
        _schema("files (`topic.files()`)", EVIDENCE_FILES),
        _schema("batches", schemas.BATCHES),
        _schema("records", schemas.RECORDS),
        _schema("dump", DUMP),
        _schema("end_txn_markers", schemas.END_TXN_MARKERS),
        _schema("findings", findings.SCHEMA),
        "\n## Drills: `exhume lab list`\n",
        _schema("catalogue", CATALOGUE),
        "\n## Typed records: `topic.decoded(name)`\n",
        *(_schema(name, schema) for name, schema in schemas.decoded().items()),
    ]
    return "".join(parts)


def _schema(name: str, schema: pa.Schema) -> str:
    rows = "".join(f"| {field.name} | {field.type} |\n" for field in schema)
    return f"\n### {name}\n\n| column | type |\n| --- | --- |\n{rows}"


def _spark_tables() -> str:
    parts = [
        "# Tables of the Spark format\n",
        "Generated by `tools/generate_docs.py`. The columns of every kind of the format `offsets-topic` ([spark.md](spark.md));\n",
        "they mean what columns of the same names mean in [tables.md](tables.md).\n",
    ]
    for name, schema in kinds().items():
        rows = "".join(f"| {field.name} | {_spark_type(field.type)} |\n" for field in for_spark(schema))
        parts.append(f"\n## {name}\n\n| column | type |\n| --- | --- |\n{rows}")
    return "".join(parts)


def _spark_type(data_type: pa.DataType) -> str:
    if pa.types.is_list(data_type):
        return f"array<{_spark_type(data_type.value_type)}>"
    if pa.types.is_struct(data_type):
        return f"struct<{', '.join(f'{field.name}: {_spark_type(field.type)}' for field in data_type)}>"
    return _SPARK_TYPES[str(data_type)]


_SPARK_TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "bool": "boolean",
    "string": "string",
    "binary": "binary",
}


def _spark_kinds() -> str:
    typed = "`, `".join(name for name in schemas.decoded() if name != "offset_commit")
    means = {
        "records": "a record, key and value as on disk (default)",
        "dump": "a record of any type, decoded to the last field, key and value as JSON",
        "offset_commit": "a committed offset or its tombstone; also under the name `offset_commits`",
        typed: "a record of that type, decoded",
        "end_txn_markers": "the end of a transaction",
        "batches": "a batch",
        "segments": "a segment file, leftovers among them, and what it holds",
        "findings": "a problem in these files or in their records",
        "reads": "a segment or a part of one, and what it cost to read it",
    }
    rows = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in means.items())
    return f"| kind | one row is |\n| --- | --- |\n{rows}"


def _spark_options() -> str:
    rows = [("kind", "kind", "what a row is (default: `records`)")]
    rows += [(name, option.takes, option.means) for name, option in OPTIONS.items()]
    rows.append(
        (f"{FILESYSTEM_PREFIX}…", "text", "an option of the URI's file system, such as `fs.endpoint_override`: see [uris.md](uris.md)")
    )
    return "| option | takes | means |\n| --- | --- | --- |\n" + "".join(
        f"| `{name}` | {takes} | {means} |\n" for name, takes, means in rows
    )


def _detectors() -> str:
    parts = ["\n"]
    for section, detectors in groupby(DETECTORS, key=lambda detector: detector.section):
        parts.append(f"### {section}\n\n")
        for detector in detectors:
            parts.append(f"#### {detector.code} {detector.title}\n\n{detector.rule}\n\n")
            if detector.needs:
                parts.append(f"Undecidable without: {', '.join(f'`{option}`' for option in detector.needs)}.\n\n")
            if detector.better_with:
                parts.append(f"Better with: {', '.join(f'`{option}`' for option in detector.better_with)}.\n\n")
            if detector.traps:
                parts.append("Keep in mind:\n\n" + "".join(f"* {trap}.\n" for trap in detector.traps) + "\n")
            parts += [_practice(each) for each in INCIDENTS.values() if detector.finds(each.code)]
    parts += [f"#### {code}\n\n{answer}.\n\n{_practice(INCIDENTS[code])}" for code, answer in WITHOUT_DETECTOR.items()]
    return "".join(parts)


def _sentences() -> str:
    """Return the page of all sentence templates."""
    page: str = runpy.run_path(str(ROOT / "tools" / "list_sentences.py"))["page"]()
    return page


def _practice(incident: Incident) -> str:
    """Return the commands that write this incident."""
    kinds = (("--hit", incident.hits[1:]), ("--near-miss", incident.near_misses), ("--undecidable", incident.undecidable))
    first = 2
    lines = [f"* `exhume lab write {incident.code} DIR`: {incident.hits[0].title}\n"]
    for option, those in kinds:
        lines += [f"* `{option} {number}`: {each.title}\n" for number, each in enumerate(those, first)]
        first = 1
    return f"To practise: {incident.title}\n\n{''.join(lines)}\n"


def _variants() -> str:
    who = {"client": "leader of a classic group", "consumer": "coordinator, consumer groups", "share": "coordinator, share groups"}
    cells = (
        (f"`{each.assignor}`", who[each.side], each.releases, ", ".join(each.needs) or "nothing more", ", ".join(each.asked))
        for each in VARIANTS
    )
    of_streams = (
        ("`sticky`", "coordinator, streams groups", each.releases, ", ".join(each.needs), ", ".join(each.asked))
        for each in STREAMS_VARIANTS
    )
    rows = [f"| {' | '.join(row)} |\n" for row in (*cells, *of_streams)]
    head = (
        "| assignor | run by | releases | decided by, besides subscriptions and counts | classes asked |\n| --- | --- | --- | --- | --- |\n"
    )
    return f"\n{head}{''.join(rows)}\n"


_PARTS = {"detectors": _detectors, "spark kinds": _spark_kinds, "spark options": _spark_options, "variants": _variants}


def _record_types() -> str:
    lines = [
        "# Record types\n",
        "\nGenerated by `tools/generate_docs.py` from the table in `src/exhume/codecs/record_types.py`. A key begins with its record\n",
        "type (int16), a value with its version (int16); a null value is a tombstone. Names are ours, with Kafka's where they differ.\n",
    ]
    for row in RECORD_TYPES.values():
        whose = f"family {row.family}, role {row.role}"
        lines.append(f"\n## {row.number} {row.name} ({row.kafka_name}; {whose})\n\nKey: {', '.join(_fields(row.key))}\n")
        for layout in row.layouts:
            versions = layout.message.versions
            flexible = layout.message.flexible_since
            span = f"versions {versions.start} to {versions.stop - 1}" if len(versions) > 1 else f"version {versions.start}"
            lines.append(f"\nValue, written by {layout.releases}, {span}{'' if flexible is None else f', flexible from {flexible}'}:\n\n")
            lines += [f"* {text}\n" for text in _fields(layout.message.struct)]
    lines.append("\n## Control records\n\n| type | name |\n| --- | --- |\n")
    lines += [f"| {row.number} | {row.name} |\n" for row in CONTROL_TYPES.values()]
    lines.append("\n## Marks\n\nA record with a mark keeps its raw key and value.\n\n| mark | meaning |\n| --- | --- |\n")
    lines += [f"| {name} | {meaning} |\n" for name, meaning in MARKS.items()]
    return "".join(lines)


def _fields(struct: Struct) -> Iterator[str]:
    for field in struct.fields:
        notes = [
            text
            for text, holds in (
                (f"Kafka: {field.kafka_name}", field.kafka_name != field.name),
                (f"from version {field.since}", field.since > 0),
                (f"to version {field.until}", field.until is not None),
                ("nullable", field.nullable),
                (f"tag {field.tag}", field.tag is not None),
            )
            if holds
        ]
        remarks = f" ({', '.join(notes)})" if notes else ""
        yield f"`{field.name}` {_type(field)}{remarks}"


def _type(field: Field) -> str:
    return _type_name(field.type)


def _type_name(field_type: Scalar | Array | Struct) -> str:
    if isinstance(field_type, Scalar):
        return field_type.name
    if isinstance(field_type, Array):
        return f"[{_type_name(field_type.element)}]"
    return f"{{{', '.join(f'{field.name} {_type(field)}' for field in field_type.fields)}}}"


def _commands(exhume: WarmExhume) -> str:
    parts = ["# Commands\n\nGenerated by `tools/generate_docs.py` from `exhume COMMAND --help`.\n"]
    parts += [f"\n## exhume {command}\n\n```\n{_run(exhume, [*command.split(), '--help'])}```\n" for command in COMMANDS]
    return "".join(parts)


def _man(exhume: WarmExhume) -> str:
    """The manual page in roff: the help of the program and of each command, as they are."""
    parts = ['.TH EXHUME 1 "" "exhume" "User Commands"\n', ".SH NAME\nexhume \\- forensics and replay for Kafka's group coordinator\n"]
    for title, arguments in [("SYNOPSIS", []), *((f"exhume {command}", command.split()) for command in COMMANDS)]:
        parts.append(f".SH {title}\n.nf\n{_roff(_run(exhume, [*arguments, '--help']))}.fi\n")
    return "".join(parts)


def _roff(text: str) -> str:
    """This text so that roff shows it as it is: a dot or a quote at the start of a line would be a request."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "".join(f"{chr(92)}&{line}\n" if line.startswith((".", "'")) else f"{line}\n" for line in lines)


def _drills() -> str:
    parts = [
        "# Drills\n",
        "\nGenerated by `tools/generate_docs.py` from the scenarios in `src/exhume/fixtures/scenarios`.\n",
        "\n`exhume lab write NAME DIR` writes one of these situations as brokers would have left it, in every message format that can\n",
        "tell it, with any codec. Every clock begins on 2024-01-08 at 08:00 UTC. Read the story of the questions when you have\n",
        "answers of your own; `DIR` is where you wrote it.\n",
        "\nA broker loads these logs as well: copy the partition directories into the data directory of one that is stopped and has 50\n",
        "offsets partitions, and give it a long `offsets.retention.minutes`, or it expires what is years old.\n",
        "\n`exhume lab write IC-04 DIR` writes an incident instead. [detectors.md](detectors.md) lists them class by class, with near\n",
        "misses (`--near-miss 1`) and logs that leave it open (`--undecidable 1`). Files that `exhume diagnose` needs are written too.\n",
    ]
    for each in scenarios.ALL.values():
        questions = "".join(f"* {question.text}\n  `exhume {question.command}`\n" for question in each.questions)
        loads = ", ".join(f"format {number} from {release}" for number, release in each.first_releases.items())
        parts.append(f"\n## {each.name}\n\n{each.title}\n\n{questions}\n{each.story}\n\nLoaded by: {loads}.\n")
    return "".join(parts)


def main() -> int:
    """Write the pages, or check them."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
