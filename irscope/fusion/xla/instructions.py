"""Mutable instructions: a computation of the text while XLA's fusion passes change it.

The graph of a dump is immutable, but fusion replaces a consumer by a fusion, copies producers into it, and removes those that
have no users left. It works on :class:`Instruction` and :class:`Computation`; each copy keeps its original node.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Self

from irscope.fusion.xla.effects import graph_has_side_effect, is_effect
from irscope.fusion.xla.nodes import check, has_body
from irscope.fusion.xla.opcodes import ALWAYS_FUSIBLE, ELEMENTWISE, NEVER_FUSIBLE
from irscope.graph import Graph, Node, Op, TensorType, Type, rewriter
from irscope.graph.users import Users
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.ops.attributes import Fusion, Ordering
from irscope.source import UserError

NO_ATTRS: Mapping[str, Any] = {}
_new = object.__new__
MANY = 64
"""The number of operands from which on an instruction keeps the map of their positions when one is replaced."""


class Instruction(rewriter.RewrittenNode):
    """An instruction that fusion passes change. ``body`` is the computation of a fusion; ``node`` is the original of a copy.

    ``absorbed`` are the fusions of the text that were merged into it; ``tile`` and ``warps`` are the launch of a Triton kernel;
    ``traits`` is what a policy caches of it until it changes. In a fusion that a pass made, ``inside`` maps each operand to its parameter
    in the body, and ``outside`` the parameter to the operand. ``places`` is what :meth:`positions` caches.
    """

    __slots__ = ("absorbed", "body", "effect", "elements", "inside", "kind", "minor", "node", "order", "outside", "places",
                 "predecessors", "size", "tile", "traits", "warps")

    def __init__(self, op: Op, type: Type, operands: Iterable[Instruction], node: Node | None = None,
                 attrs: Mapping[str, object] = NO_ATTRS) -> None:
        super().__init__(op, type, operands, attrs, node.bodies if node is not None else ())
        self.node = node
        self.body: Computation | None = None
        self.kind = ""
        self.order = -1
        self.predecessors: Sequence[Instruction] = ()
        self.absorbed: tuple[Node, ...] = ()
        self.tile: tuple[int, ...] = ()
        self.warps = 4
        self.effect: bool | None = None
        self.traits: Any = None
        self.inside: dict[Instruction, Instruction] | None = None
        self.outside: Instruction | None = None
        self.places: dict[Instruction, list[int]] | None = None

    def clone(self, op: Op | None = None) -> Instruction:
        """A detached instruction of the same type (if ``op`` is given, with that opcode and no node), without operands and users."""
        made = _new(Instruction)
        if op is None:
            made.op, made.node, made.attrs, made.bodies = self.op, self.node, self.attrs, self.bodies
            made.body, made.kind = self.body, self.kind
        else:
            made.op, made.node, made.attrs, made.bodies = op, None, NO_ATTRS, ()
            made.body, made.kind = None, ""
        made.operands, made.users = [], Users()
        made.order = -1
        made.predecessors = ()
        made.absorbed = ()
        made.tile = ()
        made.warps = 4
        made.effect = made.traits = made.inside = made.outside = made.places = None
        made.type, made.is_array, made.dims, made.minor = self.type, self.is_array, self.dims, self.minor
        made.dtype, made.elements, made.size = self.dtype, self.elements, self.size
        return made

    def set_type(self, type: Type) -> None:
        """Set another type; ``dims``, ``minor`` (to major) and ``dtype`` are those of an array, empty for anything else.

        ``elements`` and ``size`` (whole bytes an element) are those of all parts.
        """
        super().set_type(type)
        self.minor: tuple[int, ...] = ()
        if isinstance(type, TensorType):
            self.minor = type.layout.minor_to_major if type.layout is not None else tuple(range(len(self.dims) - 1, -1, -1))
            self.elements = prod(self.dims)
            self.size = self.elements * max(1, (type.dtype.bits + 7) // 8)
        else:
            parts = [leaf for leaf in type.leaves() if isinstance(leaf, TensorType)]
            self.elements = sum(leaf.elements for leaf in parts)
            self.size = sum(leaf.elements * max(1, (leaf.dtype.bits + 7) // 8) for leaf in parts)

    @property
    def name(self) -> str:
        """The name of its node; a fusion is named after its root."""
        top: Instruction = self
        while top.node is None and top.body is not None:
            top = top.body.root
        return top.node.name if top.node is not None else top.op.name

    @property
    def fused_body(self) -> Computation:
        """The body of an instruction that is known to be a fusion."""
        assert self.body is not None
        return self.body

    @property
    def root(self) -> Instruction:
        """The instruction that computes its value: the root of its body, or itself without one."""
        return self if self.body is None else self.body.root

    @property
    def results(self) -> list[Instruction]:
        """The instructions that compute its results (``GetOutputsOfFusible``): the outputs of its body, or itself without one."""
        return [self] if self.body is None else self.body.outputs

    @property
    def is_elementwise(self) -> bool:
        """Whether element i of the result depends on element i of each operand only."""
        if self.op is hlo.bitcast_convert:
            mine, source = self.type, self.operands[0].type
            return isinstance(mine, TensorType) and isinstance(source, TensorType) and mine.dtype.bits == source.dtype.bits
        if self.op is not hlo.fusion or self.body is None:
            return self.op in ELEMENTWISE
        pending = [self.body]
        while pending:
            for inner in pending.pop().instructions:
                if inner.op is hlo.fusion and inner.body is not None:
                    pending.append(inner.body)
                elif inner.op is not hlo.parameter and not inner.is_elementwise:
                    return False
        return True

    @property
    def is_fusible(self) -> bool:
        """XLA's ``IsFusible``."""
        if self.op in NEVER_FUSIBLE:
            return False
        if self.op in ALWAYS_FUSIBLE:
            return True
        if self.op is hlo.rng:
            return len(self.users) <= 1
        return not self.has_side_effect

    @property
    def has_side_effect(self) -> bool:
        """XLA's ``HasSideEffect``, which also checks the called computations."""
        if self.effect is None:
            self.effect = is_effect(self.op, self) or any(graph_has_side_effect(g) for g in self.bodies)
        return self.effect

    def set_operand(self, number: int, new: Self) -> None:
        """Read ``new`` as operand ``number``."""
        super().set_operand(number, new)
        self.places = None

    def replace_operand(self, old: Self, new: Self) -> None:
        """Replace the operand ``old`` by ``new`` wherever it is read; the parameters of a fusion follow."""
        if len(self.operands) > MANY:
            self._replace_in_many(old, new)
            old.users.discard(self)
            new.users.add(self)
        else:
            super().replace_operand(old, new)
            self.places = None
        if self.inside is not None:
            parameter = self.inside[new] = self.inside.pop(old)
            parameter.outside = new

    def _replace_in_many(self, old: Self, new: Self) -> None:
        """The same for the root tuple of a program with thousands of results: it keeps the positions of each operand."""
        places = self.positions()
        numbers = places.pop(old, [])
        for number in numbers:
            self.operands[number] = new
        places[new] = sorted((*places.get(new, ()), *numbers))

    def positions(self) -> dict[Instruction, list[int]]:
        """The positions of each operand in ascending order. Searching for each operand of a wide kernel would take their number squared."""
        if self.places is None:
            self.places = {}
            for number, operand in enumerate(self.operands):
                self.places.setdefault(operand, []).append(number)
        return self.places

    def same_dims_and_layout(self, other: Instruction) -> bool:
        """``Shape::Equal().IgnoreElementType()``."""
        return self.dims == other.dims and self.minor == other.minor and self.is_array == other.is_array

    def __repr__(self) -> str:
        return f"<{self.op} {self.name}>"


