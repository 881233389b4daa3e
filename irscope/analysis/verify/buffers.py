"""Values of type ``b(T)`` are memory that is written in place: each has one writer, and none is lost or duplicated."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.aliasing import part
from irscope.analysis.verify.faults import GraphFault
from irscope.graph import Graph, Module, NamedType, Node, TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall, GetTupleElement
from irscope.ops.infer import plain

PINS = frozenset(("Pin", "Unpin"))
MAKERS = frozenset(("CreateBuffer", "AllocateBuffer"))
FORWARDS = hlo.named("tuple get-tuple-element opt-barrier")
_CALLS = hlo.named("custom-call async-start")


def check(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """Buffers at the entry, buffers with two writers, buffers that calls lose or create."""
    for graph in module.graphs.values():
        if not any(_paths(n.type) for n in graph.nodes):
            continue
        if graph.name == module.entry:
            for node in [*graph.params, *([graph.root] if graph.root else [])]:
                if _paths(node.type):
                    yield graph, GraphFault(node, f"buffers are not allowed at the entry, but %{node.name} is {plain(node.type)}",
                                       "Pin makes a buffer of a value, Unpin a value of a buffer")
        for node in graph.nodes:
            if node.op in _CALLS:
                yield from ((graph, f) for f in _call(node))
        yield from ((graph, f) for f in _writers(graph))


def _paths(t: Type, prefix: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """The paths of buffers in a type."""
    if isinstance(t, TupleType):
        return [p for i, e in enumerate(t.elements) for p in _paths(e, (*prefix, i))]
    return [prefix] if isinstance(t, NamedType) and t.name.startswith("b(") else []


def _call(node: Node) -> Iterator[GraphFault]:
    """Check that each buffer of an operand is one buffer of the result, by output_to_operand_aliasing."""
    aliasing, target = CustomCall.of(node).output_to_operand_aliasing, CustomCall.of(node).custom_call_target
    if target in PINS or target in MAKERS:
        return  # the operator's own rule checks a pin
    given = [(i, p) for i, o in enumerate(node.operands) for p in _paths(o.type)]
    # The operand tuple of an asynchronous start is the operands again.
    started = node.op is hlo.async_start
    made = [p for p in _paths(node.type) if not started or p[:1] != (0,)]
    sources = [(number, tuple(index)) for _, (number, index) in aliasing]
    of_wrapped = started and node.bodies and node.bodies[0].notes.get("implicit")
    targets = [(1, *output) if of_wrapped else tuple(output) for output, _ in aliasing]
    for source in given:
        times = sum(s == source for s, t in zip(sources, targets, strict=True) if part(node.type, t) is not None)
        if times == 0:
            yield GraphFault(node, f"a buffer is used in the operands of %{node.name}, but not in its results: "
                              f"operand {source[0]}, %{node.operands[source[0]].name}", "alias it with a part of the result")
        elif times > 1:
            yield GraphFault(node, f"a buffer is used in the results of %{node.name} several times: "
                              f"operand {source[0]}, %{node.operands[source[0]].name}")
    for path in made:
        if path not in targets:
            yield GraphFault(node, f"a buffer is used in the results of %{node.name}, but not in its operands: "
                              f"part {{{', '.join(map(str, path))}}} of {plain(node.type)}")


def _writers(graph: Graph) -> Iterator[GraphFault]:
    """Every user of a buffer writes it, and so does returning it to the caller: only one may."""
    origin: dict[int, dict[tuple[int, ...], tuple[int, tuple[int, ...]]]] = {}
    takers: dict[tuple[int, tuple[int, ...]], int] = {}
    for node in graph.nodes:
        paths = _paths(node.type)
        if node.op in FORWARDS and paths:
            origin[node.index] = {p: _source(node, p, origin) for p in paths}
            continue
        origin[node.index] = {p: (node.index, p) for p in paths}
        for operand in node.operands:
            for buffer in origin[operand.index].values():
                takers[buffer] = takers.get(buffer, 0) + 1
                if takers[buffer] == 2:
                    yield GraphFault(node, f"a buffer has more than one writer: %{graph.nodes[buffer[0]].name} is taken by %{node.name} "
                                      "and by another", "copy it, or write one after the other")
    if graph.root is not None:
        for buffer in origin[graph.root.index].values():
            takers[buffer] = takers.get(buffer, 0) + 1
            if takers[buffer] == 2:
                written = graph.nodes[buffer[0]].name
                yield GraphFault(graph.root, f"a buffer has more than one writer: %{written} is written, and given back too")


def _source(node: Node, path: tuple[int, ...], origin: dict[int, dict[tuple[int, ...], tuple[int, tuple[int, ...]]]]
            ) -> tuple[int, tuple[int, ...]]:
    """The source of a buffer that is only passed on."""
    if node.op is hlo.tuple and path:
        operand, rest = node.operands[path[0]], path[1:]
    elif node.op is hlo.get_tuple_element:
        operand, rest = node.operands[0], (GetTupleElement.of(node).index, *path)
    else:
        operand, rest = node.operands[0], path
    return origin[operand.index].get(rest, (node.index, path))
