"""From ``output_code.py`` to a module: one graph for each function, one node for each call of a kernel.

A call that writes several buffers has a tuple type, and synthetic ``get-tuple-element`` nodes with the buffers' names. Allocations, views
and reuse are not nodes of the text; views that a call takes are synthetic ``reinterpret_tensor`` nodes.
"""
from __future__ import annotations

from functools import lru_cache

from irscope.formats.inductor.dialect import INDUCTOR
from irscope.formats.inductor.findings import report
from irscope.formats.inductor.ir import extern_op, item_op, result_of
from irscope.formats.inductor.layouts import BUFFER, BufferLayout
from irscope.formats.inductor.python_text import DEEP
from irscope.formats.inductor.wrapper import ENTRY, Alias, Allocation, Function, KernelCall, OutputCode, read_code
from irscope.formats.syntax import SyntaxFault
from irscope.graph import Effect, Graph, Kind, Module, Node, Op, Reading, TensorType, TupleType, Type
from irscope.ops import get
from irscope.source import SourceText

PRODUCTS = frozenset("extern_kernels." + name for name in ("mm", "addmm", "bmm", "baddbmm", "bias_addmm", "_int_mm"))
"""Extern kernels that multiply matrices; the matrices are the two operands before the results of keywords."""


def read_output_code(source: SourceText) -> Reading:
    """The module of output code; text that ends too early is a finding."""
    reading = Reading(source, INDUCTOR.name)
    faults: list[SyntaxFault] = []
    code = read_code(source, faults)
    report(reading, faults)
    if code is not None and code.functions:
        reading.modules.append(module_of_code(code, source))
    return reading


def module_of_code(code: OutputCode, source: SourceText, name: str = "") -> Module:
    """The module of output code whose records are read."""
    module = Module(name or source.name.rpartition("/")[2] or "output_code", INDUCTOR, source=source, attrs={"aot_id": code.aot_id})
    for function in code.functions.values():
        graph = _Builder(code, function).build()
        module.graphs[graph.name] = graph
    module.entry = ENTRY if ENTRY in module.graphs else next(iter(module.graphs))
    return module


@lru_cache(maxsize=16)
def product_op(name: str) -> Op:
    """The operator of an extern kernel that multiplies matrices: two operations for each product."""
    return Op(name, INDUCTOR.name, kind=Kind.CONTRACTION, effect=Effect.WRITES, cost=_product_flops, work="contraction")


@lru_cache(maxsize=1)
def view_op() -> Op:
    """The operator of views in arguments."""
    return Op("reinterpret_tensor", INDUCTOR.name, kind=Kind.INJECTIVE, traits=frozenset(("view",)), work="free")


def _product_flops(node: Node) -> float:
    """2 m n k of the result and the first matrix; the bias of addmm stands before the matrices."""
    first = next((o.type for o in node.operands[-2:]), None)
    result = node.type
    if not isinstance(first, TensorType) or not isinstance(result, TensorType) or not first.shape:
        return 0.0
    k = first.shape[-1]
    return 2.0 * result.elements * (k if isinstance(k, int) else 1)


