"""Tensors that share memory: the results of view operators, and writes through them.

    %y : Tensor = aten::reshape(%x, %s)    a view of x where its strides allow it, else a copy, as in torch
    %z : Tensor = aten::relu_(%y)          updates x and every view of it

Where the strides of x are unknown, the value of y is still known; after a write to either, a read of the other is refused.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from irscope.expand.frames import Frame
from irscope.expand.torchscript.program import TorchProgram
from irscope.expand.torchscript.structure import node_of
from irscope.formats.torchscript.abstract import Copied, Decision, Itself, Restrided, Tensor, TensorStorage, TensorView, Unsure
from irscope.formats.torchscript.layouts import allocated, may_be_view, stated
from irscope.formats.torchscript.memory import check_places, read_places, write_places
from irscope.formats.torchscript.strides import contiguous
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node, TupleType
from irscope.graph.dtypes import PRED
from irscope.ops.faults import TypeFault

STEPS_OF_A_VIEW = 8
"""What it costs to read a view and to write it back, in runs of a node."""


def shared(program: TorchProgram, node: Node, function: Callable[..., Any], style: str, arguments: list[Any]) -> Any:
    """The result of an operator of style ``view`` or ``alias``: tensors that share the memory of its first argument, or copies of it."""
    first, rest = arguments[0], [node_of(a) for a in arguments[1:]]
    if style == "alias":
        layouts = [x.layout for x in first] if isinstance(first, list) else first.layout
        made = function(program.t, node_of(first), layouts, *rest)
    else:
        made = function(program.t, first.get(), *rest)
    if isinstance(first, list):
        return [_decided(program, node, x, decision) for x, decision in zip(first, made, strict=True)]
    if isinstance(made, list):
        return [_decided(program, node, first, decision) for decision in made]
    return _decided(program, node, first, made)


def _decided(program: TorchProgram, node: Node, base: Tensor, decision: Decision) -> Tensor:
    if isinstance(decision, Itself):
        return base
    if isinstance(decision, Copied):
        return Tensor(program.t.here(decision.node), layout=decision.layout)
    if isinstance(decision, Unsure):
        made = Tensor(program.t.here(decision.node))
        derive(program, node, made.storage, base.storage, "which returns a view or a copy depending on strides that are not in the text")
        return made
    if isinstance(decision, Restrided):
        return _restrided(program, base, decision)
    return base.view(_placed(program, decision))


def _placed(program: TorchProgram, view: TensorView) -> TensorView:
    """The view is read on demand, perhaps after a write through another name; the nodes built then are still attributed to this node.

    It is built once per value of the base, and again where the first time was in a branch or loop that is complete.
    """
    t, at = program.t, program.t.builder.at
    built: dict[Frame, tuple[Node, Node]] = {}

    def read(of: Node) -> Node:
        frame: Frame | None = t.frame
        while frame is not None:
            base, made = built.get(frame, (None, None))
            if base is of and made is not None:
                return made
            frame = frame.outer
        with t.placed(at):
            made = view.read(of)
        built[t.frame] = of, made
        return made
    return TensorView(read, view.write, view.place)


def _restrided(program: TorchProgram, base: Tensor, decision: Restrided) -> Tensor:
    """``as_strided``: a view of the whole storage, not of the tensor."""
    t, root = program.t, _root(base)
    at, layout = check_places(root.layout, decision.layout)
    if t.dtype(base.get()) is not t.dtype(root.get()):
        raise TypeFault("as_strided of a view in another element type is not supported: clone() it first")
    view = TensorView(lambda whole: read_places(t, whole, at, layout), None, lambda _: layout)
    return root.view(_placed(program, view))


def _root(tensor: Tensor) -> Tensor:
    """The whole storage as a tensor."""
    region = tensor.region
    while region.base is not None:
        region = region.base
    return Tensor(region=region)


def lay_out(program: TorchProgram, node: Node, name: str, arguments: list[object], made: object) -> None:
    """Set the layout of what an operator allocated: as the text states it, else by the rules of operators."""
    several = made if isinstance(made, list) else [made]
    types = node.type.elements if isinstance(node.type, TupleType) else [node.type]
    for i, tensor in enumerate(several):
        if isinstance(tensor, Tensor) and tensor.layout is None:
            shape = program.t.shape(tensor.get())
            said = stated(types[i], shape) if len(types) == len(several) else None
            operands = may_be_view(name, arguments)
            line = contiguous(shape) if len(shape) < 2 and not operands else None
            tensor.region.layout = said or allocated(name, arguments, shape) or line
            for operand in operands:
                derive(program, node, tensor.storage, operand.storage, "which returns a view of it or a copy")


def derive(program: TorchProgram, node: Node, made: TensorStorage, of: TensorStorage, why: str) -> None:
    """Record that the storage of a node's result may be the other one; ``why`` is the reason, for messages about the node."""
    what = f"a tensor is written that may share its memory with another one: %{node.name} = {node.op.name} links them, {why}"
    made.derive(of, f"{what}{program.where(node)}")


