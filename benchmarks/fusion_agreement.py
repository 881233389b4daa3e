"""How often irscope's policy ``inductor`` decides as torch.compile did: ``python benchmarks/fusion_agreement.py CORPUS [FOLDER...]``.

CORPUS holds ``torchscript/fusion_logs/inductor.NAME.log`` and the programs, ``torchscript/exec/NAME/graph.txt`` or
``torchscript/text/NAME/trace_graph.txt``; further FOLDERs hold NAME.log beside NAME.txt. The small cases of the logs are in tests/data.

For each log three things are counted (docs/fusion/inductor.md says how):

* **operations** of the log that are found again: the two lists of operations are aligned by kind and sizes of their loops;
* **edges**: pairs of operations with loops, the second reading what the first stores. An edge is right when the log and the policy both
  have the two in one kernel at the end, or both have not. Each operation with loops that is not found again, on either side, counts as one
  wrong edge. Of the right ones the **unfused**;
* **lines** ``cannot fuse opA with opB: reason`` of the log, as a set, that the policy says too, and those that it says beyond.
"""
from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import irscope
from irscope.expand import expand
from irscope.fusion.inductor.policy import RELEASES
from irscope.fusion.logs.torch_replay import matched
from irscope.fusion.logs.verdicts import load_log
from irscope.source import UserError

CASES = Path(__file__).parent.parent / "tests" / "data" / "fusion_logs"


@dataclass
class Tally:
    """What was counted."""

    operations: int = 0
    made: int = 0
    found: int = 0
    edges: int = 0
    right: int = 0
    unfused: int = 0
    unfused_right: int = 0
    lines: int = 0
    lines_said: int = 0
    lines_beyond: int = 0

    def add(self, other: Tally) -> None:
        """Sum two up."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def row(self, name: str) -> str:
        """One line of the table."""
        share = f"{self.right / self.edges:.3f}" if self.edges else "-"
        return (f"{name:32} {self.found:5} of {self.operations:<5} {self.right:5} of {self.edges:<5} {share:>6} "
                f"{self.unfused_right:5} of {self.unfused:<5} {self.lines_said:5} of {self.lines:<5} +{self.lines_beyond}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("folders", type=Path, nargs="*")
    given = parser.parse_args()
    total = Tally()
    print(f"{'log':32} {'operations found':14} {'edges right':>18} {'':>4} {'unfused right':>15} {'lines said':>12}")
    for name, log, program in pairs(given.corpus, given.folders):
        if program is None:
            print(f"{name:32} no program was given with it")
            continue
        try:
            tally = compare(log, program)
        except UserError as error:
            print(f"{name:32} {error.message[:80]}")
            continue
        if 2 * tally.operations < tally.made:
            print(f"{name:32} the log lists {tally.operations} operations, of the program come {tally.made}: it is of another program")
            continue
        total.add(tally)
        print(tally.row(name))
    print(total.row("all"))


def pairs(corpus: Path, folders: list[Path]) -> Iterator[tuple[str, Path, Path | None]]:
    """Each log with its program (None: there is none)."""
    base = corpus / "torchscript"
    for log in sorted((base / "fusion_logs").glob("inductor.*.log")):
        name = log.name.removeprefix("inductor.").removesuffix(".log")
        case = CASES / f"inductor_{name.removeprefix('case_')}.txt"
        options = (base / "exec" / name / "graph.txt", base / "text" / name / "trace_graph.txt", case)
        yield name, log, next((path for path in options if path.is_file()), None)
    for folder in folders:
        for log in sorted(folder.glob("*.log")):
            program = log.with_suffix(".txt")
            yield log.stem, log, program if program.is_file() else None


def compare(path: Path, program: Path) -> Tally:
    """One log against what the policy makes of its program."""
    log = load_log(str(path))
    prepared = RELEASES["torch-2.13"].prepared(expand(irscope.load(program).module()).main())
    scheduler = prepared.scheduler
    kernels = list(scheduler.kernels)
    best = max(range(len(log.runs)), key=lambda i: (len(matched(log.operations[i], kernels)), -i))
    operations, steps = log.operations[best], log.runs[best]
    names = matched(operations, kernels)
    back = {ours: theirs for theirs, ours in names.items()}
    scheduler.run()

    theirs = {operation.name: operation.name for operation in operations}
    for step in steps:
        if step.made is not None:
            merged = {part for label in (step.producer, step.consumer) for part in label.split("_")}
            theirs.update(dict.fromkeys(merged, min(merged)))
    tally = Tally(len(operations), len(kernels), len(names))
    for kernel in kernels:
        if kernel.extern:
            continue
        for need in kernel.needs:
            first, second = back.get(need.buffer), back.get(kernel.buffers[0].name)
            producer = scheduler.buffers[need.buffer]
            if first is None or second is None or producer.kind in ("extern", "nop"):
                continue
            fused = theirs[first] == theirs[second]
            ours = scheduler.home[need.buffer] is scheduler.home[kernel.buffers[0].name]
            tally.edges += 1
            tally.right += fused == ours
            tally.unfused += not fused
            tally.unfused_right += not fused and not ours
    lost = sum(o.kind not in ("extern", "nop") and o.name not in names for o in operations)
    lost += sum(not k.extern and k.buffers[0].name not in back for k in kernels)
    tally.edges += lost

    labels = {f"op{buffer.number}": back.get(buffer.name, f"?{buffer.name}") for buffer in prepared.state.buffers}
    said = {re.sub(r"op\d+", lambda m: labels[m[0]], line) for line in scheduler.said}
    logged = {f"cannot fuse {s.producer} with {s.consumer}: {s.words}" for s in steps if s.made is None}
    tally.lines, tally.lines_said, tally.lines_beyond = len(logged), len(logged & said), len(said - logged)
    return tally


if __name__ == "__main__":
    main()
