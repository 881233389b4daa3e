"""The edits of a fix, node by node, so that they can be tried on a copy of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from irscope.graph import NO_ATTRS, Builder, Graph, Module, Node, Op, TensorType, Type, bodies_of, callees_first, kept, rewrite
from irscope.graph.rewrite import copy_node
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attrs import Literal


class Site:
    """The copy under construction in which an edit builds: ``new`` finds the replacement of a node in it, ``op`` appends to it."""

    def __init__(self, builder: Builder, became: dict[Node, Node], absent: Callable[[Node], Node]) -> None:
        self.builder = builder
        self._became = became
        self._absent = absent

    def new(self, node: Node) -> Node:
        """The replacement of a node in the copy; a node that the copy omits becomes a parameter."""
        found = self._became.get(node)
        if found is None:
            found = self._became[node] = self._absent(node)
        return found

    def given(self, node: Node) -> Node:
        """The value of a node of the graph as a parameter of the copy: a weight, or an earlier result."""
        return self._absent(node)

    def number(self, value: float, type: TensorType) -> Node:
        """A splat of a number in a shape; an integer beyond its type wraps, as sums and products do."""
        scalar = TensorType(type.dtype, ())
        array = np.asarray(int(value) % (1 << 64), np.uint64) if type.dtype.is_integer else np.asarray(value)
        literal = Literal.of(array.astype(type.dtype.numpy()), scalar)
        one = self.op(hlo.constant, type=scalar, attrs={"literal": literal})
        return one if not type.shape else self.op(hlo.broadcast, one, type=type, attrs={"dimensions": ()})

    def op(
        self, op: Op, *operands: Node, type: Type | None = None, attrs: Mapping[str, object] = NO_ATTRS, bodies: Sequence[Graph] = ()
    ) -> Node:
        """Append an operation over nodes of the copy; without ``type`` it is inferred."""
        return self.builder.add(op, operands, attrs, type, bodies)

    def copy(self, node: Node, *operands: Node, type: Type | None = None, attrs: Mapping[str, object] | None = None) -> Node:
        """Append ``node`` over other operands; its type and attributes stay unless they are given."""
        made = self.builder.add(node.op, operands, node.attrs if attrs is None else attrs, type or node.type, node.bodies)
        made.loc = node.loc
        return made


Make = Callable[[Site], Node]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacements for some nodes. ``reads`` are nodes outside the region that the replacements use: the sources of moves.

    ``apart``: prevents CSE of equal nodes that the edit builds, as a barrier does in the program.
    """

    changes: Mapping[Node, Make]
    reads: tuple[Node, ...] = field(default=())
    apart: bool = False

    @staticmethod
    def use(node: Node, instead: Node) -> Edit:
        """Replaces ``node`` by ``instead``, which precedes it."""
        return Edit({node: lambda site: site.new(instead)}, (instead,))

    @property
    def nodes(self) -> list[Node]:
        """The nodes that the edit is about."""
        return list(dict.fromkeys((*self.changes, *self.reads)))


def together(edits: Sequence[Edit]) -> Edit:
    """All edits combined; if two change the same node, the first applies."""
    changes: dict[Node, Make] = {}
    for edit in edits:
        for node, make in edit.changes.items():
            changes.setdefault(node, make)
    return Edit(changes, tuple(dict.fromkeys(node for edit in edits for node in edit.reads)), any(edit.apart for edit in edits))


def edited(module: Module, edits: Mapping[Graph, Edit | None]) -> Module:
    """A copy of a module, as far as its entry reaches, with the edits of its graphs applied.

    Graphs that neither change nor call a changed graph are shared with the module. In a rebuilt graph the parameters come first, in the
    order of their numbers: a text may define them in any order.
    """
    became: dict[Graph, Graph] = {}
    reached = callees_first(module, module.main())
    for graph in reached:
        if graph in edits or any(body in became for body in bodies_of(graph)):
            became[graph] = built([*graph.params, *graph.nodes], [graph.result()], edits.get(graph), graph.name, became)
    return with_graphs(module, [became.get(graph, graph) for graph in reached])


def with_graphs(module: Module, graphs: Sequence[Graph]) -> Module:
    """A module that consists of ``graphs``, callees first; the last one is its entry."""
    made = module.derived()
    made.graphs = {graph.name: graph for graph in graphs}
    made.entry = graphs[-1].name
    return made


def built(
    nodes: Sequence[Node], results: Sequence[Node], edit: Edit | None, name: str, bodies: Mapping[Graph, Graph] | None = None
) -> Graph:
    """A separate graph of ``nodes`` (in definition order) with an edit applied, which returns ``results``.

    Operands that are not among the nodes become parameters, in the order of their first use. ``bodies`` maps old callees to new ones.
    """
    made = Graph(name)
    builder = Builder(made)
    became: dict[Node, Node] = {}
    chosen = dict.fromkeys(nodes)

    def absent(node: Node) -> Node:
        if node not in chosen and node.op is hlo.constant:
            return copy_node(builder, node, ())
        at, builder.at = builder.at, (node,)
        param = builder.param(hlo.parameter, node.type, node.name)
        builder.at = at  # what an edit builds after it has requested a parameter stands for the node that it replaces
        return param

    site = Site(builder, became, absent)
    changes = edit.changes if edit is not None else {}
    for node in chosen:
        if node in became:
            continue
        if node.op is hlo.parameter:
            became[node] = absent(node)
            continue
        make = changes.get(node)
        if make is None:
            operands = [site.new(operand) for operand in node.operands]
            became[node] = copy_node(builder, node, operands, [bodies.get(b, b) for b in node.bodies] if bodies else None)
        else:
            builder.at = (node,)
            became[node] = make(site)
    given = [site.new(node) for node in results]
    builder.at = ()  # the tuple of the results stands for no node
    made.root = given[0] if len(given) == 1 else site.op(hlo.tuple, *given)
    return made if all(kept(made)) else rewrite(made, lambda builder, node, operands: None)
