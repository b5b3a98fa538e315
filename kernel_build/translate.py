"""Translate one kernel: Python with arrays becomes Cython with pointers."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernel_build.sources import Fields, Kernel, Kind, Kinds, unit_name

#: Calls that convert a number, and the kind of the result.
_CASTS = {
    np.uint64: ("U64", "u64"),
    np.int64: ("I64", "i64"),
    np.uint32: ("U32", "u32"),
    np.int32: ("I32", "i64"),
    np.uint16: ("U16", "i64"),
    np.int16: ("I16", "i64"),
    np.uint8: ("U8", "i64"),
    np.float64: ("F64", "f64"),
}
_ELEMENTS = {"Words": "u64", "UInt32Rows": "u32", "Floats": "f64"}
_ROWS = {"Rows": "Int64s", "Int32Rows": "Int32s", "UInt32Rows": "UInt32s", "ByteArrays": "Bytes"}
_C_TYPES = {"i64": "long long", "u64": "unsigned long long", "u32": "unsigned int", "bool": "bint", "f64": "double"}


class Untranslatable(Exception):
    """A kernel uses an expression or a value that machine code does not have."""


class Translator(ast.NodeTransformer):
    """Translates the body of one kernel. `constants` gets the arrays that it reads besides its parameters."""

    def __init__(self, kernel: Kernel, kinds: Kinds, constants: dict[str, Any]) -> None:
        self.kernel = kernel
        self.kinds = kinds
        self.constants = constants
        self.namespace = inspect.unwrap(kernel.function).__globals__
        #: The kind of each name: a parameter or a local variable.
        self.names: dict[str, Kind] = dict(kernel.parameters)

    def text(self) -> str:
        """Return the text of the function in Cython."""
        tree = ast.parse(ast.unparse(self.kernel.tree)).body[0]
        assert isinstance(tree, ast.FunctionDef)
        if isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):
            del tree.body[0]
        self._declare(tree)
        body = [ast.unparse(ast.fix_missing_locations(each)) for each in self._statements(tree.body)] or ["pass"]
        lines = [f"    cdef {c_type(kind)} {name}" for name, kind in self.names.items() if name not in self.kernel.parameters]
        for each in body:
            lines += ["    " + line for line in each.splitlines()]
        return f"{self.head()}:\n" + "\n".join(lines) + "\n"

    def head(self) -> str:
        """Return the first line of the function."""
        takes = ", ".join(f"{c_type(kind)} {name}" for name, kind in self.kernel.parameters.items())
        inline = "inline " if self.kernel.role == "inlined" else ""
        return f"cdef {inline}{result_type(self.kernel.result)} {self.kernel.name}({takes}) noexcept nogil"

    # The kinds of local variables

    def _declare(self, tree: ast.FunctionDef) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.For):
                self._declare_target(node.target, "i64")
        # The walk meets an inner assignment after an outer one that reads the variable, so it needs several rounds.
        assignments = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        for last in (False, False, True):
            for node in assignments:
                for target in node.targets:
                    try:
                        self._declare_assigned(target, node.value)
                    except Untranslatable:
                        if last:
                            raise

    def _declare_assigned(self, target: ast.expr, value: ast.expr) -> None:
        kind = self.kind(value)
        if isinstance(target, ast.Tuple):
            kinds: Sequence[Any] = kind if isinstance(kind, tuple) else [self.kind(each) for each in getattr(value, "elts", ())]
            if len(kinds) != len(target.elts):
                raise self._error(target, "a tuple of another length")
            for each, own in zip(target.elts, kinds, strict=True):
                self._declare_target(each, own)
        else:
            self._declare_target(target, kind)

    def _declare_target(self, target: ast.expr, kind: Kind) -> None:
        if not isinstance(target, ast.Name):
            return
        known = self.names.get(target.id)
        if known is None or (known == "i64" and kind in ("f64", "u64", "u32") and target.id not in self.kernel.parameters):
            self.names[target.id] = "i64" if kind == "bool" else kind

    def kind(self, node: ast.expr) -> Kind:
        """Return the kind of an expression."""
        match node:
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if isinstance(self.names.get(name), Fields):
                return self.names[name][self.names[name].names.index(attribute)]
            case ast.Name() | ast.Attribute():
                found = self._field(node)
                return found if found is not None else self._kind_of_constant(self.constant(node))
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return "i64"
            case ast.Subscript(value=ast.Name(id=name)) if name not in self.names:
                return "i64" if isinstance(self.constant(node.value), bytes) else self._element(self.constant(node.value))
            case ast.Subscript(value=array, slice=index):
                kind = self.kind(array)
                if kind in _ROWS and not isinstance(index, ast.Tuple):
                    return _ROWS[str(kind)]
                return _ELEMENTS.get(str(kind), "i64")
            case ast.Call():
                return self._kind_of_call(node)
            case ast.Tuple(elts=elts):
                return tuple(self.kind(each) for each in elts)
            case ast.IfExp(body=one, orelse=other):
                return self._joined(self.kind(one), self.kind(other))
            case ast.BinOp(left=left, op=ast.LShift() | ast.RShift()):
                return self.kind(left)
            case ast.BinOp(op=ast.Div()):
                return "f64"
            case ast.BinOp(left=left, right=right):
                return self._joined(self.kind(left), self.kind(right))
            case ast.UnaryOp(op=ast.Invert() | ast.USub(), operand=operand):
                return self.kind(operand)
        return "i64"

    def _element(self, array: Any) -> str:
        return _ELEMENTS.get(str(self._kind_of_constant(array)), "u32")

    def _joined(self, left: Any, right: Any) -> Any:
        if left == right:
            return left
        return next((each for each in ("f64", "u64", "u32") if each in (left, right)), "i64")

    def _kind_of_constant(self, value: Any) -> Kind:
        if isinstance(value, np.uint64):
            return "u64"
        if isinstance(value, np.uint32):
            return "u32"
        if isinstance(value, np.ndarray):
            return "UInt32Rows" if value.ndim == 2 else "UInt32s"
        if _is_named_tuple(type(value)):
            return self.kinds.of(type(value))
        return tuple(self._kind_of_constant(each) for each in value) if isinstance(value, tuple) else "i64"

    def _kind_of_call(self, node: ast.Call) -> Kind:
        called = self._called(node.func)
        if called in _CASTS:
            return _CASTS[called][1]
        if called in (min, max):
            kinds = [self.kind(each) for each in node.args]
            return str(kinds[0] if len({*kinds}) == 1 else "i64")
        if _is_named_tuple(called):
            return self.kinds.of(called)
        if hasattr(called, "kernel_role"):
            from typing import get_type_hints

            return self.kinds.of(get_type_hints(called, include_extras=True).get("return", type(None))) or "i64"
        return "i64"

    # Names

    def constant(self, node: ast.expr) -> Any:
        """Return the value of a name that is no variable: a constant of a module."""
        try:
            # The expression is of our own sources.
            return eval(compile(ast.Expression(node), self.kernel.name, "eval"), {**vars(builtins), **self.namespace})  # noqa: S307
        except NameError as error:
            raise self._error(node, str(error)) from error

    def _called(self, node: ast.expr) -> Any:
        return self.constant(node)

    def _field(self, node: ast.expr) -> str | None:
        """Return the kind of a field of a record of arrays; None for anything else."""
        if isinstance(node, ast.Attribute):
            owner = self.names.get(node.value.id) if isinstance(node.value, ast.Name) else self._field(node.value)
            if isinstance(owner, str) and owner in self.kinds.records:
                return self.kinds.fields(owner)[node.attr]
        return None

    # Statements

    def _statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [self.visit(each) for each in body]

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        value = node.value
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            values: ast.expr = ast.Tuple([self._as_value(each) for each in value.elts], ast.Load())
        else:
            values = self._as_value(value)
        return ast.Assign([self.visit(each) for each in node.targets], values, lineno=node.lineno)

    def _as_value(self, node: ast.expr) -> ast.expr:
        """Return an expression for an assignment: a record of arrays is assigned as a pointer."""
        kind = self.kind(node)
        found: ast.expr = self.visit(node)
        if isinstance(kind, str) and kind in self.kinds.records and isinstance(node, ast.Attribute):
            return ast.Name("&" + ast.unparse(found), ast.Load())
        return found

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            raise self._error(node, "a division in place")
        return ast.AugAssign(self.visit(node.target), node.op, self.visit(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        raise self._error(node, "an annotation of a variable")

    # Expressions

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.names:
            return node
        return self._literal(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        owner = self.names.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(owner, Fields):
            return ast.Name(f"{ast.unparse(node.value)}[{owner.names.index(node.attr)}]", ast.Load())
        if self._field(node) is not None:
            return ast.Attribute(self.visit(node.value), node.attr, node.ctx)
        if node.attr == "shape":
            raise self._error(node, "a shape without an index")
        return self._literal(node)

    def _literal(self, node: ast.expr) -> ast.expr:
        value = self.constant(node)
        if isinstance(value, np.ndarray):
            name = next((name for name, each in self.constants.items() if each is value), f"ARRAY_{len(self.constants)}")
            self.constants[name] = value
            return ast.Name(name, ast.Load())
        if isinstance(value, frozenset | tuple):
            return ast.Tuple(
                [ast.Name(number(each), ast.Load()) for each in (sorted(value) if isinstance(value, frozenset) else value)], ast.Load()
            )
        return ast.Name(number(value), ast.Load())

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Name(number(node.value), ast.Load()) if isinstance(node.value, int) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if not any(isinstance(each, ast.Name) and each.id in self.names for each in ast.walk(node)):
            value = self.constant(node)
            if isinstance(value, int | np.integer):
                return ast.Name(number(value), ast.Load())
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and self.kind(node) == "i64":
            # C rounds towards zero, Python downwards.
            name = "FLOOR_DIVIDE" if isinstance(node.op, ast.FloorDiv) else "FLOOR_MODULO"
            return ast.Call(ast.Name(name, ast.Load()), [self.visit(node.left), self.visit(node.right)], [])
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int):
            return ast.Name(number(-node.operand.value), ast.Load())
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            array = self.visit(node.value.value)
            assert isinstance(node.slice, ast.Constant)
            return ast.Attribute(array, "columns" if node.slice.value == 1 else "size", ast.Load())
        if isinstance(node.value, ast.Name) and node.value.id not in self.names:
            value = self.constant(node.value)
            if isinstance(value, bytes):
                return ast.Name(f"BYTE_OF({value!r}, {ast.unparse(self.visit(node.slice))})", ast.Load())
        kind, array = str(self.kind(node.value)), self.visit(node.value)
        text = ast.unparse(array)
        if isinstance(node.slice, ast.Tuple):
            if kind not in _ROWS or kind == "ByteArrays":
                raise self._error(node, f"two indexes of {kind}")
            row, column = (ast.unparse(self._index(each)) for each in node.slice.elts)
            return ast.Name(f"{text}.data[AT({row}, {text}.size) * {text}.stride + AT({column}, {text}.columns)]", ast.Load())
        index = ast.unparse(self._index(node.slice))
        if kind in _ROWS:
            return ast.Name(f"{kind}_row({text}, AT({index}, {text}.size))", ast.Load())
        if kind not in self.kinds.arrays and kind != "UInt32s":
            raise self._error(node, f"an index of {kind}")
        return ast.Name(f"{text}.data[AT({index}, {text}.size)]", ast.Load())

    def _index(self, node: ast.expr) -> ast.expr:
        # `np.uint64` marks an index that is not negative. C needs no such mark.
        if isinstance(node, ast.Call) and self._called(node.func) is np.uint64:
            node = node.args[0]
        found: ast.expr = self.visit(node)
        return found

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = self._called(node.func)
        if called in _CASTS:
            return ast.Call(ast.Name(_CASTS[called][0], ast.Load()), [self.visit(node.args[0])], [])
        if called is len:
            if isinstance(node.args[0], ast.Name) and node.args[0].id not in self.names:
                return ast.Name(str(len(self.constant(node.args[0]))), ast.Load())
            return ast.Attribute(self.visit(node.args[0]), "size", ast.Load())
        if called is np.isnan:
            return ast.Call(ast.Name("IS_NAN", ast.Load()), [self.visit(node.args[0])], [])
        if called is range:
            return ast.Call(ast.Name("range", ast.Load()), [self.visit(each) for each in node.args], [])
        if called in (min, max, abs):
            return ast.Call(ast.Name(called.__name__.upper(), ast.Load()), [self.visit(each) for each in node.args], [])
        if _is_named_tuple(called):
            return ast.Tuple([self.visit(each) for each in node.args], ast.Load())
        if not hasattr(called, "kernel_role"):
            raise self._error(node, f"a call of {called}")
        if called.__name__ == "fetch":
            place = ast.unparse(self.visit(node.args[0]))
            return ast.Name(f"PREFETCH({place}.data, {ast.unparse(self.visit(node.args[1]))})", ast.Load())
        return ast.Call(ast.Name(unit_name(called), ast.Load()), [self._as_value(each) for each in node.args], [])

    def visit_For(self, node: ast.For) -> ast.AST:
        if not (isinstance(node.iter, ast.Call) and self._called(node.iter.func) is range):
            raise self._error(node, "a loop over something other than a range")
        return ast.For(node.target, self.visit(node.iter), self._statements(node.body), [], lineno=node.lineno)

    def _error(self, node: ast.AST, problem: str) -> Untranslatable:
        return Untranslatable(f"{self.kernel.name}: {problem}: {ast.unparse(node)}")


def _is_named_tuple(called: Any) -> bool:
    return isinstance(called, type) and hasattr(called, "_fields")


def number(value: Any) -> str:
    """Return a literal of C for a constant."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, np.uint64):
        return f"{int(value):#x}ULL"
    if isinstance(value, np.uint32):
        return f"{int(value):#x}U"
    if isinstance(value, float) and np.isnan(value):
        return "NO_NUMBER"
    if not isinstance(value, int | np.integer):
        raise Untranslatable(f"a constant that is no number: {value!r}")
    value = int(value)
    return f"{value}LL" if value >= 0 else f"(-{-value}LL)"


def c_type(kind: Any) -> str:
    """Return the type in Cython of a value of this kind; a record of arrays travels as a pointer."""
    if isinstance(kind, tuple):
        return "(" + ", ".join(c_type(each) for each in kind) + ")"
    if kind in _C_TYPES:
        return _C_TYPES[kind]
    return kind if kind in _ARRAYS else f"{kind}*"


def result_type(kind: Any) -> str:
    """Return the type in Cython of the result of a kernel."""
    return "void" if kind is None else "long long" if kind == "bool" else c_type(kind)


_ARRAYS: Mapping[str, None] = dict.fromkeys(
    ["Bytes", "Floats", "Int16s", "Int32s", "Int64s", "Words", "UInt32s", "Rows", "Int32Rows", "UInt32Rows", "ByteArrays"]
)
