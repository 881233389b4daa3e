"""Infers the types that a Relay text omits: forwards from the parameters, and back to weights whose shape the attributes determine.

    %0 = nn.dense(%x, %w, units=64);      %x is (1, 128): %w must be (64, 128), and %0 is (1, 64)

Types in the text are kept; a checker compares them with the inferred ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

from irscope.formats.relay.algebra import each, layout_axes
from irscope.formats.relay.convolution_types import deformable
from irscope.formats.relay.cursor import MAX_DEPTH
from irscope.formats.relay.declarations import Attributes, declared
from irscope.graph import UNKNOWN, FunctionType, Graph, Module, Node, TensorType, TupleType, Type
from irscope.graph.types import Dim
from irscope.ops import TypeFault


def fill_types(module: Module) -> None:
    """Infer every type that others determine, in place."""
    inner = {body for graph in module.graphs.values() for node in graph.nodes if node.op.name != "call" for body in node.bodies}
    started: set[Graph] = set()
    called: set[Graph] = set()
    for graph in module.graphs.values():
        if graph in inner or graph in started:
            continue
        started.add(graph)
        stack = [_walk(graph, called)]
        while stack:
            body = next(stack[-1], None)
            if body is None:
                stack.pop()
            elif body not in started:
                started.add(body)
                stack.append(_walk(body, called))


def _walk(graph: Graph, called: set[Graph]) -> Iterator[Graph]:
    """Type the nodes of a graph in order; yields the graphs that must be typed first. ``called`` are the bodies of called functions."""
    for node in graph.nodes:
        if node.bodies:
            yield from _before(node)
        if node.type is not UNKNOWN and not _part_open(node.type):
            if node.op.dialect == "relay":
                _solve(node)
            continue
        made = _type(node, called)
        if made is not UNKNOWN:
            node.type = made


def _part_open(type: Type) -> bool:
    return isinstance(type, FunctionType) and type.result is UNKNOWN


def _before(node: Node) -> Iterator[Graph]:
    """The bodies of a node, with their parameters typed as far as the operands determine them."""
    name = node.op.name
    if name == "call":
        callee = node.bodies[0]
        _pass(callee.params[: callee.notes.get("own", len(callee.params))], node.operands)
        yield callee
    elif name == "fn":
        body = node.bodies[0]
        own = body.notes.get("own", len(body.params))
        _pass(body.params[own:], node.operands)
        if all(p.type is not UNKNOWN for p in body.params[:own]):
            yield body
    elif name in ("if", "match"):
        at = 1
        for body in node.bodies:
            n = body.notes.get("captures", 0)
            _pass(body.params[len(body.params) - n :] if n else [], node.operands[at : at + n])
            if name == "match" and body.params and body.params[0].type is UNKNOWN:
                body.params[0].type = node.operands[0].type
            at += n
            yield body


def _pass(params: Any, operands: Any) -> None:
    for param, operand in zip(params, operands, strict=False):
        if param.type is UNKNOWN:
            param.type = operand.type


def _type(node: Node, called: set[Graph]) -> Type:
    """The type of a node whose bodies are typed."""
    name = node.op.name
    if name == "tuple":
        types = tuple(o.type for o in node.operands)
        if UNKNOWN in types:
            return UNKNOWN
        filled = TupleType(types)
        return filled if filled.depth <= MAX_DEPTH else UNKNOWN
    if name == "get-tuple-element":
        whole, index = node.operands[0].type, int(node.attrs["index"])
        return whole.elements[index] if isinstance(whole, TupleType) and index < len(whole.elements) else UNKNOWN
    if name == "fn":
        body = node.bodies[0]
        params = tuple(p.type for p in body.params[: body.notes.get("own", len(body.params))])
        return FunctionType(params, _result(body))
    if name == "call":
        if node.bodies:
            return _result(node.bodies[0])
        return _called(node, called)
    if name == "if":
        return next((b.root.type for b in node.bodies if b.root is not None and b.root.type is not UNKNOWN), UNKNOWN)
    if node.op.infer is None or node.op.dialect != "relay":
        return UNKNOWN
    _solve(node)
    if any(o.type is UNKNOWN for o in node.operands):
        return UNKNOWN
    try:
        return node.op.infer(node)
    except TypeFault:
        return UNKNOWN


def _called(node: Node, called: set[Graph]) -> Type:
    """Type the call of a function value: the arguments type what the function left open."""
    if not node.operands:
        return UNKNOWN
    callee = node.operands[0]
    if isinstance(callee.type, FunctionType) and callee.type.result is not UNKNOWN:
        return callee.type.result
    if callee.op.name == "fn":
        body = callee.bodies[0]
        own = body.params[: body.notes.get("own", len(body.params))]
        before = [param.type for param in own]
        _pass(own, node.operands[1:])
        if body not in called or before != [param.type for param in own]:
            # Each call of a function whose result stays unknown would type it again, and the functions in it as often: 2 ** depth times.
            called.add(body)
            for inner in _walk(body, called):
                for _ in _walk(inner, called):
                    pass
        # The caller must pass a weight of the type that the body has solved.
        _pass((o for o in node.operands[1:] if o.op.name == "parameter"),
              (p for o, p in zip(node.operands[1:], body.params, strict=False) if o.op.name == "parameter"))
        callee.type = _type(callee, called)
        return _result(body)
    return UNKNOWN


def _result(graph: Graph) -> Type:
    declared_result: Type = graph.notes.get("result", UNKNOWN)
    return declared_result if declared_result is not UNKNOWN else graph.root.type if graph.root is not None else UNKNOWN


# ---------------------------------------------------------------------- weights


def _solve(node: Node) -> None:
    """Type the untyped operands that the operator's attributes and data determine."""
    rule = SOLVED.get(node.op.name)
    if rule is None or all(o.type is not UNKNOWN for o in node.operands[1:]):
        return
    data = node.operands[0].type
    found = declared(node.op.name)
    if found is None or not isinstance(data, TensorType):
        return
    try:
        types = rule(found.checked([o.type for o in node.operands], node.attrs), data)
    except TypeFault:
        return
    for operand, type in zip(node.operands[1:], types, strict=False):
        if operand.type is not UNKNOWN or type is None:
            continue
        if operand.op.name == "parameter":
            operand.type = type
        elif operand.op.name == "constant" and operand.attrs["literal"].elided:
            # An omitted table without types: weights of a model that was printed for people.
            operand.type = type
            operand.attrs = {**operand.attrs, "literal": replace(operand.attrs["literal"], type=type)}


