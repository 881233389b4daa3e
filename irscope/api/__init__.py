"""The public functions, each with its options and its result: docs/api.md. Modules are imported lazily, on first use."""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from irscope.lazy import LazyModule
from irscope.source.notebook import set_viewer

if TYPE_CHECKING:
    from irscope.api import notebook
    from irscope.api.capturing import CaptureResult, capture
    from irscope.api.checking import CheckResult, check
    from irscope.api.comparing import DiffResult, diff
    from irscope.api.compiled_model import scalar_loops
    from irscope.api.compiling import CompileOptions, compile
    from irscope.api.counting import StatsResult, stats
    from irscope.api.emitting import emit, write_library
    from irscope.api.environment import machine
    from irscope.api.explaining import Explanation, explain, explain_all
    from irscope.api.fixing import FixResult, fix
    from irscope.api.linting import LintResult, audit, lint
    from irscope.api.listing import listed
    from irscope.api.loading import load, whole
    from irscope.api.optimising import OptResult, opt
    from irscope.api.options import (
        CaptureOptions,
        CheckOptions,
        DiffOptions,
        InputOptions,
        LintOptions,
        OptOptions,
        RunOptions,
        ShowOptions,
        StatsOptions,
        View,
    )
    from irscope.api.run_result import RunResult
    from irscope.api.running import run
    from irscope.api.showing import ShowResult, show
    from irscope.api.verification import Verification
    from irscope.api.verifying import verify
    from irscope.api.watching import PassWatcher, Watcher
else:
    notebook = LazyModule("irscope.api.notebook")  # imported when a notebook first asks for a view

LAZY = {
    name: f"irscope.api.{module}" for module, names in {
        "capturing": "CaptureResult capture",
        "checking": "CheckResult check",
        "comparing": "DiffResult diff",
        "compiled_model": "scalar_loops",
        "compiling": "CompileOptions compile",
        "counting": "StatsResult stats",
        "emitting": "emit write_library",
        "explaining": "Explanation explain explain_all",
        "fixing": "FixResult fix",
        "linting": "LintResult audit lint",
        "listing": "listed",
        "loading": "load whole",
        "environment": "machine",
        "optimising": "OptResult opt",
        "options": "CaptureOptions CheckOptions DiffOptions InputOptions LintOptions OptOptions RunOptions ShowOptions StatsOptions View",
        "run_result": "RunResult",
        "running": "run",
        "showing": "ShowResult show",
        "verification": "Verification",
        "verifying": "verify",
        "watching": "PassWatcher Watcher",
    }.items() for name in names.split()
}
"""Each public name, and the module that defines it."""

__all__ = [
    "CaptureOptions", "CaptureResult", "CheckOptions", "CheckResult", "CompileOptions", "DiffOptions", "DiffResult", "Explanation",
    "FixResult", "InputOptions", "LintOptions", "LintResult", "OptOptions", "OptResult", "PassWatcher", "RunOptions", "RunResult",
    "ShowOptions", "ShowResult", "StatsOptions", "StatsResult", "Verification", "View", "Watcher", "audit", "capture", "check",
    "compile", "diff", "emit", "explain", "explain_all", "fix", "lint", "listed", "load", "machine", "opt", "run", "scalar_loops",
    "show", "stats", "verify", "whole", "write_library",
]


set_viewer(notebook)


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module 'irscope.api' has no attribute {name!r}")
    return getattr(import_module(LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
