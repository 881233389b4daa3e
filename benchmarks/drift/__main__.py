"""What another release of jaxlib decides otherwise than ``xla-cpu`` or ``xla-gpu``: ``make drift RELEASE=0.13.0``.

    python -m benchmarks.drift 0.13.0 [--python python3.13] [--with PYTHON] [--as-of jaxlib-0.12.0.1] [--state out/drift] [--target FILE]

Installs jax and jaxlib of that release in an environment of its own (or uses the interpreter of ``--with``, which has them), compiles the
model set (``programs.py``) with it, and compares what XLA logged with the row of ``irscope/fusion/xla/releases.py`` for that release, or
for the newest one before it. Prints the edges that moved, by rule, and the row that fits best. Exit status 1: an edge moved.

``--target`` (a text of XLA's GpuTargetConfigProto) compiles for that GPU, without one, with jax's CUDA plugin, and compares the rows of
``xla-gpu``; ``--device`` names it for the policy.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from benchmarks.drift.fit import Row, differences, fitted, policy_of, rewritten_alike
from benchmarks.release_agreement import compare, edges_apart
from irscope.fusion.policy import numbers
from irscope.fusion.xla.releases import RELEASES

HERE = Path(__file__).parent
GPU_PACKAGES = ("jax-cuda12-pjrt=={}", "jax-cuda12-plugin=={}", "nvidia-cuda-nvcc-cu12")
"""What compiles for GPUs, beside jax; the plugin needs no other library of CUDA where nothing runs."""
NAMED = 4
"""Edges of one kind that are named."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", help="of jaxlib, such as 0.13.0")
    parser.add_argument("--python", default=sys.executable, help="makes the environment; new releases need a new Python")
    parser.add_argument("--with", dest="ready", metavar="PYTHON", help="has that jax already")
    parser.add_argument("--as-of", help="the row to compare with")
    parser.add_argument("--state", type=Path, default=Path("out/drift"), help="keeps the environment and the texts")
    parser.add_argument("--fit", action="store_true", help="look for the row that fits best, even where all is exact")
    parser.add_argument("--target", type=Path, help="the text of a GPU: compare xla-gpu, compiled for it")
    parser.add_argument("--device", default="h100", help="the device of xla-gpu that it is")
    given = parser.parse_args()
    kind = "xla-gpu" if given.target else "xla-cpu"
    folder = given.state / given.release
    interpreter = given.ready or environment(folder / f"env-{kind}", given.release, given.python, GPU_PACKAGES if given.target else ())
    target = ["--target", given.target] if given.target else []
    subprocess.run([interpreter, HERE / "compile.py", folder / kind, *target], check=True)
    programs = sorted(path.parent for path in (folder / kind).glob("*/before.hlo"))
    rows: Mapping[str, Row] = RELEASES[kind]
    row = rows[given.as_of] if given.as_of else nearest(rows, given.release)
    device = given.device if given.target else None
    moved = report(programs, row, given.release, device)
    if moved or given.fit:
        best = fitted(programs, row, f"jaxlib-{given.release}", device)
        print(f"\nthe row that fits best, of the values that other rows have:\n    {differences(best, row)}")
        if best != row:
            report(programs, best, given.release, device)
    return int(moved > 0)


def environment(folder: Path, release: str, python: str, more: tuple[str, ...] = ()) -> Path:
    """The interpreter of an environment with that release, which is installed if it is not there yet."""
    made = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing jax and jaxlib {release} into {folder}")
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pip = [made, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, f"jax=={release}", f"jaxlib=={release}"], check=True)
        if more:
            subprocess.run([*pip, "--no-deps", *(name.format(release) for name in more)], check=True)
        (folder / "ready").touch()
    return made


def nearest(rows: Mapping[str, Row], release: str) -> Row:
    """The row of a release, or of the newest one before it."""
    return next((row for row in rows.values() if numbers(row.name) <= numbers(release)), list(rows.values())[-1])


def report(programs: list[Path], row: Row, release: str, device: str | None) -> int:
    """Print how a row agrees with the texts and logs of a release; returns how many edges it decides otherwise."""
    policy = policy_of(row)
    kinds: Counter[str] = Counter()
    named: defaultdict[str, list[str]] = defaultdict(list)
    exact = edges = right = 0
    for program in programs:
        one = compare(program, policy, device)
        exact, edges, right = exact + one.exact, edges + one.edges, right + one.right
        for kind, edge in edges_apart(program, policy, device):
            kinds[kind] += 1
            named[kind].append(f"{program.name}: {edge}")
    same = rewritten_alike(programs, row, device)
    print(f"jaxlib {release}, judged by {row.name}: {exact} of {len(programs)} programs exact, {right:,} of {edges:,} edges; "
          f"rewritten alike: {same} of {len(programs)}")
    for kind, count in kinds.most_common():
        print(f"  {count:4} x {kind}")
        for edge in named[kind][:NAMED]:
            print(f"         {edge}")
    return edges - right


if __name__ == "__main__":
    sys.exit(main())
