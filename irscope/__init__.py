"""irscope reads what machine-learning compilers print, and shows, lints, rewrites, compares, compiles and runs it: docs/api.md.

    import irscope

    for finding in irscope.lint("model.hlo").findings:
        print(finding)
"""
from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from irscope.version import __version__

if TYPE_CHECKING:
    from irscope.api import (
        CheckOptions,
        CheckResult,
        DiffOptions,
        DiffResult,
        Explanation,
        FixResult,
        LintOptions,
        LintResult,
        OptOptions,
        OptResult,
        RunOptions,
        RunResult,
        ShowOptions,
        ShowResult,
        StatsOptions,
        StatsResult,
        Verification,
        View,
        Watcher,
        check,
        compile,
        diff,
        emit,
        explain,
        fix,
        lint,
        load,
        opt,
        run,
        show,
        stats,
        verify,
        write_library,
    )
    from irscope.source import UserError
    from irscope.source.budget import BudgetExceeded, limits

__all__ = [
    "BudgetExceeded", "CheckOptions", "CheckResult", "DiffOptions", "DiffResult", "Explanation", "FixResult", "LintOptions", "LintResult",
    "OptOptions", "OptResult", "RunOptions", "RunResult", "ShowOptions", "ShowResult", "StatsOptions", "StatsResult", "UserError",
    "Verification", "View", "Watcher", "__version__", "check", "compile", "diff", "emit", "explain", "fix", "limits", "lint", "load", "opt",
    "run", "show", "stats", "verify", "write_library",
]

# Imported when first used: `irscope --version` must not wait for the graph model.
_ELSEWHERE = {"UserError": "irscope.source", "limits": "irscope.source.budget", "BudgetExceeded": "irscope.source.budget"}
_PACKAGES = ("lint", "diff")
"""Functions that share their name with a package of irscope's own, which can be called in their place."""


class _CallablePackage(ModuleType):
    """A package that is also the function of its name: ``irscope.lint(...)`` beside ``irscope.lint.rule``."""

    def __call__(self, *args: object, **given: object) -> Any:
        return getattr(importlib.import_module("irscope.api"), self.__name__.rpartition(".")[2])(*args, **given)


class _Package(ModuleType):
    """irscope itself. Python sets a package as an attribute of its parent whenever it is first imported, whoever imports it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _PACKAGES and type(value) is ModuleType:
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"irscope.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'irscope' has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE.get(name, "irscope.api")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
