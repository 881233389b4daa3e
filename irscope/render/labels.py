"""Short words for a node: what it does, with the attributes that one looks for."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from irscope.analysis.summary import describe_type
from irscope.graph import Graph, Node, TensorType
from irscope.ops.attrs import ConvDims, Literal, Window
from irscope.render.units import short

_PLUMBING = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
MAX_LITERAL = 24
MAX_SHAPE = 48


def headline(node: Node) -> str:
    """The operator and its main attribute: ``reduce add {2}``, ``convolution 3x3/2``, ``fusion kLoop``."""
    detail = _DETAILS.get(node.op.name)
    extra = detail(node) if detail is not None else ""
    if not extra and node.bodies and node.op.name not in ("fusion", "while", "conditional"):
        extra = body_name(node.bodies[0])
    return f"{node.op.name} {extra}".rstrip()


def inside_text(node: Node) -> str:
    """What a fusion does: the operators in its body, the most frequent first; empty for any other node."""
    if node.op.name != "fusion" or not node.bodies:
        return ""
    steps = Counter(n.op.name for n in node.bodies[0].nodes if n.op.name not in _PLUMBING)
    return short(", ".join(f"{op} {n}" if n > 1 else op for op, n in steps.most_common(5)), MAX_SHAPE)


def shape_text(node: Node) -> str:
    """The type, without layouts, cut where it is long."""
    return short(describe_type(node.type), MAX_SHAPE)


def literal_text(node: Node) -> str:
    """The value of a constant when it is short, else its type."""
    if node.op.name == "prim::GetAttr":
        return f".{node.attrs.get('name', node.name)}"
    if node.op.name == "prim::Constant":
        return short(str(node.attrs.get("value", "None")), MAX_LITERAL)
    literal = node.attrs.get("literal")
    if isinstance(literal, Literal) and not literal.elided and literal.text is not None and len(literal.text) <= MAX_LITERAL:
        return " ".join(literal.text.split())
    return f"constant {describe_type(node.type)}"


def body_name(body: Graph) -> str:
    """What a small body does: the operator, when it applies a single one to its parameters; else the body's name.

    A reducer ``region_0 {a = parameter(0) b = parameter(1) ROOT add(a, b)}`` is ``add``.
    """
    root = body.root
    if root is not None and root.operands and all(o.op.name == "parameter" for o in root.operands):
        return root.op.name
    return body.name


def _braces(key: str) -> Callable[[Node], str]:
    def text(node: Node) -> str:
        value = node.attrs.get(key)
        return "{" + ",".join(map(str, value)) + "}" if isinstance(value, tuple) else str(value) if value is not None else ""
    return text


def _window(window: Any) -> str:
    if not isinstance(window, Window) or not window.size:
        return ""
    text = "x".join(map(str, window.size))
    if any(s != 1 for s in window.stride):
        text += "/" + ("x".join(map(str, window.stride)) if len(set(window.stride)) > 1 else str(window.stride[0]))
    return text


def _reduce(node: Node) -> str:
    return f"{body_name(node.bodies[0]) if node.bodies else ''} {_braces('dimensions')(node)}"


def _reduce_window(node: Node) -> str:
    return f"{body_name(node.bodies[0]) if node.bodies else ''} {_window(node.attrs.get('window'))}"


def _convolution(node: Node) -> str:
    text = _window(node.attrs.get("window"))
    groups = node.attrs.get("feature_group_count", 1)
    dims = node.attrs.get("dim_labels")
    return text + (f" groups {groups}" if groups != 1 else "") + ("" if text or not isinstance(dims, ConvDims) else str(dims))


def _slice(node: Node) -> str:
    parts = node.attrs.get("slice")
    shape = node.operands[0].type.shape if node.operands and isinstance(node.operands[0].type, TensorType) else ()
    if not isinstance(parts, tuple):
        return ""
    shown = []
    for i, part in enumerate(parts):
        whole = i < len(shape) and part[:2] == (0, shape[i]) and part[2] == 1
        shown.append(":" if whole else f"{part[0]}:{part[1]}" + (f":{part[2]}" if part[2] != 1 else ""))
    return "[" + ",".join(shown) + "]"


def _dot(node: Node) -> str:
    left, right = node.attrs.get("lhs_contracting_dims", ()), node.attrs.get("rhs_contracting_dims", ())
    if not left and not right:
        return "outer"
    return f"{{{','.join(map(str, left))}}}x{{{','.join(map(str, right))}}}"


def _text(key: str) -> Callable[[Node], str]:
    return lambda node: str(node.attrs.get(key, "")).strip('"')


_DETAILS: dict[str, Callable[[Node], str]] = {
    **dict.fromkeys(("broadcast", "transpose", "concatenate", "reverse", "sort", "all-gather"), _braces("dimensions")),
    "reduce": _reduce, "reduce-window": _reduce_window, "convolution": _convolution, "slice": _slice, "dot": _dot,
    "compare": _text("direction"), "fusion": _text("kind"), "custom-call": _text("custom_call_target"), "iota": _text("iota_dimension"),
    "get-tuple-element": _text("index"), "rng": _text("distribution"), "fft": _text("fft_type"),
    "prim::GetAttr": _text("name"), "prim::Constant": _text("value"),
    "rng-bit-generator": _text("algorithm"), "parameter": _text("number"),
}
