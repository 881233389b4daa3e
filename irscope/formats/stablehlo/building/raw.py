"""Attributes that stay text: shardings and frontend attributes, under the names that HLO has for them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.building.text import text_of

RawAttributes: TypeAlias = dict[int, Mapping[str, str]]
"""By the offset of a node."""
KEPT = {"mhlo.sharding": "sharding", "sdy.sharding": "sharding", "mhlo.frontend_attributes": "frontend_attributes",
        "mhlo.layout_mode": "layout_mode", "tf.aliasing_output": "aliasing_output", "jax.buffer_donor": "buffer_donor"}


def raw_of(attributes: Mapping[str, Attribute]) -> dict[str, str]:
    """The attributes that are kept as text."""
    if KEPT.keys().isdisjoint(attributes):
        return {}
    found = {}
    for name, kept in KEPT.items():
        value = attributes.get(name)
        if value is not None:
            found[kept] = value if isinstance(value, str) else text_of(value)
    return found
