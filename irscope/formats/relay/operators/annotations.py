"""Annotations: operators that return their operand."""

from __future__ import annotations

from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Node

NAMES = (
    "annotation.bitpack_end(data: any)", "annotation.bitpack_start(data: any)", "annotation.checkpoint(data: any)",
    "annotation.compiler_begin(data: any; compiler=None)", "annotation.compiler_end(data: any; compiler=None)",
    "annotation.stop_fusion(data: any)",
    "on_device(body: any; virtual_device=None, is_fixed=None, constrain_result=False, constrain_body=True, device_type=None)",
    "device_copy(data: any; src_virtual_device=None, dst_virtual_device=None, src_dev_type=None, dst_dev_type=None)",
    "debug(program: any; debug_func=None)", "annotation.with_funcid(func: any; funcid=None)",
    "annotation.on_device(data: any; device_type=None)", "annotation.copy(data: any)", "annotation.cast_hint(data: any; dtype=None)",
)  # fmt: skip


@operator(*NAMES)
def handed_on(t: Relay, a: Attributes, x: Node) -> Node:
    """The operand."""
    return x
