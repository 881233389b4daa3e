"""irscope reads what machine-learning compilers print: ``irscope.load`` and ``irscope.compile``."""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from irscope.version import __version__

if TYPE_CHECKING:
    from irscope.api import compile, load
    from irscope.source import UserError
    from irscope.source.budget import BudgetExceeded, limits

__all__ = ["BudgetExceeded", "UserError", "__version__", "compile", "limits", "load"]

# Imported when first used: `irscope --version` must not wait for the graph model.
_LAZY = {"load": "irscope.api", "compile": "irscope.api", "UserError": "irscope.source", "limits": "irscope.source.budget",
         "BudgetExceeded": "irscope.source.budget"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'irscope' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
