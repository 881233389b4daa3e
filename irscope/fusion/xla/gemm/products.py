"""XLA's ``GemmFusion`` (pass ``triton-gemm-rewriter``) on a computation: which dots become Triton kernels, and what is fused with them.

It runs before layout assignment and before ``priority-fusion``. Afterwards the autotuner may still undo a kernel and call cuBLAS;
that depends on measurements on the device, and is not simulated.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from irscope.fusion.dimensions import without
from irscope.fusion.xla.gemm.bitcasts import bitcast_of, form_of
from irscope.fusion.xla.gemm.grow import Asked, Kernel, grown
from irscope.fusion.xla.gemm.rules import FOUR_BITS, PURE, TINY, VECTOR, No
from irscope.fusion.xla.gemm.steps import reads_batch_first
from irscope.fusion.xla.gemm.support import unsupported
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.softmax import bails_out
from irscope.ops import hlo
from irscope.ops.attributes import Dot

SMALL = 100
"""Elements of both operands without batch below which a float dot is left to a loop (``xla_gpu_gemm_rewrite_size_threshold``)."""
REDUCED = 10_000_000
"""Elements of both operands below which XLA's simplifier reduces the strength of a dot with a vector (``ShouldStrengthReduceDotToReduce``
of gpu algebraic_simplifier.cc): 3,162 by 3,161 is reduced, 3,162 by 3,162 is not."""
LOOPED = frozenset(("f16", "f32", "bf16"))
"""Result types that XLA's loop emitter supports (``IsDotSupportedByClassicalEmitters``)."""
BARE = hlo.named("bitcast dot parameter reshape")
"""Operators of a kernel that has nothing but the dot."""
PRODUCTS = hlo.named("dot scaled-dot")


@dataclass(frozen=True, slots=True)
class GemmSettings:
    """XLA's options: whether a dot without anything to fuse becomes a kernel too (``xla_gpu_triton_gemm_any``, on by default), and the
    size below which none is made; ``search``, if given, finds the kernel of a dot, as the pass's second version does
    (``benchmarks/xla_gemm/search.py``). ``simplified`` says that XLA's simplifier has run, so the remaining dots with a vector stay."""

    any_product: bool = True
    small: int = SMALL
    search: Callable[[Instruction, Computation], Kernel] | None = None
    simplified: bool = True


DEFAULT = GemmSettings()


@dataclass(slots=True)
class Product:
    """The decision on a dot: its kernel, or why there is none. ``readers`` are its users at that time."""

    dot: Instruction
    kernel: Kernel | None
    no: No | None = None
    readers: tuple[Instruction, ...] = ()

    @property
    def asked(self) -> list[Asked]:
        """The tested edges around the dot, whether or not the kernel was made in the end."""
        return self.kernel.asked if self.kernel is not None else []

    @property
    def is_made(self) -> bool:
        """Whether the dot becomes a Triton kernel."""
        return self.no is None


def product_of(dot: Instruction, computation: Computation, device: Device, settings: GemmSettings = DEFAULT) -> Product:
    """XLA's decision on a dot of a computation in its current state."""
    if dot.op is hlo.dot:
        if (small := _small(dot)) < settings.small and dot.dtype in LOOPED:
            return Product(dot, None, No(TINY, numbers=f"{small} < {settings.small} elements"))
        if not settings.simplified and small < REDUCED and _has_vector(dot):
            return Product(dot, None, No(VECTOR, numbers=f"{small} < {REDUCED} elements"))
        if (no := unsupported(dot, device)) is not None:
            return Product(dot, None, no)
        if settings.search is not None:
            return Product(dot, settings.search(dot, computation))
    kernel = grown(dot, device, computation.root)
    if dot.op is hlo.dot:
        if any(i.dtype == "s4" for i in kernel.inputs) and reads_batch_first(dot, computation.root):
            return Product(dot, kernel, No(FOUR_BITS))
        chosen = Dot.of(dot).algorithm.lower().startswith(("dot_bf16_bf16_f32", "dot_tf32", "dot_f32_f32_f32"))
        if not settings.any_product and not chosen and all(i.op in BARE for i in kernel.body.instructions):
            return Product(dot, kernel, No(PURE))
    return Product(dot, kernel)


def _small(dot: Instruction) -> int:
    """Elements of both operands, batches left out (``IsMatrixMultiplicationTooSmallForRewriting``)."""
    return sum(prod(without(operand.dims, batch)) for operand, batch in zip(dot.operands, Dot.of(dot).batch_dims, strict=False))


def _has_vector(dot: Instruction) -> bool:
    """Whether one side of a dot keeps a single row."""
    attrs = Dot.of(dot)
    return any(all(size == 1 or d in batch or d in contracted for d, size in enumerate(operand.dims))
               for operand, batch, contracted in zip(dot.operands, attrs.batch_dims, attrs.contracting_dims, strict=False))


def rewrite(computation: Computation, device: Device, settings: GemmSettings = DEFAULT) -> list[Product]:
    """Replace the dots of a computation by Triton kernels, in post-order, as XLA does; returns the decision on each."""
    if bails_out(device):
        return []
    made = []
    for dot in computation.post_order():
        if dot.op not in PRODUCTS or dot not in computation.instructions:
            continue
        product = product_of(dot, computation, device, settings)
        product.readers = tuple(dot.users)
        made.append(product)
        if product.is_made and product.kernel is not None:
            put(computation, product.kernel)
    return made


def put(computation: Computation, kernel: Kernel) -> Instruction:
    """Replace the instruction whose value a kernel computes by the kernel; removes what has no users left.

    It is a custom fusion that no later pass extends: those that are extended have the kind ``__triton``, this one ``__triton_gemm``.
    """
    output = kernel.output
    assert output is not None
    fusion = Instruction(hlo.fusion, kernel.body.root.type, kernel.inputs, None)
    fusion.kind, fusion.body = "kCustom", kernel.body
    new = computation.add(fusion)
    if form_of(fusion) != form_of(output):
        new = computation.add(bitcast_of(fusion, form_of(output)))
    computation.replace_uses(output, new)
    computation.drop(output)
    return fusion
