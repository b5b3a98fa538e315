"""List the templates of all sentences that users see.

    python tools/list_sentences.py                          all templates, as docs/internals/sentences.md has them
    python tools/list_sentences.py src/exhume/analysis      only those of these files or directories

A template is a string that reaches a parameter named in `KINDS` (the sentence of a finding, a reason, a remedy, the message of an error),
or the terminal. Names in braces stand for values. Brackets enclose alternatives. `+` marks a part of another template.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "exhume"
#: The parameters and fields that take a sentence, and the heading of each in the list.
KINDS = {
    "sentence": "sentence",
    "reason": "reason",
    "not_excluded": "not excluded",
    "remedy": "remedy",
    "what_to_do": "remedy",
    "purpose": "remedy",
    "message": "message",
    "text": "sentence",
}
#: Calls of other packages, by the position of the sentence.
_FOREIGN = {"typer.echo": {0: "note"}, "typer.BadParameter": {0: "message"}}
#: `text` and `message` are common names: they take a sentence only in these classes, and in errors.
_AMBIGUOUS = {"text": ("Sentence",), "message": ()}
#: Tables of templates that `str.format` fills, and what each holds.
_TABLES = {"TEMPLATES": "reason", "LEFTOVERS": "reason +"}
_LONGEST_VALUE = 40

#: The parameters that take a sentence, by position and by name, of each function and class.
_Known = Mapping[str, Mapping[int | str, str]]


@dataclass
class _Module:
    """A parsed file: its constants, and its functions by name."""

    path: Path
    tree: ast.Module
    constants: dict[str, ast.expr] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    nodes: list[ast.AST] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.constants[target.id] = node.value
        self.nodes.extend(ast.walk(self.tree))
        for each in self.nodes:
            if isinstance(each, ast.FunctionDef):
                self.functions.setdefault(each.name, each)

    def key(self, name: str) -> str:
        """Return the key of a function: private names belong to their module."""
        return f"{self.path}:{name}" if name.startswith("_") else name


def modules(places: Iterable[Path] = (SOURCES,)) -> list[_Module]:
    """Parse the Python files at these places, in order."""
    files = sorted({file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))})
    return [*map(_module, files)]


@cache
def _module(file: Path) -> _Module:
    return _Module(file, ast.parse(file.read_text(encoding="utf-8")))


def signatures(parsed: Iterable[_Module]) -> dict[str, dict[int | str, str]]:
    """Return the parameters that take a sentence, by position and name, of each function, method and class of exhume."""
    found: defaultdict[str, dict[int | str, str]] = defaultdict(dict)
    bases: dict[str, list[str]] = {}
    for module in parsed:
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef):
                _add_parameters(found, module.key(node.name), node)
            elif isinstance(node, ast.ClassDef):
                name = module.key(node.name)
                bases[name] = [module.key(base.id) for base in node.bases if isinstance(base, ast.Name)]
                own = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
                if own is not None:
                    _add_parameters(found, name, own)
                else:
                    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
                    for position, each in enumerate(fields):
                        _add(found, name, position, ast.unparse(each.target), each.annotation)
    for name in [*bases]:
        for base in _ancestors(name, bases):
            for place, kind in found.get(base, {}).items():
                found[name].setdefault(place, kind)
    return dict(found)


def _add_parameters(found: defaultdict[str, dict[int | str, str]], name: str, function: ast.FunctionDef) -> None:
    arguments = [each for each in function.args.args if each.arg not in ("self", "cls")]
    for position, each in enumerate(arguments):
        _add(found, name, position, each.arg, each.annotation)
    for each in function.args.kwonlyargs:
        _add(found, name, None, each.arg, each.annotation)


def _add(found: defaultdict[str, dict[int | str, str]], owner: str, position: int | None, name: str, annotation: ast.expr | None) -> None:
    kind = KINDS.get(name)
    if kind is None or annotation is None or "str" not in ast.unparse(annotation):
        return
    if name in _AMBIGUOUS and not (owner in _AMBIGUOUS[name] or (name == "message" and (owner == "__init__" or owner.endswith("Error")))):
        return
    found[owner][name] = kind
    if position is not None:
        found[owner][position] = kind


def _ancestors(name: str, bases: Mapping[str, list[str]]) -> Iterator[str]:
    for base in bases.get(name, []):
        yield base
        yield from _ancestors(base, bases)


def templates(module: _Module, known: _Known) -> list[tuple[int, str, str]]:
    """Return line, kind and text of each template of a module, in order, each once."""
    found: dict[tuple[str, str], int] = {}
    for scope, call in _calls(module.tree):
        takes = known.get(module.key(_name_of(call.func))) or _FOREIGN.get(ast.unparse(call.func), {})
        given: list[tuple[int | str, ast.expr]] = [*enumerate(call.args), *((each.arg, each.value) for each in call.keywords if each.arg)]
        for place, value in given:
            if place in takes:
                for line, text, is_part in _Reader(module, scope, known).texts(value):
                    whole = text if is_part else f"{text}{_command(call)}"
                    found.setdefault((f"{takes[place]} +" if is_part else takes[place], whole), line)
    for name, kind in _TABLES.items():
        table = module.constants.get(name)
        for value in table.values if isinstance(table, ast.Dict) else ():
            for line, text, is_part in _Reader(module, None, known).texts(value):
                found.setdefault((f"{kind} +" if is_part else kind, text.replace("!r}", "}")), line)
    return sorted((line, kind, text) for (kind, text), line in found.items())


def _command(call: ast.Call) -> str:
    """Return the command after the purpose in a call of `next_step`; nothing for other calls."""
    if _name_of(call.func) != "next_step":
        return ""
    _, _, subcommand, *arguments = ("".join(_template(each)) for each in call.args)
    return f": exhume {' '.join([subcommand, 'PATH', *arguments])}"


def _calls(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
    """Yield each call with the function that contains it, in the order of the text."""
    waiting: list[tuple[ast.AST, ast.FunctionDef | None]] = [(tree, None)]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.Call):
            yield scope, node
        inner = node if isinstance(node, ast.FunctionDef) else scope
        waiting += [(child, inner) for child in reversed([*ast.iter_child_nodes(node)])]


def _name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


class _Reader:
    """Reads the texts that an expression may become."""

    def __init__(self, module: _Module, scope: ast.FunctionDef | None, known: _Known) -> None:
        self._module, self._scope, self._known = module, scope, known
        self._seen: set[str] = set()

    def texts(self, value: ast.expr, *, is_part: bool = False) -> Iterator[tuple[int, str, bool]]:
        """Yield line and template of each text, and True for a part of another template."""
        match value:
            case ast.IfExp(body=body, orelse=other):
                yield from self.texts(body, is_part=is_part)
                yield from self.texts(other, is_part=is_part)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                for part in parts:
                    yield from self.texts(part, is_part=is_part)
            case ast.Starred(value=inner) | ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner) | ast.NamedExpr(value=inner):
                yield from self.texts(inner, is_part=is_part)
            case ast.BoolOp(values=parts):
                for part in parts:
                    yield from self.texts(part, is_part=is_part)
            case ast.Name(id=name):
                for each, later in self._assigned(name):
                    yield from self.texts(each, is_part=is_part or later)
            case ast.Subscript(value=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get")):
                yield from self._table(name)
            case ast.Call():
                yield from self._of_call(value)
            case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp(op=ast.Add()):
                text = "".join(_template(value)).strip()
                if " " in text.replace("{", "").replace("}", "") or not is_part:
                    yield value.lineno, text, is_part
                for inner in _values(value):
                    yield from self.texts(inner, is_part=True)

    def _of_call(self, call: ast.Call) -> Iterator[tuple[int, str, bool]]:
        if self._module.key(_name_of(call.func)) in self._known or ast.unparse(call.func) == "re.compile":
            # A known call is listed on its own. A pattern is no sentence.
            return
        for argument in call.args if _name_of(call.func) != "counted" else ():
            yield from self.texts(argument, is_part=True)
        function = self._module.functions.get(_name_of(call.func))
        if function is None or function.returns is None or "str" not in ast.unparse(function.returns) or function.name in self._seen:
            return
        self._seen.add(function.name)
        inside = _Reader(self._module, function, self._known)
        inside._seen = self._seen
        for node in ast.walk(function):
            if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                yield from inside.texts(node.value, is_part=True)

    def _table(self, name: str) -> Iterator[tuple[int, str, bool]]:
        table = self._module.constants.get(name)
        if isinstance(table, ast.Dict) and name not in self._seen:
            self._seen.add(name)
            for each in table.values:
                yield from self.texts(each, is_part=True)

    def _assigned(self, name: str) -> Iterator[tuple[ast.expr, bool]]:
        """Yield the expressions that this variable may have, and True for those that are added to it later."""
        if name in self._seen:
            return
        self._seen.add(name)
        for node in ast.walk(self._scope) if self._scope is not None else ():
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    yield value, False
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                    yield value, False
                case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
                    yield value, True
                case ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr="append" | "insert"), args=[*_, value]) if target == name:
                    yield value, False
                case ast.For(target=ast.Tuple(elts=targets), iter=ast.Tuple(elts=rows)):
                    for place, each in enumerate(targets):
                        if isinstance(each, ast.Name) and each.id == name:
                            yield from ((row.elts[place], False) for row in rows if isinstance(row, ast.Tuple))
        if name in self._module.constants:
            yield self._module.constants[name], False


def _template(value: ast.expr) -> Iterator[str]:
    """Yield the pieces of a template."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from _template(part)
        case ast.FormattedValue(value=inner):
            yield from _template(inner)
        case ast.IfExp(body=body, orelse=other):
            either = ["".join(_template(each)) for each in (body, other)]
            yield f"[{'|'.join(filter(None, either))}]"
        case ast.BinOp(left=left, op=ast.Add(), right=right) if not isinstance(right, ast.Constant) or isinstance(right.value, str):
            yield from _template(left)
            yield from _template(right)
        case _:
            yield f"{{{_label(value)}}}"


