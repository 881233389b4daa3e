"""What another release of jaxlib decides otherwise than the policy ``xla-cpu``: ``make drift RELEASE=0.13.0``.

    python -m benchmarks.drift 0.13.0 [--python python3.13] [--with PYTHON] [--as-of jaxlib-0.12.0.1] [--state out/drift]

Installs jax and jaxlib of that release in an environment of its own (or uses the interpreter of ``--with``, which has them), compiles the
model set (``programs.py``) with it, and compares what XLA logged with the row of ``irscope/fusion/xla/releases.py`` for that release, or
for the newest one before it. Prints the edges that moved, by rule, and the row that fits best. Exit status 1: an edge moved.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.drift.fit import differences, fitted, rewritten_alike
from benchmarks.release_agreement import compare, edges_apart
from irscope.fusion.policy import numbers
from irscope.fusion.xla.releases import CPU_RELEASES, CpuRelease
from irscope.fusion.xla_cpu import XlaCpuPolicy

HERE = Path(__file__).parent
NAMED = 4
"""Edges of one kind that are named."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", help="of jaxlib, such as 0.13.0")
    parser.add_argument("--python", default=sys.executable, help="makes the environment; new releases need a new Python")
    parser.add_argument("--with", dest="ready", metavar="PYTHON", help="has that jax already")
    parser.add_argument("--as-of", choices=CPU_RELEASES, help="the row to compare with")
    parser.add_argument("--state", type=Path, default=Path("out/drift"), help="keeps the environment and the texts")
    parser.add_argument("--fit", action="store_true", help="look for the row that fits best, even where all is exact")
    given = parser.parse_args()
    folder = given.state / given.release
    subprocess.run([given.ready or environment(folder / "env", given.release, given.python), HERE / "compile.py", folder / "texts"],
                   check=True)
    programs = sorted(path.parent for path in (folder / "texts").glob("*/before.hlo"))
    row = CPU_RELEASES[given.as_of] if given.as_of else nearest(given.release)
    moved = report(programs, row, given.release)
    if moved or given.fit:
        best = fitted(programs, row, f"jaxlib-{given.release}")
        print(f"\nthe row that fits best, of the values that other rows have:\n    {differences(best, row)}")
        if best != row:
            report(programs, best, given.release)
    return int(moved > 0)


def environment(folder: Path, release: str, python: str) -> Path:
    """The interpreter of an environment with that release, which is installed if it is not there yet."""
    made = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing jax and jaxlib {release} into {folder}")
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pip = [made, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, f"jax=={release}", f"jaxlib=={release}"], check=True)
        (folder / "ready").touch()
    return made


def nearest(release: str) -> CpuRelease:
    """The row of a release, or of the newest one before it."""
    return next((row for row in CPU_RELEASES.values() if numbers(row.name) <= numbers(release)), list(CPU_RELEASES.values())[-1])


def report(programs: list[Path], row: CpuRelease, release: str) -> int:
    """Print how a row agrees with the texts and logs of a release; returns how many edges it decides otherwise."""
    policy = XlaCpuPolicy(row)
    kinds: Counter[str] = Counter()
    named: defaultdict[str, list[str]] = defaultdict(list)
    exact = edges = right = 0
    for program in programs:
        one = compare(program, policy)
        exact, edges, right = exact + one.exact, edges + one.edges, right + one.right
        for kind, edge in edges_apart(program, policy):
            kinds[kind] += 1
            named[kind].append(f"{program.name}: {edge}")
    same = rewritten_alike(programs, row.rewriting)
    print(f"jaxlib {release}, judged by {row.name}: {exact} of {len(programs)} programs exact, {right:,} of {edges:,} edges; "
          f"rewritten alike: {same} of {len(programs)}")
    for kind, count in kinds.most_common():
        print(f"  {count:4} x {kind}")
        for edge in named[kind][:NAMED]:
            print(f"         {edge}")
    return edges - right


if __name__ == "__main__":
    sys.exit(main())
