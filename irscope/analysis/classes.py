"""What sort of work a node does, in the classes that XLA's own graph dumper colours by."""
from __future__ import annotations

from irscope.graph import Kind, Node, TensorType, Type

CLASSES = ("contraction", "reduction", "elementwise", "movement", "fusion", "control", "collective", "custom", "parameter", "constant",
           "free", "unknown")
"""All classes, the heavy ones first."""

_CONTRACTION = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot", "fft", "cholesky", "triangular-solve"})
_REDUCTION = frozenset({"reduce", "reduce-window", "scatter", "select-and-scatter", "sort", "topk", "reduce-precision", "scan",
                        "batch-norm-training", "batch-norm-grad", "batch-norm-inference"})
_MOVEMENT = frozenset({
    "transpose", "reshape", "gather", "broadcast", "copy", "slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "pad",
    "reverse",
    "iota", "copy-start", "copy-done", "dynamic-reshape", "bitcast-convert",
    "set-dimension-size",
})
_COLLECTIVE = frozenset({
    "all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter", "collective-broadcast", "ragged-all-to-all", "send",
    "recv", "send-done", "recv-done", "partition-id", "replica-id", "infeed", "outfeed",
})
_CONTROL = frozenset({
    "while", "conditional", "call", "async-start", "async-update", "async-done", "after-all", "add-dependency", "opt-barrier", "prim::If",
    "prim::Loop", "if", "match",
})
_FREE = frozenset({"tuple", "get-tuple-element", "get", "bitcast", "domain", "get-dimension-size"})


VALUES = frozenset({"constant", "prim::Constant", "prim::GetAttr", "prim::Uninitialized"})
"""Operators that name a value that is there already: a literal, a weight, a submodule."""
PLUMBING = frozenset({
    "tuple", "get-tuple-element", "get", "prim::ListConstruct", "prim::TupleConstruct", "prim::ListUnpack", "prim::TupleUnpack",
    "prim::TupleIndex", "prim::NumToTensor", "prim::unchecked_cast", "prim::data", "aten::__getitem__", "aten::Int", "aten::Bool",
    "aten::ScalarImplicit", "aten::size", "aten::len", "aten::dim",
})
"""Operators that pack, unpack or ask for a size, and move no data."""
VIEWS = frozenset("aten::" + name for name in (
    "view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "ravel", "squeeze", "unsqueeze", "transpose", "swapaxes",
    "swapdims", "permute", "t", "numpy_T", "mT", "movedim", "moveaxis", "expand", "broadcast_to", "expand_as", "detach", "alias",
    "contiguous", "slice", "narrow", "select", "unbind", "chunk", "split", "split_with_sizes", "tensor_split", "diagonal", "unfold",
    "view_as_real", "view_as_complex", "real", "imag", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "requires_grad_",
    "lift_fresh", "_unsafe_view", "_reshape_alias", "as_strided", "linalg_diagonal", "hsplit", "vsplit", "dsplit", "atleast_1d",
    "atleast_2d", "atleast_3d", "broadcast_tensors", "meshgrid", "conj", "_conj", "_neg_view", "mH", "matrix_H", "adjoint", "positive",
))
"""torch's operators whose result shows the memory of their first operand."""
DENSE = frozenset(("aten::reshape", "aten::reshape_as", "aten::flatten", "aten::ravel", "aten::contiguous"))
"""Those of them that copy instead, when the elements do not lie one after another."""
DROPOUTS = frozenset(("aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout"))


def is_view(node: Node) -> bool:
    """Whether an operator of torch gives back what it was given, or shows its memory, and moves nothing."""
    name = node.op.name
    if name in VIEWS:
        strides = getattr(node.operands[0].type, "strides", None) if name in DENSE and node.operands else None
        return strides is None or tuple(strides) == row_major(node.operands[0].type)
    if name in ("aten::to", "aten::type_as"):
        x = node.operands[0].type if node.operands else None
        return isinstance(x, TensorType) and isinstance(node.type, TensorType) and x.dtype is node.type.dtype
    if name in DROPOUTS and len(node.operands) == 3:
        return node.operands[2].attrs.get("value") in (0, False)
    return False