class Computation(rewriter.Rewriter[Instruction]):
    """A computation that fusion passes change; ``scopes`` tells the user's name for the place of a node (:meth:`Module.scope`)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.scopes: Callable[[Node], str] | None = None

    def scope(self, node: Node | None) -> str:
        """The user's name for the place of a node; empty where none is known."""
        return self.scopes(node) if self.scopes is not None and node is not None else ""

    @staticmethod
    def of(graph: Graph) -> Computation:
        """The computation of a graph, with separate bodies for fusions, as XLA has them.

        Raises UserError if the text elides a type or an attribute that matters, and where fusions that share bodies stand for too many
        instructions.
        """
        made = Computation(graph.name)
        pending: list[tuple[Computation, Graph]] = [(made, graph)]
        seen: set[Graph] = set()
        copied = 0
        while pending:
            computation, source = pending.pop()
            if source in seen:
                copied += len(source.nodes)
                if copied > MOST_COPIED:
                    raise UserError(f"fusions that share computations, as {source.name}, stand for more than {MOST_COPIED:,} instructions",
                                    "XLA gives every fusion a computation of its own; --policy irscope plans the text as it is")
            seen.add(source)
            here: dict[Node, Instruction] = {}
            by_name: dict[str, Instruction] = {}
            for node in source.nodes:
                check(node)
                instruction = Instruction(node.op, node.type, [here[o] for o in node.operands], node, node.attrs)
                here[node] = by_name[node.name] = instruction
                before = Ordering.of(node).control_predecessors
                if before:
                    instruction.predecessors = [by_name[name] for name in before if name in by_name]
                computation.instructions[instruction] = None
                if has_body(node):
                    instruction.kind = Fusion.of(node).kind
                    instruction.body = Computation(node.bodies[0].name)
                    pending.append((instruction.body, node.bodies[0]))
            computation.params = [here[p] for p in source.params]
            computation.root = here[source.result()]
        return made

    @property
    def outputs(self) -> list[Instruction]:
        """The results: the operands of a root tuple, or the root."""
        return list(self.root.operands) if self.root.op is hlo.tuple else [self.root]

    def post_order(self) -> list[Instruction]:
        """XLA's ``MakeInstructionPostOrder``: depth first from every instruction without users, in the order of the text."""
        return post_order((i for i in self.instructions if not i.users),
                          lambda i: [*reversed(i.predecessors), *i.operands] if i.predecessors else i.operands)

    def add(self, instruction: Instruction) -> Instruction:
        """Add a new instruction."""
        self.instructions[instruction] = None
        return instruction

    def add_copy(self, source: Instruction, operands: Iterable[Instruction]) -> Instruction:
        """Add a copy of an instruction with other operands."""
        copy = source.clone()
        copy.operands = list(operands)
        for operand in copy.operands:
            operand.users.add(copy)
        return self.add(copy)

    def replace_uses(self, old: Instruction, new: Instruction) -> None:
        """Replace all uses of ``old`` by ``new``, including as the result of the computation."""
        old.replace_uses(new)
        if self.root is old:
            self.root = new

    def remove(self, instruction: Instruction) -> None:
        """Remove an instruction without users."""
        instruction.detach()
        self.instructions.pop(instruction, None)

    def drop(self, instruction: Instruction) -> None:
        """Remove an instruction without users, and all operands that only it used; parameters and side effects stay."""
        pending = [instruction]
        while pending:
            dead = pending.pop()
            if not dead.users and dead is not self.root and dead.op is not hlo.parameter and dead in self.instructions \
                    and not dead.has_side_effect:
                operands = list(dict.fromkeys(dead.operands))
                self.remove(dead)
                pending += operands

    def wrap(self, consumer: Instruction, kind: str) -> Instruction:
        """Replace ``consumer`` by a fusion that computes it."""
        fusion = consumer.clone(hlo.fusion)
        fusion.kind = kind
        fusion.inside = {}
        fusion.body = Computation("")
        fusion.body.root = fuse_into(fusion, consumer)
        self.replace_uses(consumer, self.add(fusion))
        self.remove(consumer)
        return fusion

    def unwrap(self, fusion: Instruction) -> None:
        """Inline a fusion: the graph before it was fused, as far as the text still shows it."""
        body = fusion.fused_body
        copies = dict(zip(body.params, fusion.operands, strict=True))
        for instruction in body.post_order():
            if instruction not in copies:
                copy = copies[instruction] = Instruction(instruction.op, instruction.type, (copies[o] for o in instruction.operands),
                                                         instruction.node, instruction.attrs)
                copy.kind, copy.body = instruction.kind, instruction.body
                self.add(copy)
        self.replace_uses(fusion, copies[body.root])
        self.remove(fusion)


