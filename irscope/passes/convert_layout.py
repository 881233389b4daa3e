"""Convolutions, and what follows them, work in the layout that is asked for."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from irscope.graph import Graph, Kind, Module, Node, TensorType
from irscope.ops import get
from irscope.passes.base import Pass
from irscope.passes.canonicalize_cast import is_cast
from irscope.passes.simplify_inference import bound
from irscope.passes.visitor import GraphMutator
from irscope.source import UserError

KERNELS = {"NHWC": "HWIO", "NCHW": "OIHW"}
"""The layout of weights that goes with one of data."""

POOLS = frozenset(("nn.max_pool2d", "nn.avg_pool2d", "nn.global_max_pool2d", "nn.global_avg_pool2d", "nn.adaptive_avg_pool2d",
                   "nn.adaptive_max_pool2d"))


class ConvertLayout(Pass):
    """Let two-dimensional convolutions read and write ``layout``, and the pooling, biases and pointwise operators behind them too.

        %0 = nn.conv2d(%x, %w);          ->      %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
        nn.relu(%0)                              %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
                                                 %2 = nn.conv2d(%0, %1, data_layout="NHWC", kernel_layout="HWIO");
                                                 %3 = nn.relu(%2);
                                                 layout_transform(%3, src_layout="NHWC", dst_layout="NCHW")

    Transformations stand at the borders alone: where a value enters from, or goes to, operators that keep their layout.
    """

    name: ClassVar[str] = "convert-layout"
    opt_level: ClassVar[int] = 3
    requires = ("infer-types",)

    def __init__(self, layout: str = "NHWC") -> None:
        if layout not in KERNELS:
            raise UserError(f"convert-layout knows no layout {layout!r}", f"it knows {' and '.join(KERNELS)}")
        self.layout = layout

    def run(self, module: Module) -> Module:
        return _Converting(self.layout).run(module) if module.format == "relay" else module


class _Converting(GraphMutator):
    """``far`` holds, by node as written, its value in the layout asked for. What turns out unused of both is left out in the end."""

    def __init__(self, layout: str) -> None:
        self.there = layout
        self.here = "NCHW" if layout == "NHWC" else "NHWC"

    def begin(self, graph: Graph) -> None:
        self.far: dict[Node, Node] = {}

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        made = self._converted(node)
        if made is None:
            return None
        self.far[node] = made
        if not isinstance(made.type, TensorType):
            return None
        return self._turned(made, self.there, self.here)

    def _converted(self, node: Node) -> Node | None:
        """The node in the other layout; None where it stays."""
        name = node.op.name
        if name == "nn.conv2d":
            return self._convolution(node)
        first = node.operands[0] if node.operands else None
        if first is None or first not in self.far or node.op.dialect != "relay":
            return self._several(node) if first is not None and name in ("concatenate", *BINARY) else None
        if name in POOLS and bound(node)["layout"] == self.here and not bound(node)["out_layout"]:
            return self.add(name, [self.far[first]], **{**node.attrs, "layout": self.there})
        if name == "nn.bias_add" and int(bound(node)["axis"]) % 4 == self.here.index("C"):
            return self.add(name, [self.far[first], self.new(node.operands[1])], axis=self.there.index("C"))
        if name in BINARY:
            return self._several(node)
        if len(node.operands) == 1 and (node.op.kind is Kind.ELEMENTWISE or is_cast(node)) and name != "trilu" and self._same_shape(node):
            return self.add(name, [self.far[first]], **node.attrs)
        return None

    def _several(self, node: Node) -> Node | None:
        """Operators of several tensors, when all are there in the other layout (or are scalars)."""
        given = node.operands[0].operands if node.op.name == "concatenate" and node.operands[0].op.name == "tuple" else node.operands
        if not any(o in self.far for o in given) or not all(o in self.far or _is_scalar(o) for o in given):
            return None
        values = [self.far[o] if o in self.far else self.new(o) for o in given]
        if node.op.name != "concatenate":
            return self.add(node.op.name, values, **node.attrs)
        if given is node.operands:
            return None
        axis = self.there.index(self.here[int(bound(node)["axis"]) % 4])
        return self.add("concatenate", [self.builder.add(get("tuple"), values)], axis=axis)

    def _convolution(self, node: Node) -> Node | None:
        given, x = bound(node), node.operands[0]
        plain = given["data_layout"] == self.here and not given["out_layout"] and sorted(str(given["kernel_layout"])) == sorted("OIHW")
        if not plain or not isinstance(node.type, TensorType) or not isinstance(x.type, TensorType):
            return None
        if x not in self.far:
            self.far[x] = self._turned(self.new(x), self.here, self.there)
        kernel = node.operands[1]
        source, wanted = str(given["kernel_layout"]), KERNELS[self.there]
        attrs: dict[str, Any] = {**node.attrs, "data_layout": self.there, "kernel_layout": wanted}
        weight = self.new(kernel) if source == wanted else self._turned(self.new(kernel), source, wanted)
        return self.add("nn.conv2d", [self.far[x], weight], **attrs)

    def _turned(self, value: Node, source: str, wanted: str) -> Node:
        return self.add("layout_transform", [value], src_layout=source, dst_layout=wanted)

    @staticmethod
    def _same_shape(node: Node) -> bool:
        mine, its = node.type, node.operands[0].type
        return isinstance(mine, TensorType) and isinstance(its, TensorType) and mine.shape == its.shape


BINARY = frozenset((
    "add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal",
))


def _is_scalar(node: Node) -> bool:
    return isinstance(node.type, TensorType) and node.type.rank == 0
