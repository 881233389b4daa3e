"""numpy, imported when the first reference runs: readers and counters of dumps never pay for it."""
from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module and imports it at the first attribute that is asked of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