class _Builder:
    """One function: the current value of each buffer's name."""

    def __init__(self, code: OutputCode, function: Function) -> None:
        self.code = code
        self.function = function
        self.graph = Graph(function.name, loc=function.offset)
        self.values: dict[str, Node] = {}
        self.types: dict[str, Type] = {}
        self.used: dict[str, int] = {}
        self.reuse: list[tuple[str, str]] = []
        self.views: dict[str, Alias] = {}
        self.parts: dict[str, list[Node]] = {}
        self.made: dict[tuple[Node, BufferLayout], Node] = {}
        self.get, self.tuple, self.param = get("get-tuple-element"), get("tuple"), get("parameter")

    def build(self) -> Graph:
        for name in self.function.inputs:
            layout = self.code.inputs.get(name)
            self._parameter(name, layout.type() if layout is not None else BUFFER)
        for statement in self.function.statements:
            if isinstance(statement, Allocation):
                self.types[statement.name] = statement.layout.type()
            elif isinstance(statement, Alias):
                self._alias(statement)
            else:
                self._call(statement)
        results = [value for result in self.function.results if result.buffer for value in self._read(result.buffer, result.view)]
        self.graph.root = result_of(self.graph, self.tuple, results)
        self.graph.notes["reuse"] = tuple(self.reuse)
        return self.graph

    def _parameter(self, name: str, type: Type) -> Node:
        place = self.function.places.get(name, self.function.offset)
        node = self.graph.add(Node(self.param, name, type, attrs={"number": len(self.graph.params)}, loc=place, synthetic=True))
        self.graph.params.append(node)
        self.values[name], self.types[name] = node, type
        return node

    def _alias(self, alias: Alias) -> None:
        """Another name of a buffer; one of several results of a call becomes a value of its own, a view only where it is read."""
        known = self.types.get(alias.of, BUFFER)
        self.types[alias.name] = _seen(known, alias.view) if alias.view is not None else known
        if alias.reuses:
            self.reuse.append((alias.name, alias.of))
        value = self.values.get(alias.of)
        if alias.item is not None and value is not None:
            item = Node(item_op(), alias.name, BUFFER, (value,), {"index": alias.item}, (), alias.offset, synthetic=True)
            self.values[alias.name] = self.graph.add(item)
        elif alias.view is not None:
            self.views[alias.name] = alias
        elif value is not None:
            self.values[alias.name] = value
            self.parts[alias.name] = self.parts.get(alias.of, [])

    def _read(self, name: str, view: BufferLayout | None = None) -> list[Node]:
        """The values behind a name: the buffer or a view of it, and the calls that wrote parts of it."""
        value = self.values.get(name)
        chain: list[BufferLayout] = [view] if view is not None else []
        parts: list[Node] = []
        for _ in range(DEEP):
            parts += self.parts.get(name, ())
            alias = self.views.get(name) if value is None else None
            if alias is None:
                break
            chain += [alias.view] if alias.view is not None else []
            name, value = alias.of, self.values.get(alias.of)
        for layout in reversed(chain):
            value = self._view(value, layout) if value is not None else None
        return [value, *parts] if value is not None else parts

    def _view(self, value: Node, view: BufferLayout) -> Node:
        """A view of a value; the same view is made once."""
        key = value, view
        if key not in self.made:
            attrs = {"size": view.size, "stride": view.stride, "offset": view.offset}
            node = Node(view_op(), self._name(value.name), _seen(value.type, view), (value,), attrs, (), value.loc, synthetic=True)
            self.made[key] = self.graph.add(node)
        return self.made[key]

    def _write(self, name: str, value: Node) -> None:
        """The value of a buffer after a call; a write into a view writes a part of the buffer behind it."""
        self.values[name] = value
        for _ in range(DEEP):
            alias = self.views.get(name)
            if alias is None:
                return
            name = alias.of
            self.parts.setdefault(name, []).append(value)

    def _call(self, call: KernelCall) -> None:
        reads = dict.fromkeys((a.buffer, a.view) for a in call.args if a.is_read)
        operands = dict.fromkeys(value for buffer, view in reads for value in self._read(buffer, view))
        results = (call.result,) if call.result else call.written
        types = [self.types.get(name, BUFFER) for name in results]
        op = product_op(call.kernel) if call.kernel in PRODUCTS else extern_op(call.kernel)
        attrs: dict[str, object] = {"kernel": call.kernel, "args": tuple(a.text for a in call.args), "buffers": results}
        source = self.code.kernels.get(call.kernel)
        attrs |= {key: value for key, value in (("source", source), ("handle", call.handle), ("source_nodes", call.source_nodes),
                                                ("original_aten", call.original)) if value}
        type = types[0] if len(types) == 1 else TupleType(tuple(types))
        name = self._name(results[0] if call.is_extern and len(results) == 1 else call.kernel)
        node = self.graph.add(Node(op, name, type, tuple(operands), attrs, (), call.offset))
        for i, result in enumerate(results):
            self._write(result, node if len(results) == 1 else self.graph.add(
                Node(self.get, result, types[i], (node,), {"index": i}, (), call.offset, synthetic=True)))

    def _name(self, wanted: str) -> str:
        """A name that no other node has: ``mm``, then ``mm.1``."""
        count = self.used.get(wanted, 0)
        self.used[wanted] = count + 1
        return f"{wanted}.{count}" if count else wanted


def _seen(type: Type, view: BufferLayout) -> Type:
    """The type of a view: its sizes, with the element type of the buffer."""
    if not isinstance(type, TensorType):
        return type
    return BufferLayout("view", "", type.dtype, view.size, view.stride).type()
