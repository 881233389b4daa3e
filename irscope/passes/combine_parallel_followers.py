"""Combined layers and the steps after them: which steps of the branches can be combined, and how they are written."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from irscope.formats.relay.attributes import ExpandDims
from irscope.formats.relay.operators import declared
from irscope.graph import Node, TensorType, Type
from irscope.ops import hlo
from irscope.ops.sets import relay
from irscope.passes.algebra.relay_arithmetic import BINARY, filled_with
from irscope.passes.algebra.simplifier import of
from irscope.passes.canonicalize_cast import is_elementwise
from irscope.passes.simplify_inference import bound
from irscope.passes.visitor import GraphMutator

Had = Callable[[Node], Node]
"""What an operand of the old graph is in the new one."""
DENSE, CONVOLUTION, BATCHED = relay("nn.dense"), relay("nn.conv2d"), relay("nn.batch_matmul")
EXPAND = relay("expand_dims")
ALONG_AXIS = relay("nn.bias_add nn.prelu")
"""Operators that take a vector along one axis."""


class Wide:
    """Layers whose weights are concatenated: their results are concatenated along ``axis``, which moves if steps add axes."""

    def __init__(self, members: Sequence[Node], axis: int, place: int) -> None:
        self.members = members
        self.axis = axis
        self.place = place
        """The axis of the weights along which they are concatenated."""
        self.axes: list[int] = []
        """``axis`` behind each step."""
        self.widths = [width(member, axis) for member in members]
        self.begins = [0, *accumulate(self.widths)]

    def follow(self, steps: Sequence[Node], before: Sequence[Node]) -> bool:
        """Whether these steps, one of each branch, can be done on all branches at once; they are then counted as taken."""
        axis = self.axes[-1] if self.axes else self.axis
        if not alike(steps, before):
            return False
        first = steps[0]
        if first.op in EXPAND:
            begin = int(ExpandDims.of(first).axis)
            begin += of(first).rank if begin < 0 else 0
            self.axes.append(axis if axis < begin else axis + int(bound(first)["num_newaxis"]))
            return True
        fits = all(of(step).shape == of(b).shape for step, b in zip(steps, before, strict=True))
        if len(first.operands) == 1:
            fits = fits and is_elementwise(first)
        elif first.op in ALONG_AXIS:
            fits = fits and (int(bound(first)["axis"]) % of(first).rank == axis or same_value([s.operands[1] for s in steps]))
        else:
            fits = fits and first.op in BINARY and self._along(steps, before, axis) is not None
        if fits:
            self.axes.append(axis)
        return fits

    def layer(self, mutator: GraphMutator, had: Had) -> Node:
        """The combined layer."""
        self.taken = 0
        first = self.members[0]
        weight = joined(mutator, "concatenate", [had(m.operands[1]) for m in self.members], self.place)
        given: dict[str, Any] = dict(first.attrs)
        if first.op not in BATCHED:
            given["units" if first.op in DENSE else "channels"] = sum(self.widths)
        elif self.place == 1 and of(weight).shape[1] == of(weight).shape[2]:
            given["transpose_b"] = True  # the shapes no longer show it
        return mutator.add(first.op.name, [had(first.operands[0]), weight], **given)

    def step(self, mutator: GraphMutator, wide: Node, steps: Sequence[Node], before: Sequence[Node], had: Had) -> Node:
        """The next step behind all of them."""
        axis = self.axes[self.taken - 1] if self.taken else self.axis
        self.taken += 1
        first = steps[0]
        if len(first.operands) == 1:
            return mutator.add(first.op.name, [wide], **first.attrs)
        if first.op in ALONG_AXIS:
            own = int(bound(first)["axis"]) % of(first).rank == axis
            vectors = [had(s.operands[1]) for s in steps]
            return mutator.add(first.op.name, [wide, joined(mutator, "concatenate", vectors, 0) if own else vectors[0]], **first.attrs)
        found = self._along(steps, before, axis)
        assert found is not None, "it has been looked at"
        at, others = found
        if at is None:
            other = had(others[0])
        else:
            parts = [repeated(mutator, had(o), at, n) for o, n in zip(others, self.widths, strict=True)]
            # Behind batched products TVM writes the last axis as -1.
            last = self.members[0].op in BATCHED and at == of(parts[0]).rank - 1
            other = joined(mutator, "concatenate", parts, -1 if last else at)
        return mutator.add(first.op.name, [wide, other] if first.operands[0] is before[0] else [other, wide], **first.attrs)

    def part(self, mutator: GraphMutator, wide: Node, branch: int, type: Type) -> Node:
        """The result of one branch, which is of this type."""
        axis, rank = self.axes[-1] if self.axes else self.axis, of(wide).rank
        # A slice of a convolution's channels omits the axes after them; TVM writes both this way.
        said = axis + 1 if self.members[0].op in CONVOLUTION else rank
        return mutator.add("strided_slice", [wide], type, begin=[self.begins[branch] if d == axis else 0 for d in range(said)],
                           end=[self.widths[branch] if d == axis else -1 for d in range(said)], strides=[1] * said, slice_mode="size")

    def _along(self, steps: Sequence[Node], before: Sequence[Node], axis: int) -> tuple[int | None, list[Node]] | None:
        """The other operands of a step, and their axis along the branches (None: one value serves all).

        None if they do not fit: each must be as wide as its branch, or have size 1 there and broadcast.
        """
        others = [other_operand(step, b) for step, b in zip(steps, before, strict=True)]
        types = [of(o) for o in others]
        rank = types[0].rank
        at = axis - of(steps[0]).rank + rank
        if same_value(others) and (at < 0 or types[0].shape[at] == 1):
            return None, others
        if rank == 0 and axis == of(steps[0]).rank - 1:
            at = 0
        elif at < 0:
            return None
        for type, n in zip(types, self.widths, strict=True):
            if type.rank != rank or type.dtype is not types[0].dtype or (rank and type.shape[at] not in (1, n)):
                return None
            if any(type.shape[d] != types[0].shape[d] for d in range(rank) if d != at):
                return None
        return at, others


class Stacked:
    """Dense layers of one size as one batched product: their results are its batches."""

    def __init__(self, members: Sequence[Node]) -> None:
        self.members = members
        self.split: Node | None = None

    def follow(self, steps: Sequence[Node], before: Sequence[Node]) -> bool:
        """Whether these steps, one of each branch, can be done on all branches at once."""
        first = steps[0]
        if not alike(steps, before) or any(of(step).shape != of(b).shape for step, b in zip(steps, before, strict=True)):
            return False
        if len(first.operands) == 1:
            return is_elementwise(first)
        if first.op not in BINARY:
            return False
        others = [other_operand(step, b) for step, b in zip(steps, before, strict=True)]
        types = {TensorType(of(o).dtype, of(o).shape) for o in others}
        return same_value(others) or (len(types) == 1 and next(iter(types)).rank in (1, 2))

    def layer(self, mutator: GraphMutator, had: Had) -> Node:
        """The batched product."""
        data = joined(mutator, "stack", [had(m.operands[0]) for m in self.members], 0)
        weight = joined(mutator, "stack", [had(m.operands[1]) for m in self.members], 0)
        given = {key: value for key, value in self.members[0].attrs.items() if key == "out_dtype"}
        return mutator.add("nn.batch_matmul", [data, weight], **given, transpose_b=True)

    def step(self, mutator: GraphMutator, wide: Node, steps: Sequence[Node], before: Sequence[Node], had: Had) -> Node:
        """The next step behind all of them."""
        first = steps[0]
        if len(first.operands) == 1:
            return mutator.add(first.op.name, [wide], **first.attrs)
        others = [other_operand(step, b) for step, b in zip(steps, before, strict=True)]
        if same_value(others):
            other = had(others[0])
        else:
            rows = [mutator.add("expand_dims", [had(o)], axis=0) if of(o).rank == 1 else had(o) for o in others]
            other = joined(mutator, "stack", rows, 0)
        return mutator.add(first.op.name, [wide, other] if first.operands[0] is before[0] else [other, wide], **first.attrs)

    def part(self, mutator: GraphMutator, wide: Node, branch: int, type: Type) -> Node:
        """The result of one branch, which is of this type."""
        if self.split is None:
            self.split = mutator.add("split", [wide], indices_or_sections=len(self.members))
        element = mutator.builder.add(hlo.get_tuple_element, [self.split], {"index": branch})
        return mutator.add("squeeze", [element], type, axis=[0])


def alike(steps: Sequence[Node], before: Sequence[Node]) -> bool:
    """Whether steps have the same operator, equal attributes and static shapes, and read their branch as the same operand."""
    first = steps[0]
    if first.op.is_primitive or declared(first.op.name) is None:
        return False
    said = repr(sorted(first.attrs.items()))
    for step, node in zip(steps, before, strict=True):
        if step.op is not first.op or len(step.operands) != len(first.operands) or repr(sorted(step.attrs.items())) != said:
            return False
        if not all(isinstance(n.type, TensorType) and n.type.is_static for n in (step, *step.operands)):
            return False
        if step.operands.index(node) != first.operands.index(before[0]):
            return False
    return True


def same_value(nodes: Sequence[Node]) -> bool:
    """Whether nodes are identical, or scalar constants with the same value."""
    if all(node is nodes[0] for node in nodes):
        return True
    values = [filled_with(node) if of(node).rank == 0 else None for node in nodes]
    return all(v is not None and v == values[0] and of(n).dtype is of(nodes[0]).dtype for v, n in zip(values, nodes, strict=True))


def other_operand(step: Node, chain: Node) -> Node:
    """The operand of a binary step that is not the branch."""
    return step.operands[1] if step.operands[0] is chain else step.operands[0]


def joined(mutator: GraphMutator, name: str, parts: Sequence[Node], axis: int) -> Node:
    """``concatenate`` or ``stack``."""
    return mutator.add(name, [mutator.tuple(parts)], axis=axis)


def repeated(mutator: GraphMutator, x: Node, axis: int, times: int) -> Node:
    """A value broadcast to the width of its branch, if it does not have it already."""
    type = of(x)
    if type.rank and (type.shape[axis] == times):
        return x
    whole = x if type.rank else mutator.add("expand_dims", [x], axis=-1)
    return mutator.add("repeat", [whole], repeats=times, axis=axis)


def width(node: Node, axis: int) -> int:
    """The width of a layer."""
    size = of(node).shape[axis]
    assert isinstance(size, int), "only static types are combined"
    return size
