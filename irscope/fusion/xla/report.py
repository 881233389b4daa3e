"""The result of an XLA fusion pass as a plan: kernels, and a verdict on each edge of the text."""
from __future__ import annotations

from irscope.fusion.plan import UNREPORTED, EdgeVerdict, Group, Plan, inputs_of
from irscope.fusion.xla.cpu import Outcome
from irscope.fusion.xla.horizontal_loops import sliced_out
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.nodes import has_body
from irscope.fusion.xla.refusal import Refusal
from irscope.graph import Graph, Node
from irscope.ops import hlo
from irscope.ops.attributes import Fusion

PRODUCERS = UNREPORTED - {hlo.tuple}
"""Producers whose edges are no fusion decisions and get no verdict."""
NO_KERNEL = hlo.named("parameter constant tuple get-tuple-element bitcast while conditional call after-all")
"""Operators that launch no kernel."""

KernelsOf = dict[Node, list[tuple[Instruction, Instruction]]]
"""For each node its copies, each with the kernel that holds it."""


def plan_of(graph: Graph, outcome: Outcome) -> Plan:
    """The plan of one computation and of the bodies of the fusions that its text already has."""
    plan = Plan(graph, decisions=outcome.fused)
    kernels_of: KernelsOf = {}
    for kernel in outcome.computation.post_order():
        members = _members(kernel)
        for member in (kernel, *members) if kernel.node is not None and kernel.body is not None else members:
            if member.node is not None:
                kernels_of.setdefault(member.node, []).append((member, kernel))
        for node in kernel.absorbed:
            kernels_of.setdefault(node, []).append((kernel, kernel))
    plan.groups = groups_of(outcome.computation)
    for owner in (*dict.fromkeys(n.bodies[0] for n in graph.nodes if has_body(n)), graph):  # the bodies of fusions first
        for consumer in owner.nodes:
            if consumer.op is hlo.tuple or consumer not in kernels_of:
                continue
            for producer in dict.fromkeys(consumer.operands):
                if producer.op not in PRODUCERS:
                    plan.verdicts.append(_verdict(owner, producer, consumer, kernels_of, outcome))
                elif producer.op is hlo.get_tuple_element and producer.operands[0].op not in PRODUCERS and producer in kernels_of:
                    plan.verdicts.append(_through(owner, producer, consumer, kernels_of, outcome))
    return plan


def groups_of(computation: Computation) -> list[Group]:
    """The kernels of a computation as groups, in an executable order."""
    return [_group(kernel, _members(kernel)) for kernel in computation.post_order() if kernel.op not in NO_KERNEL]


def _members(kernel: Instruction) -> list[Instruction]:
    """The nodes of the text that a kernel computes."""
    return [kernel] if kernel.body is None else [i for i in kernel.body.post_order() if i.node is not None]


def from_text(plan: Plan, unfused: Outcome) -> None:
    """Add the reason to the verdicts on edges between kernels that the text already has.

    ``unfused`` is the result of the pass on the same computation with those kernels inlined. If it separates two instructions that
    the text separates, its reason is reported; otherwise the verdict stays.
    """
    kernels_of: dict[Node, Instruction] = {}
    for kernel in unfused.computation.post_order():
        for member in (kernel,) if kernel.body is None else kernel.body.instructions:
            if member.node is not None:
                kernels_of.setdefault(member.node, kernel)
    for place, verdict in enumerate(plan.verdicts):
        producer, consumer = verdict.producer, verdict.consumer
        if verdict.graph is not plan.graph or verdict.fused != "none" or not (opened(producer) or opened(consumer)):
            continue
        source = producer.bodies[0].result() if opened(producer) else producer
        for reader in _readers(producer, consumer):
            refusal = unfused.refusals.get((source.name, kernels_of[reader])) if reader in kernels_of else None
            if refusal is not None:
                plan.verdicts[place] = refused_edge(verdict.graph, producer, consumer, "none", refusal, (source, reader))
                break


def taken_apart(graph: Graph) -> Computation:
    """The computation with the kernels of the text inlined."""
    computation = Computation.of(graph)
    for instruction in list(computation.instructions):
        if instruction.node is not None and opened(instruction.node):
            computation.unwrap(instruction)
    return computation


def opened(node: Node) -> bool:
    """Whether a node is a kernel of the text with one result, which can be inlined."""
    return has_body(node) and Fusion.of(node).kind != "kCustom" and node.bodies[0].result().op is not hlo.tuple


