"""Index expressions: integer functions of loop variables, compared as Inductor does.

A form is a constant and a sum of atoms, each with a coefficient. Where loops run over other dimensions than a value has, an atom is a
*digit* of a loop variable: ``(i // low) % extent``. So a reshape of (4, 6) to (24) and back simplifies to nothing::

    24 i0                     the flat index of an element of f32[4,6,4] seen as [24,4]
    -> 24 * (i0 // 6) ...     a quotient stays only if digits do not end at the same places
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from irscope.fusion.views import row_major
from irscope.source import UserError

MAX_ATOMS = 500
"""The most atoms of an index expression, those inside quotients included: each reshape that divides a quotient again doubles them."""


class Digit(NamedTuple):
    """``(variable // low) % extent``; the variable itself if low is 1 and extent is that of the loop."""

    variable: int
    low: int
    extent: int


class Part(NamedTuple):
    """``(inner // divisor) % modulus`` if it does not decompose into digits."""

    inner: Form
    divisor: int
    modulus: int


class Loaded(NamedTuple):
    """A number below ``extent`` that is read from memory, such as an index of gather. ``key`` identifies what is read."""

    key: Hashable
    extent: int


Atom = Digit | Part | Loaded


class Form(NamedTuple):
    """``constant + sum(coefficient * atom)``, the terms in a fixed order."""

    constant: int
    terms: tuple[tuple[Atom, int], ...] = ()


ZERO = Form(0)


def number(value: int) -> Form:
    """A constant."""
    return Form(value)


def variable(index: int, size: int) -> Form:
    """A loop variable that runs from 0 to ``size``; a constant 0 for a loop of at most one iteration."""
    return Form(0, ((Digit(index, 1, size), 1),)) if size > 1 else ZERO


def loaded(key: Hashable, extent: int) -> Form:
    """An index that is read from memory."""
    return Form(0, ((Loaded(key, extent), 1),))


def is_indirect(form: Form) -> bool:
    """Whether part of the index is read from memory."""
    return any(isinstance(a, Loaded) or (isinstance(a, Part) and is_indirect(a.inner)) for a, _ in form.terms)


def weighted(forms: Sequence[Form], weights: Sequence[int], offset: int = 0) -> Form:
    """``offset + sum(weight * form)``."""
    constant = offset
    terms: dict[Atom, int] = {}
    for form, weight in zip(forms, weights):
        if not weight:
            continue
        constant += weight * form.constant
        for atom, coefficient in form.terms:
            terms[atom] = terms.get(atom, 0) + weight * coefficient
    return form_of(constant, terms.items())


def form_of(constant: int, terms: Iterable[tuple[Atom, int]]) -> Form:
    """The form of these terms, with adjacent digits merged, in order."""
    kept = {atom: coefficient for atom, coefficient in terms if coefficient}
    if len(kept) > 1:
        kept = _joined(kept)
    return Form(constant, tuple(sorted(kept.items(), key=_order)))


def with_atoms(form: Form, change: Callable[[Atom], Atom | None]) -> Form:
    """The form with ``change`` applied to each digit and loaded number, also inside quotients; None drops the term."""
    terms = [(Part(with_atoms(atom.inner, change), atom.divisor, atom.modulus) if isinstance(atom, Part) else change(atom), coefficient)
             for atom, coefficient in form.terms]
    return form_of(form.constant, [(atom, coefficient) for atom, coefficient in terms if atom is not None])


def _joined(terms: dict[Atom, int]) -> dict[Atom, int]:
    """Merges adjacent digits: ``i % 4 + 4 * (i // 4 % 3)`` is ``i % 12``."""
    digits = sorted(atom for atom in terms if isinstance(atom, Digit))
    out: dict[Atom, int] = {atom: coefficient for atom, coefficient in terms.items() if not isinstance(atom, Digit)}
    last: Digit | None = None
    for digit in digits:
        coefficient = terms[digit]
        if (last is not None and last.variable == digit.variable and last.low * last.extent == digit.low
                and out[last] * last.extent == coefficient):
            coefficient = out.pop(last)
            digit = Digit(digit.variable, last.low, last.extent * digit.extent)
        out[digit] = coefficient
        last = digit
    return out


def _order(term: tuple[Atom, int]) -> tuple[int, int, int, int, str]:
    atom = term[0]
    if isinstance(atom, Digit):
        return (0, atom.variable, atom.low, atom.extent, "")
    return (1, 0, 0, 0, repr(atom))


def span(form: Form) -> tuple[int, int]:
    """The smallest and the largest value of the form, or bounds of them."""
    low = high = form.constant
    for atom, coefficient in form.terms:
        reach = coefficient * ((atom.modulus if isinstance(atom, Part) else atom.extent) - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high


def divided(form: Form, divisor: int) -> tuple[Form, Form]:
    """The quotient and the remainder for a positive divisor."""
    if divisor == 1:
        return form, ZERO
    above: dict[Atom, int] = {}
    below: dict[Atom, int] = {}
    for atom, coefficient in form.terms:
        if coefficient % divisor == 0:
            above[atom] = above.get(atom, 0) + coefficient // divisor
        elif isinstance(atom, Digit) and 0 < coefficient < divisor < coefficient * atom.extent and divisor % coefficient == 0:
            step = divisor // coefficient
            below[Digit(atom.variable, atom.low, step)] = coefficient
            high = Digit(atom.variable, atom.low * step, -(-atom.extent // step))
            above[high] = above.get(high, 0) + 1
        else:
            below[atom] = coefficient
    rest = form_of(form.constant % divisor, below.items())
    least, most = span(rest)
    if least >= 0 and most < divisor:
        return form_of(form.constant // divisor, above.items()), rest
    if _has_too_many_atoms(form):
        raise UserError("an index passes through too many reshapes and transposes: Inductor's expression for it is too long",
                        "take another policy: --policy irscope")
    least, most = span(form)
    quotient = Form(0, ((Part(form, divisor, max(1, most // divisor + 1)), 1),))
    return quotient, Form(0, ((Part(form, 1, divisor), 1),))


def _has_too_many_atoms(form: Form) -> bool:
    """Whether a form has more than ``MAX_ATOMS``."""
    count, stack = 0, [form]
    while stack and count <= MAX_ATOMS:
        terms = stack.pop().terms
        count += len(terms)
        stack.extend(atom.inner for atom, _ in terms if isinstance(atom, Part))
    return count > MAX_ATOMS


def digit_of(form: Form, low: int, extent: int) -> Form:
    """``(form // low) % extent``; 0 if there are no elements."""
    if extent < 1 or low < 1:
        return ZERO
    quotient = divided(form, low)[0]
    least, most = span(quotient)
    return quotient if least >= 0 and most < extent else divided(quotient, extent)[1]


def replaced(form: Form, values: Sequence[Form]) -> Form:
    """The form with each loop variable replaced by a form of other variables."""
    if not form.terms:
        return form
    parts: list[Form] = []
    weights: list[int] = []
    for atom, coefficient in form.terms:
        weights.append(coefficient)
        if isinstance(atom, Digit):
            parts.append(digit_of(values[atom.variable], atom.low, atom.extent))
        elif isinstance(atom, Part):
            parts.append(digit_of(replaced(atom.inner, values), atom.divisor, atom.modulus))
        else:
            parts.append(loaded(_replaced_key(atom.key, values), atom.extent))
    return weighted(parts, weights, form.constant)


def _replaced_key(key: Hashable, values: Sequence[Form]) -> Hashable:
    """The key with the coordinates within what is read replaced; the rest stays."""
    if isinstance(key, Form):
        return replaced(key, values)
    if isinstance(key, tuple):
        return tuple(_replaced_key(part, values) for part in key)
    return key


def at(form: Form, point: Sequence[int]) -> int:
    """The value at one iteration; values read from memory count as 0."""
    total = form.constant
    for atom, coefficient in form.terms:
        if isinstance(atom, Digit):
            total += coefficient * (point[atom.variable] // atom.low % atom.extent)
        elif isinstance(atom, Part):
            total += coefficient * (at(atom.inner, point) // atom.divisor % atom.modulus)
    return total


def steps(form: Form, variables: Sequence[int], count: int) -> list[int]:
    """How far the index moves when one variable goes from 0 to 1 and the other ``count`` stay 0."""
    point = [0] * count
    origin = at(form, point)
    found = []
    for v in variables:
        point[v] = 1
        found.append(at(form, point) - origin)
        point[v] = 0
    return found


def variables_of(form: Form) -> set[int]:
    """The loop variables that the index depends on, except those in indices of memory reads."""
    found: set[int] = set()
    stack = [form]
    while stack:
        for atom, _ in stack.pop().terms:
            if isinstance(atom, Digit):
                found.add(atom.variable)
            elif isinstance(atom, Part):
                stack.append(atom.inner)
    return found


@lru_cache(maxsize=10_000)
def coordinates(shape: tuple[int, ...]) -> tuple[Form, ...]:
    """One variable for each dimension of a shape."""
    return tuple(variable(i, size) for i, size in enumerate(shape))


def unflattened(flat: Form, shape: Sequence[int]) -> tuple[Form, ...]:
    """The coordinates in a shape of the element with this row-major number."""
    return tuple(digit_of(flat, step, size) if size != 1 else ZERO for size, step in zip(shape, row_major(shape)))
