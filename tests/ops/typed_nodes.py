"""Nodes that no text can have: the readers refuse them before inference does, but passes and other formats may build them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from irscope.graph import Graph, Node, Type
from irscope.ops import TypeFault, get
from tests.ops.running import read


@cache
def type_of(text: str) -> Type:
    """A type as HLO writes it."""
    return read(f"ENTRY e {{\n ROOT x = {text} parameter(0)\n}}\n").main().result().type


def graph_of(text: str) -> Graph:
    """A computation: ``(f32[], f32[]) add(a, b)`` has parameters a, b ... of these types and this root."""
    if not text.startswith("("):
        return read(f"ENTRY e {{\n ROOT r = {text}\n}}\n").main()
    types, _, root = text[1:].partition(") -> ")
    lines = [f" {name} = {t} parameter({i})" for i, (name, t) in enumerate(zip("abcdefgh", split(types)))]
    return read("ENTRY e {\n" + "\n".join([*lines, f" ROOT r = {root}"]) + "\n}\n").main()


def split(types: str) -> list[str]:
    """The types of a list, at the commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(types):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append(types[start:i].strip())
            start = i + 1
    return [*parts, types[start:].strip()] if types.strip() else []


def node_of(opcode: str, operands: str, result: str, attrs: Mapping[str, Any] | None = None, bodies: Sequence[str] = (),
            dialect: str = "hlo") -> Node:
    """A node over parameters of these types, p0, p1 ..., of a declared type."""
    parameter = get("parameter")
    given = [Node(parameter, f"p{i}", type_of(t), (), {"number": i}, (), -1, -1, ()) for i, t in enumerate(split(operands))]
    return Node(get(opcode, dialect), "r", type_of(result), tuple(given), dict(attrs or {}), tuple(map(graph_of, bodies)), -1, -1, ())


def verdict(node: Node) -> str:
    """``""`` where inference gives the declared type, the inferred type where it does not, or the message of the fault."""
    assert node.op.infer is not None
    try:
        inferred = node.op.infer(node)
    except TypeFault as fault:
        return fault.message
    return "" if inferred == node.type else str(inferred)
