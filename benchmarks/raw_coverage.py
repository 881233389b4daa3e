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
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from irscope.api import load
from irscope.fusion import EdgeVerdict, Plan
from irscope.fusion.canonicalise import canonicalise, run_cpu
from irscope.fusion.xla.early_gpu import rewritten
from irscope.fusion.xla.gpu_device import device_named
from irscope.fusion.xla.releases import GPU_REWRITING
from irscope.fusion.xla_cpu import RELEASES, XlaCpuPolicy
from irscope.fusion.xla_gpu import POLICY, XlaGpuPolicy
from irscope.fusion.xla_gpu import RELEASES as GPU_RELEASES
from irscope.graph import Graph, Module, Node, TensorType
from irscope.source import UserError

UNTOLD = frozenset(("parameter", "constant", "get-tuple-element", "tuple"))
ASIDE = frozenset((
    "control_predecessors literal operand_precision number channel_id is_stable calls kind features").split())
"""Attributes that make no other node."""
Form = Callable[[Node], str]
RUNS = frozenset(("while", "conditional", "call"))


def form(node: Node) -> str:
    """The type of a node without its layout."""
    types = [node.type] if isinstance(node.type, TensorType) else list(node.type.leaves())
    return ";".join(f"{t.dtype.name}{list(t.shape)}" if isinstance(t, TensorType) else str(t) for t in types)


def size(node: Node) -> str:
    """Element type and number of elements: what is left of a type where bitcasts are left out."""
    types = [node.type] if isinstance(node.type, TensorType) else list(node.type.leaves())
    return ";".join(f"{t.dtype.name}{t.elements}" if isinstance(t, TensorType) else str(t) for t in types)


def attributes(node: Node) -> object:
    """What makes a node another one than those of its operator, form and operands."""
    if node.op.name == "parameter":
        return node.attrs["number"]
    if node.op.name == "constant" and "literal" in node.attrs:
        return node.attrs["literal"].text
    if node.op.name in ("fusion", "bitcast", "copy"):
        return ()
    return tuple(sorted((k, str(v)) for k, v in node.attrs.items() if k not in ASIDE))


def meanings(graph: Graph, form: Form) -> dict[Node, int]:
    """For each node a number that says what it computes of the parameters."""
    found: dict[Node, int] = {}
    for node in graph.nodes:
        found[node] = hash((node.op.name, form(node), attributes(node), *(found[o] for o in node.operands)))
    return found


def sides(a: Node, b: Node, form: Form) -> list[tuple[Node, Node]]:
    """The operands of two nodes that are alike. XLA's GPU compiler may swap those of a product, which makes no other kernel."""
    mine = list(b.operands)
    if a.op.name == "dot" and [form(o) for o in a.operands] != [form(o) for o in mine] == [form(o) for o in reversed(a.operands)]:
        mine.reverse()
    return list(zip(a.operands, mine, strict=True))


class Matching:
    """Nodes of the text from before fusion (``truth``), each with the node of the rewritten text that stands for it."""

    def __init__(self, truth: Graph, ours: Graph, name_of: Callable[[Node], str], our_name_of: Callable[[Node], str], form: Form) -> None:
        self.form = form
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
                left[node.op.name, self.form(node), our_name_of(node)].append(node)
        for node in truth.nodes:
            if node not in self.pairs and (rest := left.get((node.op.name, self.form(node), name_of(node)))):
                self._take(node, rest.pop(0))

    def alike(self, a: Node, b: Node) -> bool:
        return a.op.name == b.op.name and len(a.operands) == len(b.operands) and self.form(a) == self.form(b)

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
            if self.alike(a, b) and self._take(a, b):
                stack.extend(sides(a, b, self.form))

    def _by_meaning(self, truth: Graph, ours: Graph) -> None:
        theirs, by = meanings(truth, self.form), defaultdict(list)
        for node, meaning in meanings(ours, self.form).items():
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
                    free = [m for m in mine[self.pairs[node].index] if m not in self.taken and self.alike(reader, m)]
                    if len(free) == 1 and sum(self.alike(r, free[0]) for r in rest if r not in self.pairs) == 1:
                        self._down(reader, free[0])
            changed = len(self.pairs) > before


