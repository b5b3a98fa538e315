"""Proves that a change leaves the answer of every command as it was: records all answers before and after, and compares them.

    python tools/compare_answers.py record BEFORE               # PYTHONPATH: the src of the checkout without the change
    python tools/compare_answers.py record AFTER                # PYTHONPATH: the src of the one with it
    python tools/compare_answers.py compare BEFORE AFTER        # ends with 1 where a value differs that is not free text

An answer is a file, `<log>/<command>.json`: arguments, exit code, tables, and the lines of standard error. Both recordings read the same
logs (--data) with the same script.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from record_answers import Answer, Row, logs_named, record, unpacked

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
#: The log of `exhume demo`, of the checkout that the data belong to.
DEMO_LOG = Path("src", "exhume", "cli", "demo_log")
#: Columns that hold sentences. `message` is a line of standard error.
FREE_TEXT = (
    *("sentence", "not_excluded", "remedy", "reason", "what", "message"),
    *("what_happens", "story", "hits", "near_misses", "undecidable"),
)
#: Columns with names that sentences repeat.
_NAME_COLUMNS = ("path", "member_id", "group", "topic")
#: Rows of larger tables are paired by their numbers where both have as many.
_MOST_ROWS_TO_PAIR = 1000
_NUMBER = re.compile(r"-?\d+(?:[.,:]\d+)*")


@dataclass(frozen=True)
class Difference:
    """A value that is not as it was. `row` is None where the whole table, or the answer itself, differs.

    `template` has the sentences before and after without numbers and names; None where the value is no sentence, or the words are the same.
    """

    log: str
    command: str
    table: str
    row: int | None
    column: str
    before: Any
    after: Any
    template: tuple[str, str] | None = None

    def __str__(self) -> str:
        place = " | ".join([self.log, self.command, self.table or "-", "-" if self.row is None else str(self.row), self.column])
        return f"{place}: {json.dumps(self.before)} -> {json.dumps(self.after)}"


def answers_in(root: Path, logs: str, commands: Sequence[str]) -> set[Path]:
    """The files of the answers about these logs to these commands (none: to all)."""
    places = {place.relative_to(root) for place in root.rglob("*.json")}
    return {
        place
        for place in places
        if fnmatch.fnmatch(place.parent.as_posix(), logs) and (not commands or not set(place.stem.split()).isdisjoint(commands))
    }


def differences(
    before: Path, after: Path, files: Iterable[Path], ignored: Sequence[str], new_names: Mapping[str, str]
) -> Iterator[Difference]:
    """Every value that differs between two directories of answers; in free text with its template.

    `new_names`: tables, columns and values of `before` that have another name in `after`.
    """
    for file in sorted(files):
        log, command = file.parent.as_posix(), file.stem
        texts = [(root / file).read_bytes() if (root / file).exists() else None for root in (before, after)]
        if texts[0] is None or texts[1] is None:
            yield Difference(log, command, "", None, "answer", _presence(texts[0]), _presence(texts[1]))
        elif texts[0] != texts[1]:
            yield from _answer_differences(log, command, _renamed(json.loads(texts[0]), new_names), json.loads(texts[1]), ignored)


def _answer_differences(log: str, command: str, before: Answer, after: Answer, ignored: Sequence[str]) -> Iterator[Difference]:
    for column in ("arguments", "exit_code"):
        if before[column] != after[column]:
            yield Difference(log, command, "", None, column, before[column], after[column])
    if command == "diagnose list":
        # Each line is a code with its title.
        ignored = (*ignored, "line")
    tables = [answer["tables"] | {"messages": [_message_row(line) for line in answer["messages"]]} for answer in (before, after)]
    for table in dict.fromkeys([*tables[0], *tables[1]]):
        old, new = (each.get(table) for each in tables)
        if old is None or new is None:
            yield Difference(log, command, table, None, "table", _presence(old), _presence(new))
            continue
        if old and new and list(old[0]) != list(new[0]):
            yield Difference(log, command, table, None, "columns", list(old[0]), list(new[0]))
        for number, row, new_row in _paired(old, new, ignored):
            for column, value, new_value, is_text in _row_differences(row, new_row, ignored):
                template = (_folded(value, row or {}), _folded(new_value, new_row or {})) if is_text else None
                if template and template[0] == template[1]:
                    # The words are the same: what differs is a number or a name.
                    template = None
                yield Difference(log, command, table, number, column, value, new_value, template)


def _renamed(value: Any, new_names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {new_names.get(name, name): _renamed(each, new_names) for name, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, new_names) for each in value]
    return new_names.get(value, value) if isinstance(value, str) else value


def _message_row(line: str) -> Row:
    """A line of standard error; severity and code of a finding are no free text."""
    finding = re.match(r"(\w+: \w+): ", line)
    return {"finding": finding[1] if finding else None, "message": line}


def _presence(found: object) -> str:
    return "missing" if found is None else "there"


def _row_differences(before: Row | None, after: Row | None, ignored: Sequence[str]) -> Iterator[tuple[str, Any, Any, bool]]:
    """Column, value before, value after, and whether it is free text; a row that only one side has differs as a whole."""
    if before is None or after is None:
        values = before or after or {}
        yield "row", before, after, all(value is None for column, value in values.items() if column not in ignored)
        return
    shared = [column for column in before if column in after]
    for column, old, new in _value_differences({name: before[name] for name in shared}, {name: after[name] for name in shared}, ""):
        yield column, old, new, not set(re.split(r"[.\[]", column)).isdisjoint(ignored)


def _paired(before: list[Row], after: list[Row], ignored: Sequence[str]) -> Iterator[tuple[int, Row | None, Row | None]]:
    """Row number, row before, row after; None for a row that the other side does not have."""
    if len(before) == len(after) > _MOST_ROWS_TO_PAIR:
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield number, *pair
        return
    keys = [[json.dumps({name: row[name] for name in row if name not in ignored}) for row in rows] for rows in (before, after)]
    for _, begin, end, new_begin, new_end in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        for step in range(max(end - begin, new_end - new_begin)):
            old = before[begin + step] if begin + step < end else None
            new = after[new_begin + step] if new_begin + step < new_end else None
            yield (new_begin if old is None else begin) + step, old, new


def _value_differences(before: Any, after: Any, column: str) -> Iterator[tuple[str, Any, Any]]:
    """The innermost values that differ, by where they stand: `evidence[0].what`."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for name in before:
            yield from _value_differences(before[name], after[name], f"{column}.{name}" if column else name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from _value_differences(*pair, f"{column}[{number}]")
    elif before != after or type(before) is not type(after):
        yield column, before, after


def _folded(value: Any, row: Mapping[str, Any]) -> str:
    """A sentence without its numbers, and without the names that stand in quotes or in its row."""
    text = value if isinstance(value, str) else json.dumps(value)
    for column in _NAME_COLUMNS:
        name = row.get(column)
        if isinstance(name, str) and len(name) > 1:
            text = text.replace(name, f"<{column}>")
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "<name>", text) if isinstance(value, str) else text
    return _NUMBER.sub("N", " ".join(text.split()))


