"""Buffer assignment: the memory of each value, from the last kernel to the first, so that producers write where consumers read."""
from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from irscope.fusion import Group, Plan
from irscope.fusion.drafts import dims_of
from irscope.fusion.views import VIEWS, before, stored
from irscope.graph import Graph, Node, TensorType
from irscope.lower.aliasing import can_alias_operands, is_update, is_view_copy, parts_of
from irscope.lower.orders import Order, order_for, orders_of_reads
from irscope.lower.program import Slot
from irscope.lower.propagation import spread
from irscope.lower.storage import LayoutConstraint, Storage
from irscope.lower.templates import templates
from irscope.lower.values import Path, TupleParts, is_invariant, leaf_paths, leaves, tensor_of
from irscope.ops import hlo
from irscope.ops.attributes import Pad

Temp = Callable[[str, TensorType], Storage]
"""Returns fresh row-major memory."""


class StorageAssignment:
    """The storage of one graph's values. ``known`` starts with the parameters and ends with everything that is stored.

    ``overwritten_at`` maps a value to the group that overwrites it: an update in place, or a loop.
    """

    def __init__(self, temp: Temp, graph: Graph, plan: Plan, known: dict[Node, Storage], wanted: Mapping[Node, Storage]) -> None:
        self.temp = temp
        self.graph = graph
        self.plan = plan
        self.known = known
        self.wanted = wanted
        self.parts = TupleParts(graph)
        self.carried: dict[tuple[Node, Path], Storage] = {}
        self.made_at: dict[Node, int] = {output: n for n, group in enumerate(plan.groups) for output in group.outputs}
        self.read_at = self._reads()
        self.overwritten_at: dict[Node, int] = {}
        self._results = set(leaves(graph.result()))
        self._old: dict[Slot, list[Node]] = {}
        for node, storage in known.items():
            self._old.setdefault(storage.slot, []).append(node)
        self._constraints = self._gather_constraints()

    def assign(self) -> None:
        """Assign memory to every stored value."""
        for number in range(len(self.plan.groups) - 1, -1, -1):
            group = self.plan.groups[number]
            anchor = group.anchor if group.kind == "whole" else None
            if anchor is not None and anchor.op in (hlo.while_, hlo.conditional):
                self._assign_control(anchor, number)
                continue
            for output in group.outputs:
                self.ensure(output)
            if anchor is not None and can_alias_operands(anchor):
                self._alias_operands(anchor)
            elif is_view_copy(group):
                self._alias_shown(group)
            elif anchor is not None and is_update(anchor):
                self._alias_updated(anchor, number)

    def _alias_operands(self, node: Node) -> None:
        """Alias the operands that only this node reads whole to its memory."""
        whole = self.known[node]
        if node.op is hlo.pad and any(hole for _, _, hole in Pad.of(node).padding):
            return
        behind = [stored(operand) for operand in node.operands]
        for operand, part in parts_of(node, whole):
            if behind.count(stored(operand)) == 1:
                self._alias(operand, part, self.overwritten_at.get(node))

    def _alias(self, node: Node, target: Storage, overwritten_at: int | None) -> None:
        """Alias a value, or the stored value that it is a view of, to the target, if it has no memory yet."""
        wanted = target.walk()
        shown = node
        while shown.op in VIEWS and not self.movable(shown):
            inner = before(shown, wanted)
            if inner is None:
                return
            shown, wanted = shown.operands[0], inner
        if self.is_read_before(shown, overwritten_at) and (shown is node or self.sole_reader(shown) is not None):
            self.claim(shown, target.under(wanted), overwritten_at)

    def _alias_shown(self, group: Group) -> None:
        """Alias the source of a copied view to the memory of the result, in the result's order, so that no copy is needed."""
        source, output = group.inputs[0], group.outputs[0]
        if self.sole_reader(source) is not None:
            self._alias(output, self.known[output], self.overwritten_at.get(output))

    def _alias_updated(self, node: Node, number: int) -> None:
        """Alias the operand of an update to the memory of the result, when nothing reads it afterwards."""
        x = node.operands[0]
        behind = [stored(o) for o in node.operands[1:]]
        if self.is_read_before(x, number + 1) and x not in behind:
            self.claim(x, self.known[node], number)

    def _assign_control(self, node: Node, number: int) -> None:
        """Assign buffers to the results of a loop or a branch (group ``number``), and alias a loop's first values to them where only it
        reads them."""
        if node.op is hlo.conditional:
            for path, _ in leaf_paths(node.type):
                for part in self.parts.at(node, path):
                    self.ensure(part)
            return
        first = dict(zip((path for path, _ in leaf_paths(node.type)), leaves(node.operands[0])))
        for path, type in leaf_paths(node.type):
            if is_invariant(node, path):
                continue
            readers = self.parts.at(node, path)
            begin = first[path]
            times = sum(stored(value) is stored(begin) for value in first.values())
            asked = [(r, self.wanted[r]) for r in readers if r in self.wanted]
            wanted = next((s for r, s in asked if self.may_carry(r, begin, s.slot, times)), None)
            storage = wanted or self.temp(f"{node.name}.{'.'.join(map(str, path))}", type)
            self.known.update(dict.fromkeys(readers, storage))
            self.carried[node, path] = storage
            if self.sole_reader(begin) is not None and times == 1:
                self.claim(begin, storage, number)

    def ensure(self, node: Node) -> Storage:
        """The storage of a value that a kernel writes: already assigned, else fresh memory."""
        if node not in self.known:
            target = self.wanted.get(node)
            if target is None or not self.may_write(node, target):
                target = self.fresh(node)
            self.known[node] = target
        return self.known[node]

    def fresh(self, node: Node) -> Storage:
        """New memory, in the layout that its readers request."""
        type, constraint = tensor_of(node), self._constraints.get(node)
        return self.temp(node.name, type) if constraint is None else constraint.storage(node.name, type.dtype, type.dims())

    def claim(self, node: Node, target: Storage, overwritten_at: int | None) -> None:
        """Alias a value to the target, if it has no memory yet and the value stored there is not read any more.
        ``overwritten_at`` is the group that overwrites it with the other value, if there is one."""
        if self.movable(node) and self.may_write(node, target):
            self.known[node] = target
            if overwritten_at is not None:
                self.overwritten_at[node] = overwritten_at

    def is_read_before(self, node: Node, number: int | None) -> bool:
        """Whether all readers of a value come before a group (None: no group)."""
        return number is None or all(reader < number for reader in self.read_at.get(node, ()))

    def may_write(self, node: Node, target: Storage) -> bool:
        """Whether the kernel of ``node`` may write to memory that holds another value until then (a loop's state).

        Every reader of the old value must come before, or be this kernel, reading element i before it writes it.
        """
        at = self.made_at.get(node)
        if at is None:
            return False
        for other in self._old.get(target.slot, ()):
            if other in self._results:
                return False  # the old value is itself a result, and is copied at the end
            for reader in self.read_at.get(other, ()):
                if reader > at or (reader == at and not (target.is_same_place(self.known[other])
                                                         and self._in_place(self.plan.groups[at], other, node))):
                    return False
        return True

    def may_carry(self, node: Node, begin: Node, slot: Slot, times: int) -> bool:
        """Whether a loop may keep its state in the memory of ``begin``: nothing reads ``begin`` later, and the loop reads it once."""
        at = self.made_at.get(node)
        return at is not None and all(
            reader < at or (reader == at and other is begin and times == 1)
            for other in self._old.get(slot, ()) for reader in self.read_at.get(other, ())
        ) and self._results.isdisjoint(self._old.get(slot, ()))

    def _in_place(self, group: Group, old: Node, new: Node) -> bool:
        """Whether a kernel reads element i of ``old`` only for element i of ``new``."""
        if group.kind == "whole" and group.anchor is not None and is_update(group.anchor):
            return stored(group.anchor.operands[0]) is old and not any(stored(o) is old for o in group.anchor.operands[1:])
        if group.kind != "map" or group.chains.get(new) is not None or dims_of(old) != dims_of(new) or len(group.outputs) != 1:
            return False
        if old not in group.inputs or any(n.op.scalar is None for n in group.nodes if n.op not in VIEWS):
            return False
        from_old = {old}  # nodes computed from the old value: a view of any of them reads other elements
        for n in group.nodes:
            if any(o in from_old or stored(o) is old for o in n.operands):
                if n.op in VIEWS:
                    return False
                from_old.add(n)
        return True

    def sole_reader(self, node: Node) -> int | None:
        """The number of the one group that reads a value; None when there are several, or none."""
        readers = self.read_at.get(node, [])
        return readers[0] if len(readers) == 1 else None

    def movable(self, node: Node) -> bool:
        """Whether a kernel of this graph computes a value that has no memory yet."""
        if node not in self.made_at or node in self.known or node in self.wanted:
            return False
        group = self.plan.groups[self.made_at[node]]
        return not (group.kind == "whole" and group.anchor is not None and group.anchor.op in (hlo.while_, hlo.conditional))

    def _reads(self) -> dict[Node, list[int]]:
        """For each stored value, the groups that read it, also through views and tuples, in order."""
        found: dict[Node, list[int]] = {}
        for number, group in enumerate(self.plan.groups):
            for node in _bases(group, self.made_at):
                found.setdefault(node, []).append(number)
        return found

    def _orders(self) -> dict[Node, Order]:
        """Values that would be read contiguously, or viewed without a copy, if their dimensions were in another order."""
        wanted: dict[Node, set[Order]] = {}
        for group in self.plan.groups:
            reads = orders_of_reads(group) if group.kind == "map" else {}
            for node in group.inputs:
                order = order_for(node) if node.op in VIEWS else None
                if order is not None:
                    wanted.setdefault(stored(node), set()).add(order)
                elif node in reads:
                    wanted.setdefault(node, set()).update(reads[node])
                elif group.kind in ("rows", "reduction", "map"):
                    wanted.setdefault(stored(node), set()).add(tuple(range(len(dims_of(stored(node))))))
        found = {node: _only(orders) for node, orders in wanted.items() if node in self.made_at}
        return {node: order for node, order in found.items() if order is not None}

    def _gather_constraints(self) -> dict[Node, LayoutConstraint]:
        constraints: dict[Node, LayoutConstraint] = {}
        refused: set[Node] = set()

        for group in self.plan.groups:
            for template in templates():
                for node, constraint in template.layout_constraints(group).items():
                    joined = constraints[node].join(constraint) if node in constraints else constraint
                    if joined is None:
                        refused.add(node)
                    else:
                        constraints[node] = joined
        spread(self.plan.groups, constraints, {*refused, *self.wanted})
        for node, order in self._orders().items():
            constraints.setdefault(node, LayoutConstraint.dense(order))
        return {node: constraint for node, constraint in constraints.items() if node not in refused and node in self.made_at}