def matchings(truth: Module, ours: Module, form: Form) -> dict[Graph, tuple[Graph, Matching]]:
    """Every computation of the later text that runs, with its counterpart and the nodes of both."""
    found: dict[Graph, tuple[Graph, Matching]] = {}
    pending = [(truth.main(), ours.main())]
    while pending:
        a, b = pending.pop()
        if a not in found:
            matching = Matching(a, b, truth.scope, ours.scope, form)
            found[a] = (b, matching)
            pending += [pair for node, mine in matching.pairs.items() if node.op.name in RUNS
                        for pair in zip(node.bodies, mine.bodies, strict=False)]
    return found


def edges(plan: Plan) -> dict[tuple[str, str], EdgeVerdict]:
    return {v.names: v for v in plan.verdicts if v.graph is plan.graph}


@dataclass(slots=True)
class Judged:
    """A module with, for each computation, whether the ends of an edge are apart; ``module`` is what the nodes are of."""

    module: Module
    apart: dict[Graph, dict[tuple[Node, Node], bool]]


def judged(module: Module, plans: Iterable[Plan]) -> Judged:
    made = Judged(module, {})
    for plan in plans:
        nodes = {node.name: node for node in plan.graph.nodes}
        made.apart[plan.graph] = {(nodes[p], nodes[c]): v.fused == "none" for (p, c), v in edges(plan).items()}
    return made


def compare(truth: Judged, ours: Judged, form: Form, each: bool = False) -> Counter[str]:
    """What was found of one program: edges, those covered, those not fused, and what was said of the covered ones."""
    matched = matchings(truth.module, ours.module, form)
    count: Counter[str] = Counter()
    for graph, known in truth.apart.items():
        counterpart = matched.get(graph)
        for (a, b), apart in known.items():
            if source_of(a).op.name in UNTOLD or b.op.name in UNTOLD:
                continue
            count["edges"] += 1
            count["apart"] += apart
            pairs = counterpart[1].pairs if counterpart is not None else {}
            mine = ours.apart[counterpart[0]].get((pairs[a], pairs[b])) if counterpart is not None and a in pairs and b in pairs else None
            if mine is not None:
                count["covered"] += 1
                count["right"] += mine == apart
                count["said apart"] += mine
                count["rightly apart"] += apart and mine
                count["covered apart"] += apart
            if each and mine != apart:
                print(f"    {a!r} -> {b!r}: {'apart' if apart else 'fused'}, {'not covered' if mine is None else 'said otherwise'}")
    return count


def on_cpu(raw: str, before: str, policy: XlaCpuPolicy) -> tuple[Judged, Judged]:
    """What XLA does of a program, and what the policy ``xla-cpu`` of a release makes of its early text."""
    rewrite = partial(run_cpu, rewriting=policy.release.rewriting)
    truth, ours = load(before).module(), canonicalise(load(raw).module(), rewrite).module
    return judged(truth, policy.plan_as_written(truth)), judged(ours, policy.plan_as_written(ours))


def on_gpu(raw: str, before: str, device: str, policy: XlaGpuPolicy = POLICY) -> tuple[Judged, Judged]:
    """The same of ``xla-gpu``. Triton kernels are opened and bitcasts left out on both sides: an edge is one between what computes."""
    chosen, truth, early = device_named(device), load(before).module(), load(raw).module()
    _, canonical = rewritten(early, chosen, policy.release.rewriting or GPU_REWRITING)
    made, mine = policy.plan_rewritten(canonical if canonical is not None else canonicalise(early, lambda body, kept: None), chosen)
    return flat(truth, policy.plan_module(truth, device)), flat(made.module, mine)


def flat(module: Module, plans: Iterable[Plan]) -> Judged:
    """A module with its kernels opened, its bitcasts left out and equal instructions made one (kernels have copies), and what became of
    the edges: what one kernel computes is together."""
    made = Judged(module.derived(), {})
    graphs: dict[Graph, Graph] = {}
    for plan in plans:
        graph = graphs[plan.graph] = Graph(plan.graph.name)
        made.module.graphs[graph.name] = graph
        apart = {key: verdict.fused == "none" for key, verdict in edges(plan).items()}
        made.apart[graph] = _opened(plan.graph, graph, graphs, apart)
    made.module.entry = graphs[module.main()].name
    return made


