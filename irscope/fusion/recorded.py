"""The plan that a compiler itself recorded for a module, in place of what a policy predicts.

A module carries the record as its attribute ``fusion_record``; every request for plans returns this one, whatever the policy. Verdicts on
edges quote the log's refusals verbatim. A pair that the log does not name has a cause, but no reason.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from irscope.fusion.inductor.reasons import RULES
from irscope.fusion.inductor.scheduler import BETWEEN, CYCLE, DIFFERENT_ACCESS, FAR, MEMORY, NO_SHARED_DATA, ORDER, TOO_LARGE
from irscope.fusion.logs.events import FusionLog
from irscope.fusion.plan import EdgeVerdict, Group, Plan, inputs_of
from irscope.graph import Graph, Kind, Module, Node
from irscope.graph.attributes import Attributes, attribute

CAUSES = {
    BETWEEN: "another kernel must run after the first of the two and before the second",
    NO_SHARED_DATA: "neither reads what the other reads or writes, so that one kernel would save no traffic",
    DIFFERENT_ACCESS: "the second reads the buffer by other indices than the first writes it",
    ORDER: "the first of the two is computed later",
    CYCLE: "one kernel would have to wait for its own result",
    TOO_LARGE: "the kernel would have more nodes than torch._inductor.config.max_fusion_size",
    MEMORY: "the fused kernel would keep more buffers alive at the same time",
    FAR: "many nodes run between the two, so that buffers would live longer",
}
"""What the words of the log mean, for a reader who does not know the scheduler."""


@dataclass(frozen=True, slots=True)
class LoggedRefusal:
    """Two names of the log (``op3``, or fused ``op0_op3``), the reason in its own words, and the line of the compiler that decided."""

    a: str
    b: str
    reason: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class FusionRecord:
    """``groups`` are the nodes of each kernel by name, ``refusals`` those of the log; ``files`` is where both come from."""

    compiler: str
    groups: tuple[tuple[str, ...], ...]
    refusals: tuple[LoggedRefusal, ...] = ()
    files: tuple[str, ...] = ()


class Recorded(Attributes):
    """The record that a module carries."""

    __slots__ = ()
    fusion_record = attribute[FusionRecord | None](None)


def with_record(module: Module, record: FusionRecord) -> Module:
    """The module with a record."""
    return replace(module, attrs={**module.attrs, "fusion_record": record})


def recorded_plans(module: Module) -> list[Plan] | None:
    """The plan that the compiler recorded, for the graph that runs; None where the module carries no record."""
    record = Recorded.of(module).fusion_record
    return None if record is None else [_Recording(module.main(), record).plan()]


def record_of_log(module: Module, log: FusionLog) -> FusionRecord | None:
    """The record of the run of a log that names the nodes of a module; None where no run does."""
    names = {node.name for node in module.main().shown()}
    best = max(range(len(log.operations)), key=lambda i: len(names & {o.name for o in log.operations[i]}), default=None)
    if best is None or names != {operation.name for operation in log.operations[best]}:
        return None
    home: dict[str, list[str]] = {name: [name] for name in names}
    for step in log.runs[best]:
        ends = [home.get(end.split("_")[0]) for end in (step.producer, step.consumer)]
        first, second = ends
        if step.made is not None and first is not None and second is not None and first is not second:
            first += second
            home.update(dict.fromkeys(second, first))
    groups = {id(group): tuple(group) for group in home.values()}
    refusals = tuple(LoggedRefusal(s.producer, s.consumer, s.words) for s in log.runs[best] if s.made is None and s.words)
    return FusionRecord(log.compiler, tuple(groups.values()), refusals, (log.name,))


@dataclass(slots=True)
class _Recording:
    """Groups and verdicts for one graph."""

    graph: Graph
    record: FusionRecord
    home: dict[str, int] = field(default_factory=dict)

    def plan(self) -> Plan:
        self.home = {name: i for i, group in enumerate(self.record.groups) for name in group}
        by_group: dict[object, list[Node]] = {}
        for node in self.graph.shown():
            if node.op.kind is not Kind.TUPLE:
                by_group.setdefault(self.home.get(node.name, node.name), []).append(node)
        plan = Plan(self.graph, [self._group(nodes) for nodes in by_group.values()])
        plan.verdicts = list(self._verdicts())
        return plan

    def _group(self, nodes: list[Node]) -> Group:
        """The nodes of one kernel; its outputs are those that others read, or the last."""
        users = self.graph.users()
        inside = set(nodes)
        outputs = [n for n in nodes if n is self.graph.root or any(u not in inside for u in users[n.index])] or nodes[-1:]
        return Group("whole" if len(nodes) == 1 else "map", nodes, outputs, inputs_of(nodes))

    def _verdicts(self) -> Iterator[EdgeVerdict]:
        # For each pair of nodes the last refusal; a refusal of fused nodes holds for every pair of their parts.
        said = {(a, b): refused for refused in self.record.refusals for a in refused.a.split("_") for b in refused.b.split("_")}
        for consumer in self.graph.shown():
            for producer in dict.fromkeys(_written(operand) for operand in consumer.operands):
                if not producer.synthetic and producer is not consumer:
                    yield self._verdict(producer, consumer, said)

    def _verdict(self, producer: Node, consumer: Node, said: Mapping[tuple[str, str], LoggedRefusal]) -> EdgeVerdict:
        home = self.home.get(producer.name)
        if home is not None and home == self.home.get(consumer.name):
            return EdgeVerdict(self.graph, producer, consumer, "all", recorded=True)
        ends = [(a, b) for a in _names(producer) for b in _names(consumer)]
        refused = next((said[pair] for a, b in ends for pair in ((a, b), (b, a)) if pair in said), None)
        if refused is not None:
            rule = next((RULES[words] for words in RULES if words and refused.reason.startswith(words)), "other")
            cause = next((CAUSES[words] for words in CAUSES if refused.reason.startswith(words)), "")
            where = f"{refused.place} decided it" if refused.place else ""
            parts = "; ".join(part for part in (cause, where) if part)
            return EdgeVerdict(self.graph, producer, consumer, "none", refused.reason, rule, parts, recorded=True)
        rule, cause = self._silence(producer, consumer)
        return EdgeVerdict(self.graph, producer, consumer, "none", None, rule, cause, recorded=True)

    def _silence(self, producer: Node, consumer: Node) -> tuple[str, str]:
        """The rule and cause for a pair that the record does not name."""
        for end in (producer, consumer):
            if end.op.kind is Kind.TUPLE:
                return "no-kernel", f"%{end.name} needs no kernel: it only names a part of another buffer"
            if not end.op.known or end.op.kind is Kind.CONTRACTION:
                return "extern-kernel", f"%{end.name} calls {end.op.name}, which {self.record.compiler} does not fuse"
        if not self.record.refusals:
            return "not-recorded", "no log of the fusion pass is beside this text: TORCH_LOGS=fusion records the reasons"
        return "not-tried", f"the log names no attempt: {self.record.compiler} tries pairs that share a buffer and may be scored"


class _Parts(Attributes):
    """What a node that the compiler fused consists of."""

    __slots__ = ()
    parts = attribute[tuple[str, ...]](())


def _names(node: Node) -> tuple[str, ...]:
    """The names under which the log refuses a node: those of its parts, if it is fused in the text."""
    return _Parts.of(node).parts or (node.name,)


def _written(node: Node) -> Node:
    """The node of the text behind the synthetic nodes that name one of its results."""
    while node.synthetic and len(node.operands) == 1:
        node = node.operands[0]
    return node
