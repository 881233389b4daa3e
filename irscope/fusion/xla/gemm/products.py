"""XLA's ``GemmFusion`` (pass ``triton-gemm-rewriter``) over a computation: which products become Triton kernels, and what goes with them.

It runs before layouts are assigned and before ``priority-fusion``. Behind it the autotuner may still take a kernel apart and call cuBLAS;
what that decides depends on measurements on the device, and is not simulated.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import prod

from irscope.fusion.dimensions import without
from irscope.fusion.xla.gemm.bitcasts import bitcast_of, form_of
from irscope.fusion.xla.gemm.grow import Asked, Kernel, grown
from irscope.fusion.xla.gemm.rules import FOUR_BITS, PURE, TINY, VECTOR, No
from irscope.fusion.xla.gemm.search import searched
from irscope.fusion.xla.gemm.steps import reads_batch_first
from irscope.fusion.xla.gemm.support import unsupported
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.softmax import bails_out
from irscope.ops import hlo
from irscope.ops.attributes import Dot

SMALL = 100
"""Elements of both operands without batch below which a float product is left to a loop (``xla_gpu_gemm_rewrite_size_threshold``)."""
REDUCED = 10_000_000
"""Elements of both operands below which XLA's simplifier makes a reduction of a product with a vector (``ShouldStrengthReduceDotToReduce``
of gpu algebraic_simplifier.cc): 3,162 by 3,161 is reduced, 3,162 by 3,162 is not."""
LOOPED = frozenset(("f16", "f32", "bf16"))
"""Results that XLA's loop emitter computes (``IsDotSupportedByClassicalEmitters``)."""
BARE = hlo.named("bitcast dot parameter reshape")
"""What makes a kernel a product and nothing else."""
PRODUCTS = hlo.named("dot scaled-dot")


@dataclass(frozen=True, slots=True)
class Settings:
    """XLA's options: whether a product with nothing around it becomes a kernel too (``xla_gpu_triton_gemm_any``, on by default), and the
    size below which none is made; ``by_tiles`` is the pass's second version (:mod:`irscope.fusion.xla.gemm.search`). ``simplified`` says
    that XLA's simplifier has run, so that every product with a vector is one to stay."""

    any_product: bool = True
    small: int = SMALL
    by_tiles: bool = False
    simplified: bool = True


DEFAULT = Settings()


@dataclass(slots=True)
class Product:
    """What becomes of a product: its kernel, or why none is made. ``readers`` are those that it had then."""

    dot: Instruction
    kernel: Kernel | None
    no: No | None = None
    readers: tuple[Instruction, ...] = ()

    @property
    def asked(self) -> list[Asked]:
        """The edges around the product that were looked at, whether or not the kernel was made in the end."""
        return self.kernel.asked if self.kernel is not None else []

    @property
    def is_made(self) -> bool:
        """Whether the product becomes a Triton kernel."""
        return self.no is None


def product_of(dot: Instruction, computation: Computation, device: Device, settings: Settings = DEFAULT) -> Product:
    """What XLA makes of a product of a computation as it stands now."""
    if dot.op is hlo.dot:
        if (small := _small(dot)) < settings.small and dot.dtype in LOOPED:
            return Product(dot, None, No(TINY, numbers=f"{small} < {settings.small} elements"))
        if not settings.simplified and small < REDUCED and _has_vector(dot):
            return Product(dot, None, No(VECTOR, numbers=f"{small} < {REDUCED} elements"))
        if (no := unsupported(dot, device)) is not None:
            return Product(dot, None, no)
        if settings.by_tiles:
            return Product(dot, searched(dot, computation))
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
    """Whether one side of a product keeps a single row."""
    attrs = Dot.of(dot)
    return any(all(size == 1 or d in batch or d in contracted for d, size in enumerate(operand.dims))
               for operand, batch, contracted in zip(dot.operands, attrs.batch_dims, attrs.contracting_dims, strict=False))


def rewrite(computation: Computation, device: Device, settings: Settings = DEFAULT) -> list[Product]:
    """Put Triton kernels in place of the products of a computation, in post-order, as XLA does; what became of each is returned."""
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
    """A kernel in place of the instruction whose value it gives; what nobody reads any more is dropped.

    It is a custom fusion, to which no later pass adds: those that take more are of the kind ``__triton``, this one is ``__triton_gemm``.
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
