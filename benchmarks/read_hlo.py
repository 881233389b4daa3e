"""Reading HLO text: instructions per second of CPU time and bytes per instruction, beside XLA's own parser where jaxlib is importable.

    python benchmarks/read_hlo.py                        a generated chain of a million instructions
    python benchmarks/read_hlo.py FILE...                dumps of yours
    python benchmarks/read_hlo.py --chain 100000 FILE... both
    python benchmarks/read_hlo.py --collectives 100000   a program of many devices: each collective with a channel and a reducer of its own

Rounds of the two parsers alternate, and the best of each counts, so that a busy machine disturbs both alike.
Memory is what the process has grown by, with the result in its hands, in a child process of its own for each parser and text.
"""
from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))


def chain(n: int) -> str:
    """A module of about ``n`` instructions as XLA prints them: layers of a few shapes, each using the one before."""
    return "".join(_chain(n))


def _chain(n: int) -> Iterator[str]:
    yield "HloModule jit_chain, entry_computation_layout={(f32[64,128]{1,0}, f32[128,128]{1,0})->f32[64,128]{1,0}}\n\n"
    yield "%add_f32 (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    yield "  ROOT %add = f32[] add(%a, %b)\n}\n\n"
    yield "ENTRY %main (x: f32[64,128], w: f32[128,128]) -> f32[64,128] {\n"
    yield "  %x.0 = f32[64,128]{1,0} parameter(0)\n  %w = f32[128,128]{1,0} parameter(1)\n  %zero = f32[] constant(0)\n"
    layers = max(1, n // 10)
    for i in range(layers):
        root = "ROOT " if i == layers - 1 else ""
        yield (f"  %dot.{i} = f32[64,128]{{1,0}} dot(%x.{i}, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
               f"  %half.{i} = f32[] constant(0.{i % 97 + 1})\n"
               f"  %wide.{i} = f32[64,128]{{1,0}} broadcast(%half.{i}), dimensions={{}}\n"
               f"  %add.{i} = f32[64,128]{{1,0}} add(%dot.{i}, %wide.{i})\n"
               f"  %sum.{i} = f32[64]{{0}} reduce(%add.{i}, %zero), dimensions={{1}}, to_apply=%add_f32\n"
               f"  %spread.{i} = f32[64,128]{{1,0}} broadcast(%sum.{i}), dimensions={{0}}\n"
               f"  %less.{i} = f32[64,128]{{1,0}} subtract(%add.{i}, %spread.{i})\n"
               f"  %exp.{i} = f32[64,128]{{1,0}} exponential(%less.{i})\n"
               f"  %scaled.{i} = f32[64,128]{{1,0}} multiply(%exp.{i}, %wide.{i})\n"
               f"  {root}%x.{i + 1} = f32[64,128]{{1,0}} tanh(%scaled.{i})\n")
    yield "}\n"


COLLECTIVES = """\
  %g.{i} = f32[64,1024]{{1,0}} all-gather(%x.{i}), channel_id={a}, replica_groups=[1,8]<=[8], dimensions={{1}}, use_global_device_ids=true
  %s.{i} = f32[64,128]{{1,0}} reduce-scatter(%g.{i}), channel_id={b}, replica_groups={{{{0,1,2,3,4,5,6,7}}}}, dimensions={{1}}, \
to_apply=%region_{i}
  %r.{i} = f32[64,128]{{1,0}} all-reduce(%s.{i}), channel_id={c}, replica_groups=[2,4]<=[8], use_global_device_ids=true, \
to_apply=%region_{i}
  %p.{i} = f32[64,128]{{1,0}} collective-permute(%r.{i}), channel_id={d}, source_target_pairs={{{{0,1}},{{1,2}},{{2,3}},{{3,0}}}}
  %t.{i} = f32[64,128]{{1,0}} all-to-all(%p.{i}), channel_id={e}, replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, dimensions={{0}}
  %x.{n} = f32[64,128]{{1,0}} add(%t.{i}, %x.{i})
"""


def collectives(n: int) -> str:
    """A module of about ``n`` instructions as XLA prints a program of eight devices: little but collectives, a channel for each."""
    rounds = max(1, n // 9)
    head = "HloModule jit_step, entry_computation_layout={(f32[64,128]{1,0})->f32[64,128]{1,0}}, num_partitions=8\n\n"
    regions = "".join(f"%region_{i} (a.{i}: f32[], b.{i}: f32[]) -> f32[] {{\n"
                      f"  %a.{i} = f32[] parameter(0)\n  %b.{i} = f32[] parameter(1)\n"
                      f"  ROOT %add.{i} = f32[] add(%a.{i}, %b.{i})\n}}\n\n" for i in range(rounds))
    body = "".join(COLLECTIVES.format(i=i, n=i + 1, a=5 * i + 1, b=5 * i + 2, c=5 * i + 3, d=5 * i + 4, e=5 * i + 5) for i in range(rounds))
    entry = "ENTRY %main (x: f32[64,128]) -> f32[64,128] {\n  %x.0 = f32[64,128]{1,0} parameter(0)\n"
    return f"{head}{regions}{entry}{body}  ROOT %out = f32[64,128]{{1,0}} copy(%x.{rounds})\n}}\n"


MADE = {"chain": chain, "collectives": collectives}


def irscope_reader() -> Callable[[str], Any]:
    from irscope.formats.hlo import read
    from irscope.source import SourceText

    def run(text: str) -> Any:
        reading = read(SourceText("-", text))
        assert reading.ok, reading.findings[0].headline()
        return reading
    return run


def xla_reader() -> Callable[[str], Any]:
    from jaxlib import _hlo  # type: ignore[import-not-found,unused-ignore]

    def run(text: str) -> Any:
        return _hlo.hlo_module_from_text(text)
    return run


READERS: dict[str, Callable[[], Callable[[str], Any]]] = {"irscope": irscope_reader, "xla": xla_reader}


def instructions(text: str) -> int:
    """How many instructions a text has, as irscope counts them."""
    reading = irscope_reader()(text)
    return sum(1 for module in reading.modules for graph in module.graphs.values() for node in graph.nodes if not node.synthetic)


def best_times(text: str, names: list[str], rounds: int) -> dict[str, float]:
    """The least CPU time of each reader over interleaved rounds."""
    runs = {name: READERS[name]() for name in names}
    best = dict.fromkeys(names, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            gc.collect()
            begin = time.process_time()
            result = run(text)
            best[name] = min(best[name], time.process_time() - begin)
            del result
    return best


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grown_by(name: str, what: str) -> int:
    """Bytes by which a fresh process grows when it reads a text and keeps the result."""
    out = subprocess.run([sys.executable, str(HERE), "--grow", name, what], capture_output=True, text=True, check=True)
    return int(out.stdout)


def grow(name: str, what: str) -> None:
    """What the child process of :func:`grown_by` does."""
    run = READERS[name]()
    run("HloModule m\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")
    text = text_of(what)
    gc.collect()
    before = resident()
    result = run(text)
    gc.collect()
    print(resident() - before)
    del result


def text_of(what: str) -> str:
    """The text of a file, or what ``chain:N`` and ``collectives:N`` make."""
    kind, _, size = what.partition(":")
    return MADE[kind](int(size)) if kind in MADE and size.isdigit() else Path(what).read_text(errors="replace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--chain", type=int, default=0, help="also generate a chain of so many instructions")
    parser.add_argument("--collectives", type=int, default=0, help="also generate so many instructions of a program of eight devices")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--grow", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.grow:
        grow(*args.grow)
        return
    names = ["irscope"]
    try:
        xla_reader()
        names.append("xla")
    except ImportError:
        print("jaxlib is not importable: irscope alone", file=sys.stderr)
    made = {"chain": args.chain, "collectives": args.collectives}
    if not args.files and not any(made.values()):
        made["chain"] = 1_000_000
    texts = [*args.files, *(f"{kind}:{size}" for kind, size in made.items() if size)]
    columns = "  ".join(f"{name + ' k/s':>11} {'MB/s':>5} {'B/instr':>7}" for name in names)
    print(f"{'text':38} {'MB':>6} {'instr':>8}  {columns}  speed  memory")
    for what in texts:
        text = text_of(what)
        count = instructions(text)
        times = best_times(text, names, args.rounds if count < 500_000 else min(args.rounds, 3))
        memory = {name: grown_by(name, what) for name in names}
        row = f"{Path(what).name[-38:]:38} {len(text) / 1e6:6.1f} {count:8}  "
        row += "  ".join(f"{count / times[n] / 1e3:11.0f} {len(text) / times[n] / 1e6:5.0f} {memory[n] / count:7.0f}" for n in names)
        if len(names) == 2:
            row += f"  {times['xla'] / times['irscope']:4.2f}x  {memory['irscope'] / max(1, memory['xla']):5.2f}x"
        print(row, flush=True)


if __name__ == "__main__":
    main()
