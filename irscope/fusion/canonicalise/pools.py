"""The gradient of a maximum over windows: finds the position of each maximum, and scatters there (XLA's ``SelectAndScatterExpander``)."""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, tensor_type
from irscope.graph import Graph, Node, TupleType
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import ReduceWindow
from irscope.ops.attrs import Literal


def expand_select_and_scatter(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Expand a select-and-scatter to a windowed reduction that keeps the positions, and a scatter to them."""
    if len(instr.bodies) != 2 or not instr.is_array:
        return False
    source, added, init = instr.operands
    rank = source.rank
    counts = [rewriter.iota("s32", source.dims, d) for d in range(rank)]
    none = rewriter.constant(-1, "s32")
    types = (tensor_type(source.dtype, added.dims), *[tensor_type("s32", added.dims)] * rank)
    window = {"window": ReduceWindow.of(instr).window}
    found = rewriter.make(hlo.reduce_window, TupleType(types), (source, *counts, init, *[none] * rank), window,
                          (_position(instr.bodies[0], source.dtype, rank),))
    columns = [rewriter.reshape(rewriter.element(found, d + 1), (*added.dims, 1)) for d in range(rank)]
    every = tuple(range(rank))
    attrs = {"update_window_dims": (), "inserted_window_dims": every, "scatter_dims_to_operand_dims": every, "index_vector_dim": rank}
    operands = (rewriter.broadcast(init, instr.dims, ()), rewriter.concatenate(columns, rank), added)
    return rewriter.replace(instr, rewriter.make(hlo.scatter, instr.type, operands, attrs, instr.bodies[1:]))


def _position(select: Graph, dtype: str, rank: int) -> Graph:
    """Of two elements with their positions, the one that ``select`` picks; an element whose first position is -1 is none yet."""
    graph = Graph("position")
    number, truth, kinds = tensor_type("s32", ()), tensor_type("pred", ()), [tensor_type(dtype, ()), *[tensor_type("s32", ())] * rank]
    graph.params = [graph.add(Node(hlo.parameter, f"{side}{i}", kind, (), {"number": i + at}))
                    for side, at in (("left", 0), ("right", rank + 1)) for i, kind in enumerate(kinds)]
    left, right = graph.params[:rank + 1], graph.params[rank + 1:]
    here = dict(zip(select.params, (left[0], right[0]), strict=True))
    for node in select.nodes:
        if node not in here:
            here[node] = graph.add(Node(node.op, node.name, node.type, tuple(here[o] for o in node.operands), node.attrs, node.bodies))
    none = graph.add(Node(hlo.constant, "none", number, (), {"literal": Literal.of(np.asarray(-1, np.int32), number)}))
    stands = [graph.add(Node(hlo.compare, f"{side}_stands", truth, (side_of[1], none), {"direction": "NE"}))
              for side, side_of in (("left", left), ("right", right))]
    both = graph.add(Node(hlo.and_, "taken", truth, (here[select.result()], stands[0])))
    missing = graph.add(Node(hlo.not_, "missing", truth, (stands[1],)))
    chosen = graph.add(Node(hlo.or_, "chosen", truth, (both, missing)))
    results = [graph.add(Node(hlo.select, f"result{i}", kind, (chosen, a, b)))
               for i, (kind, a, b) in enumerate(zip(kinds, left, right, strict=True))]
    graph.root = graph.add(Node(hlo.tuple, "results", TupleType(tuple(kinds)), tuple(results)))
    return graph
