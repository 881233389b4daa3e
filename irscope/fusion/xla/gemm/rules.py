"""The refusals of XLA's GemmFusion, with XLA's words (triton_tiling_propagation.cc, gemm_fusion.cc, support_legacy.cc).

``{producer}`` and ``{consumer}`` are the ends of the edge that is not fused into the kernel.
"""
from __future__ import annotations

from dataclasses import dataclass

from irscope.fusion.xla.refusal import Refusal, Rule
from irscope.graph import Node

SPLIT_OUT = "transpose or reshape after the product, or give the product a batch dimension"
SLICE_OUT = "slice the slowest dimension in memory, or copy the slice once"

TINY = Rule("gemm-tiny", "", "the operands of {producer} together are so small that XLA leaves the product to a loop",
            "make the product larger, e.g. by batching; nothing is lost at this size")
VECTOR = Rule("gemm-vector", "", "XLA's simplifier turns a product with a vector of fewer than ten million elements into a multiplication "
              "and a reduction before this pass: {producer} becomes one, and what is around it is fused with that",
              "none is needed; to have a product, give the vector a second row")
UNSUPPORTED = Rule("gemm-unsupported", "", "Triton computes no such product as {producer}",
                   "cast the operands to a type that Triton multiplies")
FORM = Rule("gemm-form", "Exactly one contracting dimension is supported, got ",
            "{producer} contracts more than one dimension at once; XLA merges them before this pass where it can",
            "reshape the operands, so that one dimension is contracted")
FOUR_BITS = Rule("gemm-s4-batch", "Fusion is not possible because the parameter with the type S4 has minor batch dimension.",
                 "an operand of four bits has the batch dimension as its minor one in memory",
                 "transpose, so that the batch dimension is the first")
PURE = Rule("gemm-pure", "Pure Matmul", "nothing but {producer} would be in the kernel, and cuBLAS computes that")

TUPLE = Rule("gemm-tuple", "Unsupported instruction.", "a tuple is no array, and {consumer} would be computed in the kernel")
REDUCTION = Rule("gemm-reduction", "Reductions are not fused yet.", "a product's kernel computes no reduction",
                 "none inside this kernel: the reduction is a separate kernel")
PAD = Rule("gemm-pad", "Pads are not fused yet.", "a product's kernel pads nothing: it masks what is outside of the array",
           "pad after the next elementwise operation, or not at all: sizes need not be multiples of a tile")
POWER = Rule("gemm-power", "Not fusing power with multiple users because it may result in expensive op duplication.",
             "{producer} has other readers, and a power is expensive", "write small powers as products")
OPCODE = Rule("gemm-opcode", "Unsupported opcode.", "a product's kernel computes no {op}", "move it before what the kernel fuses")
OUTPUT_TYPE = Rule("gemm-output-type", "Unsupported output data type.", "a product's kernel computes nothing of type {type}",
                   "compute in f32, bf16, f16, s8, s16 or s32")
INPUT_TYPE = Rule("gemm-input-type", "Unsupported input data type.", "a product's kernel reads nothing of type {type} here",
                  "convert from f32, bf16, f16, s4, s8, s16 or s32")
ELEMENTWISE = Rule("gemm-elementwise", "Unsupported elementwise operation.", "a product's kernel computes no {op} of {type}",
                   "compute it in f32, or before the product")
RETYPED = Rule("gemm-bitcast-convert", "Bitcast-convert is not supported", "the bits are read as another type")

SHARED_PATH = Rule("gemm-into-concatenation", "No fusion into concatenations or dynamic slice.",
                   "{producer} is read by a concatenation or a dynamic slice, which the kernel reads from memory",
                   "concatenate parameters, and compute after the concatenation")
DYNAMIC_SLICE = Rule("gemm-dynamic-slice", "", "XLA does not fuse dynamic slices into products yet",
                     "slice at a fixed place, or take a whole batch")
BROADCAST_UP = Rule("gemm-broadcast-direction", "Unsupported broadcast direction.", "a kernel cannot broadcast its own result",
                    "broadcast where the value is read")
SLICE_UP = Rule("gemm-slice-direction", "Unsupported slice direction.", "a kernel does not slice its own result",
                "slice the operands instead: the rows of the left, the columns of the right")
NOT_BITCAST = Rule("gemm-reshape", "Non-bitcast reshape.", "the reshape moves data in memory", "give both sides the default layout")
UNIMPLEMENTED = Rule("gemm-unimplemented", "Unimplemented instruction.", "a product's kernel computes no {op}",
                     "move it before what the kernel fuses")
ONE = "a kernel computes one product: {producer} and {consumer} belong to two"
SECOND = Rule("gemm-second-product", "Unimplemented instruction.", ONE, "none: two products are two kernels")
SECOND_KERNEL = Rule("gemm-second-kernel", "Unsupported opcode.", ONE, "none: two products are two kernels")
BITCAST = Rule("gemm-bitcast", "Unsupported bitcast", "the reshape cuts across the pieces of a dimension, or through a slice",
               "reshape to sizes that divide each other")
TO_SCALAR = Rule("gemm-slice-to-scalar", "Slice to scalar is not implemented yet.", "the slice is a single element",
                 "read the element after the product")
TRIVIAL = Rule("gemm-trivial", "Cannot propagate further from trivial sized tensor", "sizes of one hide which dimension is which")
CONCATENATION = Rule("gemm-concatenation", "Unsupported concatenation.",
                     "only rows or columns that survive the product can be concatenated inside it",
                     "concatenate along the dimension that is not contracted")
