"""A graph rebuilt from a computation that passes have changed in place, so that kernels can be reported in nodes."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph import Graph, Node, Op, Type


def rebuilt(computation: Computation, source: Graph, bodies: Mapping[Graph, Graph]) -> tuple[Graph, dict[Node, Node]]:
    """The graph, and for each node of ``source`` the node that replaced it, if possible outside of kernels.

    Inlines kernels and merges copies of one value. Sets the node of each instruction to its new node. ``bodies`` maps the graphs
    that loops and branches run to their replacements.
    """
    made = Graph(source.name, loc=source.loc, notes=source.notes)
    given: dict[Instruction, Node] = {}
    known: dict[tuple[Node | Op, Type, tuple[Node, ...]], Node] = {}
    became: dict[Node, Node] = {}
    taken: dict[str, int] = {}

    def add(instruction: Instruction, operands: tuple[Node, ...]) -> Node:
        old = instruction.node
        key = (old if old is not None else instruction.op, instruction.type, operands)
        found = known.get(key)
        if found is None:
            name = old.name if old is not None else instruction.op.name
            number = taken[name] = taken.get(name, -1) + 1
            inner = tuple(bodies.get(b, b) for b in instruction.bodies)
            origin = old.origin if old is not None else operands[0].origin if operands else ()
            found = Node(instruction.op, f"{name}.clone.{number}" if number else name,
                         instruction.type, operands, instruction.attrs, inner, old.loc if old is not None else -1, origin=origin)
            known[key] = made.add(found)
        instruction.node = found
        return found

    inside: list[tuple[Node, Node]] = []
    outside = dict.fromkeys([*computation.params, *computation.post_order()])
    for instruction in outside:
        operands = tuple(given[o] for o in instruction.operands)
        if instruction.node is not None or instruction.body is None:
            old = instruction.node
            given[instruction] = add(instruction, operands)
            if old is not None:
                became.setdefault(old, given[instruction])
            continue
        here: dict[Instruction, Node] = dict(zip(instruction.body.params, operands, strict=True))
        for member in instruction.body.post_order():
            if member not in here:
                old = member.node
                here[member] = add(member, tuple(here[o] for o in member.operands))
                if old is not None:
                    inside.append((old, here[member]))
        given[instruction] = here[instruction.body.root]
    for old, node in inside:
        became.setdefault(old, node)
    made.params = [given[p] for p in computation.params]
    made.root = given[computation.root]
    return made, became