def _dense(a: Attributes, x: TensorType) -> list[TensorType | None]:
    return [TensorType(x.dtype, (a.units, x.shape[-1])) if isinstance(a.units, int) else None]


def _conv(a: Attributes, x: TensorType) -> list[TensorType | None]:
    """``channels``, ``kernel_size`` and ``groups`` in the order that the kernel's layout has, packed layouts (``OIHW4i4o``) included."""
    kernel, data = layout_axes(a.kernel_layout), layout_axes(a.data_layout)
    if a.channels is None or a.kernel_size is None or len(data) != x.rank or not {c.upper() for c, _ in kernel} <= set("OIDHW"):
        return []
    spatial = [c for c in "DHW" if c in a.kernel_layout]
    parts = [size for (c, _), size in zip(data, x.shape, strict=True) if c in "Cc"]
    if not all(isinstance(size, int) for size in parts):
        return []
    channels = prod(size for size in parts if isinstance(size, int))
    groups = int(a.groups)
    sizes: dict[str, int] = dict(zip(spatial, each(a.kernel_size, len(spatial)), strict=True))
    if not {c.upper() if part else c for c, part in kernel} <= {"O", "I", *spatial}:
        return []
    if groups == channels and groups > 1:
        sizes |= {"O": channels, "I": int(a.channels) // channels}
    else:
        sizes |= {"O": int(a.channels), "I": channels // groups}
    for c, part in kernel:
        if part and sizes[c.upper()] % part:
            return []
        sizes[c.upper()] //= part or 1
    return [TensorType(x.dtype, tuple(part or sizes[c] for c, part in kernel))]


def _conv_transpose(a: Attributes, x: TensorType) -> list[TensorType | None]:
    if not 3 <= x.rank <= 5:
        return []
    letters = "NC" + "DHW"[5 - x.rank :]
    plain = sorted(str(a.kernel_layout)) == sorted("IO" + letters[2:]) and sorted(str(a.data_layout)) == sorted(letters)
    if a.channels is None or a.kernel_size is None or not plain:
        return []
    spatial = [c for c in "DHW" if c in a.kernel_layout]
    sizes: dict[str, Dim] = dict(zip(spatial, each(a.kernel_size, len(spatial)), strict=True))
    sizes |= {"I": x.shape[a.data_layout.index("C")], "O": int(a.channels) // int(a.groups)}
    return [TensorType(x.dtype, tuple(sizes[c] for c in a.kernel_layout))]


def _deformable(a: Attributes, x: TensorType) -> list[TensorType | None]:
    found = deformable(a, x, None)
    return [found.offset, found.weight] if found is not None else []


def _along(count: int) -> Callable[[Attributes, TensorType], list[TensorType | None]]:
    """Vectors as long as the axis."""
    return lambda a, x: [TensorType(x.dtype, (x.shape[a.axis],))] * count if -x.rank <= a.axis < x.rank else []


SOLVED: dict[str, Callable[[Attributes, TensorType], list[TensorType | None]]] = {
    "nn.dense": _dense,
    "nn.conv1d": _conv,
    "nn.conv2d": _conv,
    "nn.conv2d_relu": _conv,
    "nn.conv3d": _conv,
    "nn.conv1d_transpose": _conv_transpose,
    "nn.conv2d_transpose": _conv_transpose,
    "nn.conv3d_transpose": _conv_transpose,
    "nn.deformable_conv2d": _deformable,
    "nn.bias_add": _along(1),
    "nn.prelu": _along(1),
    "nn.batch_norm": _along(4),
    "nn.layer_norm": _along(2),
    "nn.instance_norm": _along(2),
    "nn.group_norm": _along(2),
}
