"""Well-known composites, recognised by their structure; names, order and spelling do not count. One file a family."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.lint.patterns import epilogues, gates, norms, rotary, softmax
from irscope.lint.patterns.composite import Composite, Odd
from irscope.lint.view import ModuleView

FAMILIES = (softmax, norms, gates, rotary, epilogues)

__all__ = ["Composite", "Odd", "composites"]


def composites(view: ModuleView) -> Iterator[Composite]:
    """Every composite of a module, canonical or with an odd node, family by family."""
    for family in FAMILIES:
        yield from family.found(view)
