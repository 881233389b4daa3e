"""Every operator that irscope knows, by dialect and name. A family's file declares operators; all other code looks them up."""
from __future__ import annotations

from importlib import import_module

from irscope.graph import Op

FAMILIES = ("leaf", "elementwise", "choice", "conversion", "movement", "cutting", "bitcasting", "dynamic", "reduction", "window",
            "contraction", "ragged", "convolution", "dynamic_slices", "indexing", "sorting", "control", "asynchronous", "collective",
            "exchange", "fft", "linalg", "random", "scan", "normalization", "factorizations", "hessenberg", "spectra", "schur",
            "eigenvectors", "custom_calls")
"""Modules of this package that declare primitives; imported at the first look-up."""

_ops: dict[tuple[str, str], Op] = {}
_loaded = False


def declare(op: Op) -> Op:
    """Register an operator. Raises ValueError when its name is taken: one operator, one declaration."""
    key = (op.dialect, op.name)
    if key in _ops:
        raise ValueError(f"{op.dialect} operator {op.name} is declared twice")
    _ops[key] = op
    return op


def lookup(name: str, dialect: str = "hlo") -> Op | None:
    """The declaration of an operator, or None."""
    load()
    return _ops.get((dialect, name))


def lookup_declared(name: str, dialect: str) -> Op | None:
    """The declaration of an operator if its family is already imported; for use during the import of families."""
    return _ops.get((dialect, name))


def get(name: str, dialect: str = "hlo") -> Op:
    """The declaration of an operator that must exist; KeyError otherwise."""
    load()
    return _ops[dialect, name]


def all_ops(dialect: str | None = None) -> list[Op]:
    """Every declaration, in order of declaration."""
    load()
    return [op for op in _ops.values() if dialect is None or op.dialect == dialect]


def load() -> None:
    """Import the families (once)."""
    global _loaded
    if not _loaded:
        _loaded = True
        for family in FAMILIES:
            import_module(f"irscope.ops.{family}")
