"""Libraries that are slow to import, imported when something of them is first used: readers and counters of dumps never pay for them."""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Array", "ml_dtypes", "np", "resource", "zipfile"]


class LazyModule:
    """Stands for a module and imports it at the first attribute that is asked of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import resource
    import zipfile

    import ml_dtypes
    import numpy as np

    Array = np.ndarray[Any, Any]
else:
    ml_dtypes = LazyModule("ml_dtypes")
    np = LazyModule("numpy")
    resource = LazyModule("resource")
    zipfile = LazyModule("zipfile")
    Array = Any