SPLIT_CONCATENATION = Rule("gemm-concatenation-split", "Concatenations on split non-contracting dimensions are unsupported.",
                           "the concatenated dimension is in pieces", "reshape before the concatenation")
UNEVEN_CONCATENATION = Rule("gemm-concatenation-size", "At least one operand of concatenation can not be perfectly tiled.",
                            "each part of a concatenation has to be whole tiles of 64 rows", "pad each part to a multiple of 64")
SPLIT_SLICE = Rule("gemm-slice-split", "Slicing of fragmented dimension.", "the sliced dimension is in pieces", SLICE_OUT)
BROADCAST = Rule("gemm-broadcast", "Unsupported broadcast", "part of a dimension is broadcast: the kernel would read it at two strides",
                 "repeat whole dimensions, or apply it to the result")
CONFLICT = Rule("gemm-split-conflict", "Conflicting splits of splittable dimension",
                "the rows of the product are split at another size elsewhere in the kernel", SPLIT_OUT)
INNER_SLICE = Rule("gemm-slice-inner", "Sliced non-major-most fragment.",
                   "the slice is not along the slowest piece of its dimension: the elements read are not contiguous", SLICE_OUT)
TRANSPOSED = Rule("gemm-transposed", "Transpose within a dimension.", "the pieces of one dimension are in another order in memory",
                  SPLIT_OUT)
SECOND_SPLIT = Rule("gemm-second-split", "2nd split of a splittable dimension.", "the rows of the product are in three places", SPLIT_OUT)
SPLIT = Rule("gemm-split", "Unsupported split of a dimension.",
             "a dimension of the product is in two places, with another dimension between; only the rows of a product without batch may be",
             SPLIT_OUT)
NOT_WORTH = "Not obviously profitable to fuse as input."
MORE = "{producer} reads more bytes than it writes, which the kernel would read in its place, and "
INPUT = Rule("gemm-input-computed", NOT_WORTH, MORE + "not all of its operands are arrays without other readers",
             "compute {producer} from parameters that are read once, or apply it where its operands are computed")
INPUT_SHARED = Rule("gemm-input-shared", NOT_WORTH, MORE + "it has other readers, so it is computed anyway",
                    "compute {producer} for this product alone")
INPUT_PRODUCT = Rule("gemm-input-multiplied", NOT_WORTH, MORE + "XLA never fuses a multiplication of two arrays into its reader",
                     "multiply by a repeated row, column or number, or scale the result of the product")
SEVERAL_INPUTS = Rule("gemm-several-inputs", "Has multiple inputs - not properly analyzed yet.",
                      "{consumer} combines the product with a value that is computed: only arrays from outside, and repeated arrays or "
                      "numbers, are fused after the product", "compute the other side first, or apply it to an operand")
OUTPUT = Rule("gemm-output-worth", "Not obviously profitable to fuse as output.", "{consumer} writes more bytes than it reads",
              "widen the type where the value is read")
UNTILED = Rule("gemm-untiled", "", "no box of its result needs a box of its operand: a kernel that works by tiles cannot compute it",
               "split or merge dimensions, one at a time")
PARAMETERS = Rule("gemm-parameters", "", "one operand of a product may read {limit} arrays, and {producer} would make them more",
                  "combine the arrays in a kernel before")
READERS = Rule("gemm-several-readers", "", "{producer} is read more than once, so that it has to be written to memory",
               "read it once, or compute the product twice")

RULES = (TINY, VECTOR, UNSUPPORTED, FORM, FOUR_BITS, PURE, TUPLE, REDUCTION, PAD, POWER, OPCODE, OUTPUT_TYPE, INPUT_TYPE, ELEMENTWISE,
         RETYPED, SHARED_PATH, DYNAMIC_SLICE, BROADCAST_UP, SLICE_UP, NOT_BITCAST, UNIMPLEMENTED, SECOND, SECOND_KERNEL, BITCAST,
         TO_SCALAR, TRIVIAL, CONCATENATION, SPLIT_CONCATENATION, UNEVEN_CONCATENATION, SPLIT_SLICE, BROADCAST, CONFLICT, INNER_SLICE,
         TRANSPOSED, SECOND_SPLIT, SPLIT, INPUT, INPUT_SHARED, INPUT_PRODUCT, SEVERAL_INPUTS, OUTPUT, UNTILED, PARAMETERS, READERS)
"""All of them. XLA has three more that never apply: it tests no reduction (``Unsupported reduction.``, ``Only row reductions are
supported.``) and nothing else (``Function called on a wrong instruction.``) there."""


@dataclass(frozen=True, slots=True)
class No:
    """The rule that refused, the rest of XLA's message, the numbers that it compared, and what its sentence names: an opcode or a type."""

    rule: Rule
    more: str = ""
    numbers: str = ""
    op: str = ""
    type: str = ""

    @property
    def words(self) -> str:
        """XLA's words; empty if it decides without a message."""
        return self.rule.words + self.more

    def cause(self, producer: Node, consumer: Node) -> str:
        """The root cause in a sentence."""
        return Refusal(self._named(), self.numbers).cause(producer, consumer)

    def way_out(self, producer: Node, consumer: Node) -> str:
        """The smallest edit; empty if none is known."""
        return Refusal(self.rule).way_out(producer, consumer)

    def _named(self) -> Rule:
        cause = self.rule.cause.replace("{op}", self.op).replace("{type}", self.type).replace("{limit}", self.numbers)
        return Rule(self.rule.name, self.rule.words, cause, self.rule.way_out)