MOST_COPIED = 50_000
"""Instructions of bodies that several fusions share and that are copied for each: fusions within fusions may double them at each level."""


def copy_into(fusion: Instruction, producer: Instruction) -> list[Instruction]:
    """Copy an instruction, or the body of a fusion, into the body of another fusion; returns the copies of its results."""
    body, source = fusion.fused_body, producer.body
    if source is None:
        return [body.add_copy(producer, [parameter_of(fusion, operand) for operand in producer.operands])]
    fusion.absorbed += producer.absorbed if producer.node is None else (*producer.absorbed, producer.node)
    copies = {inner: parameter_of(fusion, operand) for inner, operand in zip(source.params, producer.operands, strict=True)}
    for instruction in source.post_order():
        if instruction not in copies and not (instruction is source.root and instruction.op is hlo.tuple):
            copies[instruction] = body.add_copy(instruction, [copies[o] for o in instruction.operands])
    return [copies[output] for output in source.outputs]


def parameter_of(fusion: Instruction, operand: Instruction) -> Instruction:
    """The parameter of a fusion for an operand; creates it if there is none."""
    body, inside = fusion.body, fusion.inside
    assert body is not None
    known = inside.get(operand) if inside is not None else \
        body.params[fusion.operands.index(operand)] if operand in fusion.operands else None
    if known is not None:
        return known
    parameter = operand.clone(hlo.parameter)
    body.params.append(parameter)
    body.instructions[parameter] = None
    fusion.operands.append(operand)
    fusion.places = None
    operand.users.add(fusion)
    if inside is not None:
        inside[operand] = parameter
        parameter.outside = operand
    return parameter


