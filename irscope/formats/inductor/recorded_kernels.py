"""Which scheduler nodes became which kernel: the calls of output code, matched with the nodes after fusion.

On CPUs one kernel may compute several nodes, loops one after another; so kernels are not the groups of the fusion pass. A node belongs to
the first call that names a buffer that it writes, under the name that the buffer has there: ``buf1 = buf0; del buf0  # reuse`` renames it.
"""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from irscope.formats.inductor.fusion_log import FusionRun
from irscope.formats.inductor.kernels import KernelSource
from irscope.formats.inductor.layouts import BUFFER
from irscope.formats.inductor.provenance import Provenance
from irscope.formats.inductor.scheduler import SchedulerNode
from irscope.formats.inductor.wrapper import ENTRY, KernelCall, OutputCode
from irscope.graph import Type


@dataclass(slots=True)
class RecordedKernel:
    """A call: ``ops`` and ``buffers`` of its scheduler nodes, and the ``nodes`` of the FX graph after the post-grad passes."""

    call: KernelCall
    nodes: tuple[str, ...] = ()
    source: KernelSource | None = None
    ops: list[str] = field(default_factory=list)
    buffers: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """``fused`` for a kernel that Inductor generated, else ``extern``."""
        return "extern" if self.call.is_extern else "fused"


def recorded_kernels(nodes: Sequence[SchedulerNode], code: OutputCode, provenance: Provenance) -> list[RecordedKernel]:
    """The kernels in the order of the calls, with the scheduler nodes after fusion that each computes."""
    calls = code.calls()
    found = [RecordedKernel(call, provenance.nodes.get(call.handle, ()), code.kernels.get(call.kernel)) for call in calls]
    places = _Places(code, calls)
    home = [places.of(_decisive(node)) for node in nodes]
    low = 0
    after = _next_homes(home)
    for i, node in enumerate(nodes):
        if home[i] is None and not node.is_nop:
            home[i] = places.between(node, low, after[i])
        low = home[i] or low
    for node, index in zip(nodes, home, strict=True):
        if index is not None:
            found[index].ops += node.ops()
            found[index].buffers += written_by(node)
    return found


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that a backward graph takes from its forward graph; ``is_input``: it is an input or a parameter, which lives anyway."""

    name: str
    type: Type
    is_input: bool


def saved_tensors(code: OutputCode) -> list[SavedTensor]:
    """The inputs of a backward graph that are no gradients: what the forward graph saved for it."""
    call = code.functions.get(ENTRY)
    names = [name for name in (call.inputs if call is not None else ()) if not name.startswith("tangents")]
    return [SavedTensor(name, code.inputs[name].type() if name in code.inputs else BUFFER, name.startswith("primals")) for name in names]


def written_by(node: SchedulerNode) -> list[str]:
    """All buffers that a node and its parts write, those too that live inside its kernel."""
    return list(dict.fromkeys(output.name for leaf in (*node.leaves(), node) for output in leaf.outputs))


def _decisive(node: SchedulerNode) -> list[str]:
    """The buffers whose first call is that of a node: those it writes; of one result of several, the buffer of all."""
    if node.is_item:
        return [dependency.buffer for dependency in (*node.unmet, *node.met)]
    return [] if node.is_nop else written_by(node)


def _next_homes(home: Sequence[int | None]) -> list[int | None]:
    """For each node the call of the next node that has one."""
    found: list[int | None] = []
    after: int | None = None
    for mine in reversed(home):
        found.append(after)
        after = mine if mine is not None else after
    return found[::-1]


class _Places:
    """The call that first names each buffer, and the further names of buffers."""

    def __init__(self, code: OutputCode, calls: Sequence[KernelCall]) -> None:
        self.calls = calls
        self.first: dict[str, int] = {}
        self.naming: dict[tuple[str, bool], list[int]] = {}
        """The calls that name a buffer, in order: those of extern kernels, and the others."""
        for i, call in enumerate(calls):
            for name in (*call.buffers(), *call.written):
                self.first.setdefault(name, i)
                self.naming.setdefault((name, call.is_extern), []).append(i)
        self.renamed: dict[str, list[str]] = {}
        for function in code.functions.values():
            for alias in function.aliases():
                self.renamed.setdefault(alias.of, []).append(alias.name)

    def of(self, buffers: Iterable[str]) -> int | None:
        """The first call that names one of the buffers; None where none does."""
        found = [i for i in map(self._place, buffers) if i is not None]
        return min(found, default=None)

    def _place(self, buffer: str) -> int | None:
        """The call that first names a buffer, under the name that it was given before any call."""
        waiting, seen = [buffer], {buffer}
        while waiting:
            name = waiting.pop(0)
            if name in self.first:
                return self.first[name]
            for other in self.renamed.get(name, ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return None

    def between(self, node: SchedulerNode, low: int, high: int | None) -> int | None:
        """The call of a node that writes into other buffers alone: between those of its neighbours, one that names such a buffer."""
        targets = {name for leaf in node.leaves() for output in leaf.outputs for name in output.mutations}
        targets |= {dep.buffer for dep in (*node.met, *node.unmet)}
        last = len(self.calls) - 1 if high is None else high
        naming = [places for name in targets if (places := self.naming.get((name, node.is_extern))) and places[-1] >= low]
        found = min((places[bisect_left(places, low)] for places in naming), default=None)
        return found if found is not None and found <= last else None


def fits(run: FusionRun, nodes: Sequence[SchedulerNode]) -> bool:
    """Whether a run of the fusion pass is of these nodes: the same names, with loops of the same kinds."""
    kinds = {leaf.name: _kind(leaf) for node in nodes for leaf in node.leaves()}
    listed = {candidate.name: candidate.kind for candidate in run.candidates}
    return listed.keys() == kinds.keys() and all(not kinds[name] or kind in ("scatter", kinds[name]) for name, kind in listed.items())


def _kind(node: SchedulerNode) -> str:
    """The kind under which the log lists a node; empty where the text does not tell."""
    if node.is_nop or node.is_extern:
        return "nop" if node.is_nop else "extern"
    return "reduction" if node.body is not None and node.body.kind == "reduction" else ""
