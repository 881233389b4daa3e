"""The base class of passes, and helpers that rewrite every graph of a module."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from irscope.analysis.soundness import Use
from irscope.formats.relay.dialect import RELAY
from irscope.graph import Dialect, Graph, Module, Node, callees_first, rewrite, see_through
from irscope.graph.collector import collector_paused
from irscope.graph.rewrite import Replacements, Rule, rejoin
from irscope.passes.analyses import Analyses


class Mutator(Protocol):
    """Rebuilds a module, as a GraphMutator does; ``declined`` then lists what it left unchanged, and why."""

    declined: list[str]

    def run(self, module: Module) -> Module: ...


class Pass:
    """A rewrite that preserves a module's meaning. A subclass has a name, a docstring that describes the rewrite, and ``run``.

    ``run`` returns a new module, or the same one if nothing changed; it never modifies its argument. A pass over the operators of certain
    dialects lists them and defines ``rewrite`` instead: modules in other dialects stay unchanged.
    """

    name: ClassVar[str] = ""
    requires: ClassVar[tuple[str, ...]] = ()
    """Passes whose result this one relies on, and analyses (``passes/analyses.py``): the manager runs them first, unless what they gave
    still holds."""
    preserves: ClassVar[tuple[str, ...]] = ("infer-types",)
    """Passes and analyses whose result still holds afterwards. Types do, unless said otherwise: a builder infers them for what it adds."""
    opt_level: ClassVar[int] = 0
    """The level from which ``--opt-level`` includes the pass, as TVM counts them."""
    dialects: ClassVar[tuple[Dialect, ...]] = ()
    """The dialects whose operators ``rewrite`` knows; none: all."""
    rtol: float = 1e-4
    """How far numbers may differ afterwards, relative to the largest of a result: what ``opt --verify`` allows."""
    needs: ClassVar[Use] = Use.PASSES
    """How sound a text must be (:mod:`irscope.analysis.soundness`)."""
    declined: Sequence[str] = ()
    """The candidates that the last run left unchanged, and why: sentences for the user."""
    analyses: Analyses | None = None
    """What the manager knows of the module."""

    def result_of(self, analysis: str, module: Module) -> object:
        """The result of an analysis, such as ``users``; computed once, however many passes request it before the module changes."""
        if self.analyses is None or self.analyses.module is not module:
            self.analyses = Analyses(module)
        return self.analyses.of(analysis)

    def run(self, module: Module) -> Module:
        """The module after the pass."""
        return self.rewrite(module) if not self.dialects or module.dialect in self.dialects else module

    def mutated(self, mutator: Mutator, module: Module) -> Module:
        """The module as a mutator rebuilds it, with a remark for everything that it declined."""
        made = mutator.run(module)
        self.declined = mutator.declined
        return made

    def rewrite(self, module: Module) -> Module:
        """The module, which is of one of ``dialects``, after the pass."""
        raise AssertionError(f"{type(self).__name__} is no pass: it has no run")


class RelayPass(Pass):
    """A pass over Relay's operators that needs their types."""

    dialects = (RELAY,)
    requires = ("infer-types",)


def rewritten(module: Module, rule: Rule) -> Module:
    """Every graph of a module rewritten by one rule, callees first; origins refer to the graph as written."""
    return per_graph(module, lambda graph, became: see_through(rewrite(graph, rule, became), graph))


def per_graph(module: Module, change: Callable[[Graph, dict[Graph, Graph]], Graph]) -> Module:
    """Every graph of a module changed, callees first; ``change`` gets the graph and the replacements of its callees."""
    made = module.derived()
    became = Replacements()
    with collector_paused():
        for graph in callees_first(module):
            became[graph] = change(graph, became)
            if graph.notes.get("lets") and became[graph] is not graph:
                became[graph].notes["lets"] = _lets(graph, became[graph])
        rejoin(became)
    made.graphs = {name: became[graph] for name, graph in module.graphs.items()}
    return made


def enter_bodies(module: Module) -> Module:
    """Add called graphs to the module if it does not contain them yet."""
    known = set(module.graphs.values())
    for graph in callees_first(module):
        if graph not in known:
            graph.name = module.fresh_name(graph.name)
            module.graphs[graph.name] = graph
    return module


def _lets(before: Graph, after: Graph) -> list[Node]:
    """The nodes of the rewritten graph that correspond to ``let`` bindings of a Relay text."""
    kept = {id(n) for node in before.notes["lets"] for n in (node, *node.origin)}
    return [node for node in after.nodes if any(id(o) in kept for o in node.origin)]
