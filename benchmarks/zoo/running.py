"""Runs irscope's command line on one text of a net and says what became of it."""
from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120
"""CPU seconds after which a run is ended. The table marks what takes more than half of it."""
LIMIT_BYTES = 16 << 30
WEIGHTS = {"inlined": "weights.pt", "frozen": "weights.pt", "hlo": "weights.npz"}
"""Frozen graphs keep some weights as attributes, those of recurrent layers among them: what is in no file would be drawn."""


@dataclass(frozen=True, slots=True)
class Run:
    """``said`` is right, wrong, refused, endless, failed (a defect of irscope) or unexported.

    Times are in seconds (``run_ms`` in milliseconds), memory in MB.
    """

    net: str
    form: str
    said: str
    why: str = ""
    error: float | None = None
    kernels: int | None = None
    cpu_s: float | None = None
    compile_s: float | None = None
    run_ms: float | None = None
    peak_mb: float | None = None

    def line(self) -> str:
        """One line of JSON, without what is unknown."""
        return json.dumps({k: v for k, v in asdict(self).items() if v not in (None, "")})


def run(net: str, form: str, folder: Path) -> Run:
    """Compile and run the exported text on one thread, without the cache, and compare with the framework's results.

    The tolerances are the command's own. ``error`` is the largest difference over the largest value of its output; ``cpu_s`` counts the
    whole process, ``compile_s`` and ``run_ms`` are what the command reports (elapsed time).
    """
    command = [sys.executable, "-m", "irscope", "compile-and-run", f"{form}.txt", "--inputs", f"{form}.inputs.npz",
               "--weights", WEIGHTS[form], *(["--constants", f"{form}.constants.npz"] if form != "hlo" else []),
               "--expect", "expected.npz", "--threads", "1", "--no-cache", "--bench", "--runs", "1", "--warmup", "0", "--format", "json"]
    environment = dict(os.environ, PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=err, preexec_fn=_limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said, report, why = _outcome(process.returncode, out.read(), err.read())
    errors = report.get("max_rel_error")
    return Run(net, form, said, why, errors, report.get("kernels"), round(usage.ru_utime + usage.ru_stime, 2), report.get("compile_s"),
               round(report["median_us"] / 1e3, 3) if "median_us" in report else None, report.get("peak_rss_mb"))


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))


def _outcome(code: int, out: str, err: str) -> tuple[str, dict[str, Any], str]:
    """(what it is called, the command's figures, the reason) of an exit status and both streams."""
    report: dict[str, Any] = json.loads(out) if code in (0, 1) and out.startswith("{") else {}
    lines = [line.strip() for line in err.splitlines() if line.strip() and not line.startswith("note:")]
    why = " | ".join(lines[:6])[:600]
    if "drawn from seed" in err:
        return "unexported", report, next(line for line in err.splitlines() if "drawn from seed" in line)
    if code == 0 and report.get("ok"):
        return "right", report, "; ".join(f"{op} interpreted" for op in report.get("interpreted_ops", ()))
    if code == 1 and report:
        return "wrong", report, "; ".join(report.get("faults", ()))
    if code == 2 or (code == 1 and lines):
        return "refused", report, why
    if code < 0 and -code in (9, 24):  # SIGKILL, SIGXCPU
        return "endless", report, f"ended after {LIMIT_S} s of CPU time"
    return "failed", report, f"exit status {code}: {why}"
