"""Inference simplification: replaces training operators by their meaning in inference."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irscope.formats.relay.operators import declared
from irscope.graph import Module, Node, TensorType
from irscope.ops.attributes import GetTupleElement
from irscope.ops.building import constant
from irscope.ops.sets import relay
from irscope.passes.algebra.simplifier import of
from irscope.passes.base import RelayPass
from irscope.passes.visitor import GraphMutator

BATCH_NORM, DROPOUT = relay("nn.batch_norm"), relay("nn.dropout")


class SimplifyInference(RelayPass):
    """Expand batch, layer, instance, group and L2 normalisation into arithmetic that can be folded, and remove dropout.

        %0 = nn.batch_norm(%x, %g, %b, %m, %v);              %0 = add(%v, 1e-05f);    %4 = negative(%m);
        nn.relu(%0.0)                            ->          %1 = sqrt(%0);           %5 = multiply(%4, %3);  ...
                                                             %2 = divide(1f, %1);     nn.relu(add(multiply(%x, scale), shift))

    The arithmetic on statistics is small: it depends only on the weights, and fold-constants or the compiler does it once. The operators
    are those that TVM's SimplifyInference emits, in the same order.
    """

    name = "simplify-inference"

    def rewrite(self, module: Module) -> Module:
        return _Simplifying().run(module)


class _Simplifying(GraphMutator):
    def visit_get_tuple_element(self, node: Node, operands: Sequence[Node]) -> Node | None:
        whole, index = node.operands[0], GetTupleElement.of(node).index
        if whole.op in DROPOUT and index == 0:
            return self.new(whole.operands[0])
        if whole.op not in BATCH_NORM or not (isinstance(whole.operands[0].type, TensorType) and has_root(whole.operands[4])):
            return None
        if index:
            return self.new(whole.operands[2 + index])
        x, *statistics = (self.new(o) for o in whole.operands)
        scale, shift = scale_and_shift(self, whole, [x, *statistics])
        axis, rank = _axis(whole), whole.operands[0].type.rank
        return self.add("add", [self.add("multiply", [x, along(self, scale, rank, axis)]), along(self, shift, rank, axis)])

    def visit_nn_layer_norm(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if not has_root(operands[0]):
            return None
        return self._scaled(node, self._normalised(node, operands[0], [int(bound(node)["axis"])]), operands)

    def visit_nn_instance_norm(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if not has_root(operands[0]):
            return None
        axes = [d for d in range(1, of(operands[0]).rank) if d != _axis(node)]
        return self._scaled(node, self._normalised(node, operands[0], axes), operands)

    def visit_nn_group_norm(self, node: Node, operands: Sequence[Node]) -> Node | None:
        type, axis, groups = operands[0].type, _axis(node), int(bound(node)["num_groups"])
        if not isinstance(type, TensorType) or not has_root(operands[0]) or not type.is_static or not groups or type.dims()[axis] % groups:
            return None
        shape = list(type.dims())
        parts = self.add("reshape", [operands[0]], newshape=[*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1:]])
        whole = self._normalised(node, parts, [d for d in range(1, len(shape) + 1) if d != axis])
        return self._scaled(node, self.add("reshape", [whole], newshape=shape), operands)

    def visit_nn_l2_normalize(self, node: Node, operands: Sequence[Node]) -> Node | None:
        x, given = operands[0], bound(node)
        if not has_root(x):
            return None
        total = self.add("sum", [self.add("multiply", [x, x])], axis=given["axis"], keepdims=True)
        least = self.add("maximum", [total, constant(self.builder, given["eps"], of(x).dtype)])
        return self.add("divide", [x, self.add("sqrt", [least])])

    def _normalised(self, node: Node, x: Node, axes: list[int]) -> Node:
        """Mean 0 and variance 1 over some axes."""
        mean = self.add("mean", [x], axis=axes, keepdims=True)
        variance = self.add("variance", [x, mean], axis=axes, keepdims=True)
        deviation = self.add("sqrt", [self.add("add", [variance, constant(self.builder, bound(node)["epsilon"], of(x).dtype)])])
        return self.add("divide", [self.add("subtract", [x, mean]), deviation])

    def _scaled(self, node: Node, x: Node, operands: Sequence[Node]) -> Node:
        """The scale and the shift after a normalisation, along the node's axis."""
        _, gamma, beta = operands
        given, rank = bound(node), of(operands[0]).rank
        if given["scale"]:
            x = self.add("multiply", [x, along(self, gamma, rank, _axis(node))])
        return self.add("add", [x, along(self, beta, rank, _axis(node))]) if given["center"] else x


def has_root(x: Node) -> bool:
    """Whether a value is a tensor of floats, which ``sqrt`` accepts: a normalisation of integers stays unchanged."""
    return isinstance(x.type, TensorType) and x.type.dtype.is_float


def scale_and_shift(mutator: GraphMutator, node: Node, operands: Sequence[Node]) -> tuple[Node, Node]:
    """The scale and shift of a batch normalisation, as arithmetic on its statistics."""
    _, gamma, beta, mean, variance = operands
    given, dtype = bound(node), of(variance).dtype
    deviation = mutator.add("sqrt", [mutator.add("add", [variance, constant(mutator.builder, given["epsilon"], dtype)])])
    scale = mutator.add("divide", [constant(mutator.builder, 1, dtype), deviation])
    if given["scale"]:
        scale = mutator.add("multiply", [scale, gamma])
    shift = mutator.add("multiply", [mutator.add("negative", [mean]), scale])
    return scale, mutator.add("add", [shift, beta]) if given["center"] else shift


def along(mutator: GraphMutator, vector: Node, rank: int, axis: int) -> Node:
    """A vector that broadcasts along one axis of a tensor of some rank."""
    behind = rank - axis - 1
    return mutator.add("expand_dims", [vector], axis=1, num_newaxis=behind) if behind else vector


def bound(node: Node) -> Mapping[str, Any]:
    """The attributes of a Relay call with the defaults filled in."""
    return bound_attrs(node.op.name, node.attrs)


def bound_attrs(name: str, attrs: Mapping[str, object]) -> Mapping[str, Any]:
    """The attributes of a call that is not built yet, with the defaults filled in."""
    operator = declared(name)
    return vars(operator.bound(attrs)) if operator is not None else attrs


def _axis(node: Node) -> int:
    type = node.operands[0].type
    axis = int(bound(node)["axis"])
    return axis % type.rank if isinstance(type, TensorType) else axis
