"""Layout conversion: changes operators to the requested layouts, and propagates these to the operators after them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from irscope.graph import UNKNOWN, Graph, Module, Node, Op, TensorType, TupleType, Type
from irscope.graph.rewrite import copy_node
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement
from irscope.passes.base import RelayPass
from irscope.passes.canonicalize_ops import CanonicalizeOps
from irscope.passes.layout_requests import Requests, operator_for, requests, wanted
from irscope.passes.layout_rules import Known, LayoutCall, rule_of
from irscope.passes.layouts import AxisLayout, laid, types_of
from irscope.passes.visitor import GraphMutator

KEPT = ("Primitive", "Compiler", "Composite")
"""Functions with one of these attributes are kernels, composites, or for another compiler: they stay unchanged."""


class ConvertLayout(RelayPass):
    """Convert operators, and those that follow them, to the requested layouts, as TVM's ConvertLayout does.

        %0 = nn.conv2d(%x, %w);          ->      %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
        nn.relu(%0)                              %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
                                                 %2 = nn.conv2d(%0, %1, data_layout="NHWC", kernel_layout="HWIO");
                                                 %3 = nn.relu(%2);
                                                 layout_transform(%3, src_layout="NHWC", dst_layout="NCHW")

    ``layout`` is one for all convolutions of its rank (``NHWC``, ``NCHW4c``, ``NDHWC``), or names operators: ``nn.conv2d:NHWC:OHWI``,
    several joined by ``+``, the layout of weights last (``default`` is the one that matches the data). Elementwise operators, bias and
    residual additions, pooling, normalisation, reductions, concatenation, splits, slices and padding adopt the layout: the pass renames
    their axes. It inserts ``layout_transform`` only at the borders, once for each value.
    """

    name = "convert-layout"
    opt_level = 3

    def __init__(self, layout: str = "NHWC") -> None:
        self.requests = requests(layout)

    def rewrite(self, module: Module) -> Module:
        if any(data.is_packed for data, _ in self.requests.values()):
            # A bias along a split axis becomes an addition: ``bias_add`` cannot name the split axis.
            module = CanonicalizeOps().run(module)
        return self.mutated(_Converting(self.requests), module)


@dataclass(slots=True, eq=False)
class Laid:
    """A value of the new graph: its layout was ``old`` as written, and is ``new`` now. None: the layout is unknown."""

    value: Node
    old: AxisLayout | None
    new: AxisLayout | None


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """How a call is converted: ``were`` are the operand layouts that it assumes as written, ``inputs`` those that it requires now.

    ``results`` has the type of each result with its layout as written and now.
    """

    op: Op
    attrs: Mapping[str, Any]
    were: Known
    inputs: Known
    type: Type
    results: Sequence[tuple[Type, AxisLayout | None, AxisLayout | None]]


def plan(node: Node, types: Sequence[Type], given: Sequence[Laid], requests: Requests) -> ConversionPlan | str:
    """How to convert a call whose operands have these types and layouts; the reason if it stays, where that is worth a remark."""
    rule, request = rule_of(node), requests.get(node.op)
    if rule is None or any(isinstance(type, TupleType) for type in types):
        return ""
    call, names = LayoutCall(node, types), [k.old for k in given]
    try:
        before = rule(call, names, names, node.attrs)
        attrs = wanted(node, *request) if request is not None else node.attrs
        if before is None or isinstance(attrs, str):
            return attrs if isinstance(attrs, str) else ""
        # If an operand's axes had other names than this operator gives them, its layout as written counts.
        now = [k.new if k.old is b else b for k, b in zip(given, before.inputs, strict=True)]
        after = rule(call, before.inputs, now, attrs)
    except ValueError:  # an invalid layout in the text
        return ""
    results = types_of(node.type)
    if after is None or len(before.outputs) != len(results):
        return ""
    if _same(before.inputs, now) and _same(before.inputs, after.inputs) and _same(before.outputs, after.outputs):
        after, request = replace(after, attrs=node.attrs), None
    outputs = zip(results, before.outputs, after.outputs, strict=True)
    made = [type for type in (laid(t, b, a) if a is not None and b is not None else t for t, b, a in outputs) if type is not None]
    if len(made) < len(results) or not all(_fits(t, b, a) for t, b, a in zip(types, before.inputs, after.inputs, strict=True)):
        return f"its sizes do not fit {after.inputs[0]}" if request is not None else ""
    op = operator_for(node, request[0]) if request is not None else node.op
    whole = TupleType(tuple(made)) if isinstance(node.type, TupleType) else made[0]
    return ConversionPlan(op, after.attrs, before.inputs, after.inputs, whole, list(zip(made, before.outputs, after.outputs, strict=True)))


def _same(a: Known, b: Known) -> bool:
    return all(x is y for x, y in zip(a, b, strict=True))


class _Converting(GraphMutator):
    """``laid`` maps each node as written to the known layout of its value; a list for a tuple."""

    def __init__(self, requests: Requests) -> None:
        self.requests = requests
        self.plans: dict[object, ConversionPlan | str] = {}
        """By operator, types, layouts and attributes: layers of a net are alike."""
        self.numbers: dict[Type, int] = {}
        self.number_of: dict[int, tuple[Type, int]] = {}

    def begin(self, graph: Graph) -> None:
        self.laid: dict[Node, Laid | list[Laid]] = {}
        self.turned: dict[tuple[Node, AxisLayout, AxisLayout], Node] = {}
        self.active = not any(key in graph.notes.get("attrs", {}) for key in KEPT)

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if not self.active or (not self.laid and node.op not in self.requests):
            return None
        if node.op is hlo.get_tuple_element and isinstance(whole := self.laid.get(node.operands[0]), list):
            made: Node | None = self._known(node, whole[GetTupleElement.of(node).index])
        elif node.op is hlo.tuple and any(o in self.laid for o in node.operands):
            fields = [self._laid(o) for o in node.operands]
            self.laid[node] = fields
            made = copy_node(self.builder, node, [self._as_written(field) for field in fields])
        else:
            made = self._converted(node) if not node.op.is_primitive and not node.bodies else None
        if made is None:
            as_written = [self._as_written(self.laid[o]) if o in self.laid else self.new(o) for o in node.operands]
            return copy_node(self.builder, node, as_written, [self.became.get(body, body) for body in node.bodies])
        # The graph's result keeps its layout.
        return self._as_written(self.laid[node]) if node is self.graph.root and node in self.laid else made

    def _known(self, node: Node, laid: Laid) -> Node:
        self.laid[node] = laid
        return laid.value

    # ------------------------------------------------------------------ one operator

    def _number(self, type: Type) -> int:
        """One number for equal types. Most are the same object: comparing identity is faster than comparing contents."""
        found = self.number_of.get(id(type))
        if found is None:
            found = self.number_of[id(type)] = type, self.numbers.setdefault(type, len(self.numbers))
        return found[1]

    def _converted(self, node: Node) -> Node | None:
        """The operator in the layouts of its operands, or in the requested ones; None if it stays as written."""
        if node.op not in self.requests and not any(o in self.laid for o in node.operands):
            return None
        several = any(o.op is hlo.tuple for o in node.operands)
        flat = [f for o in node.operands for f in (o.operands if o.op is hlo.tuple else (o,))] if several else node.operands
        given = [self._laid(o) for o in flat]
        lie = [part for o, k in zip(flat, given, strict=True) for part in (self._number(o.type), k.old, k.new)]
        key = node.op, self._number(node.type), repr(node.attrs) if node.attrs else "", *lie
        found = self.plans.get(key)
        if found is None:
            found = self.plans[key] = plan(node, [o.type for o in flat], given, self.requests)
        if not isinstance(found, ConversionPlan):
            if found:
                self.declined.append(f"left %{node.name}: {found}")
            return None
        values = [self._value(k, b, a) for k, b, a in zip(given, found.were, found.inputs, strict=True)]
        if several:
            rest = iter(values)
            values = [self.tuple([next(rest) for _ in o.operands]) if o.op is hlo.tuple else next(rest) for o in node.operands]
        made = self.builder.add(found.op, values, found.attrs, found.type, name=node.name)
        if isinstance(found.type, TupleType):
            self.laid[node] = [Laid(self.builder.add(hlo.get_tuple_element, [made], {"index": i}, type), was, here)
                               for i, (type, was, here) in enumerate(found.results)]
        else:
            self.laid[node] = Laid(made, *found.results[0][1:])
        return made

    # ------------------------------------------------------------------ values

    def _laid(self, node: Node) -> Laid:
        """The known layout of a value; unknown for a tuple."""
        known = self.laid.get(node)
        if isinstance(known, Laid):
            return known
        return Laid(self._as_written(known) if known is not None else self.new(node), None, None)

    def _value(self, known: Laid, was: AxisLayout | None, here: AxisLayout | None) -> Node:
        """An operand, whose layout the operator calls ``was``, in the layout ``here``; None means as written."""
        if was is None or here is None:
            return self._as_written(known)
        return self._turned(known.value, known.new or was, here) if known.old is was else self._turned(self._as_written(known), was, here)

    def _as_written(self, known: Laid | list[Laid]) -> Node:
        if isinstance(known, list):
            return self.tuple([self._as_written(field) for field in known])
        return known.value if known.old is None or known.new is None else self._turned(known.value, known.new, known.old)

    def _turned(self, value: Node, old: AxisLayout, new: AxisLayout) -> Node:
        """A value in another layout, converted once; a value with fewer axes gets leading ones. Scalars have no layout."""
        if old is new or (isinstance(value.type, TensorType) and value.type.rank == 0):
            return value
        key = value, old, new
        found = self.turned.get(key)
        if found is None:
            found = value
            missing = [letter for letter in new.wholes if letter not in old.wholes]
            if missing:
                found = self.add("expand_dims", [found], axis=0, num_newaxis=len(missing))
                old = old.preceded(missing)
            if old is not new:
                type = laid(found.type, old, new) or UNKNOWN
                found = self.add("layout_transform", [found], type, src_layout=old.text, dst_layout=new.text)
            self.turned[key] = found
        return found


def _fits(type: Type, old: AxisLayout | None, new: AxisLayout | None) -> bool:
    """Whether a value can have a new layout: split dimensions are static and multiples of their parts."""
    if old is None or new is None or old is new or not isinstance(type, TensorType) or type.rank == 0:
        return True
    missing = [letter for letter in new.wholes if letter not in old.wholes]
    if missing:
        type, old = type.with_shape((1,) * len(missing) + type.shape), old.preceded(missing)
    return laid(type, old, new) is not None
