"""Constant folding: replaces values that depend only on constants by constants."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.constant import operations
from irscope.analysis.reference import evaluate, flatten
from irscope.expand import expand
from irscope.formats.hlo.dialect import HLO
from irscope.formats.relay.dialect import RELAY
from irscope.graph import Builder, Effect, Graph, Module, Node, TensorType, TupleType, Type, callees_first, rewrite, see_through
from irscope.graph.rewrite import copy_node
from irscope.lazy import Array, np
from irscope.ops import hlo, sets
from irscope.ops.attributes import Constant, GetTupleElement
from irscope.ops.attrs import Literal
from irscope.ops.faults import TypeFault
from irscope.ops.sets import relay
from irscope.passes.algebra.simplifier import dims_of, of
from irscope.passes.base import Pass, per_graph
from irscope.passes.fold_constants_branches import with_branches_taken
from irscope.source import UserError

Values = dict[Node, Array]

GROWING = sets.hlo("broadcast iota") | relay("broadcast_to tile repeat full zeros ones arange full_like zeros_like ones_like")
"""Operators whose result says less than its size: it is as cheap to make again as to read."""

DEVICES = sets.hlo("all-reduce all-gather all-to-all reduce-scatter collective-permute collective-broadcast ragged-all-to-all "
                   "all-reduce-start all-gather-start collective-permute-start async-start")
"""Operators whose results depend on the other devices of a program, of which a run has one."""

STATED = sets.hlo("opt-barrier domain rng-bit-generator")
"""What the user put in the way of a compiler, and numbers of whose generator the backend decides."""

KEPT = GROWING | DEVICES | STATED | sets.hlo("parameter while conditional custom-call call fusion") | relay("if fn global match call")
SIZE = relay("ndarray_size")
SHAPES = SIZE | relay("shape_of vm.shape_of")
"""Relay's questions about a type: known whatever the value is."""

QUANTISED = relay(
    "qnn.abs qnn.add qnn.avg_pool2d qnn.batch_matmul qnn.concatenate qnn.contrib_dense_pack qnn.conv2d qnn.conv2d_transpose qnn.dense "
    "qnn.dequantize qnn.erf qnn.exp qnn.hardswish qnn.leaky_relu qnn.log qnn.mul qnn.quantize qnn.requantize qnn.rsqrt qnn.sigmoid "
    "qnn.simulated_dequantize qnn.simulated_quantize qnn.softmax qnn.sqrt qnn.subtract qnn.tanh"
)

MOST_OPERATIONS = 1 << 28
"""The most operations of one value that is folded: a second. A small result may have large windows, or a reducer that loops forever."""

MOST_OF_MODULE = 1 << 28
"""The most operations of all values of a module that are folded: the values after them stay."""

ROUNDS = 16
"""A condition that only folding makes known, behind another such condition, and so on: after so many the rest stays."""


class FoldConstants(Pass):
    """Evaluate nodes that depend only on constants, and replace conditionals on a known condition by the branch taken.

        %0 = add([1f, 2f], [3f, 4f]);
        %1 = multiply(%0, 2f);                     ->        add(%x, [8f, 12f])
        add(%x, %1)

    Static shapes are constants too. ``max-elements`` bounds the size of a folded value, so that the text stays small. ``qnn`` also folds
    quantised operators, which TVM leaves for later passes to recognise. Constants whose values the text omits are not folded.
    """

    name = "fold-constants"
    opt_level = 2
    dialects = (HLO, RELAY)

    def __init__(self, max_elements: int = 4096, qnn: bool = False) -> None:
        self.max_elements = max_elements
        self.qnn = qnn
        self.kept = KEPT
        """Operators whose results are not folded."""
        self.spent = 0.0
        """The operations of the values that this run has folded."""

    def run(self, module: Module) -> Module:
        return self.rewrite(module) if module.dialect.primitive else super().run(module)

    def rewrite(self, module: Module) -> Module:
        self.spent = 0.0
        for _ in range(ROUNDS):
            folded = self._folded(module)
            module = with_branches_taken(folded)
            if module is folded:
                break
        return module

    def _folded(self, module: Module) -> Module:
        values: dict[Graph, Values] = {}
        totals: dict[Graph, float] = {}
        for graph in callees_first(module):
            known = self._known(module, graph, totals)
            found = computed(graph, known)
            if found or any(_projects(node) for node in graph.nodes):
                values[graph] = found
        if not values:
            return module
        return per_graph(module, lambda graph, became: _with_values(graph, values.get(graph, {}), became))

    def _known(self, module: Module, graph: Graph, totals: dict[Graph, float]) -> list[bool]:
        """For each node, by index, whether its value follows from constants and is small enough to fold."""
        known = [False] * len(graph.nodes)
        for node in graph.nodes:
            if node.op is hlo.constant:
                known[node.index] = isinstance(node.type, TensorType) and Constant.of(node).known is not None
            elif node.op in self.kept or (not node.operands and node.op not in GROWING):
                continue
            elif node.op in SHAPES:
                known[node.index] = self._fits(node.type) and shape_of_type(node) is not None
            elif all(known[o.index] for o in node.operands):
                known[node.index] = node.op.effect is Effect.PURE and self._fits(node.type) and self._may_fold(node) \
                    and (not node.op.is_primitive or self._affords(operations(module, node, totals)))
        return known

    def _affords(self, operations: float) -> bool:
        """Whether a value of this many operations may be folded besides those of the module that are; counts it if so."""
        if operations > MOST_OPERATIONS or self.spent + operations > MOST_OF_MODULE:
            return False
        self.spent += operations
        return True

    def _fits(self, type: Type) -> bool:
        """Whether a value of this type has a static shape and is small enough."""
        parts = type.elements if isinstance(type, TupleType) else (type,)
        return all(isinstance(part, TensorType) and part.is_static and part.elements <= self.max_elements for part in parts)

    def _may_fold(self, node: Node) -> bool:
        return node.op.is_primitive or (node.op.expand is not None and (self.qnn or node.op not in QUANTISED))


