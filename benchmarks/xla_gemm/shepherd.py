"""Moves bitcasts away from a dot: above its operands, below its users (``ShepherdBitcastsAwayFromDot``).

At a parameter of the computation a bitcast vanishes, and the parameter takes its form; likewise at the result.
"""
from __future__ import annotations

from benchmarks.xla_gemm.bitcasts import ABOVE_BITCAST, BITCAST_ABOVE, Moved
from irscope.fusion.closure import closure
from irscope.fusion.xla.gemm.bitcasts import ArrayForm, bitcast_of, form_of, reform
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.ops import hlo

BITCASTS = hlo.named("bitcast reshape")
Origins = dict[Instruction, Instruction]
"""For each instruction of a search space its original in the text; added bitcasts have none."""


class Shepherd:
    """Moves the bitcasts of one computation."""

    def __init__(self, computation: Computation, dot: Instruction, origins: Origins) -> None:
        self._computation = computation
        self._dot = dot
        self._origins = origins

    def move(self) -> None:
        """Move every bitcast as far as it goes.

        One that cannot move is retried when another arrives next to it: all users of a parameter move together or not at all.
        """
        behind = set(closure([self._dot], lambda i: i.users)) - {self._dot}
        pending = [i for i in reversed(self._computation.post_order()) if i.op in BITCASTS]
        while pending:
            bitcast = pending.pop()
            if bitcast not in self._computation.instructions:
                continue
            again = self._sink(bitcast, behind) if bitcast in behind else self._hoist(bitcast)
            for near in reversed(again):
                pending += [user for i in (near, *near.operands[:1]) for user in i.users if user.op in BITCASTS]
                pending += [i for i in (near, *near.operands[:1]) if i.op in BITCASTS]

    def _hoist(self, bitcast: Instruction) -> list[Instruction]:
        """Swap a bitcast with its operand; returns the neighbours of bitcasts that may move now."""
        source, form = bitcast.operands[0], form_of(bitcast)
        if source.op is hlo.parameter:
            if all(u.op in BITCASTS and form_of(u) == form for u in source.users):
                readers = list(source.users)
                reform(source, form)
                for reader in readers:
                    self._replace(reader, source)
                return [source]
            return []
        if source.op in BITCAST_ABOVE:
            found = BITCAST_ABOVE[source.op](source, form)
            if found is None:
                return []
            above = self._computation.add(bitcast_of(source.operands[0], found[0]))
            return [self._take_place(bitcast, source, [above], form, found), above]
        if source.op is hlo.constant:
            return [self._take_place(bitcast, source, [], form)] if source.elements == 1 else []
        if not source.is_elementwise or source.op is hlo.fusion:
            return []
        moved = [self._computation.add(bitcast_of(operand, form)) for operand in source.operands]
        return [self._take_place(bitcast, source, moved, form), *moved]

    def _sink(self, bitcast: Instruction, behind: set[Instruction]) -> list[Instruction]:
        """Swap a bitcast with its user; returns the neighbours of bitcasts that may move now."""
        computation, source = self._computation, bitcast.operands[0]
        if bitcast is computation.root:
            computation.root = source
            computation.remove(bitcast)
            return [source]
        if len(bitcast.users) != 1:
            return []
        user, form = next(iter(bitcast.users)), form_of(source)
        found: Moved | None = None
        if user.op in ABOVE_BITCAST:
            found = ABOVE_BITCAST[user.op](user, form)
            if found is None:
                return []
            operands, added = [source], []
        elif user.is_elementwise and user.op is not hlo.fusion:
            added = [self._computation.add(bitcast_of(operand, form)) for operand in user.operands if operand is not bitcast]
            others = iter(added)
            operands = [source if operand is bitcast else next(others) for operand in user.operands]
        else:
            return []
        inner = self._like(user, operands, found[0] if found else form, found)
        below = self._computation.add(bitcast_of(inner, form_of(user)))
        behind |= {inner, below, *(a for a in added if a.operands[0] in behind)}
        if user in self._origins:
            self._origins[inner] = self._origins[below] = self._origins[user]
        self._replace(user, below)
        return [*added, inner, below]

    def _take_place(self, bitcast: Instruction, source: Instruction, operands: list[Instruction], form: ArrayForm,
                    moved: Moved | None = None) -> Instruction:
        """Replace a bitcast by ``source`` in its form, which is returned."""
        new = self._like(source, operands, form, moved)
        if source in self._origins:
            self._origins[new] = self._origins[source]
        self._replace(bitcast, new)
        return new

    def _like(self, old: Instruction, operands: list[Instruction], form: ArrayForm, moved: Moved | None) -> Instruction:
        new = Instruction(old.op, old.type, operands, old.node, old.attrs if moved is None else {**old.attrs, "dimensions": moved[1]})
        return self._computation.add(reform(new, form))

    def _replace(self, old: Instruction, new: Instruction) -> None:
        """Replace ``old`` by ``new``; removes what has no users left."""
        self._computation.replace_uses(old, new)
        self._computation.drop(old)
