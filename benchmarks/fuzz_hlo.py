"""Mutated HLO texts: the reader may find faults in them, and nothing else. Any exception, and any text that takes long, is printed.

    python benchmarks/fuzz_hlo.py [--cases 20000] [--seed 0] [--seconds 10] PATH...

PATH are dumps, or folders of them. Bytes, tokens, lines and ends are changed, dropped, doubled and swapped; each result is read,
asked for its provenance and printed; what was read without a fault must be read back without one.
"""
from __future__ import annotations

import argparse
import random
import re
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from irscope.formats.hlo import print_module, read, sniff
from irscope.source import SourceText

TOKEN = re.compile(r"[A-Za-z_][\w.\-]*|-?\d+(?:\.\d*)?|\s+|.", re.DOTALL)
SPICE = r"""{ } ( ) [ ] , = % # " ' /* */ // ... -> <= ? \ nan -inf nan(0x1) 1e400 -0 18446744073709551616 f32[ f32[2,3]{1,0} token[] b(
 ROOT ENTRY HloModule FileNames metadata={ backend_config={ sharding={ to_apply= to_apply={ calls=%x constant({...}) parameter(0)
 dimensions={0,1} async-start -start( -done( %p#0#1 window={size= 0_1x2_3 b01f_01io->b01f mesh[ [2,4]<=[8] T(1,0) E(4)S(5)""".split() + [
    "\n", "\0", "é", "9" * 5000, "I0000 00:00:17.123 a.cc:1] "]
MAX_TEXT = 60_000


def mutate(text: str, other: str, rng: random.Random) -> str:
    """A text with one to a few changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        text = rng.choice(MUTATIONS)(text, other, rng)[:2 * MAX_TEXT]
    return text


def _cut(text: str, other: str, rng: random.Random) -> str:
    return text[:rng.randrange(len(text) + 1)]


def _drop_head(text: str, other: str, rng: random.Random) -> str:
    return text[rng.randrange(len(text) + 1):]


def _byte(text: str, other: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(32, 127), rng.randrange(0x2000)))) + text[at + rng.randrange(2):]


def _spice(text: str, other: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(SPICE) + text[at + rng.randrange(3):]


def _token(text: str, other: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    m, n = TOKEN.search(text, at), TOKEN.search(other, rng.randrange(len(other) + 1))
    if m is None:
        return text
    new = rng.choice(("", m[0] * 2, n[0] if n else "", rng.choice(SPICE)))
    return text[:m.start()] + new + text[m.end():]


def _number(text: str, other: str, rng: random.Random) -> str:
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return text
    m = rng.choice(numbers)
    return text[:m.start()] + str(rng.choice((0, 1, -1, 2, 7, 255, 1 << 31, 1 << 63, 1 << 64, 10 ** 30))) + text[m.end():]


def _lines(text: str, other: str, rng: random.Random) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    what = rng.randrange(5)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif what == 2:
        lines.insert(at, rng.choice(other.split("\n")))
    elif what == 3:
        to = rng.randrange(len(lines))
        lines[at], lines[to] = lines[to], lines[at]
    else:
        lines[at:at + 2] = [" ".join(lines[at:at + 2])]
    return "\n".join(lines)


def _join(text: str, other: str, rng: random.Random) -> str:
    return text + rng.choice(("", "\n", " ")) + other


MUTATIONS = [_cut, _drop_head, _byte, _byte, _spice, _spice, _token, _token, _token, _number, _lines, _lines, _lines, _join]


def texts_of(paths: list[str]) -> list[str]:
    """The texts to begin with; large ones would only slow the run."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += [path] if path.is_file() else sorted(path.rglob("*.hlo")) + sorted(path.rglob("*.txt"))
    return [t for t in (f.read_text(errors="replace") for f in files if f.stat().st_size <= MAX_TEXT) if t.strip()]


def one(text: str) -> str:
    """Read a text and use the result; the code of its first finding, or ``fine``."""
    reading = read(SourceText("fuzz.hlo", text))
    sniff(text)
    for finding in reading.findings[:20]:
        finding.render()
    for module in reading.modules:
        for graph in module.graphs.values():
            for node in graph.nodes[:20]:
                module.scope(node), module.call_stack(node), module.raw(node)
        for style in ("canonical", "input"):
            printed = print_module(module, style)
            if reading.ok:
                again = read(SourceText("printed.hlo", printed))
                if not again.ok:
                    raise AssertionError(f"printed ({style}), it is no longer read: {again.findings[0].headline()}\n{printed[:2000]}")
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
    begin = time.monotonic()
    for case in range(args.cases):
        text = mutate(rng.choice(texts), rng.choice(texts), rng)
        started = time.process_time()
        try:
            said[one(text)] += 1
        except Exception:
            bad += 1
            Path(f"fuzz_{args.seed}_{case}.hlo").write_text(text, errors="replace")
            print(f"case {case} (kept as fuzz_{args.seed}_{case}.hlo):", traceback.format_exc(limit=-3), sep="\n")
        took = time.process_time() - started
        slowest = max(slowest, took)
        if took > args.seconds:
            bad += 1
            Path(f"fuzz_{args.seed}_{case}.hlo").write_text(text, errors="replace")
            print(f"case {case} took {took:.1f} s (kept as fuzz_{args.seed}_{case}.hlo)")
        if sys.stderr.isatty() and case % 500 == 0:
            print(f"\r{case} of {args.cases}, {bad} bad", end="", file=sys.stderr)
    print(f"{args.cases} cases in {time.monotonic() - begin:.0f} s, {bad} bad, the slowest {slowest:.2f} s")
    print(", ".join(f"{code} {count}" for code, count in said.most_common()))
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
