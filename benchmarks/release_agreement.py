"""How often ``xla-cpu`` or ``xla-gpu`` decides as some release of jaxlib did: ``python benchmarks/release_agreement.py FOLDER...``.

A FOLDER holds one folder for each program, with ``before.hlo``, XLA's dump from before its ``fusion`` pass, and ``vlog.txt``, what the same
run logged; where ``after.hlo`` lies there too, the kernels that the log tells of are compared with those of that dump. Both come of

    XLA_FLAGS="--xla_dump_to=D --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=fusion"
    TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=instruction_fusion=5,cpu_instruction_fusion=3

For ``xla-gpu`` (``--policy xla-gpu``) ``log.txt`` is the ``priority_fusion_dump.txt`` of a program compiled for a GPU, with or without one.

The log is replayed, so that the truth is the compiler's own, whatever its release; the policy looks at the text alone. Edges whose producer
is a parameter, a constant, a tuple or a part of one, or a bitcast, and those into a tuple, are trivial and not counted.
"""
from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

from irscope.api import load
from irscope.fusion import EdgeVerdict
from irscope.fusion.logs.verdicts import INSIDE, load_log
from irscope.fusion.logs.xla_replay import Replay
from irscope.fusion.policy import AsWritten
from irscope.fusion.xla_cpu import RELEASES as CPU
from irscope.fusion.xla_gpu import RELEASES as GPU
from irscope.graph import Graph, Module, callees_first

TRIVIAL = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast"))


@dataclass
class Tally:
    """What was counted of a set of programs; ``apart`` counts how the policy and the log differ."""

    modules: int = 0
    exact: int = 0
    edges: int = 0
    right: int = 0
    fused: int = 0
    fused_said: int = 0
    fused_right: int = 0
    unfused: int = 0
    unfused_said: int = 0
    unfused_right: int = 0
    words: int = 0
    words_right: int = 0
    kernels: int = 0
    kernels_right: int = 0
    apart: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Sum two up."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def row(self, name: str) -> str:
        """One line of the table."""
        return (f"{name:24} {self.exact:4} of {self.modules:<4} {self.right:5} of {self.edges:<5} "
                f"{_share(self.fused_right, self.fused_said)} / {_share(self.fused_right, self.fused)}   "
                f"{_share(self.unfused_right, self.unfused_said)} / {_share(self.unfused_right, self.unfused)}   "
                f"{self.words_right:4} of {self.words:<4}   {self.kernels_right:4} of {self.kernels}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--each", action="store_true", help="Every program that is not exact, with its edges.")
    parser.add_argument("--policy", choices=("xla-cpu", "xla-gpu"), default="xla-cpu")
    parser.add_argument("--as-of", help="The release whose rules the policy follows.")
    given = parser.parse_args()
    releases: Mapping[str, AsWritten] = CPU if given.policy == "xla-cpu" else GPU
    policy = releases[given.as_of or next(iter(releases))]
    print(f"{policy.version}\n{'set':24} {'modules exact':>12} {'edges right':>14}  {'fused P / R':>14}   {'unfused P / R':>13}   "
          f"{'XLA words':>12}   replay = dump")
    for folder in given.folders:
        total = Tally()
        for program in sorted(path.parent for path in folder.glob("*/before.hlo")):
            one = compare(program, policy)
            total.add(one)
            if given.each and one.apart:
                print(f"    {program.name}: {', '.join(f'{n} x {what}' for what, n in one.apart.items())}")
        print(total.row(folder.name))
        for what, n in total.apart.most_common():
            print(f"    {n:4} x {what}")


def compare(folder: Path, policy: AsWritten, device: str | None = None) -> Tally:
    """One program: the policy's verdicts on the text against the steps of the log."""
    run, verdicts = judged(folder, policy, device)
    tally = Tally(modules=1)
    for verdict in verdicts:
        count(tally, run, verdict, f"{verdict.producer.op.name} -> {verdict.consumer.op.name}")
    tally.exact = int(tally.right == tally.edges)
    if (folder / "after.hlo").is_file() and (folder / "vlog.txt").is_file():
        ours, theirs = replayed_kernels(run), dumped_kernels(load(folder / "after.hlo").module())
        tally.kernels, tally.kernels_right = sum(theirs.values()), sum((ours & theirs).values())
    return tally


