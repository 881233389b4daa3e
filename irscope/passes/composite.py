"""Outlines the nodes that a pattern matches into a separate function that is called in their place, in the form of each dialect.

Relay has ``fn (..., Composite="...") {...}``, HLO a computation that is called, TorchScript a ``prim::FusionGroup``.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from irscope.formats.hlo.dialect import HLO
from irscope.formats.relay import structure
from irscope.formats.relay.dialect import RELAY
from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.graph import Builder, FunctionType, Graph, Module, Node, unknown_op
from irscope.graph.rewrite import copy_node
from irscope.ops import hlo
from irscope.passes.base import enter_bodies
from irscope.passes.pattern import DataflowPattern, Match
from irscope.passes.torch_effects import may_write, remove_unused_values, writes_before
from irscope.passes.visitor import GraphMutator

MARKS = ("Composite", "Primitive", "Compiler")
"""Attributes of functions that are already composites or kernels."""
GROUP = unknown_op("prim::FusionGroup", "torchscript")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to outline: a pattern, the name of the composite, and the attributes that mark the function in Relay.

    ``copied`` decides which outside values are copied into the function instead of being passed as arguments.
    """

    pattern: DataflowPattern
    name: Callable[[Match], str]
    marks: Callable[[Match], Mapping[str, object]]
    copied: Callable[[Match, Node], bool] = lambda match, node: False
    least: int = 1
    """A match of fewer nodes is left alone."""


def put_together(module: Module, recipes: Sequence[Recipe]) -> tuple[Module, list[str]]:
    """The module with the matches of the recipes outlined, in the order of the recipes, and remarks on near misses."""
    mutator = _PuttingTogether(recipes)
    made = mutator.run(module)
    return enter_bodies(made) if mutator.found_any else module, mutator.declined


class _PuttingTogether(GraphMutator):
    """``whole`` maps the last node of each match to it. Longer and later matches come first; a node belongs to one match."""

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self.recipes = recipes
        self.found_any = False
        self.kernels: set[Graph] = set()

    def run(self, module: Module) -> Module:
        fusions = [node for graph in module.graphs.values() for node in graph.nodes if node.op is hlo.fusion]
        self.kernels = {body for fusion in fusions for body in fusion.bodies}
        return super().run(module)

    def _mutated(self, graph: Graph, became: dict[Graph, Graph]) -> Graph:
        made = super()._mutated(graph, became)
        if self.dialect.writes_in_place and self.whole:
            remove_unused_values(made)
        return made

    def begin(self, graph: Graph) -> None:
        self.whole: dict[Node, tuple[Recipe, Match]] = {}
        self.inside: set[Node] = set()
        marked = graph in self.kernels or any(mark in graph.notes.get("attrs", {}) for mark in MARKS)
        writes = writes_before(graph.nodes) if self.dialect.writes_in_place else []
        for recipe in () if marked else self.recipes:
            for node in reversed(graph.nodes):
                found = recipe.pattern.match(node) if node not in self.inside else None
                if found is None or len(found.inside) < recipe.least or not self.inside.isdisjoint(found.inside):
                    continue
                why = self._kept_apart(graph, found, writes)
                if why:
                    self.declined.append(why)
                    continue
                self.whole[node] = recipe, found
                self.inside.update(found.inside)
        self.found_any = self.found_any or bool(self.whole)

    def _kept_apart(self, graph: Graph, found: Match, writes: list[int]) -> str:
        """Why a match may not be outlined; empty if it may."""
        escape = found.escapes(graph, self.users)
        if escape is not None:
            node, who = escape
            return f"left %{found.root.name} apart from %{node.name}: {who} needs %{node.name} too"
        first = found.inside[-1]
        if writes and writes[found.root.index] - writes[first.index] > sum(may_write(n) for n in found.inside[:-1]):
            return f"left %{found.root.name} apart from %{first.name}: what stands between them may write what they read"
        return ""

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if node not in self.inside:
            return None
        if node not in self.whole:
            # It has no user outside: any node may be put here.
            return operands[0]
        recipe, found = self.whole[node]
        outer, copied = _inputs(found, recipe)
        name = recipe.name(found)
        body = Graph(name, loc=node.loc)
        builder = Builder(body)
        inner = {value: builder.param(hlo.parameter, value.type, f"p{i}") for i, value in enumerate(outer)}
        for param in body.params:
            param.synthetic = not self.dialect.primitive
        for each in (*copied, *reversed(found.inside)):
            inner[each] = copy_node(builder, each, [inner[o] for o in each.operands], [self.became.get(b, b) for b in each.bodies])
        body.root = inner[node]
        dialect = HLO if self.dialect.primitive else self.dialect
        return CALLS[dialect](self, node, body, [self.new(value) for value in outer], recipe.marks(found))


def _computation(mutator: GraphMutator, node: Node, body: Graph, values: list[Node], marks: Mapping[str, object]) -> Node:
    return mutator.builder.add(hlo.call, values, {}, node.type, [body], node.name)


def _fusion_group(mutator: GraphMutator, node: Node, body: Graph, values: list[Node], marks: Mapping[str, object]) -> Node:
    return mutator.builder.add(GROUP, values, {"name": body.name}, node.type, [body], node.name)


def _function(mutator: GraphMutator, node: Node, body: Graph, values: list[Node], marks: Mapping[str, object]) -> Node:
    type, name = FunctionType(tuple(param.type for param in body.params), node.type), body.name
    body.name = f"{mutator.graph.name}.{name}"
    body.notes |= {"own": len(values), "attrs": dict(marks)}
    function = mutator.builder.add(structure.FUNCTION, (), dict(marks), type, [body], name)
    return mutator.builder.add(structure.CALL, [function, *values], {}, node.type, name=node.name)


CALLS = {HLO: _computation, TORCHSCRIPT: _fusion_group, RELAY: _function}
"""How each dialect writes a call of a function that stands for one node; all dialects of primitives write it as HLO does."""


def _inputs(found: Match, recipe: Recipe) -> tuple[list[Node], list[Node]]:
    """The values passed as arguments, in order of their use, and those copied into the function, operands before users."""
    seen, outer, copied = set(found.inside), [], []
    stack = [operand for node in found.inside for operand in reversed(node.operands)]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if recipe.copied(found, value):
            copied.append(value)
            stack.extend(reversed(value.operands))
        else:
            outer.append(value)
    return outer, sorted(copied, key=lambda node: node.index)
