"""Short texts for a node: what it does, with its main attributes."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from irscope.analysis.calls import is_fusion
from irscope.analysis.naming import Naming
from irscope.analysis.summary import describe_type
from irscope.formats.torchscript import attributes as torch_attributes
from irscope.formats.torchscript import structure as torch
from irscope.graph import Graph, Node, Op, TensorType
from irscope.graph.attributes import attribute
from irscope.ops import attributes, hlo
from irscope.ops.attrs import Window
from irscope.render.units import short

_PLUMBING = hlo.named("parameter constant tuple get-tuple-element bitcast")
_CONTROL = hlo.named("fusion while conditional")
MAX_LITERAL = 24
MAX_SHAPE = 48
MAX_NAME = 34


def headline(node: Node) -> str:
    """The operator and its main attribute: ``reduce add {2}``, ``convolution 3x3/2``, ``fusion kLoop``."""
    detail = _DETAILS.get(node.op)
    extra = detail(node) if detail is not None else ""
    if not extra and node.bodies and node.op not in _CONTROL:
        extra = body_name(node.bodies[0])
    return f"{node.op.name} {extra}".rstrip()


def work_title(node: Node, naming: Naming) -> str:
    """What a fusion computes: ``matmul 768x3072 + gelu``; the headline of any other node."""
    return (short(naming.work_of((node,)), MAX_SHAPE) if is_fusion(node) else "") or headline(node)


def inside_text(node: Node) -> str:
    """What a fusion does: the operators in its body, the most frequent first; empty for any other node."""
    if not is_fusion(node) or not node.bodies:
        return ""
    steps = Counter(n.op.name for n in node.bodies[0].nodes if n.op not in _PLUMBING)
    return short(", ".join(f"{op} {n}" if n > 1 else op for op, n in steps.most_common(5)), MAX_SHAPE)


def shape_text(node: Node) -> str:
    """The type, without layouts, cut where it is long."""
    return short(describe_type(node.type), MAX_SHAPE)


def name_text(name: str) -> str:
    """``%add.3``, cut to :data:`MAX_NAME` characters, of which ``%`` is one."""
    return short(f"%{name}", MAX_NAME)


def box_lines(node: Node) -> list[str]:
    """The lines of a box below its title: what a fusion does, the type, the name."""
    return [text for text in (inside_text(node), shape_text(node), name_text(node.name)) if text]


def literal_text(node: Node) -> str:
    """The value of a constant when it is short, else its type."""
    if node.op is torch.GET_ATTR:
        return f".{torch_attributes.GetAttr.name.given(node) or node.name}"
    if node.op is torch.CONSTANT:
        return short(str(torch_attributes.Constant.of(node).value), MAX_LITERAL)
    literal = attributes.Constant.literal.given(node)
    if literal is not None and not literal.elided and literal.text is not None and len(literal.text) <= MAX_LITERAL:
        return " ".join(literal.text.split())
    return f"constant {describe_type(node.type)}"


def body_name(body: Graph) -> str:
    """What a small body does: the operator, when it applies a single one to its parameters; else the body's name.

    A reducer ``region_0 {a = parameter(0) b = parameter(1) ROOT add(a, b)}`` is ``add``.
    """
    root = body.root
    if root is not None and root.operands and all(o.op is hlo.parameter for o in root.operands):
        return root.op.name
    return body.name


def _braces(field: attribute[tuple[int, ...]]) -> Callable[[Node], str]:
    def text(node: Node) -> str:
        value = field.given(node)
        return "{" + ",".join(map(str, value)) + "}" if value is not None else ""
    return text


def _text(field: attribute[Any]) -> Callable[[Node], str]:
    def text(node: Node) -> str:
        value = field.given(node)
        return str(value).strip('"') if value is not None else ""
    return text


def _window(window: Window | None) -> str:
    if window is None or not window.size:
        return ""
    text = "x".join(map(str, window.size))
    if any(s != 1 for s in window.stride):
        text += "/" + ("x".join(map(str, window.stride)) if len(set(window.stride)) > 1 else str(window.stride[0]))
    return text


_reduced = _braces(attributes.Reduce.dimensions)


def _reduce(node: Node) -> str:
    return f"{body_name(node.bodies[0]) if node.bodies else ''} {_reduced(node)}"


def _reduce_window(node: Node) -> str:
    return f"{body_name(node.bodies[0]) if node.bodies else ''} {_window(attributes.Windowed.of(node).window)}"


def _convolution(node: Node) -> str:
    attrs = attributes.Convolution.of(node)
    text, groups, dims = _window(attrs.window), attrs.feature_group_count, attributes.Convolution.dim_labels.given(node)
    return text + (f" groups {groups}" if groups != 1 else "") + ("" if text or dims is None else str(dims))


def _slice(node: Node) -> str:
    parts = attributes.Slice.slice.given(node)
    shape = node.operands[0].type.shape if node.operands and isinstance(node.operands[0].type, TensorType) else ()
    if parts is None:
        return ""
    shown = []
    for i, part in enumerate(parts):
        whole = i < len(shape) and part[:2] == (0, shape[i]) and part[2] == 1
        shown.append(":" if whole else f"{part[0]}:{part[1]}" + (f":{part[2]}" if part[2] != 1 else ""))
    return "[" + ",".join(shown) + "]"


def _dot(node: Node) -> str:
    left, right = attributes.Dot.of(node).lhs_contracting_dims, attributes.Dot.of(node).rhs_contracting_dims
    if not left and not right:
        return "outer"
    return f"{{{','.join(map(str, left))}}}x{{{','.join(map(str, right))}}}"


_DETAILS: dict[Op, Callable[[Node], str]] = {
    **dict.fromkeys(hlo.named("broadcast transpose concatenate reverse sort all-gather"), _reduced),
    hlo.reduce: _reduce, hlo.reduce_window: _reduce_window, hlo.convolution: _convolution, hlo.slice: _slice, hlo.dot: _dot,
    hlo.compare: _text(attributes.Compare.direction), hlo.fusion: _text(attributes.Fusion.kind), hlo.fft: _text(attributes.Fft.fft_type),
    hlo.custom_call: _text(attributes.CustomCall.custom_call_target), hlo.iota: _text(attributes.Iota.iota_dimension),
    hlo.get_tuple_element: _text(attributes.GetTupleElement.index), hlo.parameter: _text(attributes.Parameter.number),
    hlo.rng: _text(attributes.Random.distribution), hlo.rng_bit_generator: _text(attributes.Random.algorithm),
    torch.GET_ATTR: _text(torch_attributes.GetAttr.name), torch.CONSTANT: _text(torch_attributes.Constant.value),
}
