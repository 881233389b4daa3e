"""The builder that the rules for dynamic sizes use: sizes as scalars, masks, copies of a node over other operands."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from irscope.expand.dynamic.padded_arrays import PaddedArray, Tree, static_value
from irscope.expand.values import Value, parts_of
from irscope.graph import Builder, Graph, Module, Node, TensorType, Type
from irscope.graph.dtypes import PRED, S32
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.tensors import Tensors
from irscope.source import Finding, Severity, UserError


class GraphExpansion(Tensors):
    """One graph under construction."""

    def __init__(self, module: Module, graph: Graph) -> None:
        super().__init__(Builder(graph))
        self.module = module
        self._numbers: dict[int, Node] = {}

    def standing_for(self, node: Node) -> None:
        """Attribute the nodes built next to this node."""
        self.builder.at = node.origin or (node,)

    # ------------------------------------------------------------------ sizes

    def number(self, value: int) -> Node:
        """An s32 constant."""
        if value not in self._numbers:
            self._numbers[value] = self.array(value, S32)
        return self._numbers[value]

    def size(self, held: PaddedArray, d: int) -> Node:
        """The number of valid elements along a dimension."""
        found = held.sizes.get(d)
        return found if found is not None else self.number(held.shape[d])

    def known(self, size: Node) -> int | None:
        """The value of a size that is a constant of the text, else None."""
        literal = Constant.of(size).known if size.op is hlo.constant else None
        return None if literal is None else int(literal.value())

    def same(self, a: Node, b: Node) -> bool:
        """Whether two sizes are known to be equal."""
        return a is b or (self.known(a) is not None and self.known(a) == self.known(b))

    def total(self, sizes: Iterable[Node]) -> Node:
        """The product of sizes."""
        result: Node | None = None
        known = 1
        for size in sizes:
            value = self.known(size)
            if value is not None:
                known *= value
            else:
                result = size if result is None else self.mul(result, size)
        if result is None:
            return self.number(known)
        return result if known == 1 else self.mul(result, self.number(known))

    # ------------------------------------------------------------------ nodes

    def copy(self, node: Node, operands: Sequence[Node], type: Type | None = None, attrs: Mapping[str, object] | None = None) -> Node:
        """The same operator over other operands, with static types."""
        return self.builder.copy(node, operands, type if type is not None else static_value(node.type), attrs)

    def parts(self, node: Node, sizes: Sequence[Mapping[int, Node]] = ()) -> Tree:
        """The value of a node; ``sizes`` are those of its arrays, in order."""
        rest = iter(sizes)
        return _tree(parts_of(self.builder, node), rest)

    def mask(self, shape: Sequence[int], d: int, size: Node) -> Node:
        """pred of a shape: whether a position along a dimension is valid."""
        line = self.compare("LT", self.iota((shape[d],), 0, S32), size)
        return self.emit("broadcast", (line,), {"dimensions": (d,)}, type=TensorType(PRED, tuple(shape)))

    def masked(self, held: PaddedArray, dims: Iterable[int], fill: Node) -> Node:
        """The array with ``fill`` at every invalid position along one of these dimensions."""
        mask: Node | None = None
        for d in dims:
            if d in held.sizes:
                one = self.mask(held.shape, d, held.sizes[d])
                mask = one if mask is None else self.emit("and", (mask, one))
        if mask is None:
            return held.node
        spread = self.emit("broadcast", (fill,), {"dimensions": ()}, type=TensorType(self.dtype(fill), held.shape))
        return self.emit("select", (mask, held.node, spread))

    def refusal(self, node: Node, why: str, help: str = "") -> UserError:
        """The error for an operator that is not defined for such sizes, with its place in the text."""
        written = node.origin[0] if node.origin else node
        message = f"%{written.name} ({written.op.name}) cannot run with dynamic sizes: {why}"
        stack = self.module.call_stack(written)
        source = self.module.source if self.module.source.text else None
        finding = Finding("KRN001", "cannot-run", Severity.ERROR, message, source, written.loc, len(written.name) + 1, node=written.name,
                          graph=self.module.entry, help=help, source_line=str(stack[0]) if stack else "")
        return UserError(f"%{written.name} cannot run", findings=[finding])


Rule = Callable[[GraphExpansion, Node, list[PaddedArray]], Tree]
"""The rule of an operator: it builds the operator over operands, some of which have dynamic sizes."""


def _tree(value: Value, sizes: Any) -> Tree:
    if isinstance(value, Node):
        return PaddedArray(value, dict(next(sizes, {})))
    return [_tree(part, sizes) for part in value]
