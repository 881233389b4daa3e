"""What faults cost, timed: ``python benchmarks/lint_pairs.py write|time|table``.

``write`` prints the programs of lint_programs/ as HLO (needs jax), ``time`` runs each with and without its fault, by jax and by irscope in
one process, and records the times beside the texts; ``table`` lints the texts, compares claims with times, and writes docs/lint/evidence.md
(needs neither jax nor the runs). Times are CPU time in microseconds on one thread: of bursts in random order the one that a tenth
is faster than, since the clocks of virtual cores differ by some and the least is too little.
"""
from __future__ import annotations

import argparse
import gc
import json
import os
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "lint" / "pairs"
TIMES = FOLDER / "times.json"
BURST_S = 2e-4
"""A burst repeats a call until it takes so long."""
FEWEST = 10
"""Bursts of each program at least."""
Call = Callable[[], Any]


def programs(only: str) -> list[tuple[str, dict[str, Callable[..., Any]], Any]]:
    """Every pair and mix: its name, its variants by name (the first has all faults), and where its arguments come from."""
    from lint_programs import algebra, broadcasts, element_types, fusion, layouts, loops
    from lint_programs.mixes import MIXES
    from lint_programs.pair import PAIRS

    assert all((algebra, broadcasts, element_types, fusion, layouts, loops))
    found: list[tuple[str, dict[str, Callable[..., Any]], Any]] = [(p.name, {"bad": p.bad, "fixed": p.fixed}, p) for p in PAIRS]
    found += [(m.name, {"bad": m.program(), **{name: m.program(name) for name in m.stages}}, m) for m in MIXES]
    return [one for one in found if re.search(only, one[0])]


def lowered(function: Callable[..., Any], of: Any) -> tuple[Any, list[Any]]:
    """A program lowered by jax, with jax's own copies of the arguments."""
    import jax

    given = [jax.numpy.asarray(a) for a in of.arguments()]
    return jax.jit(function, keep_unused=True).lower(*given), given


def write(only: str) -> None:
    """The texts of pairs with and without the fault, and of mixes with all faults."""
    import jax

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, variants, of in programs(only):
        with jax.enable_x64(getattr(of, "x64", True)):
            for variant in ("bad", "fixed") if "fixed" in variants else ("bad",):
                text = lowered(variants[variant], of)[0].as_text(dialect="hlo", debug_info="fixed" not in variants)
                (FOLDER / f"{name}.{variant}.hlo").write_text(without_lines(text))


def without_lines(text: str) -> str:
    """A text with the scopes of its operations, and without the tables of files, which name folders of the machine."""
    text = re.sub(r"\n\nFileNames\n.*?\nStackFrames\n.*?\n\n", "\n\n", text, flags=re.S)
    return re.sub(r' ?stack_frame_id=\d+', "", text)


def time_all(only: str, seconds: float) -> None:
    """Time everything; of several runs the smaller times are kept."""
    import jax

    import irscope

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    told = json.loads(TIMES.read_text()) if TIMES.exists() else {"pairs": {}, "mixes": {}}
    told["versions"] = {"jax": jax.__version__, "irscope": irscope.__version__, "cpu": _processor()}
    for name, variants, of in programs(only):
        with jax.enable_x64(getattr(of, "x64", True)):
            calls: dict[tuple[str, str], Call] = {}
            results = {}
            for variant, function in variants.items():
                low, given = lowered(function, of)
                compiled = low.compile()
                calls["jax", variant] = lambda run=compiled, given=given: jax.block_until_ready(run(*given))
                results[variant] = [np_float(leaf) for leaf in jax.tree.leaves(compiled(*given))]
                model = irscope.compile(low.as_text(dialect="hlo"), threads=1)
                calls["irscope", variant] = model.bind(of.arguments())
            times = best(calls, seconds)
        part = told["pairs" if "fixed" in variants else "mixes"]
        row: dict[str, Any] = {"error": error(results)} if "fixed" in variants else {}
        if "fixed" in variants:
            row |= {"rule": of.rule, "about": of.about, "same": of.same}
        else:
            row["stages"] = {stage: of.stages[stage].rule for stage in of.stages}
        old = part.get(name, {})
        for engine in ("jax", "irscope"):
            before = old.get(engine, {})
            row[engine] = {v: round(min(times[engine, v], before.get(v, 1e9)), 2) for v in variants}
        part[name] = row
        told_times = (f"{engine} " + " ".join(f"{us:.1f}" for us in row[engine].values()) for engine in ("jax", "irscope"))
        print(f"{name:36}", *told_times, flush=True)
        TIMES.write_text(json.dumps(told, indent=1) + "\n")
        jax.clear_caches()
        gc.collect()


def best(calls: dict[tuple[str, str], Call], seconds: float) -> dict[tuple[str, str], float]:
    """The lower decile of each call's CPU time in microseconds; bursts in random order, each behind a run that fetches its data."""
    found: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    bursts = {}
    for key, call in calls.items():
        call()
        began = time.perf_counter()
        call()
        bursts[key] = max(1, int(BURST_S / max(1e-7, time.perf_counter() - began)))
    end, order = time.perf_counter() + seconds * len(calls), list(calls)
    while time.perf_counter() < end or min(map(len, found.values())) < FEWEST:
        random.shuffle(order)
        for key in order:
            call = calls[key]
            call()
            began = time.process_time()
            for _ in range(bursts[key]):
                call()
            found[key].append((time.process_time() - began) / bursts[key] * 1e6)
    return {key: sorted(times)[len(times) // 10] for key, times in found.items()}


def np_float(leaf: Any) -> Any:
    """A result as float64."""
    import numpy as np

    return np.asarray(leaf).astype(np.float64).ravel()


def error(results: dict[str, list[Any]]) -> float:
    """How far the halves are from each other, as a share of the largest number; 1 where they are of different shapes."""
    import numpy as np

    bad, fixed = (np.concatenate(results[v]) for v in ("bad", "fixed"))
    if bad.shape != fixed.shape:
        return 1.0
    return float(np.abs(bad - fixed).max() / max(1e-30, np.abs(bad).max()))


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", told.read_text()) if told.exists() else []
    return names[0] if names else "?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "time", "table"))
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each variant and engine")
    given = parser.parse_args()
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.insert(0, str(ROOT))
    if given.what == "write":
        write(given.only)
    elif given.what == "time":
        time_all(given.only, given.seconds)
    else:
        from benchmarks.lint_evidence import page

        (ROOT / "docs" / "lint" / "evidence.md").write_text(page(ROOT), encoding="utf-8")


if __name__ == "__main__":
    main()
