"""Why two operators are in different kernels: the scheduler's test that refused them, the compared numbers, and the smallest edit."""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from irscope.fusion.inductor.kernels import Kernel
from irscope.fusion.inductor.loops import Access
from irscope.fusion.inductor.report import Report, is_place, named, written
from irscope.fusion.inductor.scheduler import BETWEEN, CYCLE, DIFFERENT_ACCESS, FAR, LITTLE, MEMORY, NO_SHARED_DATA, ORDER, TOO_LARGE
from irscope.fusion.inductor.units import STRUCTURE
from irscope.fusion.inductor.values import Buffer
from irscope.fusion.plan import EdgeVerdict
from irscope.graph import Node
from irscope.ops import hlo

RULES = {
    BETWEEN: "intermediate-node", DIFFERENT_ACCESS: "index-mismatch", NO_SHARED_DATA: "no-shared-data", ORDER: "order", CYCLE: "cycle",
    TOO_LARGE: "group-size", MEMORY: "peak-memory", FAR: "distance", LITTLE: "little-shared", "loops": "iteration-space-mismatch",
    "reduction-first": "reduction-then-other-loops", "horizontal-size": "horizontal-size", "": "not-tried",
}
"""Short names of the tests, by the words of the log or of the backend."""

OF_A_LIBRARY = hlo.named("dot convolution")
"""A library call that computes several source operators is reported by the name of the operator with one of these."""


class Reason(NamedTuple):
    """``words`` are Inductor's own (None: it logs nothing)."""

    words: str | None
    rule: str
    cause: str


def verdicts(report: Report) -> Iterator[EdgeVerdict]:
    """A verdict on each edge between two operators of the user's program, in text order.

    Views do not count as operators: they cost nothing, and an edge goes through them. Primitives of one source operator count as that
    operator; an edge of which only some primitives are fused is fused ``some``.
    """
    found: dict[tuple[Node, Node], list[tuple[str, Reason | None]]] = {}
    for producer, consumer in _edges(report):
        ends = (written(producer), written(consumer))
        if ends[0] is not ends[1]:
            found.setdefault(ends, []).append(_judge(report, producer, consumer))
    for (first, second), judged in found.items():
        states = {state for state, _ in judged}
        fused = states.pop() if len(states) == 1 else "some"
        why = next((r for _, r in judged if r is not None), None)
        yield EdgeVerdict(report.program.graph, first, second, fused, *(why or ()))


def _edges(report: Report) -> Iterator[tuple[Node, Node]]:
    """Pairs of nodes that compute something, the second reading the first, possibly through views."""
    for node in report.program.graph.nodes:
        if node not in report.kernels_of or report.is_view(node):
            continue
        stack = list(reversed(node.operands))
        seen: set[Node] = set()
        while stack:
            operand = stack.pop()
            if operand in seen or (operand.op in STRUCTURE and operand.op not in (hlo.tuple, hlo.get_tuple_element)):
                continue
            seen.add(operand)
            through = report.is_view(operand) or operand in report.program.tuples
            if through or operand.op in (hlo.tuple, hlo.get_tuple_element):
                stack.extend(reversed(operand.operands))
            elif operand in report.kernels_of:
                yield operand, node


def _judge(report: Report, producer: Node, consumer: Node) -> tuple[str, Reason | None]:
    mine, theirs = report.kernels_of[consumer], report.kernels_of[producer]
    few, many = sorted((mine, theirs), key=len)  # both in the order in which the kernels run
    together = [kernel for kernel in few if kernel in many and not is_place(kernel)]
    if together:
        buffer = report.stored.get(producer)
        alone = len(theirs) == 1 and (buffer is None or not report.leaves(buffer, together[0]))
        return ("all" if alone else "some"), None
    return "none", reason(report, producer, consumer)


