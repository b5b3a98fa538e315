"""No code reads the sentences that exhume writes: kinds, codes and other values decide, never words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parent.parent / "src" / "exhume"
#: The rooms that get findings, problems and answers as values.
ROOMS = ("analysis", "cli", "spark", "topic", "replay")
#: The modules of these rooms that take texts apart, and why: none of the texts is a sentence of exhume.
PATTERNS = {
    "analysis/assignors/variants.py": "release numbers",
    "analysis/detectors/name_patterns.py": "names without the parts that change",
    "analysis/detectors/strangers.py": "the first words of client ids",
    "analysis/detectors/inputs.py": "lines of the files that a user gives: topic, partition, offset",
    "analysis/explanation/sentences.py": "names that need no quotes",
    "analysis/reset_plan.py": "topic names that Kafka allows, and cells of a CSV file that need no quotes",
    "cli/completion.py": "names that need no quotes",
    "cli/destination.py": "names of partition directories",
    "cli/findings_list.py": "words at the start of sentences, for their capital",
    "cli/shortening.py": "words of long texts, to wrap them",
    "cli/panels.py": "defaults in the help of options",
    "cli/sql.py": "words that a user types in the shell",
    "cli/options.py": "PARTITION:OFFSET on the command line",
    "replay/releases.py": "release numbers",
    "replay/spark/session.py": "settings of Spark",
    "topic/groups.py": "the name of a topic, in the values of group records",
    "topic/sql/database.py": "amounts of memory, and names of settings",
    "topic/sql/pushdown.py": "conditions of a statement",
    "topic/sql/questions.py": "statements that a user types",
}
#: Attributes and columns that hold sentences. `reason` holds a code in tables of owners and of holes, so it may be compared.
SENTENCES = {"sentence", "message", "remedy", "not_excluded"}
TEXT_METHODS = {"startswith", "endswith", "find", "index", "split", "rsplit", "partition", "rpartition", "removeprefix", "removesuffix"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for room in ROOMS:
        for path in sorted((SOURCES / room).rglob("*.py")):
            yield str(path.relative_to(SOURCES)), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    plain = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    return plain | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


def sentence_name(node: ast.expr) -> str | None:
    """The name of the attribute, column or variable that this expression reads."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Name(id="str"), args=[argument]):
            return sentence_name(argument)
    return None


def readings(tree: ast.Module) -> Iterator[int]:
    """The lines that test or take apart a sentence."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                is_search = isinstance(operator, ast.In | ast.NotIn)
                searched = {"reason", *SENTENCES} if is_search and isinstance(left, ast.Constant | ast.JoinedStr) else set()
                is_about_nothing = isinstance(right, ast.Constant) and right.value is None
                if sentence_name(right) in searched or (sentence_name(left) in SENTENCES and not is_about_nothing):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in TEXT_METHODS:
                if sentence_name(value) in {"reason", *SENTENCES}:
                    yield node.lineno


def test_patterns_are_for_names_and_numbers() -> None:
    users = {path for path, tree in modules() if {"re", "ast"} & imported(tree)}

    assert users == {*PATTERNS}


def test_no_module_reads_a_sentence() -> None:
    assert [f"{path}:{line}" for path, tree in modules() for line in readings(tree)] == []


@pytest.mark.parametrize(
    "code",
    [
        '"no group" in finding.sentence',
        '"no group" not in row["reason"]',
        'finding.sentence == "it is gone"',
        'problem.message.startswith("there is")',
        'str(row["reason"]).split(":")',
        'f"group {name}" in reason',
    ],
)
def test_a_reading_is_seen(code: str) -> None:
    assert [*readings(ast.parse(code))] == [1]


@pytest.mark.parametrize(
    "code", ['"reason" in row', 'row["reason"] == reason', "finding.remedy is None", '"rewind" in change.reasons', 'text.startswith("[")']
)
def test_what_reads_no_sentence_passes(code: str) -> None:
    assert [*readings(ast.parse(code))] == []
