"""Mixed precision: contractions compute in half precision, numerically delicate operators in single precision."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.formats.relay.operators import declared, names
from irscope.graph import DTYPES, Graph, Module, Node, TensorType, TupleType, Type
from irscope.graph.rewrite import copy_node
from irscope.ops import get, hlo
from irscope.ops.sets import OpSet, relay
from irscope.passes.base import RelayPass
from irscope.passes.op_table import OpTable
from irscope.passes.precision_lists import ALWAYS, FOLLOWING, MOVING
from irscope.passes.visitor import GraphMutator
from irscope.source import UserError, did_you_mean

WORDS = {"float16": "f16", "bfloat16": "bf16"}
ROUNDING = {"float16": 2.0 ** -11, "bfloat16": 2.0 ** -8}
"""The relative error of one rounding."""
ROUNDINGS = 16
"""Roundings that may add up in a result: one an operator that works on halves, of what lies between two sums."""
SINGLE = "float32"
INPUTS = hlo.named("parameter constant")


class ToMixedPrecision(RelayPass):
    """Convert the operands of heavy operators, accumulate in single precision, and let cheap operators adopt the type of their operands.

        %0 = nn.conv2d(%x, %w);                %0 = cast(%x, dtype="float16");    %3 = cast(%2, dtype="float16");
        %1 = nn.relu(%0);               ->     %1 = cast(%w, dtype="float16");    %4 = nn.relu(%3);
        nn.softmax(%1)                         %2 = nn.conv2d(%0, %1, out_dtype="float32");
                                               nn.softmax(cast(%4, dtype="float32"))

    ``dtype`` is float16 or bfloat16, ``accumulate`` the type in which heavy operators sum: float32, or ``dtype`` itself (as in TVM's pass).
    A following operator computes in half precision if one operand already is half and the others are half, parameters or constants; a user
    of a sum in single precision reads the sum itself. ``always``, ``follow`` and ``never`` move operators, joined by ``+``, to another of
    the lists of ``passes/precision_lists.py``. Parameters and results keep their types. Results have the accuracy of half precision.
    """

    name = "to-mixed-precision"

    def __init__(self, dtype: str = "float16", accumulate: str = SINGLE, always: str = "", follow: str = "",
                 never: str = "") -> None:
        if dtype not in WORDS:
            raise UserError(f"to-mixed-precision makes no {dtype!r}", f"it makes {' or '.join(WORDS)}")
        if accumulate not in (SINGLE, dtype):
            raise UserError(f"to-mixed-precision sums in no {accumulate!r}", f"it sums in {SINGLE} or {dtype}")
        self.dtype, self.accumulate = dtype, accumulate
        self.rtol = ROUNDINGS * ROUNDING[dtype]
        self.lists = OpTable((FOLLOWING, "follow"), (ALWAYS, "always"), (_operators(always), "always"), (_operators(follow), "follow"),
                             (_operators(never), "never"))

    def rewrite(self, module: Module) -> Module:
        return _Narrowing(self.dtype, self.accumulate, self.lists).run(module)


class _Narrowing(GraphMutator):
    """``half`` maps nodes as written to their values in half precision, if they were computed in it; ``single`` to single precision."""

    def __init__(self, word: str, accumulate: str, lists: OpTable[str]) -> None:
        self.word, self.accumulate, self.lists = word, accumulate, lists
        self.narrow, self.wide = DTYPES[WORDS[word]], DTYPES["f32"]
        self.narrowed: dict[Type, Type] = {}

    def begin(self, graph: Graph) -> None:
        self.half: dict[Node, Node] = {}
        self.single: dict[Node, Node] = {}
        self.casts: dict[Node, Node] = {}
        self.early = self._moved_for_heavy_ones(graph)

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        made = self._narrow(node)
        if made is not None and node is not self.graph.root:
            return made
        if made is None and not any(o in self.half for o in node.operands):
            return None
        if made is None:
            made = copy_node(self.builder, node, [self._as_written(o) for o in node.operands], [self.became.get(b, b) for b in node.bodies])
        return self._as_written(node) if node in self.half else made

    def _narrow(self, node: Node) -> Node | None:
        """The operator in half precision; None if it stays as written."""
        if node.op is hlo.get_tuple_element and node.operands[0] in self.half:
            made = self.builder.add(node.op, [self.half[node.operands[0]]], node.attrs, self._narrowed(node.type), name=node.name)
            return self._keep(node, made)
        kind = self.lists.get(node.op)
        if kind not in ("always", "follow") or node.bodies:
            return None
        fields = [o.operands if o.op is hlo.tuple else (o,) for o in node.operands]
        flat = [o for each in fields for o in each]
        if kind == "follow" and not self.early[node.index] and not any(o in self.half for o in flat):
            return None
        if not all(self._may_change(o.type) for o in (*flat, node)):
            return None
        if kind == "follow" and not all(o in self.half or o.op in INPUTS or not self._is_single(o) for o in flat):
            return None
        if kind == "always" and not any(self._is_single(o) for o in flat):
            return None
        values = iter([self._as_half(o) for o in flat])
        taken = [self.tuple([next(values) for _ in o.operands]) if o.op is hlo.tuple else next(values) for o in node.operands]
        attrs, type = node.attrs, self._narrowed(node.type)
        if kind == "always" and _says_type(node.op.name):
            attrs = {**attrs, "out_dtype": self.accumulate}
            type = node.type if self.accumulate == SINGLE else type
        made = self.builder.add(node.op, taken, attrs, type, name=node.name)
        if type is node.type and isinstance(type, TensorType) and type.dtype is self.wide:
            self.single[node] = made
            made = self.builder.add(get("cast", "relay"), [made], {"dtype": self.word}, self._narrowed(type))
        return self._keep(node, made)

    def _keep(self, node: Node, made: Node) -> Node:
        if made.type != node.type:
            self.half[node] = made
        return made

    def _moved_for_heavy_ones(self, graph: Graph) -> list[bool]:
        """By index, whether a node only moves data into heavy operators: converting first moves half as much, at no extra cost."""
        wanted = [False] * len(graph.nodes)
        for node in reversed(graph.nodes):
            users = self.users[node.index]
            if node.op in MOVING and self.lists.get(node.op) == "follow" and users and node is not graph.root:
                wanted[node.index] = all(self.lists.get(u.op) == "always" or wanted[u.index] for u in users)
        return wanted

    # ------------------------------------------------------------------ values

    def _is_single(self, node: Node) -> bool:
        return isinstance(node.type, TensorType) and node.type.dtype is self.wide

    def _may_change(self, type: Type) -> bool:
        """Whether all floats in a type are single precision: values of other types keep them."""
        if isinstance(type, TupleType):
            return all(self._may_change(element) for element in type.elements)
        return isinstance(type, TensorType) and (type.dtype is self.wide or not type.dtype.is_float)

    def _narrowed(self, type: Type) -> Type:
        found = self.narrowed.get(type)
        if found is None:
            found = type
            if isinstance(type, TensorType) and type.dtype is self.wide:
                found = TensorType(self.narrow, type.shape)
            elif isinstance(type, TupleType):
                found = TupleType(tuple(self._narrowed(element) for element in type.elements))
            self.narrowed[type] = found
        return found

    def _as_half(self, node: Node) -> Node:
        """A value in half precision; integers stay. All users share one conversion."""
        found = self.half.get(node)
        if found is not None or not self._is_single(node):
            return found or self.new(node)
        if node not in self.casts:
            self.casts[node] = self.builder.add(get("cast", "relay"), [self.new(node)], {"dtype": self.word}, self._narrowed(node.type))
        return self.casts[node]

    def _as_written(self, node: Node) -> Node:
        """A value in the type that it has in the text: the single-precision sum itself, if it was kept."""
        found = self.half.get(node)
        if found is None:
            return self.new(node)
        if node not in self.single:
            self.single[node] = self._widened(found, node.type)
        return self.single[node]

    def _widened(self, value: Node, type: Type) -> Node:
        if isinstance(type, TupleType):
            elements = value.type.elements if isinstance(value.type, TupleType) else ()
            parts = [self.builder.add(hlo.get_tuple_element, [value], {"index": i}, have) for i, have in enumerate(elements)]
            return self.tuple([self._widened(p, t) for p, t in zip(parts, type.elements, strict=True)])
        return value if value.type == type else self.builder.add(get("cast", "relay"), [value], {"dtype": SINGLE}, type)


def _says_type(name: str) -> bool:
    """Whether an operator has an attribute for its accumulation type."""
    operator = declared(name)
    return operator is not None and "out_dtype" in operator.names


def _operators(text: str) -> OpSet:
    """Operators joined by ``+``. Raises UserError for an unknown one."""
    found = [name.strip() for name in text.split("+") if name.strip()]
    for name in found:
        if declared(name) is None:
            raise UserError(f"to-mixed-precision: there is no operator {name!r}", did_you_mean(name, names()) or "such as nn.conv2d")
    return relay(" ".join(found))
