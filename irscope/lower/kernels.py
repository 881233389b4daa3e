"""From a group with assigned buffers to kernels: chooses the template, and shares one kernel among groups that differ only in names."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

from irscope.fusion import Group
from irscope.fusion.views import VIEWS, Chain
from irscope.graph import Kind, Node, TensorType
from irscope.graph.numbering import Numbering
from irscope.lower.program import Slot
from irscope.lower.storage import Storage
from irscope.lower.templates import RIVALS, Arg, Built, KernelOperand, LaunchStage, Packed, Problem, Template, templates
from irscope.lower.tile import Schedule
from irscope.lower.work import MOST_PADDED, SMALL, operations, operations_of

Tuner = Callable[[Problem, list[Built]], int]
"""Takes a problem and several ways to solve it, the one by rule first, and returns the fastest."""


class KernelCache:
    """Builds each kernel once. A ``tuner`` chooses among the possible ways; without one the rules choose.

    ``built`` maps the key of each kernel built so far to its launches.
    """

    def __init__(self, tuner: Tuner | None = None) -> None:
        self.tuner = tuner
        self.numbering = Numbering()
        self.built: dict[Hashable, tuple[Problem, Built]] = {}
        self._names: dict[str, int] = {}

    def build(self, problem: Problem) -> Built | None:
        """The launches of a problem; None when no template accepts the group as a whole, or when its kernels would recompute too much."""
        key = key_of(problem, self.numbering)
        found = self.built.get(key)
        if found is not None:
            return _renamed(found[1], found[0], problem)
        for template in templates():
            match = template.match(problem)
            if match is not None:
                problem.name = self._name(problem.name)
                schedule = template.schedule(problem, match)
                built = _made(template, problem, match, schedule)
                if _is_repetitive(problem.group, built):
                    return None
                if self.tuner is not None:
                    others = [_made(*way) for way in _ways(template, problem, match, schedule)]
                    built = [built, *others][self.tuner(problem, [built, *others])] if others else built
                self.built[key] = (problem, built)
                return built
        return None

    def _name(self, wanted: str) -> str:
        n = self._names[wanted] = self._names.get(wanted, -1) + 1
        return f"{wanted}_{n}" if n else wanted


def _made(template: Template[object], problem: Problem, match: object, schedule: Schedule) -> Built:
    schedule.setdefault("template", template.name)
    built = template.build(problem, match, schedule)
    for stage in built.stages:
        stage.kernel.counts_flops = bool(stage.kernel.flops) or (len(built.stages) == 1 and all(map(_is_counted, problem.group.nodes)))
        stage.kernel.flops = stage.kernel.flops or flops_of(problem.group) / len(built.stages)
        stage.kernel.bytes = stage.kernel.bytes or _bytes_of(problem) / len(built.stages)
        stage.kernel.origin = stage.kernel.origin or names_of(problem.group)
    return built


def _is_repetitive(group: Group, built: Built) -> bool:
    """Whether kernels of several nodes compute so much more than the nodes that only recomputation explains it."""
    if sum(node.op not in VIEWS and node.op.kind is not Kind.TUPLE for node in group.nodes) < 2:
        return False
    done = sum(operations(stage.kernel) for stage in built.stages)
    return done > SMALL and done > MOST_PADDED * operations_of(group)


Way = tuple[Template[Any], Problem, object, Schedule]


def _ways(template: Template[object], problem: Problem, match: object, schedule: Schedule) -> Iterator[Way]:
    """Other schedules of the template that accepts the group, and those of its rival."""
    for other in template.alternatives(problem, match, schedule):
        yield template, problem, match, other
    for rival in templates():
        if RIVALS.get(template.name) == rival.name:
            found = rival.match(problem)
            if found is not None:
                by_rule = rival.schedule(problem, found)
                yield rival, problem, found, by_rule
                yield from _ways(rival, problem, found, by_rule)


def key_of(problem: Problem, numbering: Numbering) -> Hashable:
    """The key of a kernel: all that it depends on. Equal keys mean equal kernels."""
    group = problem.group
    number = {node: n for n, node in enumerate(dict.fromkeys((*problem.ins, *group.nodes)))}

    def operand(node: Node) -> Hashable:
        return number[node] if node in number else ("constant", node.type, numbering.attrs(node.attrs))

    nodes = tuple((number[n], numbering.shape_of(n), tuple(operand(o) for o in n.operands)) for n in group.nodes)
    ins = tuple((_place(s), n in problem.constants) for n, s in problem.ins.items())
    outs = tuple((number[n], _place(s), _chain(group.chains.get(n), number)) for n, s in problem.outs.items())
    anchor = number.get(group.anchor, -1) if group.anchor is not None else -1
    how = (problem.machine, problem.threads, problem.in_place, tuple(sorted(number[n] for n in problem.stream)))
    return (group.kind, nodes, ins, outs, anchor, group.space, group.rows, how, problem.precision)


def flops_of(group: Group) -> float:
    """Operations of the group's nodes, as their declarations count them."""
    return sum(flops_of_node(node) for node in group.nodes)


def flops_of_node(node: Node) -> float:
    """Operations of one node: as its declaration counts them, else one per element of a pointwise node."""
    if node.op.cost is not None:
        return float(node.op.cost(node))
    return float(node.type.elements) if node.op.scalar is not None and isinstance(node.type, TensorType) else 0.0


def _is_counted(node: Node) -> bool:
    """Whether the operations of a node are known: its declaration counts them, or it only moves data."""
    return node.op.cost is not None or node.op.scalar is not None or node.op.kind in (Kind.BROADCAST, Kind.INJECTIVE, Kind.TUPLE, Kind.LEAF)


def names_of(group: Group) -> tuple[str, ...]:
    """The names of the nodes that the group computes, as in the text."""
    return tuple(dict.fromkeys(origin.name for node in group.nodes for origin in node.origin or (node,)))


def _bytes_of(problem: Problem) -> float:
    return float(sum(s.elements * s.dtype.storage for s in (*problem.ins.values(), *problem.outs.values())))


def _place(storage: Storage) -> Hashable:
    return (storage.dtype.name, storage.shape, storage.strides, storage.offset - storage.base, storage.room)


def _chain(chain: Chain | None, number: dict[Node, int]) -> Hashable:
    return tuple(number[step] if isinstance(step, Node) else step for step in chain or ())


def _renamed(built: Built, before: Problem, now: Problem) -> Built:
    """The launches of a problem, reused for one of the same structure: the same kernels over that problem's nodes and memory."""
    nodes = dict(zip((*before.ins, *before.outs), (*now.ins, *now.outs), strict=True))
    own: dict[Slot, Slot] = {}

    def other(arg: Arg) -> Arg:
        if isinstance(arg, Packed):
            return replace(arg, node=nodes[arg.node])
        if arg.node is not None:
            return KernelOperand(now.operand(nodes[arg.node]).storage, nodes[arg.node], arg.around)
        slot = arg.storage.slot
        return replace(arg, storage=replace(arg.storage, slot=own.setdefault(slot, replace(slot))))

    return Built([LaunchStage(stage.kernel, [other(arg) for arg in stage.args]) for stage in built.stages])