def _readers(producer: Node, consumer: Node) -> list[Node]:
    """The instructions that read a value: in the body of a kernel, the users of its parameter."""
    if not opened(consumer):
        return [consumer]
    body = consumer.bodies[0]
    params = {body.params[i] for i, operand in enumerate(consumer.operands) if operand is producer}
    return [node for node in body.nodes if not params.isdisjoint(node.operands)]


def _group(kernel: Instruction, members: list[Instruction]) -> Group:
    """A kernel as a group. Several copies of one node count once."""
    nodes = list(dict.fromkeys(m.node for m in members if m.node is not None))
    outputs = [n for o in kernel.results if (n := sliced_out(o).node) is not None]
    inputs = [node for node in inputs_of(nodes) if node.op is not hlo.constant]
    reductions = [n for n in nodes if n.op is hlo.reduce]
    kind = "whole" if kernel.body is None and not kernel.is_elementwise else "reduction" if reductions else "map"
    return Group(kind, nodes, outputs or nodes[-1:], inputs, reductions[-1] if reductions else None, kernel.dims)


def _verdict(graph: Graph, producer: Node, consumer: Node, kernels_of: KernelsOf, outcome: Outcome) -> EdgeVerdict:
    """The verdict on one edge over all copies of the consumer.

    Several kernels with a copy may refuse the producer for different reasons. XLA tests the users of a producer in their order and stops at
    the first that refuses, so that its reason is reported (``CanFuseWithAllNonBitcastUsers``, priority_fusion.cc).
    """
    fused, apart = 0, list[tuple[Instruction, Instruction]]()
    for copy, kernel in kernels_of[consumer]:
        source = _source(copy, kernel, producer)
        if source is None:
            fused += 1
        else:
            apart.append((source, kernel))
    if not apart:
        return EdgeVerdict(graph, producer, consumer, "all")
    source, kernel = apart[0] if len(apart) == 1 else _first(apart)
    return refused_edge(graph, producer, consumer, "some" if fused else "none", outcome.refusals.get((source.name, kernel)))


def _first(apart: list[tuple[Instruction, Instruction]]) -> tuple[Instruction, Instruction]:
    """Of the kernels that read one value, with that value, the first in the order of its users."""
    source = apart[0][0]
    kernels = {kernel for value, kernel in apart if value is source}
    return next(((source, user) for user in source.users if user in kernels), apart[0])


def _through(graph: Graph, part: Node, consumer: Node, kernels_of: KernelsOf, outcome: Outcome) -> EdgeVerdict:
    """The edge from an operator with several results to a user of one of them."""
    source, kernel = part.operands[0], kernels_of[part][0][1]
    return refused_edge(graph, source, consumer, "none", outcome.refusals.get((source.name, kernel)))


def refused_edge(graph: Graph, producer: Node, consumer: Node, fused: str, refusal: Refusal | None,
                 pair: tuple[Node, Node] | None = None) -> EdgeVerdict:
    """The verdict on an edge, with a refusal in XLA's words and irscope's; ``pair`` are the instructions inside the kernels, if known."""
    if refusal is None:
        return EdgeVerdict(graph, producer, consumer, fused)
    inside = pair or (producer, consumer)
    return EdgeVerdict(graph, producer, consumer, fused, refusal.words(*inside) or None, refusal.rule.name, refusal.cause(*inside))


def _source(copy: Instruction, kernel: Instruction, producer: Node) -> Instruction | None:
    """The instruction outside of the kernel from which a copy reads ``producer``; None if it reads a copy inside."""
    body = kernel.body
    if body is None:
        return next(o for o, n in zip(copy.operands, _operands(copy), strict=True) if n is producer)
    if copy is kernel:
        return next((o for o in kernel.operands if _is(o, producer)), None)
    for operand, node in zip(copy.operands, _operands(copy), strict=True):
        if node is producer and (source := _written_by(operand)).op is hlo.parameter:
            return kernel.operands[body.params.index(source)]
    return None


def _written_by(instruction: Instruction) -> Instruction:
    """The producer of a value, through what a rewriting inserted, such as a bitcast."""
    while instruction.node is None and instruction.op is not hlo.parameter and instruction.body is None:
        instruction = instruction.operands[0]
    return instruction


def _operands(copy: Instruction) -> tuple[Node, ...]:
    assert copy.node is not None
    return copy.node.operands


def _is(instruction: Instruction, node: Node) -> bool:
    """Whether an instruction of the computation computes the value of a node: it is the node, or a kernel with it as root."""
    root = instruction.body.root if instruction.node is None and instruction.body is not None else instruction
    return root.node is node
