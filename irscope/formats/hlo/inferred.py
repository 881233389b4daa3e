"""Infers the result types that a text omits, as XLA's parser does.

Where an operator keeps the dimensions of an operand, XLA's shape inference copies the operand's type with its layout;
every other result has the default layout (xla/service/shape_inference.cc; measured with jaxlib 0.10.2 for each operator that may
omit its type, with operands of two layouts and with tiles).
"""
from __future__ import annotations

from irscope.formats.hlo.assembly import Assembly
from irscope.formats.hlo.faults import MISSING_TYPE, Span
from irscope.formats.hlo.types import is_possible
from irscope.graph import UNKNOWN, Kind, Layout, Node, TensorType, TupleType, Type, same_type
from irscope.ops.faults import TypeFault

_LIKE_FIRST = frozenset((
    "reverse copy sort cholesky fft batch-norm-inference scatter set-dimension-size select-and-scatter add-dependency domain "
    "while").split())
_LIKE_SECOND = frozenset(("clamp", "triangular-solve"))


def infer(assembly: Assembly, node: Node, word: str, word_at: int) -> Type:
    """The type of an instruction that omits it; reports it and returns UNKNOWN where the operands do not determine it.

    The number of operands and the attributes must be those of the opcode: type inference relies on them.
    """
    if any(operand.type is UNKNOWN for operand in node.operands):
        return UNKNOWN
    message, help = f"the type of {word} is omitted, and cannot be inferred from its operands", f"write it before {word}"
    if node.op.infer is not None:
        try:
            type = node.op.infer(node)
            if is_possible(type):
                return assembly.types.keep(_lying(node, type))
            message = f"the type of {word} is omitted, and what follows from its operands, {type}, is too large"
        except TypeFault as fault:
            message, help = f"the type of {word} is omitted, and cannot be inferred: {fault.message}", fault.help
    assembly.tell(MISSING_TYPE, message, Span(word_at, len(word), node.name), help)
    return UNKNOWN


def _lying(node: Node, type: Type) -> Type:
    """The type with the layout of the operand type that XLA copies."""
    like = _like(node, type)
    if like is None:
        return type
    if isinstance(type, TupleType):
        return like if same_type(like, type) else type
    if not isinstance(type, TensorType) or not isinstance(like, TensorType) or like.rank != type.rank:
        return type
    layout = like.layout
    if node.op.name == "transpose" and type.rank > 1:
        by_itself = Layout(tuple(reversed(range(type.rank))))
        layout = _permuted(layout or by_itself, node.attrs["dimensions"])
        if like.layout is None and layout == by_itself:
            return type
    return TensorType(type.dtype, type.shape, layout) if layout is not None else type


def _like(node: Node, type: Type) -> Type | None:
    """The operand type that XLA copies; None where the result has the default layout."""
    name, operands = node.op.name, node.operands
    if name == "tuple" or (name == "sort" and isinstance(type, TupleType)):
        return TupleType(tuple(operand.type for operand in operands))
    if name == "get-tuple-element" and isinstance(operands[0].type, TupleType):
        index: int = node.attrs["index"]
        return operands[0].type.elements[index]
    if name == "batch-norm-training" and isinstance(type, TupleType):
        return TupleType((operands[0].type, *type.elements[1:]))
    if name in ("call", "conditional"):
        root = node.bodies[0].root
        return root.type if root is not None else None
    if name == "select":
        chooser = operands[0].type
        return chooser if isinstance(chooser, TensorType) and chooser.rank else operands[1].type
    if name in _LIKE_SECOND:
        return operands[1].type
    if name in _LIKE_FIRST or name == "transpose" or (node.op.kind is Kind.ELEMENTWISE and name != "map" and operands):
        return operands[0].type
    return None


def _permuted(layout: Layout, dimensions: tuple[int, ...]) -> Layout:
    """The layout after renaming dimension ``dimensions[i]`` to ``i``: elements do not move."""
    new = {old: i for i, old in enumerate(dimensions)}
    return Layout(tuple(new[old] for old in layout.minor_to_major), layout.rest, layout.memory_space)