def _only(orders: set[Order]) -> Order | None:
    """The one order that all readers request, if it is not the default."""
    order = next(iter(orders), None)
    return order if len(orders) == 1 and order != tuple(range(len(order or ()))) else None


def split_group(group: Group, graph: Graph) -> list[Group]:
    """Split a group that no template can build as a whole: into the groups that it was merged from, or its nodes, in order."""
    if group.parts:
        return list(group.parts)
    pieces: list[Group] = []
    for node in group.nodes:
        if node.op in VIEWS or node.op in (hlo.iota, hlo.get_tuple_element):
            continue
        made = [n for n in group.nodes if n.op is hlo.get_tuple_element and n.operands[0] is node] or [node]
        dims = dims_of(made[0])
        inputs = list(dict.fromkeys(stored(o) for o in node.operands))
        views = [v for o in node.operands for v in _views(o)]
        if node.op is hlo.reduce:
            kind = "reduction"
        else:
            kind = group.kind if node is group.anchor and group.kind != "rows" else "map"
        nodes = sorted({*views, node, *made}, key=lambda n: n.index)
        pieces.append(Group(kind, nodes, made, [i for i in inputs if i not in nodes], node if kind != "map" else None, dims))
    for output in group.outputs:
        if output.op in VIEWS or output.op is hlo.iota:
            nodes = sorted({*_views(output), output}, key=lambda n: n.index)
            pieces.append(Group("map", nodes, [output], [i for i in [stored(output)] if i not in nodes], None, dims_of(output)))
    return pieces


def _views(node: Node) -> list[Node]:
    found: list[Node] = []
    while node.op in VIEWS or node.op is hlo.iota:
        found.append(node)
        if not node.operands:
            break
        node = node.operands[0]
    return found


def _bases(group: Group, made: Container[Node]) -> list[Node]:
    """The stored values that a group reads. They include a view that a kernel computes (``made``), for example the operand of a loop or
    a branch; it may share the memory of its source."""
    found: dict[Node, None] = {}
    stack = list(group.inputs)
    while stack:
        node = stack.pop()
        seen_through = node.op in VIEWS or node.op is hlo.tuple
        if not seen_through or node in made:
            found[node] = None
        if seen_through:
            stack.extend(node.operands)
    return list(found)
