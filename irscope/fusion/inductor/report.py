"""The result of Inductor's scheduler on a graph: its kernels as groups, and the nodes that each computes."""
from __future__ import annotations

from irscope.fusion.closure import closure
from irscope.fusion.inductor.kernels import Kernel
from irscope.fusion.inductor.memory_order import in_memory_order
from irscope.fusion.inductor.program import Program
from irscope.fusion.inductor.scheduler import Scheduler
from irscope.fusion.inductor.state import State
from irscope.fusion.inductor.training import saved_inputs
from irscope.fusion.inductor.values import Buffer
from irscope.fusion.memo import Memo
from irscope.fusion.plan import Call, Group, inputs_of
from irscope.fusion.views import VIEWS
from irscope.graph import Node
from irscope.ops import hlo

MOST_ARGUMENTS = 500
"""A generated kernel with more arguments than this takes no further loops (``MAX_FUSED_KERNEL_ARGS_NUM`` of codegen/cpp.py)."""


class Report:
    """The kernels of one graph in the order in which they run, and the nodes that each computes. ``kernels_of``: for each node its kernels.

    A kernel of the scheduler is one loop nest, or a library call; ``calls`` are those of the compiled program. ``reading`` has for each
    node the buffers that compute it: for each buffer, the first of them that reads it, and for None the first of all.
    """

    def __init__(self, program: Program, state: State, scheduler: Scheduler) -> None:
        self.program = program
        self.scheduler = scheduler
        self.members: dict[Kernel, list[Node]] = {}
        self._views: dict[Node, list[Node]] = {}
        self._inputs: dict[Node, list[Node]] = {}
        self.kernels_of: dict[Node, dict[Kernel, None]] = {}
        self.reading = Memo(self._readers_of)
        self.order = in_memory_order(scheduler.kernels, scheduler.buffers, state.results, saved_inputs(program.graph))
        for kernel in self.order:
            nodes = self._nodes(kernel)
            self.members[kernel] = nodes
            for node in nodes:
                self.kernels_of.setdefault(node, {})[kernel] = None
        self.stored = {buffer.node: buffer for buffer in state.buffers if buffer.name in scheduler.home}
        self.readers = scheduler.read_by()
        self.results = set(state.results)

    def _nodes(self, kernel: Kernel) -> list[Node]:
        """The nodes that a kernel computes, and the views through which it reads, in definition order."""
        return sorted(closure((node for buffer in kernel.buffers for node in buffer.members), self._views_of), key=lambda n: n.index)

    def _readers_of(self, node: Node) -> dict[Buffer | None, Buffer]:
        found: dict[Buffer | None, Buffer] = {}
        for buffer in (b for kernel in self.kernels_of.get(node, ()) for b in kernel.buffers if node in b.members):
            for read in (None, *(load for load, _ in buffer.expression.loads), *buffer.reads):
                found.setdefault(read, buffer)
        return found

    def _views_of(self, node: Node) -> list[Node]:
        """The operands of a node that are views; those of a concatenation are asked for by each kernel that writes a part of it."""
        known = self._views.get(node)
        if known is None:
            known = self._views[node] = [o for o in node.operands if self.is_view(o) or o in self.program.tuples]
        return known

    def is_view(self, node: Node) -> bool:
        """Whether a node is a view of another one."""
        return node.op in VIEWS and node not in self.program.copied

    def groups(self) -> dict[Kernel, Group]:
        """The kernels that compute nodes of the graph."""
        return {kernel: self._group(kernel, nodes) for kernel, nodes in self.members.items() if nodes and not is_place(kernel)}

    def calls(self, groups: dict[Kernel, Group]) -> list[Call]:
        """The calls: the C++ backend writes the loops between two library calls into one function (``CppScheduling.flush``).

        The results of a call with several are extracted by an operation each, before which a function ends, too.
        """
        found: list[Call] = []
        nests: list[Kernel] = []
        arguments: set[str] = set()

        def end() -> None:
            if nests:
                found.append(Call(False, tuple(groups[one] for one in nests if one in groups), len(nests)))
            nests.clear()
            arguments.clear()

        for kernel in self.order:
            if not kernel.extern:
                nests.append(kernel)
                arguments.update(self._arguments(kernel))
            elif kernel.buffers[0].kind == "nop":
                continue
            else:
                end()
                if not kernel.buffers[0].part:
                    found.append(Call(True, (groups[kernel],) if kernel in groups else ()))
            if len(arguments) > MOST_ARGUMENTS:
                end()
        end()
        return found

    def _arguments(self, kernel: Kernel) -> set[str]:
        """The buffers that a kernel reads or writes, less those that nothing else reads."""
        inside = {b.name for b in kernel.buffers if not self.leaves(b, kernel)}
        return kernel.touched().keys() - inside

    def _group(self, kernel: Kernel, nodes: list[Node]) -> Group:
        inside = set(nodes)
        outputs = [b.node for b in kernel.buffers if self.leaves(b, kernel)] or [kernel.buffers[-1].node]
        kept = [n for n in dict.fromkeys(outputs) if n in inside] or [nodes[-1]]
        kind = "whole" if kernel.extern else "reduction" if kernel.reduces else "map"
        dot = next((n for n in nodes if n.op in (hlo.dot, hlo.convolution)), None)
        if kernel.extern and dot is not None:
            kind = "contraction" if dot.op is hlo.dot else "convolution"
        return Group(kind, nodes, kept, self._inputs_of(nodes), dot)

    def _inputs_of(self, nodes: list[Node]) -> list[Node]:
        """The inputs of a group. The groups that write parts of one concatenation share the list of them."""
        if len(nodes) > 1:
            return inputs_of(nodes)
        known = self._inputs.get(nodes[0])
        if known is None:
            known = self._inputs[nodes[0]] = inputs_of(nodes)
        return known

    def leaves(self, buffer: Buffer, kernel: Kernel) -> bool:
        """Whether another kernel reads a buffer, or the graph returns it."""
        return buffer in self.results or any(home is not kernel for home in self.readers.get(buffer.name, ()))


def written(node: Node) -> Node:
    """The source operator that a primitive belongs to."""
    return node.origin[0] if node.origin and node.op.is_primitive else node


def named(node: Node) -> str:
    """The name by which the user knows a node."""
    return f"%{written(node).name}"


def is_place(kernel: Kernel) -> bool:
    """Whether a kernel is a concatenation that does nothing itself, or extracts one of several results of a call."""
    return (kernel.extern and kernel.buffers[0].kind == "nop") or kernel.buffers[0].part
