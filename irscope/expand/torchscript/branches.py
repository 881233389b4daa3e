"""Branches on data: both ways are run into bodies of a ``conditional``, which returns what they return, write or put into containers."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irscope.expand.torchscript import aliases
from irscope.expand.torchscript.containers import Contents
from irscope.expand.torchscript.merging import MISSING, filled, slots, unified
from irscope.expand.torchscript.program import TorchProgram
from irscope.expand.torchscript.structure import flatten
from irscope.formats.torchscript.abstract import Scalar, Tensor
from irscope.graph import Node
from irscope.graph.dtypes import F64, PRED, S64
from irscope.ops.faults import TypeFault
from irscope.source import UserError

Body = Callable[[], list[object]]
"""A branch: runs it, and returns its results."""


STEPS = 32
"""What the body of a branch costs, in runs of a node. A branch in which the other way raises runs twice, and so do those inside."""


class Raise(Exception):
    """The program raises an exception; carries its message."""


class BranchRun:
    """One branch, run into its own body: its results and its effects.

    ``final`` maps every outer storage that it wrote to its new value, ``before`` to the old one; ``doubts`` has those
    whose value is not known after its writes; ``containers`` the new contents of the lists and dicts that it changed.
    """

    def __init__(self, program: TorchProgram, name: str, body: Body, contents: Contents) -> None:
        t = program.t
        with t.body(name) as self.frame:
            journal = t.journals[-1]
            try:
                self.results = body()
                self.containers = contents.changed()
                for leaf in flatten([self.results, list(self.containers.values())]):
                    if isinstance(leaf, Tensor):
                        leaf.get()
                self.final = {storage: storage.last() for storage in journal}
            finally:
                contents.restore()
                self.before, self.doubts = dict(journal), t.doubts[-1]
                for storage, before in journal.items():
                    storage.set(before)

    def nodes(self, program: TorchProgram, leaves: list[Any]) -> list[Node | None]:
        """The leaves at the end of this way; None for those that it does not have."""
        with program.t.again(self.frame):
            for storage, node in self.final.items():
                storage.set(node)
            try:
                return [None if leaf is MISSING else program.t.here(node_of_leaf(program, leaf)) for leaf in leaves]
            finally:
                for storage, node in self.before.items():
                    storage.set(node)


def conditional(program: TorchProgram, node: Node, flag: Node, bodies: Sequence[Body], captured: Sequence[Any]) -> list[Any]:
    """One of two bodies by a number that depends on data. A way that raises is dropped in favour of the other one.

    ``captured`` are the values that the bodies read.
    """
    t = program.t
    contents = Contents(program, captured)
    ways: list[BranchRun | None] = []
    reasons: list[str] = []
    for i, body in enumerate(bodies):
        program.step(node, STEPS)
        try:
            ways.append(BranchRun(program, f"{node.name}.{i}", body, contents))
        except Raise as reason:
            ways.append(None)
            reasons.append(str(reason))
    first, second = ways
    if first is None or second is None:
        if first is None and second is None:
            raise Raise(reasons[0])
        return bodies[0 if second is None else 1]()
    places = list(dict.fromkeys([*first.containers, *second.containers]))
    results = unified(first.results, second.results)
    held = [unified(*(way.containers.get(p, contents.before(p)) for way in (first, second))) for p in places]
    touched = list(dict.fromkeys([*first.final, *second.final]))
    gaps = slots([results, held])
    rows: list[list[Node | None]] = []
    for way, leaves in ((first, [gap.first for gap in gaps]), (second, [gap.second for gap in gaps])):
        rows.append(way.nodes(program, leaves))
        with t.again(way.frame):
            rows[-1] += [t.here(way.final.get(storage, storage.last())) for storage in touched]
    parts = _joined(program, flag, (first, second), rows)
    for storage, part in zip(touched, parts[len(gaps):], strict=True):
        aliases.announce(program, storage)
        storage.set(part)
    for storage, why in [*first.doubts.items(), *second.doubts.items()]:
        t.doubt(storage, why)
    values = [like(gap.second if gap.first is MISSING else gap.first, part) for gap, part in zip(gaps, parts, strict=False)]
    aliases.join(program, node, values, ([gap.first for gap in gaps], [gap.second for gap in gaps]))
    made = filled([results, held], values)
    for place, value in zip(places, made[1], strict=True):
        contents.put(place, value)
    given: list[Any] = made[0]
    return given


def _joined(program: TorchProgram, flag: Node, ways: tuple[BranchRun, BranchRun], rows: list[list[Node | None]]) -> list[Node]:
    """The parts of the conditional whose bodies end in these rows."""
    if not rows[0]:
        return []
    results = _same_types(program, ways, rows)
    for way in ways:
        program.keep(way.frame.graph)
    return program.t.conditional(flag, [way.frame for way in ways], results)


def _same_types(program: TorchProgram, ways: tuple[BranchRun, BranchRun], rows: list[list[Node | None]]) -> list[list[Node]]:
    """Unify the types of both ways: promotes element types and requires equal shapes. A leaf that one way lacks is zero there."""
    t = program.t
    results: list[list[Node]] = [[], []]
    for pair in zip(*rows, strict=True):
        known = [node for node in pair if node is not None]
        if any(t.shape(node) != t.shape(known[0]) for node in known):
            raise TypeFault(f"the branches give {known[0].type} and {known[1].type}, and which one is taken depends on data")
        dtypes = {t.dtype(node) for node in known}
        dtype = t.dtype(known[0]) if len(dtypes) == 1 else t.result_type(*known)
        for way, node, out in zip(ways, pair, results, strict=True):
            with t.again(way.frame):
                out.append(t.full(t.shape(known[0]), 0, dtype) if node is None else t.convert(node, dtype))
    return results


def node_of_leaf(program: TorchProgram, value: object) -> Node:
    """The node of a tensor or number that compiled code can pass on. Raises UserError for other values."""
    if isinstance(value, Tensor):
        return value.get()
    if isinstance(value, Scalar):
        return value.node
    if isinstance(value, bool | int | float):
        return program.t.array(value, PRED if isinstance(value, bool) else S64 if isinstance(value, int) else F64)
    raise UserError(f"a value that depends on data is {type(value).__name__}, which compiled code cannot represent")


def like(value: object, node: Node) -> Any:
    """A result of a conditional or loop as a value of the program: a tensor, or a number that depends on data."""
    if isinstance(value, Tensor):
        return Tensor(node)
    kind = value.kind if isinstance(value, Scalar) else "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
    return Scalar(node, kind)
