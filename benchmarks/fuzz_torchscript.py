"""Mutated TorchScript texts: reading, printing, linting and expanding them may find faults, and nothing else.

    python benchmarks/fuzz_torchscript.py [--cases 20000] [--seed 0] [--seconds 10] PATH...

PATH are dumps, or folders of them. What was read without a fault must be read back, printed, as the same statements; rules are run over it,
and the program is run over abstract values with whatever its types say: a UserError is an answer, any other exception is a defect.
"""
from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz_hlo import MAX_TEXT, SPICE, mutate

from irscope.backends.opening import opened
from irscope.formats.torchscript import print_module, read, sniff
from irscope.lint import lint_module
from irscope.source import SourceText, UserError

SPICE[:] = r"""{ } ( ) [ ] , = % # " : -> graph( return block0(): ... prim::If prim::Loop prim::Constant[value=1]() aten::add_ aten::view
 aten::slice aten::index prim::ListConstruct() prim::TupleUnpack with prim::TensorExprGroup_0 Float(2,3) Float(*,3) Long() Tensor[] Tensor?
 Dict(str,Tensor) value={1} value=[1,2] value="\0)+" value=<Tensor> __torch__.X name="w" , scope: __module.a/__module.a.b # f.py:1:2 -1
 9223372036854775807 nan 1e400 annotate(List[int],[]) %x %0 %self prim::RaiseException prim::CallMethod[name="f"] ^Py[](1)""".split() + [
    "\n", "\0", "é", "9" * 400, "  ", "    "]


def texts_of(paths: list[str]) -> list[str]:
    """The texts to begin with; large ones would only slow the run."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += [path] if path.is_file() else sorted(path.rglob("*.txt"))
    return [t for t in (f.read_text(errors="replace") for f in files if f.stat().st_size <= MAX_TEXT) if t.strip()]



def one(text: str, expand: bool) -> str:
    """Read a text and use the result; the code of its first finding, ``fine``, or what the expansion said."""
    reading = read(SourceText("fuzz.txt", text))
    sniff(text)
    for finding in reading.findings[:20]:
        finding.render()
    for module in reading.modules:
        for graph in module.graphs.values():
            for node in graph.nodes[:20]:
                module.scope(node), module.call_stack(node), module.raw(node)
        if not module.entry:
            continue
        for finding in lint_module(module):
            finding.render()
        printed = print_module(module)
        if reading.ok:
            again = read(SourceText("printed.txt", printed))
            if not again.ok:
                raise AssertionError(f"printed, it is no longer read: {again.findings[0].headline()}\n{printed[:2000]}")
            if expand:
                try:
                    opened(module, {}, {}, {}, {}, {}, None)
                except UserError as refused:
                    return "refused" if refused.message else "refused without a word"
                return "expanded"
    return reading.findings[0].code if reading.findings else "fine"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0, help="a text that takes longer is a fault")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    texts = texts_of(args.paths)
    said: Counter[str] = Counter()
    slowest, bad = 0.0, 0
    seen: Counter[str] = Counter()
    begin = time.monotonic()
    for case in range(args.cases):
        text = mutate(rng.choice(texts), rng.choice(texts), rng)
        started = time.process_time()
        try:
            said[one(text, case % 4 == 0)] += 1
        except Exception as error:
            bad += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            key = f"{type(error).__name__} {where.filename}:{where.lineno}"
            seen[key] += 1
            if seen[key] <= 2:
                Path(f"fuzz_{args.seed}_{case}.txt").write_text(text, errors="replace")
                print(f"case {case} (kept as fuzz_{args.seed}_{case}.txt):", traceback.format_exc(limit=-4), sep="\n", flush=True)
        took = time.process_time() - started
        slowest = max(slowest, took)
        if took > args.seconds:
            bad += 1
            Path(f"fuzz_{args.seed}_{case}.txt").write_text(text, errors="replace")
            print(f"case {case} took {took:.1f} s (kept as fuzz_{args.seed}_{case}.txt)", flush=True)
    print(f"{args.cases} cases in {time.monotonic() - begin:.0f} s, {bad} bad, the slowest {slowest:.2f} s")
    print(", ".join(f"{code} {count}" for code, count in said.most_common(30)))
    print(seen.most_common())
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
