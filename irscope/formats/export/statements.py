"""From the statements of a ``forward`` to nodes.

    add: "f32[3]" = torch.ops.aten.add.Tensor(x, 1);  x = None      a call; the tail frees names, and is left out
    getitem: "f32[3]" = cond[0]                                    Python's operators are calls too
    true_graph_0 = self.true_graph_0                               a subgraph or tensor of the module
    input_1 = input                                                another name of the same value
"""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from irscope.formats.export.expressions import Expressions, dotted, parse, shown
from irscope.formats.export.making import UNTYPED, Argument, GraphMaker, Invocation
from irscope.formats.export.targets import GET_ITEM, METHOD, SUBMODULE, canonical, is_higher_order
from irscope.formats.export.types import BadType, parse_annotation
from irscope.formats.syntax import SyntaxFault
from irscope.graph import UNKNOWN, Node, Type
from irscope.ops import hlo

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "is_", ast.IsNot: "is_not",
    ast.In: "contains", ast.USub: "neg", ast.Not: "not_", ast.Invert: "invert", ast.UAdd: "pos",
}
"""The functions of Python's module ``operator`` that FX writes as operators."""


TAIL = re.compile(r";  \w+(?: = \w+)* = None$")
"""The assignments that free values after their last use. They are cut off before Python's parser runs, which halves its time."""


@dataclass(slots=True)
class Unresolved:
    """An attribute of the module, which is a subgraph if a class of its name follows, and the calls that take it."""

    node: Node
    name: str
    at: int
    calls: list[Node] = field(default_factory=list)


