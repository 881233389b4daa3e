"""XLA's pass after its older GPU fusion pass: fuses a kernel into all the kernels that read it, or into none (``FusionMerger``).

As of jaxlib 0.4.35 (fusion_merger.cc, gpu_fusible.cc).
"""
from __future__ import annotations

from irscope.fusion.xla.gpu_kinds import earlier_kind
from irscope.fusion.xla.gpu_outputs import OutputLoop, is_input_reduction, is_turning
from irscope.fusion.xla.gpu_rules import CODE, budget_refusal
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.joining import merge_into
from irscope.fusion.xla.older_cost import MergerCost
from irscope.fusion.xla.pairs import finishes, pair_refusal
from irscope.fusion.xla.refusal import Refusal, Rule
from irscope.ops import hlo

MOSTLY = 0.5
"""A kernel that transposes this share of its elements transposes most of them."""

NO_LOOP = Rule("not-a-loop", "not a loop fusion",
               "{producer}'s kernel is made for a reduction, a transposition or a scatter, and is fused into no other")
BITCAST = Rule("bitcast-consumer", "not fusing bitcast ops", "some reader of {producer} only reshapes it, which is no kernel")
CUSTOM = Rule("library-call", "not fusing custom fusions", "some reader of {producer} is a library call or Triton kernel")
REDUCTIONS = Rule("other-reduction", "tiled reductions with different shapes",
                  "{producer}'s kernel and its reader's reduce arrays of different shapes")
TRANSPOSES = Rule("other-transpose", "tiled transposes with different shapes",
                  "{producer}'s kernel and its reader's transpose arrays of different shapes")
BOTH = Rule("reduce-and-transpose", "MOF-fusion of a transpose and a reduction",
            "one of {producer}'s kernel and its reader's reduces, and the other transposes: one kernel has tiles for only one of them")
UNTILED = Rule("untiled", "tiled transpose would become untiled",
               "{consumer}'s kernel reads the transpose in {producer} by more than steps that take each element once")
MOSTLY_TURNED = Rule("uncoalesced", "would read mostly uncoalesced",
                     "a reader of {producer} reduces, and {producer}'s kernel transposes most of its data")
SLOWER = Rule("slower", "will execute slower if fused",
              "XLA's cost model expects that computing {producer} in all its readers takes longer than reading it")


class Merger:
    """``FusionInstructionMerger`` on one computation. ``merged`` are the merged pairs (producer, user), in order."""

    def __init__(self, computation: Computation, cost: MergerCost) -> None:
        self.computation, self.cost = computation, cost
        self.merged: list[tuple[str, str]] = []

    def run(self) -> None:
        """Merge kernels in place, producers first."""
        for producer in self.computation.post_order():
            if producer.body is not None and producer.users and self.refusal(producer) is None:
                self._merge(producer)

    def refusal(self, producer: Instruction) -> Refusal | None:
        """Why a kernel is not fused into its users; None if it is fused into all."""
        if producer.kind != "kLoop":
            return Refusal(NO_LOOP)
        mine = OutputLoop.of(producer)
        plain = mine.reduces is None and mine.moves is None
        for user in producer.users:
            refusal = Refusal(BITCAST) if user.op is hlo.bitcast else Refusal(CUSTOM) if user.kind in ("kCustom", "triton") \
                else (None if plain else _apart(mine, OutputLoop.of(user), producer, user)) or pair_refusal(producer, user)
            if refusal is not None:
                return _of_one(refusal, producer, user)
        if any(map(is_input_reduction, producer.users)) and turns_most(producer):
            return Refusal(MOSTLY_TURNED)
        for user in producer.users:
            if refusal := budget_refusal(producer, user, self.cost.device):
                return _of_one(refusal, producer, user)
        for user in producer.users:
            if numbers := self.cost.too_large(producer, user):
                rule = Rule(CODE.name, f"if merged with {user.name} will generate huge IR", CODE.cause)
                return _of_one(Refusal(rule, numbers), producer, user)
        apart, fused = self.cost.gain(producer)
        return Refusal(SLOWER, f"{fused / 1000:.2f} us fused > {apart / 1000:.2f} us apart") if fused > apart else None

    def _merge(self, producer: Instruction) -> None:
        for user in list(producer.users):
            self.merged.append((producer.name, user.name))
            self.cost.forget(user)
            fusion = user if user.body is not None else self.computation.wrap(user, earlier_kind(user, producer))
            merge_into(fusion, producer)
            self.cost.forget(fusion)
        self.cost.forget(producer)
        self.computation.remove(producer)


def _of_one(refusal: Refusal, producer: Instruction, user: Instruction) -> Refusal:
    if len(producer.users) == 1:
        return refusal
    numbers = [refusal.numbers] if refusal.numbers else []
    return Refusal(refusal.rule, ", ".join([*numbers, f"into all its readers or none, and this one is %{user.name}"]))


def _apart(mine: OutputLoop, theirs: OutputLoop, producer: Instruction, user: Instruction) -> Refusal | None:
    """``FusionHeroesAreCompatible``: refuses two kernels whose heroes need different emitters or tiles."""
    if None not in (mine.reduces, theirs.reduces) and mine.reduces != theirs.reduces:
        return Refusal(REDUCTIONS)
    if None not in (mine.moves, theirs.moves) and mine.moves != theirs.moves:
        return Refusal(TRANSPOSES)
    if None not in (mine.moves, theirs.reduces) or None not in (mine.reduces, theirs.moves):
        return Refusal(BOTH)
    if mine.moves is not None and user.body is not None and not _straight(user.body.params[user.operands.index(producer)]):
        return Refusal(UNTILED)
    return None


def _straight(parameter: Instruction) -> bool:
    """Whether a single path leads from a parameter to its kernel's result, by steps that take each element once and read nothing else."""
    current = parameter
    while current.users:
        if len(current.users) > 1:
            return False
        current = next(iter(current.users))
        if current.users and not finishes(current):
            return False
    return current is not parameter


def turns_most(kernel: Instruction) -> bool:
    """``TransposesMostData``: whether the transposing instructions together have at least half the elements of the kernel's result."""
    return sum(i.elements for i in kernel.fused_body.instructions if is_turning(i)) >= MOSTLY * kernel.elements
