"""The requested layouts: ``NHWC`` for all 2-D convolutions, or one per operator: ``nn.conv2d:NHWC:OHWI+nn.max_pool2d:NHWC``."""
from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from irscope.formats.relay.operators import declared, load, names
from irscope.graph import Node, Op, TensorType
from irscope.ops import get
from irscope.ops.sets import relay
from irscope.passes.layout_rules import RULES
from irscope.passes.layouts import AxisLayout, layout
from irscope.passes.simplify_inference import bound
from irscope.source import UserError, did_you_mean

DEFAULT = "default"

CONVOLUTIONS = {
    "CNW": ("nn.conv1d", "nn.conv1d_transpose"),
    "CHNW": ("nn.conv2d", "nn.conv2d_transpose", "nn.conv2d_relu", "nn.deformable_conv2d", "qnn.conv2d", "qnn.conv2d_transpose"),
    "CDHNW": ("nn.conv3d", "nn.conv3d_transpose"),
}
"""The convolutions whose data has these axes."""

CONV2D, DECONVOLUTIONS = relay("nn.conv2d"), relay("nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose qnn.conv2d_transpose")
KERNELS = {"NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}
TRANSPOSED = {"NCW": "IOW", "NCHW": "IOHW", "NCDHW": "IODHW"}
DEPTHWISE = {"NHWC": "HWOI"}
"""The layout of weights that goes with one of data, where none is asked for: those of TVM's ``convert_op_layout``."""

Requests = Mapping[Op, tuple[AxisLayout, str]]
"""By operator: the layout of the data, and that of the kernel or ``default``."""


def requests(text: str) -> Requests:
    """The requests in the option's text. Raises UserError for an unknown operator or an invalid layout."""
    found: dict[Op, tuple[AxisLayout, str]] = {}
    for part in text.split("+"):
        if not part.strip():
            continue
        first, *rest = part.strip().split(":")
        if not rest and first and first[0].isupper():
            data = _layout(first)
            load()
            operators = CONVOLUTIONS.get("".join(sorted(data.wholes)))
            if operators is None:
                raise UserError(f"convert-layout: no convolution has the layout {first!r}", f"its axes are those of {', '.join(KERNELS)}")
            _kernel_is_known(data)
            found |= dict.fromkeys((get(name, "relay") for name in operators), (data, DEFAULT))
            continue
        if declared(first) is None:
            raise UserError(f"convert-layout: there is no operator {first!r}", did_you_mean(first, names()) or "such as nn.conv2d")
        if get(first, "relay") not in RULES or not {"layout", "data_layout"} & set(_attributes(first)):
            raise UserError(f"convert-layout: {first} has no layout", "it follows its operands, where it can")
        if not 1 <= len(rest) <= 2:
            raise UserError(f"convert-layout: {part.strip()!r} asks for no layout", "write OPERATOR:LAYOUT or OPERATOR:LAYOUT:KERNEL")
        data, kernel = _layout(rest[0]), rest[1] if len(rest) == 2 else DEFAULT
        if kernel != DEFAULT:
            _layout(kernel)
        elif "data_layout" in _attributes(first):
            _kernel_is_known(data)
        found[get(first, "relay")] = data, kernel
    return found


def _kernel_is_known(data: AxisLayout) -> None:
    if "".join(data.wholes) not in KERNELS:
        raise UserError(f"convert-layout: no layout of weights is known that goes with {data}",
                        f"write OPERATOR:{data}:KERNEL, or one of {', '.join(KERNELS)}")


def wanted(node: Node, data: AxisLayout, kernel: str) -> Mapping[str, Any] | str:
    """The attributes of an operator that works in the requested layout; the reason as text if it cannot."""
    given = bound(node)
    if "data_layout" not in given:
        # The request takes precedence over the layout of the data, as in TVM.
        return {**node.attrs, "layout": data.text, **({"out_layout": data.text} if "out_layout" in given else {})}
    left = {key: value for key, value in node.attrs.items() if key != "out_layout"}
    if kernel == DEFAULT:
        found = _kernel(node, data)
        if found is None:
            return f"no layout of weights is known that goes with {data}: ask for one, as {node.op.name}:{data}:LAYOUT"
        kernel = found
    return {**left, "data_layout": data.text, "kernel_layout": kernel}


def operator_for(node: Node, data: AxisLayout) -> Op:
    """The operator for a layout: TVM has a separate operator for packed data."""
    if node.op not in CONV2D or not data.is_packed:
        return node.op
    return get("nn.contrib_depthwise_conv2d_NCHWc" if _is_depthwise(node) else "nn.contrib_conv2d_NCHWc", "relay")


def _kernel(node: Node, data: AxisLayout) -> str | None:
    """The layout of weights for a layout of data: in packed ones both channel axes are split like the data."""
    plain = "".join(data.wholes)
    transposed = node.op in DECONVOLUTIONS
    made = (TRANSPOSED.get(plain) if transposed else None) or (DEPTHWISE.get(plain) if _is_depthwise(node) else None) or KERNELS.get(plain)
    if made is None or not data.is_packed:
        return made
    factor = data.factor("C")
    return None if transposed else f"{made}1i{factor}o" if _is_depthwise(node) else f"{made}{factor}i{factor}o"


def _is_depthwise(node: Node) -> bool:
    """Whether each channel has its own kernel."""
    given, weight = bound(node), node.operands[1].type
    if int(given["groups"]) == 1 or not isinstance(weight, TensorType):
        return False
    kernel = layout(str(given["kernel_layout"]))
    if len(kernel) != weight.rank:
        return False
    sizes = [(name.upper(), size if isinstance(size, int) else 0) for (name, _), size in zip(kernel.axes, weight.shape, strict=True)]
    inputs, outputs = (prod(size for name, size in sizes if name == letter) for letter in "IO")
    return inputs == 1 and outputs == int(given["groups"])


def _attributes(name: str) -> tuple[str, ...]:
    operator = declared(name)
    return operator.names if operator is not None else ()


def _layout(text: str) -> AxisLayout:
    try:
        return layout(text)
    except ValueError as fault:
        raise UserError(f"convert-layout: {fault}", "a layout is such as NHWC or NCHW4c") from None
