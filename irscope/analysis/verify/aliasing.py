"""Shared memory: outputs that alias operands or parameters, and the entry layout of both."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irscope.analysis.verify.faults import GraphFault
from irscope.analysis.verify.layouts import assigned, differ
from irscope.graph import Graph, Module, NamedType, Node, TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall
from irscope.ops.infer import plain
from irscope.ops.module_attributes import HloModule
from irscope.ops.shapes import fits


def check(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """Aliases of missing or different parts, and an entry layout that is not the entry's."""
    strict = assigned(module)
    for graph in module.graphs.values():
        for node in graph.nodes:
            if CustomCall.output_to_operand_aliasing.given(node) is not None:
                yield from ((graph, f) for f in _aliasing(node, strict))
    entry = module.graphs.get(module.entry)
    if entry is not None and entry.root is not None:
        yield from ((entry, f) for f in _entry(module, entry))


def part(t: Type, index: Sequence[int]) -> Type | None:
    """The part of a type at a path into its tuples, or None where there is none."""
    for i in index:
        if not isinstance(t, TupleType) or not 0 <= i < len(t.elements):
            return None
        t = t.elements[i]
    return t


def _aliasing(node: Node, strict: bool) -> Iterator[GraphFault]:
    seen: set[tuple[int, ...]] = set()
    operands, result = _whole(node)
    for output, (number, index) in CustomCall.of(node).output_to_operand_aliasing:
        shown = f"{{{', '.join(map(str, output))}}}: ({number}, {{{', '.join(map(str, index))}}})"
        if not 0 <= number < len(operands):
            yield GraphFault(node, f"output_to_operand_aliasing {shown}: {node.op.name} has {len(operands)} operands, not number {number}")
            continue
        started = node.op is hlo.async_start
        if started and node.bodies and node.bodies[0].notes.get("implicit"):
            output = (1, *output)  # on X-start, it refers to X
        elif started and not output:
            yield GraphFault(node, f"output_to_operand_aliasing {shown}: the output index of an asynchronous start is not empty",
                        "{0, i} is operand i, {1} the result")
            continue
        mine, theirs = part(result, output), part(operands[number], index)
        if mine is None:
            yield GraphFault(node, f"output_to_operand_aliasing {shown}: the result {plain(result)} has no such part")
        elif theirs is None:
            operand = plain(operands[number])
            yield GraphFault(node, f"output_to_operand_aliasing {shown}: operand {number}, {operand}, has no such part")
        elif not alike(mine, theirs, strict):
            yield GraphFault(node, f"output_to_operand_aliasing {shown}: memory is shared by {mine} and {theirs}, which differ")
        if output in seen:
            yield GraphFault(node, f"output_to_operand_aliasing gives the output {{{', '.join(map(str, output))}}} twice")
        seen.add(output)


def _whole(node: Node) -> tuple[list[Type], Type]:
    """The types of the operands and the result; of an asynchronous start including those that are bound later."""
    operands, result = [o.type for o in node.operands], node.type
    if node.op is hlo.async_start and node.bodies and node.bodies[0].root is not None and isinstance(result, TupleType):
        late = [p.type for p in node.bodies[0].params[len(operands):]]
        if late or (len(result.elements) > 1 and result.elements[1] == TupleType(())):
            operands = [*operands, *late]
            result = TupleType((TupleType(tuple(operands)), node.bodies[0].root.type))
    return operands, result


def alike(a: Type, b: Type, strict: bool) -> bool:
    """Whether two values can share memory, in ``strict`` modules with equal layouts; ``b(T)`` is the memory of T."""
    return fits(held(a), held(b)) and not (strict and differ(a, b))


def held(t: Type) -> Type:
    """The type in a buffer ``b(T)``, by its text; other types unchanged."""

    name = str(plain(t))
    return NamedType(name[2:-1]) if name.startswith("b(") else NamedType(name)


def _entry(module: Module, entry: Graph) -> Iterator[GraphFault]:
    layout = HloModule.of(module).entry_computation_layout
    if isinstance(layout, tuple) and len(layout) == 2:
        params, result = layout
        if len(params) != len(entry.params):
            yield GraphFault(None, f"entry_computation_layout has {len(params)} parameters, but {entry.name} has {len(entry.params)}")
        else:
            for number, (declared, parameter) in enumerate(zip(params, entry.params, strict=True)):
                if not fits(declared, parameter.type):
                    yield GraphFault(parameter, f"entry_computation_layout says {plain(declared)} for parameter {number}, "
                                           f"but %{parameter.name} is {plain(parameter.type)}")
            if not fits(result, entry.result().type):
                yield GraphFault(entry.result(), f"entry_computation_layout says that {entry.name} gives {plain(result)}, "
                                            f"but its result is {plain(entry.result().type)}")
    yield from _shared(module, entry)


def _shared(module: Module, entry: Graph) -> Iterator[GraphFault]:
    taken: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
    outputs: set[tuple[int, ...]] = set()
    for output, (number, index, kind) in _parsed(HloModule.of(module).input_output_alias):
        shown = f"{{{', '.join(map(str, output))}}}: ({number}, {{{', '.join(map(str, index))}}}, {kind})"
        theirs = part(entry.params[number].type, index) if 0 <= number < len(entry.params) else None
        mine = part(entry.result().type, output)
        if theirs is None:
            yield GraphFault(None, f"input_output_alias {shown}: {entry.name} has no such parameter")
        elif mine is None:
            yield GraphFault(None, f"input_output_alias {shown}: the result {plain(entry.result().type)} has no such part")
        elif kind == "must-alias" and not fits(mine, theirs):
            yield GraphFault(None, f"input_output_alias {shown}: memory is shared by {plain(mine)} and {plain(theirs)}, which differ")
        if (number, index) in taken:
            yield GraphFault(None, f"input_output_alias {shown}: the parameter is shared with another output already")
        if output in outputs:
            yield GraphFault(None, f"input_output_alias {shown}: the output is shared with another parameter already")
        taken[number, index] = output
        outputs.add(output)
    for number, index in _parsed(HloModule.of(module).buffer_donor):
        shown = f"({number}, {{{', '.join(map(str, index))}}})"
        if not 0 <= number < len(entry.params) or part(entry.params[number].type, index) is None:
            yield GraphFault(None, f"buffer_donor {shown}: {entry.name} has no such parameter")
        elif (number, index) in taken:
            yield GraphFault(None, f"buffer_donor {shown}: the parameter is shared with an output already")


def _parsed(value: object) -> tuple[Any, ...]:
    """A list attribute of the module; empty where the reader rejected (and reported) its text."""
    return value if isinstance(value, tuple) else ()
