"""Compiles the pairs of programs that ``benchmarks/proven_fixes.py --pairs FOLDER`` writes with XLA's CPU compiler and counts kernels.

    python benchmarks/proven_fixes_xla.py FOLDER          (in an environment with jaxlib 0.10.2, which the pairs must be made for:
                                                           --policy xla-cpu@jaxlib-0.10.2)

A kernel is an instruction of a computation that runs, loops and branches included, other than those that only name values. Each counts
once;
irscope counts the kernels of a loop by its trips, so that what it says is divided by the runs of the graph.
"""
from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import jax
from jaxlib import _hlo, _jax

FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call", "after-all", "opt-barrier"}
"""Instructions that start no kernel themselves."""


def optimised(text: str) -> str:
    """The HLO that XLA makes of a text."""
    client = jax.devices("cpu")[0].client
    stable = _jax.mlir.hlo_to_stablehlo(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    compiled = client.compile_and_load(stable, _jax.DeviceList(tuple(client.local_devices()[:1])), _jax.CompileOptions())
    return str(compiled.hlo_modules()[0].to_string())


def kernels(text: str) -> int:
    """The kernels of an optimised text."""
    applied = set(re.findall(r"(?:calls|to_apply)=%?([\w.\-]+)", text))
    count, here = 0, False
    for line in text.splitlines():
        header = re.match(r"^(?:ENTRY )?%?([\w.\-]+) .*\{\s*$", line)
        if header:
            here = header[1] not in applied
        operator = re.match(r"^\s+(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*?\)|\S+) ([\w\-]+)\(", line)
        count += bool(here and operator and operator[1] not in FREE)
    return count


def main() -> None:
    """Compile every pair, and say how many start as many kernels less as irscope says."""
    same = total = 0
    for path in sorted(Path(sys.argv[1]).glob("*.json")):
        record = json.loads(path.read_text())
        before, after = (kernels(optimised(record[half])) for half in ("before", "after"))
        said = round(record["kernels"] / record["runs"])
        total += 1
        same += before - after == said
        print(f"{record['file']} {' -> '.join(record['edge'])} {record['candidate']}: said {said} fewer, XLA {before} -> {after}")
    print(f"{same} of {total} as said")


if __name__ == "__main__":
    main()
