"""The operators of HLO as objects: ``node.op is hlo.dot``, ``node.op in hlo.named("add subtract")``.

``hlo.reduce_window`` is the declaration of ``reduce-window``; names that are Python keywords end in an underscore: ``hlo.while_``.
Operators become attributes of this module on first use, so its own names must not be those of operators (``map``, ``get``).
"""
from __future__ import annotations

from irscope.graph import Op
from irscope.ops.registry import get as _get
from irscope.ops.registry import lookup as _lookup


def __getattr__(name: str) -> Op:
    found = _lookup(name.removesuffix("_").replace("_", "-"))
    if found is None:
        raise AttributeError(f"HLO has no operator {name!r}")
    globals()[name] = found
    return found


def named(names: str) -> frozenset[Op]:
    """The operators of these names, separated by spaces. Raises KeyError for one that is not declared."""
    return frozenset([_get(name) for name in names.split()])
