"""Results of analyses, computed on demand and cached until a pass changes the module."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from irscope.analysis.levels import levels
from irscope.analysis.types import check_types
from irscope.graph import Module, callees_first
from irscope.source import UserError, did_you_mean

KNOWN: dict[str, Callable[[Module], object]] = {
    "types": check_types,
    "users": lambda module: {graph: graph.users() for graph in callees_first(module)},
    "levels": lambda module: {graph: levels(graph) for graph in callees_first(module)},
}
"""``types``: what does not fit (findings); ``users``: the users of each node, by graph; ``levels``: what depends on what, by graph."""


class Analyses:
    """The cached analyses of the current module in a pass pipeline.

    >>> analyses = Analyses(module)                                                      # doctest: +SKIP
    >>> analyses.of("users")[module.main()]                                              # doctest: +SKIP
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._results: dict[str, object] = {}

    def of(self, name: str) -> Any:
        """The result of an analysis for the current module. Raises UserError for an unknown name."""
        if name not in self._results:
            if name not in KNOWN:
                raise UserError(f"there is no analysis {name!r}", did_you_mean(name, KNOWN) or f"they are {', '.join(KNOWN)}")
            self._results[name] = KNOWN[name](self.module)
        return self._results[name]

    def moved_to(self, module: Module, preserved: Iterable[str]) -> None:
        """Record the module that a pass returned: a new one keeps only the analyses that the pass preserves, and never the types."""
        if module is not self.module:
            self.module = module
            self._results = {name: self._results[name] for name in preserved if name in self._results and name != "types"}