def judged(folder: Path, policy: AsWritten, device: str | None = None) -> tuple[Replay, list[EdgeVerdict]]:
    """The run that the log of a program tells of, and the policy's verdicts on the edges that are no trivial ones."""
    module, run = read(folder)
    verdicts = [v for plan in policy.plan_module(module, device) for v in plan.verdicts
                if v.producer in run.home and v.consumer in run.home  # else inside a fusion of the text
                and v.producer.op.name not in TRIVIAL and v.consumer.op.name != "tuple" and run.knows(v.consumer)]
    return run, verdicts


@cache
def read(folder: Path) -> tuple[Module, Replay]:
    """The text of a program, and the run that its log tells of; kept, for other policies are asked about it too."""
    module = load(folder / "before.hlo").module()
    logs = (folder / "vlog.txt", folder / "log.txt")
    return module, replay(module, next(path for path in logs if path.is_file()))


def edges_apart(folder: Path, policy: AsWritten, device: str | None = None) -> Iterator[tuple[str, str]]:
    """The edges of a program that the policy decides otherwise than the log: how, by rule, and the edge."""
    run, verdicts = judged(folder, policy, device)
    for verdict in verdicts:
        truth = run.fused(verdict.producer, verdict.consumer)
        if truth != verdict.fused:
            step = run.pairs.get((verdict.producer, verdict.consumer)) or run.producers.get(verdict.producer)
            words = f" ({step.words})" if step is not None and truth == "none" else ""
            rule = f" [{verdict.rule}]" if verdict.rule else ""
            yield f"fused {truth}{words}, the row says {verdict.fused}{rule}", " -> ".join(f"%{name}" for name in verdict.names)


def replay(module: Module, log: Path) -> Replay:
    """The run of the log that fits the module, done again. An empty log is a pass that found nothing to consider."""
    bodies = {id(body) for g in module.graphs.values() for n in g.nodes if n.op in INSIDE for body in n.bodies}
    graphs = [g for g in callees_first(module, module.main()) if id(g) not in bodies]
    runs = [Replay(graphs, steps) for steps in load_log(str(log)).runs]
    return max(runs, key=lambda r: len(r.known) - len(r.unknown))


def count(tally: Tally, run: Replay, verdict: EdgeVerdict, what: str) -> None:
    """One edge."""
    truth = run.fused(verdict.producer, verdict.consumer)
    step = run.pairs.get((verdict.producer, verdict.consumer)) or run.producers.get(verdict.producer)
    tally.edges += 1
    tally.right += verdict.fused == truth
    tally.fused += truth != "none"
    tally.unfused += truth == "none"
    tally.fused_said += verdict.fused != "none"
    tally.unfused_said += verdict.fused == "none"
    tally.fused_right += truth != "none" and verdict.fused != "none"
    tally.unfused_right += truth == "none" and verdict.fused == "none"
    words = step.words if step is not None else None
    if verdict.fused != truth:
        tally.apart[f"{what}: XLA fused {truth}{f' ({words})' if words and truth == 'none' else ''}, the policy {verdict.fused}"
                    f"{f' ({verdict.reason})' if verdict.reason else ''}"] += 1
    elif truth == "none" and words is not None:
        same = words == verdict.reason or (words.startswith("Operand (") and verdict.rule == "operand-not-fusible")
        tally.words += 1
        tally.words_right += same
        if not same:
            tally.apart[f"{what}: XLA says '{words}', the policy '{verdict.reason}'"] += 1


def replayed_kernels(run: Replay) -> Counter[str]:
    """The operators of each kernel that the log tells of."""
    found = {id(cluster): cluster for clusters in run.kernels.values() for cluster in clusters if len(cluster.members) > 1}
    return Counter(" ".join(sorted(node.op.name for node in cluster.members)) for cluster in found.values())


def dumped_kernels(after: Module) -> Counter[str]:
    """The operators of each fusion of a dump; those inside functions of elements, where jaxlib 0.4.38 fuses too, are no kernels."""
    applied = {id(body) for g in after.graphs.values() for n in g.nodes if n.op in INSIDE for body in n.bodies}
    graphs = [g for g in after.graphs.values() if id(g) not in applied]
    bodies = [n.bodies[0] for g in graphs for n in g.nodes if n.op.name == "fusion" and n.attrs.get("kind") != "kCustom"]
    return Counter(_operators(body) for body in bodies)


def _operators(body: Graph) -> str:
    return " ".join(sorted(node.op.name for node in body.nodes if node.op.name != "parameter"))


def _share(a: int, b: int) -> str:
    return f"{a / b:.3f}" if b else "  -  "


if __name__ == "__main__":
    main()
