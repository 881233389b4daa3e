"""How many refused edges get a fix: draws edges of a folder of dumps by a seed, and looks for a fix of each.

    python benchmarks/proven_fixes.py CORPUS [CORPUS ...] [--edges 150] [--seed 1] [--policy xla-cpu] [--pairs FOLDER]

Files come in random order; of each at most five edges are drawn, among those that are not fused. ``--pairs`` writes each program as it is
and with its fix applied as HLO, for ``benchmarks/proven_fixes_xla.py``, which compiles them with XLA.
"""
from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import irscope
from irscope.formats.hlo.printer import print_module
from irscope.fusion import AUTO, EdgeVerdict
from irscope.lint import Context
from irscope.lint.claims import CANNOT
from irscope.lint.proven import FixAnswer, TrialOutcome
from irscope.lint.proven.engine import OPTION
from irscope.lint.proven.table import proposals
from irscope.lint.proven.trial import TrialScope, apply_edit
from irscope.lint.settings import Settings
from irscope.lint.verdicts import answer

A_FILE = 5
"""Edges that are drawn of one file."""
LARGEST = 400_000
"""Bytes of a file."""
SUFFIXES = (".hlo", ".txt")


def kind(found: FixAnswer) -> str:
    """What became of an edge, in a row of the table."""
    if found.fix is not None:
        if found.fix.flag:
            return "fix: an option of the compiler"
        return "fix: fused" if found.fix.outcome is TrialOutcome.FUSED else "fix: a smaller edge"
    if found.why_not:
        return "not tried: " + ("the text is optimised" if "optimisation" in found.why_not else "not an edge of the text")
    if found.attempts:
        return "nothing that was tried helps"
    return "not tried: the budget" if found.untried else "no candidate applies"


def drawn(folders: list[Path], seed: int, policy: str) -> Iterator[tuple[Path, Context, EdgeVerdict]]:
    """Refused edges in random order, at most :data:`A_FILE` of a file."""
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES and path.stat().st_size <= LARGEST)
    chance = random.Random(seed)
    chance.shuffle(files)
    for path in files:
        try:
            reading = irscope.load(path)
        except irscope.UserError:
            continue
        for module in reading.modules[:1]:
            if not module.entry or not reading.ok:
                continue
            context = Context(module, Settings(policy))
            try:
                refused = [verdict for verdict in answer(context)[0] if verdict.fused == "none" and not verdict.recorded]
            except (*CANNOT, ValueError):
                continue
            if context.costs.engine is None:
                continue
            for verdict in chance.sample(refused, min(A_FILE, len(refused))):
                yield path, context, verdict


def write_pair(folder: Path, number: int, path: Path, context: Context, verdict: EdgeVerdict, found: FixAnswer) -> None:
    """The program before and after the fix, and what irscope says that it saves."""
    engine, fix = context.costs.engine, found.fix
    assert engine is not None and fix is not None
    edge = engine.edge_of(verdict)
    if edge is None or fix.key == OPTION:
        return
    edit = next(one.edit for one in proposals(edge) if one.candidate.key == fix.key)
    scope = TrialScope(engine.view.module, edge.graph, edge.graph.nodes, [edge.graph.result()], True)
    record = {"file": path.name, "edge": verdict.names, "candidate": fix.key, "kernels": fix.saves.kernels, "bytes": fix.saves.bytes,
            "runs": engine.runs(edge.graph), "before": print_module(apply_edit(scope, None)),
            "after": print_module(apply_edit(scope, edit))}
    (folder / f"{number:03}.json").write_text(json.dumps(record, indent=1))


def main() -> None:
    """Draw, look for fixes, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--edges", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", default=AUTO)
    parser.add_argument("--pairs", type=Path)
    given = parser.parse_args()
    found: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    keys: Counter[str] = Counter()
    spent = 0.0
    for number, (path, context, verdict) in enumerate(drawn(given.folders, given.seed, given.policy)):
        if number == given.edges:
            break
        started = time.process_time()
        assert context.costs.engine is not None
        one = context.costs.engine.answer(verdict)
        spent += time.process_time() - started
        found[kind(one)] += 1
        reason = f"{context.settings.compiler} {verdict.rule}"
        reasons.setdefault(reason, Counter())["fix" if one.fix is not None else "none"] += 1
        if one.fix is not None:
            keys[one.fix.key] += 1
            if given.pairs is not None:
                write_pair(given.pairs, number, path, context, verdict, one)
    print(f"{sum(found.values())} refused edges, {spent:.1f} s of CPU for their fixes")
    for what, n in sorted(found.items()):
        print(f"{n:5}  {what}")
    print("by candidate:", ", ".join(f"{key} {n}" for key, n in keys.most_common()))
    print("by reason: edges, of these with a fix")
    for reason, counts in sorted(reasons.items(), key=lambda item: -item[1].total()):
        print(f"{counts.total():5} {counts['fix']:4}  {reason}")


if __name__ == "__main__":
    main()
