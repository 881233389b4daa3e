"""The reference interpreter, slow and obvious: one numpy call per node, in order, with HLO's exact semantics.

``--engine reference`` and ``--check`` run it. Compiled programs never use it.
"""
from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.graph import Graph, Module, Node, TensorType, TupleType, Type, bytes_of, live
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.numerics import denormals
from irscope.source import UserError
from irscope.source.budget import LARGE, require, tick

Value = Any
"""An ndarray, a tuple of values, or None for a token."""


def evaluate(graph: Graph, arguments: Sequence[Value], flush_denormals: bool = True) -> Value:
    """The value of a graph for arguments in the order of its parameters; tuples are Python tuples. Denormals are flushed unless the
    graph's module keeps them."""
    with denormals(flush_denormals):
        return Evaluator().run(graph, arguments)


def results(module: Module, arrays: Iterable[object], flush_denormals: bool | None = None) -> list[Any]:
    """The results of a module's entry as flat arrays, for the arrays of its parameters in order. ``flush_denormals``: None as the module
    has it."""
    flush = module.flushes_denormals if flush_denormals is None else flush_denormals
    given = iter(arrays)

    def nested(type: Type) -> Value:
        if isinstance(type, TupleType):
            return tuple(nested(element) for element in type.elements)
        return next(given) if isinstance(type, TensorType) else None
    given_values = [nested(p.type) for p in module.main().params]
    return [np.asarray(array) for array in flatten(evaluate(module.main(), given_values, flush))]


def flatten(value: Value) -> list[Any]:
    """The arrays of a value, in order, without tokens."""
    flat: list[Any] = []
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, (tuple, list)):
            stack.extend(reversed(top))
        elif top is not None:
            flat.append(top)
    return flat


class Evaluator:
    """Runs graphs. Values are freed when their last user has run; calls, loops and branches nest without recursion.

    ``constants`` provides values, by name, for constants that the text elides. With ``check`` every value is compared with its
    declared type (ValueError), which tests use.
    """

    def __init__(self, constants: Mapping[str, object] | None = None, check: bool = False) -> None:
        self.constants = constants or {}
        self.check = check
        self._plans: dict[Graph, _Plan] = {}

    def run(self, graph: Graph, arguments: Sequence[Value]) -> Value:
        """The value of a graph. References call this for bodies that they apply to whole arrays."""
        stack = [self._call(graph, arguments)]
        answer: Value = None
        while True:
            call = stack[-1]
            if call.asks is None and self._advance(call):
                answer = call.result()
                stack.pop()
                if not stack:
                    return answer
                continue
            assert call.asks is not None
            try:
                body, given = call.asks.send(answer)
            except StopIteration as end:
                call.asks = None
                self._finish(call, end.value)
            else:
                stack.append(self._call(body, given))
            answer = None

    def _call(self, graph: Graph, arguments: Sequence[Value]) -> _Call:
        plan = self._plans.get(graph)
        if plan is None:
            plan = self._plans[graph] = _plan(graph)
        if len(arguments) != len(graph.params):
            raise UserError(f"{graph.name} takes {len(graph.params)} values, but is given {len(arguments)}")
        values: list[Value] = [None] * len(graph.nodes)
        for parameter, value in zip(graph.params, arguments, strict=True):
            values[parameter.index] = value
        return _Call(plan, values)

    def _advance(self, call: _Call) -> bool:
        """Run nodes until all are done (True) or one requests the run of a body."""
        order, values = call.plan.order, call.values
        while call.at < len(order):
            node = order[call.at]
            tick()
            if node in call.plan.large:
                require(bytes_of(node.type), f"%{node.name}, {node.type},")
            value = self._apply(node, [values[o.index] for o in node.operands])
            if isinstance(value, Generator):
                call.asks = value
                return False
            self._finish(call, value)
        return True

    def _apply(self, node: Node, operands: list[Value]) -> Value:
        if node.op.reference is None:
            raise UserError(f"%{node.name} = {node.op.name}(...) cannot be run: irscope knows no values for it")
        if node.op is hlo.constant and Constant.of(node).literal.elided:
            if node.name in self.constants:
                return self.constants[node.name]
            raise UserError(f"the text elides the value of %{node.name}, {node.type}", "give it with --constants, or --fill-elided")
        return node.op.reference(self.run, node, *operands)

    def _finish(self, call: _Call, value: Value) -> None:
        node = call.plan.order[call.at]
        if self.check and not holds(node.type, value):
            raise ValueError(f"{node!r}: the reference gives {_described(value)}")
        call.values[node.index] = value
        for index in call.plan.dies[call.at]:
            call.values[index] = None
        call.at += 1


@dataclass(slots=True)
class _Plan:
    """The live nodes of a graph, in order, and the values that each is the last to read."""

    graph: Graph
    order: list[Node]
    dies: list[tuple[int, ...]]
    large: frozenset[Node]  # which of them produce large arrays


@dataclass(slots=True)
class _Call:
    """A running graph; ``asks`` is the reference that waits for the result of a body."""

    plan: _Plan
    values: list[Value]
    at: int = 0
    asks: Generator[tuple[Graph, Sequence[Value]], Value, Value] | None = None

    def result(self) -> Value:
        return self.values[self.plan.graph.result().index]


def _plan(graph: Graph) -> _Plan:
    needed, result = live(graph), graph.result()
    own = {p.index for p in graph.params}
    order = [node for node in graph.nodes if needed[node.index] and node.index not in own]
    last: dict[int, int] = {}
    for place, node in enumerate(order):
        last[node.index] = place  # a value that nothing reads is freed at once
        for operand in node.operands:
            last[operand.index] = place
    last.pop(result.index, None)
    dies: list[list[int]] = [[] for _ in order]
    for index, place in last.items():
        dies[place].append(index)
    large = frozenset(node for node in order if node.op not in _MAKES_NOTHING and bytes_of(node.type) >= LARGE)
    return _Plan(graph, order, [tuple(d) for d in dies], large)


_MAKES_NOTHING = hlo.named("tuple get-tuple-element while conditional call reshape bitcast")
"""Operators whose values already exist, or are computed by nodes of their bodies."""


def holds(t: Type, value: Value) -> bool:
    """Whether a value is of a type.

    Dynamic dimensions may be smaller than their bound, and scalars may be arrays: bodies of reductions run on many elements at once.
    """
    if isinstance(t, TupleType):
        return isinstance(value, tuple) and len(value) == len(t.elements) and all(map(holds, t.elements, value))
    if not isinstance(t, TensorType):
        return value is None
    if value is None:
        return False
    shape = getattr(value, "shape", None)
    if shape is None or value.dtype != t.dtype.numpy():
        return False
    if not t.rank:
        return True
    return len(shape) == t.rank and all(
        n == d if isinstance(d, int) else d.bound is None or n <= d.bound for n, d in zip(shape, t.shape, strict=True))


def _described(value: Value) -> str:
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else f"{type(value).__name__}"
