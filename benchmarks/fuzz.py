"""Mutated dumps of every format: irscope may find faults in them, and nothing else.

    python benchmarks/fuzz.py [--format hlo|torchscript|relay] [--cases 20000] [--seed 0] [--deep 4] PATH...

PATH are dumps, or folders of them; a text is taken for the format that it is written in. Every mutated text is read, its findings are
told, its provenance asked for, and it is printed; what was read without a fault must be read back without one. Every fourth (``--deep``)
is also counted, linted, drawn as a tree, and made a program of primitives, as far as its types go. A UserError is an answer; any other
exception, a text that takes more than ``--seconds`` of CPU time, and one that lets memory grow beyond ``--megabytes`` are defects:
they are printed, and the text is kept in the working folder as ``fuzz_FORMAT_SEED_CASE.txt``.
"""
from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutations import MAX_TEXT, Mutator

from irscope.analysis.survey import Survey
from irscope.backends.model import primitive
from irscope.backends.opening import needs_opening, opened
from irscope.expand.bind import bind_types
from irscope.fleet.stats import stats_of_reading
from irscope.formats import Format, format_named
from irscope.formats.detect import detect
from irscope.graph import Module, Reading
from irscope.lint import lint_module
from irscope.query.choose import Wanted, choose
from irscope.render.paint import Paint
from irscope.render.screen import ScreenOptions, screen
from irscope.source import SourceText, UserError

SUFFIXES = (".hlo", ".txt", ".log", ".relay")
NODES = 20
"""Of so many nodes a graph the provenance is asked for: each is found in the same way."""
RAISES = 2
"""How often one place may raise before its texts are no longer kept."""

PRINTS: dict[str, tuple[dict[str, str], ...]] = {"hlo": ({"style": "canonical"}, {"style": "input"})}
"""The styles that a format can be printed in, where there is more than one."""

COMMON = ["\n", "\0", "é", "  ", "    ", "9" * 400]
SPICE = {
    "hlo": r"""{ } ( ) [ ] , = % # " ' /* */ // ... -> <= ? \ nan -inf nan(0x1) 1e400 -0 18446744073709551616 f32[ f32[2,3]{1,0} token[] b(
 ROOT ENTRY HloModule FileNames metadata={ backend_config={ sharding={ to_apply= to_apply={ calls=%x constant({...}) parameter(0)
 dimensions={0,1} async-start -start( -done( %p#0#1 window={size= 0_1x2_3 b01f_01io->b01f mesh[ [2,4]<=[8] T(1,0) E(4)S(5)
 f32[<=4] while( body= custom-call( custom_call_target="TopK" replica_groups={{0,1}} channel_id=1 slice={[0:1]} s4[] c64[]""".split()
    + [*COMMON, "9" * 5000, "I0000 00:00:17.123 a.cc:1] "],
    "torchscript": r"""{ } ( ) [ ] , = % # " : -> graph( return block0(): ... prim::If prim::Loop prim::Constant[value=1]() aten::add_
 aten::view aten::slice aten::index prim::ListConstruct() prim::TupleUnpack with prim::TensorExprGroup_0 Float(2,3) Float(*,3) Long()
 Tensor[] Tensor? Dict(str,Tensor) value={1} value=[1,2] value="\0)+" value=<Tensor> __torch__.X name="w" , scope: __module.a/__module.a.b
 # f.py:1:2 -1 9223372036854775807 nan 1e400 annotate(List[int],[]) %x %0 %self prim::RaiseException prim::CallMethod[name="f"]
 ^Py[](1)""".split() + COMMON,
    "relay": r"""{ } ( ) [ ] , = % @ # " ' : ; -> => < > . /* */ // ... #[version def fn( let if( else match match? type extern ref(
 True False nan inf 1f32 2i64 -1 1e400 9223372036854775808 Tensor[(2, 3), float32] Tensor[(?, 3), float32] Tensor[(), bool] int64 ()
 (Tensor[(1), int8],) %x %0 %1.0 @main meta[relay.Constant][0] add( nn.conv2d( nn.dense( axis=1 units=None strides=[1, 1] reshape(
 newshape=[-1] nn.dropout( split( indices_or_sections=3 zeros( shape=[2] dtype="float32" kernel_layout="OIHW16o" span=0:0
 primitive""".split(" ") + COMMON,
}


@dataclass(frozen=True)
class Target:
    """A format under fire: texts to begin with, and how they are spoiled."""

    name: str
    texts: list[str]
    mutator: Mutator
    format: Format

    def mutated(self, rng: random.Random) -> str:
        return self.mutator.mutate(rng.choice(self.texts), rng.choice(self.texts), rng)

    def use(self, text: str, deep: bool) -> str:
        """Read a text and use the result; the code of its first finding, ``fine``, or how far it came."""
        reading = self.format.read(SourceText("fuzz.txt", text))
        detect(text)
        for finding in reading.findings[:20]:
            finding.render()
        for module in reading.modules:
            for graph in module.graphs.values():
                for node in graph.nodes[:NODES]:
                    module.scope(node), module.call_stack(node), module.raw(node)
            if module.entry:
                self._printed(reading, module)
        if deep:
            return _deep(reading)
        return reading.findings[0].code if reading.findings else "fine"

    def _printed(self, reading: Reading, module: Module) -> None:
        for options in PRINTS.get(self.name, ({},)):
            printed = self.format.print_module(module, **options)
            if reading.ok:
                again = self.format.read(SourceText("printed.txt", printed))
                if not again.ok:
                    raise AssertionError(f"printed {options}, it is no longer read: {again.findings[0].headline()}\n{printed[:2000]}")


