"""Measures which nodes ``irscope diff`` pairs: ``python benchmarks/diff_alignment.py edits|pairs FOLDER... [--seed N] [--count N]``.

``edits`` makes known edits at places that the seed draws in the modules of the folders. ``pairs`` takes modules before and after a
compiler's passes (``X.pre.hlo`` and ``X.opt.hlo``, ``before.hlo`` and ``final.hlo``); the truth is the names of instructions that XLA kept.
Names, metadata, locations and the order of lines are taken out before irscope sees a module. A pair is right if it is the one of the
truth, or differs from it by nodes that only their names distinguish. What both texts number, parameters of the entry, is left out of the
figures of ``pairs`` in the second column.
"""
from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import irscope
from benchmarks.alignment.drafts import Anonymous, anonymous, draft_of
from benchmarks.alignment.edits import EDITS
from benchmarks.alignment.scoring import Align, Score, alike, score
from irscope.diff import compare
from irscope.graph import Module, Node, callees_first, live

MOST_NODES, FEWEST_NODES = 6000, 20
"""Sizes of the modules that are edited."""


def aligned(before: Module, after: Module) -> list[tuple[Node, Node]]:
    """The pairs of the current code."""
    return list(compare(before, after).alignment.pairs.items())


def texts(folders: Sequence[str], pattern: str = "*.hlo") -> list[Path]:
    """The files of the folders, in order."""
    return [path for folder in folders for path in sorted(Path(folder).rglob(pattern))]


def load(path: Path) -> Module | None:
    """The module of a text; None where it is none."""
    try:
        reading = irscope.load(path)
    except irscope.UserError:
        return None
    return reading.modules[0] if reading.modules and reading.ok and reading.modules[0].entry else None


def edited(module: Module, name: str, seed: int) -> tuple[Anonymous, Anonymous] | None:
    """A module without names, before and after one edit in one of its graphs; None where it has no place for the edit."""
    draw = random.Random(f"{name} {seed}")
    graphs = [g for g in callees_first(module) if len(g.nodes) >= 6 and g.root is not None] or [module.main()]
    for graph in draw.choices(graphs, [len(g.nodes) for g in graphs], k=4):
        if any(p.bodies for p in graph.params) or (name == "parameter" and graph is not module.main()):
            continue
        draft = draft_of(graph)
        if EDITS[name](draft, draw) is not None:
            return anonymous(module, seed * 2), anonymous(module, seed * 2 + 1, {graph: draft})
    return None


def truth_of(before: Anonymous, after: Anonymous) -> dict[Node, list[Node]]:
    """For nodes before, those after that stand for the same node of the original."""
    return {mine[0]: after.became[node] for node, mine in before.became.items() if node in after.became}


def edit_scores(modules: Sequence[Path], count: int, seed: int, align: Align) -> Iterator[tuple[str, str, Score, float]]:
    """(edit, module, score, seconds) of ``count`` edits in all."""
    loaded = [(path, module) for path in modules if (module := load(path)) is not None
              and FEWEST_NODES <= sum(len(g.nodes) for g in module.graphs.values()) <= MOST_NODES]
    draw = random.Random(seed)
    names, done, tries = list(EDITS), 0, 0
    while done < count and tries < 20 * count:
        tries += 1
        path, module = draw.choice(loaded)
        name = names[done % len(names)]
        both = edited(module, name, draw.randrange(10 ** 6))
        if both is None:
            continue
        done += 1
        before, after = both
        start = time.process_time()
        pairs = align(before.module, after.module)
        seconds = time.process_time() - start
        yield name, path.name, score(pairs, truth_of(before, after), alike(before.module), alike(after.module)), seconds


def before_and_after(folders: Sequence[str]) -> Iterator[tuple[Path, Path]]:
    """The pairs of texts of the folders."""
    for path in [*texts(folders), *texts(folders, "*.before_optimizations.txt")]:
        for old, new in ((".pre.", ".opt."), ("before.hlo", "final.hlo"), ("raw.hlo", "final.hlo"),
                         ("before_optimizations.txt", "cpu_after_optimizations.txt")):
            other = path.with_name(path.name.replace(old, new))
            if old in path.name and other.exists():
                yield path, other


def kept(before: Module, after: Module) -> dict[Node, Node]:
    """Live nodes by the name that both modules have, each once."""
    sides = []
    for module in (before, after):
        nodes = [n for g in callees_first(module, module.main()) for n, alive in zip(g.nodes, live(g), strict=True) if alive]
        names = Counter(node.name for node in nodes)
        sides.append({node.name: node for node in nodes if names[node.name] == 1})
    return {node: sides[1][name] for name, node in sides[0].items() if name in sides[1]}


def pair_scores(folders: Sequence[str], count: int, seed: int, align: Align) -> Iterator[tuple[str, Score, Score, float]]:
    """(module, score, score without the parameters of the entry, seconds) of the pairs of which XLA kept most names."""
    loaded = []
    for first, second in before_and_after(folders):
        a, b = load(first), load(second)
        names = kept(a, b) if a is not None and b is not None else {}
        if a is not None and b is not None and len(names) > 2:
            loaded.append((f"{first.parent.name}/{first.name}", a, b, names))
    random.Random(seed).shuffle(loaded)
    for name, a, b, names in loaded[:count]:
        before, after = anonymous(a, seed), anonymous(b, seed + 1)
        truth = {before.became[x][0]: after.became[y] for x, y in names.items()}
        start = time.process_time()
        pairs = align(before.module, after.module)
        seconds = time.process_time() - start
        params = {*before.module.main().params, *after.module.main().params}
        like = alike(before.module), alike(after.module)
        inner = [(x, y) for x, y in pairs if x not in params and y not in params]
        yield name, score(pairs, truth, *like), score(inner, {x: y for x, y in truth.items() if x not in params}, *like), seconds


def main(align: Align = aligned) -> None:
    """Print a table of scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("edits", "pairs"))
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="edits (default 208), or pairs (default all)")
    parser.add_argument("--all", action="store_true", help="list every module, not only those with a fault")
    given = parser.parse_args()
    totals: dict[str, Score] = {}
    spent = 0.0
    if given.what == "edits":
        for name, module, one, seconds in edit_scores(texts(given.folders), given.count or 208, given.seed, align):
            totals.setdefault(name, Score()).add(one)
            totals.setdefault("all", Score()).add(one)
            spent += seconds
            if given.all or one.precision < 1 or one.recall < 1:
                print(f"{name:14} {module:34} {one}  {seconds:.2f} s")
    else:
        for module, one, inner, seconds in pair_scores(given.folders, given.count or 10 ** 6, given.seed, align):
            totals.setdefault("all", Score()).add(one)
            totals.setdefault("without parameters of the entry", Score()).add(inner)
            totals.setdefault("modules", Score()).add(Score(1, 1, 1, 1))
            spent += seconds
            if given.all or inner.precision < 1 or inner.recall < 1:
                print(f"{module:34} {one}  inner {inner}  {seconds:.2f} s")
    for name, total in totals.items():
        print(f"{name:32} {total}")
    print(f"{spent:.1f} s")


if __name__ == "__main__":
    main()
