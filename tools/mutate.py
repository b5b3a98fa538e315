"""Change the code in small ways, one at a time, and count the changes that some test notices.

    python tools/mutate.py --module src/exhume/replay/scala.py --tests tests/replay/test_load_rules.py --count 40 --seed 1

Each mutant is a copy of the source tree with one changed operator, comparison, number, or condition. A mutant that no test notices is
printed with its place: look at it. The copies are made below a temporary directory; the checkout stays as it is.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_CALCULATED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr}


def _change_compared(node: ast.Compare) -> None:
    node.ops[0] = _COMPARED[type(node.ops[0])]()


def _change_constant(node: ast.Constant) -> None:
    node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1  # type: ignore[operator]


def _change_calculated(node: ast.BinOp) -> None:
    node.op = _CALCULATED[type(node.op)]()


def _change_condition(node: ast.If | ast.IfExp) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _change_joined(node: ast.BoolOp) -> None:
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def changes(tree: ast.AST) -> Iterator[tuple[ast.AST, Callable[..., None]]]:
    """Yield each node that can change, with its change. Type hints and texts do not change."""
    hints = {id(inner) for node in ast.walk(tree) for hint in _hints(node) for inner in ast.walk(hint)}
    for node in ast.walk(tree):
        if id(node) in hints:
            continue
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in _COMPARED:
                yield node, _change_compared
            case ast.Constant(value=bool() | int()):
                yield node, _change_constant
            case ast.BinOp(op=operation) if type(operation) in _CALCULATED:
                yield node, _change_calculated
            case ast.If() | ast.IfExp():
                yield node, _change_condition
            case ast.BoolOp():
                yield node, _change_joined


def _hints(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("annotation", "returns"):
        hint = getattr(node, name, None)
        if hint is not None:
            yield hint


def _survives(tree: Path, tests: list[str]) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "EXHUME_EXAMPLES": "0.1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "not (spark or broker or slow or corpus)",
        *tests,
    ]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False, timeout=600)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    """Run the tests against each mutant; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", action="append", required=True, help="a source file to change; repeatable")
    parser.add_argument("--tests", action="append", required=True, help="a test file to run; repeatable")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    places = [(module, number) for module in asked.module for number, _ in enumerate(changes(ast.parse((ROOT / module).read_text())))]
    chosen = random.Random(asked.seed).sample(places, min(asked.count, len(places)))  # noqa: S311
    killed = 0
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory)
        for name in ("src", "tests", "tools", "kernel_build", "docs"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
            shutil.copy(ROOT / name, tree / name)
        if not _survives(tree, asked.tests):
            sys.stderr.write("the tests fail without a change\n")
            return 1
        for module, number in chosen:
            source = (ROOT / module).read_text()
            parsed = ast.parse(source)
            node, change = list(changes(parsed))[number]
            before = ast.unparse(node).splitlines()[0]
            change(node)
            (tree / module).write_text(ast.unparse(ast.fix_missing_locations(parsed)))
            if _survives(tree, asked.tests):
                sys.stdout.write(f"survives: {module}:{getattr(node, 'lineno', 0)}: {before} -> {ast.unparse(node).splitlines()[0]}\n")
            else:
                killed += 1
            sys.stdout.flush()
            (tree / module).write_text(source)
    sys.stdout.write(f"{killed} of {len(chosen)} mutants killed, of {len(places)} possible ones\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
