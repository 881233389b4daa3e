"""Whole nets side by side: irscope against torch, TorchScript, jax and ONNX Runtime, on the same weights, in one run.

    PEERS_PYTHON=/path/to/python make bench-nets
    python benchmarks/run_nets.py --peers-python /path/to/python --nets mlp,bert_layer,resnet50

The peers run in the interpreter given by --peers-python or PEERS_PYTHON (with jax, torch, and if wanted onnxruntime); without one,
irscope alone is timed, on a dump made earlier with --keep. Every engine has a process of its own, pinned to the same cores, loaded once
and warmed; then all take turns for short bursts, so that what else runs on the machine disturbs them alike. Reported are the median
of wall times, and the smallest CPU time, which other load hardly moves.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ENGINES = ("irscope", "torch", "torchscript", "jax", "jax_const", "onnxruntime")
NETS = ("mlp", "bert_layer", "resnet50")


class Engine:
    """A process that runs one net in one engine."""

    def __init__(self, net: str, name: str, python: str, folder: Path, threads: int, cores: set[int]) -> None:
        self.name, self.wall, self.cpu = name, [], []
        environment = dict(os.environ, JAX_PLATFORMS="cpu", PYTHONWARNINGS="ignore")
        if name == "irscope":
            environment["IRSCOPE_CACHE"] = str(folder / "cache")  # empty at first: the load time is that of the first run ever
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent), environment.get("PYTHONPATH", "")]))
        for key in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[key] = str(threads)
        self.process = subprocess.Popen(
            [python, str(HERE / "peers.py"), net, name, str(folder), str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        self.state = self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"ok": False, "error": f"the process ended with {self.process.wait()}"}

    def burst(self, seconds: float, realtime: bool) -> None:
        """Run for a while and keep the samples."""
        assert self.process.stdin is not None
        if realtime:
            self._schedule(os.SCHED_RR, 1)
        self.process.stdin.write(json.dumps(seconds) + "\n")
        self.process.stdin.flush()
        samples = self._read()
        if realtime:
            self._schedule(os.SCHED_OTHER, 0)
        self.wall += samples["wall"]
        self.cpu += samples["cpu"]

    def _schedule(self, policy: int, priority: int) -> None:
        """All threads of the process."""
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(ProcessLookupError):  # it may have ended meanwhile
                os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(net: str, args: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """All engines on one net."""
    cores = set(sorted(os.sched_getaffinity(0))[args.core:args.core + args.threads])
    if args.peers_python and not (folder / "expected.npz").exists():
        folder.mkdir(parents=True, exist_ok=True)
        dump = Engine(net, "dump", args.peers_python, folder, args.threads, cores)
        dump.stop()
        if not dump.state["ok"]:
            raise SystemExit(f"{net}: {dump.state['error']}")
    engines = []
    for name in args.engines:
        if name == "irscope" or args.peers_python:
            engine = Engine(net, name, sys.executable if name == "irscope" else args.peers_python, folder, args.threads, cores)
            if engine.state["ok"]:
                engines.append(engine)
            else:
                print(f"{net}: no {name}: {engine.state['error']}", file=sys.stderr)
    for _ in range(args.rounds):
        for engine in engines:
            engine.burst(args.burst, args.realtime)
    for engine in engines:
        engine.stop()
    return [{"net": net, "engine": e.name, "median_us": statistics.median(e.wall) * 1e6, "min_cpu_us": min(e.cpu) * 1e6,
             "load_cpu_s": e.state["load_cpu_s"], "error": e.state["error"]} for e in engines]


def time_text(us: float) -> str:
    return f"{us:.1f} us" if us < 1000 else f"{us / 1000:.2f} ms"


def table(rows: list[dict[str, Any]], threads: int) -> str:
    """A Markdown table: a row an engine and net, with how many times slower than irscope it is.

    That is by CPU time for one thread, and by the clock for several, which spin while they wait.
    """
    key = "min_cpu_us" if threads == 1 else "median_us"
    lines = ["| net | engine | median | min CPU | to irscope | load, CPU s | largest error |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        own = next((r[key] for r in rows if r["net"] == row["net"] and r["engine"] == "irscope"), None)
        ratio = f"{row[key] / own:.2f}" if own else "-"
        lines.append(f"| {row['net']} | {row['engine']} | {time_text(row['median_us'])} | {time_text(row['min_cpu_us'])} | {ratio} | "
                     f"{row['load_cpu_s']:.2f} | {row['error']:.1e} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", default=os.environ.get("PEERS_PYTHON"), help="the interpreter that has jax and torch")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0, help="the first core to use")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--burst", type=float, default=0.25, help="seconds of a turn")
    parser.add_argument("--realtime", action="store_true", help="take turns at real-time priority: for machines in use (needs root)")
    parser.add_argument("--keep", type=Path, help="a folder for the dumps, used again by later runs")
    parser.add_argument("--json", action="store_true", help="one object a line instead of a table")
    args = parser.parse_args()
    args.engines = args.engines.split(",")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for net in args.nets.split(","):
            rows += measure(net, args, (args.keep or Path(scratch)) / net)
    print("\n".join(map(json.dumps, rows)) if args.json else table(rows, args.threads))


if __name__ == "__main__":
    main()
