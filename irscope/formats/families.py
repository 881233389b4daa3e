"""Imports the families of operators that a format declares: the modules of a package."""
from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

_begun: set[str] = set()


def import_families(package: str, *before: str) -> None:
    """Import the modules ``before`` and then all modules of a package, once.

    A family may call this while it is imported: the package counts as imported from the first call on.
    """
    if package in _begun:
        return
    _begun.add(package)
    for module in before:
        import_module(module)
    for family in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{family.name}")
