"""How long each pass takes over a large module: python benchmarks/passes.py [NODES] [--only NAME,...].

One module of Relay (blocks of a residual net, unrolled) and one of HLO (arithmetic, movement, constants), both with work for every pass.
Times are CPU seconds, the least of three runs; the last line of each table is the check of types that follows every pass that changed
something.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import irscope
from irscope.analysis.types import check_types
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.registry import own_passes

RELAY = (
    "nn.conv2d({0}, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3])",
    "nn.bias_add({0}, %b)",
    "nn.relu({0})",
    "nn.batch_norm({0}, %b, %b, %b, %b)",
    "{0}.0",
    "add({0}, {8})",
    "multiply({0}, 1f)",
    "transpose({0}, axes=[0, 2, 3, 1])",
    "transpose({0}, axes=[0, 3, 1, 2])",
    'cast({0}, dtype="float16")',
    'cast({0}, dtype="float32")',
    "exp({0})",
    "tanh({1})",
    "tanh({2})",
    "maximum({0}, add(1f, 2f))",
    "reshape({0}, newshape=[1, 16, 64])",
    "reshape({0}, newshape=[1, 16, 8, 8])",
    "nn.dropout({0})",
    "{0}.0",
    "sigmoid({0})",
)  # fmt: skip
"""Lines of a block; ``{n}`` is the value of n lines before."""
NODES = len(RELAY) + 2
"""Nodes of a block: the constants of one line are nodes too, the expression inside another stands for its line."""

HLO = (
    "{t} multiply({0}, %one)",
    "{t} exponential({0})",
    "{t} negate({0})",
    "{t} negate({0})",
    "{t} tanh({0})",
    "{t} tanh({1})",
    "{t} add({0}, {1})",
    "f32[64,8]{{1,0}} transpose({0}), dimensions={{1,0}}",
    "{t} transpose({0}), dimensions={{1,0}}",
    "{h} convert({0})",
    "{t} convert({0})",
    "f32[512]{{0}} reshape({0})",
    "{t} reshape({0})",
    "{t} maximum({0}, %x)",
    "f32[] add(%unit, %half)",
    "{t} broadcast({0}), dimensions={{}}",
    "{t} subtract({2}, {0})",
)
"""Lines of a block over ``f32[8,64]``."""


def relay(nodes: int) -> str:
    """A module of about so many nodes."""
    vector = "Tensor[(16), float32]"
    kinds = "Tensor[(1, 16, 8, 8), float32]"
    out = ['#[version = "0.0.5"]', f"def @main(%x: {kinds}, %w: Tensor[(16, 16, 3, 3), float32], %b: {vector}) -> {kinds} {{"]
    names = ["%x"] * 10
    for number in range(nodes // NODES * len(RELAY)):
        line = RELAY[number % len(RELAY)].format(*names)
        projected = line.endswith(".0")
        out.append(f"  %{number} = {line};")
        names = [f"%{number}", *names[: 9 - projected]]
    return "\n".join([*out, f"  nn.relu({names[0]})", "}", ""])


def hlo(nodes: int) -> str:
    """A module of about so many nodes."""
    t, h = "f32[8,64]{1,0}", "bf16[8,64]{1,0}"
    out = ["HloModule large", "", "ENTRY main (x: f32[8,64]) -> f32[8,64] {", f"  %x = {t} parameter(0)",
           "  %half = f32[] constant(0.5)", "  %unit = f32[] constant(1)", f"  %one = {t} broadcast(%unit), dimensions={{}}"]
    names = ["%x"] * 3
    for number in range(nodes - nodes % len(HLO)):
        out.append(f"  %v.{number} = " + HLO[number % len(HLO)].format(*names, t=t, h=h))
        names = [f"%v.{number}", *names[:2]]
    return "\n".join([*out, f"  ROOT %root = {t} negate({names[0]})", "}", ""])


def least(work: Callable[[], object], runs: int = 3) -> float:
    """CPU seconds of the quickest of some runs."""
    times = []
    for _ in range(runs):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def table(title: str, module: Module, names: list[str]) -> None:
    """A line for each pass that changes the module."""
    before = sum(len(g.nodes) for g in module.graphs.values())
    print(f"| {title}, {before:,} nodes | CPU s | nodes after |\n|---|---|---|")
    for name in names:
        made = pass_named(name).run(module)
        after = sum(len(g.nodes) for g in made.graphs.values())
        if made is module:
            continue
        print(f"| `{name}` | {least(lambda name=name: pass_named(name).run(module)):.2f} | {after:,} |", flush=True)  # type: ignore[misc]
    print(f"| check of types | {least(lambda: check_types(module)):.2f} | |\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", type=int, nargs="?", default=100_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--format", default="relay,hlo")
    given = parser.parse_args()
    names = [name for name in own_passes() if not given.only or name in given.only.split(",")]
    for title, text in (("Relay", relay), ("HLO", hlo)):
        if title.lower() in given.format:
            reading = irscope.load(text(given.nodes))
            assert reading.ok, reading.findings[:3]
            module = reading.module()
            table(title, module if title == "HLO" else pass_named("infer-types").run(module), names)


if __name__ == "__main__":
    main()
