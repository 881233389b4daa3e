"""Shape specialisation: replaces dynamic operators with constant shapes by static ones."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.graph import UNKNOWN, Graph, Module, Node, Type
from irscope.ops import TypeFault, get, hlo
from irscope.ops.attributes import GetTupleElement
from irscope.ops.sets import relay
from irscope.passes.base import RelayPass
from irscope.passes.early_values import EarlyValues
from irscope.passes.op_table import OpTable
from irscope.passes.visitor import GraphMutator

ATTRIBUTES: dict[str, dict[int, str]] = {
    "reshape": {1: "newshape"},
    "broadcast_to": {1: "shape"},
    "tile": {1: "reps"},
    "zeros": {0: "shape"},
    "ones": {0: "shape"},
    "full": {1: "shape"},
    "expand_dims": {1: "axis"},
    "squeeze": {1: "axis"},
    "topk": {1: "k"},
    "one_hot": {3: "depth"},
    "strided_slice": {1: "begin", 2: "end", 3: "strides"},
    "nn.pad": {1: "pad_width"},
    "nn.upsampling": {1: "scale_h", 2: "scale_w"},
    "nn.upsampling3d": {1: "scale_d", 2: "scale_h", 3: "scale_w"},
    "image.resize2d": {1: "size", 2: "roi"},
    "sparse_to_dense": {3: "output_shape"},
}
"""By the static operator, which operand of the dynamic one becomes which attribute: those that TVM's DynamicToStatic knows."""

STATIC = OpTable(*((relay(f"dyn.{name}"), (name, attributes)) for name, attributes in ATTRIBUTES.items()))

NUMBERS = frozenset((
    ("expand_dims", "axis"), ("topk", "k"), ("one_hot", "depth"), ("nn.upsampling", "scale_h"), ("nn.upsampling", "scale_w"),
    ("nn.upsampling3d", "scale_d"), ("nn.upsampling3d", "scale_h"), ("nn.upsampling3d", "scale_w")))
"""Attributes that are one number; the others are lists."""


class DynamicToStatic(RelayPass):
    """Replace ``dyn.*`` operators by static ones, whose attributes are the known operands.

        %0 = shape_of(%y);
        dyn.reshape(%x, %0)             ->             reshape(%x, newshape=[2, 8])

    Known are constants, shapes from static types, and values computed from these; each new static shape can make others known. ``dyn.*``
    is opaque to fusion, the static operators are not.
    """

    name = "dynamic-to-static"
    opt_level = 3

    def rewrite(self, module: Module) -> Module:
        return self.mutated(_Making(), module)


class _Making(GraphMutator):
    def begin(self, graph: Graph) -> None:
        self.known = EarlyValues()

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        made = self._static(node, operands)
        if made is not None:
            return made
        if node.bodies or all(new.type == old.type for new, old in zip(operands, node.operands, strict=True)):
            return None
        # A shape that was dynamic before may be static now.
        made = self.builder.copy(node, operands)
        made.type = _inferred(made)
        return made

    def _static(self, node: Node, operands: Sequence[Node]) -> Node | None:
        found = STATIC.get(node.op)
        if found is None:
            return None
        name, attributes = found
        values: dict[str, object] = {}
        for at, key in attributes.items():
            value = self.known.of(operands[at]) if at < len(operands) else None
            if value is None or isinstance(value, list):
                self.declined.append(f"left %{node.name}: its {key} is not known before the program runs")
                return None
            flat = value.reshape(-1).tolist()
            pairs = [flat[i:i + 2] for i in range(0, len(flat), 2)]
            values[key] = flat[0] if (name, key) in NUMBERS else pairs if key == "pad_width" else flat
        # The dynamic operators have the same attributes implicitly.
        attrs: Mapping[str, object] = {k: v for k, v in node.attrs.items() if k not in attributes.values()} | values
        kept = [o for at, o in enumerate(operands) if at not in attributes]
        made = self.builder.add(get(name, "relay"), kept, attrs, node.type, name=node.name)
        made.type = _inferred(made)
        return made


def _inferred(node: Node) -> Type:
    """The inferred type of an operator; its present type if inference fails."""
    if node.op is hlo.get_tuple_element:
        whole = getattr(node.operands[0].type, "elements", ())
        index = GetTupleElement.of(node).index
        return whole[index] if index < len(whole) else node.type
    if node.op.infer is None:
        return node.type
    try:
        found = node.op.infer(node)
    except TypeFault:
        return node.type
    return node.type if found is UNKNOWN else found