def reason(report: Report, producer: Node, consumer: Node) -> Reason:
    """The first reason that an edge is not fused."""
    first, second = _stored(report, producer), _reading(report, producer, consumer)
    for node, buffer in ((producer, first), (consumer, second)):
        if buffer is not None and buffer.kind == "extern":
            return _call(report, node)
    if first is not None and first.kind == "nop":
        return Reason(None, "concatenation", f"{named(producer)} is assembled in memory from pieces that are written separately")
    if first is None or second is None:
        return Reason(None, "not-tried", f"{named(producer)} and {named(consumer)} are not computed by loops")
    refused = report.scheduler.refused(first.number, second.number)
    test = refused.test if refused is not None else ""
    numbers = refused.numbers if refused is not None else ""
    home, reader = report.scheduler.home[first.name], report.scheduler.home[second.name]
    cause = _explained(report, test, numbers, (producer, consumer), (home, reader))
    return Reason(refused.words if refused is not None else None, RULES.get(test, test), cause)


def _stored(report: Report, node: Node) -> Buffer | None:
    """The buffer that holds a node's value, or else one of those that compute it."""
    if node in report.stored and report.stored[node].name in report.scheduler.home:
        return report.stored[node]
    kernels = report.kernels_of.get(node, ())
    return next((b for kernel in kernels for b in kernel.buffers if node in b.members), None)


def _reading(report: Report, producer: Node, consumer: Node) -> Buffer | None:
    """The first buffer that computes the consumer and reads the producer."""
    reading = report.reading[consumer]
    return reading.get(_stored(report, producer)) or reading.get(None)


def _call(report: Report, node: Node) -> Reason:
    """The reason if ``node``, the producer of the edge or its user, is a library call."""
    name = written(node).op.name
    main = next((n for n in report.program.home[node].nodes if n.op in OF_A_LIBRARY), node)
    part = "" if written(main) is written(node) else f" is part of {written(main).op.name} {named(main)}, which"
    cause = f"{name} {named(node)}{part} is a library call: Inductor fuses nothing into it or after it"
    return Reason(None, "extern-kernel", cause)


def _explained(report: Report, test: str, numbers: str, ends: tuple[Node, Node], kernels: tuple[Kernel, Kernel]) -> str:
    """A sentence with the names and numbers of this edge."""
    (producer, consumer), (first, second) = ends, kernels
    a, b = named(producer), named(consumer)
    if test == BETWEEN:
        between = _between(report, first, second)
        other = f"{named(between)} ({written(between).op.name})" if between is not None else "another kernel"
        return f"the kernel of {b} also needs {other}, which needs {a} and is not part of it"
    if test in (DIFFERENT_ACCESS, NO_SHARED_DATA):
        return f"{b} reads {a} in another order, or other elements of it, than it is written in: {_accesses(first, second)}"
    if test == "loops":
        return f"the loops of {a} run over {_loops(first)}, those of {b} over {_loops(second)}; the C++ backend joins equal loops only"
    if test == "reduction-first":
        return f"{a} reduces over {list(first.group[1])}, and the loops of {b} over {_loops(second)} share no outer loops with it"
    if test == TOO_LARGE:
        return f"the kernel would have too many operations: {numbers}"
    if test == MEMORY:
        return f"memory that could be reused between the two would be kept: {numbers} elements"
    if test == CYCLE:
        return f"another kernel needs {a} and is needed by {b}: joining both would close a cycle"
    if test:
        return f"the scheduler refuses {a} and {b}: {test} {numbers}".strip()
    attempts = report.scheduler.limits.attempts
    return f"{a} and {b} were not tried together: each reader of a buffer is tried with the {attempts} that follow it"


def _between(report: Report, first: Kernel, second: Kernel) -> Node | None:
    """A kernel that the second depends on and that depends on the first."""
    for need in second.needs:
        home = report.scheduler.home[need.buffer]
        if home is not first and home is not second and report.scheduler.ancestors.before(first, home):
            return report.scheduler.buffers[need.buffer].node
    return None


def _loops(kernel: Kernel) -> str:
    loops, reduced = kernel.group
    return f"{list(loops)}" + (f" and reduce {list(reduced)}" if reduced else "")


def _accesses(first: Kernel, second: Kernel) -> str:
    """The loop sizes of the write and the read that do not match."""
    for write in first.writes:
        for read in second.reads:
            if isinstance(read, Access) and isinstance(write, Access) and read.buffer == write.buffer:
                return f"written over {list(write.sizes)}, read over {list(read.sizes)}"
    return "their accesses differ"