def _projects(node: Node) -> bool:
    """Whether a node projects an element out of a tuple constructed by its operand."""
    return node.op is hlo.get_tuple_element and node.operands[0].op is hlo.tuple


def shape_of_type(node: Node) -> Array | None:
    """The value of a shape query, from the static type of its operand, wrapped to the type of the result; None if it is unknown."""
    operand_type = node.operands[0].type
    if not isinstance(operand_type, TensorType) or not operand_type.is_static or not isinstance(node.type, TensorType):
        return None
    return np.asarray(operand_type.elements if node.op in SIZE else operand_type.dims()).astype(node.type.dtype.numpy())


def computed(graph: Graph, known: Sequence[bool]) -> Values:
    """The values of the known tensors that an unknown node reads, from the reference interpreter."""
    inner = [node for node in graph.nodes if known[node.index] and node.op is not hlo.constant]
    if not inner:
        return {}
    read = {o for node in graph.nodes if not known[node.index] or node.op is hlo.tuple for o in node.operands}
    wanted = [node for node in inner if isinstance(node.type, TensorType) and (node in read or node is graph.root)]
    try:
        return evaluated(wanted, inner, {})
    except (UserError, TypeFault):
        pass
    # A node has no value, or none at compile time: evaluate one by one to keep the others.
    values: Values = {}
    for node in inner:
        if isinstance(node.type, TensorType):
            try:
                values |= evaluated([node], [node], values)
            except (UserError, TypeFault):
                continue
    return values


def evaluated(wanted: Sequence[Node], inner: Sequence[Node], values: Values) -> Values:
    """The values of the ``wanted`` among the ``inner`` nodes, whose operands are inner ones, constants, and nodes with ``values``.

    Raises UserError or TypeFault if one has no value, or an operand has none.
    """
    made = Graph("main")
    builder = Builder(made)
    became: dict[Node, Node] = {}

    def taken(node: Node) -> Node:
        if node not in became and node.op is not hlo.constant and node not in values:
            raise TypeFault(f"%{node.name} has no value")
        if node not in became:
            became[node] = copy_node(builder, node, []) if node.op is hlo.constant else constant(builder, values[node], node)
        return became[node]

    for node in inner:
        if node.op in SHAPES:
            shape = shape_of_type(node)
            assert shape is not None, "only those are known"
            became[node] = constant(builder, shape, node)
        else:
            became[node] = copy_node(builder, node, [taken(o) for o in node.operands])
            became[node].loc = -1
    made.root = builder.add(hlo.tuple, [became[node] for node in wanted], type=TupleType(tuple(n.type for n in wanted)))
    dialect = HLO if inner and all(n.op.is_primitive for n in inner) else RELAY
    folded = expand(Module("folded", dialect, {"main": made}, "main"))
    arrays = flatten(evaluate(folded.main(), [], folded.flushes_denormals))
    found = {node: np.asarray(array) for node, array in zip(wanted, arrays, strict=True)}
    return {node: array for node, array in found.items() if array.shape == dims_of(node)}


def constant(builder: Builder, value: Array, node: Node) -> Node:
    """A constant in place of a node, converted to its element type."""
    literal = Literal.of(value.astype(of(node).dtype.numpy()), of(node))
    return builder.add(hlo.constant, (), {"literal": literal}, node.type, name=node.name)


def _with_values(graph: Graph, values: Values, became: dict[Graph, Graph]) -> Graph:
    """A graph with constants in place of nodes, and tuple elements in place of projections, without the dead nodes that result."""
    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        if node in values:
            return constant(builder, values[node], node)
        if node.op is hlo.get_tuple_element and operands[0].op is hlo.tuple:
            element = operands[0].operands[GetTupleElement.of(node).index]
            return element if element.type == node.type else None
        return None
    made = see_through(rewrite(graph, rule, became, ends=values), graph)
    return see_through(rewrite(made, lambda builder, node, operands: None), made) if any(map(_projects, graph.nodes)) else made
