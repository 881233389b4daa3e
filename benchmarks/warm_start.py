"""What a start from the compilation cache costs: CPU time of whole commands, with an empty cache and with a filled one.

    python benchmarks/warm_start.py resnet50=model.hlo,weights=w.npz,inputs=x.npz mlp=mlp.hlo --rounds 5
    python benchmarks/warm_start.py mlp=mlp.hlo --before /path/to/an/earlier/checkout      (in turn with it)

Each row is ``compile-and-run FILE --threads 1`` in a process of its own: Python's start, imports, the run and the writing of the results
included. Cold is one run with an empty cache, warm the smallest of ``--rounds`` runs after it; both are user and system time of the
process, which other load hardly moves. The floor is a process that imports what any run needs: click, numpy and llvmlite. Results must be
bitwise equal; the script ends with status 1 where they are not. Weights of any size are cached (``--cache-weights``), unless ``--plain``.
"""
from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent
FLOOR = "import click, numpy, numpy.random, llvmlite.binding as llvm; llvm.initialize_native_target(); llvm.initialize_native_asmprinter()"


@dataclass(frozen=True)
class Case:
    """A dump, and the options of its run."""

    name: str
    command: list[str]

    @staticmethod
    def of(text: str) -> Case:
        """``NAME=FILE``, then ``,OPTION=VALUE`` as often as needed."""
        name, _, rest = text.partition("=")
        path, *options = rest.split(",")
        given = [_absolute(part) for option in options for part in ("--" + option).split("=", 1)]
        return Case(name, ["compile-and-run", _absolute(path), "--threads", "1", "--format", "json", *given])


def _absolute(text: str) -> str:
    return str(Path(text).resolve()) if Path(text).exists() else text


def cpu_of(command: list[str], package: Path, cache: Path) -> float:
    """Seconds of CPU time of a process. Raises SystemExit where it fails."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"IRSCOPE_CACHE": str(cache), "PYTHONPATH": str(package), "OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *command], env=environment, cwd=package, capture_output=True, text=True,
                          check=False)  # Python takes the irscope of the folder that it is started in
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(case: Case, package: Path, rounds: int, extra: list[str]) -> tuple[float, float, bool]:
    """CPU seconds cold and warm, and whether all results are bitwise equal."""
    with tempfile.TemporaryDirectory() as folder:
        cache, first, other = Path(folder) / "cache", Path(folder) / "first.npz", Path(folder) / "other.npz"
        cold = cpu_of(["-m", "irscope", *case.command, *extra, "--save-outputs", str(first)], package, cache)
        warm, equal = float("inf"), True
        for _ in range(rounds):
            warm = min(warm, cpu_of(["-m", "irscope", *case.command, *extra, "--save-outputs", str(other)], package, cache))
            with np.load(first) as one, np.load(other) as two:
                equal = equal and one.files == two.files and all(one[n].tobytes() == two[n].tobytes() for n in one.files)
    return cold, warm, equal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", metavar="NAME=FILE[,OPTION=VALUE]", type=Case.of)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path, help="another checkout, measured in turn; it gets no --cache-weights")
    parser.add_argument("--plain", action="store_true", help="without --cache-weights")
    args = parser.parse_args()
    extra = [] if args.plain else ["--cache-weights"]
    versions = [(HERE, extra)] if args.before is None else [(HERE, extra), (args.before.resolve(), [])]
    for package, _ in versions:
        cpu_of(["-m", "irscope", "--version"], package, Path(os.devnull))
    floor = min(cpu_of(["-c", FLOOR], HERE, Path(os.devnull)) for _ in range(args.rounds))
    print(f"floor: {floor:.3f} s\n")
    print("| program" + " | cold, CPU s | warm, CPU s | warm / cold" * len(versions) + " |\n|" + "---|" * (1 + 3 * len(versions)))
    all_equal = True
    for case in args.cases:
        cells = []
        for package, more in versions:
            cold, warm, equal = measured(case, package, args.rounds, more)
            all_equal = all_equal and equal
            cells += [f"{cold:.2f}", f"{warm:.2f}", f"{warm / cold:.2f}{'' if equal else ' RESULTS DIFFER'}"]
        print(f"| {' | '.join([case.name, *cells])} |", flush=True)
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())
