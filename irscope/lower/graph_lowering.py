"""Lowers a module's graphs to steps: assigns a buffer to every value and kernels to every group."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import ClassVar

from irscope.fusion import Group, Plan
from irscope.fusion.drafts import dims_of
from irscope.fusion.irscope import POLICY
from irscope.fusion.views import VIEWS, Chain
from irscope.graph import TOKEN, Builder, Graph, Module, Node, Op, TensorType
from irscope.lazy import np
from irscope.lower.aliasing import is_view_copy
from irscope.lower.buffer_assignment import StorageAssignment, split_group
from irscope.lower.faults import cannot_run
from irscope.lower.kernels import KernelCache, Tuner
from irscope.lower.memory import ArenaLayout
from irscope.lower.options import Options
from irscope.lower.program import Copy, Launch, Program, Slot, Step
from irscope.lower.schedule import AVX512
from irscope.lower.storage import Storage
from irscope.lower.templates import Packed, Problem
from irscope.lower.values import TupleParts, buffer_name, is_scalar_constant, leaf_paths, leaves, tensor_of
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.infer import plain

STREAM_BYTES = 4 << 20
"""A result of the program with this many bytes or more leaves the caches before anything reads it."""
MAX_NESTING = 100
"""Levels of loops and branches: lowering takes several calls of Python for each, and so do those who read the steps."""


Handler = Callable[["GraphLowering", Node], bool]
"""Appends the steps of a node; False where the node needs none."""


class ModuleLowering:
    """The state that all graphs of a module share while it is lowered. ``handlers`` lower operators that do not become kernels."""

    handlers: ClassVar[Mapping[Op, Handler]] = {}

    def __init__(self, module: Module, options: Options, tuner: Tuner | None = None) -> None:
        self.module = module
        self.options = options
        self.machine = options.machine or AVX512
        self.program = Program(module.name, flush_denormals=options.flushes_denormals(module))
        self.memory = ArenaLayout()
        self.kernel_cache = KernelCache(tuner)
        self._constants: dict[int, Storage] = {}
        self._packed: dict[tuple[int, object], Slot] = {}
        self._plans: dict[Graph, Plan] = {}
        self._depth = 0

    def run(self) -> Program:
        main = self.module.main()
        program = self.program
        params: dict[Node, Storage] = {}
        held = TupleParts(main)
        for param in main.params:
            for path, type in leaf_paths(param.type):
                storage = self._external("input", ".".join((param.name, *map(str, path))), type, len(program.inputs))
                params.update(dict.fromkeys(held.at(param, path), storage))
        results = leaves(main.result())
        for leaf in results:
            if not isinstance(leaf.type, TensorType):
                raise cannot_run(self.module, leaf, f"it is a result of the program, but no array: {plain(leaf.type)}")
        targets = [self._external("output", leaf.name, tensor_of(leaf), n) for n, leaf in enumerate(results)]
        wanted: dict[Node, Storage] = {}
        for leaf, target in zip(results, targets):
            wanted.setdefault(leaf, target)
        steps, found = self.graph(main, params, wanted)
        for leaf, target in zip(results, targets):
            if found[leaf].slot is not target.slot:
                self.copy(steps, found[leaf], target)
        program.steps = steps
        touched = program.touched()
        program.constants = [c for c in program.constants if c in touched]  # a packed weight is read only in panels
        program.temps = self.memory.slots()
        program.arena_bytes = self.memory.place_apart(self.options.apart) if self.options.apart else self.memory.place()
        return program

    def graph(self, graph: Graph, params: Mapping[Node, Storage], wanted: Mapping[Node, Storage]) -> tuple[list[Step], dict[Node, Storage]]:
        """The steps of one graph. ``params`` has the storage of its parameters; results go to the storage in ``wanted`` where possible.

        Also returns the storage of the results: a caller that wants them elsewhere copies them.
        """
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise cannot_run(self.module, graph.result(), f"loops and branches are nested more than {MAX_NESTING} deep")
        lowered = GraphLowering(self, graph, params, wanted)
        lowered.run()
        self._depth -= 1
        return lowered.steps, {leaf: lowered.storage_of(leaf) for leaf in leaves(graph.result())}

    def plan(self, graph: Graph) -> Plan:
        """The fusion plan of a graph; a body that several loops share is planned once."""
        if graph not in self._plans:
            self._plans[graph] = POLICY.plan(graph)
        return self._plans[graph]

    # ---- memory

    def _external(self, scope: str, name: str, type: TensorType, number: int) -> Storage:
        slot = Slot(name, type.dtype, type.elements, scope, number)
        (self.program.inputs if scope == "input" else self.program.outputs).append(slot)
        return Storage.plain(slot, type.dtype, type.dims())

    def temp(self, name: str, type: TensorType) -> Storage:
        """Fresh row-major memory of the arena."""
        return Storage.plain(Slot(name, type.dtype, type.elements, "temp"), type.dtype, type.dims())

    def constant(self, node: Node) -> Storage:
        """The memory of a constant; equal literals share it."""
        literal = Constant.of(node).literal
        if id(literal) not in self._constants:
            if literal.elided:
                raise cannot_run(self.module, node, "its value is not in the text, which elides it",
                                 "--constants C.npz gives it by name, --fill-elided draws it")
            type = tensor_of(node)
            slot = Slot(node.name, type.dtype, type.elements, "constant", data=literal.value())
            self.program.constants.append(slot)
            self._constants[id(literal)] = Storage.plain(slot, type.dtype, type.dims())
        return self._constants[id(literal)]

    def packed(self, packed: Packed) -> Slot:
        """The memory of a constant in another order."""
        literal = Constant.of(packed.node).literal
        key = (id(literal), packed.key)
        if key not in self._packed:
            data = np.ascontiguousarray(packed.make(literal.value())).reshape(-1)
            slot = Slot(f"{packed.node.name}.packed", packed.dtype, data.size, "constant", data=data)
            self.program.constants.append(slot)
            self._packed[key] = slot
        return self._packed[key]

    # ---- steps

    def launch(self, steps: list[Step], problem: Problem) -> bool:
        """Append the launches of a problem; False when no template accepts the group as one kernel."""
        built = self.kernel_cache.build(problem)
        if built is None:
            return False
        for stage in built.stages:
            self.memory.tick()
            args = [(self.packed(a), 0) if isinstance(a, Packed) else (a.storage.slot, a.begin) for a in stage.args]
            for slot, _ in args:
                self.memory.touch(slot)
            steps.append(Launch(stage.kernel, args))
        return True

    def copy(self, steps: list[Step], source: Storage, target: Storage) -> None:
        """Append a copy between two storages of the same shape."""
        if source.is_same_place(target) or not prod(target.shape):
            return
        if source.is_plain and target.is_plain:
            self.memory.tick()
            self.memory.touch(source.slot)
            self.memory.touch(target.slot)
            width = source.dtype.storage
            steps.append(Copy(source.slot, target.slot, prod(target.shape) * width, source.offset * width, target.offset * width))
        else:
            assert self.launch(steps, self._copying(source, target))

    def _copying(self, source: Storage, target: Storage) -> Problem:
        """A copy between strides, written as a reshape to the same shape."""
        builder = Builder(Graph("copy"))
        type = TensorType(source.dtype, source.shape)
        operand = builder.param(hlo.parameter, type, "x")
        node = builder.add(hlo.reshape, (operand,), {}, type, name="copy")
        group, options = Group("map", [node], [node], [operand], None, source.shape), self.options
        return Problem(group, {operand: source}, {node: target}, {}, "copy", self.machine, options.threads, precision=options.precision)


class GraphLowering:
    """One graph (the entry, a branch, a loop's body) being lowered to steps."""

    def __init__(self, lowering: ModuleLowering, graph: Graph, params: Mapping[Node, Storage], wanted: Mapping[Node, Storage]) -> None:
        self.lowering = lowering
        self.graph = graph
        self.plan = lowering.plan(graph)
        self.steps: list[Step] = []
        self.assignment = StorageAssignment(lowering.temp, graph, self.plan, dict(params), wanted)

    def run(self) -> None:
        self.assignment.assign()
        for group in self.plan.groups:
            self.group(group)

    def group(self, group: Group) -> None:
        """Append the steps of one group."""
        anchor = group.anchor
        if anchor is not None and group.kind == "whole":
            handler = self.lowering.handlers.get(anchor.op)
            if (handler is not None and handler(self, anchor)) or all(leaf == TOKEN for leaf in anchor.type.leaves()):
                return
            if anchor.op.element is None and anchor.op.nest is None and anchor.op.scalar is None:
                raise cannot_run(self.lowering.module, anchor)
        if not (is_view_copy(group) and self._is_aliased(group)):
            self.kernels(group)

    def _is_aliased(self, group: Group) -> bool:
        """Whether the result of a group that copies a view shares the memory of its input already."""
        source, output = group.inputs[0], group.outputs[0]
        chain: Chain | None = None
        node = output
        while node is not source:
            chain, node = Chain(node, chain), node.operands[0]
        seen = self.storage_of(source).seen_through(chain)
        target = self.storage_of(output)
        return seen is not None and seen.is_same_place(target)

    def kernels(self, group: Group) -> None:
        """Append the launches of a group; one that no template accepts as a whole is split.

        A plan assumes row-major values. Where they have other layouts and no template accepts those, copies are inserted.
        """
        outs = {output: self.storage_of(output) for output in group.outputs}
        if all(not prod(s.shape) for s in outs.values()):
            return
        problem = self.problem(group, outs)
        if not self.lowering.launch(self.steps, problem) and not self._row_major(problem):
            pieces = split_group(group, self.graph)
            if len(pieces) == 1 and pieces[0].nodes == group.nodes:
                raise cannot_run(self.lowering.module, group.anchor or group.outputs[0])
            for piece in pieces:
                for node in piece.outputs:
                    self.assignment.ensure(node)
                self.kernels(piece)

    def _row_major(self, problem: Problem) -> bool:
        """Append the launches of a group over row-major copies of the results, the operands, or both. False: no template accepts these."""
        ins, outs = ({node: s if s.is_plain else self.lowering.temp(node.name, tensor_of(node)) for node, s in values.items()}
                     for values in (problem.ins, problem.outs))
        for given, made in ((problem.ins, outs), (ins, problem.outs), (ins, outs)):
            copied = replace(problem, ins=given, outs=made, in_place=False, stream=frozenset())
            if (given, made) != (problem.ins, problem.outs) and self.lowering.kernel_cache.build(copied) is not None:
                for node, storage in given.items():
                    self.lowering.copy(self.steps, problem.ins[node], storage)
                self.lowering.launch(self.steps, copied)
                for node, storage in made.items():
                    self.lowering.copy(self.steps, storage, problem.outs[node])
                return True
        return False

    def problem(self, group: Group, outs: dict[Node, Storage]) -> Problem:
        """The group with the storage of all inputs and outputs."""
        ins = {node: self.storage_of(node) for node in group.inputs
               if group.kind in ("whole", "update") or not is_scalar_constant(node)}
        constants = {node: Constant.of(node).literal.value() for node in ins if node.op is hlo.constant}
        root = group.anchor if group.anchor is not None and (group.kind != "rows" or not group.outputs) else group.root
        name = buffer_name(root.origin[0] if root.origin else root)
        slots = {s.slot for s in outs.values()}
        options = self.lowering.options
        in_place = any(s.slot in slots for s in ins.values())
        stream = frozenset(node for node, s in outs.items() if s.slot.scope == "output" and s.elements * s.dtype.storage >= STREAM_BYTES
                           and node not in self.assignment.read_at)
        return Problem(group, ins, outs, constants, name, self.lowering.machine, options.threads, in_place, stream, options.precision)

    def storage_of(self, node: Node) -> Storage:
        """The storage of a value. A view of stored memory is that memory under other strides, or a copy where no strides describe it."""
        chain: list[Node] = []
        at = node
        while at not in self.assignment.known and at.op in VIEWS:
            chain.append(at)
            at = at.operands[0]
        storage = self.lowering.constant(at) if at.op is hlo.constant and at not in self.assignment.known else self.assignment.known.get(at)
        if storage is None:
            raise cannot_run(self.lowering.module, at)
        for view in reversed(chain):
            seen = storage.through(view)
            if seen is None:
                seen = self._materialised(view)
            storage = self.assignment.known[view] = seen
        return storage

    def _materialised(self, view: Node) -> Storage:
        """A copy of a view that no strides describe."""
        storage = self.lowering.temp(view.name, tensor_of(view))
        group = Group("map", [view], [view], [view.operands[0]], None, dims_of(view))
        self.kernels_into(group, {view: storage})
        return storage

    def kernels_into(self, group: Group, outs: dict[Node, Storage]) -> None:
        """Append the launches of a group that some template accepts, with its outputs in the given storage."""
        launched = self.lowering.launch(self.steps, self.problem(group, outs))
        assert launched, f"no template takes {group}"
