"""How often ``--policy inductor`` decides as Inductor recorded: ``python benchmarks/inductor_recorded.py FOLDER...``.

Each FOLDER is, or holds, folders ``torch_compile_debug`` (docs/formats/inductor.md says how to get one). For each graph in it the policy
plans ``fx_graph_transformed.py``, and its operations are aligned with the scheduler nodes by origins, kind and sizes, as the log of
the fusion pass beside the folder lists them, or else as ``ir_pre_fusion.txt`` has them.

A pair is two scheduler nodes of which one reads what the other writes. It is right where the record (``ir_post_fusion.txt``) and the policy
both have the two in one kernel, or both have not. ``loops`` counts the pairs of which both ends are loops: an extern kernel is never fused,
so that the other pairs are easy. Misses are listed by cause: a node that was not aligned, fused by the policy alone, or by Inductor alone.
"""
from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import irscope
from irscope.expand import bind_types, expand
from irscope.fleet import compile_folder
from irscope.fleet.compile_record import GraphRecord, read_record
from irscope.fleet.dump_folder import read_folder
from irscope.formats.inductor.fusion_log import Candidate, FusionRun
from irscope.formats.inductor.scheduler import SchedulerNode
from irscope.fusion.inductor.kernels import Kernel
from irscope.fusion.inductor.policy import RELEASES, InductorPolicy
from irscope.fusion.inductor.releases import release_of, version_in
from irscope.fusion.inductor.report import written
from irscope.fusion.logs.torch_replay import matched
from irscope.graph import DynamicDim, Module, TensorType
from irscope.source import UserError

LIKE = 0.3
"""The share of common nodes of the graph from which two operations are the same one."""


SIZE = 32
"""For symbolic sizes."""