def take_parameter(fusion: Instruction, operand: Instruction) -> Instruction | None:
    """Remove an operand of a fusion and return its parameter; None if the fusion does not read it."""
    body, inside = fusion.body, fusion.inside
    assert body is not None
    if operand not in inside if inside is not None else operand not in fusion.operands:
        return None
    number = fusion.operands.index(operand)
    parameter = body.params.pop(number)
    body.instructions.pop(parameter)
    del fusion.operands[number]
    fusion.places = None
    operand.users.discard(fusion)
    if inside is not None:
        del inside[operand]
    return parameter


def fuse_into(fusion: Instruction, source: Instruction) -> Instruction:
    """Copy ``source`` into the body of ``fusion``; returns the copy. If ``source`` is an operand of ``fusion``, the copy takes its place.

    XLA's ``CloneAndAppendInstructionIntoCalledComputation``: operands become parameters, one for each instruction outside.
    """
    fusion.traits = None
    body = fusion.body
    assert body is not None
    copy = take_parameter(fusion, source)
    if copy is None:
        copy = source.clone()
    else:
        # Users of the parameter read the copy instead: nothing else changes.
        copy.op, copy.node, copy.attrs, copy.bodies = source.op, source.node, source.attrs, source.bodies
        copy.body, copy.kind, copy.outside, copy.operands, copy.places = source.body, source.kind, None, [], None
    body.instructions[copy] = None
    for operand in source.operands:
        parameter = parameter_of(fusion, operand)
        copy.operands.append(parameter)
        parameter.users.add(copy)
    return copy