def source_of(node: Node) -> Node:
    """What an edge that begins at a node is told of: the operator of several results, where it is one of them."""
    return node.operands[0] if node.op.name == "get-tuple-element" and node.operands[0].op.name not in UNTOLD else node


def _opened(source: Graph, graph: Graph, graphs: dict[Graph, Graph], apart: dict[tuple[str, str], bool]) -> dict[tuple[Node, Node], bool]:
    """Fill ``graph``. ``here`` says for each node of the text what gives its value, and whether it comes through an edge that is apart."""
    here: dict[Node, tuple[Node, bool]] = {}
    known: dict[tuple[Node, Node], bool] = {}
    same: dict[object, Node] = {}

    def add(node: Node, operands: Iterable[tuple[Node, bool]]) -> tuple[Node, bool]:
        read = list(operands)
        if node.op.name == "bitcast" and read:
            return read[0]
        key = (node.op.name, form(node), attributes(node), tuple(o for o, _ in read)) if read or node.op.name == "constant" else node
        if key in same:
            copy = same[key]
            for operand, way in read:
                known[operand, copy] = known[operand, copy] or way
            return copy, False
        copy = same[key] = graph.add(Node(node.op, f"n{len(graph.nodes)}", node.type, tuple(o for o, _ in read), node.attrs,
                              tuple(graphs.get(b, b) for b in node.bodies), node.loc))
        for operand, way in read:
            known[operand, copy] = known.get((operand, copy), False) or way
        return copy, False

    for node in source.nodes:
        read = [(here[o][0], here[o][1] or apart.get((source_of(o).name, node.name), False)) for o in node.operands]
        if node.op.name == "fusion" and node.bodies and node.bodies[0].root is not None:
            body = node.bodies[0]
            inner = dict(zip(body.params, read, strict=True))
            for member in body.nodes:
                if member not in inner:
                    inner[member] = add(member, [inner[o] for o in member.operands])
            here[node] = inner[body.result()]
        else:
            here[node] = add(node, read)
    graph.params = [here[p][0] for p in source.params]
    graph.root = here[source.result()][0]
    return known


def texts(folder: Path, raw: Path | None) -> tuple[str, str] | None:
    """The early and the later text in a folder; None where it has not both. ``raw``: where the early texts are, if elsewhere."""
    first = (raw / folder.name if raw is not None else folder) / "raw.hlo"
    if first.exists() and (folder / "before.hlo").exists():
        return first.read_text(), (folder / "before.hlo").read_text()
    early = sorted(folder.glob("*before_optimizations.txt"))
    late = sorted(folder.glob("*.after_layout_assignment.after_pipeline-start*")) or [
        dump for dump in sorted(folder.glob("*.fusion.after_*"))
        if re.search(r"before_(priority-fusion|variadic-op-splitter|sort-iota-fusion)", dump.name)][-1:]
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
    parser.add_argument("--policy", choices=("xla-cpu", "xla-gpu"), default="xla-cpu")
    parser.add_argument("--as-of", choices=RELEASES | GPU_RELEASES, default="jaxlib-0.10.2", help="the release that made the texts")
    parser.add_argument("--device", default="h100", help="of xla-gpu")
    parser.add_argument("--raw", type=Path, help="folder of folders with raw.hlo, where FOLDER has before.hlo alone")
    parser.add_argument("--only", help="programs whose name fits")
    parser.add_argument("--each", action="store_true", help="a line for each program")
    parser.add_argument("--edges", action="store_true", help="a line for each edge that was not found, or decided otherwise")
    args = parser.parse_args()
    for folder in args.folders:
        total: Counter[str] = Counter()
        programs = 0
        for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
            found = texts(inner, args.raw)
            if found is None or (args.only and not fnmatch(inner.name, args.only)):
                continue
            if args.each:
                print(inner.name)
            try:
                if args.policy == "xla-gpu":
                    count = compare(*on_gpu(*found, args.device, GPU_RELEASES[args.as_of]), size, args.edges)
                else:
                    count = compare(*on_cpu(*found, RELEASES[args.as_of]), form, args.edges)
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