def write(program: TorchProgram, target: Tensor, value: Node) -> None:
    """Write to the elements of a tensor, for every tensor that shares them. Raises TypeFault where elements overlap in memory."""
    t, region = program.t, target.region
    if t.builder.at:
        program.step(t.builder.at[0], STEPS_OF_A_VIEW * region.depth())
    if region.layout is not None and region.layout.has_overlap():
        raise TypeFault("the tensor that is written has several elements in one place of memory (torch refuses it, or the order of "
                         "writes decides): clone() it first")
    if region.can_write():
        announce(program, region.storage)
        region.set(value)
    else:
        root = _root(target)
        at, layout = check_places(root.layout, region.layout)
        whole = root.get()
        if t.dtype(whole) is not t.dtype(value):
            raise TypeFault("a write to a view of windows or repeated elements in another element type is not supported: clone() it first")
        announce(program, region.storage)
        region.storage.set(write_places(t, whole, at, layout, value))
    target.known = None


def write_result(program: TorchProgram, target: Tensor, result: Node) -> None:
    """Write the result of an operator in the type and sizes of the tensor. Raises TypeFault where aten refuses that type."""
    before = target.get()
    write(program, target, program.t.broadcast_to(fitted(program.t, result, program.t.dtype(before)), program.t.shape(before)))


def fitted(t: Torch, result: Node, dtype: DType) -> Node:
    """``result`` in the type of a tensor that is written: not complex numbers as real ones, floats as integers, or numbers as bools."""
    made = t.dtype(result)
    loses = (made.is_complex and not dtype.is_complex) or (made.is_float and dtype.is_integer) or (made is not PRED and dtype is PRED)
    if loses:
        raise TypeFault(f"the result has {made.name}, which a tensor of {dtype.name} does not hold")
    return t.convert(result, dtype)


def announce(program: TorchProgram, storage: TensorStorage) -> None:
    """Prepare a write to a storage: branches and loops under construction record its old value, and possible aliases become stale."""
    program.t.written(storage, storage.last())
    for other, why in storage.others():
        program.t.doubt(other, why)


def join(program: TorchProgram, node: Node, results: Sequence[object], ways: Sequence[Sequence[object]]) -> None:
    """The results of a branch or a loop on data, whose memory may be that of any of the ways.

    A result has the strides of its ways where they agree; a value that enters the body of a loop (one way) may have others later. A write
    to it makes the storages that it may be unknown, and vice versa.
    """
    for i, result in enumerate(results):
        program.step(node, i // 4)  # it is compared with those before it
        given = [way[i] for way in ways]
        if not isinstance(result, Tensor) or result in given:
            continue
        tensors = [v for v in given if isinstance(v, Tensor)]
        layouts = [v.layout for v in tensors]
        first = layouts[0] if layouts else None
        if len(ways) > 1 and first is not None and all(at is not None and at.strides == first.strides for at in layouts):
            result.region.layout = replace(first, offset=None)
        for v in tensors:
            derive(program, node, result.storage, v.storage, "which returns it in some runs")
        for j, other in enumerate(results[:i]):
            if isinstance(other, Tensor) and other.storage is not result.storage and not any(_may_share(way[i], way[j]) for way in ways):
                result.storage.apart.add(other.storage)
                other.storage.apart.add(result.storage)


def _may_share(one: object, other: object) -> bool:
    return isinstance(one, Tensor) and isinstance(other, Tensor) and one.storage.may_be(other.storage)


def check_carried(entering: Sequence[object], leaving: Sequence[object], journal: Mapping[TensorStorage, Node]) -> None:
    """Raise TypeFault where a loop on data writes a tensor that it carries, and the next iteration may have other memory under that name.

    The values of the first iteration are linked to outer ones; those of later iterations are known only after the body has run.
    """
    names = {v.storage for v in entering if isinstance(v, Tensor)}
    first = min((storage.serial for storage in names), default=0)
    written = {storage for storage in names if storage.version} | set(journal)
    for i, (old, new) in enumerate(zip(entering, leaving, strict=True)):
        if not isinstance(old, Tensor) or not isinstance(new, Tensor) or new.storage is old.storage:
            continue
        others = new.storage.origins.keys() - old.storage.origins.keys()
        known = any(storage.serial < first or storage in names for storage in others)
        twice = any(_may_share(new, v) for j, v in enumerate(leaving) if j != i)
        if (known or twice) and (old.storage in written or not written.isdisjoint(new.storage.origins)):
            raise TypeFault("a loop on data writes to a tensor that a later trip knows by another name: clone() it before the write")


def restride(program: TorchProgram, target: Tensor, view: Tensor) -> None:
    """``x.t_()``: the tensor becomes another view of its storage. Raises TypeFault for one from outside a branch or loop on data."""
    t = program.t
    if t.frame.outer is not None and not t.is_own(target.region.storage.get()):
        raise TypeFault("the shape of a tensor changes in place in a branch or loop on data: use the form without underscore")
    target.region, target.known = view.region, None


