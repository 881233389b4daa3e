"""Why irscope's own policy puts two nodes in different kernels, edge by edge."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from irscope.fusion.plan import UNREPORTED, EdgeVerdict, Group, Plan
from irscope.fusion.views import stored
from irscope.graph import Graph, Node, live


class Refusal(Enum):
    """The rules by which the policy refuses to fuse two nodes."""

    READ_WHOLE = "reads-whole"
    STANDS_ALONE = "stands-alone"
    REPEATED = "repeated-work"
    READ_TWICE = "read-twice"
    STORED_FOR_OTHERS = "stored-for-others"
    OTHER_LOOPS = "other-loops"
    MOVED = "moved"
    REORDERED = "reordered"
    RESHAPED = "reshaped"
    ONE_ANCHOR = "one-anchor"
    CYCLE = "cycle"
    LONG_ROW = "long-row"
    TOO_LARGE = "too-large"
    SEVERAL_RESULTS = "several-results"


CAUSES: dict[Refusal, str] = {
    Refusal.READ_WHOLE: "{op} CONSUMER reads PRODUCER from memory: it visits elements many times, or in a different order",
    Refusal.STANDS_ALONE: "{producer_op} is a separate kernel: its result is complete only when all of it is computed",
    Refusal.REPEATED: "fusing PRODUCER would recompute it for every element of its broadcast; it is stored instead",
    Refusal.READ_TWICE: "the kernel of CONSUMER reads PRODUCER in several orders; computing it for each costs more than storing it",
    Refusal.STORED_FOR_OTHERS: "another kernel that reads PRODUCER computes and stores it; this one reads the result from memory",
    Refusal.OTHER_LOOPS: "the loops of CONSUMER's kernel do not run over the elements of PRODUCER",
    Refusal.MOVED: "CONSUMER's kernel reads PRODUCER in an order that no strides describe",
    Refusal.REORDERED: "no strides describe where PRODUCER finds its elements; CONSUMER's kernel, which keeps values for a row or a tile, "
                       "would recompute them for each element, so PRODUCER is stored first",
    Refusal.RESHAPED: "a reshape is between PRODUCER and its epilogue, whose loops have another shape",
    Refusal.ONE_ANCHOR: "the kernel of CONSUMER already holds a contraction, convolution or window; a kernel holds one",
    Refusal.CYCLE: "another reader of PRODUCER comes before CONSUMER's kernel, so fusing would close a cycle between kernels",
    Refusal.LONG_ROW: "a row of CONSUMER's kernel does not stay in the caches, so passes over it are separate kernels",
    Refusal.TOO_LARGE: "the kernel of CONSUMER has as many operations as one kernel takes",
    Refusal.SEVERAL_RESULTS: "PRODUCER is one of several results of one operator, which stores them all",
}


def cause(refusal: Refusal, producer: Node, consumer: Node) -> str:
    """The reason in a sentence, with the names of this edge."""
    text = CAUSES[refusal].format(op=consumer.op.name, producer_op=producer.op.name)
    return text.replace("CONSUMER", "%" + consumer.name).replace("PRODUCER", "%" + producer.name)


def verdicts(plan: Plan, refusals: Mapping[tuple[Node, Group], Refusal], apart: bool = False) -> Iterator[EdgeVerdict]:
    """A verdict on each edge between nodes that compute or move something, in text order. ``apart``: only on those through memory."""
    graph = plan.graph
    alive = live(graph)
    groups_of: dict[Node, list[Group]] = {}
    stored: set[Node] = set()
    for group in plan.groups:
        stored.update(group.outputs)
        for node in group.nodes:
            groups_of.setdefault(node, []).append(group)
    why: dict[Node, dict[Group, Refusal]] = {}
    for (node, group), refusal in refusals.items():
        why.setdefault(node, {})[group] = refusal
    for consumer in graph.nodes:
        if not alive[consumer.index] or consumer.op in UNREPORTED:
            continue
        for producer in dict.fromkeys(consumer.operands):
            if producer.op in UNREPORTED:
                continue
            mine, theirs = groups_of.get(consumer), groups_of.get(producer, [])
            if mine and not any(group in theirs for group in mine):
                yield _apart(graph, producer, consumer, mine, why)
            elif not apart:
                alone = len(theirs) <= 1 and producer not in stored
                yield EdgeVerdict(graph, producer, consumer, "all" if alone else "some")


def _apart(graph: Graph, producer: Node, consumer: Node, mine: list[Group], why: Mapping[Node, Mapping[Group, Refusal]]) -> EdgeVerdict:
    reasons = why.get(producer) or why.get(stored(producer)) or {}
    here = [reasons[group] for group in mine if group in reasons]
    refusal = [*here, *reasons.values(), Refusal.READ_WHOLE][0]
    anchor = mine[0].anchor
    if refusal is Refusal.READ_WHOLE and anchor is not None and anchor is not consumer:
        words = f"the kernel of %{consumer.name} also holds %{anchor.name}, a {anchor.op.name}, which reads %{producer.name} from memory"
        return EdgeVerdict(graph, producer, consumer, "none", None, refusal.value, words)
    return EdgeVerdict(graph, producer, consumer, "none", None, refusal.value, cause(refusal, producer, consumer))
