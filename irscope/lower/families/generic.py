"""Every group: loops over the elements of each output, one at a time, or the loop nest that an operator brings itself."""
from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.graph import Node, TensorType
from irscope.lower.build import KernelBuilder
from irscope.lower.families import Built, Fixed, Problem, Stage
from irscope.lower.pull import Pull
from irscope.lower.storage import Wish


class Generic:
    """What takes a group when no faster family does."""

    name = "generic"

    def wishes(self, group: Group, fixed: Fixed) -> dict[Node, Wish]:
        return {}

    def match(self, problem: Problem) -> str:
        """``nest`` where the operator is a loop nest of its own, else ``element``."""
        anchor = problem.group.anchor
        if problem.group.kind == "whole" and anchor is not None and anchor.op.nest is not None:
            if anchor.op.element is None or (anchor.op.whole is not None and anchor.op.whole(anchor)):
                return "nest"
        return "element"

    def schedule(self, problem: Problem, match: str) -> dict[str, Any]:
        return {"family": self.name, "form": match}

    def build(self, problem: Problem, match: str, schedule: dict[str, Any]) -> Built:
        k = KernelBuilder(problem.name, problem.lanes, precision=problem.options.get("precision", "default"))
        pull = Pull(k, problem)
        if match == "nest":
            anchor = problem.group.anchor
            assert anchor is not None and anchor.op.nest is not None
            anchor.op.nest(k, anchor, [pull.view(o) for o in anchor.operands], [pull.view(o) for o in problem.outs])
        else:
            for shape, outputs in _by_shape(problem).items():
                with ExitStack() as loops:
                    index = [loops.enter_context(k.par(0, n) if d == 0 else k.loop(0, n)) for d, n in enumerate(shape)]
                    for output in outputs:
                        pull.store(output, index, pull.value(output, index))
        return Built([Stage(k.finish(schedule=schedule), problem.arguments())])


def _by_shape(problem: Problem) -> dict[tuple[int, ...], list[Node]]:
    """The outputs of each shape: they share loops."""
    shapes: dict[tuple[int, ...], list[Node]] = {}
    for output in problem.outs:
        assert isinstance(output.type, TensorType)
        shapes.setdefault(dims_of(output), []).append(output)
    return shapes


FAMILY = Generic()
