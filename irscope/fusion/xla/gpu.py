"""XLA's GPU fusion pass on one computation: repeatedly fuses the producer with the largest gain into all its users."""
from __future__ import annotations

from heapq import heappop, heappush

from irscope.fusion.xla.cpu import Outcome
from irscope.fusion.xla.creation import by_age
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import kind_with, traits_of_both
from irscope.fusion.xla.gpu_rules import NO_USERS, ONLY_BITCASTS, SLOWER, GpuRules, is_free_bitcast, is_fusible, is_triton, scatter_refusal
from irscope.fusion.xla.increments import Increments
from irscope.fusion.xla.instructions import Computation, Instruction, fuse_into
from irscope.fusion.xla.joining import merge_into
from irscope.fusion.xla.refusal import Refusal
from irscope.ops import hlo

NEVER = float("-inf")
FIRST = float("inf")


def run(computation: Computation, device: Device, cost: CostModel | None = None) -> Outcome:
    """Fuse a computation in place; ``cost`` is the device's cost model, if not the current one."""
    queue = _Queue(computation, device, cost)
    queue.run()
    return queue.outcome


class _Queue:
    """The producers that may be fused, largest gain first."""

    def __init__(self, computation: Computation, device: Device, cost: CostModel | None = None) -> None:
        self.computation = computation
        self.cost = cost or CostModel(device)
        self.rules = GpuRules(computation, self.cost)
        self.increments = Increments(self.cost)
        self.outcome = Outcome(computation)
        self.heap: list[tuple[float, int, Instruction]] = []
        self.priority: dict[Instruction, float] = {}
        self.number: dict[Instruction, int] = {}
        self.answers: dict[Instruction, dict[Instruction, Refusal | None]] = {}
        self.unasked: dict[Instruction, dict[Instruction, None]] = {}
        self.refusing: dict[Instruction, dict[Instruction, None]] = {}
        self.blocked: set[Instruction] = set()
        self.whole: dict[Instruction, Refusal | None] = {}

    def run(self) -> None:
        order = self.computation.post_order()
        for i, instruction in enumerate(by_age(self.computation, order)):
            self.number[instruction] = i
        for instruction in order:
            if self._is_candidate(instruction):
                self._update(instruction)
        while (producer := self._next()) is not None:
            self._fuse(producer)
        for producer in self.computation.instructions:
            if producer in self.blocked:
                self.whole[producer] = self._refusal_of_some_user(producer)
        self._constants()

    def _is_candidate(self, instruction: Instruction) -> bool:
        return bool(instruction.users) and instruction.is_fusible \
            and instruction.op not in (hlo.parameter, hlo.tuple, hlo.get_tuple_element)

    def _next(self) -> Instruction | None:
        while self.heap:
            priority, _, producer = heappop(self.heap)
            if self.priority.get(producer) == -priority:
                del self.priority[producer]
                return producer
        return None

    def _update(self, producer: Instruction) -> None:
        """Update the priority of a producer."""
        priority = self._priority(producer, self.priority.pop(producer, None))
        if priority >= 0:
            self.priority[producer] = priority
            heappush(self.heap, (-priority, -self.number[producer], producer))

    def _priority(self, producer: Instruction, before: float | None) -> float:
        """The priority of a producer in nanoseconds, which had the priority ``before`` (None: it was not in the queue)."""
        self.whole.pop(producer, None)
        self.blocked.discard(producer)
        if is_free_bitcast(producer):
            return FIRST
        if producer.op is hlo.constant:
            return NEVER
        if self._is_blocked(producer):
            self.blocked.add(producer)
            return NEVER
        change = self.increments.change(producer) if before is not None else None
        if before is not None and change is not None:
            priority = before + change
        else:
            self.increments.estimated(producer)
            unfused, fused = self.cost.gain(producer)
            priority = unfused - fused
        if priority < 0:
            self.whole[producer] = Refusal(SLOWER, self._loss(producer, -priority))
        return priority

    def _loss(self, producer: Instruction, loss: float) -> str:
        """A loss in nanoseconds, in words."""
        unfused, fused = self.cost.gain(producer)
        if unfused < fused:
            return f"{fused / 1000:.2f} us fused > {unfused / 1000:.2f} us apart"
        return f"a loss of {loss / 1000:.2f} us, as XLA updates its estimate while it fuses other kernels"

    def _is_blocked(self, producer: Instruction) -> bool:
        """Whether some user cannot take a producer, or all users are bitcasts. Users are tested again when they change."""
        users = producer.users
        refusing = self.refusing.get(producer)
        if refusing:
            for user in [u for u in refusing if u not in users]:
                del refusing[user]
            if refusing:
                return True
        if all(is_free_bitcast(user) for user in users):
            return True
        unasked = self.unasked.get(producer)
        if unasked is None:
            unasked = self.unasked[producer] = dict.fromkeys(users)
        while unasked:
            user, _ = unasked.popitem()
            if user in users and not is_free_bitcast(user) and self._refusal(producer, user) is not None:
                self.refusing.setdefault(producer, {})[user] = None
                return True
        return False

    def _refusal_of_some_user(self, producer: Instruction) -> Refusal | None:
        """XLA's ``CanFuseWithAllNonBitcastUsers``."""
        if not producer.users:
            return Refusal(NO_USERS)
        others = [user for user in producer.users if not is_free_bitcast(user)]
        for user in others:
            refusal = self._refusal(producer, user)
            if refusal is not None:
                if len(producer.users) > 1:
                    return Refusal(refusal.rule, refusal.numbers, f"into all its readers or none, and this one is %{user.name}")
                return refusal
        return None if others else Refusal(ONLY_BITCASTS)

    def _refusal(self, producer: Instruction, consumer: Instruction) -> Refusal | None:
        known = self.answers.setdefault(producer, {})
        if consumer not in known:
            known[consumer] = self.rules.refusal(producer, consumer)
        return known[consumer]

    def _fuse(self, producer: Instruction) -> None:
        """Fuse a producer into its users, and update the priorities that this affects."""
        consumers = list(producer.users)
        if is_free_bitcast(producer):
            consumers = [c for c in consumers if self._refusal(producer, c) is None]
        changed: dict[Instruction, None] = {}
        self.increments.begin(producer, consumers, self.priority)
        for consumer in consumers:
            if is_free_bitcast(consumer):
                continue
            self.outcome.fused.append((producer.name, consumer.name))
            fusion = self._into(producer, consumer)
            changed.pop(consumer, None)
            for operand in fusion.operands:
                if operand is not producer and operand.is_fusible \
                        and operand.op not in (hlo.constant, hlo.get_tuple_element, hlo.parameter):
                    changed[operand] = None
                    self.increments.add(operand, fusion)
            changed[fusion] = None
        self._forget(producer)
        if not producer.users:
            changed.pop(producer, None)
            self.priority.pop(producer, None)
            self.increments.invalidate(producer)
            self.computation.remove(producer)
        for instruction in changed:
            if self._is_candidate(instruction):
                self._update(instruction)

    def _into(self, producer: Instruction, consumer: Instruction) -> Instruction:
        triton = is_triton(producer) or is_triton(consumer)
        kind = "triton" if triton else kind_with(consumer, producer)
        fusion = consumer
        self.increments.invalidate(consumer)
        if consumer.body is None:
            self._forget(consumer)
            fusion = self.computation.wrap(consumer, kind)
            self.number[fusion] = len(self.number)
            self.priority.pop(consumer, None)
            if consumer in self.whole:
                self.whole[fusion] = self.whole[consumer]
            if consumer in self.blocked:
                self.blocked.add(fusion)
        before = self.cost.before(producer, fusion)
        tiled = self.cost.tiles.together(producer, fusion) if triton else None
        alike = self.cost.tiles.likeness(producer, fusion) if triton else None
        both = traits_of_both(producer, fusion)
        self._forget(fusion)
        if producer.body is not None:
            merge_into(fusion, producer)
        else:
            fuse_into(fusion, producer)
        fusion.kind, fusion.traits = kind, both
        if tiled is not None:
            fusion.tile, fusion.warps = tiled.tile, tiled.warps
        self._forget(fusion)
        if alike is not None:
            self.cost.tiles.made(fusion, alike)
        if before is not None:
            self.cost.after(fusion, before)
        return fusion

    def _forget(self, instruction: Instruction) -> None:
        self.cost.forget(instruction)
        self.answers.pop(instruction, None)
        self.unasked.pop(instruction, None)
        self.refusing.pop(instruction, None)
        for operand in instruction.operands:
            if operand in self.answers:
                self.answers[operand].pop(instruction, None)
            if operand in self.unasked:
                self.unasked[operand][instruction] = None
            if operand in self.refusing:
                self.refusing[operand].pop(instruction, None)

    def _constants(self) -> None:
        """Fuse constants of one element into every kernel that reads them, except as the scattered operand of a scatter."""
        for constant in [i for i in self.computation.instructions
                         if i.op is hlo.constant and i.is_array and not any(d != 1 for d in i.dims)]:
            for user in list(constant.users):
                if is_fusible(user) and not is_free_bitcast(user) and scatter_refusal(constant, user) is None:
                    self.outcome.fused.append((constant.name, user.name))
                    self._into(constant, user)
            if not constant.users:
                self.computation.remove(constant)
        for instruction in self.computation.instructions:
            for consumer in instruction.users:
                refusal = self._final_refusal(instruction, consumer)
                if refusal is not None:
                    self.outcome.refusals[instruction.name, consumer] = refusal

    def _final_refusal(self, producer: Instruction, consumer: Instruction) -> Refusal | None:
        """Why two kernels were not fused: for a reason of the pair, or because another user cannot take the producer."""
        whole = self.whole.get(producer)
        if whole is not None and (whole.rule is ONLY_BITCASTS or is_free_bitcast(consumer)):
            return whole
        return self.rules.refusal(producer, consumer) or whole
