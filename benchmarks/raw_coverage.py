"""How well HLO from before XLA's rewriting is brought to what its CPU fusion pass sees.

python benchmarks/raw_coverage.py FOLDER... [--each]

A folder holds one folder for each program: either ``raw.hlo`` and ``before.hlo``, or what XLA dumps with ``--xla_dump_hlo_pass_re=.*`` (the
first dump, and the one before ``fusion``). Both texts go through the policy ``xla-cpu``; for the later one its answers are what XLA does
(docs/fusion/xla.md). Each node of the later text is matched with one of the rewritten early text: from the results downwards where
operator and type agree, by what it computes, by who reads it, and last by operator, type and the user's name for it. An edge is covered
when both its ends are matched by nodes that have an edge.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from irscope.api import load
from irscope.fusion import EdgeVerdict, Plan
from irscope.fusion.canonicalise import canonicalise
from irscope.fusion.xla_cpu import POLICY
from irscope.graph import Graph, Module, Node, TensorType
from irscope.source import UserError

UNTOLD = frozenset(("parameter", "constant", "get-tuple-element", "tuple"))
ASIDE = frozenset(("control_predecessors", "literal", "operand_precision", "number", "channel_id", "is_stable", "calls", "kind"))
"""Attributes that make no other node."""
RUNS = frozenset(("while", "conditional", "call"))


def form(node: Node) -> str:
    """The type of a node without its layout."""
    types = [node.type] if isinstance(node.type, TensorType) else list(node.type.leaves())
    return ";".join(f"{t.dtype.name}{list(t.shape)}" if isinstance(t, TensorType) else str(t) for t in types)


def meanings(graph: Graph) -> dict[Node, int]:
    """For each node a number that says what it computes of the parameters."""
    found: dict[Node, int] = {}
    for node in graph.nodes:
        attrs = () if node.op.name in ("fusion", "bitcast", "copy") else tuple(sorted((k, str(v)) for k, v in node.attrs.items()
                                                                                      if k not in ASIDE))
        own: object = node.attrs["number"] if node.op.name == "parameter" else attrs
        if node.op.name == "constant" and "literal" in node.attrs:
            own = node.attrs["literal"].text
        found[node] = hash((node.op.name, form(node), own, *(found[o] for o in node.operands)))
    return found


def alike(a: Node, b: Node) -> bool:
    return a.op.name == b.op.name and len(a.operands) == len(b.operands) and form(a) == form(b)


class Matching:
    """Nodes of the text from before fusion (``truth``), each with the node of the rewritten text that stands for it."""

    def __init__(self, truth: Graph, ours: Graph, name_of: Callable[[Node], str], our_name_of: Callable[[Node], str]) -> None:
        self.pairs: dict[Node, Node] = {}
        self.taken: set[Node] = set()
        for a, b in zip(truth.params, ours.params, strict=False):
            self._take(a, b)
        self._down(truth.result(), ours.result())
        self._by_meaning(truth, ours)
        self._by_readers(truth, ours)
        left = defaultdict(list)
        for node in ours.nodes:
            if node not in self.taken:
                left[node.op.name, form(node), our_name_of(node)].append(node)
        for node in truth.nodes:
            if node not in self.pairs and (rest := left.get((node.op.name, form(node), name_of(node)))):
                self._take(node, rest.pop(0))

    def _take(self, node: Node, mine: Node) -> bool:
        if node in self.pairs or mine in self.taken:
            return False
        self.pairs[node] = mine
        self.taken.add(mine)
        return True

    def _down(self, node: Node, mine: Node) -> None:
        stack = [(node, mine)]
        while stack:
            a, b = stack.pop()
            if alike(a, b) and self._take(a, b):
                stack.extend(zip(a.operands, b.operands, strict=True))

    def _by_meaning(self, truth: Graph, ours: Graph) -> None:
        theirs, by = meanings(truth), defaultdict(list)
        for node, meaning in meanings(ours).items():
            by[meaning].append(node)
        for node in truth.nodes:
            free = [n for n in by.get(theirs[node], ()) if n not in self.taken]
            if node not in self.pairs and free:
                self._take(node, free[0])

    def _by_readers(self, truth: Graph, ours: Graph) -> None:
        readers, mine = truth.users(), ours.users()
        changed = True
        while changed:
            before = len(self.pairs)
            for node in truth.nodes:
                if node not in self.pairs:
                    continue
                rest = [r for r in readers[node.index] if r not in self.pairs]
                for reader in rest:
                    free = [m for m in mine[self.pairs[node].index] if m not in self.taken and alike(reader, m)]
                    if len(free) == 1 and sum(alike(r, free[0]) for r in rest if r not in self.pairs) == 1:
                        self._down(reader, free[0])
            changed = len(self.pairs) > before


def matchings(truth: Module, ours: Module) -> dict[Graph, tuple[Graph, Matching]]:
    """Every computation of the later text that runs, with its counterpart and the nodes of both."""
    found: dict[Graph, tuple[Graph, Matching]] = {}
    pending = [(truth.main(), ours.main())]
    while pending:
        a, b = pending.pop()
        if a not in found:
            matching = Matching(a, b, truth.scope, ours.scope)
            found[a] = (b, matching)
            pending += [pair for node, mine in matching.pairs.items() if node.op.name in RUNS
                        for pair in zip(node.bodies, mine.bodies, strict=False)]
    return found


def edges(plan: Plan) -> dict[tuple[str, str], EdgeVerdict]:
    return {(v.producer, v.consumer): v for v in plan.verdicts if v.computation == plan.graph.name}


def compare(raw: str, before: str) -> Counter[str]:
    """What was found of one program: edges, those covered, those not fused, and what was said of the covered ones."""
    truth, ours = load(before).module(), canonicalise(load(raw).module()).module
    plans = {plan.graph: edges(plan) for plan in POLICY.plan_as_written(ours)}
    matched = matchings(truth, ours)
    count: Counter[str] = Counter()
    for plan in POLICY.plan_as_written(truth):
        counterpart = matched.get(plan.graph)
        nodes = {node.name: node for node in plan.graph.nodes}
        for (producer, consumer), verdict in edges(plan).items():
            a, b = nodes[producer], nodes[consumer]
            if a.op.name in UNTOLD or b.op.name in UNTOLD:
                continue
            apart = verdict.fused == "none"
            count["edges"] += 1
            count["apart"] += apart
            if counterpart is None:
                continue
            graph, pairs = counterpart[0], counterpart[1].pairs
            mine = plans[graph].get((pairs[a].name, pairs[b].name)) if a in pairs and b in pairs else None
            if mine is not None:
                count["covered"] += 1
                count["right"] += (mine.fused == "none") == apart
                count["said apart"] += mine.fused == "none"
                count["rightly apart"] += apart and mine.fused == "none"
                count["covered apart"] += apart
    return count


def texts(folder: Path) -> tuple[str, str] | None:
    """The early and the later text in a folder; None where it has not both."""
    if (folder / "raw.hlo").exists() and (folder / "before.hlo").exists():
        return (folder / "raw.hlo").read_text(), (folder / "before.hlo").read_text()
    early = sorted(folder.glob("*before_optimizations.txt"))
    late = sorted(folder.glob("*.after_layout_assignment.after_pipeline-start*"))
    return (early[0].read_text(), late[0].read_text()) if early and late else None


def line(name: str, count: Counter[str]) -> str:
    def share(part: str, whole: str) -> str:
        return f"{count[part] / count[whole]:6.3f}" if count[whole] else "     -"

    return (f"{name:30} {count['edges']:6} edges, covered {share('covered', 'edges')}, right {share('right', 'covered')}; "
            f"apart P {share('rightly apart', 'said apart')}, R of covered {share('rightly apart', 'covered apart')}, "
            f"of all {share('rightly apart', 'apart')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--each", action="store_true", help="a line for each program")
    args = parser.parse_args()
    for folder in args.folders:
        total: Counter[str] = Counter()
        programs = 0
        for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
            found = texts(inner)
            if found is None:
                continue
            try:
                count = compare(*found)
            except UserError as error:
                print(f"{inner.name}: {error}")
                continue
            programs += 1
            total += count
            if args.each:
                print(line(inner.name, count))
        print(line(f"{folder.name}, {programs} programs", total))


if __name__ == "__main__":
    main()
