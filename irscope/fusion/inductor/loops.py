"""The loops of a kernel: their order, which of them are merged, and the form of an access over them.

    c[i, j] = a[i, j] + b[j, i]      over (4, 6), all row-major
    loops (4, 6): not merged, because b is not read in the order of one long loop
    c[i, j] = a[i, j] * 2            loops (24)
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from math import prod
from typing import NamedTuple

from irscope.fusion.inductor.forms import Atom, Digit, Form, Loaded, Part, steps, variables_of, weighted, with_atoms
from irscope.fusion.views import row_major


class Nest(NamedTuple):
    """Loops in order, the reduced ones innermost, and the index of each access over them.

    Variable v of a form is loop v; ``accesses`` are in the order given.
    """

    iterated: tuple[int, ...]
    reduced: tuple[int, ...]
    accesses: tuple[Form, ...]


def nest_of(iterated: Sequence[int], reduced: Sequence[int], accesses: Sequence[Form], also: Sequence[Form] = ()) -> Nest:
    """The loops of ``simplify_and_reorder`` (ir.py): reordered by the strides of the accesses, then merged.

    ``iterated`` and ``reduced`` are sizes; variables are numbered through both. ``also`` are forms that, like accesses, prevent loops from
    being merged.
    """
    sizes = [*iterated, *reduced]
    forms = [*accesses, *also]
    kept: list[list[int]] = []
    for first, part in ((0, iterated), (len(iterated), reduced)):
        variables = [first + i for i, size in enumerate(part) if size != 1]
        strides = [steps(form, variables, len(sizes)) for form in accesses]
        order = [variables[i] for i in picked_order(strides, [sizes[v] for v in variables])[::-1]]
        order, forms = _merged(order, sizes, forms)
        kept.append(order)
    names = {v: i for i, v in enumerate([*kept[0], *kept[1]])}
    return Nest(tuple(sizes[v] for v in kept[0]), tuple(sizes[v] for v in kept[1]),
                tuple(_renamed(form, names) for form in forms[:len(accesses)]))


def picked_order(strides: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[int]:
    """Dimensions from the best innermost one to the outermost (``pick_loop_order`` of scheduler.py).

    ``strides`` has a row for each access. The dimension with the smaller stride in more accesses goes further in; ties keep the order
    of the dimensions.
    """
    lengths = [[abs(s) for s in row] for row in strides]

    def compare(a: int, b: int) -> int:
        if sizes[a] == 1 or sizes[b] == 1:
            return int(sizes[a] == 1) - int(sizes[b] == 1)
        first = sum(row[b] == 0 or row[a] < row[b] for row in lengths)
        second = sum(row[a] == 0 or row[b] < row[a] for row in lengths)
        return second - first if first != second else b - a

    return sorted(range(len(sizes) - 1, -1, -1), key=cmp_to_key(compare))


def _merged(order: list[int], sizes: list[int], forms: list[Form]) -> tuple[list[int], list[Form]]:
    """Merge loops of which every form depends on the combined index only; changes ``sizes`` in place."""
    strides = row_major([sizes[v] for v in order])
    forms = [*forms, weighted([Form(0, ((Digit(v, 1, sizes[v]), 1),)) for v in order], strides)]
    alive: list[int | None] = list(order)
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(alive))):
            for j in reversed(range(len(alive))):
                inner, outer = alive[i], alive[j]
                if inner is None or outer is None or i == j:
                    continue
                if all(_joins(form, inner, outer, sizes) for form in forms):
                    size = sizes[inner] * sizes[outer]
                    forms = [_joined(form, inner, outer, size) for form in forms]
                    sizes[inner] = size
                    alive[j] = None
                    changed = True
    return [v for v in alive if v is not None], forms[:-1]


def _joins(form: Form, inner: int, outer: int, sizes: Sequence[int]) -> bool:
    """Whether the form depends only on ``outer * size + inner``."""
    step_in = step_out = 0
    for atom, coefficient in form.terms:
        if isinstance(atom, Part):
            if variables_of(atom.inner) & {inner, outer} and not _joins(atom.inner, inner, outer, sizes):
                return False
        elif isinstance(atom, Digit) and atom.variable in (inner, outer):
            if atom.low != 1 or atom.extent != sizes[atom.variable]:
                return False
            if atom.variable == inner:
                step_in = coefficient
            else:
                step_out = coefficient
    return step_in * sizes[inner] == step_out


def _joined(form: Form, inner: int, outer: int, size: int) -> Form:
    """The form after ``outer`` was merged into ``inner``, which then has ``size`` iterations."""
    def change(atom: Atom) -> Atom | None:
        if not isinstance(atom, Digit) or atom.variable not in (inner, outer):
            return atom
        return Digit(inner, 1, size) if atom.variable == inner else None

    return with_atoms(form, change)


def _renamed(form: Form, names: dict[int, int]) -> Form:
    return with_atoms(form, lambda atom: Digit(names[atom.variable], atom.low, atom.extent) if isinstance(atom, Digit) else atom)


class Access(NamedTuple):
    """One access to the elements of a buffer: Inductor's MemoryDep. Equal accesses visit the same elements in the same order.

    ``form`` is over loops of ``sizes``. ``mode`` distinguishes atomic additions from plain stores.
    """

    buffer: str
    form: Form
    sizes: tuple[int, ...]
    mode: str = ""

    @property
    def elements(self) -> int:
        """The number of elements visited, as Inductor counts them: the product of the loops that the index depends on."""
        return prod(self.sizes[v] for v in variables_of(self.form))


def access(buffer: str, form: Form, sizes: Sequence[int], numbers: dict[object, int], merge: bool = True, mode: str = "") -> Access:
    """An access with its loops merged as far as this index allows, without trailing loops that it does not depend on.

    As in Inductor, indices read from memory are distinguished only by their number within the kernel: ``numbers`` assigns them.
    """
    form = _numbered(form, numbers)
    order = [v for v, size in enumerate(sizes) if size != 1]
    lengths = list(sizes)
    if merge:
        order, (form,) = _merged(order, lengths, [form])
    used = variables_of(form)
    while order and order[-1] not in used:
        order.pop()
    names = {v: i for i, v in enumerate(order)}
    return Access(buffer, _renamed(form, names), tuple(lengths[v] for v in order), mode)


def _numbered(form: Form, numbers: dict[object, int]) -> Form:
    if all(isinstance(atom, Digit) for atom, _ in form.terms):
        return form
    return with_atoms(
        form, lambda atom: Loaded(numbers.setdefault(atom.key, len(numbers)), atom.extent) if isinstance(atom, Loaded) else atom)