def _values(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the values inside a template that may be texts themselves."""
    match value:
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from _values(part)
        case ast.FormattedValue(value=inner):
            if isinstance(inner, ast.Name | ast.Call | ast.Subscript):
                yield inner
        case ast.BinOp(left=left, right=right):
            for side in (left, right):
                if isinstance(side, ast.Name | ast.Call | ast.Subscript):
                    yield side
                else:
                    yield from _values(side)


def _label(value: ast.expr) -> str:
    """Return a short name for a value."""
    match value:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Constant(value=constant):
            return str(constant)
        case ast.Call(func=ast.Name(id="counted"), args=[_, ast.Constant(value=one)]):
            return f"N {one}s"
        case ast.Call(func=ast.Name(id="counted"), args=[_, _, ast.Constant(value=many)]):
            return f"N {many}"
        case ast.Call(func=ast.Name(id="span")):
            return "duration"
        case ast.Call(func=ast.Name(id="len"), args=[inner]):
            return f"number of {_label(inner)}"
        case (
            ast.Call(func=ast.Attribute(attr="join"), args=[inner, *_])
            | ast.Call(func=ast.Name(id="some" | "repr" | "sorted"), args=[inner, *_])
        ):
            return _label(inner)
        case ast.Call(func=ast.Name(id="str" | "printable" | "min" | "max"), args=[inner, *_]):
            return _label(inner)
        case ast.Call(func=function, args=[inner, *_]) if _name_of(function):
            return f"{_name_of(function)} {_label(inner)}"
        case ast.Call(func=ast.Attribute(value=inner)):
            return _label(inner)
        case ast.Call(func=function):
            return _name_of(function)
        case ast.Subscript(value=inner, slice=ast.Constant(value=str(key))):
            return key if key.isidentifier() else _label(inner)
        case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner):
            return _label(inner)
        case ast.JoinedStr():
            return "".join(_template(value)).replace("{", "").replace("}", "")
        case ast.BoolOp(values=parts):
            return " or ".join(map(_label, parts))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return f"{_label(left)} - {_label(right)}"
        case ast.IfExp(body=body, orelse=other):
            return " or ".join(filter(None, (_label(body).strip(), _label(other).strip())))
        case _:
            text = ast.unparse(value)
            return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def page(places: Iterable[Path] = (SOURCES,)) -> str:
    """Return the page of all templates at these places."""
    known = signatures(modules())
    lines = [
        "# Sentences\n\n",
        "Generated by `tools/generate_docs.py` from `tools/list_sentences.py`: the templates of all sentences that users see, by module.\n",
        "Names in braces stand for values, brackets enclose alternatives, and `+` marks a part of a sentence or a value in it.\n",
    ]
    for module in modules(places):
        found = templates(module, known)
        if found:
            lines.append(f"\n## {module.path.relative_to(SOURCES.parent)}\n\n")
            lines += [f"* {kind}: {_one_line(text)}\n" for _, kind, text in found]
    return "".join(lines)


def _one_line(text: str) -> str:
    escaped = text.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")
    return " ".join(escaped.split())


if __name__ == "__main__":
    sys.stdout.write(page([Path(each).resolve() for each in sys.argv[1:]] or [SOURCES]))
