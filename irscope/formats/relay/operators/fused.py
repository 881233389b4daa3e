"""Fused operators that irscope's passes introduce: TVM has none of these names."""

from __future__ import annotations

from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.convolution import attributes, convolve
from irscope.graph import Kind, Node


@operator(f"nn.conv2d_relu(data, weight; {attributes(2, 'NCHW', 'OIHW')})", kind=Kind.CONTRACTION)
def conv2d_relu(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
    """A convolution, negative results replaced by 0."""
    made = convolve(t, a, x, w, 2)
    return t.maximum(made, t.like(made, 0))
