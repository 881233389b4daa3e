"""Sets of operators of any dialect: ``node.op in CASTS``.

    CASTS = hlo("convert") | torchscript("aten::to aten::type_as") | relay("cast")

A set does not import the declarations of its members, so reading HLO does not load torch's operators; ``tests/ops/test_sets.py``
looks up every name. For HLO alone, ``node.op is hlo.dot`` of :mod:`irscope.ops.hlo` is simpler.
"""
from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakSet

from irscope.graph import Op

ALL: WeakSet[OpSet] = WeakSet()
"""Every set, for the test that looks up the names."""


class OpSet:
    """Operators by dialect and name."""

    __slots__ = ("__weakref__", "_keys")

    def __init__(self, keys: frozenset[tuple[str, str]]) -> None:
        self._keys = keys
        ALL.add(self)

    def __contains__(self, op: Op) -> bool:
        return (op.dialect, op.name) in self._keys

    def __or__(self, other: OpSet) -> OpSet:
        return OpSet(self._keys | other._keys)

    def __sub__(self, other: OpSet) -> OpSet:
        return OpSet(self._keys - other._keys)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Dialect and name of each operator, in order."""
        return iter(sorted(self._keys))

    def __len__(self) -> int:
        return len(self._keys)


def hlo(names: str) -> OpSet:
    """Primitives, by names separated by spaces."""
    return OpSet(frozenset(("hlo", name) for name in names.split()))


def torchscript(names: str) -> OpSet:
    """Operators of TorchScript. A name without a namespace is one of ``aten::``."""
    return OpSet(frozenset(("torchscript", name if "::" in name else f"aten::{name}") for name in names.split()))


def relay(names: str) -> OpSet:
    """Operators of Relay."""
    return OpSet(frozenset(("relay", name) for name in names.split()))