class Statements:
    """Reads the statements of one graph into its maker."""

    def __init__(self, maker: GraphMaker) -> None:
        self.maker = maker
        self.expressions = Expressions(maker)
        self.attributes: dict[Node, Unresolved] = {}
        self.returned = False
        self._stated: dict[str, Type] = {}

    # ------------------------------------------------------------------ the header

    def header(self, text: str, at: int) -> None:
        """``def forward(self, x: "f32[8]"):``"""
        self.expressions.at = at
        function = parse(f"{text} pass", at)[0]
        if not isinstance(function, ast.FunctionDef):
            raise SyntaxFault(at, "'def forward(self, ...):' is expected")
        given = function.args
        for argument in [*given.posonlyargs, *given.args, *([given.vararg] if given.vararg else []), *given.kwonlyargs]:
            if argument.arg == "self" and not self.maker.graph.params:
                continue
            self._input(argument.arg, self._annotated(argument.annotation, UNTYPED), at + argument.col_offset)

    def _input(self, name: str, type: Type, at: int) -> None:
        if name in self.maker.names:
            raise SyntaxFault(at, f"{name} is an input twice", length=len(name))
        self.maker.placeholder(name, type, at)

    def _annotated(self, annotation: ast.expr | None, otherwise: Type) -> Type:
        if annotation is None:
            return otherwise
        text = annotation.value if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str) else ""
        if not text:
            return otherwise  # a type of Python's own, such as torch.Tensor
        try:
            return parse_annotation(text)
        except BadType as error:
            raise self.expressions.fault(annotation, str(error), length=len(text) + 2) from None

    # ------------------------------------------------------------------ statements

    def read(self, text: str, at: int) -> None:
        """Read one line. Raises SyntaxFault for a line that is no statement of a graph."""
        self.expressions.at = at
        if text.endswith(" = None"):
            text = TAIL.sub("", text)
        for statement in parse(text, at):
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        if self.returned:
            raise self.expressions.fault(statement, "a statement follows the return of the graph")
        if isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets):
            if not _is_none(statement.value):  # a = b = None frees names
                for target in statement.targets:
                    assert isinstance(target, ast.Name)
                    self._assign(target, UNKNOWN, statement.value)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            type = self._annotated(statement.annotation, UNKNOWN)
            if statement.value is None:
                self._stated[statement.target.id] = type
            else:
                self._assign(statement.target, type, statement.value)
        elif isinstance(statement, ast.Return):
            self._return(statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Tuple | ast.List):
            self._unpack(statement.targets[0], statement.value)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            self._in_place(statement)
        elif not _does_nothing(statement):
            raise self.expressions.fault(statement, f"this is no statement of a graph: NAME = VALUE is expected, but here is "
                                                    f"{type_name(statement)}: {shown(statement)[:60]}")

    def _assign(self, target: ast.Name, type: Type, value: ast.expr) -> None:
        name, at, read = target.id, self.expressions.at + target.col_offset, self.expressions
        if isinstance(value, ast.Call):
            self._call(name, type, value, at)
        elif isinstance(value, ast.Name):
            found = read.name(value)
            if not isinstance(found, Node):
                raise read.fault(value, f"{value.id} is no value")
            self.maker.names[name] = found
        elif isinstance(value, ast.Subscript):
            self._add(name, Invocation(GET_ITEM, [read.argument(value.value), self._index(value.slice)]), type, at)
        elif isinstance(value, ast.BinOp):
            self._operator(name, type, value.op, [value.left, value.right], at)
        elif isinstance(value, ast.UnaryOp) and not isinstance(value.operand, ast.Constant):
            self._operator(name, type, value.op, [value.operand], at)
        elif isinstance(value, ast.Compare) and len(value.ops) == 1:
            self._operator(name, type, value.ops[0], [value.left, value.comparators[0]], at)
        elif isinstance(value, ast.Attribute):
            self._attribute(name, type, value, at)
        else:
            raise read.fault(value, f"{name} is given {type_name(value)}, and not the result of a call")

    def _operator(self, name: str, type: Type, sign: ast.AST, parts: list[ast.expr], at: int) -> None:
        function = OPERATORS.get(sign.__class__)
        if function is None:
            raise self.expressions.fault(parts[0], f"FX writes no operator {type_name(sign)}")
        # FX writes no nested expressions: each would be a call of its own.
        arguments = [self.expressions.argument(part) for part in parts]
        if function == "contains":
            arguments.reverse()
        self._add(name, Invocation(f"_operator.{function}", arguments), type, at)

    def _in_place(self, statement: ast.AugAssign) -> None:
        """``a += b;  iadd = a``: the call is the one that the next statement names."""
        assert isinstance(statement.target, ast.Name)
        function = "i" + OPERATORS[statement.op.__class__].rstrip("_")
        name = statement.target.id
        arguments = [self.expressions.name(statement.target), self.expressions.argument(statement.value)]
        before = self.maker.names.get(name)
        self._add(f"{name}.{function}.{len(self.maker.graph.nodes)}", Invocation(f"_operator.{function}", arguments),
                  before.type if before is not None else UNKNOWN, self.expressions.at)
        self.maker.names[name] = self.maker.graph.nodes[-1]

    def _index(self, node: ast.expr) -> Argument:
        if isinstance(node, ast.Slice):
            return {"slice": [None if part is None else self.expressions.argument(part) for part in (node.lower, node.upper, node.step)]}
        if isinstance(node, ast.Tuple):
            return [self._index(part) for part in node.elts]
        return self.expressions.argument(node)

    def _attribute(self, name: str, type: Type, value: ast.Attribute, at: int) -> None:
        path = dotted(value)
        root, _, rest = path.partition(".")
        if root == "self" and "self" not in self.maker.names:
            node = self.maker.attribute(name, rest, type, None, at)
            self.attributes[node] = Unresolved(node, rest, at)
        elif root in self.maker.names:
            self._add(name, Invocation("builtins.getattr", [self.expressions.argument(value.value), value.attr]), type, at)
        elif path:
            raise SyntaxFault(self.expressions.at + (value.end_col_offset or 0), f"syntax: '(' is expected after {path[:80]}",
                              "the text may be cut off: print the whole graph")
        else:
            raise self.expressions.fault(value, f"{name} is given an attribute of what is no value")

    def _call(self, name: str, type: Type, call: ast.Call, at: int) -> None:
        read = self.expressions
        path = dotted(call.func)
        root, _, rest = path.partition(".")
        if isinstance(call.func, ast.Attribute) and (not path or (root in self.maker.names and "." not in rest)):
            arguments = [read.argument(call.func.value)]
            target = METHOD + call.func.attr
        elif not path:
            raise read.fault(call, "the called function is no name")
        elif root == "self" and "self" not in self.maker.names:
            arguments, target = [], SUBMODULE + rest
        else:
            arguments, target = [], canonical(path)
        for part in call.args:
            if isinstance(part, ast.Starred):
                raise read.fault(part, "a call of a graph lists its arguments, without *")
            arguments.append(read.argument(part))
        keywords: dict[str, Argument] = {}
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg in keywords:
                raise read.fault(keyword, "a call of a graph names each keyword once, without **")
            keywords[keyword.arg] = read.argument(keyword.value)
        self._add(name, Invocation(target, arguments, keywords), type, at)

    def _add(self, name: str, invoked: Invocation, type: Type, at: int) -> None:
        node = self.maker.call(name, invoked, type, at)
        if self.attributes and (is_higher_order(invoked.target) or invoked.target.startswith(SUBMODULE)):
            for argument in [*invoked.arguments, *invoked.keywords.values()]:
                if isinstance(argument, Node) and argument in self.attributes:
                    self.attributes[argument].calls.append(node)

    # ------------------------------------------------------------------ inputs and results in other forms

    def _unpack(self, targets: ast.Tuple | ast.List, value: ast.expr) -> None:
        """``a, b, = fx_pytree.tree_flatten_spec(...)``: the inputs of the graph, out of those of Python's function."""
        function = dotted(value.func) if isinstance(value, ast.Call) else value.id if isinstance(value, ast.Name) else ""
        graph = self.maker.graph
        flattens = function.endswith("tree_flatten_spec") or function in self.maker.names
        if not flattens or any(node.op is not hlo.parameter for node in graph.nodes):
            raise self.expressions.fault(value, "several names are given the parts of one value: FX writes this of inputs only")
        before = {param.name: param.type for param in graph.params}
        graph.nodes.clear()
        graph.params.clear()
        self.maker.names.clear()
        for target in targets.elts:
            if not isinstance(target, ast.Name):
                raise self.expressions.fault(target, "the name of an input is expected")
            type = self._stated.get(target.id, before.get(target.id, UNTYPED))
            self._input(target.id, type, self.expressions.at + target.col_offset)

    def _return(self, statement: ast.Return) -> None:
        value = statement.value
        if isinstance(value, ast.Call) and dotted(value.func).endswith("tree_unflatten") and value.args:
            value = value.args[0]
        result = None if value is None else self.expressions.argument(value)
        if isinstance(result, dict):
            result = list(result.values())
        self.maker.result(result, self.expressions.at)
        self.returned = True


def _does_nothing(statement: ast.stmt) -> bool:
    """``pass``, and what frees the inputs of a graph that takes them as one list."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(statement, ast.Pass) or (isinstance(call, ast.Call) and dotted(call.func) == "args_list.clear")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def type_name(node: ast.AST) -> str:
    """A kind of statement or expression in a message."""
    return {"Import": "an import", "ImportFrom": "an import", "Expr": "an expression", "FunctionDef": "a function", "ClassDef": "a class",
            "Constant": "a constant", "Assign": "an assignment"}.get(type(node).__name__, f"a {type(node).__name__.lower()}")
