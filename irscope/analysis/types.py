"""Checks that declared types are those of the operators' results, and that the module keeps the rules that span operators.

    %sum = f32[3] add(%x, %y)        error: %sum is declared f32[3], but add gives f32[2]
"""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify import module_rules
from irscope.analysis.verify.faults import GraphFault, finding
from irscope.analysis.verify.inferred import inferred_faults
from irscope.analysis.verify.torchscript import call_faults
from irscope.graph import UNKNOWN, Graph, Module, Node, TensorType, TupleType, Type, Typing
from irscope.ops import TypeFault, hlo
from irscope.ops.infer import plain
from irscope.ops.shapes import fits
from irscope.source import Finding, Severity

EXACT = hlo.named(
    "bitcast call conditional constant copy-done copy-start custom-call get-tuple-element infeed outfeed opt-barrier parameter recv "
    "recv-done send send-done tuple while fusion rng async-start async-update async-done broadcast reshape dynamic-reshape")
"""Operators that pass values on: not even the precision of floats may change."""


def check_types(module: Module) -> list[Finding]:
    """All type errors, in the order of the text. Code and name show the kind: SHP shapes, DTY element types, LAY layouts."""
    return sorted((finding(module, graph, fault) for graph, fault in faults_of(module)), key=lambda f: f.offset)


def faults_of(module: Module) -> list[tuple[Graph, GraphFault]]:
    """The same as faults, before they become findings: each fault with its graph."""
    typing = module.dialect.typing
    if typing is Typing.INFERRED and not module.is_primitive:
        return list(inferred_faults(module))
    faults = [(graph, fault) for graph in module.graphs.values() for fault in check_graph(graph)]
    if module.dialect.primitive:
        faults += module_rules(module)
    if typing is Typing.EXECUTED:
        faults += [(graph, fault) for graph in module.graphs.values() for fault in call_faults(graph)]
    return faults


def check_graph(graph: Graph) -> Iterator[GraphFault]:
    """The nodes of one graph whose operands do not fit the operator, or whose declared type is not the inferred one."""
    for node in graph.nodes:
        if node.op.infer is None or any(o.type is UNKNOWN for o in node.operands):
            continue
        try:
            inferred = node.op.infer(node)
        except TypeFault as fault:
            yield GraphFault(node, fault.message, fault.help, about="type")
            continue
        if node.type is not UNKNOWN and not fits(node.type, inferred):
            yield _mismatch(node, inferred)


def _mismatch(node: Node, inferred: Type) -> GraphFault:
    given = ", ".join(str(plain(o.type)) for o in node.operands)
    only_precision = node.op not in EXACT and fits(node.type, inferred, any_precision=True)
    return GraphFault(
        node, f"%{node.name} is declared {plain(node.type)}, but {node.op.name}({given}) gives {inferred}",
        "XLA takes floats of another precision here in some modes only" if only_precision else f"declare {inferred}, or fix the operands",
        about="dtype" if only_precision or _same_dims(node.type, inferred) else "shape",
        severity=Severity.WARNING if only_precision else Severity.ERROR)


def _same_dims(a: Type, b: Type) -> bool:
    """Whether two types differ at most in the element types and layouts of their arrays."""
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if isinstance(x, TupleType) and isinstance(y, TupleType) and len(x.elements) == len(y.elements):
            stack.extend(zip(x.elements, y.elements, strict=True))
        elif x != y and not (isinstance(x, TensorType) and isinstance(y, TensorType) and x.shape == y.shape):
            return False
    return True
