"""Pattern fusion: outlines a heavy operator with its bias, normalisation, residual addition and activation into one function."""
from __future__ import annotations

from collections.abc import Callable

from irscope.formats.hlo.dialect import HLO
from irscope.formats.relay.dialect import RELAY
from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.graph import Dialect, Module, Node, Op, TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.passes.base import Pass
from irscope.passes.composite import Recipe, put_together
from irscope.passes.pattern import DataflowPattern, Match, anything, op
from irscope.passes.torch_effects import small_value

Step = Callable[[DataflowPattern], DataflowPattern]
RECTIFIERS = hlo.named("maximum call")


class FusePatterns(Pass):
    """Outline a convolution or dense layer and the usual operators after it into a function with a composite name.

        %0 = nn.dense(%x, %w, units=8);              %2 = fn (%p0, %p1, %p2, Composite="dense_bias_add_relu") {
        %1 = nn.bias_add(%0, %b);             ->       %0 = nn.dense(%p0, %p1, units=8);
        nn.relu(%1)                                    nn.relu(nn.bias_add(%0, %p2))
                                                     };
                                                     %2(%x, %w, %b)

    Bias, batch normalisation, residual addition and activation, in this order, each optional. The pattern ends before a step whose operand
    has other users; the pass reports this. In HLO the function is a called computation, in TorchScript a ``prim::FusionGroup``.
    """

    name = "fuse-patterns"
    requires = ("infer-types",)

    def run(self, module: Module) -> Module:
        dialect = HLO if module.is_primitive else module.dialect
        if dialect not in PATTERNS:
            return module
        pattern, copied = PATTERNS[dialect]
        recipe = Recipe(pattern, composite_name, lambda found: {"Composite": composite_name(found)}, lambda _, node: copied(node), 2)
        made, self.declined = put_together(module, [recipe])
        return made


def composite_name(found: Match) -> str:
    """``conv2d_bias_add_relu``: the operators in the order in which they run."""
    names = [_word(n.op) for n in reversed(found.inside)]
    return "_".join(name for name in names if name)


def _word(op: Op) -> str:
    """The name of a step; empty for a node that only belongs to the step before it."""
    if op in RECTIFIERS:
        return "relu"
    return "" if op is hlo.get_tuple_element else op.name.rpartition(".")[2].rpartition("::")[2].strip("_").replace("-", "_")


def _chain(core: DataflowPattern, *steps: Step) -> DataflowPattern:
    """A core operator, followed by the optional steps."""
    for step in steps:
        core = core.optional(step)
    return core


def _keeps_shape(node: Node, of: int) -> bool:
    return isinstance(node.type, TensorType) and node.operands[of].type == node.type


# ---------------------------------------------------------------------- Relay

CORE = op("nn.conv2d", "nn.dense", "nn.batch_matmul", "nn.conv1d", "nn.conv3d", "nn.matmul")(anything(), anything())


def _sum(x: DataflowPattern) -> DataflowPattern:
    """A residual addition, or a bias written as one: the added value must not broadcast the result."""
    left = op("add")(x, anything()).where(lambda node: _keeps_shape(node, 0))
    return left | op("add")(anything(), x).where(lambda node: _keeps_shape(node, 1))


RELAY_CHAIN = _chain(CORE, lambda x: op("nn.bias_add")(x, anything()),
                     lambda x: op("get-tuple-element").with_attrs(index=0)(op("nn.batch_norm")(x, ...)), _sum,
                     lambda x: op("nn.relu", "clip", "tanh", "sigmoid", "nn.leaky_relu")(x))

# ---------------------------------------------------------------------- TorchScript

TORCH_LAYERS = "conv1d", "conv2d", "conv3d", "_convolution", "convolution", "linear", "addmm", "matmul", "mm", "bmm", "baddbmm"
TORCH_CORE = op(*(f"aten::{name}" for name in TORCH_LAYERS))(anything(), anything(), ...)
# ``add_`` must write in place to the layer's own result, otherwise it stays outside.
TORCH_SUM = op("aten::add", "aten::add_")
TORCH_ACTIVATION = op(*(f"aten::{name}{tail}" for name in (
    "relu", "relu6", "hardtanh", "clamp", "tanh", "sigmoid", "leaky_relu", "gelu", "silu", "hardswish") for tail in ("", "_")))
TORCH_CHAIN = _chain(TORCH_CORE, lambda x: op("aten::batch_norm")(x, ...),
                     lambda x: TORCH_SUM(x, ...) | op("aten::add")(anything(), x, ...), lambda x: TORCH_ACTIVATION(x, ...))


# ---------------------------------------------------------------------- HLO

HLO_CORE = op("convolution", "dot")(anything(), anything())


def _is_zero(node: Node) -> bool:
    """The constant 0, possibly broadcast."""
    if node.op is hlo.broadcast:
        node = node.operands[0]
    literal = Constant.of(node).known if node.op is hlo.constant else None
    return literal is not None and isinstance(node.type, TensorType) and not node.type.rank and bool(literal.value() == 0)


def _either(name: str, x: DataflowPattern, other: DataflowPattern) -> DataflowPattern:
    return op(name)(x, other) | op(name)(other, x)


def _is_stretched(node: Node) -> bool:
    """A vector, or another value with fewer elements, broadcast to the size of the result."""
    if node.op is not hlo.broadcast or not isinstance(node.type, TensorType):
        return False
    before = node.operands[0].type
    return isinstance(before, TensorType) and 1 < before.elements < node.type.elements


def _calls_relu(node: Node) -> bool:
    """A call of a ReLU function, as JAX emits it."""
    root = node.bodies[0].root if len(node.operands) == 1 and node.bodies else None
    return root is not None and root.op is hlo.maximum and {o.op is hlo.parameter for o in root.operands} == {True, False} \
        and any(_is_zero(o) for o in root.operands)


ZERO, STRETCHED = anything().where(_is_zero), anything().where(_is_stretched)
HLO_CHAIN = _chain(HLO_CORE, lambda x: _either("add", x, STRETCHED), lambda x: op("batch-norm-inference")(x, ...),
                   lambda x: _either("multiply", x, STRETCHED), lambda x: _either("add", x, anything()),
                   lambda x: _either("maximum", x, ZERO) | op("clamp")(anything(), x, anything()) | op("tanh", "logistic")(x)
                   | op("call")(x).where(_calls_relu))


def _made_inside(node: Node) -> bool:
    """Scalars and broadcasts: the computation builds them itself from smaller operands."""
    number = node.op is hlo.constant and isinstance(node.type, TensorType) and node.type.rank == 0
    return number or _is_stretched(node) or _is_zero(node)


PATTERNS: dict[Dialect, tuple[DataflowPattern, Callable[[Node], bool]]] = {
    RELAY: (RELAY_CHAIN, lambda node: False), TORCHSCRIPT: (TORCH_CHAIN, small_value), HLO: (HLO_CHAIN, _made_inside)}
"""What is looked for in each format, and which values of few numbers the function writes itself."""