@dataclass
class Tally:
    """Pairs, those that are right, the same of loops alone, and the misses by cause."""

    pairs: int = 0
    right: int = 0
    loops: int = 0
    loops_right: int = 0
    causes: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Sum two up."""
        self.pairs, self.right = self.pairs + other.pairs, self.right + other.right
        self.loops, self.loops_right = self.loops + other.loops, self.loops_right + other.loops_right
        self.causes += other.causes

    def row(self, name: str) -> str:
        """One line of the table."""
        shares = [f"{a:5} of {b:<5} {a / b if b else 1:6.3f}" for a, b in ((self.right, self.pairs), (self.loops_right, self.loops))]
        return f"{name:44} " + "   loops ".join(shares) + ("   " + ", ".join(f"{c} {n}" for c, n in self.causes.most_common()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    total, unread = Tally(), 0
    for root in parser.parse_args().folders:
        for folder in sorted({*root.rglob(compile_folder.ROOT), *([root] if root.name == compile_folder.ROOT else [])}):
            for name, found in _graphs(folder):
                if isinstance(found, str):
                    unread += 1
                    print(f"{name:44} not planned: {found.splitlines()[-1].strip()}")
                else:
                    total.add(found)
                    print(found.row(name))
    print(total.row("all"))
    if unread:
        print(f"{unread} graphs could not be planned")


def _graphs(path: Path) -> Iterator[tuple[str, Tally | str]]:
    """The tally of each graph in a folder, or why it has none."""
    folder = read_folder(str(path))
    record = read_record(folder)
    for module in folder.modules:
        graph = record.graphs.get(module.name) if record is not None else None
        text = next((s.path for s in module.stages if s.name == compile_folder.AFTER and not s.text), None)
        if graph is None or text is None:
            continue
        name = f"{path.parent.name} {module.name.removeprefix('model__')}"
        try:
            yield name, judged(graph, text, record.run_of(graph) if record is not None else None)
        except (UserError, ValueError) as error:
            yield name, str(error)


def judged(graph: GraphRecord, text: str, run: FusionRun | None) -> Tally:
    """The pairs of one graph; ``run`` is the log of its fusion, which lists the loops as they were lowered, but no symbolic sizes.

    Raises UserError where irscope does not plan the graph.
    """
    module = irscope.load(text).module()
    made = sized(module)
    prepared = policy_of(text).prepared(expand(made, outline=True).main())
    scheduler = prepared.scheduler
    nodes = [leaf for node in graph.before for leaf in node.leaves()]
    listed = [operation_of(node) for node in nodes]
    if run is not None and made is module:
        listed = [Candidate(c.name, c.kind, c.sizes, c.origins) for c in run.candidates]
    names = aligned(listed, scheduler.kernels)
    scheduler.run()
    recorded = {op: i for i, node in enumerate(graph.after) for op in node.ops()}
    tally = Tally()
    for first, second in pairs(nodes):
        together = recorded.get(first.name) == recorded.get(second.name)
        homes = [scheduler.home[names[end.name]] if end.name in names else None for end in (first, second)]
        loops = first.body is not None and second.body is not None
        predicted = homes[0] is not None and homes[0] is homes[1]
        right = predicted == together if None not in homes else not loops and not together
        cause = "" if right else "not aligned" if None in homes else "fused by the policy alone" if predicted else "fused by Inductor alone"
        tally.add(Tally(1, int(right), int(loops), int(right and loops), Counter([cause] if cause else [])))
    return tally


def policy_of(text: str) -> InductorPolicy:
    """The policy of the release that wrote the folder of a text: ``fx_graph_runnable.py`` beside it tells."""
    beside = Path(text).with_name("fx_graph_runnable.py")
    return RELEASES[release_of(version_in(beside.read_text()) if beside.is_file() else "").name]


def sized(module: Module) -> Module:
    """The module with a size for each of its symbols: the policy plans static shapes."""
    shapes = {p.name: tuple(SIZE if isinstance(n, DynamicDim) else n for n in p.type.shape)
              for p in module.main().params if isinstance(p.type, TensorType) and not p.type.is_static}
    return bind_types(module, shapes) if shapes else module


def aligned(operations: list[Candidate], kernels: list[Kernel]) -> dict[str, str]:
    """For operations the names of irscope's buffers, by kind and sizes in order, or by the nodes of the graph that they compute.

    What aligns more of them is taken: the order of a backward graph differs, and nodes that several operations compute tell little.
    """
    by_sizes = matched(operations, kernels)
    by_origins = _by_origins(operations, kernels)
    return by_origins if len(by_origins) > len(by_sizes) else by_sizes


def _by_origins(operations: list[Candidate], kernels: list[Kernel]) -> dict[str, str]:
    """Operations that compute the same nodes of the graph, then those of the same kind and sizes among the others."""
    own = {k.buffers[0].name: ({written(n).name for n in k.buffers[0].members}, k.buffers[0].kind) for k in kernels}
    scored = sorted(((len(members & set(o.origins)) / len(members | set(o.origins)), o.name, name) for o in operations if o.origins
                     for name, (members, kind) in own.items() if kind == o.kind and not members.isdisjoint(o.origins)), reverse=True)
    found: dict[str, str] = {}
    for score, operation, name in scored:
        if score >= LIKE and operation not in found and name not in found.values():
            found[operation] = name
    rest = [o for o in operations if o.name not in found]
    taken = set(found.values())
    return found | matched(rest, [k for k in kernels if k.buffers[0].name not in taken])


def pairs(nodes: list[SchedulerNode]) -> Iterator[tuple[SchedulerNode, SchedulerNode]]:
    """Scheduler nodes of which the second reads what the first writes."""
    writer = {output.name: node for node in nodes for output in node.outputs}
    for node in nodes:
        sources = {writer[dep.buffer].name: writer[dep.buffer] for dep in node.unmet if dep.buffer in writer and not dep.is_order_only}
        yield from ((source, node) for source in sources.values() if source is not node)


def operation_of(node: SchedulerNode) -> Candidate:
    """A scheduler node as the log of the fusion pass lists it: its kind, and the sizes of its loops or of its reduction."""
    if node.is_nop or node.is_extern or node.body is None:
        return Candidate(node.name, "nop" if node.is_nop else "extern")
    if node.body.kind == "reduction":
        return Candidate(node.name, "reduction", _sizes(node, 1))
    if any(dep.mode for dep in node.writes):
        return Candidate(node.name, "scatter", _sizes(node, 0))
    layout = node.outputs[0].layout if node.outputs else None
    sizes = numbers(layout.size) if layout is not None and not layout.mutates else _sizes(node, 0)
    return Candidate(node.name, "pointwise", sizes)


def _sizes(node: SchedulerNode, group: int) -> tuple[int, ...]:
    """One group of ``sizes = ([32], [128])``."""
    groups = [text.split(",") for text in re.findall(r"\[([^\[\]]*)\]", node.fields.get("sizes", ""))]
    return numbers(groups[group]) if group < len(groups) else ()


def numbers(sizes: Iterable[object]) -> tuple[int, ...]:
    """Sizes with :data:`SIZE` for their symbols; those that are no products are left out."""
    factors = [re.sub(r"\bs\d+\b", str(SIZE), str(size)).strip().split("*") for size in sizes]
    return tuple(prod(map(int, one)) for one in factors if all(factor.isdigit() for factor in one))


if __name__ == "__main__":
    main()
