"""Layers that read the same value are one wider layer."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from irscope.graph import Graph, Module, Node, TensorType
from irscope.ops import get
from irscope.passes.base import Pass
from irscope.passes.simplify_inference import bound
from irscope.passes.visitor import GraphMutator

MEMBERS = frozenset(("nn.dense", "nn.conv2d", "nn.batch_matmul"))


class CombineParallel(Pass):
    """Concatenate the weights of dense layers, convolutions or batched products that read the same value, and slice the result.

        %0 = nn.dense(%x, %q, units=8);              %0 = (%q, %k, %v);
        %1 = nn.dense(%x, %k, units=8);       ->     %1 = concatenate(%0, axis=0);
        %2 = nn.dense(%x, %v, units=8);              %2 = nn.dense(%x, %1, units=24);
                                                     %3 = strided_slice(%2, begin=[0, 0], end=[-1, 8], ...);  ...

    ``min-branches`` says from how many on. Attributes, kernel sizes and element types must be equal; grouped convolutions stay.
    """

    name: ClassVar[str] = "combine-parallel"
    requires = ("infer-types",)
    opt_level: ClassVar[int] = 4

    def __init__(self, min_branches: int = 3) -> None:
        self.min_branches = min_branches

    def run(self, module: Module) -> Module:
        return _Combining(self.min_branches).run(module) if module.format == "relay" else module


class _Combining(GraphMutator):
    def __init__(self, min_branches: int) -> None:
        self.min_branches = min_branches

    def begin(self, graph: Graph) -> None:
        """Find the groups: members whose weights are there before the first of them."""
        found: dict[Any, list[Node]] = {}
        for node in graph.nodes:
            key = _key(node)
            if key is None:
                continue
            members = found.setdefault(key, [])
            weight = node.operands[1]
            if not members or weight.index < members[0].index or weight.op.name == "parameter":
                members.append(node)
        self.group = {node: members for members in found.values() if len(members) >= self.min_branches for node in members}
        self.wide: dict[Node, Node] = {}

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        members = self.group.get(node)
        if members is None:
            return None
        axis, place = _axes(node)
        first = members[0]
        if first not in self.wide:
            self.wide[first] = self._combined(members, operands[0], place)
        begin = sum(_width(m, axis) for m in members[:members.index(node)])
        rank = node.type.rank  # type: ignore[attr-defined]
        return self.add("strided_slice", [self.wide[first]], None, begin=[begin if d == axis else 0 for d in range(rank)],
                        end=[_width(node, axis) if d == axis else -1 for d in range(rank)], strides=[1] * rank, slice_mode="size")

    def _combined(self, members: Sequence[Node], data: Node, place: int) -> Node:
        weights = self.builder.add(get("tuple"), [self.new(m.operands[1]) for m in members])
        weight = self.add("concatenate", [weights], axis=place)
        attrs = dict(members[0].attrs)
        total = sum(_width(m, _axes(m)[0]) for m in members)
        if members[0].op.name != "nn.batch_matmul":
            attrs["units" if members[0].op.name == "nn.dense" else "channels"] = total
        elif place == 1 and weight.type.shape[1] == weight.type.shape[2]:  # type: ignore[attr-defined]
            attrs["transpose_b"] = True
        return self.add(members[0].op.name, [data, weight], **attrs)


def _key(node: Node) -> Any:
    """Equal for nodes that may be combined; None for what never is."""
    if node.op.name not in MEMBERS or not isinstance(node.type, TensorType) or not node.type.is_static:
        return None
    weight = node.operands[1].type
    if not isinstance(weight, TensorType):
        return None
    if node.op.name == "nn.batch_matmul" and node.type.rank != 3:
        return None
    given = dict(bound(node))
    units = given.pop("units", None), given.pop("channels", None)
    if node.op.name == "nn.conv2d":
        layouts = str(given["data_layout"]), str(given["kernel_layout"])
        if given["groups"] != 1 or given["out_layout"] or any(c.isdigit() for text in layouts for c in text):
            return None
    _, place = _axes(node)
    rest = tuple(size for d, size in enumerate(weight.shape) if d != place)
    return node.op.name, node.operands[0], repr(sorted(given.items(), key=str)), rest, weight.dtype, units[0] is None


def _axes(node: Node) -> tuple[int, int]:
    """The axis of the result, and that of the weight, along which layers lie side by side."""
    given = bound(node)
    if node.op.name == "nn.dense":
        return node.type.rank - 1, 0  # type: ignore[attr-defined]
    if node.op.name == "nn.batch_matmul":
        # Old texts transpose the second operand without saying so: the shapes tell.
        x, y = (o.type.shape for o in node.operands)  # type: ignore[attr-defined]
        k = x[-2] if given["transpose_a"] else x[-1]
        return 2, 1 if given["transpose_b"] or (not given["transpose_a"] and y[1] != k) else 2
    return str(given["data_layout"]).index("C"), str(given["kernel_layout"]).index("O")


def _width(node: Node, axis: int) -> int:
    size = node.type.shape[axis]  # type: ignore[attr-defined]
    assert isinstance(size, int), "only static types are combined"
    return size
