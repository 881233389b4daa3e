"""Any group whose elements can be computed one by one: loops over each output, or the loop nest that an operator defines itself.

Each element is computed from memory alone. A group that keeps values for more than one element (the mean of a row, the scores of a query)
is refused: element by element, it would recompute their sums for each of them. Lowering splits it instead.
"""
from __future__ import annotations

from contextlib import ExitStack
from math import prod

from irscope.fusion.drafts import dims_of
from irscope.graph import Kind, Node, TensorType
from irscope.lower.build import KernelBuilder
from irscope.lower.kernels import flops_of_node
from irscope.lower.program import Slot
from irscope.lower.pull import Pull
from irscope.lower.storage import Storage
from irscope.lower.templates import Built, KernelOperand, Problem, Template
from irscope.lower.tile import Schedule
from irscope.lower.values import leaf_paths, source_of
from irscope.lower.view import View
from irscope.ops.costs import result_elements

MOST_AGAIN = 4
"""How often an operator that sums over many elements may be computed, element by element, for each of its own elements."""


class GenericTemplate(Template[str]):
    """The template for groups that no faster template accepts."""

    def match(self, problem: Problem) -> str | None:
        """``nest`` where the operator is a loop nest of its own, else ``element``; None where that repeats the loops of operators."""
        anchor = problem.group.anchor
        if problem.group.kind == "whole" and anchor is not None and anchor.op.nest is not None:
            if anchor.op.element is None or (anchor.op.whole is not None and anchor.op.whole(anchor)):
                return "nest"
        return None if _repeats_loops(problem) else "element"

    def schedule(self, problem: Problem, match: str) -> Schedule:
        return {"template": self.name, "form": match}

    def build(self, problem: Problem, match: str, schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, problem.lanes, precision=problem.precision)
        pull = Pull(k, problem)
        if match == "nest":
            anchor = problem.group.anchor
            assert anchor is not None and anchor.op.nest is not None
            anchor.op.nest(k, anchor, [pull.views[o] for o in anchor.operands], _results(pull, problem, anchor))
        else:
            for shape, outputs in _by_shape(problem).items():
                with ExitStack() as loops:
                    index = [loops.enter_context(k.par(0, n) if d == 0 else k.loop(0, n)) for d, n in enumerate(shape)]
                    for output in outputs:
                        pull.store(output, index, pull.value(output, index))
        return Built([pull.call.stage(k.finish(schedule=schedule))])


def _results(pull: Pull, problem: Problem, anchor: Node) -> list[View]:
    """A view for every result of an operator, in its own order; unused results get scratch memory."""
    if isinstance(anchor.type, TensorType):
        return [pull.views[output] for output in problem.outs]
    read = {source_of(output)[1]: output for output in problem.outs}
    outs: list[View] = []
    for path, type in leaf_paths(anchor.type):
        if path in read:
            outs.append(pull.views[read[path]])
        else:
            name = "unread" + "_".join(map(str, path))
            slot = Slot(name, type.dtype, max(type.elements, 1), "temp")
            outs.append(pull.call.bind(KernelOperand(Storage.plain(slot, type.dtype, type.dims())), "out", name))
    return outs


def _repeats_loops(problem: Problem) -> bool:
    """Whether an operator that sums over many elements is computed more often than it has elements."""
    inside = set(problem.group.nodes) - problem.ins.keys()
    wanted: dict[Node, float] = {}  # how often a value is computed
    for shape, outputs in _by_shape(problem).items():
        for output in outputs:
            wanted[output] = wanted.get(output, 0) + prod(shape)
    for node in sorted(inside, key=lambda n: n.index, reverse=True):
        times = wanted.get(node, 0)
        if node.op.kind in (Kind.REDUCTION, Kind.CONTRACTION):
            elements = max(1.0, result_elements(node))
            if times > MOST_AGAIN * elements:
                return True
            times *= max(1.0, flops_of_node(node) / elements)
        for operand in node.operands:
            wanted[operand] = max(wanted.get(operand, 0), times)
    return False


def _by_shape(problem: Problem) -> dict[tuple[int, ...], list[Node]]:
    """The outputs of each shape: they share loops."""
    shapes: dict[tuple[int, ...], list[Node]] = {}
    for output in problem.outs:
        assert isinstance(output.type, TensorType)
        shapes.setdefault(dims_of(output), []).append(output)
    return shapes


TEMPLATE = GenericTemplate()