def targets(paths: list[str], only: str | None = None) -> list[Target]:
    """The formats of which there are texts under the paths."""
    texts: dict[str, list[str]] = {name: [] for name in SPICE if only in (None, name)}
    for file in _files(paths):
        text = file.read_text(errors="replace") if file.stat().st_size <= MAX_TEXT else ""
        name = detect(text) if text.strip() else None
        if name in texts:
            texts[name].append(text)
    return [target(name, found) for name, found in texts.items() if found]


def target(name: str, texts: list[str]) -> Target:
    return Target(name, texts, Mutator(SPICE[name]), format_named(name))


def _files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)


def _deep(reading: Reading) -> str:
    """What a user may ask of a text next; how far it came."""
    stats_of_reading(reading, "fuzz.txt", signature=True)
    for module in reading.modules:
        if module.entry:
            for finding in lint_module(module):
                finding.render()
            for _ in screen(reading, choose(module, Wanted(), True), Paint(100), ScreenOptions()):
                pass
    if not reading.ok or not reading.modules:
        return reading.findings[0].code if reading.findings else "no module"
    module = reading.module()
    try:
        made = opened(module, {}, {}, {}, {}, {}, None) if needs_opening(module) else bind_types(module, {}, {})
        Survey(primitive(made))
    except UserError as refused:
        if not refused.message:
            raise AssertionError("refused without a word") from refused
        return "refused"
    return "primitive"


class TookTooLong(BaseException):
    """A text that takes too long; no Exception, so that nothing on the way takes it for one of its own."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TookTooLong when what stands inside uses more CPU time."""
    def late(number: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def peak() -> int:
    """The most megabytes that this process ever took."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


class Run:
    """A run over one format: what was said how often, and what went wrong."""

    def __init__(self, target: Target, seed: int, seconds: float, megabytes: int) -> None:
        self.target, self.seed, self.seconds, self.megabytes = target, seed, seconds, megabytes
        self.said: Counter[str] = Counter()
        self.raised: Counter[str] = Counter()
        self.bad = 0
        self.slowest = 0.0

    def case(self, number: int, text: str, deep: bool) -> None:
        started, before = time.process_time(), peak()
        try:
            with at_most(self.seconds):
                self.said[self.target.use(text, deep)] += 1
        except (Exception, TookTooLong) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._keep(f"{type(error).__name__} {where.filename}:{where.lineno}", number, text, traceback.format_exc(limit=-6))
        self.slowest = max(self.slowest, time.process_time() - started)
        if peak() > max(before, self.megabytes):
            self._keep("memory", number, text, f"memory grew to {peak()} MB\n")

    def _keep(self, key: str, number: int, text: str, said: str) -> None:
        self.bad += 1
        self.raised[key] += 1
        if self.raised[key] <= RAISES:
            path = Path(f"fuzz_{self.target.name}_{self.seed}_{number}.txt")
            path.write_text(text, errors="replace")
            print(f"case {number} (kept as {path}):", said, sep="\n", flush=True)

    def lines(self, cases: int, took: float) -> Iterator[str]:
        yield (f"{self.target.name}: {cases} cases of {len(self.target.texts)} texts in {took:.0f} s, {self.bad} bad, "
               f"the slowest {self.slowest:.2f} s of CPU time, at most {peak()} MB")
        yield "  " + ", ".join(f"{code} {count}" for code, count in self.said.most_common())
        yield from (f"  {count}x {key}" for key, count in self.raised.most_common())


def fuzz(target: Target, cases: int, seed: int, deep: int, seconds: float, megabytes: int, tell: Callable[[str], None]) -> int:
    """Run so many cases; how many were bad."""
    rng = random.Random(seed)
    run = Run(target, seed, seconds, megabytes)
    begin = time.monotonic()
    for number in range(cases):
        run.case(number, target.mutated(rng), bool(deep) and number % deep == 0)
        if sys.stderr.isatty() and number % 500 == 0:
            print(f"\r{target.name}: {number} of {cases}, {run.bad} bad", end="", file=sys.stderr)
    for line in run.lines(cases, time.monotonic() - begin):
        tell(line)
    return run.bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--format", choices=list(SPICE), help="one format alone (default: every one that the texts have)")
    parser.add_argument("--cases", type=int, default=20_000, help="for each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deep", type=int, default=4, metavar="N", help="every Nth text is linted, drawn and expanded too; 0 for none")
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU time: a text that takes more is a defect")
    parser.add_argument("--megabytes", type=int, default=1000, help="a text that takes more memory is a defect")
    args = parser.parse_args()
    limits: Mapping[str, int] = {"cases": args.cases, "seed": args.seed, "deep": args.deep, "megabytes": args.megabytes}
    bad = sum(fuzz(target, **limits, seconds=args.seconds, tell=print) for target in targets(args.paths, args.format))
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
