"""From ``ir_pre_fusion.txt`` or ``ir_post_fusion.txt`` to a module.

A top-level scheduler node becomes a node; its operands are the nodes that write the buffers it reads, or parameters. A node that writes
several buffers has a tuple type, and synthetic ``get-tuple-element`` nodes with the buffers' names.
"""
from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from irscope.formats.inductor.attributes import Scheduled
from irscope.formats.inductor.dialect import INDUCTOR
from irscope.formats.inductor.findings import UNDEFINED, report
from irscope.formats.inductor.layouts import BUFFER, BufferLayout
from irscope.formats.inductor.scheduler import SchedulerNode, read_nodes
from irscope.formats.syntax import SyntaxFault
from irscope.graph import NO_ATTRS, Effect, Graph, Kind, Module, Node, Op, Reading, TupleType, Type
from irscope.ops import get
from irscope.source import Finding, Severity, SourceText


def read_ir(source: SourceText) -> Reading:
    """The module of an IR text; entries that cannot be read are findings."""
    reading = Reading(source, INDUCTOR.name)
    faults: list[SyntaxFault] = []
    nodes = read_nodes(source.text, faults)
    report(reading, faults)
    if nodes:
        reading.modules.append(module_of(nodes, source, reading.findings))
    return reading


def module_of(nodes: list[SchedulerNode], source: SourceText, findings: list[Finding]) -> Module:
    """The module of scheduler nodes, in which each node is one operation."""
    name = source.name.rpartition("/")[2] or "ir"
    module = Module(name, INDUCTOR, source=source)
    builder = _Builder(nodes, source, findings)
    graph = builder.build()
    module.graphs[graph.name] = graph
    module.entry = graph.name
    return module


@lru_cache(maxsize=256)
def scheduler_op(name: str) -> Op:
    """The operator of scheduler nodes of a class: its work is that of the loops."""
    if name.startswith("Nop"):
        return Op(name, INDUCTOR.name, kind=Kind.TUPLE, doc="Needs no kernel: its parts are written in place.")
    return Op(name, INDUCTOR.name, kind=Kind.OPAQUE, effect=Effect.WRITES, cost=lambda node: Scheduled.of(node).scheduler.flops(),
              work="elementwise", doc="Loops of one kernel, or of a part of one.")


@lru_cache(maxsize=4096)
def extern_op(name: str) -> Op:
    """The operator of calls of an extern kernel, or of a generated kernel with loops that irscope does not read: its work is unknown."""
    return Op(name, INDUCTOR.name, kind=Kind.OPAQUE, effect=Effect.WRITES, known=False)


@lru_cache(maxsize=1)
def item_op() -> Op:
    """The operator of scheduler nodes that name one result of a kernel with several."""
    return Op("MultiOutput", INDUCTOR.name, kind=Kind.TUPLE, doc="One result of an extern kernel with several.")


class _Builder:
    def __init__(self, nodes: list[SchedulerNode], source: SourceText, findings: list[Finding]) -> None:
        self.nodes = nodes
        self.source = source
        self.findings = findings
        self.graph = Graph("call", loc=0)
        self.values: dict[str, Node] = {}
        self.layouts: dict[str, BufferLayout] = {}
        self.get, self.tuple, self.param = get("get-tuple-element"), get("tuple"), get("parameter")

    def build(self) -> Graph:
        written = self._written()
        for node in self.nodes:
            reads = dict.fromkeys(dep.buffer for dep in (*node.met, *node.unmet))
            for name in reads:
                if name not in written and name not in self.values:
                    self._parameter(name, any(dep.buffer == name for dep in node.unmet), node)
        for node in self.nodes:
            self._add(node)
        self._results()
        return self.graph

    def _written(self) -> set[str]:
        """All buffers that the nodes write; collects the layouts that the text states on the way."""
        written: set[str] = set()
        for node in self.nodes:
            for leaf in (node, *node.leaves()):
                self.layouts.update(leaf.layouts)
                self.layouts.update({o.name: o.layout for o in leaf.outputs if o.layout is not None})
                written.update(o.name for o in leaf.outputs)
        return written

    def _type(self, buffer: str) -> Type:
        layout = self.layouts.get(buffer)
        return layout.type() if layout is not None else BUFFER

    def _parameter(self, name: str, unmet: bool, reader: SchedulerNode) -> None:
        node = Node(self.param, name, self._type(name), attrs={"number": len(self.graph.params)}, synthetic=True)
        self.values[name] = self.graph.add(node)
        self.graph.params.append(node)
        if unmet:
            self.findings.append(Finding(*UNDEFINED, Severity.WARNING, f"{reader.name} reads {name}, which no node of this text writes",
                                         self.source, reader.offset, len(reader.name), node=reader.name, help="give the whole text"))

    def _add(self, record: SchedulerNode) -> None:
        operands = self._operands(record)
        outputs = record.outputs
        types = [self._type(output.name) for output in outputs]
        op = extern_op(record.kernel or record.of[0]) if record.is_extern and not record.is_item else \
            item_op() if record.is_item else scheduler_op(record.kind)
        attrs = {"scheduler": record, "device": record.device, "buffers": tuple(o.name for o in outputs)}
        if record.parts:
            attrs["parts"] = record.ops()
        type = types[0] if len(types) == 1 else TupleType(tuple(types))
        node = self.graph.add(Node(op, record.name, type, operands, attrs, (), record.offset))
        for i, output in enumerate(outputs):
            value = node if len(outputs) == 1 else self.graph.add(
                Node(self.get, output.name, types[i], (node,), {"index": i}, (), record.offset, synthetic=True))
            self.values[output.name] = value

    def _operands(self, record: SchedulerNode) -> tuple[Node, ...]:
        """The values of the buffers that a node reads; a buffer that a later node writes is a finding."""
        found: dict[Node, None] = {}
        own = {output.name for output in record.outputs}
        for dependency in (*record.met, *record.unmet):
            value = self.values.get(dependency.buffer)
            if dependency.buffer in own:
                continue
            if value is None:
                self.findings.append(Finding(*UNDEFINED, Severity.WARNING, f"{record.name} reads {dependency.buffer} before it is written",
                                             self.source, record.offset, len(record.name), node=record.name))
            else:
                found[value] = None
        return tuple(found)

    def _results(self) -> None:
        """The buffers that the graph returns; of a text without any, those that no node reads."""
        results = [self.values[o.name] for node in self.nodes for o in node.outputs if o.is_result and o.name in self.values]
        self.graph.root = result_of(self.graph, self.tuple, results or self._unread())

    def _unread(self) -> list[Node]:
        users = self.graph.users()
        return [node for node in self.graph.nodes if not users[node.index] and node.op is not self.param]


def result_of(graph: Graph, tuple_op: Op, values: Iterable[Node]) -> Node:
    """The root of a graph: the value itself, or a synthetic tuple of several."""
    results = tuple(dict.fromkeys(values))
    if len(results) == 1:
        return results[0]
    return graph.add(Node(tuple_op, "return", TupleType(tuple(r.type for r in results)), results, NO_ATTRS, (), -1, synthetic=True))
