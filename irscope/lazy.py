"""Libraries that are slow to import, imported when something of them is first used: readers and counters of dumps never pay for them."""
from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["Array", "LazyModule", "lzma", "ml_dtypes", "modules_of", "np", "resource", "zipfile"]


def modules_of(package: str) -> list[ModuleType]:
    """The modules of a package, imported, by name: a rule, a gate or a pass is a file in a folder and is listed nowhere."""
    return [import_module(f"{package}.{info.name}") for info in iter_modules(import_module(package).__path__)]


class LazyModule:
    """Stands for a module and imports it at the first attribute that is asked of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import lzma
    import resource
    import zipfile

    import ml_dtypes
    import numpy as np

    Array = np.ndarray[Any, Any]
else:
    lzma = LazyModule("lzma")
    ml_dtypes = LazyModule("ml_dtypes")
    np = LazyModule("numpy")
    resource = LazyModule("resource")
    zipfile = LazyModule("zipfile")
    Array = Any
