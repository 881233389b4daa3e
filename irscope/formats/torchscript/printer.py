"""Prints a module as TorchScript text, as PyTorch does."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from irscope.formats.torchscript.values import List, Opaque, TensorText
from irscope.graph import Graph, Module, NamedType, Node, TupleType, Type, bodies_of


def print_module(module: Module) -> str:
    """Every graph of the module; several have ``# method`` lines."""
    bodies = {body for graph in module.graphs.values() for body in bodies_of(graph)}
    written = {name: graph for name, graph in module.graphs.items() if graph not in bodies}
    several = len(written) > 1
    parts = []
    for name, graph in written.items():
        head = [f"# method {name}"] if several else []
        parts.append("\n".join([*head, *_graph(module, graph)]))
    return "\n".join(parts) + "\n"


def _graph(module: Module, graph: Graph, name: str = "") -> Iterator[str]:
    """A graph with its subgraphs. Blocks and subgraphs are few levels deep (the reader enforces a limit), so this may recurse."""
    params = [f"%{p.name} : {p.type}" for p in graph.params]
    yield f"{name}graph(" + ",\n      ".join(params) + "):"
    groups: list[tuple[str, Graph]] = []
    yield from _statements(module, graph, "  ", groups)
    yield f"  return ({_results(graph)})"
    for group, body in groups:
        yield from _graph(module, body, f"with {group} = ")


def _statements(module: Module, graph: Graph, indent: str, groups: list[tuple[str, Graph]]) -> Iterator[str]:
    gets: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node.synthetic and node.op.name == "get-tuple-element":
            gets.setdefault(node.operands[0].index, []).append(node)
    for node in graph.nodes:
        if node.synthetic:
            continue
        results = gets.get(node.index, [node] if node.type != NamedType("None") or not node.name.startswith("_") else [])
        left = ", ".join(f"%{r.name} : {r.type}" for r in results)
        blocks = [b for b in node.bodies if "captures" in b.notes]
        taken = len(node.operands) - sum(b.notes["captures"] for b in blocks)
        head = node.op.name
        if node.bodies and not blocks:
            head = f"{node.op.name}_{len(groups)}"
            groups.append((head, node.bodies[0]))
        attrs = dict(node.attrs)
        python = f"({attrs.pop('python')})" if "python" in attrs else ""
        operands = ", ".join(f"%{o.name}" for o in node.operands[:taken])
        scope = f", scope: __module.{module.scope(node).replace('/', '.')}" if module.scope(node) else ""
        stack = module.call_stack(node)
        comment = f" # {stack[0].file}:{stack[0].line}:{stack[0].column}" if stack else ""
        yield f"{indent}{left} = {head}{_attributes(attrs)}{python}({operands}){scope}{comment}"
        for i, block in enumerate(blocks):
            own = ", ".join(f"%{p.name} : {p.type}" for p in block.params if p.attrs["number"] < block.notes["own"])
            yield f"{indent}  block{i}({own}):"
            yield from _statements(module, block, indent + "    ", groups)
            yield f"{indent}    -> ({_results(block)})"


def _results(graph: Graph) -> str:
    root = graph.root
    if root is None:
        return ""
    values = root.operands if root.synthetic and root.op.name == "tuple" else (root,)
    return ", ".join(f"%{v.name}" for v in values)


def _attributes(attrs: Mapping[str, object]) -> str:
    if not attrs:
        return ""
    return "[" + ", ".join(f"{key}={value_text(value)}" if key else value_text(value) for key, value in attrs.items()) + "]"


def value_text(value: object) -> str:
    """A value as PyTorch writes it: floats with 17 digits, strings quoted."""
    if isinstance(value, TensorText | Opaque):
        return value.text
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, complex):
        return f"{_float(value.real)}{'' if value.imag < 0 else '+'}{_float(value.imag)}j"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'
    if isinstance(value, List):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{value_text(k)}: {value_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, TupleType | Type):
        return str(value)
    if isinstance(value, tuple):
        if value and all(isinstance(v, Type) for v in value):
            return ", ".join(map(str, value))
        return "(" + ", ".join(map(value_text, value)) + ("," if len(value) == 1 else "") + ")"
    return str(value)


def _float(value: float) -> str:
    text = f"{value:.17g}"
    return text if any(c in text for c in ".en") else (text + "." if abs(value) < 1e10 else text)