def record_all(wanted: argparse.Namespace) -> int:
    """Record what these options ask for; progress goes to standard error."""
    target: Path = wanted.target
    if target.exists() and any(target.iterdir()):
        sys.stderr.write(f"{target} is not empty\n")
        return 2
    target.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    seconds: dict[str, float] = defaultdict(float)
    with unpacked(wanted.data.resolve()) as stories:
        logs = logs_named(wanted.logs, stories, wanted.data.resolve().parent.parent / DEMO_LOG)
        for number, (name, spent) in enumerate(record(logs, target, wanted.commands, wanted.most, wanted.workers), 1):
            for command, more in spent.items():
                seconds[command] += more
            sys.stderr.write(f"{number}/{len(logs)} {name}: {sum(spent.values()):.1f} s\n")
    sys.stderr.write(", ".join(f"{name} {spent:.0f} s" for name, spent in sorted(seconds.items(), key=lambda each: -each[1])) + "\n")
    sys.stdout.write(f"{sum(1 for _ in target.rglob('*.json'))} answers about {len(logs)} logs in {time.perf_counter() - start:.0f} s\n")
    return 0


def compare_all(wanted: argparse.Namespace) -> int:
    """Print what differs, values first, then the templates of sentences; 1 where a value differs."""
    roots = (wanted.before, wanted.after)
    files = [answers_in(root, wanted.logs, wanted.commands) for root in roots]
    values: list[Difference] = []
    templates: Counter[tuple[str, str]] = Counter()
    other_numbers: Counter[tuple[str, str]] = Counter()
    new_names = dict(name.split("=", 1) for name in wanted.renamed)
    for difference in differences(*roots, files[0] | files[1], wanted.ignore_columns.split(","), new_names):
        if difference.template is None:
            values.append(difference)
        else:
            templates[difference.template] += 1
            other_numbers[difference.template] += _numbers(difference.before) != _numbers(difference.after)
    for difference in values[: wanted.most]:
        sys.stdout.write(f"{difference}\n")
    if len(values) > wanted.most:
        sys.stdout.write(f"{len(values) - wanted.most} more (--most N shows them)\n")
    places = Counter((each.command.split()[0], each.table, re.sub(r"\d+", "N", each.column)) for each in values)
    for (command, table, column), count in places.most_common():
        sys.stdout.write(f"{count:>8}  {command} | {table or '-'} | {column}\n")
    for template, count in templates.most_common():
        numbers = f"  ({other_numbers[template]} with other numbers)" if other_numbers[template] else ""
        sys.stdout.write(f"{count:>8}  - {template[0]}\n          + {template[1]}{numbers}\n")
    sys.stdout.write(f"{len(files[0])} answers before, {len(files[1])} after: {len(values)} values differ, ")
    sys.stdout.write(f"{templates.total()} sentences by {len(templates)} templates\n")
    return 1 if values or not files[0] else 0


def _numbers(value: Any) -> list[str]:
    return sorted(_NUMBER.findall(value if isinstance(value, str) else json.dumps(value)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write the answers of every command about every log")
    recording.add_argument("target", type=Path, metavar="DIR", help="a directory that is empty, or missing")
    recording.add_argument("--data", type=Path, default=DATA, help="the directory of the logs (default: tests/data)")
    recording.add_argument("--most", type=int, default=3, metavar="N", help="groups and topics that are asked for by name (default: 3)")
    recording.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    comparing = commands.add_parser("compare", help="list what differs between two recordings")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    for each in (recording, comparing):
        each.add_argument("--logs", default="*", metavar="PATTERN", help="only logs of this name, such as '2.8*', 'facts/*', 'lab/*'")
        each.add_argument("--commands", nargs="+", default=(), metavar="COMMAND", help="only these commands, such as state")
    comparing.add_argument("--ignore-columns", default=",".join(FREE_TEXT), metavar="NAME,…", help="free text (default: %(default)s)")
    comparing.add_argument("--renamed", nargs="+", default=(), metavar="OLD=NEW", help="tables, columns and values that were renamed")
    comparing.add_argument("--most", type=int, default=200, metavar="N", help="differences that are listed (default: 200)")
    wanted = parser.parse_args(arguments)
    return record_all(wanted) if wanted.command == "record" else compare_all(wanted)


if __name__ == "__main__":
    sys.exit(main())
