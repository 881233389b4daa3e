"""The view of a module for rules: its graphs, users, operators and scopes, and its primitives. Nothing here needs a fusion policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import attrgetter

from irscope.analysis.constant import known_early
from irscope.analysis.scopes import scope_of
from irscope.analysis.stated import stated
from irscope.analysis.survey import Survey
from irscope.analysis.values import uniform_axes, written
from irscope.expand import expand
from irscope.expand.expand import inline
from irscope.expand.torchscript import Given, TypesSeen, types_of_run
from irscope.expand.torchscript.constants import elided_constants
from irscope.fusion.canonicalise import is_kept_call
from irscope.graph import Graph, Module, Node, Op, TensorType, Type, Typing, callees_first, pure
from irscope.graph.numbering import Numbering
from irscope.ops import hlo
from irscope.ops.module_attributes import HloModule
from irscope.ops.sets import OpSet
from irscope.source import UserError

TRANSFORMS = frozenset(("main", "jvp()", "transpose(jvp())", "vmap()", "pjit", "closed_call", "while", "body", "cond", "checkpoint"))
"""Components of a scope that JAX's own transformations leave: they name no operator of the user's program."""
CALLERS = hlo.named("while scan conditional call fusion async-start custom-call")
"""Operators whose bodies work on whole arrays."""


class ModuleView:
    """A module and the facts about it that rules share; each is computed once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.survey = Survey(module)
        self._groups: dict[Graph, dict[Op, list[Node]]] = {}
        self._uniform: dict[Graph, list[frozenset[int]]] = {}
        self._numbering = Numbering(beside=stated(module))
        self._values: dict[Graph, list[int]] = {}
        self._impure: dict[Graph, bool] = {}
        self._early: dict[Graph, list[bool]] = {}

    # ---------------------------------------------------------------- graphs

    @cached_property
    def graphs(self) -> list[Graph]:
        """Every graph of the module that runs, callees first, without uncalled computations that XLA's passes leave in a text."""
        return callees_first(self.module, self.module.main() if self.module.dialect.primitive else None)

    @cached_property
    def inlined(self) -> set[Graph]:
        """Bodies of fusions, whose contents the compiler has already decided."""
        return {body for graph in self.graphs for node in graph.nodes if node.op is hlo.fusion for body in node.bodies}

    @cached_property
    def scalar_bodies(self) -> set[Graph]:
        """Bodies that run once per element (reducers, comparators)."""
        return {body for graph in self.graphs for node in graph.nodes for body in node.bodies if node.op not in CALLERS}

    @cached_property
    def array_graphs(self) -> list[Graph]:
        """The graphs that work on whole arrays: all but reducers and comparators."""
        return [g for g in self.graphs if g not in self.scalar_bodies]

    @cached_property
    def optimised(self) -> bool:
        """Whether the text is optimised: the compiler keeps what it did not remove."""
        return HloModule.of(self.module).is_scheduled or bool(self.inlined)

    # ---------------------------------------------------------------- nodes

    def users(self, node: Node, graph: Graph) -> list[Node]:
        """The nodes of ``graph`` that read ``node``."""
        return self.survey.users(graph)[node.index]

    def only_user(self, node: Node, graph: Graph) -> Node | None:
        """The only user of ``node``; None if there are several, or none."""
        users = self.users(node, graph)
        return users[0] if len(users) == 1 else None

    def tensors(self, graph: Graph) -> Iterator[tuple[Node, TensorType]]:
        """The nodes of a graph whose result is one tensor, with their type."""
        for node in graph.nodes:
            if isinstance(node.type, TensorType):
                yield node, node.type

    @cached_property
    def _by_op(self) -> dict[Op, list[tuple[Node, Graph]]]:
        found: dict[Op, list[tuple[Node, Graph]]] = {}
        for graph in self.array_graphs:
            for node in graph.nodes:
                found.setdefault(node.op, []).append((node, graph))
        return found

    def primitives(self, *ops: Op) -> Iterator[tuple[Node, Graph]]:
        """The nodes of these operators, with their graph, in the graphs that work on whole arrays."""
        for op in ops:
            yield from self._by_op.get(op, ())

    def with_op(self, ops: frozenset[Op] | OpSet, graph: Graph) -> list[Node]:
        """The nodes of a graph whose operator is one of these, in the order of the text; each operator of the graph is looked up once."""
        if graph not in self._groups:
            groups = self._groups[graph] = defaultdict(list)
            for node in graph.nodes:
                groups[node.op].append(node)
        return sorted((node for op, nodes in self._groups[graph].items() if op in ops for node in nodes), key=attrgetter("index"))

    def uniform(self, graph: Graph) -> list[frozenset[int]]:
        """For each node, by index, the axes along which broadcasts alone make all elements equal."""
        if graph not in self._uniform:
            self._uniform[graph] = uniform_axes(graph)
        return self._uniform[graph]

    def values(self, graph: Graph) -> list[int]:
        """For each node, by index, a number that equal values share; parameters and nodes with effects share it with none."""
        if graph not in self._values:
            shareable = pure(graph, self._impure)
            self._values[graph] = self._numbering.values(graph, lambda node: node.op is hlo.parameter or not shareable[node.index])
        return self._values[graph]

    def known_early(self, graph: Graph) -> list[bool]:
        """For each node, by index, whether its value depends on constants alone."""
        if graph not in self._early:
            self._early[graph] = known_early(graph, self._impure)
        return self._early[graph]

    def operator_scope(self, node: Node) -> tuple[str, ...]:
        """The scope of a node in the user's program, without parts that program transformations add; empty if the text omits it."""
        return tuple(part for part in scope_of(self.module, node) if part not in TRANSFORMS and not part.startswith(("jit(", "pjit(")))

    # ---------------------------------------------------------------- the nodes of a plan, found in the text

    @cached_property
    def graph_of(self) -> dict[Node, Graph]:
        """The graph of each node of the module."""
        return {node: graph for graph in self.graphs for node in graph.nodes}

    @cached_property
    def _anywhere(self) -> dict[str, Node]:
        return {node.name: node for graph in self.graphs for node in graph.nodes}

    @cached_property
    def _named(self) -> dict[tuple[str, str], Node]:
        return {(graph.name, node.name): node for graph in self.graphs for node in graph.nodes}

    def find(self, graph: str, name: str) -> Node | None:
        """The node of a name in the graph of a name, else in any graph; None where the text has none."""
        return self._named.get((graph, name)) or self._anywhere.get(name)

    def between(self, producer: Node, consumer: Node) -> tuple[Node, Node] | None:
        """Two operators of the text as primitives of this module: those that an edge joins, else the last of each; None without such."""
        ends = self._last.get(producer), self._last.get(consumer)
        return self._joined.get((producer, consumer)) or ((ends[0], ends[1]) if ends[0] is not None and ends[1] is not None else None)

    @cached_property
    def _joined(self) -> dict[tuple[Node, Node], tuple[Node, Node]]:
        return {(written(operand), written(node)): (operand, node) for graph in self.graphs for node in graph.nodes
                for operand in node.operands if written(operand) is not written(node)}

    @cached_property
    def _last(self) -> dict[Node, Node]:
        return {written(node): node for graph in self.graphs for node in graph.nodes}

    def in_text(self, node: Node, graph: Graph) -> Node | None:
        """The node of the text that has the name of a node of a plan; None where there is none."""
        return node if node in self.graph_of else self.find(graph.name, node.name)

    def original(self, node: Node, graph: Graph) -> Node | None:
        """The node of this module that a node of a plan stands for, in the graph of that name; None where there is none."""
        for one in (node, *node.origin[:1]):
            if one in self.graph_of:
                return one
        return self._named.get((graph.name, node.name))

    # ---------------------------------------------------------------- primitives

    @cached_property
    def primitive(self) -> Module | None:
        """The module in primitives; None if it cannot be expanded: dynamic shapes, unknown operators.

        HLO stays as written, except for calls, which JAX emits for each function under ``jit`` and compilers inline first.
        """
        written = self.module.dialect.primitive
        calls = written and not self.optimised and any(
            node.op is hlo.call and not is_kept_call(self.module, node) for graph in self.graphs for node in graph.nodes)
        if self.module.is_primitive and not calls:
            return self.module
        try:
            expanded = inline(self.module) if written else expand(self.module, True, self._seen.later if self._seen else None)
            expanded.main().result()
        except (UserError, ValueError):
            return None
        return expanded

    @cached_property
    def _seen(self) -> TypesSeen | None:
        """What the run that makes the primitives tells of types; None where it makes up tensors that the text elides."""
        runs = self.module.dialect.typing is Typing.EXECUTED and not self.module.is_primitive
        return TypesSeen() if runs and not elided_constants(self.module) else None

    @cached_property
    def types_of_run(self) -> Mapping[Node, Type]:
        """The types that the operators of a TorchScript program give, where the text says something else or nothing.

        Raises UserError or ValueError where operators do not run.
        """
        types = self._seen.types() if self._seen is not None and self.primitive is not None else None
        return types if types is not None else types_of_run(self.module, Given())
