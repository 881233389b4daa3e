"""Operators that say something of a value, and hand it on."""

from __future__ import annotations

from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Node

NAMES = (
    "annotation.bitpack_end(data)", "annotation.bitpack_start(data)", "annotation.checkpoint(data)",
    "annotation.compiler_begin(data; compiler=None)", "annotation.compiler_end(data; compiler=None)", "annotation.stop_fusion(data)",
    "on_device(body; virtual_device=None, is_fixed=None, constrain_result=False, constrain_body=True, device_type=None)",
    "device_copy(data; src_virtual_device=None, dst_virtual_device=None, src_dev_type=None, dst_dev_type=None)",
    "debug(program; debug_func=None)", "annotation.with_funcid(func; funcid=None)",
    "annotation.on_device(data; device_type=None)", "annotation.copy(data)", "annotation.cast_hint(data; dtype=None)",
)  # fmt: skip


@operator(*NAMES, level=10)
def handed_on(t: Relay, a: Attributes, x: Node) -> Node:
    """The operand."""
    return x
