"""Heavy operators work on half precision, delicate ones on single."""
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irscope.formats.relay.operators import declared
from irscope.graph import DTYPES, Graph, Kind, Module, Node, TensorType
from irscope.ops import get
from irscope.passes.base import Pass
from irscope.passes.visitor import GraphMutator
from irscope.source import UserError

ALWAYS = frozenset((
    "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose", "nn.dense", "nn.matmul",
    "nn.batch_matmul",
))
"""Worth the conversions: they run in half precision always."""

NEVER = frozenset((
    "exp", "power", "log", "log2", "log10", "erf", "mean", "sum", "prod", "variance", "nn.softmax", "nn.log_softmax", "nn.fast_softmax",
    "nn.layer_norm", "nn.instance_norm", "nn.group_norm", "nn.l2_normalize", "nn.lrn", "nn.cross_entropy", "nn.cross_entropy_with_logits",
    "cumsum", "cumprod", "cast", "cast_like", "reinterpret", "nn.batch_norm",
))
"""Small or delicate: they run in single precision always."""

FOLLOWING = frozenset((Kind.ELEMENTWISE, Kind.BROADCAST, Kind.INJECTIVE))
ALSO_FOLLOWING = frozenset(("nn.max_pool1d", "nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d", "max"))
WORDS = {"float16": "f16", "bfloat16": "bf16"}


class ToMixedPrecision(Pass):
    """Convert what heavy operators read, sum in single precision, and let cheap operators follow what they read.

        %0 = nn.conv2d(%x, %w);                %0 = cast(%x, dtype="float16");    %3 = cast(%2, dtype="float16");
        %1 = nn.relu(%0);               ->     %1 = cast(%w, dtype="float16");    %4 = nn.relu(%3);
        nn.softmax(%1)                         %2 = nn.conv2d(%0, %1, out_dtype="float32");
                                               nn.softmax(cast(%4, dtype="float32"))

    ``dtype`` is float16 or bfloat16. Parameters and results keep their types. The numbers are those of half precision.
    """

    name: ClassVar[str] = "to-mixed-precision"
    requires = ("infer-types",)

    def __init__(self, dtype: str = "float16") -> None:
        if dtype not in WORDS:
            raise UserError(f"to-mixed-precision makes no {dtype!r}", f"it makes {' or '.join(WORDS)}")
        self.dtype = dtype

    def run(self, module: Module) -> Module:
        return _Narrowing(self.dtype).run(module) if module.format == "relay" else module


class _Narrowing(GraphMutator):
    def __init__(self, word: str) -> None:
        self.word = word
        self.half = DTYPES[WORDS[word]]
        self.single = DTYPES["f32"]

    def begin(self, graph: Graph) -> None:
        self.casts: dict[tuple[Node, str], Node] = {}

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if node.op.dialect != "relay" or not isinstance(node.type, TensorType) or node.bodies or declared(node.op.name) is None:
            return self._as_before(node, operands)
        if node.op.name in ALWAYS and self._are(operands, node):
            return self._kept(node, self._heavy(node, [self._to(o, self.word) for o in operands]))
        if self._follows(node) and self._are(operands, node) and any(self._is_half(o) for o in operands):
            changed = [self._to(o, self.word) for o in operands]
            return self._kept(node, self.add(node.op.name, changed, **node.attrs))
        return self._as_before(node, operands)

    def _follows(self, node: Node) -> bool:
        return node.op.name not in NEVER and (node.op.kind in FOLLOWING or node.op.name in ALSO_FOLLOWING)

    def _are(self, operands: Sequence[Node], node: Node) -> bool:
        """Whether everything that a node reads and gives was single precision as written: it may change as one."""
        types = [node.type, *(o.type for o in node.operands)]
        half = any(isinstance(o, TensorType) and o.dtype is self.half for o in types)
        return not half and all(isinstance(t, TensorType) and t.dtype is self.single for t in types)

    def _heavy(self, node: Node, operands: Sequence[Node]) -> Node:
        made = self.add(node.op.name, operands, **{**node.attrs, "out_dtype": "float32"})
        return self._to(made, self.word)

    def _kept(self, node: Node, made: Node) -> Node:
        """A result of the graph keeps its type."""
        return self._to(made, "float32") if node is self.graph.root else made

    def _as_before(self, node: Node, operands: Sequence[Node]) -> Node | None:
        """The node on the types that it was written for."""
        pairs = zip(operands, node.operands, strict=True)
        wanted = [self._to(o, "float32") if self._is_half(o) and old.type != o.type else o for o, old in pairs]
        if list(operands) == wanted:
            return None
        bodies = [self.became.get(body, body) for body in node.bodies]
        return self.builder.add(node.op, wanted, node.attrs, node.type, bodies, name=node.name, synthetic=node.synthetic)

    def _is_half(self, node: Node) -> bool:
        return isinstance(node.type, TensorType) and node.type.dtype is self.half

    def _to(self, node: Node, word: str) -> Node:
        """The value in an element type; one conversion serves all readers."""
        assert isinstance(node.type, TensorType), "only tensors are converted"
        dtype = self.half if word == self.word else self.single
        if node.type.dtype is dtype:
            return node
        if (node, word) not in self.casts:
            type = TensorType(dtype, node.type.shape)
            self.casts[node, word] = self.builder.add(get("cast", "relay"), [node], {"dtype": word}, type)
        return self.casts[node, word]