def row_major(type: Type) -> tuple[int, ...] | None:
    """The strides of an array without gaps; None where its shape is open."""
    if not isinstance(type, TensorType) or not type.is_static:
        return None
    strides, step = [], 1
    for n in reversed(type.dims()):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def work_class(node: Node) -> str:
    """The class of a node, one of :data:`CLASSES`."""
    name = node.op.name
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    if name in VALUES:
        return "constant"
    if name in PLUMBING:
        return "free"
    if name.endswith(("-start", "-done", "-update")) and name.rpartition("-")[0] in _COLLECTIVE:
        return "collective"
    word = name.removeprefix("aten::").removeprefix("nn.").rstrip("_")
    if word in _WORDS and node.op.dialect != "hlo":
        return _WORDS[word]
    if not node.op.known:
        return "unknown"
    kind = node.op.kind
    if kind is Kind.LEAF:
        return "constant"
    return _BY_KIND.get(kind, "custom")


def drawn_class(node: Node) -> str:
    """The class to draw a node in: of a fusion that of the heaviest work inside it."""
    if node.op.name != "fusion" or not node.bodies:
        return work_class(node)
    inside = {work_class(inner) for inner in node.bodies[0].nodes}
    return next((name for name in CLASSES if name in inside and name not in _LIGHT), "fusion")


def is_scalar(node: Node) -> bool:
    """Whether the node gives a single number."""
    return isinstance(node.type, TensorType) and not node.type.shape


# Operators of libraries, by their own words: what they are does not depend on whether irscope can take them apart.
_WORDS = {
    **dict.fromkeys("""linear matmul bmm mm addmm baddbmm mv dot einsum conv1d conv2d conv3d conv_transpose2d convolution _convolution dense
    batch_matmul contrib_conv2d_winograd scaled_dot_product_attention multi_head_attention lstm gru""".split(), "contraction"),
    **dict.fromkeys("""sum mean var std max min amax amin argmax argmin prod norm softmax log_softmax layer_norm batch_norm group_norm
    instance_norm max_pool2d avg_pool2d adaptive_avg_pool2d global_avg_pool2d adaptive_max_pool2d cumsum sort topk any all lrn
    cross_entropy_loss nll_loss l2_normalize""".split(), "reduction"),
    **dict.fromkeys("""view reshape transpose permute t contiguous slice select cat concatenate stack expand expand_as unsqueeze squeeze
    flatten embedding gather index index_select repeat chunk split narrow clone copy to pad strided_slice take expand_dims batch_flatten
    broadcast_to layout_transform unbind roll flip upsample upsampling reverse tile constant_pad_nd masked_fill
    """.split(), "movement"),
    **dict.fromkeys("""add sub mul div multiply subtract divide neg negative relu relu6 gelu silu sigmoid tanh exp log sqrt rsqrt pow erf
    abs clamp clip hardtanh hardswish hardsigmoid leaky_relu elu dropout where maximum minimum eq ne lt le gt ge bias_add cast type_as rsub
    floor ceil round sin cos softplus mish prelu logical_and logical_not power greater less equal not_equal""".split(), "elementwise"),
}
_LIGHT = frozenset({"fusion", "control", "parameter", "constant", "free", "unknown"})
_BY_KIND = {Kind.ELEMENTWISE: "elementwise", Kind.BROADCAST: "movement", Kind.INJECTIVE: "movement", Kind.REDUCTION: "reduction",
            Kind.CONTRACTION: "contraction", Kind.TUPLE: "free"}
_BY_NAME = {
    **dict.fromkeys(_CONTRACTION, "contraction"), **dict.fromkeys(_REDUCTION, "reduction"), **dict.fromkeys(_MOVEMENT, "movement"),
    **dict.fromkeys(_COLLECTIVE, "collective"), **dict.fromkeys(_CONTROL, "control"), **dict.fromkeys(_FREE, "free"),
    "parameter": "parameter", "constant": "constant", "fusion": "fusion", "custom-call": "custom", "rng": "elementwise",
    "rng-bit-generator": "elementwise",
}
