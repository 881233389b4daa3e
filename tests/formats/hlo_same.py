"""What differs between two readings of one graph."""
from __future__ import annotations

import re
from typing import Any

from irscope.graph import Graph, Module, Node
from irscope.ops.attrs import Literal


def difference(a: Module, b: Module, raw: bool = True) -> str:
    """The first thing that is not alike, or the empty string. ``raw`` compares what was left in the texts too."""
    if sorted(a.graphs) != sorted(b.graphs) or a.entry != b.entry:
        return f"computations {list(a.graphs)} entry {a.entry}, and {list(b.graphs)} entry {b.entry}"
    for name, graph in a.graphs.items():
        said = _in_graph(graph, b.graphs[name])
        if said:
            return f"{name}: {said}"
        if raw:
            for x, y in zip(graph.nodes, b.graphs[name].nodes, strict=True):
                if not x.synthetic and _texts(a.raw(x)) != _texts(b.raw(y)):
                    return f"{name}: {x!r} keeps {dict(a.raw(x))}, and {dict(b.raw(y))}"
    own, other = ({k: "".join(str(v).split()) for k, v in m.attrs.items() if k != "stack_frames"} for m in (a, b))
    return "" if own == other else f"module attributes {own}, and {other}"


def _in_graph(a: Graph, b: Graph) -> str:
    if len(a.nodes) != len(b.nodes):
        return f"{len(a.nodes)} nodes, and {len(b.nodes)}"
    if (a.root and a.root.index) != (b.root and b.root.index) or [p.index for p in a.params] != [p.index for p in b.params]:
        return f"root {a.root!r} params {a.params}, and {b.root!r} {b.params}"
    if a.notes.get("execution_thread") != b.notes.get("execution_thread"):
        return "execution threads"
    for x, y in zip(a.nodes, b.nodes, strict=True):
        if _key(x) != _key(y):
            return f"{x!r} {dict(x.attrs)}, and {y!r} {dict(y.attrs)}"
    return ""


def _key(node: Node) -> tuple[Any, ...]:
    attrs = {name: _value(value) for name, value in node.attrs.items()}
    name = "" if "#" in node.name or node.synthetic else node.name
    return name, node.op.name, node.type, [o.index for o in node.operands], attrs, [g.name for g in node.bodies]


def _value(value: Any) -> Any:
    if isinstance(value, Literal):
        return str(value.type), "".join(re.sub(r"/\*.*?\*/|//[^\n]*", "", value.text or "").split())
    return repr(value) if isinstance(value, float) else value


def _texts(raw: Any) -> dict[str, str]:
    return {name: "".join(value.split()) for name, value in raw.items()}
