"""How long ``irscope lint`` takes over long programs: CPU seconds and peak memory for each format, shape of program and policy.

    python benchmarks/lint_speed.py                        100,000 operators: plain lint, and --why-not-fused under each policy
    python benchmarks/lint_speed.py --ops 3000 --rounds 5  the least of five runs each
    python benchmarks/lint_speed.py --only hlo.layers --policies none,xla-cpu

The whole command in a process of its own: start of Python, reading, all rules, the report. Rounds over all cases are interleaved, so
that a busy machine disturbs all alike, and the least of each counts. The policy ``none`` is lint without ``--why-not-fused``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))

from benchmarks.long_programs import hlo, relay, torchscript  # noqa: E402

FORMATS = {"hlo": hlo.SHAPES, "relay": relay.SHAPES, "torchscript": torchscript.SHAPES}
POLICIES = ("none", "irscope", "tvm", "inductor", "xla-cpu", "xla-gpu")


@dataclass(slots=True)
class Spent:
    """What one command took: CPU seconds, and the most memory it held, in MiB. ``failed``: its last words."""

    seconds: float
    mib: float
    failed: str = ""

    def __str__(self) -> str:
        return self.failed or f"{self.seconds:.1f} s, {self.mib:,.0f} MiB"


def lint(file: Path, policy: str, limit: float) -> Spent:
    """One run over a file; it is stopped after ``limit`` seconds."""
    words = [sys.executable, "-m", "irscope", "lint", str(file), "--isolated", "--exit-zero", "-o", os.devnull]
    if policy != "none":
        words += ["--why-not-fused", "--policy", policy]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    words = ["timeout", str(limit), *words]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    told = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    last = told.strip().splitlines()[-1] if told.strip() else f"exit {process.returncode}"
    failed = "" if process.returncode == 0 else f"more than {limit:g} s" if process.returncode == 124 else last
    return Spent(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, failed)


def measured(cases: dict[tuple[str, str], Path], policies: list[str], rounds: int, limit: float) -> dict[tuple[str, str, str], Spent]:
    """The least of some rounds over all cases, by format, shape and policy."""
    best: dict[tuple[str, str, str], Spent] = {}
    for _ in range(rounds):
        for (format_, shape), file in cases.items():
            for policy in policies:
                spent, before = lint(file, policy, limit), best.get((format_, shape, policy))
                if before is None or spent.failed or spent.seconds < before.seconds:
                    best[format_, shape, policy] = spent
                print(f"{format_} {shape} {policy}: {spent}", file=sys.stderr)
    return best


def table(cases: dict[tuple[str, str], Path], ops: dict[tuple[str, str], int], policies: list[str],
          best: dict[tuple[str, str, str], Spent]) -> str:
    """A row for each format and shape, a column for each policy."""
    titles = ["format", "shape", "operators", *("lint" if policy == "none" else policy for policy in policies)]
    rows = [titles, ["---", "---", "---:", *("---:" for _ in policies)]]
    rows += [[*case, f"{ops[case]:,}", *(str(best[*case, policy]) for policy in policies)] for case in cases]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--ops", type=int, default=100_000, help="operators of each program, about")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="*", help="format.shape, as a glob: hlo.*")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--limit", type=float, default=200, help="seconds after which a run is stopped")
    asked = parser.parse_args()
    policies = asked.policies.split(",")
    with tempfile.TemporaryDirectory() as folder:
        cases, ops = {}, {}
        for format_, shapes in FORMATS.items():
            for shape in shapes:
                if fnmatch(f"{format_}.{shape.name}", asked.only):
                    cases[format_, shape.name] = file = Path(folder) / f"{format_}.{shape.name}"
                    file.write_text(shape.program(asked.ops))
                    ops[format_, shape.name] = max(1, round(asked.ops / shape.ops)) * shape.ops
        print(table(cases, ops, policies, measured(cases, policies, asked.rounds, asked.limit)))


if __name__ == "__main__":
    main()
