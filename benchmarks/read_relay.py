"""How long a long Relay module takes to read (types included) and to check: python benchmarks/read_relay.py [LINES].

Times are CPU seconds, the least of five runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from irscope.analysis.types import check_types
from irscope.formats.relay import print_module, read
from irscope.source import SourceText

STEPS = (
    "nn.dense({0}, %w, units=128)",
    "nn.bias_add({0}, %b)",
    "sigmoid({0})",
    "multiply({0}, 0.5f)",
    "split({0}, indices_or_sections=4, axis=1)",
    "concatenate(({0}.0, {0}.1, {0}.2, {0}.3), axis=1)",
    "reshape({0}, newshape=[1, -1])",
    "strided_slice({0}, begin=[0, 0], end=[1, 128], strides=[1, 1], axes=None)",
)


def generated(lines: int) -> str:
    """A recurrent network, unrolled."""
    vector = "Tensor[(1, 128), float32]"
    out = ['#[version = "0.0.5"]', f"def @main(%x: {vector}, %w: Tensor[(128, 128), float32], %b: Tensor[(128), float32]) -> {vector} {{"]
    last = "%x"
    for number in range(lines - 4):
        step = STEPS[number % len(STEPS)].format(last)
        note = "" if step.startswith("split") else f" /* ty={vector} */"
        last = f"%{number}"
        out.append(f"  {last} = {step}{note};")
    return "\n".join([*out, f"  nn.relu({last})", "}", ""])


def least(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 24_000
    lines -= lines % len(STEPS)
    source = SourceText("generated.relay", generated(lines))
    module = read(source).module()
    print(f"{lines} lines, {len(source.text) / 1e6:.1f} MB, {sum(len(g.nodes) for g in module.graphs.values())} nodes")
    print(f"read and type {least(lambda: read(source)):.3f} s   check {least(lambda: check_types(module)):.3f} s   "
          f"print {least(lambda: print_module(module)):.3f} s")


if __name__ == "__main__":
    main()
