"""Dynamic operators whose shapes are constants are the static ones."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from irscope.graph import Builder, Module, Node
from irscope.ops import get
from irscope.passes.base import Pass, rewritten

STATIC: dict[str, tuple[str, dict[int, str]]] = {
    "dyn.reshape": ("reshape", {1: "newshape"}),
    "dyn.broadcast_to": ("broadcast_to", {1: "shape"}),
    "dyn.tile": ("tile", {1: "reps"}),
    "dyn.zeros": ("zeros", {0: "shape"}),
    "dyn.ones": ("ones", {0: "shape"}),
    "dyn.full": ("full", {1: "shape"}),
    "dyn.expand_dims": ("expand_dims", {1: "axis"}),
    "dyn.squeeze": ("squeeze", {1: "axis"}),
    "dyn.topk": ("topk", {1: "k"}),
    "dyn.one_hot": ("one_hot", {3: "depth"}),
    "dyn.strided_slice": ("strided_slice", {1: "begin", 2: "end", 3: "strides"}),
    "dyn.nn.pad": ("nn.pad", {1: "pad_width"}),
}
"""The static operator, and which operand becomes which attribute."""


class DynamicToStatic(Pass):
    """Write constant operands of ``dyn.*`` operators as the attributes of the operators that take them so.

        dyn.reshape(%x, [2, 8])         ->         reshape(%x, newshape=[2, 8])

    What was not known before the program ran is known then, for fusion too: ``dyn.*`` is opaque to it.
    """

    name: ClassVar[str] = "dynamic-to-static"
    opt_level: ClassVar[int] = 3
    requires = ("infer-types",)

    def run(self, module: Module) -> Module:
        return rewritten(module, _static) if module.format == "relay" else module


def _static(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    found = STATIC.get(node.op.name)
    if found is None:
        return None
    name, attributes = found
    if any(at >= len(operands) or operands[at].op.name != "constant" or operands[at].attrs["literal"].elided for at in attributes):
        return None
    # The dynamic operators repeat the attributes without saying them.
    attrs: dict[str, Any] = {k: v for k, v in node.attrs.items() if k not in attributes.values()}
    attrs |= {key: operands[at].attrs["literal"].value().tolist() for at, key in attributes.items()}
    if name == "expand_dims" and isinstance(attrs["axis"], list):
        attrs["axis"] = attrs["axis"][0]
    kept = [o for at, o in enumerate(operands) if at not in attributes]
    return builder.add(get(name, "relay"), kept, attrs, None, name=node.name)
