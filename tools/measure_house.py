"""Measure the house: list facts of `src/exhume` that stand in more than one module, and rows without a type.

    python tools/measure_house.py record-types   modules that know the number of a record type, besides the table and its layouts
    python tools/measure_house.py constants      private constants that several modules define with the same name and value
    python tools/measure_house.py untyped-rows   `dict[str, Any]` in modules that are not known to need it

`--src PATH` measures another checkout. Ends with 1 where it lists anything.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src" / "exhume"
#: The modules that may know the numbers: the table, and the layouts that it joins.
_OWNERS = ("codecs/record_types.py", "codecs/layouts/")

#: Names, attributes and columns that hold the number of a record type.
_TYPE_NAMES = frozenset({"record_type", "record_types", "key_version", "RECORD_TYPE"})
#: What takes the number of a record type, and in which place.
_TAKES_NUMBER = {"encode_key": 0, "encode_value": 0, "ReplayRecord": 1, "read_key": 1, "kind_of": 0, "values": 0}
#: Mappings from the number of a record type.
_BY_NUMBER = frozenset({"RECORD_TYPES", "KNOWN_TYPES", "values", "value_versions"})
_SETS_OF_TYPES = re.compile(r"(creating|refused)_types|missing_aborts|.*record_types?|_\d+")
#: Constants that are called after record types. Columns of a table are called so too: those have places from `range`, or begin with 0.
_CALLED_AFTER_TYPES = re.compile(
    r"_?(LEGACY_)?(OFFSET_COMMITS?|OFFSET_TYPES|COMMIT_KEYS|COMMIT_TYPES|GROUP(S|_TYPES|_RECORDS?|_TOMBSTONES?|_METADATA)?|CLASSIC(_GROUP)?"
    r"|MEMBERS?|CONSUMER_MEMBER|TARGET(_EPOCH)?|CURRENT|TOPICS|TOPOLOGY|SHARE_STATE|REGULAR_EXPRESSION|PARTITION_METADATA|TELL_NAMES"
    r"|WITH_TOPIC_NAMES|RECORD_TYPES?)"
)

#: The modules that may say `dict[str, Any]`, and what of. The rows of a table have a `TypedDict` beside its schema.
_FREE_FORM = {
    "analysis/committers.py": "rows that grow while records are read",
    "analysis/history.py": "rows that grow while records are read",
    "analysis/transactions.py": "rows that grow while records are read",
    "analysis/why.py": "rows that grow while records are read",
    "capture/cluster.py": "keywords of the client library",
    "capture/live_listing.py": "answers of brokers, which are kept with Kafka's own fields",
    "capture/messages.py": "fields of a structure, which its layout names",
    "cli/arrow_json.py": "the rows of any table",
    "codecs/file_systems.py": "keywords of the file systems of Arrow",
    "codecs/json_values.py": "objects of JSON",
    "codecs/kernels/__init__.py": "keywords of Numba",
    "codecs/layout.py": "fields of a structure, which its layout names",
    "replay/partition_state.py": "members of three kinds of groups, which each kind says more closely",
    "replay/spark/tasks.py": "what `pickle` asks for",
    "replay/fold/result.py": "fields of a named tuple",
}


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """One line of one module."""

    module: str
    line: int
    text: str


def modules(src: Path) -> Iterator[tuple[str, str]]:
    """Path and text of every module."""
    for path in sorted(src.rglob("*.py")):
        yield path.relative_to(src).as_posix(), path.read_text(encoding="utf-8")


def record_type_numbers(src: Path = SRC) -> list[Hit]:
    """Every line that knows the number of a record type, but those of the table and its layouts."""
    return [hit for module, text in modules(src) if not module.startswith(_OWNERS) for hit in numbers_in(module, text)]


def numbers_in(module: str, text: str) -> list[Hit]:
    """The lines of this module that know the number of a record type."""
    finder = _NumberFinder(ast.parse(text))
    lines = text.splitlines()
    return [Hit(module, line, lines[line - 1].strip()) for line in sorted(finder.lines)]


class _NumberFinder(ast.NodeVisitor):
    """Collects lines that compare the number of a record type with a literal, hand a literal over as one, or name a literal after one."""

    def __init__(self, tree: ast.Module) -> None:
        self.lines: set[int] = set()
        #: Module constants of numbers, by name.
        self._constants: dict[str, int] = {}
        self._types: list[set[str]] = [set()]
        for node in tree.body:
            for name, value in _assigned(node):
                if _is_numbers(value) and not _is_call_of_range(value):
                    self._constants[name] = node.lineno
                    if _CALLED_AFTER_TYPES.fullmatch(name) and ast.unparse(value) != "0":
                        self.lines.add(node.lineno)
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._types.append({name for each in ast.walk(node) for name in self._names_of_types(each)})
        self.generic_visit(node)
        self._types.pop()

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        numbers = [side for side in sides if self._is_numbers(side)]
        if numbers and any(self._is_type(side) for side in sides):
            self._found(node, numbers)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        if self._is_type(node.subject):
            values = [each for case in node.cases for each in ast.walk(case.pattern) if isinstance(each, ast.MatchValue)]
            self.lines.update(value.lineno for value in values if self._is_numbers(value.value))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        place = _TAKES_NUMBER.get(_called(node))
        if place is not None and len(node.args) > place and self._is_numbers(node.args[place]):
            self._found(node, [node.args[place]])
        if _called(node) in ("isin", "is_in") and any(map(self._is_type, node.args)):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            self._found(node, [value for value in values if self._is_numbers(value)])
        for keyword in node.keywords:
            if keyword.arg is not None and _SETS_OF_TYPES.fullmatch(keyword.arg) and self._has_numbers(keyword.value):
                self._found(keyword.value, [keyword.value])
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name) and node.value and _SETS_OF_TYPES.fullmatch(node.target.id) and self._has_numbers(node.value):
            self.lines.add(node.lineno)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        is_field = isinstance(node.value, ast.Attribute) or _last_name(node.value).isupper()
        if is_field and _last_name(node.value) in _BY_NUMBER and self._is_numbers(node.slice):
            self._found(node, [node.slice])
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        """A record type with its key."""
        if len(node.elts) > 1 and self._is_numbers(node.elts[0]) and isinstance(node.elts[1], ast.Dict | ast.Name | ast.BinOp):
            names = {"group", *(_last_name(each) for each in ast.walk(node.elts[1]) if isinstance(each, ast.Name))}
            has_key = names & {"own", "key"} or (
                isinstance(node.elts[1], ast.Dict) and '"group"' in ast.dump(node.elts[1]).replace("'", '"')
            )
            if has_key:
                self._found(node, [node.elts[0]])
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        if isinstance(node.target, ast.Name) and node.target.id in self._types[-1] | _TYPE_NAMES and self._is_numbers(node.iter):
            self.lines.add(node.iter.lineno)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
        if names & _TYPE_NAMES and self._has_numbers(node.iter):
            self.lines.add(node.iter.lineno)
        self.generic_visit(node)

    def _found(self, node: ast.expr, numbers: list[ast.expr]) -> None:
        """Note the line, and those of the constants that it takes; nothing where there are no numbers."""
        if not numbers:
            return
        self.lines.add(node.lineno)
        self.lines.update(self._constants[each.id] for each in numbers if isinstance(each, ast.Name))

    def _names_of_types(self, node: ast.AST) -> Iterator[str]:
        """The names that this statement or expression says to hold the number of a record type."""
        if isinstance(node, ast.Assign):
            for name, value in _assigned(node):
                if self._is_type(value) or (isinstance(value, ast.Attribute) and value.attr == "number"):
                    yield name
        elif isinstance(node, ast.Subscript) and _last_name(node.value) in _BY_NUMBER and isinstance(node.slice, ast.Name):
            yield node.slice.id
        elif isinstance(node, ast.Call) and _called(node) in ("encode_key", "encode_value") and isinstance(node.args[0], ast.Name):
            yield node.args[0].id

    def _is_type(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return self._is_type(node.slice) or (isinstance(node.slice, ast.Tuple) and any(map(self._is_type, node.slice.elts)))
        if isinstance(node, ast.Constant):
            return node.value == "record_type"
        if isinstance(node, ast.Attribute):
            # A control record has a number of its own, which is compared with names.
            return node.attr in _TYPE_NAMES or node.attr == "number"
        return isinstance(node, ast.Name) and node.id in self._types[-1] | _TYPE_NAMES

    def _is_numbers(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._constants
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return bool(node.elts) and all(self._is_numbers(each.value if isinstance(each, ast.Starred) else each) for each in node.elts)
        return _is_numbers(node)

    def _has_numbers(self, node: ast.expr) -> bool:
        return any(isinstance(each, ast.expr) and _is_numbers(each) for each in ast.walk(node))


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names and values of this assignment."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value
    for target in node.targets if isinstance(node, ast.Assign) else ():
        assert isinstance(node, ast.Assign)
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from ((name.id, value) for name, value in zip(target.elts, node.value.elts, strict=False) if isinstance(name, ast.Name))


def _is_numbers(node: ast.expr) -> bool:
    """Whether this is a number or a collection of numbers, written out; of bytes, such as keys begin with them."""
    if isinstance(node, ast.Constant):
        return (isinstance(node.value, int) and not isinstance(node.value, bool)) or (
            isinstance(node.value, bytes) and len(node.value) == 2
        )
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) and all(_is_numbers(each.value if isinstance(each, ast.Starred) else each) for each in node.elts)
    if isinstance(node, ast.Call) and _called(node) in ("range", "frozenset", "set", "tuple", "array"):
        return bool(node.args) and _is_numbers(node.args[0])
    return False


def _is_call_of_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _called(node) == "range" and len(node.args) == 1


def _called(node: ast.Call) -> str:
    return _last_name(node.func)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def constants_in_several_modules(src: Path = SRC) -> dict[tuple[str, str], list[Hit]]:
    """The constants that several modules define, by name without its underscore and by value as it is written."""
    found: dict[tuple[str, str], list[Hit]] = defaultdict(list)
    for module, text in modules(src):
        lines = text.splitlines()
        for node in ast.parse(text).body:
            for name, value in _assigned(node):
                if name.lstrip("_").isupper() and _is_plain(value):
                    found[name.lstrip("_"), _as_written(value)].append(Hit(module, node.lineno, lines[node.lineno - 1].strip()))
    return {key: hits for key, hits in sorted(found.items()) if len({hit.module for hit in hits}) > 1}


def _is_plain(node: ast.expr) -> bool:
    """Whether the value is made of literals alone: no name of a class, no function but those of numbers."""
    allowed = {"np", "uint64", "int64", "iinfo", "int", "max", "range", "frozenset"}
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }
    has_literal = any(isinstance(each, ast.Constant) and each.value is not None for each in ast.walk(node))
    return names <= allowed and (has_literal or bool(names))


def _as_written(node: ast.expr) -> str:
    """The value in one spelling: numbers worked out."""
    text = ast.unparse(node)
    if text == "int(np.iinfo(np.int64).max)":
        return str(2**63 - 1)
    arithmetic = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)
    if all(isinstance(each, arithmetic) for each in ast.walk(node)):
        return repr(eval(compile(ast.Expression(node), "constant", "eval")))  # noqa: S307
    return text


def untyped_rows(src: Path = SRC) -> list[Hit]:
    """Every line that says `dict[str, Any]`, but those of modules that have a reason to."""
    return [hit for module, text in modules(src) if module not in _FREE_FORM for hit in untyped_in(module, text)]


def untyped_in(module: str, text: str) -> list[Hit]:
    """The lines of this module that say `dict[str, Any]`."""
    found = {node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Subscript) and ast.unparse(node) == "dict[str, Any]"}
    lines = text.splitlines()
    return [Hit(module, line, lines[line - 1].strip()) for line in sorted(found)]


def _show_record_types(src: Path) -> int:
    hits = record_type_numbers(src)
    by_module: dict[str, list[Hit]] = defaultdict(list)
    for hit in hits:
        by_module[hit.module].append(hit)
    for module, found in by_module.items():
        sys.stdout.write(f"{module}\n")
        sys.stdout.writelines(f"  {hit.line}: {hit.text}\n" for hit in found)
    sys.stdout.write(f"{len(by_module)} modules know the number of a record type, in {len(hits)} lines; the table is one more\n")
    return len(hits)


def _show_constants(src: Path) -> int:
    found = constants_in_several_modules(src)
    for (name, value), hits in found.items():
        sys.stdout.write(f"{name} = {value}\n")
        sys.stdout.writelines(f"  {hit.module}:{hit.line}\n" for hit in hits)
    sys.stdout.write(f"{len(found)} constants stand in several modules\n")
    return len(found)


def _show_untyped_rows(src: Path) -> int:
    hits = untyped_rows(src)
    sys.stdout.writelines(f"{hit.module}:{hit.line}: {hit.text}\n" for hit in hits)
    texts = dict(modules(src))
    for module, reason in _FREE_FORM.items():
        count = len(untyped_in(module, texts.get(module, "")))
        sys.stdout.write(f"{count} in {module}: {reason}\n")
    sys.stdout.write(f"{len(hits)} lines say dict[str, Any] without a reason\n")
    return len(hits)


_SHOW = {"record-types": _show_record_types, "constants": _show_constants, "untyped-rows": _show_untyped_rows}


def main() -> int:
    """List what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=[*_SHOW])
    parser.add_argument("--src", type=Path, default=SRC, help="the package of another checkout")
    arguments = parser.parse_args()
    return 1 if _SHOW[arguments.what](arguments.src) else 0


if __name__ == "__main__":
    sys.exit(main())
