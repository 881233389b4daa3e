"""Horizontal fusion: combines layers that read the same value into one wider layer."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from irscope.graph import Effect, Graph, Module, Node, TensorType
from irscope.graph.rewrite import copy_node
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.passes.algebra.simplifier import of
from irscope.passes.base import RelayPass
from irscope.passes.combine_parallel_followers import BATCHED, CONVOLUTION, DENSE, Stacked, Wide
from irscope.passes.simplify_inference import bound
from irscope.passes.visitor import GraphMutator

MEMBERS = DENSE | CONVOLUTION | BATCHED


class CombineParallel(RelayPass):
    """Concatenate the weights of dense layers, convolutions or batched products that read the same value, and slice the result.

        %0 = nn.dense(%x, %q, units=8);              %0 = (%q, %k, %v);
        %1 = nn.dense(%x, %k, units=8);       ->     %1 = concatenate(%0, axis=0);
        %2 = nn.dense(%x, %v, units=8);              %2 = nn.dense(%x, %1, units=24);
                                                     %3 = strided_slice(%2, begin=[0, 0], end=[-1, 8], ...);  ...

    Steps that follow all of them alike run once, before the slices: elementwise operators, per-layer biases and scales, new axes.
    ``min-branches`` is the least number of layers; ``to-batch`` stacks dense layers of one size into a batched product, as TVM does by
    default. Attributes, kernel sizes and element types must be equal; grouped convolutions stay.
    """

    name = "combine-parallel"
    opt_level = 4

    def __init__(self, min_branches: int = 3, to_batch: bool = False) -> None:
        self.min_branches = min_branches
        self.to_batch = to_batch

    def rewrite(self, module: Module) -> Module:
        return _Combining(self.min_branches, self.to_batch).run(module)


@dataclass(slots=True, eq=False)
class ParallelLayers:
    """Layers to combine, each with the following steps that are combined too."""

    branches: list[list[Node]]
    combined: Wide | Stacked
    wide: Node | None = field(default=None)
    """The last combined step, once it is built."""

    @property
    def depth(self) -> int:
        return len(self.branches[0])


class _Combining(GraphMutator):
    def __init__(self, min_branches: int, to_batch: bool) -> None:
        self.min_branches = min_branches
        self.to_batch = to_batch

    def begin(self, graph: Graph) -> None:
        """Find the groups, and the steps of each branch that are combined too."""
        self.behind = _behind_layers(graph)
        self.early: dict[Node, Node] = {}
        self.place: dict[Node, tuple[ParallelLayers, int]] = {}
        found: dict[object, list[Node]] = {}
        for node in graph.nodes:
            key = _key(node, self.to_batch) if node.op in MEMBERS else None
            if key is not None:
                members = found.setdefault(key, [])
                if not members or self._is_there(node.operands[1], members[0]):
                    members.append(node)
        for members in found.values():
            if len(members) >= max(self.min_branches, 1):
                self._enter(members)

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if node in self.early:
            return self.early[node]
        found = self.place.get(node)
        if found is None:
            return None
        group, branch = found
        if group.wide is None:
            group.wide = self._built(group)
        # Only the next steps read the steps in between, and they are replaced too.
        return group.combined.part(self, group.wide, branch, node.type) if node is group.branches[branch][-1] else group.wide

    def _enter(self, members: list[Node]) -> None:
        """Record a group, with the longest sequence of steps that all branches share."""
        combined = Stacked(members) if self.to_batch and members[0].op in DENSE else Wide(members, *_axes(members[0]))
        group = ParallelLayers([[m] for m in members], combined)
        while True:
            steps = [self._next(branch[-1]) for branch in group.branches]
            if any(step is None for step in steps) or len(set(steps)) < len(steps):
                break
            taken = [step for step in steps if step is not None]
            others = {o for step, branch in zip(taken, group.branches, strict=True) for o in step.operands if o is not branch[-1]}
            if not all(self._is_there(o, members[0]) for o in others) or not combined.follow(taken, [b[-1] for b in group.branches]):
                break
            for branch, step in zip(group.branches, taken, strict=True):
                branch.append(step)
        for number, branch in enumerate(group.branches):
            for node in branch:
                self.place[node] = (group, number)

    def _next(self, node: Node) -> Node | None:
        """The only user of a node, if it reads the node once; None otherwise."""
        readers = self.users[node.index]
        if len(readers) != 1 or node is self.graph.root or readers[0] in self.place:
            return None
        return readers[0] if readers[0].operands.count(node) == 1 and not readers[0].bodies else None

    def _is_there(self, value: Node, first: Node) -> bool:
        """Whether a value is available at the first layer of a group: it comes before the layer, or depends on no layer.

        So no group can depend on itself: its operands precede all of its layers, or are computed without any layer.
        """
        return value.index < first.index or not self.behind[value.index]

    def _built(self, group: ParallelLayers) -> Node:
        """The combined layers and the steps after them, each built once."""
        at, self.builder.at = self.builder.at, tuple(node for branch in group.branches for node in branch)
        wide = group.combined.layer(self, self._had)
        for depth in range(1, group.depth):
            wide = group.combined.step(self, wide, [b[depth] for b in group.branches], [b[depth - 1] for b in group.branches], self._had)
        self.builder.at = at
        return wide

    def _had(self, old: Node) -> Node:
        """The replacement of an operand; one that comes later in the text is built now, with its operands."""
        for node in post_order([old], lambda node: () if self._is_built(node) else node.operands[::-1]):
            if not self._is_built(node):
                self.early[node] = self._new[node] = copy_node(self.builder, node, [self.new(o) for o in node.operands])
        return self.new(old)

    def _is_built(self, node: Node) -> bool:
        return node in self._new or node.op is hlo.parameter


def _behind_layers(graph: Graph) -> list[bool]:
    """For each node, by index, whether it depends on a layer, or on a node that must not move."""
    behind = [False] * len(graph.nodes)
    for node in graph.nodes:
        moves = node.op.effect is Effect.PURE and not node.bodies
        behind[node.index] = node.op in MEMBERS or not moves or any(behind[o.index] for o in node.operands)
    return behind


def _key(node: Node, to_batch: bool) -> object:
    """A key that is equal for nodes that may be combined; None for nodes that may not."""
    if not isinstance(node.type, TensorType) or not node.type.is_static:
        return None
    weight = node.operands[1].type
    if not isinstance(weight, TensorType):
        return None
    if node.op in BATCHED and node.type.rank != 3:
        return None
    given = dict(bound(node))
    given.pop("units", None), given.pop("channels", None)
    if node.op in CONVOLUTION:
        layouts = str(given["data_layout"]), str(given["kernel_layout"])
        if given["groups"] != 1 or given["out_layout"] or any(c.isdigit() for text in layouts for c in text):
            return None
    _, place = _axes(node)
    stacked = to_batch and node.op in DENSE
    if stacked and node.type.rank != 2:
        return None
    rest = tuple(size for d, size in enumerate(weight.shape) if d != place or stacked)
    return node.op, node.operands[0], repr(sorted(given.items(), key=str)), rest, weight.dtype


def _axes(node: Node) -> tuple[int, int]:
    """The axes of the result and of the weight along which the layers are concatenated."""
    given = bound(node)
    if node.op in DENSE:
        return of(node).rank - 1, 0
    if node.op in BATCHED:
        # Old texts transpose the second operand implicitly; the shapes show it.
        x, y = (of(o).shape for o in node.operands)
        k = x[-2] if given["transpose_a"] else x[-1]
        return 2, 1 if given["transpose_b"] or (not given["transpose_a"] and y[1] != k) else 2
    return str(given["data_layout"]).index("C"), str(given["kernel_layout"]).index("O")
