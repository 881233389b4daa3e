"""TorchScript steps: every operator that gives a view, or a copy where the strides demand one."""
from __future__ import annotations

from dataclasses import replace
from math import prod

from tests.programs.maker import Misfit, within
from tests.programs.program import Shape, Statement, Value
from tests.programs.torchscript import STEPS, TORCH, Torch, dense, type_of

Strides = tuple[int, ...] | None


def tensor(maker: Torch, rank: int = 1) -> Value:
    return maker.pick(lambda v: len(v.shape) >= rank and v.grade != "rough")


def axis_of(maker: Torch, value: Value) -> int:
    return maker.draws.between(0, len(value.shape) - 1)


def spelled_axis(maker: Torch, value: Value, axis: int) -> str:
    """An axis as a constant, sometimes counted from the end."""
    return maker.constant(axis - len(value.shape) if maker.draws.chance(0.3) else axis)


def changed(strides: Strides, axis: int, *new: int) -> Strides:
    return None if strides is None else (*strides[:axis], *new, *strides[axis + 1:])


@STEPS(4, "alias")
def slice(maker: Torch) -> None:
    """Part of an axis: ``x[a:b:c]``, ``narrow``."""
    value = tensor(maker)
    axis = axis_of(maker, value)
    n, own = value.shape[axis], maker.strides[value.name]
    low = maker.draws.between(0, max(0, n - 1))
    high = maker.draws.between(min(low + 1, n), n)
    at = spelled_axis(maker, value, axis)
    if maker.draws.chance(0.2):
        made = replace(value, shape=(*value.shape[:axis], high - low, *value.shape[axis + 1:]))
        maker.call(made, "narrow", value.name, at, maker.constant(low), maker.constant(high - low), view=value.name, strides=own)
        return
    step = maker.draws.one((1, 1, 1, 2, 3))
    end = maker.draws.one((high, high, 9223372036854775807)) if high == n else high
    begin = low - n if maker.draws.chance(0.2) and low else low
    made = replace(value, shape=(*value.shape[:axis], -(-(high - low) // step), *value.shape[axis + 1:]))
    maker.call(made, "slice", value.name, at, maker.constant(begin), maker.constant(end), maker.constant(step), view=value.name,
               strides=None if own is None else changed(own, axis, own[axis] * step))


@STEPS(2, "alias")
def select(maker: Torch) -> None:
    value = tensor(maker)
    axis = axis_of(maker, value)
    n = value.shape[axis]
    if not n:
        raise Misfit
    made = replace(value, shape=(*value.shape[:axis], *value.shape[axis + 1:]))
    maker.call(made, "select", value.name, spelled_axis(maker, value, axis), maker.constant(maker.draws.between(-n, n - 1)), view=value.name,
               strides=changed(maker.strides[value.name], axis))


@STEPS(4, "alias")
def order(maker: Torch) -> None:
    """Axes in another order: ``transpose``, ``permute``, ``t``, ``movedim``, ``swapaxes``, ``mT``, ``numpy_T``."""
    value = tensor(maker, 2)
    rank, own = len(value.shape), maker.strides[value.name]
    kind = maker.draws.one(("transpose", "permute", "movedim", "swapaxes", "mT", *(("t", "numpy_T") if rank == 2 else ())))
    axes = list(range(rank))
    arguments: list[str] = []
    if kind in ("transpose", "swapaxes"):
        a, b = axis_of(maker, value), axis_of(maker, value)
        axes[a], axes[b] = axes[b], axes[a]
        arguments = [spelled_axis(maker, value, a), spelled_axis(maker, value, b)]
    elif kind == "movedim":
        a, b = axis_of(maker, value), axis_of(maker, value)
        axes.insert(b, axes.pop(a))
        arguments = [maker.constant(a), maker.constant(b)]
    elif kind == "permute":
        axes = maker.draws.order(axes)
        arguments = [maker.numbers(axes)]
    else:
        axes[-1], axes[-2] = axes[-2], axes[-1]
    made = replace(value, shape=tuple(value.shape[d] for d in axes))
    maker.call(made, kind, value.name, *arguments, view=value.name, strides=None if own is None else tuple(own[d] for d in axes))


@STEPS(2, "alias")
def ones(maker: Torch) -> None:
    """Axes of one element come and go: ``unsqueeze``, ``squeeze``."""
    value = tensor(maker, 0)
    own = maker.strides[value.name]
    if maker.draws.chance(0.6) and len(value.shape) < 5:
        axis = maker.draws.between(0, len(value.shape))
        stride = None if own is None else dense(value.shape[axis:])[0] * value.shape[axis] if own == dense(value.shape) and axis < len(own) else 1
        made = replace(value, shape=(*value.shape[:axis], 1, *value.shape[axis:]))
        maker.call(made, "unsqueeze", value.name, maker.constant(axis), view=value.name,
                   strides=None if own is None or stride is None else (*own[:axis], stride, *own[axis:]))
        return
    if maker.draws.chance(0.5):
        kept = [d for d, n in enumerate(value.shape) if n != 1]
        arguments: list[str] = []
    else:
        if not value.shape:
            raise Misfit
        axis = axis_of(maker, value)
        kept = [d for d, n in enumerate(value.shape) if d != axis or n != 1]
        arguments = [spelled_axis(maker, value, axis)]
    maker.call(replace(value, shape=tuple(value.shape[d] for d in kept)), "squeeze", value.name, *arguments, view=value.name,
               strides=None if own is None else tuple(own[d] for d in kept))


def refitted(maker: Torch, shape: Shape) -> Shape:
    """Another shape of as many elements."""
    total = prod(shape)
    divisors = [n for n in range(2, min(total, 60)) if total % n == 0] or [1]
    n = maker.draws.one(divisors)
    return maker.draws.one(((total,), (n, total // n), (total // n, n), (1, *shape), (*shape, 1)))


@STEPS(5, "alias")
def reshape(maker: Torch) -> None:
    """``view`` where there are no gaps, and ``reshape``, ``flatten``, ``contiguous``, ``ravel`` of whatever there is: a view or a copy."""
    value = tensor(maker)
    kinds = ("reshape", "reshape", "flatten", "contiguous", "contiguous", "ravel", "view_as") + (("view", "view") if maker.dense(value) else ())
    kind = maker.draws.one(kinds)
    known = dense if maker.dense(value) else lambda shape: None
    if 0 in value.shape and kind != "contiguous":
        raise Misfit
    if kind in ("view", "reshape"):
        shape = refitted(maker, value.shape)
        wanted: list[int | str] = list(shape)
        if maker.draws.chance(0.3):
            wanted[maker.draws.between(0, len(shape) - 1)] = -1
        elif maker.draws.chance(0.4):
            same = [(i, d) for i, n in enumerate(shape) for d, m in enumerate(value.shape) if n == m]
            if same:
                i, d = maker.draws.one(same)
                wanted[i] = maker.size(value, d)
        maker.call(replace(value, shape=shape), kind, value.name, maker.numbers(wanted), view=value.name, strides=known(shape))
    elif kind == "flatten":
        low = axis_of(maker, value)
        high = maker.draws.between(low, len(value.shape) - 1)
        shape = (*value.shape[:low], prod(value.shape[low:high + 1]), *value.shape[high + 1:])
        maker.call(replace(value, shape=shape), kind, value.name, maker.constant(low), maker.constant(high), view=value.name, strides=known(shape))
    elif kind == "contiguous":
        maker.call(value, kind, value.name, maker.constant(0), view=value.name, strides=dense(value.shape))
    elif kind == "ravel":
        shape = (prod(value.shape),)
        maker.call(replace(value, shape=shape), kind, value.name, view=value.name, strides=dense(shape))
    else:
        other = maker.pick(lambda v: prod(v.shape) == prod(value.shape) and v.shape != value.shape and bool(v.shape))
        if not maker.dense(value):
            raise Misfit
        maker.call(replace(value, shape=other.shape), kind, value.name, other.name, view=value.name, strides=dense(other.shape))


@STEPS(1.5, "alias")
def unflatten(maker: Torch) -> None:
    """One axis as two, which any stride allows."""
    value = tensor(maker)
    axis = axis_of(maker, value)
    n, own = value.shape[axis], maker.strides[value.name]
    divisors = [k for k in range(1, n + 1) if n % k == 0]
    if not divisors:
        raise Misfit
    k = maker.draws.one(divisors)
    shape = (*value.shape[:axis], k, n // k, *value.shape[axis + 1:])
    strides = None if own is None else changed(own, axis, own[axis] * (n // k), own[axis])
    if maker.draws.chance(0.5):
        maker.call(replace(value, shape=shape), "view", value.name, maker.numbers(shape), view=value.name, strides=strides)
    else:
        maker.call(replace(value, shape=shape), "unflatten", value.name, maker.constant(axis), maker.numbers((k, n // k)), view=value.name, strides=strides)


@STEPS(3, "alias")
def same(maker: Torch) -> None:
    """The same tensor, unless the type differs or a copy is asked for: ``to``, ``type_as``, ``detach``, ``alias``, dropout that does nothing."""
    value = tensor(maker, 0)
    kind = maker.draws.one(("to", "to", "type_as", "detach", "alias", "dropout"))
    own, no = maker.strides[value.name], maker.constant(False)
    if kind == "to":
        copied = maker.draws.chance(0.3)
        arguments = [maker.constant(TORCH[value.dtype][1]), no, maker.constant(copied), maker.none()]
    elif kind == "type_as":
        arguments = [maker.pick(lambda v: v.dtype == value.dtype).name]
    elif kind == "dropout":
        if value.dtype not in ("f32", "f64"):
            raise Misfit
        arguments = [maker.constant(0.5), no]
    else:
        arguments = []
    maker.call(value, kind, value.name, *arguments, view=value.name, strides=own)


@STEPS(1, "alias")
def expand(maker: Torch) -> None:
    """Elements that share a place, which torch does not write."""
    value = tensor(maker, 0)
    own = maker.strides[value.name]
    front = maker.draws.one((0, 0, 1))
    shape = tuple([2] * front + [maker.draws.one((1, 2, 3)) if n == 1 else n for n in value.shape])
    made = within(value, shape=shape)
    strides = None if own is None else tuple([0] * front + [0 if n != m else s for n, m, s in zip(value.shape, shape[front:], own, strict=True)])
    locked = shape != value.shape
    kind = maker.draws.one(("expand", "broadcast_to"))
    extra = [maker.constant(False)] if kind == "expand" else []
    maker.call(made, kind, value.name, maker.numbers(shape), *extra, view=value.name, strides=strides, locked=locked)


@STEPS(1, "alias")
def diagonal(maker: Torch) -> None:
    value = tensor(maker, 2)
    a, b = maker.draws.order(range(len(value.shape)))[:2]
    shift = maker.draws.one((0, 0, 1, -1))
    n, m, own = value.shape[a], value.shape[b], maker.strides[value.name]
    length = max(0, min(n, m - shift) if shift >= 0 else min(n + shift, m))
    rest = [d for d in range(len(value.shape)) if d not in (a, b)]
    made = replace(value, shape=(*(value.shape[d] for d in rest), length))
    maker.call(made, "diagonal", value.name, maker.constant(shift), maker.constant(a), maker.constant(b), view=value.name,
               strides=None if own is None else (*(own[d] for d in rest), own[a] + own[b]))


@STEPS(1, "alias")
def unfold(maker: Torch) -> None:
    """Windows of an axis, which may overlap."""
    value = tensor(maker)
    axis = axis_of(maker, value)
    n, own = value.shape[axis], maker.strides[value.name]
    if not n:
        raise Misfit
    size = maker.draws.between(1, n)
    step = maker.draws.between(1, 3)
    made = within(value, shape=(*value.shape[:axis], (n - size) // step + 1, *value.shape[axis + 1:], size))
    strides = None if own is None else (*own[:axis], own[axis] * step, *own[axis + 1:], own[axis])
    maker.call(made, "unfold", value.name, maker.constant(axis), maker.constant(size), maker.constant(step), view=value.name,
               strides=strides, locked=step < size)


@STEPS(2, "alias")
def pieces(maker: Torch) -> None:
    """A tensor in pieces: ``chunk``, ``split``, ``split_with_sizes``, ``unbind``, as lists that are taken apart."""
    value = tensor(maker)
    axis = axis_of(maker, value)
    n, own = value.shape[axis], maker.strides[value.name]
    if not 1 <= n <= 12:
        raise Misfit
    kind = maker.draws.one(("chunk", "split", "split_with_sizes", "unbind"))
    if kind == "unbind":
        sizes, argument = [1] * n, []
    elif kind == "split_with_sizes":
        first = maker.draws.between(0, n)
        sizes, argument = [first, n - first], [maker.numbers((first, n - first))]
    else:
        size = maker.draws.between(1, n)
        if kind == "chunk":
            size, argument = -(-n // size), [maker.constant(size)]
        else:
            argument = [maker.constant(size)]
        sizes = [size] * (n // size) + ([n % size] if n % size else [])
    pieces = maker.name()
    maker.statements.append(Statement(f"%{pieces} : Tensor[] = aten::{kind}(%{value.name}{''.join(', %' + a for a in argument)}, "
                                      f"%{maker.constant(axis)})"))
    made = []
    for size in sizes:
        shape = (*value.shape[:axis], *([] if kind == "unbind" else [size]), *value.shape[axis + 1:])
        part = replace(value, name=maker.name(), shape=shape)
        maker.share(part.name, value.name, changed(own, axis) if kind == "unbind" else own)
        made.append(part)
    types = ", ".join(f"%{p.name} : {type_of(p, maker.traced)}" for p in made)
    maker.statements.append(Statement(f"{types} = prim::ListUnpack(%{pieces})"))
    maker.values += made


@STEPS(1.5, "alias")
def complex_parts(maker: Torch) -> None:
    """The parts of complex numbers, which lie in their memory."""
    value = maker.pick(lambda v: v.dtype == "c64" and v.grade == "exact")
    kind = maker.draws.one(("view_as_real", "view_as_real", "real", "imag"))
    value = replace(value, low=-value.most, high=value.most)
    own = maker.strides[value.name]
    wide = None if own is None else tuple(2 * s for s in own)
    if kind == "view_as_real":
        maker.call(replace(value, dtype="f32", shape=(*value.shape, 2)), kind, value.name, view=value.name, strides=None if wide is None else (*wide, 1))
    else:
        maker.call(replace(value, dtype="f32"), kind, value.name, view=value.name, strides=wide)
