"""Opcodes classified as in XLA's fusion passes (hlo_instruction.cc, cpu_instruction_fusion.cc, elemental_ir_emitter.cc)."""
from __future__ import annotations

from irscope.ops import hlo

ELEMENTWISE = hlo.named(
    "abs acos acosh asin asinh atanh round-nearest-afz round-nearest-even ceil count-leading-zeros convert bitcast-convert copy cosine "
    "cosh erf exponential exponential-minus-one floor imag is-finite log log-plus-one not negate popcnt real reduce-precision rsqrt "
    "logistic sign sine sinh sqrt cbrt tan tanh add atan2 compare complex divide maximum minimum multiply power remainder subtract and "
    "or xor shift-left shift-right-arithmetic shift-right-logical stochastic-convert select clamp constant rng map")
"""Opcodes for which ``HloInstruction::IsElementwise`` is true, including constants, which have no operands."""

CPU_LOOP_FUSIBLE = hlo.named(
    "bitcast broadcast concatenate dynamic-slice dynamic-update-slice gather iota pad reduce reshape reverse slice transpose")
"""Besides elementwise instructions, what XLA's CPU emitter computes inside a loop."""

CPU_CHEAP = hlo.named(
    "add and bitcast bitcast-convert broadcast ceil clamp count-leading-zeros compare complex concatenate constant copy copy-done "
    "copy-start dynamic-reshape dynamic-slice dynamic-update-slice floor get-tuple-element imag infeed iota is-finite maximum minimum "
    "multiply negate not opt-barrier or outfeed pad partition-id popcnt real reduce-precision replica-id reshape reverse "
    "round-nearest-afz round-nearest-even select shift-left shift-right-arithmetic shift-right-logical slice stochastic-convert "
    "subtract transpose tuple xor")
"""Opcodes that ``CpuInstructionFusion::IsExpensive`` calls cheap whatever their operands."""

CHEAP_WHEN_REAL = hlo.named("abs sign cosine sine tan")
"""Cheap on real numbers, expensive on complex ones."""

NEVER_FUSIBLE = hlo.named("domain parameter while conditional call")
"""Opcodes that ``HloInstruction::IsFusible`` always refuses."""

ALWAYS_FUSIBLE = hlo.named("fusion map reduce reduce-window")
"""Opcodes that ``IsFusible`` accepts without checking side effects."""

SIDE_EFFECTS = hlo.named(
    "all-gather-start all-gather-done all-reduce-start all-reduce-done collective-broadcast collective-permute-start "
    "collective-permute-done infeed outfeed recv recv-done send send-done")
"""Opcodes for which ``HasSideEffect`` is true whatever their attributes."""

COLLECTIVES = hlo.named("all-gather all-reduce all-to-all reduce-scatter collective-permute")
"""Opcodes with side effects if they use a channel outside of SPMD programs."""

EMITTED_AGAIN = hlo.named("concatenate dot dynamic-update-slice pad reduce reduce-window")
"""Opcodes that start a new basic block, so that their value is not cached (``ElementalIrEmitter::OpInvalidatesCache``)."""
