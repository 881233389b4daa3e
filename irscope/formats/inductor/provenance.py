"""``inductor_provenance_tracking_node_mappings.json``: which nodes of the FX graph each kernel computes."""
from __future__ import annotations

from dataclasses import dataclass, field

from irscope.source.data_text import json_value


@dataclass(frozen=True, slots=True)
class Provenance:
    """``nodes`` by handle (``NAME:3``) are names of the graph after the post-grad passes, ``before`` maps those to names before them."""

    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    before: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_provenance(text: str) -> Provenance:
    """The mappings in a file; empty where it is damaged."""
    try:
        data = json_value(text)
    except ValueError:
        return Provenance()
    return Provenance(_mapping(data, "cppCodeToPost"), _mapping(data, "postToPre"))


def _mapping(data: object, key: str) -> dict[str, tuple[str, ...]]:
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: tuple(map(str, names)) for name, names in found.items() if isinstance(names, list)}
