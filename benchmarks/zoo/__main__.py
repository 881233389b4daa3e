"""The zoo: nets of torchvision, timm, transformers and keras through irscope's command line, held against their frameworks.

    python -m benchmarks.zoo --frameworks .zoo/bin/python [--only NAME...] [--state out/zoo] [--table docs/zoo.md]

Results are kept in ``--state`` under the hash of irscope/, those of the frameworks beside them; what is there is not run again, but for the
nets that ``--again`` names. Exit status 1: a net is wrong, endless, a defect of irscope, slower than 60 s of CPU time or larger than 3 GB.
"""
from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.zoo.nets import NETS, forms
from benchmarks.zoo.running import ROOT, Run, run
from benchmarks.zoo.table import excess, page, summary
from tests.grid.state import tree_hash


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frameworks", default=".zoo/bin/python", metavar="PYTHON", help="has torch, timm, transformers, jax, keras")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these nets")
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="run these once more, export included")
    parser.add_argument("--state", default="out/zoo", type=Path, metavar="DIR")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table there, unless --only is given")
    args = parser.parse_args()
    unknown = {*(args.only or ()), *args.again} - NETS.keys()
    if unknown:
        parser.error(f"no such nets: {', '.join(sorted(unknown))}; there are {', '.join(NETS)}")
    runs = _run_all(args.only or list(NETS), set(args.again), args.frameworks, args.state)
    if args.table and not args.only:
        args.table.write_text(page(list(runs.values()), tree_hash()))
    print(summary(list(runs.values())))
    return int(any(excess(one) or one.said in ("wrong", "endless", "failed", "unexported") for one in runs.values()))


def _run_all(names: list[str], again: set[str], frameworks: str, state: Path) -> dict[tuple[str, str], Run]:
    """What is known of all nets, after these have run."""
    state.mkdir(parents=True, exist_ok=True)
    kept = state / f"{tree_hash()[:12]}.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    known = {(one.net, one.form): one for one in (Run(**json.loads(line)) for line in lines) if one.net in NETS}
    exporter = _Exporter(frameworks)
    for name in names:
        for form in forms(NETS[name]):
            if (name, form) in known and name not in again:
                continue
            folder = state / "nets" / name
            why = exporter.export(name, folder, again=name in again and form == forms(NETS[name])[0])
            one = Run(name, form, "unexported", why) if why else run(name, form, folder.resolve())
            known[name, form] = one
            with kept.open("a") as file:
                file.write(one.line() + "\n")
            print(f"{name:32} {form:8} {one.said:8} {one.cpu_s or 0:6.1f} s  {one.why[:160]}", flush=True)
    exporter.close()
    return {key: known[key] for name in NETS for key in ((name, form) for form in forms(NETS[name])) if key in known}


class _Exporter:
    """A process of the frameworks' interpreter, started when the first net is wanted."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None

    def export(self, name: str, folder: Path, again: bool) -> str:
        """Write the net to the folder unless it lies there; why that was not possible, or nothing."""
        report = folder / "export.json"
        if again or not report.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen([self._python, "-m", "benchmarks.zoo.exporter"], cwd=ROOT, stdin=subprocess.PIPE,
                                                 stdout=subprocess.PIPE, stderr=(folder.parent / "exporter.log").open("a"), text=True)
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps([name, str(folder.resolve())]) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            if not report.exists():
                return str(json.loads(line)["error"] if line else f"the exporter ended with {self._process.wait()}: see exporter.log")
        return str(json.loads(report.read_text()).get("error", ""))

    def close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


if __name__ == "__main__":
    sys.exit(main())
