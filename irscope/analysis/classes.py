"""The class of work of a node, as XLA's own graph dumper colours nodes."""
from __future__ import annotations

from functools import lru_cache

from irscope.formats.torchscript.attributes import Constant
from irscope.graph import Kind, Node, Op, TensorType, Type
from irscope.ops import hlo, sets

CLASSES = ("contraction", "reduction", "elementwise", "movement", "fusion", "control", "collective", "custom", "parameter", "constant",
           "free", "unknown")
"""All classes, the heavy ones first."""

VALUES = sets.hlo("constant") | sets.torchscript("prim::Constant prim::GetAttr prim::Uninitialized")
"""Operators that name an existing value: a literal, a weight, a submodule."""
PLUMBING = sets.hlo("tuple get-tuple-element") | sets.torchscript(
    "prim::ListConstruct prim::TupleConstruct prim::ListUnpack prim::TupleUnpack prim::TupleIndex prim::NumToTensor prim::unchecked_cast "
    "prim::data __getitem__ Int Bool ScalarImplicit size len dim")
"""Operators that pack, unpack or query a size, and move no data."""
VIEWS = sets.torchscript(
    "view view_as reshape reshape_as flatten unflatten ravel squeeze unsqueeze transpose swapaxes swapdims permute t numpy_T mT movedim "
    "moveaxis expand broadcast_to expand_as detach alias contiguous slice narrow select unbind chunk split split_with_sizes tensor_split "
    "diagonal unfold view_as_real view_as_complex real imag unsafe_chunk unsafe_split unsafe_split_with_sizes requires_grad_ lift_fresh "
    "_unsafe_view _reshape_alias as_strided linalg_diagonal hsplit vsplit dsplit atleast_1d atleast_2d atleast_3d broadcast_tensors "
    "meshgrid conj _conj _neg_view mH matrix_H adjoint positive")
"""torch's operators whose result is a view of their first operand."""
DENSE = sets.torchscript("reshape reshape_as flatten ravel contiguous")
"""Those of them that copy instead when the elements are not contiguous."""
DROPOUTS = sets.torchscript("dropout feature_dropout alpha_dropout feature_alpha_dropout")
_CASTS = sets.torchscript("to type_as")

_MEMBERS = {
    "contraction": sets.hlo("dot convolution ragged-dot scaled-dot fft cholesky triangular-solve"),
    "reduction": sets.relay("scatter sort topk") | sets.hlo(
        "reduce reduce-window scatter select-and-scatter sort topk reduce-precision scan batch-norm-training batch-norm-grad "
        "batch-norm-inference"),
    "movement": sets.hlo(
        "transpose reshape gather broadcast copy slice dynamic-slice dynamic-update-slice concatenate pad reverse iota copy-start "
        "copy-done dynamic-reshape bitcast-convert set-dimension-size"),
    "collective": sets.hlo(
        "all-reduce all-reduce-start all-reduce-done all-gather all-gather-start all-gather-done all-to-all collective-permute "
        "collective-permute-start collective-permute-done reduce-scatter collective-broadcast ragged-all-to-all send recv send-done "
        "recv-done partition-id replica-id infeed outfeed"),
    "control": sets.torchscript("prim::If prim::Loop") | sets.relay("call if match") | sets.hlo(
        "while conditional call async-start async-update async-done after-all add-dependency opt-barrier"),
    "parameter": sets.hlo("parameter"),
    "fusion": sets.hlo("fusion"),
    "custom": sets.hlo("custom-call"),
    "elementwise": sets.hlo("rng rng-bit-generator"),
    "constant": VALUES,
    "free": PLUMBING | sets.hlo("bitcast domain get-dimension-size"),
}


def is_view(node: Node) -> bool:
    """Whether an operator of torch returns its operand or a view of it, and moves no data."""
    op = node.op
    if op.is_primitive:
        return False
    if op in VIEWS:
        strides = getattr(node.operands[0].type, "strides", None) if op in DENSE and node.operands else None
        return strides is None or tuple(strides) == row_major(node.operands[0].type)
    if op in _CASTS:
        x = node.operands[0].type if node.operands else None
        return isinstance(x, TensorType) and isinstance(node.type, TensorType) and x.dtype is node.type.dtype
    return op in DROPOUTS and len(node.operands) == 3 and Constant.of(node.operands[2]).value in (0, False)


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
    return _class_of(node.op)


@lru_cache(maxsize=4096)
def _class_of(op: Op) -> str:
    for name, members in _MEMBERS.items():
        if op in members:
            return name
    if not op.is_primitive:
        word = op.name.removeprefix("aten::").removeprefix("nn.").rstrip("_")
        for name, words in _WORDS.items():
            if word in words:
                return name
    if not op.known:
        return "unknown"
    return "constant" if op.kind is Kind.LEAF else _BY_KIND.get(op.kind, "custom")


def drawn_class(node: Node) -> str:
    """The class to draw a node in; for a fusion, that of the heaviest work inside it."""
    if node.op is not hlo.fusion or not node.bodies:
        return work_class(node)
    inside = {work_class(inner) for inner in node.bodies[0].nodes}
    return next((name for name in CLASSES if name in inside and name not in _LIGHT), "fusion")


def is_leaflike(node: Node) -> bool:
    """Whether a node is a leaf, or a broadcast scalar constant: compilers hoist and share these, so only one copy of a layer has them."""
    if _is_leaf(node.op):
        return True
    return node.op is hlo.broadcast and bool(node.operands) and node.operands[0].op is hlo.constant


@lru_cache(maxsize=4096)
def _is_leaf(op: Op) -> bool:
    return op.kind is Kind.LEAF or op is hlo.iota or op in VALUES


# Operators of libraries, by their own names: their class does not depend on whether irscope can expand them.
_WORDS = {
    "contraction": frozenset("""
        linear matmul bmm mm addmm baddbmm mv dot einsum conv1d conv2d conv3d conv_transpose2d convolution _convolution dense batch_matmul
        contrib_conv2d_winograd scaled_dot_product_attention multi_head_attention lstm gru""".split()),
    "reduction": frozenset("""
        sum mean var std max min amax amin argmax argmin prod norm softmax log_softmax layer_norm batch_norm group_norm instance_norm
        max_pool2d avg_pool2d adaptive_avg_pool2d global_avg_pool2d adaptive_max_pool2d cumsum sort topk any all lrn cross_entropy_loss
        nll_loss l2_normalize""".split()),
    "movement": frozenset("""
        view reshape transpose permute t contiguous slice select cat concatenate stack expand expand_as unsqueeze squeeze flatten embedding
        gather index index_select repeat chunk split narrow clone copy to pad strided_slice take expand_dims batch_flatten broadcast_to
        layout_transform unbind roll flip upsample upsampling reverse tile constant_pad_nd masked_fill""".split()),
    "elementwise": frozenset("""
        add sub mul div multiply subtract divide neg negative relu relu6 gelu silu sigmoid tanh exp log sqrt rsqrt pow erf abs clamp clip
        hardtanh hardswish hardsigmoid leaky_relu elu dropout where maximum minimum eq ne lt le gt ge bias_add cast type_as rsub floor ceil
        round sin cos softplus mish prelu logical_and logical_not power greater less equal not_equal""".split()),
}
_LIGHT = frozenset({"fusion", "control", "parameter", "constant", "free", "unknown"})
_BY_KIND = {Kind.ELEMENTWISE: "elementwise", Kind.BROADCAST: "movement", Kind.INJECTIVE: "movement", Kind.REDUCTION: "reduction",
            Kind.CONTRACTION: "contraction", Kind.TUPLE: "free"}
