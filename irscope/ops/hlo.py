"""The operators of HLO as objects: ``node.op is hlo.dot``, ``node.op in hlo.named("add subtract")``.

``hlo.reduce_window`` is the declaration of ``reduce-window``; names that are words of Python end in an underscore: ``hlo.while_``.
"""
from __future__ import annotations

from irscope.graph import Op
from irscope.ops.registry import get, lookup


def __getattr__(name: str) -> Op:
    found = lookup(name.removesuffix("_").replace("_", "-"))
    if found is None:
        raise AttributeError(f"HLO has no operator {name!r}")
    globals()[name] = found
    return found


def named(names: str) -> frozenset[Op]:
    """The operators of these names, which are divided by blanks. Raises KeyError for one that is not declared."""
    return frozenset([get(name) for name in names.split()])  # `map` is an operator here once somebody has asked for it
